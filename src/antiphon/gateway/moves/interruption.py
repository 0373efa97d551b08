"""What a session needs whose process ended without an end: the turn that ran is recorded as interrupted, requests that waited as over."""

from typing import NamedTuple

import msgspec

from antiphon.errors import Code
from antiphon.gateway.base import GatewaySession, HubJournal
from antiphon.gateway.events import ANSWER, END, REQUEST, TURN, EventHeader, parse_event, stored_event
from antiphon.gateway.settings import HubSettings
from antiphon.journal.base import PAGE
from antiphon.rpc.envelope import ErrorObject, error_frame

__all__ = ["Interruption", "find_interruption", "interrupted_frame"]


class Interruption(NamedTuple):
    """The events that a session lacks, and its row with them."""

    events: list[bytes]
    row: GatewaySession
    was_running: bool
    """Whether a turn ran."""


async def find_interruption(
    journal: HubJournal, row: GatewaySession, why: str, *, has_all: bool = True
) -> Interruption:
    """Find what went on in a session when its process ended. Nothing is stored here.

    `has_all`: the row says whether a turn runs. Without it the last turn is looked at all the same: a row may be older than the events.

    Raises:
        AcpError: the journal cannot be read.
    """
    waiting: dict[str, str] = {}
    begun: EventHeader | None = None
    settings = HubSettings(row.state)
    asked = settings.asked_after
    begins = [row.turn_after] if row.turn or not has_all else []
    after = min([*begins, *([asked] if asked >= 0 else [])], default=row.turn_after)
    settings.asked_after = -1
    while page := await journal.read(row.key, after, PAGE):
        after = page[-1].number
        for entry in page:
            event = parse_event(entry.data)
            if event.kind == REQUEST:
                waiting[event.header.request] = event.header.method
            elif event.kind == ANSWER:
                waiting.pop(event.header.request, None)
            elif event.kind == TURN and (event.header.turn == row.turn or not has_all):
                begun = event.header
            elif event.kind == END and begun is not None and event.header.turn == begun.turn:
                begun = None
    events = [stored_event(ANSWER, EventHeader(request=id, method=method)) for id, method in waiting.items()]
    if begun is not None:
        header = msgspec.structs.replace(begun, interrupted=True)
        events.append(stored_event(END, header, interrupted_frame(why)))
    ended = msgspec.structs.replace(row, turn="", state=settings.stored(), failed=row.failed or begun is not None)
    return Interruption(events, ended, begun is not None)


def interrupted_frame(why: str) -> bytes:
    """Return the response to a prompt whose turn was interrupted. Its id is set for each client."""
    error = ErrorObject(
        Code.INTERNAL_ERROR,
        f"The turn was interrupted: {why}. It was not sent again.",
        {
            "hint": "look at what it did, then send another prompt",
            "recoverable": False,
            "action": "send another prompt",
            "antiphon": {"interrupted": True},
        },
    )
    return error_frame(0, error)
