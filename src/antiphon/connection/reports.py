"""Reports to an observer besides messages: everything that would otherwise pass in silence."""

import logging
from collections.abc import Callable
from typing import Final

import msgspec

from antiphon.rpc.envelope import Noise, Notification
from antiphon.rpc.peer import Rejected, Stray

__all__ = [
    "REPORTS_LOGGED",
    "HandlerFailed",
    "LenientlyRead",
    "Observer",
    "Report",
    "ReportLog",
    "TranslationLoss",
    "Unhandled",
]

_log = logging.getLogger(__name__)

REPORTS_LOGGED: Final = 50
"""Reports of one kind that a `ReportLog` writes in full."""

LINE_LIMIT: Final = 2000
"""Characters of one entry: a line of an agent's output may be megabytes."""


class LenientlyRead(msgspec.Struct, frozen=True):
    """A message was understood only by a dialect or by salvage; `rules` names the rules."""

    method: str
    rules: tuple[str, ...]


class Unhandled(msgspec.Struct, frozen=True):
    """A notification without a handler here, or with params that make no sense."""

    notification: Notification
    reason: str


class HandlerFailed(msgspec.Struct, frozen=True):
    """A handler of ours raised something other than `RequestError`. The peer learned that it failed, not why."""

    method: str
    error: Exception


class TranslationLoss(msgspec.Struct, frozen=True):
    """Something has no place in the version of the protocol that the peer speaks: it was refused, or carried in another form."""

    what: str
    reason: str
    refused: bool = False


Report = Noise | Stray | Rejected | LenientlyRead | Unhandled | HandlerFailed | TranslationLoss
Observer = Callable[[Report], None]


class ReportLog:
    """An observer that logs reports: of each kind the first ones, then their number.

    An entry costs a tenth of a millisecond: an agent that writes a hundred thousand lines to stdout would hold everything up.
    """

    def __init__(self) -> None:
        self._seen: dict[type, int] = {}

    def __call__(self, report: Report) -> None:
        """Log a report, unless there were many of its kind."""
        kind = type(report)
        count = self._seen[kind] = self._seen.get(kind, 0) + 1
        if count <= REPORTS_LOGGED:
            _log.info("%s", f"{report!r}"[:LINE_LIMIT])
        elif str(count).rstrip("0") == "1":  # each time the number has one digit more
            _log.info("%d reports of the kind %s so far; the next ones are counted only", count, kind.__name__)
