"""The server end of both remote profiles as one ASGI application: WebSocket, and streamable HTTP with server-sent events.

It moves frames and knows nothing of what they mean but their way: the id, the method and the session. Strict in what it sends,
lenient in what it takes, because the clients of the official SDKs differ:

1. The session is the one in the params; a header that names another is refused, a missing one is not.
2. A stream for a session that is not known yet is opened: some clients listen before they load.
3. A second stream for the same session takes the place of the first, which may belong to a phone that fell asleep.
4. A session that was loaded before its stream was opened is sent on the stream of the connection: some clients open no other.
5. The response to a request about a session goes where its updates go, so it never overtakes them.
6. Events have numbers; `Last-Event-ID` gets what was sent after it, as far back as `REPLAY_LIMIT`.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from contextlib import suppress
from secrets import token_hex
from typing import Any, Final, TypeAlias

from msgspec import UNSET, UnsetType

from antiphon.errors import ConnectionClosed, fresh
from antiphon.rpc.envelope import RequestId
from antiphon.transports.base import OUTPUT_HIGH, Transport
from antiphon.transports.framing import MAX_FRAME
from antiphon.transports.remote import CLOSE_TIMEOUT, CONNECTION_ID, REPLAYS, SESSION_ID, MessageHead, head_of, on_lines
from antiphon.transports.sse import KEEP_ALIVE, encode_event

__all__ = ["AcpEndpoint", "Serve"]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Serve: TypeAlias = Callable[[Transport], Awaitable[None]]
"""Talks over a transport until the conversation is over."""

INITIALIZE_TIMEOUT: Final = 30.0
"""Seconds until the response to `initialize`, which is the answer to its post."""

IDLE_TIMEOUT: Final = 300.0
"""Seconds that a connection over HTTP lives without a stream and without a post: its client is gone."""

KEEP_ALIVE_INTERVAL: Final = 15.0
"""Seconds of silence after which a stream gets a comment."""

REPLAY_LIMIT: Final = 1024 * 1024
"""Bytes of sent events that a stream keeps for a client that comes back."""

BUFFER_LIMIT: Final = 64 * 1024 * 1024
"""Bytes that wait for streams which no client reads, in one connection. More ends it: the client is not coming."""

CHUNK: Final = 256 * 1024
"""Bytes of events that leave in one piece."""

MAX_ID: Final = 1024
"""Characters of a connection or session id in a header."""

_log = logging.getLogger(__name__)


class AcpEndpoint:
    """An ASGI application that serves an agent at whatever path it is mounted.

    `serve` gets a transport for each connection and talks over it until it ends. A browser's request from a page of another
    host is refused unless its origin is in `origins`.
    """

    def __init__(self, serve: Serve, *, origins: Collection[str] = (), limit: int = MAX_FRAME) -> None:
        self._serve = serve
        self._origins = frozenset(origins)
        self._limit = limit
        self._connections: dict[str, HttpConnection] = {}
        self._tasks: set[asyncio.Task[None]] = set()

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

    async def close(self) -> None:
        """End every connection over HTTP. Those over a WebSocket are ended by the server."""
        for connection in (*self._connections.values(),):
            await connection.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _is_foreign(self, scope: Scope) -> bool:
        origin = _header(scope, b"origin")
        if not origin or origin in self._origins:
            return False
        return origin.partition("://")[2] != _header(scope, b"host")

    # WebSocket.

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        if self._is_foreign(scope):
            await send({"type": "websocket.close", "code": 1008, "reason": "this origin is not allowed"})
            return
        id = token_hex(16)
        await send({"type": "websocket.accept", "headers": [(CONNECTION_ID.lower().encode(), id.encode())]})
        transport = SocketConnection(send, self._limit)
        serving = asyncio.ensure_future(self._serve(transport))
        try:
            await transport.listen(receive)
        finally:
            await _end(serving, transport)

    # Streamable HTTP.

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"]
        if self._is_foreign(scope):
            await _answer(send, 403, "this origin is not allowed")
        elif method == "POST":
            await self._post(scope, receive, send)
        elif method == "GET":
            await self._get(scope, receive, send)
        elif method == "DELETE":
            connection = self._connections.get(_header(scope, _CONNECTION))
            if connection is None:
                await _answer(send, 404, "there is no such connection")
            else:
                await connection.close()
                await _answer(send, 202)
        else:
            await _answer(send, 405, "use GET, POST or DELETE", (b"allow", b"GET, POST, DELETE"))

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _header(scope, b"content-type").partition(";")[0].strip().lower() != "application/json":
            await _answer(send, 415, "the body has to be `application/json`")
            return
        body = await _body(receive, self._limit)
        if body is None:
            await _answer(send, 413, f"a message has at most {self._limit} bytes")
            return
        if body.lstrip()[:1] == b"[":
            await _answer(send, 501, "batches are not supported")
            return
        head = head_of(body)
        if head is None:
            await _answer(send, 400, "the body has to be a JSON-RPC message")
            return
        id, named, session = _header(scope, _CONNECTION), _header(scope, _SESSION), head.session_of(head.params)
        if head.name == "initialize" and not id:
            await self._initialize(body, head, send)
            return
        if problem := _mistake(head, id, named, session):
            await _answer(send, 400, problem)
            return
        connection = self._connections.get(id)
        if connection is None:
            await _answer(send, 404, "there is no such connection: it may have ended")
            return
        await connection.posted(body, head, session or named or None)
        await _answer(send, 202)

    async def _initialize(self, body: bytes, head: MessageHead, send: Send) -> None:
        if head.request_id is None:
            await _answer(send, 400, "`initialize` needs an id")
            return
        id = token_hex(16)
        connection = self._connections[id] = HttpConnection(head.request_id)
        task = asyncio.ensure_future(self._run(id, connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await connection.posted(body, head, None)
        try:
            async with asyncio.timeout(INITIALIZE_TIMEOUT):
                response = await asyncio.shield(connection.initialized)
        except TimeoutError:
            await connection.close()
            await _answer(send, 504, "the agent did not answer `initialize` in time")
        except ConnectionClosed as error:
            await _answer(send, 500, str(error))
        else:
            headers = [(b"content-type", b"application/json"), (_CONNECTION, id.encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": response})

    async def _run(self, id: str, connection: "HttpConnection") -> None:
        serving = asyncio.ensure_future(self._serve(connection))
        try:
            await asyncio.wait([serving, connection.over], return_when=asyncio.FIRST_COMPLETED)
        finally:
            del self._connections[id]
            await _end(serving, connection)

    async def _get(self, scope: Scope, receive: Receive, send: Send) -> None:
        accepted = _header(scope, b"accept")
        if "text/event-stream" not in accepted and "*/*" not in accepted:
            await _answer(send, 406, "accept `text/event-stream`")
            return
        id, session = _header(scope, _CONNECTION), _header(scope, _SESSION)
        if not id or len(id) > MAX_ID or len(session) > MAX_ID:
            await _answer(send, 400, f"`{CONNECTION_ID}` is missing or too long")
            return
        connection = self._connections.get(id)
        if connection is None:
            await _answer(send, 404, "there is no such connection: it may have ended")
            return
        await connection.stream(session or None, _header(scope, b"last-event-id"), receive, send)


_CONNECTION: Final = CONNECTION_ID.lower().encode()
_SESSION: Final = SESSION_ID.lower().encode()


def _header(scope: Scope, name: bytes) -> str:
    for key, value in scope["headers"]:
        if key == name:
            found: str = value.decode("latin-1")
            return found
    return ""


def _mistake(head: MessageHead, id: str, named: str, session: str | None) -> str:
    """What is wrong with the headers of a post; empty if nothing is."""
    if not id or len(id) > MAX_ID:
        return f"`{CONNECTION_ID}` is missing or too long"
    if head.name == "initialize":
        return "this connection has been initialized"
    if named and session is not None and named != session:
        return f"`{SESSION_ID}` and `params.sessionId` name different sessions"
    return ""


async def _answer(send: Send, status: int, text: str = "", *headers: tuple[bytes, bytes]) -> None:
    body = f"{text}\n".encode() if text else b""
    kind = [(b"content-type", b"text/plain; charset=utf-8")] if text else []
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*kind, length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def _body(receive: Receive, limit: int) -> bytes | None:
    """Return the body of a request, None if it is too large. A client that left before its end posted nothing."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b""
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


