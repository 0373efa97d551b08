"""The two transports of a server: a WebSocket that was accepted, and a connection over posts and streams of events."""

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, Final, Protocol, TypeAlias

from msgspec import UNSET, UnsetType

from antiphon.errors import ConnectionClosed, fresh
from antiphon.rpc.envelope import RequestId
from antiphon.transports.asgi.streams import EventStream, event_place, forget_some, opening
from antiphon.transports.base import OUTPUT_HIGH, Transport
from antiphon.transports.remote import CLOSE_TIMEOUT, REPLAYS, MessageHead, head_of, on_lines
from antiphon.transports.sse import KEEP_ALIVE

__all__ = [
    "LINES",
    "SOCKET",
    "CountedSocket",
    "HttpConnection",
    "LineSocket",
    "Receive",
    "Scope",
    "Send",
    "SocketConnection",
    "send_at_once",
]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

IDLE_TIMEOUT: Final = 300.0
"""Seconds that a connection over HTTP lives without a stream and without a post: its client is gone."""

KEEP_ALIVE_INTERVAL: Final = 15.0
"""Seconds of silence after which a stream gets a comment."""

BUFFER_LIMIT: Final = 64 * 1024 * 1024
"""Bytes that wait for streams which no client reads, in one connection. More ends it: the client is not coming."""

UNREAD_LIMIT: Final = 256 * 1024
"""Bytes of messages that a WebSocket takes before anything reads them."""

MAX_ASKED: Final = 4096
"""Requests of a client without a response whose way a connection remembers."""

MAX_SESSIONS: Final = 1024
"""Sessions without a stream of their own that a connection remembers."""

LINES: Final = "antiphon.lines"
"""The ASGI extension of a server that takes many frames at once. In the scope it is a `LineSocket`."""


SOCKET: Final = "antiphon.socket"
"""The ASGI extension of a server that counts its sockets. In the scope it is a `CountedSocket`."""


class CountedSocket(Protocol):
    """The socket of a request. Over HTTP/2 it has other requests, too."""

    def sign_in(self, owner: str) -> bool:
        """Note that a request of this owner was let in; empty: any. False: there are too many sockets of the same owner."""

    def cut(self) -> None:
        """End the connection now, whatever waits to be sent: its server sees that the client is gone."""


def cut_socket(scope: Scope) -> None:
    """End the connection of a request now, where its server can do that."""
    extensions = scope.get("extensions") or {}
    if (lines := extensions.get(LINES)) is not None:
        lines.abort()
    elif (counted := extensions.get(SOCKET)) is not None:
        counted.cut()


def send_at_once(listening: socket.socket) -> None:
    """Have the connections that a socket accepts send every piece at once.

    The event loop does that only for sockets that were made with the protocol TCP by name. For others the kernel holds a small piece back
    until the peer has confirmed the one before, which a peer may put off by 40 ms.
    """
    if listening.family in (socket.AF_INET, socket.AF_INET6):
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # those that are accepted inherit it


class LineSocket(Protocol):
    """A WebSocket whose frames are lines: many at once in both directions, without a task and a wait for each."""

    paused: bool
    """Whether the client does not read fast enough."""

    @property
    def unsent(self) -> int:
        """Bytes that the client has not taken yet."""

    def attach(self, connection: "SocketConnection", limit: int) -> None:
        """Hand what arrives to `connection`, from now on; a message over the limit closes the socket."""

    def write_lines(self, lines: bytes) -> None:
        """Send each line as a text frame, all in one write."""

    def read(self, wanted: bool) -> None:
        """Read, or read no more until it is wanted again."""

    def abort(self) -> None:
        """End the connection now, whatever waits to be sent."""


class ServerTransport(Transport):
    """What both have in common: frames are handed to the reader when it reads, and writers wait for room."""

    def __init__(self) -> None:
        super().__init__()
        self._reading = asyncio.Event()
        self._room = asyncio.Event()
        self._queued = 0
        """Bytes of frames that have not left yet."""
        self._is_closing = False
        """Whether it is being closed: what arrives or is added now is dropped, what was sent before still leaves."""

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
        """Hand frames over, when the connection reads."""
        await self._reading.wait()
        if self.sink is not None and self.lost is None and not self._is_closing:
            self.sink.block_received(frames)

    def pause(self) -> None:
        self._reading.clear()

    def resume(self) -> None:
        self._reading.set()

    def _start_reading(self) -> None:
        self.resume()

    def _lose(self, error: ConnectionClosed) -> None:
        super()._lose(error)
        self._room.set()
        self._reading.set()


