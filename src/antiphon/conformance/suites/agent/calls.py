"""The tool calls of a turn, each put together from all that was said of it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from antiphon.conformance.stage import Stage
from antiphon.traffic.entries import Entry
from antiphon.traffic.values import as_object, as_text, objects_in

__all__ = ["Call", "calls", "writes"]


@dataclass
class Call:
    """One of them: its kind and status as they were told last."""

    kind: str | None = None
    status: str | None = None
    entries: list[Entry] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    """The paths of the changes that it shows."""

    def take(self, told: dict[str, Any], entry: Entry) -> None:
        """Take note of something that is said of it."""
        self.kind = as_text(told.get("kind")) or self.kind
        self.status = as_text(told.get("status")) or self.status
        self.entries.append(entry)
        shown = [one for one in objects_in(told.get("content")) if one.get("type") == "diff"]
        self.changed += [str(one.get("path")) for one in shown]

    def names(self, text: str) -> bool:
        """Whether a text is anywhere in what was said of it."""
        return any(text.encode() in one.raw for one in self.entries)


def calls(stage: Stage, session: str, *, after: int, before: int | None = None) -> dict[str, Call]:
    """The calls of a session, as they stood between two lines of the trace."""
    found: dict[str, Call] = {}
    for entry in stage.wire.heard:
        if entry.number > after and (before is None or entry.number < before):
            told = _told(entry) if entry.params.get("sessionId") == session else {}
            if (id := as_text(told.get("toolCallId"))) is not None:
                found.setdefault(id, Call()).take(told, entry)
    return found


def _told(entry: Entry) -> dict[str, Any]:
    if entry.method == "session/request_permission":
        return as_object(entry.params.get("toolCall"))
    return as_object(entry.params.get("update")) if entry.method == "session/update" else {}


def writes(found: Iterable[Call], file: Path, text: str) -> list[Call]:
    """Those that say they write a text into a file: they show the change, or are an edit of that file, or name file and text. One that
    reads or runs something may name a file as well."""
    return [one for one in found if _writes(one, file, text)]


def _writes(call: Call, file: Path, text: str) -> bool:
    if any(Path(path).name == file.name for path in call.changed):
        return True
    if call.kind == "edit":
        return call.names(file.name)
    return call.kind in (None, "other") and call.names(file.name) and call.names(text)