async def _end(serving: "asyncio.Future[None]", transport: Transport) -> None:
    """End a conversation whose connection is over, and wait until it has."""
    with suppress(TimeoutError, asyncio.CancelledError):
        await transport.close()
        async with asyncio.timeout(CLOSE_TIMEOUT):
            await asyncio.shield(serving)
    if not serving.done():
        serving.cancel()
    try:
        await serving
    except asyncio.CancelledError:
        pass
    except Exception:
        _log.exception("serving a connection failed")


class ServerTransport(Transport):
    """What both ends have in common: frames are handed to the application, and read from it."""

    def __init__(self) -> None:
        super().__init__()
        self._reading = asyncio.Event()
        self._room = asyncio.Event()
        self._arrived: list[bytes] = []
        self._queued = 0
        """Bytes of frames that have not left yet."""

    @property
    def unsent(self) -> int:
        return len(self.out) + self._queued

    async def drain(self) -> None:
        self.flush()
        await asyncio.sleep(0)
        while self.unsent >= OUTPUT_HIGH and self.lost is None:
            self._room.clear()
            await self._room.wait()
        if self.lost is not None:
            raise fresh(self.lost)

    def _left(self, size: int) -> None:
        self._queued -= size
        self._room.set()

    async def _take(self, frames: bytes) -> None:
        """Hand frames over, when the conversation reads."""
        await self._reading.wait()
        if self.sink is not None and self.lost is None:
            self.sink.block_received(frames)

    def pause(self) -> None:
        self._reading.clear()

    def resume(self) -> None:
        self._reading.set()

    def _start_reading(self) -> None:
        self._reading.set()

    def _lose(self, error: ConnectionClosed) -> None:
        super()._lose(error)
        self._room.set()
        self._reading.set()


