"""What engines tell a session besides ACP's own updates. Values only; how a turn ended is one of them."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import TypeAlias

import msgspec

from antiphon.errors import Advice, RequestError
from antiphon.protocol import v1

__all__ = [
    "Common", "End", "EndError", "Mirror", "ModeChanged", "ModelChanged", "Notice", "SignInNeeded", "Titled", "TurnEnded",
]  # fmt: skip


class _News(msgspec.Struct, frozen=True):
    """Base of what is told to the session and not, as it stands, to the client."""


class Notice(_News, frozen=True):
    """Something the user should know that belongs to no message."""

    title: str
    description: str | None = None
    severity: v1.NoticeSeverity = v1.NoticeSeverity.INFO


class ModeChanged(_News, frozen=True):
    """The mode is another one now."""

    mode: str


class ModelChanged(_News, frozen=True):
    """Another model answers from now on."""

    model: str


class Titled(_News, frozen=True):
    """The session has a name."""

    title: str


class Mirror(_News, frozen=True):
    """A command that ran and what it printed, for a terminal that only shows it."""

    call_id: str
    command: str
    output: str
    exit_code: int | None = None


class SignInNeeded(_News, frozen=True):
    """Nobody is signed in."""

    text: str


class EndError(msgspec.Struct, frozen=True):
    """What kept a turn from its end, by kind, and what to do about it."""

    kind: str
    code: int
    message: str
    hint: str = ""
    status: int | None = None
    """The HTTP status behind it."""
    resets_at: float | None = None
    """When a limit is lifted, in seconds since 1970."""

    def __str__(self) -> str:
        return str(Advice(self.message, self.hint))

    def refusal(self) -> RequestError:
        """The same as the answer to a prompt."""
        data: dict[str, object] = {"kind": self.kind}
        if self.hint:
            data["hint"] = self.hint
        if self.status is not None:
            data["status"] = self.status
        if self.resets_at is not None:
            with suppress(ValueError, OverflowError, OSError):  # no moment that anybody could wait for
                data["resetsAt"] = datetime.fromtimestamp(self.resets_at, UTC).isoformat(timespec="seconds")
        return RequestError(self.code, self.message, data)


class End(msgspec.Struct, frozen=True):
    """How a turn ended: for a reason that the protocol has a word for, or with an error."""

    stop_reason: v1.StopReason | None = None
    error: EndError | None = None
    usage: v1.Usage | None = None
    cost: v1.Cost | None = None


class TurnEnded(_News, frozen=True):
    """A turn is over: the one of these prompts, or one that the program had started by itself."""

    end: End
    ids: tuple[str, ...] = ()
    by_itself: bool = False


Common: TypeAlias = Notice | ModeChanged | ModelChanged | Titled | Mirror | SignInNeeded | TurnEnded
"""What all engines tell."""
