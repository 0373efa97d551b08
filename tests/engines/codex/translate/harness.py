"""A thread as the app server reports it, and a short outline of what the translator makes of it.

Both versions that the engine is proved against are played: 0.166 adds times to every item.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from antiphon.engines.codex import wire
from antiphon.engines.codex.translate import CodexEvent, CodexTranslator
from antiphon.engines.events import EngineNotice, Mirror, ModelChanged, TitleChanged, TurnEnded
from antiphon.protocol import v1
from antiphon.protocol.base import UNSET

VERSIONS = ("0.163.0", "0.166.0")
CWD = "/home/me/project"


class TranslatedThread:
    """One thread and its translator."""

    def __init__(self, version: str = "0.166.0", cwd: str = CWD, **options: Any) -> None:
        self.version = version
        self.translator = CodexTranslator(cwd, **options)
        self.events: list[CodexEvent] = []
        self._turns = 0

    @property
    def outline(self) -> list[str]:
        """What was sent, in short."""
        return list(described(self.events))

    def notify(self, method: str, **params: Any) -> None:
        """The server says something."""
        line = {"method": method, "params": {"threadId": "t", "turnId": f"u{self._turns}", **params}, "emittedAtMs": 5}
        read = wire.decode(msgspec.json.encode(line))
        assert isinstance(read, wire.ServerNotification), read
        self.events += self.translator.feed(read.method, read.params)

    def asked(self, method: str, id: int = 0, **params: Any) -> v1.ToolCallPatch | None:
        """The server asks something."""
        line = {"method": method, "id": id, "params": {"threadId": "t", "turnId": f"u{self._turns}", **params}}
        read = wire.decode(msgspec.json.encode(line))
        assert isinstance(read, wire.ServerRequest), read
        return self.translator.patch_of(read.params)

    def allowed(self, id: str) -> None:
        """The user says yes."""
        self.events += self.translator.allowed(id)

    def item(self, type: str, id: str, **fields: Any) -> dict[str, Any]:
        """An item as this version writes it."""
        times = {"startedAtMs": 1, "completedAtMs": None} if self.version == "0.166.0" else {}
        return {"type": type, "id": id, **_empty(type), **fields, **times}

    def started(self, type: str, id: str, **fields: Any) -> None:
        """An item starts."""
        self.notify("item/started", item=self.item(type, id, **fields), startedAtMs=1)

    def completed(self, type: str, id: str, **fields: Any) -> None:
        """An item is complete."""
        self.notify("item/completed", item=self.item(type, id, **fields), completedAtMs=2)

    def begin(self, prompt: str = "go") -> None:
        """A turn begins with what the user says."""
        self._turns += 1
        self.notify("thread/status/changed", status={"type": "active", "activeFlags": []})
        self.notify("turn/started", turn=self.turn("inProgress"))
        texts = [{"type": "text", "text": prompt, "text_elements": []}]
        self.started("userMessage", f"user{self._turns}", content=texts)
        self.completed("userMessage", f"user{self._turns}", content=texts)

    def says(self, id: str, *pieces: str, whole: str | None = None) -> None:
        """The model says something in pieces, and then as a whole."""
        self.started("agentMessage", id)
        for piece in pieces:
            self.notify("item/agentMessage/delta", itemId=id, delta=piece)
        self.completed("agentMessage", id, text="".join(pieces) if whole is None else whole)

    def thinks(self, id: str, *pieces: str) -> None:
        """The model thinks."""
        self.started("reasoning", id)
        self.notify("item/reasoning/summaryPartAdded", itemId=id, summaryIndex=0)
        for piece in pieces:
            self.notify("item/reasoning/summaryTextDelta", itemId=id, delta=piece, summaryIndex=0)
        self.completed("reasoning", id, summary=["".join(pieces)])

    def command(self, id: str, line: str, status: str = "inProgress", **fields: Any) -> None:
        """A command starts, or is over if it has a status."""
        wrapped = f"/bin/bash -lc '{line}'"
        actions = fields.pop("commandActions", [{"type": "unknown", "command": line}])
        described = self.started if status == "inProgress" else self.completed
        described("commandExecution", id, command=wrapped, commandActions=actions, status=status, **fields)

    def changes(self, id: str, changes: list[dict[str, Any]], status: str = "inProgress") -> None:
        """Files are changed, or it is over if it has a status."""
        described = self.started if status == "inProgress" else self.completed
        described("fileChange", id, changes=changes, status=status)

    def error(self, message: str, info: Any, *, retry: bool = False, details: str | None = None) -> None:
        """Something goes wrong."""
        self.notify("error", error=failure(message, info, details), willRetry=retry)

    def answered(self, total: int = 1025, last: int = 1025) -> None:
        """The model's answer is complete."""
        usage = {
            "total": {"totalTokens": total, "inputTokens": total},
            "last": {"totalTokens": last},
            "modelContextWindow": 9000,
        }
        self.notify("thread/tokenUsage/updated", tokenUsage=usage)

    def over(self, status: str = "completed", error: Any = None, items: Iterable[Any] = ()) -> None:
        """The turn is over."""
        self.notify("turn/completed", turn={**self.turn(status), "error": error, "items": list(items)})

    def turn(self, status: str) -> dict[str, Any]:
        """The turn, as this version writes it."""
        return {"id": f"u{self._turns}", "items": [], "itemsView": "notLoaded", "status": status, "error": None}


