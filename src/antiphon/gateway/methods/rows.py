"""Rows: the sessions of all agents as a list shows them, and as they change while a client follows the list.

A client that follows it is sent the row of a session when that changes, at most a few times a second. For a client that does not read as
fast nothing is kept but the names of the sessions that changed: it is sent their rows as they are when it has read the rest.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import msgspec

from antiphon.errors import AcpError, Code, RequestError
from antiphon.gateway.base import AccessRole, GatewaySession, ListedRow, LiveSession, Principal, SessionQuery
from antiphon.gateway.events import notification
from antiphon.rpc.envelope import BAD_INPUT
from antiphon.transports.base import OUTPUT_HIGH

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import Raw

    from antiphon.gateway.clients.connection import GatewayConnection
    from antiphon.gateway.methods.base import GatewayHub

    Client = GatewayConnection[Any]

__all__ = ["RowFeed", "follow_sessions", "list_sessions", "row_of", "words_of"]

CHANGED: Final = "_antiphon/sessions/changed"
REMOVED: Final = "_antiphon/sessions/removed"

PAUSE: Final = 0.1
"""Seconds for which changes are gathered before they are sent."""

MOST: Final = 500
"""Rows of one page of the list."""

MAX_WORDS: Final = 8
"""Words of a query that count, each of at most `MAX_WORD` characters."""
MAX_WORD: Final = 100


def words_of(query: str) -> tuple[str, ...]:
    """Return the words of a query of a person."""
    return tuple(word[:MAX_WORD] for word in query[: MAX_WORDS * (MAX_WORD + 1)].split()[:MAX_WORDS])


def row_of(row: GatewaySession, number: int, session: LiveSession | None, principal: Principal) -> dict[str, object]:
    """Return a session as a list shows it to a principal; `session` is the one in memory, if it is there."""
    waiting = 0 if session is None else session.waiting
    is_running = session is not None and session.is_running
    state = "waiting" if waiting else "running" if is_running else "failed" if row.failed else "idle"
    is_own = principal.may(AccessRole.DRIVE) and row.owner == principal.name
    return {
        "agent": row.agent,
        "sessionId": row.session_id,
        "cwd": row.cwd,
        "title": row.title,
        "created": row.created,
        "updated": row.updated or row.created,
        "state": state,
        "waiting": waiting,
        "number": number if session is None else session.last,
        "owner": row.owner,
        "mayDelete": is_own or principal.may(AccessRole.ADMIN),
        "text": row.text,
    }


# The list.


class _ListParams(msgspec.Struct):
    query: str = ""
    limit: int = 100
    cursor: str | None = None


async def list_sessions(client: "Client", params: "Raw") -> object:
    """Return a page of the sessions that a client may see, those used last first."""
    hub, principal = client.hub, client.principal
    given = msgspec.json.decode(params, type=_ListParams)
    limit = min(max(given.limit, 1), MOST)
    before = None if given.cursor is None else _place(given.cursor)
    agents = tuple(hub.agents)
    query = SessionQuery(agents, principal.sessions, words_of(given.query), before, limit + 1)
    found = await hub.rows.listed(query)
    result: dict[str, object] = {"sessions": [_live(hub, each, principal) for each in found[:limit]]}
    if len(found) > limit:
        result["nextCursor"] = msgspec.json.encode(found[limit - 1].place).decode()
    return result


def _place(cursor: str) -> tuple[float, int]:
    try:
        return msgspec.json.decode(cursor, type=tuple[float, int])
    except BAD_INPUT as error:
        raise RequestError(Code.INVALID_PARAMS, "this cursor is not one of this gateway") from error


def _live(hub: "GatewayHub", listed: ListedRow, principal: Principal) -> dict[str, object]:
    session = hub.feed.live(listed.row)
    if session is None:
        return row_of(listed.row, listed.number, None, principal)
    return row_of(session.row, session.last, session, principal)


async def follow_sessions(client: "Client", params: "Raw") -> object:
    """Send a client from now on what changes in the list of sessions."""
    client.hub.feed.follow(client)
    return {}


class _Listed(Protocol):
    """A session as a hub has it in memory."""

    @property
    def key(self) -> str: ...

    @property
    def is_hidden(self) -> bool: ...


Session = TypeVar("Session", bound=_Listed)


class RowFeed(Generic[Session]):
    """The clients that follow the list of sessions, and what changed since they were last sent something."""

    def __init__(
        self,
        hub: "GatewayHub",
        find: "Callable[[GatewaySession], Session | None]",
        view: "Callable[[Session], LiveSession]",
    ) -> None:
        """`find` returns the session of a row if it is in memory, `view` what a list shows of one."""
        self._find = find
        self._view = view
        self._hub = hub
        self._followers: dict[Client, dict[str, tuple[str, str]]] = {}
        """Each client with the sessions that changed while it did not read: their keys, agents and ids."""
        self._changed: dict[str, Session] = {}
        self._removed: dict[str, tuple[str, str]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.observer: Callable[[Session], None] | None = None
        """Called with each session that changes."""

    @property
    def is_followed(self) -> bool:
        """Whether a client follows the list."""
        return bool(self._followers)

    def follow(self, client: "Client") -> None:
        """Send a client from now on what changes."""
        if not client.closed.is_set():
            self._followers.setdefault(client, {})

    def left(self, client: "Client") -> None:
        """Send a client nothing any more."""
        self._followers.pop(client, None)

    def live(self, row: GatewaySession) -> LiveSession | None:
        """Return the session of a row as it is now, if it is in memory."""
        session = self._find(row)
        return None if session is None else self._view(session)

    def changed(self, session: Session) -> None:
        """Note that the row of a session is another one now."""
        if self.observer is not None:
            self.observer(session)
        if self._followers and session.key and not session.is_hidden:  # one that is being stored has none yet
            self._changed[session.key] = session
            self._send_soon()

    def removed(self, key: str, agent: str, session_id: str) -> None:
        """Note that a session was deleted."""
        self._changed.pop(key, None)
        if self._followers:
            self._removed[key] = agent, session_id
            self._send_soon()

    def close(self) -> None:
        """Send nothing any more."""
        self._followers.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _send_soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PAUSE, self._send)

    def _send(self) -> None:
        self._timer = None
        changed, self._changed = {key: self._view(each) for key, each in self._changed.items()}, {}
        removed, self._removed = self._removed, {}
        for client, missed in (*self._followers.items(),):
            may_see = client.principal.may
            names = {key: (each.row.agent, each.row.session_id) for key, each in changed.items()} | removed
            seen = {key: name for key, name in names.items() if may_see(AccessRole.WATCH, key)}
            if missed or not _has_room(client):
                self._keep(client, missed, seen)
                continue
            for key, (agent, session_id) in seen.items():
                if key in removed:
                    client.put(notification(REMOVED, {"agent": agent, "sessionId": session_id}))
                else:
                    session = changed[key]
                    self._show(client, row_of(session.row, session.last, session, client.principal))

    def _show(self, client: "Client", row: dict[str, object]) -> None:
        client.put(notification(CHANGED, {"session": row}))

    # A client that does not read.

    def _keep(self, client: "Client", missed: dict[str, tuple[str, str]], seen: dict[str, tuple[str, str]]) -> None:
        """Keep the names of what changed until the client has read what waits for it."""
        is_first = not missed
        missed.update(seen)
        if is_first and missed:
            self._hub.run(self._catch_up(client, missed))

    async def _catch_up(self, client: "Client", missed: dict[str, tuple[str, str]]) -> None:
        while missed and client in self._followers:
            await client.room()
            if client.closed.is_set():
                return
            key = next(iter(missed))
            with suppress(AcpError):  # the store cannot be read now, and others report that
                await self._show_stored(client, key, *missed.pop(key))

    async def _show_stored(self, client: "Client", key: str, agent: str, session_id: str) -> None:
        query = SessionQuery((agent,), frozenset({key}), limit=1)
        found = await self._hub.rows.listed(query)
        if found:
            self._show(client, _live(self._hub, found[0], client.principal))
        else:
            client.put(notification(REMOVED, {"agent": agent, "sessionId": session_id}))


def _has_room(client: "Client") -> bool:
    return client.transport.unsent < OUTPUT_HIGH
