"""The turns that Codex has kept of a thread, page by page; from an older server, which has no pages, all at once."""

from typing import TYPE_CHECKING, Final

from antiphon.engines.codex import wire
from antiphon.engines.codex.server import ServerRefused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from antiphon.engines.codex.server import Server

__all__ = ["PAGE", "turns_of"]

PAGE: Final = 50
"""Turns in one page: a turn may hold megabytes of output."""


async def turns_of(server: "Server", thread: str) -> "AsyncIterator[list[wire.Turn]]":
    """Oldest first, with everything that is known of each."""
    cursor: str | None = None
    known: set[str] = set()
    while True:
        params = {"threadId": thread, "cursor": cursor, "limit": PAGE, "sortDirection": "asc", "itemsView": "full"}
        try:
            page = await server.call("thread/turns/list", params, wire.TurnPage)
        except ServerRefused:
            if cursor is not None:
                raise
            read = await server.call("thread/read", {"threadId": thread, "includeTurns": True}, wire.ThreadOpened)
            yield read.thread.turns
            return
        yield page.data
        cursor = page.next_cursor
        if not cursor or not page.data or cursor in known:
            return
        known.add(cursor)