def failure(message: str, info: Any, details: str | None = None) -> dict[str, Any]:
    """An error, as it is written."""
    return {"message": message, "codexErrorInfo": info, "additionalDetails": details, "misalignment": None}


def add(path: str, text: str) -> dict[str, Any]:
    """A file is added."""
    return {"path": path, "kind": {"type": "add"}, "diff": text}


def update(path: str, diff: str, move: str | None = None) -> dict[str, Any]:
    """A file is changed."""
    return {"path": path, "kind": {"type": "update", "move_path": move}, "diff": diff}


def described(event: Iterable[CodexEvent]) -> Iterator[str]:
    """Each event on a line."""
    for each in event:
        yield _line(each)


def _line(event: CodexEvent) -> str:
    match event:
        case v1.AgentMessageChunk():
            return f"say {event.message_id} {_block(event.content)}"
        case v1.AgentThoughtChunk():
            return f"think {event.message_id} {_block(event.content)}"
        case v1.UserMessageChunk():
            return f"user {event.message_id} {_block(event.content)}"
        case v1.ToolCall():
            return f"call {event.tool_call_id} {event.kind} {event.name}: {event.title} [{event.status}]{_content(event.content)}"
        case v1.ToolCallUpdate():
            status = "" if event.status is UNSET else f" [{event.status}]"
            return f"update {event.tool_call_id}{status}{_content(event.content)}"
        case v1.Plan():
            return "plan " + ", ".join(f"{entry.content}:{entry.status}" for entry in event.entries)
        case v1.UsageUpdate():
            return f"usage {event.used}/{event.size}"
        case v1.CompactionUpdate():
            return f"compaction {event.compaction_id} [{event.status}]"
        case _:
            return _other(event)


def _other(event: CodexEvent) -> str:
    match event:
        case EngineNotice():
            return f"notice {event.severity}: {event.title}" + (f" | {event.description}" if event.description else "")
        case TitleChanged():
            return f"title {event.title}"
        case ModelChanged():
            return f"model {event.model}"
        case Mirror():
            return f"mirror {event.call_id} {event.command} -> {event.output!r} {event.exit_code}"
        case TurnEnded(end=end, ids=ids):
            if end.error is not None:
                return f"end {','.join(ids)} error {end.error.kind} {end.error.code} {end.error.message}"
            return f"end {','.join(ids)} {end.stop_reason}"
        case _:
            return type(event).__name__


def _content(content: Any) -> str:
    return "" if content is UNSET or not content else " " + " ".join(_piece(piece) for piece in content)


def _piece(piece: Any) -> str:
    match piece:
        case v1.Diff():
            return f"diff({piece.path}: {piece.old_text!r} -> {piece.new_text!r})"
        case v1.TerminalItem():
            return f"terminal({piece.terminal_id})"
        case _:
            return _block(piece.content)


def _block(block: Any) -> str:
    match block:
        case v1.TextBlock():
            return repr(block.text)
        case v1.ImageBlock():
            return f"image({block.mime_type} {block.data})"
        case v1.ResourceLink():
            return f"link({block.name} {block.uri})"
        case _:
            return type(block).__name__


def _empty(type: str) -> dict[str, Any]:
    """What is written of an item that has nothing to say yet."""
    known: dict[str, dict[str, Any]] = {
        "agentMessage": {"text": "", "phase": None, "memoryCitation": None, "delivery": None, "questions": None},
        "reasoning": {"summary": [], "content": []},
        "userMessage": {"clientId": None, "content": []},
        "commandExecution": {
            "pluginId": None, "scriptPath": None, "cwd": CWD, "processId": None, "source": "agent", "aggregatedOutput": None,
            "exitCode": None, "durationMs": None,
        },
        "mcpToolCall": {
            "server": "echo", "tool": "say", "status": "inProgress", "arguments": {"text": "hey"}, "appContext": None,
            "result": None, "error": None, "durationMs": None, "readOnlyHint": None,
        },
    }  # fmt: skip
    return known.get(type, {})
