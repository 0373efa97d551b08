"""The threads that Codex has stored, also those that were started in a terminal: list, delete, and the turns of one."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from antiphon.engines.codex import wire
from antiphon.engines.codex.server import client_errors, refusal_of
from antiphon.engines.labels import title_of
from antiphon.engines.process import CliRefused
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from antiphon.engines.codex.hub import CodexHub
    from antiphon.engines.codex.server import CodexServer

__all__ = ["PAGE", "TURNS_PAGE", "delete_thread", "list_threads", "prompts_of", "turns_of"]

PAGE: Final = 50
"""Threads in one page."""

SOURCES: Final = ("cli", "vscode", "exec", "appServer")
"""Sources of threads that users began. Those of sub-agents are left out."""


async def list_threads(hub: "CodexHub", query: v1.ListSessions) -> v1.ListSessionsResult:
    """Return a page of threads, the last used first.

    Raises:
        RequestError: the server refuses, or ends.
    """
    params = {
        "limit": PAGE,
        "cursor": query.cursor,
        "cwd": query.cwd,
        "sortKey": "updated_at",
        "sourceKinds": SOURCES,
    }
    with client_errors():
        server = await hub.ready()
        try:
            page = await server.call("thread/list", params, wire.ThreadPage)
        except CliRefused as error:
            if query.cursor is None:
                raise
            wrong = f"{error.message}: begin again without a cursor"
            raise RequestError(Code.INVALID_PARAMS, "Invalid params", wrong) from error
    return v1.ListSessionsResult(
        [_info(thread, hub.ids.session_id(thread.id)) for thread in page.data], page.next_cursor
    )


async def delete_thread(hub: "CodexHub", session_id: str) -> None:
    """Delete a thread. One that does not exist is not an error.

    Raises:
        RequestError: the server refuses, or ends.
    """
    with client_errors():
        server = await hub.ready()
        try:
            await server.request("thread/delete", {"threadId": hub.ids.own_id(session_id)})
        except CliRefused as error:
            if refusal_of(error).code != Code.RESOURCE_NOT_FOUND:
                raise


def _info(thread: wire.Thread, session_id: str) -> v1.SessionInfo:
    return v1.SessionInfo(
        session_id,
        thread.cwd or "/",
        title=title_of(thread.name or thread.preview),
        updated_at=_time(thread.updated_at or thread.created_at),
    )


def _time(at: float | None) -> str | None:
    try:
        return datetime.fromtimestamp(at, UTC).isoformat() if at is not None else None
    except (OverflowError, ValueError, OSError):  # not a time that a calendar has
        return None


TURNS_PAGE: Final = 50
"""Turns in one page: a turn may hold megabytes of output."""


async def turns_of(server: "CodexServer", thread: str) -> "AsyncIterator[list[wire.CodexTurn]]":
    """Yield pages of the turns of a thread, oldest first, with all items. An older server has no pages and gives all at once."""
    cursor: str | None = None
    known: set[str] = set()
    while True:
        params = {
            "threadId": thread,
            "cursor": cursor,
            "limit": TURNS_PAGE,
            "sortDirection": "asc",
            "itemsView": "full",
        }
        try:
            page = await server.call("thread/turns/list", params, wire.TurnPage)
        except CliRefused:
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


async def prompts_of(server: "CodexServer", thread: str) -> list[tuple[str, str]]:
    """Return the turns of a thread in order, each with its id and the text of its prompt."""
    found: list[tuple[str, str]] = []
    async for page in turns_of(server, thread):
        for turn in page:
            prompts = [item for item in turn.items if isinstance(item, wire.UserMessage)]
            texts = [part.text for part in prompts[0].content if isinstance(part, wire.TextInput)] if prompts else []
            found.append((turn.id, "".join(texts)))
    return found
