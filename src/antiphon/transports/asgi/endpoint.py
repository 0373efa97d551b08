"""Both remote profiles as one ASGI application: WebSocket, and streamable HTTP with server-sent events.

It moves frames and reads only what their way depends on: the id, the method and the session. Strict in what it sends,
lenient in what it takes, because the clients of the official SDKs differ:

1. The session is the one in the params; a header that names another is refused, a missing one is not.
2. A stream for a session that is not known yet is opened: some clients listen before they load.
3. A second stream for the same session takes the place of the first, which may belong to a phone that fell asleep.
4. A session that was loaded before its stream was opened is sent on the stream of the connection: some clients open no other.
5. The response to a request about a session goes where its updates go, so it never overtakes them. Without a stream, and without an
   update that waits for one, it goes on that of the connection: a client may never listen to a session that does not exist.
6. Events have numbers; `Last-Event-ID` gets what was sent after it, as far back as `REPLAY_LIMIT`. A client that has missed more than that
   has to connect again: its connection ends.

Each request is admitted by itself: a connection belongs to the principal that opened it, and for any other there is none of that id.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from secrets import token_hex
from typing import Final, TypeAlias

from antiphon.errors import ConnectionClosed
from antiphon.transports.asgi.connections import HttpConnection, Receive, Scope, Send, SocketConnection
from antiphon.transports.asgi.heads import LOOPBACK, Headers, Refusal, header_of, refused_request
from antiphon.transports.asgi.sockets import sign_in_socket
from antiphon.transports.base import Transport
from antiphon.transports.framing import MAX_FRAME
from antiphon.transports.remote import CLOSE_TIMEOUT, CONNECTION_ID, SESSION_ID, MessageHead, head_of

__all__ = [
    "AcpEndpoint",
    "Admission",
    "Admit",
    "EndpointLimits",
    "Refusal",
    "Serve",
    "respond",
]

INITIALIZE_TIMEOUT: Final = 30.0
"""Seconds until the response to `initialize`, which is the answer to its post."""

BODY_TIMEOUT: Final = 60.0
"""Seconds in which the whole body of a post has to arrive."""

GOING_AWAY: Final = (1001, "the server is shutting down")
"""Code and reason of a WebSocket whose server ends."""

BODIES: Final = 4
"""How many of the largest messages may arrive in posts of one principal at the same time, or as many bytes in smaller ones."""

MAX_ID: Final = 1024
"""Characters of a connection or session id."""

MAX_KEY: Final = MAX_ID + 2
"""Bytes of the id of a message, as it is written: with quotation marks."""

Serve: TypeAlias = Callable[[Transport], Awaitable[None]]
"""Serves one connection until it is over."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Admission:
    """A request that is let in: for whom, and what serves the connection that it may open."""

    serve: Serve
    principal: object = None
    """Compared with that of the request which opened a connection. None: all requests are of the same principal."""
    subprotocol: str | None = None
    """The one of the offered WebSocket subprotocols that is accepted."""
    headers: Headers = ()
    """Headers of the response that opens a connection, such as a cookie."""
    limit: int | None = None
    """Bytes of a message on the WebSocket, until another limit is set there; None: that of the endpoint."""


Admit: TypeAlias = Callable[[Scope], Awaitable[Admission | Refusal]]
"""Decides about one request. It is called for every one, also on connections that are open."""


@dataclass(frozen=True, slots=True)
class EndpointLimits:
    """The limits of an endpoint; one that is reached refuses what is new and keeps what is open."""

    message: int = MAX_FRAME
    """Bytes of a message."""
    connections: int = 1000
    streams: int = 64
    """Streams that one connection has open."""


