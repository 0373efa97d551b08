"""A session as one JSON object, in the shape that docs/sessions.md promises."""

from typing import Final

import msgspec

from antiphon.export.session import ExportedLine, ExportedSession, text_of
from antiphon.protocol.base import encode
from antiphon.transcript.transcript import CallEntry, CompactionEntry, Entry, Message, NoticeEntry

__all__ = ["FORMAT", "VERSION", "document"]

FORMAT: Final = "antiphon.session"
VERSION: Final = 1
"""The version of the format. It changes when readers of the earlier one would be wrong."""


def document(session: ExportedSession, *, indent: int = 2) -> bytes:
    """Return the session as one object, indented for a file that people look at, too; with an indent of -1 it is one line."""
    whole = {
        "format": FORMAT,
        "version": VERSION,
        "session": session.about,
        "entries": [_entry(line) for line in session.lines],
        "plan": session.plan,
    }
    return msgspec.json.format(encode(whole), indent=indent) + b"\n"


def _entry(line: ExportedLine) -> dict[str, object]:
    entry = line.entry
    common = {"engine": line.engine or None, "at": line.when.isoformat(timespec="milliseconds").replace("+00:00", "Z")}
    return {"type": _type(entry), **common, **_facts(line)}


def _type(entry: Entry) -> str:
    match entry:
        case Message():
            return "message"
        case CallEntry():
            return "call"
        case NoticeEntry():
            return "notice"
        case CompactionEntry():
            return "compaction"
        case _:
            return "thought"


def _facts(line: ExportedLine) -> dict[str, object]:
    entry = line.entry
    match entry:
        case Message():
            return {
                "speaker": entry.speaker,
                "by": line.by or None,
                "text": text_of(line),
                "content": entry.blocks,
            }
        case CallEntry():
            raw = {"rawInput": entry.raw_input, "rawOutput": entry.raw_output}
            return {
                "id": entry.id,
                "title": text_of(line),
                "kind": entry.kind,
                "status": entry.status,
                "denied": entry.denied,
                "content": entry.content,
                "locations": entry.locations,
                **{name: None if value is msgspec.UNSET else value for name, value in raw.items()},
            }
        case NoticeEntry():
            return {"severity": entry.severity, "title": entry.title, "description": entry.description}
        case CompactionEntry():
            return {"status": entry.status, "error": entry.error, "text": entry.text}
        case _:
            return {"text": text_of(line)}
