"""Whole sessions in files: each line is one that the CLI writes, beside what it must become (see `lines.described`).

`python -m tests.engines.claude.translate.recorded` writes the second half anew; read the difference before you keep it.
"""

import json
from pathlib import Path
from typing import Any

from antiphon.engines.claude import wire
from antiphon.engines.claude.translate.events import ClaudeEvent
from antiphon.engines.claude.translate.translator import ClaudeTranslator
from tests.engines.claude.translate.lines import described, feed

__all__ = ["FILES", "Session", "play"]

FILES = sorted((Path(__file__).parent / "transcripts").glob("*.jsonl"))


class Session:
    """One file: lines, and what each comes to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        rows = [json.loads(row) for row in path.read_text(encoding="utf-8").splitlines()]
        self.lines: list[dict[str, Any]] = [row["line"] for row in rows]
        self.expected: list[list[str]] = [row["expected"] for row in rows]

    def translate(self) -> list[list[str]]:
        """What each line comes to now."""
        return [described(each) for each in play(self.lines)]


def play(lines: list[dict[str, Any]]) -> list[list[ClaudeEvent]]:
    """Feed a session as the engine does; every question is answered with yes."""
    translator = ClaudeTranslator("/project")
    received: list[list[ClaudeEvent]] = []
    for line in lines:
        each = wire.decode(json.dumps(line).encode())
        if isinstance(each, wire.ControlRequest) and isinstance(each.request, wire.CanUseTool):
            patch = translator.patch_of(each.request)
            received.append([*translator.allowed(patch.tool_call_id)])
        else:
            received.append(feed(translator, line))
    return received


def _write_anew() -> None:
    for path in FILES:
        session = Session(path)
        rows = [{"line": line, "expected": each} for line, each in zip(session.lines, session.translate(), strict=True)]
        path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    _write_anew()
