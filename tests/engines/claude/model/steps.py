"""What the model of the tests of Claude Code is asked to say, beside what every model can say."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from tests.engines.model.steps import Cut, Gate, Header, Json, Stop, Text, Think, Used, Wait, wait_limit

__all__ = [
    "Answer",
    "Call",
    "ClaudeCalls",
    "Cut",
    "Fail",
    "Gate",
    "Header",
    "Json",
    "Step",
    "Stop",
    "Text",
    "Think",
    "Used",
    "Wait",
    "wait_limit",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """A tool is to be used. Its input comes in deltas of so many characters; without an id it gets one."""

    name: str
    input: Json = field(default_factory=dict)
    id: str = ""
    size: int = 16


@dataclass(frozen=True, slots=True)
class Fail:
    """An error instead of an answer, so it stands alone."""

    status: int
    kind: str = "api_error"
    message: str = "out of tune"
    headers: tuple[tuple[str, str], ...] = ()


Step: TypeAlias = Text | Think | Call | Wait | Fail | Cut | Header | Stop | Used
Answer: TypeAlias = tuple[Step, ...]


class ClaudeCalls:
    """Calls of the tools of Claude Code."""

    def command(self, line: str) -> Call:
        return Call("Bash", {"command": line, "description": "Sing"})

    def asked_command(self, line: str) -> Call:
        return self.command(line)

    def add_file(self, path: Path, text: str) -> Call:
        return Call("Write", {"file_path": str(path), "content": text})

    def edit_file(self, path: Path, old: str, new: str) -> Call:
        return Call("Edit", {"file_path": str(path), "old_string": old, "new_string": new})

    def mcp_tool(self, server: str, tool: str, **given: Any) -> Call:
        return Call(f"mcp__{server}__{tool}", given)
