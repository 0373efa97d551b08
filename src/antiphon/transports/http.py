"""Streamable HTTP to a remote agent: what we send is posted, what it sends comes on streams of server-sent events.

One stream belongs to the connection and one to each session; all that arrives is merged. What we send is posted in order, one
message at a time: two requests at once could overtake each other.

Lenient in what it takes: a response in the answer to a post, a stream where a post should have been answered, servers that know
a session only after it was loaded.
"""

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import aclosing, suppress
from typing import Final, NamedTuple

import httpx
import msgspec
from msgspec import UnsetType

from antiphon.errors import AcpError, Code, ConnectionClosed, LocalProtocolError, RemoteProtocolError, fresh
from antiphon.transports.base import OUTPUT_HIGH, Transport
from antiphon.transports.framing import MAX_FRAME
from antiphon.transports.remote import (
    CLOSE_TIMEOUT,
    CONNECTION_ID,
    OPEN_TIMEOUT,
    PASSING,
    REPLAYS,
    SESSION_ID,
    ConnectionRefused,
    CookieJar,
    MessageHead,
    head_of,
    is_header_text,
    not_reached,
    on_lines,
    refused_by_status,
    shown_address,
    without_proxy,
)
from antiphon.transports.sse import EventParser

__all__ = ["HttpTransport", "open_http"]

_log = logging.getLogger(__name__)

STREAM_TIMEOUT: Final = 120.0
"""Seconds without a byte after which a stream is taken for dead. Servers send a comment every 15."""

STREAM_RETRIES: Final = (0.1, 0.5, 1.0, 2.0, 4.0)
"""Seconds before each further try to open a stream. After the last one the connection counts as lost."""

STREAM_HEALTHY: Final = 10.0
"""Seconds that a stream without a message has to have been open for its end to be the first failure again."""

ERROR_BODY: Final = 8 * 1024
"""Bytes of a refusal's body that are kept as the reason."""

QUIET: Final = 0.1
"""Seconds without an update after which the history of a loaded session counts as sent.

Some servers send the response to `session/load` on the stream of the connection, where it overtakes the history.
"""

QUIET_LIMIT: Final = 5.0
"""Seconds after which it counts as sent in any case: a turn that runs in the session sends updates without a pause."""

_FATAL: Final = frozenset({401, 403, 404, 410})
"""Refusals of a post that mean the connection, not the message."""

_OPENS: Final = frozenset({"session/new", "session/fork", "session/load", "session/resume"})
_ENDS: Final = frozenset({"session/close", "session/delete"})