class AcpEndpoint:
    """An ASGI application that serves an agent at whatever path it is mounted.

    `serve` gets a transport for each connection and serves it until it ends. A request that names another host than this machine is
    refused unless the name is in `hosts`, which are names without a port, or `*` for any; a browser's request from a page of another
    host is refused unless its origin is in `origins`. With `admit` all of it is decided for each request by that function.
    """

    def __init__(
        self,
        serve: Serve | None = None,
        *,
        admit: Admit | None = None,
        hosts: Collection[str] = (),
        origins: Collection[str] = (),
        limits: EndpointLimits | None = None,
    ) -> None:
        if (serve is None) == (admit is None):
            raise TypeError("give either `serve` or `admit`")
        self._admit: Admit = admit or _admit_all(serve, hosts, origins)  # type: ignore[arg-type]  # one of them is given
        self._limits = limits or EndpointLimits()
        self._connections: dict[str, HttpConnection] = {}
        self._sockets: set[SocketConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._arriving: Counter[object] = Counter()
        """Bytes of posts that are not handed over yet, by their principals."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    def going_away(self) -> None:
        """Let every WebSocket close with the code of a server that ends."""
        for socket in self._sockets:
            socket.close_status = GOING_AWAY

    async def close(self) -> None:
        """End every connection, and wait until what served them has ended."""
        self.going_away()
        await asyncio.gather(*(connection.close() for connection in (*self._connections.values(), *self._sockets)))
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def is_full(self) -> bool:
        """Whether there are as many connections as the limit allows."""
        return len(self._connections) + len(self._sockets) >= self._limits.connections

    # WebSocket.

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        admission = await self._admit(scope)
        if isinstance(admission, Admission) and self.is_full:
            admission = _FULL
        if isinstance(admission, Refusal):
            await _refuse_socket(scope, send, admission)
            return
        id = token_hex(16)
        headers = [(_CONNECTION, id.encode()), *admission.headers]
        await send({"type": "websocket.accept", "subprotocol": admission.subprotocol, "headers": headers})
        transport = SocketConnection(scope, send, admission.limit or self._limits.message)
        self._sockets.add(transport)
        serving = asyncio.ensure_future(admission.serve(transport))
        listening = asyncio.ensure_future(transport.listen(receive))
        try:
            await asyncio.wait([serving, listening], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._sockets.discard(transport)
            await _end(serving, transport)
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    # Streamable HTTP.

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        admission = await self._admit(scope)
        if isinstance(admission, Refusal):
            await respond(send, admission.status, admission.sentence, *admission.headers)
            return
        match scope["method"]:
            case "POST":
                await self._post(scope, receive, send, admission)
            case "GET":
                await self._get(scope, receive, send, admission)
            case "DELETE":
                connection = self._connection(scope, admission)
                if connection is None:
                    await respond(send, 404, "there is no such connection")
                else:
                    await connection.close()
                    await respond(send, 202)
            case _:
                await respond(send, 405, "use GET, POST or DELETE", (b"allow", b"GET, POST, DELETE"))

    def _connection(self, scope: Scope, admission: Admission) -> HttpConnection | None:
        """Return the connection that a request names, if it belongs to the principal of the request."""
        found = self._connections.get(header_of(scope, _CONNECTION))
        return found if found is not None and found.principal == admission.principal else None

    async def _post(self, scope: Scope, receive: Receive, send: Send, admission: Admission) -> None:
        if header_of(scope, b"content-type").partition(";")[0].strip().lower() != "application/json":
            await respond(send, 415, "the body has to be `application/json`")
            return
        body = _ArrivingBody(self._arriving, admission.principal, self._limits.message)
        try:
            # Decided again: the body may have taken a minute, in which the token was revoked or has opened other connections.
            decided = await body.receive(receive) or await self._admit(scope)
            if isinstance(decided, Refusal):
                await respond(send, decided.status, decided.sentence, *decided.headers)
            else:
                await self._posted(bytes(body.data), scope, send, decided)
        finally:
            body.release()

    async def _posted(self, body: bytes, scope: Scope, send: Send, admission: Admission) -> None:
        if body.lstrip()[:1] == b"[":
            await respond(send, 501, "batches are not supported")
            return
        head = head_of(body)
        if head is None:
            await respond(send, 400, "the body has to be a JSON-RPC message")
            return
        id, named, session = header_of(scope, _CONNECTION), header_of(scope, _SESSION), head.session_of(head.params)
        if head.name == "initialize" and not id:
            await self._initialize(body, head, send, admission)
            return
        if problem := _mistake(head, id, named, session):
            await respond(send, 400, problem)
            return
        connection = self._connection(scope, admission)
        if connection is None:
            await respond(send, 404, "there is no such connection: it may have ended")
            return
        try:
            await connection.posted(body, head, session or named or None)
        except ConnectionClosed as error:
            await respond(send, 404, str(error))
            return
        await respond(send, 202)

    async def _initialize(self, body: bytes, head: MessageHead, send: Send, admission: Admission) -> None:
        if head.request_id is None or len(head.key) > MAX_KEY:
            await respond(send, 400, "`initialize` needs an id, and a short one")
            return
        if self.is_full:
            await respond(send, _FULL.status, _FULL.sentence)
            return
        id = token_hex(16)
        connection = self._connections[id] = HttpConnection(head.request_id, admission.principal)
        task = asyncio.ensure_future(self._run(id, connection, admission.serve))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await connection.posted(body, head, None)
        try:
            async with asyncio.timeout(INITIALIZE_TIMEOUT):
                response = await asyncio.shield(connection.initialized)
        except TimeoutError:
            await connection.close()
            await respond(send, 504, "the agent did not answer `initialize` in time")
        except ConnectionClosed as error:
            await respond(send, 500, str(error))
        else:
            headers = [(b"content-type", b"application/json"), (_CONNECTION, id.encode()), *admission.headers]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": response})

    async def _run(self, id: str, connection: HttpConnection, serve: Serve) -> None:
        serving = asyncio.ensure_future(serve(connection))
        try:
            await asyncio.wait([serving, connection.over], return_when=asyncio.FIRST_COMPLETED)
        finally:
            del self._connections[id]
            await _end(serving, connection)

    async def _get(self, scope: Scope, receive: Receive, send: Send, admission: Admission) -> None:
        accepted = header_of(scope, b"accept")
        if "text/event-stream" not in accepted and "*/*" not in accepted:
            await respond(send, 406, "accept `text/event-stream`")
            return
        id, session = header_of(scope, _CONNECTION), header_of(scope, _SESSION)
        if not id or len(id) > MAX_ID or len(session) > MAX_ID:
            await respond(send, 400, f"`{CONNECTION_ID}` is missing, or an id is too long")
            return
        connection = self._connection(scope, admission)
        if connection is None:
            await respond(send, 404, "there is no such connection: it may have ended")
        elif connection.misses(session or None, header_of(scope, b"last-event-id")):
            await connection.close()
            await respond(send, 404, "more was missed than is kept: connect again, and load the sessions")
        elif connection.open_streams >= self._limits.streams:
            await respond(send, 429, "this connection has too many streams")
        else:
            await connection.send_events(session or None, header_of(scope, b"last-event-id"), scope, receive, send)


_FULL: Final = Refusal(503, "there are too many connections")
_CONNECTION: Final = CONNECTION_ID.lower().encode()
_SESSION: Final = SESSION_ID.lower().encode()


def _admit_all(serve: Serve, hosts: Collection[str], origins: Collection[str]) -> Admit:
    names, pages = LOOPBACK | {host.lower() for host in hosts}, frozenset(origin.lower() for origin in origins)

    async def admit(scope: Scope) -> Admission | Refusal:
        if (refusal := refused_request(scope, names, pages)) is not None:
            return refusal
        sign_in_socket(scope)
        return Admission(serve)

    return admit


def _mistake(head: MessageHead, id: str, named: str, session: str | None) -> str:
    """Return what is wrong with the headers of a post; empty if nothing is."""
    if not id or len(id) > MAX_ID or len(named) > MAX_ID or len(session or "") > MAX_ID or len(head.key) > MAX_KEY:
        return f"`{CONNECTION_ID}` is missing, or an id is too long"
    if head.name == "initialize":
        return "this connection has been initialized"
    if named and session is not None and named != session:
        return f"`{SESSION_ID}` and `params.sessionId` name different sessions"
    return ""


async def respond(send: Send, status: int, text: str = "", *headers: tuple[bytes, bytes]) -> None:
    """Send a whole response: a status, and a sentence about it."""
    body = f"{text}\n".encode() if text else b""
    kind = [(b"content-type", b"text/plain; charset=utf-8")] if text else []
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*kind, length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def _refuse_socket(scope: Scope, send: Send, refusal: Refusal) -> None:
    """Refuse a WebSocket by its HTTP status where the server can send one; else it sends 403."""
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": 1008, "reason": refusal.sentence[:100]})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *refusal.headers]
    await send({"type": "websocket.http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": f"{refusal.sentence}\n".encode()})


def holds_too_much(arriving: Counter[object], principal: object, limit: int) -> bool:
    """Whether more is on its way in posts of a principal than it may have there; `limit` is that of one message."""
    return arriving[principal] > BODIES * limit


class _ArrivingBody:
    """The body of a post, which is counted until it is released."""

    def __init__(self, arriving: Counter[object], principal: object, limit: int) -> None:
        self.data = bytearray()
        self._arriving = arriving
        self._principal = principal
        self._limit = limit

    async def receive(self, receive: Receive) -> Refusal | None:
        """Receive all of it, or return why it is not taken. A client that left before its end posted nothing."""
        try:
            async with asyncio.timeout(BODY_TIMEOUT):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        self.release()
                        return None
                    part = message.get("body", b"")
                    self.data += part
                    self._arriving[self._principal] += len(part)
                    if len(self.data) > self._limit:
                        return Refusal(413, f"a message has at most {self._limit} bytes")
                    if holds_too_much(self._arriving, self._principal, self._limit):
                        return Refusal(429, "too much is posted at the same time", ((b"retry-after", b"1"),))
                    if not message.get("more_body", False):
                        return None
        except TimeoutError:
            return Refusal(408, "the body did not arrive in time")

    def release(self) -> None:
        """Count it no more."""
        self._arriving[self._principal] -= len(self.data)
        if not self._arriving[self._principal]:
            del self._arriving[self._principal]
        self.data = bytearray()


async def _end(serving: "asyncio.Future[None]", transport: Transport) -> None:
    """Close a connection, and end what serves it."""
    await transport.close()
    await asyncio.wait([serving], timeout=CLOSE_TIMEOUT)
    if not serving.done():
        serving.cancel()
        await asyncio.wait([serving], timeout=CLOSE_TIMEOUT)
    if serving.done() and not serving.cancelled() and (error := serving.exception()) is not None:
        _log.error("serving a connection failed", exc_info=error)