class SocketConnection(ServerTransport):
    """A WebSocket that an ASGI server has accepted."""

    def __init__(self, send: Send, limit: int) -> None:
        super().__init__()
        self._send = send
        self._limit = limit
        self._frames: deque[bytes] = deque()
        self._work = asyncio.Event()
        self._writer = asyncio.get_running_loop().create_task(self._write())

    def flush(self) -> None:
        if self.out and self.lost is None:
            lines, self.out = bytes(self.out), bytearray()
            self._queued += len(lines)
            self._frames += lines.splitlines()
            self._work.set()

    async def _write(self) -> None:
        try:
            while True:
                await self._work.wait()
                self._work.clear()
                while self._frames:
                    frame = self._frames.popleft()
                    await self._send({"type": "websocket.send", "text": frame.decode()})
                    self._left(len(frame) + 1)
        except (OSError, RuntimeError, UnicodeDecodeError) as error:  # the server's way to say that it is gone
            self._lose(ConnectionClosed(f"the client is gone: {error}"))

    async def listen(self, receive: Receive) -> None:
        """Read until the client leaves or the conversation ends."""
        while self.lost is None:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                break
            text = message.get("text")
            if text is None:
                continue  # a binary message, which the proposal says to ignore
            if len(text) > self._limit:
                await self._close_socket(1009, "a message is too large")
                break
            await self._take(on_lines(text.encode()) + b"\n")
        self._lose(ConnectionClosed("the client closed the connection"))

    async def _close_socket(self, code: int, reason: str) -> None:
        with suppress(OSError, RuntimeError):
            await self._send({"type": "websocket.close", "code": code, "reason": reason})

    async def close(self) -> None:
        if self._writer.done():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT):
                self.flush()
                while self._queued and self.lost is None:
                    self._room.clear()
                    await self._room.wait()
        self._writer.cancel()
        await asyncio.gather(self._writer, return_exceptions=True)
        if self.lost is None:
            await self._close_socket(1000, "")
        self._lose(ConnectionClosed("the connection is closed"))


class _EventStream:
    """The events of a session or of the connection: those that wait, and those that were sent last."""

    def __init__(self) -> None:
        self.waiting: deque[bytes] = deque()
        self.changed = asyncio.Event()
        self.reader: object | None = None
        """Who reads it; another one takes its place."""
        self._sent: deque[tuple[int, bytes]] = deque()
        self._sent_size = 0
        self._number = 0

    def put(self, frame: bytes) -> None:
        self.waiting.append(frame)
        self.changed.set()

    def take(self) -> tuple[bytes, int]:
        """Return some of what waits as events in one piece, and the bytes of their frames."""
        parts, size = [], 0
        while self.waiting and size < CHUNK:
            frame = self.waiting.popleft()
            self._number += 1
            event = encode_event(frame, str(self._number))
            self._remember(event)
            parts.append(event)
            size += len(frame) + 1
        return b"".join(parts), size

    def _remember(self, event: bytes) -> None:
        self._sent.append((self._number, event))
        self._sent_size += len(event)
        while self._sent_size > REPLAY_LIMIT and len(self._sent) > 1:
            self._sent_size -= len(self._sent.popleft()[1])

    def after(self, last_id: str) -> bytes:
        """Return what was sent after the event that a client has seen last; nothing for a client that names none."""
        if not last_id.isascii() or not last_id.isdecimal():
            return b""
        return b"".join(event for number, event in self._sent if number > int(last_id[:18]))