class HttpTransport(Transport):
    """The client end of streamable HTTP. Made by `open_http`: nothing is sent before the first message, which opens the connection."""

    def __init__(self, client: httpx.AsyncClient, url: str, cookies: CookieJar, limit: int = MAX_FRAME) -> None:
        super().__init__()
        self._client = client
        self._url = url
        self._cookies = cookies
        self._limit = limit
        self._connection_id = ""
        self._queue: deque[bytes] = deque()
        self._queued = 0
        """Bytes in `_queue`, and of the message that is being posted."""
        self._work = asyncio.Event()
        """Set when there is something to post."""
        self._room = asyncio.Event()
        self._reading = asyncio.Event()
        self._streams: dict[str | None, _Stream] = {}
        self._requests: dict[bytes, tuple[str, str | None]] = {}
        """Requests whose response opens or ends a session, by id: the method and the session."""
        self._asked: dict[bytes, str] = {}
        """The session of each request of the server that waits for our response: the official TypeScript server wants its name."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing: asyncio.Task[None] | None = None
        self._start(self._post_all())

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A task that fails must not leave the peers waiting for what it would have done."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a task of the connection to `%s` failed", shown_address(self._url), exc_info=error)
            self._fail(ConnectionClosed(f"the connection failed: {error!r}", hint="report this as a bug"))

    # What leaves.

    @property
    def unsent(self) -> int:
        return len(self.out) + self._queued

    def flush(self) -> None:
        if self.out and not self.deaf:
            lines, self.out = bytes(self.out), bytearray()
            self._queue += lines[:-1].split(b"\n")
            self._queued += len(lines)
            self._work.set()

    async def drain(self) -> None:
        self.flush()
        await asyncio.sleep(0)
        while self.unsent >= OUTPUT_HIGH and not self.deaf:
            self._room.clear()
            await self._room.wait()
        if self.lost is not None:
            raise fresh(self.lost)

    async def _post_all(self) -> None:
        try:
            while True:
                await self._work.wait()
                while self._queue:
                    line = self._queue.popleft()
                    await self._post(line)
                    self._queued = max(0, self._queued - len(line) - 1)
                    self._room.set()
                self._work.clear()
        except AcpError as error:
            self._fail(error)
        except (httpx.HTTPError, OSError, ssl.SSLError) as error:
            self._fail(not_reached(self._url, error, OPEN_TIMEOUT))

    async def _post(self, line: bytes) -> None:
        head = head_of(line)
        if head is None:
            raise LocalProtocolError("what is sent over HTTP has to be a JSON-RPC message")
        method = head.name
        session = head.session_of(head.params) if method else self._asked.pop(head.key, None)
        if not self._connection_id:
            await self._open(line, method)
            return
        if session is not None and not is_header_text(session):
            self._refuse_session(head, session)
            return
        if method in _OPENS or method in _ENDS:
            self._requests[head.key] = (method, session)
        # Also for the request that ends a session which was closed before: its response is sent on the stream of the session.
        stream = self._listen(session) if session is not None else None
        if stream is not None:
            await stream.ready()
        response = await self._exchange(line, session)
        if response.status_code == 404 and method in REPLAYS:
            # The official Python server refuses the header of a session that is about to be loaded.
            response = await self._exchange(line, None)
        if stream is not None:
            stream.try_again()  # a server may know a session only now
        await self._answered(response, head, method, session)

    def _refuse_session(self, head: MessageHead, session: str) -> None:
        """Answer a request about a session whose name does not fit into a header, where servers look for it."""
        if not head.name or not head.key:
            _log.warning("a message about session `%.100r` was not sent: HTTP has no place for such a name", session)
            return
        wrong = {"code": int(Code.INVALID_PARAMS), "message": f"session {session!a:.100} cannot be named over HTTP"}
        data = {"hint": "use the address with `ws` in place of `http`", "recoverable": False}
        error = msgspec.json.encode({**wrong, "data": data})
        self._receive(b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (head.key, error))

    async def _exchange(self, line: bytes, session: str | None) -> "_PostAnswer":
        """Post a message and return the answer, if it is no larger than a message. One that is a stream is read by a task of its own."""
        headers = self._headers(session, posts=True)
        request = self._client.build_request("POST", self._url, content=line, headers=headers)
        response = await self._client.send(request, stream=True)
        self._cookies.store(response.headers.get_list("set-cookie"))
        body = bytearray()
        if response.status_code < 300 and "text/event-stream" in response.headers.get("content-type", ""):
            self._start(self._receive_stream(response))
        else:
            async with aclosing(response):
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > self._limit:
                        raise RemoteProtocolError(f"the answer to a message is larger than {self._limit} bytes")
        return _PostAnswer(response.status_code, response.headers, bytes(body))

    async def _receive_stream(self, response: httpx.Response) -> None:
        """Receive the messages of a stream that answers a post."""
        parser = EventParser(self._limit)
        try:
            async with aclosing(response):
                async for piece in response.aiter_bytes():
                    await self._reading.wait()
                    for event in parser.feed(piece):
                        self._receive(event.data)
                for event in parser.feed(b"\n\n"):  # some end with the data of the last event
                    self._receive(event.data)
        except AcpError as error:
            self._fail(error)
        except (httpx.HTTPError, OSError) as error:
            self._fail(ConnectionClosed(f"the connection was lost: {str(error) or type(error).__name__}"))

    async def _open(self, line: bytes, method: str) -> None:
        if method != "initialize":
            raise LocalProtocolError("the first message to a remote agent has to be `initialize`")
        response = await self._exchange(line, None)
        if response.status_code != 200:
            headers = response.headers
            raise refused_by_status(
                self._url, response.status_code, headers.get("location"), headers.get("retry-after")
            )
        self._connection_id = response.headers.get(CONNECTION_ID, "")
        if not is_header_text(self._connection_id):
            self._connection_id = ""
            hint = "check the address: an agent is usually at `/acp`"
            raise ConnectionRefused(
                f"`{shown_address(self._url)}` does not speak ACP: its answer has no `{CONNECTION_ID}`", hint=hint
            )
        self._listen(None)
        self._receive(response.content)

    async def _answered(self, response: "_PostAnswer", head: MessageHead, method: str, session: str | None) -> None:
        status = response.status_code
        if status < 300:
            if response.content.strip():
                self._receive(response.content)
        elif status == 404 and session is not None and head.key and method:
            # The official Python server answers so for a session that it does not know. If it is the connection, its stream ends.
            self._requests.pop(head.key, None)
            self._receive(_refusal(head.key, status, response.content))
        elif status in _FATAL or status < 400 or not head.key or not method:
            raise ConnectionClosed(f"the server refused a message with HTTP status {status}")
        else:
            self._requests.pop(head.key, None)
            self._receive(_refusal(head.key, status, response.content))

    def _headers(self, session: str | None, *, posts: bool) -> dict[str, str]:
        found = {"Content-Type": "application/json"} if posts else {"Accept": "text/event-stream"}
        if self._connection_id:
            found[CONNECTION_ID] = self._connection_id
        if session is not None:
            found[SESSION_ID] = session
        if self._cookies.header:
            found["Cookie"] = self._cookies.header
        return found

    # What arrives.

    def _listen(self, session: str | None) -> "_Stream":
        stream = self._streams.get(session)
        if stream is None:
            stream = self._streams[session] = _Stream(self, session)
            self._start(stream.run())
        return stream

    async def events(self, session: str | None, last_id: str) -> AsyncGenerator[tuple[bytes, str], None]:
        """Open a stream and give each message with the id of its event. Raises `_NoStream` if the server has none."""
        headers = self._headers(session, posts=False)
        if is_header_text(last_id):
            headers["Last-Event-ID"] = last_id
        timeout = httpx.Timeout(OPEN_TIMEOUT, read=STREAM_TIMEOUT)
        async with self._client.stream("GET", self._url, headers=headers, timeout=timeout) as response:
            if response.status_code != 200:
                raise _NoStream(response.status_code)
            yield b"", last_id  # it is open
            parser = EventParser(self._limit)
            async for piece in response.aiter_bytes():
                await self._reading.wait()
                for event in parser.feed(piece):
                    yield event.data, event.id
                if parser.last_id:
                    yield b"", parser.last_id  # also an id without an event, with which a stream begins

    def received(self, message: bytes, session: str | None) -> None:
        """Take a message from a stream."""
        if session is None and self._requests and (head := head_of(message)) is not None:
            method, of = self._requests.get(head.key, ("", None))
            if not head.name and method in REPLAYS and of in self._streams:
                self._start(self._receive_later(message, self._streams[of]))
                return
        self._receive(message)

    async def _receive_later(self, message: bytes, stream: "_Stream") -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(QUIET_LIMIT):
                await stream.quiet(QUIET)
        self._receive(message)

    def _receive(self, message: bytes) -> None:
        if b'"id"' in message and (head := head_of(message)) is not None and head.key:
            if not head.name:
                self._follow(head)
            elif (session := head.session_of(head.params)) is not None:
                self._asked[head.key] = session
        if self.sink is not None and self.lost is None:
            self.sink.block_received(on_lines(message) + b"\n")

    def _follow(self, head: MessageHead) -> None:
        """A response to a request about a session: listen to one that was opened, and no more to one that has ended."""
        method, session = self._requests.pop(head.key, ("", None))
        if method in _OPENS and not isinstance(head.result, UnsetType):
            opened = head.session_of(head.result) or session
            if opened is not None and is_header_text(opened):
                self._listen(opened)
        elif method in _ENDS and not isinstance(head.result, UnsetType):
            stream = self._streams.pop(session, None)
            if stream is not None:
                stream.cancel()

    def stream_refused(self, session: str | None) -> None:
        """The server has no stream for a session now. The next message about it asks again."""
        self._streams.pop(session, None)

    def stream_failed(self, error: AcpError) -> None:
        """The stream of the connection has ended, and the connection with it."""
        self._fail(error)

    def _fail(self, error: AcpError) -> None:
        closed = error if isinstance(error, ConnectionClosed) else ConnectionClosed(error.sentence, hint=error.hint)
        closed.__cause__ = error if closed is not error else None
        self._lose(closed)
        self._queue.clear()  # what the peers believe to be lost is not sent
        self._queued = 0
        self._room.set()
        for stream in self._streams.values():
            stream.cancel()

    def pause(self) -> None:
        self._reading.clear()

    def resume(self) -> None:
        self._reading.set()

    def _start_reading(self) -> None:
        self._reading.set()

    # The end.

    async def close(self) -> None:
        if self._closing is None:
            self._closing = self.loop.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        with suppress(TimeoutError, AcpError):
            async with asyncio.timeout(CLOSE_TIMEOUT):
                self.flush()
                while self._queued and self.lost is None:
                    self._room.clear()
                    await self._room.wait()
        for task in (*self._tasks,):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._connection_id and not isinstance(self.lost, ConnectionClosed):
            with suppress(httpx.HTTPError, OSError, TimeoutError):
                async with asyncio.timeout(CLOSE_TIMEOUT):
                    await self._client.delete(self._url, headers=self._headers(None, posts=True))
        await self._client.aclose()
        self._lose(ConnectionClosed("the connection is closed"))


class _PostAnswer(NamedTuple):
    status_code: int
    headers: httpx.Headers
    content: bytes


class _NoStream(Exception):
    """A server refused to open a stream."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class _Stream:
    """The stream of a session, or of the connection. When it ends it is opened again after the last event that arrived.

    That of the connection is opened again only if the server numbers its events: without numbers what was on its way is lost.
    """

    def __init__(self, transport: HttpTransport, session: str | None) -> None:
        self._task: asyncio.Task[object] | None = None
        self._transport = transport
        self._session = session
        self._tried = asyncio.Event()
        self._again = asyncio.Event()
        self._received = asyncio.Event()
        self._last_id = ""
        self._was_tried = False
        self._over = False
        """Set where the last message of the stream was the one that ends it, so that its task cannot be cancelled."""

    async def ready(self) -> None:
        """Wait until the stream is open, or the server did not open it."""
        await self._tried.wait()

    def try_again(self) -> None:
        """Open the stream now if the server did not before."""
        self._again.set()

    async def quiet(self, seconds: float) -> None:
        """Wait until nothing has arrived for so long."""
        while True:
            self._received.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._received.wait()
            except TimeoutError:
                return

    def cancel(self) -> None:
        """Listen no more."""
        self._over = True
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    async def run(self) -> None:
        """Receive until the stream cannot be opened any more."""
        self._task = asyncio.current_task()
        failures, first = 0, None
        while True:
            opened = self._transport.loop.time()
            refused, reason, arrived = await self._receive_all()
            if reason is None:
                return
            first = first or reason
            self._tried.set()
            if arrived or self._transport.loop.time() - opened >= STREAM_HEALTHY:
                failures, first = 0, reason
            if refused and self._session is not None:
                if failures == len(STREAM_RETRIES):
                    # The server has no such stream: its messages may come on that of the connection.
                    self._transport.stream_refused(self._session)
                    return
            elif refused or not (self._session or self._last_id) or failures == len(STREAM_RETRIES):
                self._transport.stream_failed(first)
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(STREAM_RETRIES[failures]):
                    self._again.clear()
                    await self._again.wait()
            failures += 1

    async def _receive_all(self) -> tuple[bool, AcpError | None, bool]:
        """Open the stream and receive until it ends. Return whether the server refused it, why it ended, and whether a message arrived.

        Without a reason there is nothing more to receive: the connection has failed already, or the stream was ended by us.
        """
        arrived = False
        try:
            # Without an id it was cut before the first one arrived: what was sent into it is sent again.
            last_id = self._last_id or ("0" if self._was_tried and self._session is not None else "")
            self._was_tried = True
            async with aclosing(self._transport.events(self._session, last_id)) as events:
                async for message, id in events:
                    self._last_id = id
                    self._tried.set()
                    if message:
                        arrived = True
                        self._received.set()
                        self._transport.received(message, self._session)
                    if self._over:
                        return False, None, arrived
        except _NoStream as refused:
            reason = ConnectionClosed(f"the server opened no stream: HTTP status {refused.status}")
            # 409: the server takes a stream that was cut for open.
            return refused.status not in PASSING and refused.status != 409, reason, arrived
        except RemoteProtocolError as error:
            self._transport.stream_failed(error)
            return False, None, arrived
        except (httpx.HTTPError, OSError) as error:
            return False, ConnectionClosed(f"the connection was lost: {str(error) or type(error).__name__}"), arrived
        return False, ConnectionClosed("the server ended the connection"), arrived


