"""What was found out about a requirement, with the messages that prove it."""

from dataclasses import dataclass
from enum import StrEnum

from antiphon.traffic.entries import Entry

__all__ = ["Blocked", "NoAnswer", "NotOffered", "Status", "TooLong", "Unseen", "Verdict"]


class Status(StrEnum):
    """`noted`: advice that is not followed. `skipped`: not offered, so not asked for. `unseen`: it never came to it. `blocked`: something
    before it went wrong."""

    PASSED = "passed"
    FAILED = "failed"
    NOTED = "noted"
    SKIPPED = "skipped"
    UNSEEN = "unseen"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One requirement's. `text` says what was wrong, or why it could not be shown."""

    status: Status
    text: str = ""
    evidence: tuple[Entry, ...] = ()
    awaited: Entry | None = None
    """The question whose answer had not come when this was found: if it comes later, this was not found but too early."""
    fix: str = ""
    """What to change, where it is something else than the requirement says."""


class Stopped(Exception):
    """A scenario cannot go on: what it has not shown yet gets `status`, with this reason."""

    status = Status.BLOCKED


class NotOffered(Stopped):
    """The peer does not say that it can do this."""

    status = Status.SKIPPED


class Unseen(Stopped):
    """The peer did not do what would have shown it, and need not."""

    status = Status.UNSEEN


class Blocked(Stopped):
    """Something that another requirement is about went wrong first."""


class TooLong(Blocked):
    """A turn took longer than we wait, which it may: the protocol has no limit for one."""


class NoAnswer(Blocked):
    """A question of ours was not answered in time, or the peer left before it did (`left`). `asked` is the question."""

    def __init__(self, asked: Entry, reason: str, *, left: bool = False) -> None:
        super().__init__(f"`{asked.method}` was not answered: {reason}")
        self.asked = asked
        self.reason = reason
        self.left = left
