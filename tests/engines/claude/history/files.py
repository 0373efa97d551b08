"""Writes session files as Claude Code does, line by line, in the shapes of a new and of an old version."""

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from antiphon.engines.claude.history.records import folder_name

NEW, OLD = "2.1.325", "2.1.197"
Json = dict[str, Any]


class SessionFile:
    """A session that is written down as it goes; `last` is the line that the next one follows."""

    def __init__(
        self,
        root: Path,
        cwd: str = "/project",
        id: str | None = None,
        *,
        version: str = NEW,
        at: str = "2026-03-01T10:00:00",
    ) -> None:
        self.id = id or str(uuid.uuid4())
        self.cwd, self.version, self.at = cwd, version, at
        self.folder = root / "projects" / folder_name(cwd)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = self.folder / f"{self.id}.jsonl"
        self.path.touch()
        self.last: str | None = None
        self._count = 0
        self.common: Json = {}

    def write(self, line: Json) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")

    def alone(self, type: str, **fields: Any) -> None:
        """A line that follows none."""
        self.write({"type": type, **fields, "sessionId": self.id})

    def say(self, type: str, *, after: str | None | bool = True, id: str | None = None, **fields: Any) -> str:
        """A line that follows the last one, or another one, or none (`None`)."""
        own = id or str(uuid.uuid4())
        self._count += 1
        parent = self.last if after is True else after
        self.write(
            {
                "parentUuid": parent,
                "isSidechain": False,
                "type": type,
                **fields,
                "uuid": own,
                "timestamp": f"{self.at}.{self._count:03}Z",
                "cwd": self.cwd,
                "sessionId": self.id,
                "version": self.version,
                "gitBranch": "HEAD",
                **self.common,
            }
        )
        self.last = own
        return own

    def user(self, content: str | Sequence[Json], **fields: Any) -> str:
        if self.version == NEW and isinstance(content, str):
            self.alone("queue-operation", operation="enqueue", content=content)
            self.alone("queue-operation", operation="dequeue")
        return self.say("user", message={"role": "user", "content": content}, **fields)

    def setting(self) -> None:
        """What a new version notes around the first prompt."""
        for kind in ("environment", "prompt_snapshot"):
            self.say(
                "attachment", attachment={"type": kind, "text": "x" * 200}, rendered=[{"content": "<system-reminder>"}]
            )
        self.alone(
            "api-request-blob", message={"role": "user", "content": [{"type": "text", "text": "nobody said this"}]}
        )

    def assistant(self, *blocks: Json, message: str | None = None, **fields: Any) -> str:
        body = {
            "id": message or f"msg_{uuid.uuid4().hex[:8]}",
            "type": "message",
            "role": "assistant",
            "model": fields.pop("model", "claude-opus-5-5"),
            "content": list(blocks),
            "usage": {"input_tokens": 10, "output_tokens": 2},
        }
        return self.say("assistant", message=body, **fields)

    def result(self, call: str, content: Any, structured: Any = None, *, is_error: bool = False, **fields: Any) -> str:
        block = {"tool_use_id": call, "type": "tool_result", "content": content, "is_error": is_error}
        return self.say("user", message={"role": "user", "content": [block]}, toolUseResult=structured, **fields)

    def command(self, name: str, arguments: str = "", printed: str | None = None) -> None:
        """A slash command that ran in the CLI itself."""
        self.say(
            "user", message={"role": "user", "content": "<local-command-caveat>…</local-command-caveat>"}, isMeta=True
        )
        text = f"<command-name>{name}</command-name>\n  <command-message>{name[1:]}</command-message>\n  <command-args>{arguments}</command-args>"
        self.say("user", message={"role": "user", "content": text})
        if printed is not None:
            self.say(
                "system", subtype="local_command", content=f"<local-command-stdout>{printed}</local-command-stdout>"
            )

    def agent(self, name: str, call: str | None, *, beside: bool = False) -> "SessionFile":
        """The file of a sub-agent, with its description unless `call` is `None`."""
        inner = _Agent(self, name, beside)
        if call is not None:
            meta = {"agentType": "general-purpose", "toolUseId": call, "spawnDepth": 1}
            inner.path.with_suffix(".meta.json").write_text(json.dumps(meta), encoding="utf-8")
        return inner


class _Agent(SessionFile):
    def __init__(self, session: SessionFile, name: str, beside: bool) -> None:
        self.id, self.cwd, self.version, self.at = session.id, session.cwd, session.version, session.at
        self.folder = session.folder if beside else session.path.with_suffix("") / "subagents"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = self.folder / f"agent-{name}.jsonl"
        self.path.touch()
        self.last, self._count = None, 0
        self.common = {"isSidechain": True, "agentId": name}


def text(printed: str) -> Json:
    return {"type": "text", "text": printed}


def thinking(thought: str) -> Json:
    return {"type": "thinking", "thinking": thought, "signature": "c2ln"}


def call(id: str, name: str, **input: Any) -> Json:
    return {"type": "tool_use", "id": id, "name": name, "input": input}
