"""What a connection tells an observer besides messages: everything that would otherwise pass in silence."""

from collections.abc import Callable

import msgspec

from antiphon.rpc.envelope import Noise, Notification
from antiphon.rpc.peer import Rejected, Stray

__all__ = ["HandlerFailed", "Mended", "Observer", "Report", "Unheard"]


class Mended(msgspec.Struct, frozen=True):
    """A message was understood only by a dialect or by salvage; `rules` says how."""

    method: str
    rules: tuple[str, ...]


class Unheard(msgspec.Struct, frozen=True):
    """A notification that nobody here handles, or whose params make no sense."""

    notification: Notification
    reason: str


class HandlerFailed(msgspec.Struct, frozen=True):
    """A handler of ours raised something other than `RequestError`. The peer learned that it failed, not why."""

    method: str
    error: Exception


Report = Noise | Stray | Rejected | Mended | Unheard | HandlerFailed
Observer = Callable[[Report], None]
