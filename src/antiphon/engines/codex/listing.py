"""Codex's own list of its threads, also of those that were started in a terminal."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from antiphon.engines.codex import wire
from antiphon.engines.codex.refusing import refused
from antiphon.engines.codex.server import ServerRefused
from antiphon.engines.titles import title_of
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.engines.codex.server import Server

__all__ = ["PAGE", "delete_thread", "list_threads"]

PAGE: Final = 50
"""Threads in one page."""

SOURCES: Final = ("cli", "vscode", "exec", "appServer")
"""Where threads of people come from; those of sub-agents are part of theirs."""


async def list_threads(server: "Server", query: v1.ListSessions) -> v1.ListSessionsResult:
    """A page of threads, the last used first."""
    params = {
        "limit": PAGE,
        "cursor": query.cursor,
        "cwd": query.cwd,
        "sortKey": "updated_at",
        "sourceKinds": SOURCES,
    }
    try:
        page = await server.call("thread/list", params, wire.ThreadPage)
    except ServerRefused as error:
        if query.cursor is not None:
            wrong = f"{error.message}: begin again without a cursor"
            raise RequestError(Code.INVALID_PARAMS, "Invalid params", wrong) from error
        raise refused(error) from error
    return v1.ListSessionsResult([_info(thread) for thread in page.data], page.next_cursor)


async def delete_thread(server: "Server", thread_id: str) -> None:
    """Forget a thread for good. One that does not exist is no error."""
    try:
        await server.request("thread/delete", {"threadId": thread_id})
    except ServerRefused as error:
        refusal = refused(error)
        if refusal.code != Code.RESOURCE_NOT_FOUND:
            raise refusal from error


def _info(thread: wire.Thread) -> v1.SessionInfo:
    at = thread.updated_at or thread.created_at
    return v1.SessionInfo(
        thread.id,
        thread.cwd or "/",
        title=title_of(thread.name or thread.preview),
        updated_at=datetime.fromtimestamp(at, UTC).isoformat() if at is not None else None,
    )
