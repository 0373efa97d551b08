"""What came of a run: the last message, the files that changed, what was denied, and the exit status that says so."""

import os
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from antiphon.client.files import Files
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Iterable

    from antiphon.client.transcript import Transcript
    from antiphon.local.files import Roots

__all__ = [
    "DENIED", "ENDED", "FAILED", "LIMITED", "MISUSED", "REFUSED", "TIMED_OUT", "Answer", "NotedFiles", "changed_files",
    "status_of",
]  # fmt: skip

ENDED: Final = 0
FAILED: Final = 1
MISUSED: Final = 2
REFUSED: Final = 3
LIMITED: Final = 4
DENIED: Final = 5
TIMED_OUT: Final = 124
CANCELLED: Final = 130

_STATUSES: Final = {
    v1.StopReason.END_TURN: ENDED,
    v1.StopReason.MAX_TOKENS: LIMITED,
    v1.StopReason.MAX_TURN_REQUESTS: LIMITED,
    v1.StopReason.REFUSAL: REFUSED,
    v1.StopReason.CANCELLED: CANCELLED,
}

How: TypeAlias = Literal["created", "edited", "deleted", "moved"]
"""What happened to a file."""

_CHANGING: "Final[dict[v1.ToolKind, How]]" = {
    v1.ToolKind.EDIT: "edited",
    v1.ToolKind.DELETE: "deleted",
    v1.ToolKind.MOVE: "moved",
}


def status_of(stop_reason: v1.StopReason, denied: bool) -> int:
    """The exit status of a turn that ended by itself. Something denied unasked says more than any other end but a cancelled one."""
    status = _STATUSES[stop_reason.meaning]
    return DENIED if denied and status != CANCELLED else status


class Answer:
    """The agent's messages of a turn, kept apart."""

    def __init__(self) -> None:
        self._messages: list[list[str]] = []
        self._id: str | None = None
        self._open = False

    def hear(self, update: v1.Update) -> None:
        """Take an update. Whatever is not a piece of the message ends it, but for news that belong to nothing said."""
        match update:
            case v1.AgentMessageChunk(content=content, message_id=id):
                if not self._open or (id is not None and id != self._id):
                    self._messages.append([])
                self._open, self._id = True, id
                if isinstance(content, v1.TextBlock):
                    self._messages[-1].append(content.text)
            case v1.ToolCall() | v1.AgentThoughtChunk() | v1.UserMessageChunk():
                self._open = False
            case _:
                pass

    @property
    def last(self) -> str:
        """The last message that says anything."""
        texts = ("".join(pieces) for pieces in reversed(self._messages))
        return next((text for text in texts if text.strip()), "")


class NotedFiles(Files):
    """Files that remember which of them the agent has written through us."""

    def __init__(self) -> None:
        super().__init__(write=True)
        self.written: dict[str, How] = {}

    async def write(self, roots: "Roots | Iterable[str]", request: v1.WriteTextFile) -> v1.WriteTextFileResult:
        there = os.path.lexists(request.path)  # noqa: ASYNC240 - one look, and the write itself goes to a thread
        result = await super().write(roots, request)
        self.written.setdefault(request.path, "edited" if there else "created")
        return result


def changed_files(transcript: "Transcript", begin: int, written: "dict[str, How]") -> dict[str, How]:
    """Path → what happened to it: what was written through us, and what the calls of this turn say that they did.

    What a command changes nobody tells us.
    """
    from antiphon.client.transcript_entries import CallEntry

    changed = dict(written)
    for entry in transcript.entries[begin:]:
        if not isinstance(entry, CallEntry) or entry.status != v1.ToolStatus.COMPLETED:
            continue
        diffs = [item for item in entry.content if isinstance(item, v1.Diff)]
        for diff in diffs:
            changed.setdefault(diff.path, "created" if diff.old_text is None else "edited")
        how = _CHANGING.get(entry.kind.meaning)
        if how is not None and not diffs:
            for place in entry.locations:
                changed.setdefault(place.path, how)
        elif how == "deleted":
            changed.update({diff.path: how for diff in diffs})
    return changed