class SocketConnection(ServerTransport):
    """A WebSocket that an ASGI server has accepted. A message is a text frame; one that came may hold several, each on a line."""

    def __init__(self, scope: Scope, send: Send, limit: int) -> None:
        super().__init__()
        self._scope = scope
        self._send = send
        self._limit = limit
        self._arrived = bytearray()
        self._lines: LineSocket | None = (scope.get("extensions") or {}).get(LINES)
        self._frames: deque[bytes] = deque()
        self._work = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None
        self._kept = 0
        """How much of `out` may still leave while it is being closed."""
        self.close_status = (1000, "")
        """Code and reason that the client gets when it is closed."""
        if self._lines is None:
            self._writer = asyncio.get_running_loop().create_task(self._write())
        else:
            self._lines.attach(self, limit)

    def set_limit(self, limit: int) -> None:
        """Set the bytes of a message: a longer one closes the connection."""
        self._limit = limit
        if self._lines is not None:
            self._lines.attach(self, limit)

    # What leaves.

    @property
    def unsent(self) -> int:
        return len(self.out) + (self._queued if self._lines is None else self._lines.unsent)

    def flush(self) -> None:
        if self._is_closing:
            del self.out[self._kept :]
        if not self.out or self.lost is not None:
            return
        if self._lines is not None and self._lines.paused:
            return
        lines, self.out, self._kept = bytes(self.out), bytearray(), 0
        if self._lines is not None:
            self._lines.write_lines(lines)
        else:
            self._queued += len(lines)
            self._frames += lines[:-1].split(b"\n")
            self._work.set()

    def writable(self) -> None:
        """Send on: the client has read."""
        self.flush()
        self._room.set()

    async def _write(self) -> None:
        """Send frame after frame, to a server that takes one at a time."""
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

    # What arrives.

    async def listen(self, receive: Receive) -> None:
        """Read until the client leaves or the connection is closed."""
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
        self.deliver()
        self._lose(ConnectionClosed("the client closed the connection"))

    def text_received(self, text: bytes) -> None:
        """Take a message from a `LineSocket`."""
        self._arrived += on_lines(text)
        self._arrived += b"\n"

    def deliver(self) -> None:
        """Hand over what has arrived, in one piece."""
        if self._is_closing:
            self._arrived.clear()
        if self._arrived and self._reading.is_set() and self.sink is not None and self.lost is None:
            block, self._arrived = bytes(self._arrived), bytearray()
            self.sink.block_received(block)
        elif len(self._arrived) > UNREAD_LIMIT and self._lines is not None:
            self._lines.read(False)  # nothing takes it yet, as while an agent starts: until it is resumed

    def pause(self) -> None:
        super().pause()
        if self._lines is not None:
            self._lines.read(False)

    def resume(self) -> None:
        super().resume()
        if self._lines is not None:
            self._lines.read(True)
            self.loop.call_soon(self.deliver)

    # The end.

    async def _close_socket(self, code: int, reason: str) -> None:
        """Close the socket, and cut one whose client does not read the end."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await self._send({"type": "websocket.close", "code": code, "reason": reason})
        except TimeoutError:
            cut_socket(self._scope)
        except (OSError, RuntimeError):
            pass  # the client is gone
        else:
            self.loop.call_later(CLOSE_TIMEOUT, cut_socket, self._scope)

    async def close(self) -> None:
        if self.lost is None:
            if not self._is_closing:
                self._is_closing, self._kept = True, len(self.out)
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_TIMEOUT):
                    self.flush()
                    while (self._queued or self.out) and self.lost is None:
                        self._room.clear()
                        await self._room.wait()
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.gather(self._writer, return_exceptions=True)
        if self.lost is None:
            await self._close_socket(*self.close_status)
        self._lose(ConnectionClosed("the connection is closed"))

    async def abort(self, reason: str) -> None:
        if self.lost is None:
            self.out.clear()
            self._frames.clear()
            self._lose(ConnectionClosed(reason))
            if self._lines is not None and self._lines.paused:
                cut_socket(self._scope)  # the reason would not reach a client that does not read
            else:
                await self._close_socket(1008, reason)
        await self.close()


class HttpConnection(ServerTransport):
    """A connection over streamable HTTP: posts come in, frames leave on the stream that they belong to."""

    routed = True

    def __init__(self, initialize_id: RequestId, principal: object = None) -> None:
        super().__init__()
        self.principal = principal
        self.stream_opened: Callable[[str, str], None] | None = None
        """Called with the session of a stream that a client opens, and its `Last-Event-ID`.

        What is set here sends again what the client missed; what was sent already is then not repeated from memory.
        """
        self.initialized: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        """The response to `initialize`, which is the answer to its post."""
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._initialize_id = initialize_id
        self._streams: dict[str | None, EventStream] = {None: EventStream()}
        self._asked: dict[tuple[type, RequestId], str | None] = {}
        """The session of each request of the client that waits for its response. The type counts: 1 is not "1"."""
        self._sessions_without_stream: set[str] = set()
        """Sessions that were loaded and have no stream: they are sent on that of the connection (rule 4)."""
        self._busy: list[Scope] = []
        """The requests that read streams."""
        self._idle = asyncio.get_running_loop().call_later(IDLE_TIMEOUT, self._expire)

    @property
    def open_streams(self) -> int:
        """Streams that clients read now."""
        return len(self._busy)

    # What arrives.

    async def posted(self, body: bytes, head: MessageHead, session: str | None) -> None:
        """Take a message of the client.

        Raises:
            ConnectionClosed: the connection has ended, and nothing takes it.
        """
        if self.lost is not None or self._is_closing:
            raise ConnectionClosed("there is no such connection: it has ended")
        self._live()
        if head.name and (id := head.request_id) is not None:
            self._asked[type(id), id] = session
            if len(self._asked) > MAX_ASKED:
                del self._asked[next(iter(self._asked))]
        if head.name in REPLAYS and session is not None and session not in self._streams:
            if len(self._sessions_without_stream) >= MAX_SESSIONS:
                self._sessions_without_stream.clear()
            self._sessions_without_stream.add(session)
        await self._take(on_lines(body) + b"\n")

    # What leaves.

    def flush(self) -> None:
        """Send frames whose way has to be read from them, as those that were written into `out`."""
        if self.out:
            lines, self.out = bytes(self.out), bytearray()
            for line in lines[:-1].split(b"\n"):
                head = head_of(line)
                if head is None or not head.name:
                    self.route(line, None, UNSET if head is None else head.request_id)
                else:
                    self.route(line, None if head.name.startswith("$/") else head.session_of(head.params), UNSET)

    def route(self, frame: bytes, session_id: str | None, answers: RequestId | UnsetType, number: int = 0) -> None:
        if self.lost is not None:
            return
        if not isinstance(answers, UnsetType):
            session_id = self._asked.pop((type(answers), answers), session_id)
            if session_id not in self._streams:  # nothing of it waits anywhere, and no client may ever listen to it
                session_id = None
            if answers == self._initialize_id and not self.initialized.done():
                self.initialized.set_result(frame)
                return
        self.put(frame, session_id, number)

    def put(self, frame: bytes, session_id: str | None, number: int = 0) -> None:
        """Send a frame on the stream of a session, None for that of the connection, as the event of that number."""
        if self.lost is not None or self._is_closing:
            return
        if session_id in self._sessions_without_stream:
            session_id, number = None, 0
        stream = self._stream(session_id)
        self._queued += len(frame) + 1
        stream.put(frame, number)
        if self._queued > BUFFER_LIMIT:
            self._lose(ConnectionClosed("the client does not read what is sent to it"))

    def _stream(self, session_id: str | None) -> EventStream:
        stream = self._streams.get(session_id)
        if stream is None:
            numbered = session_id is not None and self.stream_opened is not None
            stream = self._streams[session_id] = EventStream(numbered=numbered)
        return stream

    def rewind(self, session_id: str | None, last_id: str) -> None:
        """Go back to an event of a session: those after it will be sent again, and what has no number follows where it belongs."""
        if (stream := self._streams.get(session_id)) is not None:
            self._left(-stream.rewind(last_id))

    def caught_up(self, session_id: str) -> None:
        """Send what still waits for events that are not sent again: all there are have been sent."""
        if (stream := self._streams.get(session_id)) is not None:
            stream.caught_up()

    def misses(self, session: str | None, last_id: str) -> bool:
        """Whether a client that comes back to a stream has missed an event that is kept no more."""
        return session in self._streams and self._streams[session].misses(last_id)

    async def send_events(self, session: str | None, last_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events of a session, or of the connection, until the client leaves or another reader takes over."""
        stream = self._stream(session)
        if session in self._sessions_without_stream:
            self._sessions_without_stream.discard(session or "")
            if event_place(last_id) == (0, 0):
                last_id = ""  # what came before is on the stream of the connection
        again = b""
        if self.stream_opened is not None and session is not None:
            self.stream_opened(session, last_id)
        else:
            again = stream.after(last_id)
        reader = stream.reader = object()
        stream.changed.set()  # another reader looks up and leaves
        headers = [
            (b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache, no-transform"), (b"x-accel-buffering", b"no"),
        ]  # fmt: skip
        self._busy.append(scope)
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": opening(stream, last_id) + again, "more_body": True})
            while stream.reader is reader and self.lost is None and not leaving.done():
                chunk, size = stream.take()
                forget_some(self._streams.values())
                if chunk:
                    try:
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
                    finally:
                        self._left(size)
                else:
                    await self._wait(stream, leaving, send)
            await send({"type": "http.response.body", "body": b""})
        except OSError:
            pass  # the client left while something was sent: it gets it again with `Last-Event-ID`
        finally:
            leaving.cancel()
            self._busy.remove(scope)
            if stream.reader is reader:
                stream.reader = None
                if session is not None and stream.is_empty:
                    del self._streams[session]
            self._live()

    async def _wait(self, stream: EventStream, leaving: "asyncio.Future[None]", send: Send) -> None:
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
            self.initialized.exception()  # seen, also if nothing waits for it
        for stream in self._streams.values():
            stream.changed.set()
        if self._busy:
            asyncio.get_running_loop().call_later(CLOSE_TIMEOUT, self._cut_readers)

    def _cut_readers(self) -> None:
        """Cut those that have not read the end of their streams."""
        for scope in self._busy:
            cut_socket(scope)

    async def close(self) -> None:
        self.flush()
        self._is_closing = True
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