def _refusal(id: bytes, status: int, body: bytes) -> bytes:
    """Return the response to a request that the server refused by a status: its own if it is one, or one of ours."""
    if (head := head_of(body)) is not None and head.key == id:
        return body
    reason = body[:ERROR_BODY].decode(errors="replace").strip()
    error = {
        "code": int(Code.INTERNAL_ERROR),
        "message": f"HTTP status {status}",
        "data": {"status": status, "body": reason},
    }
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id, msgspec.json.encode(error))


async def open_http(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    cookies: CookieJar | None = None,
    tls: ssl.SSLContext | None = None,
    limit: int = MAX_FRAME,
    timeout: float | None = OPEN_TIMEOUT,
    path: str | None = None,
) -> HttpTransport:
    """Prepare streamable HTTP at an `http://` or `https://` address. Proxies are those of the environment.

    `path`: the Unix socket to use instead of the host of the address. The server is reached with the first message.
    """
    # Not the authorities that `httpx` brings along: those of the system, as for a WebSocket.
    verify = tls or (ssl.create_default_context() if url.startswith("https:") else False)
    direct = dict.fromkeys(("all://", "http://", "https://")) if without_proxy(url) else None
    if path is not None:
        client = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=path, verify=verify), headers=dict(headers or {}), timeout=timeout
        )
    else:
        client = httpx.AsyncClient(
            headers=dict(headers or {}), timeout=timeout, verify=verify, limits=_LIMITS, mounts=direct
        )
    return HttpTransport(client, url, cookies or CookieJar(), limit)


_LIMITS: Final = httpx.Limits(max_connections=None, max_keepalive_connections=8)
"""A stream for each session is a connection of its own in HTTP/1.1."""
