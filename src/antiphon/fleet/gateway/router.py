"""One client of a gateway in a fleet: a link for each of its sessions, and one for what is about none.

Rules:

1. A message about a session goes to the link of that session, which is made when it is first needed and finds the worker itself. What is
   sent while it looks for one waits there, in order. A new session has a link from the beginning; so has a fork, at the worker of its source.
2. The worker checks everything with the principal of this client, as the hub of one machine does. Here is checked what is answered here.
3. What waits for workers is bounded for each client, in requests and in bytes. More is refused.
4. A client that does not read stops the links. A worker that does not read stops the client.
5. A client that leaves ends its links; its prompts go on at the workers.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from antiphon.errors import Code, ConnectionClosed, RequestError, fresh
from antiphon.fleet.gateway.address import FleetRoutes, RouteAddress, SessionRequest
from antiphon.fleet.gateway.link import RoutedLink
from antiphon.fleet.gateway.list_pages import SessionListPages
from antiphon.gateway.access.messages import REQUESTS
from antiphon.gateway.access.quotas import waits_too_much
from antiphon.gateway.base import AccessRole, GatewaySession, Principal
from antiphon.gateway.clients.connection import MAX_OPEN, GatewayConnection
from antiphon.gateway.methods.base import GatewayHub
from antiphon.gateway.methods.control import share_row
from antiphon.gateway.methods.extension import SESSION_METHODS, ExtensionMethods, GatewayMethods, introduction
from antiphon.gateway.turns import LATER, for_role
from antiphon.protocol.base import BAD_INPUT
from antiphon.remote.sessions import ATTACH, DETACH
from antiphon.rpc.envelope import Notification, Request, RequestId, Response, head_of_answer
from antiphon.rpc.peer import CANCEL_REQUEST, FIRST_ID, id_key
from antiphon.rpc.spans import Unreadable, session_in, with_value
from antiphon.transports.asgi.connections import HttpConnection
from antiphon.transports.asgi.streams import event_place
from antiphon.transports.base import OUTPUT_HIGH

if TYPE_CHECKING:
    from antiphon.transports.base import Transport

__all__ = ["RoutedClient", "RoutingHub"]

MAX_LINKS: Final = 1000
"""Sessions of one client that have a link at the same time."""

OPENED_AT_ONCE: Final = 32
"""Links of one client for which a worker is looked for, and connected to, at the same time: others have to get their turn."""

HELD: Final = 4 * 1024 * 1024
"""Bytes of one client that wait for workers. One request waits however large it is."""

UNREAD: Final = 8 * 1024 * 1024
"""Bytes that wait for one worker to read them, before more is read from the client."""

PAUSE: Final = 4 * OUTPUT_HIGH
"""Bytes that wait for the client to read them, before its links are read no more."""

LINGER: Final = 30.0
"""Seconds after which a link is closed over which no session is followed."""

_LINK_CLOSED: Final = ConnectionClosed("the session was closed, or the agent was not started", hint="open it again")
_OPENED_AGAIN: Final = frozenset({"session/load", "session/resume", ATTACH})
_SHARE: Final = "_antiphon/session/share"
_ENDED: Final = frozenset({"session/close", "session/delete"})
_LEFT: Final = _ENDED | {DETACH, "session/list"}
_OF_SESSIONS: Final = _OPENED_AGAIN | _ENDED | {*SESSION_METHODS, *ExtensionMethods.NAMES}
"""Requests that may be about a session which this client has closed."""


class RoutingHub(GatewayHub, Protocol):
    """What a client needs of the gateway of a fleet."""

    @property
    def routes(self) -> FleetRoutes:
        """Finds workers."""

    def run(
        self,
        work: Coroutine[object, object, object],
        *,
        to_the_end: bool = False,
        after: Callable[[], None] | None = None,
    ) -> None:
        """Run something by itself. It is cancelled when the hub is closed, or waited for if it has to come to its end."""


class RoutedRequest(NamedTuple):
    """A request of the client that a link has."""

    link: RoutedLink
    method: str
    session_id: str | None


class _NewSession(msgspec.Struct, rename="camel"):
    session_id: str = ""


class _Frame(msgspec.Struct):
    result: msgspec.Raw | UnsetType = UNSET


class RoutedClient(GatewayConnection[RoutedRequest]):
    """The sink of the transport to one client, and of its links."""

    def __init__(self, hub: RoutingHub, transport: "Transport", principal: Principal, agent: str) -> None:
        super().__init__(transport, principal)
        self._hub = hub
        self._agent = agent
        self._hello = b""
        """Its `initialize`, as every link sends it."""
        self._home: RoutedLink | None = None
        """The link for what is about no session."""
        self._links: dict[str, RoutedLink] = {}
        self._gate = asyncio.Semaphore(OPENED_AT_ONCE)
        self._opening: set[RoutedLink] = set()
        """The links of sessions that are being opened."""
        self._timers: dict[RoutedLink, asyncio.TimerHandle] = {}
        """When each link that is idle is closed."""
        self._methods = _FleetMethods(self)
        self._pages = SessionListPages()
        self._ids: Iterator[int] = count(FIRST_ID)
        self._closed_sessions: dict[str, None] = {}
        """The sessions that it has closed. It has to load or resume one before it uses it again."""
        self._is_paused = False
        """Whether the links are not read, because the client does not read."""

    @property
    def hub(self) -> GatewayHub:
        return self._hub

    async def row_of(self, session_id: str) -> GatewaySession:
        """Return the row of a session that this client may see.

        Raises:
            RequestError: there is none.
        """
        row = await self._hub.routes.row(self._agent, session_id)
        if row is None or not self.may(AccessRole.WATCH, row.key):
            hint = "`session/list` has those that there are"
            raise RequestError(Code.RESOURCE_NOT_FOUND, f"there is no session `{session_id}` here", hint=hint)
        return row

    # Links.

    @property
    def links(self) -> int:
        """How many links it has."""
        return len(self._all_links())

    def _all_links(self) -> list[RoutedLink]:
        return [*self._links.values(), *self._opening, *([self._home] if self._home is not None else ())]

    def _begin_link(self, address: RouteAddress, hello: bytes | None = None) -> RoutedLink:
        keeps = isinstance(self.transport, HttpConnection)
        link = RoutedLink(self, address, hello=hello, ids=self._ids, keeps_responses=keeps)
        if self._is_paused:
            link.pause()
        link.start()
        return link

    def _address(self, session_id: str | None = None, request: SessionRequest | None = None) -> RouteAddress:
        placement = None if request is None or not request.cwd else request.placement(self._agent)
        return RouteAddress(self._hub.routes, self.principal, self._agent, session_id, placement, self._gate)

    def _home_link(self) -> RoutedLink:
        if self._home is None:
            self._home = self._begin_link(self._address(), self._hello)
        return self._home

    def _link_of(self, session_id: str, request: SessionRequest | None = None) -> RoutedLink | None:
        """Return the link of a session; None if there are too many."""
        link = self._links.get(session_id)
        if link is None and len(self._links) < MAX_LINKS:
            link = self._begin_link(self._address(session_id, request), self._hello)
            self._links[session_id] = link
        return link

    def _drop(self, link: RoutedLink) -> None:
        """Forget a link at once, and close it."""
        self.link_lost(link)
        link.end(fresh(_LINK_CLOSED))
        self._hub.run(link.close(), to_the_end=True)

    def link_lost(self, link: RoutedLink) -> None:
        """Forget a link that has ended. What it had open has its responses."""
        if link is self._home:
            self._home = None
        self._opening.discard(link)
        if (session_id := link.address.session_id) is not None and self._links.get(session_id) is link:
            del self._links[session_id]
        if (timer := self._timers.pop(link, None)) is not None:
            timer.cancel()

    def _close_if_idle(self, link: RoutedLink) -> None:
        self._timers.pop(link, None)
        if link.is_idle:
            self._drop(link)

    def _look_if_idle(self, link: RoutedLink, *, at_once: bool = False) -> None:
        """Close a link over which nothing is followed, in a while: another request may follow."""
        if link is self._home or link.lost is not None or not link.is_idle or link in self._timers:
            return
        if at_once or link.address.is_unknown:
            self._drop(link)
        else:
            loop = asyncio.get_running_loop()
            self._timers[link] = loop.call_later(LINGER, self._close_if_idle, link)

    def _leave(self) -> None:
        self.closed.set()
        self._hub.feed.left(self)
        for link in self._all_links():
            self._drop(link)

    # What links give.

    def give(
        self,
        link: RoutedLink,
        frame: bytes,
        session_id: str | None,
        answers: RequestId | UnsetType,
        number: int,
    ) -> None:
        """Send a frame of a link to the client."""
        asked = None if isinstance(answers, UnsetType) else self._open.get(id_key(answers))
        if asked is not None:
            frame = self._answered(asked, frame)
        self.put(frame, session_id, answers, number=number)
        if asked is not None:
            self._look_if_idle(link, at_once=asked.method in _LEFT)
        if not self._is_paused and self.transport.unsent > PAUSE and not self.closed.is_set():
            self._is_paused = True
            for each in self._all_links():
                each.pause()
            self.transport.when_drained(self._read_links)

    def _read_links(self) -> None:
        self._is_paused = False
        for link in self._all_links():
            link.resume()

    def caught_up(self, session_id: str) -> None:
        """Send what waited for events of a session that the client does not get again: it has all of them."""
        if isinstance(self.transport, HttpConnection):
            self.transport.caught_up(session_id)

    def _answered(self, asked: RoutedRequest, frame: bytes) -> bytes:
        """Note what the response to a request means for its link, and return it as the client gets it."""
        link, method, session_id = asked
        result = _result_of(frame)
        if method == "initialize":
            return self._initialized(link, frame, result)
        if method == "session/list":
            return frame if result is None or not link.address.host else self._listed(link, frame)
        if link in self._opening:
            self._opened(link, result)
        elif result is not None and session_id is not None and method in _OPENED_AGAIN:
            self._closed_sessions.pop(session_id, None)
        elif result is not None and session_id is not None and method in _ENDED:
            self._closed_sessions[session_id] = None
            while len(self._closed_sessions) > MAX_OPEN:
                del self._closed_sessions[next(iter(self._closed_sessions))]
        return frame

    def _initialized(self, link: RoutedLink, frame: bytes, result: bytes | None) -> bytes:
        """Return the response to `initialize` with what this gateway says of itself, in place of what the worker says."""
        if result is None:
            self._initialized_once(failed=True)
            self._drop(link)
            return frame
        self._initialized_once(failed=False)
        try:
            return with_value(frame, ("result", "_meta", "antiphon"), msgspec.json.encode(introduction(self)))
        except (Unreadable, *BAD_INPUT):
            return frame

    def _initialized_once(self, *, failed: bool) -> None:
        self._is_initialized = not failed
        self._answered_once = True

    def _opened(self, link: RoutedLink, result: bytes | None) -> None:
        """Make a link that of the session which was opened over it."""
        self._opening.discard(link)
        try:
            session_id = msgspec.json.decode(result or b"{}", type=_NewSession).session_id
        except BAD_INPUT:
            session_id = ""
        if not session_id:
            self._drop(link)
            return
        before = self._links.pop(session_id, None)
        link.address.begin(session_id)
        self._links[session_id] = link
        self._closed_sessions.pop(session_id, None)
        if before is not None:  # the agent has given the id of an older session to a new one
            self._drop(before)

    # What the client sends.

    def _introduce(self, request: Request, line: bytes) -> None:
        self._hello = line if self._dialect is None else _without_sign(line)
        if self._home is not None:  # its `initialize` is repeated
            self._drop(self._home)
        link = self._home = self._begin_link(self._address())
        self._forward(link, request, self._hello, None)

    def _needs_no_agent(self, method: str) -> bool:
        return self._methods.is_of_gateway(method)

    def _handle(self, request: Request, line: bytes) -> None:
        if self._methods.handle(request):
            return
        session_id = session_in(request.params)
        if request.method == "session/new" and self.may(AccessRole.DRIVE):
            self._open_session(request, line, self._address(None, SessionRequest.read(request.params)))
        elif request.method == "session/list" and (machines := self._hub.routes.machines(self._agent)):
            self._list(request, line, machines)
        elif session_id is None:
            self._forward(self._home_link(), request, line, None)
        elif request.method == "session/fork" and self.may(AccessRole.DRIVE):
            self._open_session(request, line, self._address(session_id))
        elif request.method == DETACH and session_id not in self._links:
            self._detach_unknown(request, session_id)
        elif session_id in self._closed_sessions and request.method not in _OF_SESSIONS:
            why = f"session `{session_id}` is closed"
            self.refuse(request, Code.RESOURCE_NOT_FOUND, why, hint="load or resume it", session_id=session_id)
        else:
            opening = SessionRequest.read(request.params) if request.method == "session/load" else None
            link = self._link_of(session_id, opening)
            if link is None:
                why = f"this connection has {MAX_LINKS} sessions open"
                self.refuse(request, Code.INVALID_REQUEST, why, hint="close some, or detach from them", recovery=LATER)
            else:
                self._forward(link, request, line, session_id)

    def _list(self, request: Request, line: bytes, machines: Mapping[str, str]) -> None:
        """Have a worker list sessions: of the first machine, or of that which the cursor names."""
        try:
            place = self._pages.place(request.params, machines)
        except (RequestError, *BAD_INPUT) as error:
            hint = error.hint if isinstance(error, RequestError) else ""
            self.refuse(request, Code.INVALID_PARAMS, "the cursor of `session/list` cannot be read", hint=hint)
            return
        if place is None:
            self.put(b'%b{"sessions":[]}}' % head_of_answer(request.id), None, request.id)
            return
        line = self._pages.for_worker(line, place)
        routes, gate = self._hub.routes, self._gate
        address = RouteAddress(routes, self.principal, self._agent, gate=gate, host=place.host)
        self._open_session(request, line, address)

    def _listed(self, link: RoutedLink, frame: bytes) -> bytes:
        """Return a page of the list as the client gets it, and note on which machine its sessions are."""
        routes, host = self._hub.routes, link.address.host
        try:
            page = self._pages.page(frame, host, routes.machines(self._agent))
        except BAD_INPUT:
            return frame
        routes.listed(self._agent, host, page.ids)
        return page.frame

    def _open_session(self, request: Request, line: bytes, address: RouteAddress) -> None:
        """Open a session over a link of its own: a new one, or a fork, which begins at the worker of its source."""
        if len(self._links) + len(self._opening) >= MAX_LINKS:
            why = f"this connection has {MAX_LINKS} sessions open"
            self.refuse(request, Code.INVALID_REQUEST, why, hint="close some, or detach from them", recovery=LATER)
            return
        if self._waits_too_much(line):
            self._refuse_waiting(request, None)
            return
        link = self._begin_link(address, self._hello)
        self._opening.add(link)
        self._forward(link, request, line, session_in(request.params))

    def _forward(self, link: RoutedLink, request: Request, line: bytes, session_id: str | None) -> None:
        if not link.is_live and self._waits_too_much(line):
            self._refuse_waiting(request, session_id)
            return
        if (timer := self._timers.pop(link, None)) is not None:
            timer.cancel()
        self._open[id_key(request.id)] = RoutedRequest(link, request.method, session_id)
        link.route(line, session_id, UNSET)

    def _waits_too_much(self, line: bytes) -> bool:
        held = sum(link.held for link in self._all_links())
        return waits_too_much(held, len(line), HELD)

    def _refuse_waiting(self, request: Request, session_id: str | None) -> None:
        why = "too much of this connection waits for workers"
        hint = "wait for a response, then send it again"
        self.refuse(request, Code.INVALID_REQUEST, why, hint=hint, session_id=session_id, recovery=LATER)

    def _detach_unknown(self, request: Request, session_id: str) -> None:
        """Answer a client that leaves a session which it does not follow. Pages send that to see whether the connection lives."""
        if session_id:
            self.put(b"%b{}}" % head_of_answer(request.id), session_id, request.id)
        else:
            why, hint = "there is no session `` here", "`session/list` has those that there are"
            self.refuse(request, Code.RESOURCE_NOT_FOUND, why, hint=hint)

    def _notification(self, notification: Notification, line: bytes) -> None:
        if not self._is_initialized:
            return
        session_id = session_in(notification.params)
        if notification.method == CANCEL_REQUEST:
            self._cancel(notification, line)
        elif notification.method in REQUESTS or notification.method in ExtensionMethods.NAMES:
            pass  # none of the checks of requests is made here
        elif (link := self._home if session_id is None else self._link_of(session_id)) is not None:
            if link.is_live or not self._waits_too_much(line):
                link.route(line, session_id, UNSET)
            self._look_if_idle(link)

    def _cancel(self, notification: Notification, line: bytes) -> None:
        try:
            id = msgspec.json.decode(notification.params, type=dict[str, int | float | str | None]).get("requestId")
        except BAD_INPUT:
            return
        asked = self._open.get(id_key(id))
        if asked is not None:
            asked.link.route(line, None, UNSET)

    def _response(self, response: Response, line: bytes) -> None:
        for link in self._all_links():
            if link.has_asked(response.id):
                link.route(line, None, response.id)
                return

    def _slow_way(self) -> "Transport | None":
        return next((link for link in self._all_links() if link.is_live and link.unsent > UNREAD), None)

    # Streams over HTTP.

    def _stream_opened(self, session_id: str, last_id: str) -> None:
        """Have the worker send what comes after the event that the client of a stream has seen last."""
        seen = event_place(last_id)
        if seen is None or not self._is_initialized or not isinstance(self.transport, HttpConnection):
            return
        link = self._link_of(session_id)
        if link is None:
            return
        after, first = seen[0], link.first_of(session_id)
        if seen == (0, 0) and first is not None:
            after = first  # no event of this stream has arrived yet
        if link.rewind(session_id, after):
            self.transport.rewind(session_id, last_id)


class _FleetMethods(GatewayMethods[RoutedClient]):
    """The requests that a gateway of a fleet answers itself: about the whole fleet, and for links to this gateway."""

    def handle(self, request: Request) -> bool:
        """Handle a request of a client. False: it is for a worker."""
        if request.method != _SHARE:
            return super().handle(request)
        self._start(request, lambda: self._share(request))
        return True

    async def _share(self, request: Request) -> object:
        row = await self._client.row_of(session_in(request.params) or "")
        if not self._client.may(AccessRole.ADMIN):
            data = for_role(AccessRole.ADMIN)
            raise RequestError(Code.INVALID_REQUEST, "this token may not do that", data)
        return await share_row(self._client, row, request.params)


def _result_of(frame: bytes) -> bytes | None:
    """Return the result of a response; None if it is an error."""
    try:
        result = msgspec.json.decode(frame, type=_Frame).result
    except BAD_INPUT:
        return None
    return None if isinstance(result, UnsetType) else bytes(result)


def _without_sign(line: bytes) -> bytes:
    """Return an `initialize` without the sign of a client that uses the words of another page: they are translated here."""
    for name in ("prompt", "mcp"):
        line = with_value(line, ("params", "clientCapabilities", name), b"null")
    return line
