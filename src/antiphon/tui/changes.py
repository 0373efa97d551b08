"""What a session changed, as its agent told it. Pure: reads a transcript, looks at no file."""

from dataclasses import dataclass

from antiphon.protocol import v1
from antiphon.transcript.entries import CallEntry
from antiphon.transcript.transcript import Transcript

__all__ = ["ChangedFile", "changes_of"]


@dataclass(slots=True)
class ChangedFile:
    """One file, or one part of it."""

    path: str
    old: str | None
    new: str


def changes_of(transcript: Transcript) -> list[ChangedFile]:
    """Every change that was made, file by file. One that goes on where another ended is the same change.

    Some agents tell whole files and some only the lines they changed; so changes that do not fit together stay apart.
    """
    by_path: dict[str, list[ChangedFile]] = {}
    for entry in transcript.entries:
        if not isinstance(entry, CallEntry) or entry.status.meaning != v1.ToolStatus.COMPLETED:
            continue
        for item in entry.content:
            if isinstance(item, v1.Diff):
                known = by_path.setdefault(item.path, [])
                if known and known[-1].new == item.old_text:
                    known[-1].new = item.new_text
                elif not known or known[-1].new != item.new_text or known[-1].old != item.old_text:
                    known.append(ChangedFile(item.path, item.old_text, item.new_text))
    return [change for changes in by_path.values() for change in changes if change.old != change.new]
