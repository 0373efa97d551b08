"""The history of a session in pieces: where its last events begin, and older ones for a client that scrolls back."""

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from antiphon.gateway.events import TURN, history_frame, merged
from antiphon.journal.base import PAGE, JournalEntry

if TYPE_CHECKING:
    from antiphon.gateway.client import RemoteClient
    from antiphon.gateway.session import HubSession

__all__ = ["begin_of_last", "events_before", "read_events"]

MOST: Final = 1000
"""Events that a client may ask for at once. It may get twice as many, from the beginning of a turn on."""

MOST_BYTES: Final = 4 * 1024 * 1024
"""Bytes of events in one answer. Of larger ones it has the last one alone."""


async def events_before(session: "HubSession", before: int, limit: int) -> list[JournalEntry]:
    """Return about `limit` events before a number, oldest first: from the beginning of a turn, if one begins among as many again.

    Events that are too large together are left out from the beginning.
    """
    limit = min(max(limit, 1), MOST)
    after, cut = max(0, before - 1 - 2 * limit), max(0, before - 1 - limit)
    found: list[JournalEntry] = []
    size = 0
    while after < before - 1:
        page = await session.hub.journal.read(session.key, after, min(PAGE, before - 1 - after))
        if not page:
            break
        after = page[-1].number
        found += page
        size += sum(len(each.data) for each in page)
        begin = 0
        while size > MOST_BYTES and begin < len(found) - 1:
            size -= len(found[begin].data)
            begin += 1
        found = found[begin:]
    begun = [each.number for each in found if each.number <= cut + 1 and each.data[:1] == TURN]
    first = begun[-1] if begun else cut + 1
    return [each for each in found if each.number >= first]


async def begin_of_last(session: "HubSession", count: int) -> int:
    """Return the number after which about the last `count` events of a session come."""
    found = await events_before(session, session.last + 1, count)
    return found[0].number - 1 if found else session.last


class _ReadParams(msgspec.Struct):
    before: int
    limit: int = 200


async def read_events(client: "RemoteClient", session: "HubSession", params: Raw) -> object:
    """Return events before a number, as a client gets them that catches up, with the number after which they come."""
    given = msgspec.json.decode(params, type=_ReadParams)
    found = await events_before(session, min(given.before, session.last + 1), given.limit)
    frames = [frame for entry in merged(found) if (frame := history_frame(session.id, entry)) is not None]
    return {"events": [Raw(frame) for frame in frames], "after": found[0].number - 1 if found else 0}