class HttpConnection(ServerTransport):
    """A connection over streamable HTTP: posts come in, frames leave on the stream that they belong to."""

    routed = True

    def __init__(self, initialize_id: RequestId) -> None:
        super().__init__()
        self.initialized: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        """The response to `initialize`, which is the answer to its post."""
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._initialize_id = initialize_id
        self._streams: dict[str | None, _EventStream] = {None: _EventStream()}
        self._asked: dict[tuple[type, RequestId], str | None] = {}
        """The session of each request of the client that waits for its response. The type counts: 1 is not "1"."""
        self._unheard: set[str] = set()
        """Sessions that were loaded and have no stream: they are sent on that of the connection (rule 4)."""
        self._busy = 0
        self._idle = asyncio.get_running_loop().call_later(IDLE_TIMEOUT, self._expire)

    # What arrives.

    async def posted(self, body: bytes, head: MessageHead, session: str | None) -> None:
        """Take a message of the client."""
        self._live()
        if head.name and (id := head.request_id) is not None:
            self._asked[type(id), id] = session
        if head.name in REPLAYS and session is not None and session not in self._streams:
            self._unheard.add(session)
        await self._take(on_lines(body) + b"\n")

    # What leaves.

    def flush(self) -> None:
        """Send frames whose way has to be read from them, as of somebody who forwards them unseen."""
        if self.out:
            lines, self.out = bytes(self.out), bytearray()
            for line in lines.splitlines():
                head = head_of(line)
                if head is None or not head.name:
                    self.route(line, None, UNSET if head is None else head.request_id)
                else:
                    self.route(line, None if head.name.startswith("$/") else head.session_of(head.params), UNSET)

    def route(self, frame: bytes, session_id: str | None, answers: RequestId | UnsetType) -> None:
        if self.lost is not None:
            return
        if not isinstance(answers, UnsetType):
            session_id = self._asked.pop((type(answers), answers), None)
            if answers == self._initialize_id and not self.initialized.done():
                self.initialized.set_result(frame)
                return
        if session_id in self._unheard:
            session_id = None
        stream = self._streams.get(session_id)
        if stream is None:
            stream = self._streams[session_id] = _EventStream()
        self._queued += len(frame) + 1
        stream.put(frame)
        if self._queued > BUFFER_LIMIT:
            self._lose(ConnectionClosed("the client does not read what is sent to it"))

    async def stream(self, session: str | None, last_id: str, receive: Receive, send: Send) -> None:
        """Send the events of a session, or of the connection, until the client leaves or another reader takes over."""
        stream = self._streams.setdefault(session, _EventStream())
        self._unheard.discard(session or "")
        reader = stream.reader = object()
        stream.changed.set()  # another reader looks up and leaves
        headers = [
            (b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache, no-transform"), (b"x-accel-buffering", b"no"),
        ]  # fmt: skip
        self._busy += 1
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": stream.after(last_id) or KEEP_ALIVE, "more_body": True})
            while stream.reader is reader and self.lost is None and not leaving.done():
                chunk, size = stream.take()
                if chunk:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                    self._left(size)
                else:
                    await self._wait(stream, leaving, send)
            await send({"type": "http.response.body", "body": b""})
        except OSError:
            pass  # it left while something was sent: it asks for it again with `Last-Event-ID`
        finally:
            leaving.cancel()
            self._busy -= 1
            if stream.reader is reader:
                stream.reader = None
            self._live()

    async def _wait(self, stream: _EventStream, leaving: "asyncio.Future[None]", send: Send) -> None:
        stream.changed.clear()
        change = asyncio.ensure_future(stream.changed.wait())
        try:
            watched: list[asyncio.Future[Any]] = [change, leaving, self.over]
            done, _ = await asyncio.wait(watched, timeout=KEEP_ALIVE_INTERVAL, return_when=asyncio.FIRST_COMPLETED)
        finally:
            change.cancel()
        if not done:
            await send({"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True})

    # The end.

    def _live(self) -> None:
        self._idle.cancel()
        if not self.over.done():
            self._idle = asyncio.get_running_loop().call_later(IDLE_TIMEOUT, self._expire)

    def _expire(self) -> None:
        if self._busy:
            self._live()
        else:
            self._lose(ConnectionClosed("the client is gone"))

    def _lose(self, error: ConnectionClosed) -> None:
        super()._lose(error)
        self._idle.cancel()
        if not self.over.done():
            self.over.set_result(None)
        if not self.initialized.done():
            self.initialized.set_exception(error)
            self.initialized.exception()  # seen, even if nobody waits for it
        for stream in self._streams.values():
            stream.changed.set()

    async def close(self) -> None:
        self.flush()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT):
                while self._busy and self._queued and self.lost is None:
                    self._room.clear()
                    await self._room.wait()
        self._lose(ConnectionClosed("the connection is closed"))


async def _left(receive: Receive) -> None:
    """Wait until the client of a request has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
