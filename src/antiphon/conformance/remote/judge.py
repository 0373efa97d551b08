"""A server for clients under check: both remote profiles on loopback, byte by byte, with a small correct agent behind them.

It keeps every request and every frame, and does what a scenario wants: sets a cookie, asks for permission, redirects, cuts a stream.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Final
from urllib.parse import urlsplit

import msgspec

from antiphon.conformance.remote.raw_http import CONNECTION, SESSION, ExchangeLog, HttpHead, read_body, read_head
from antiphon.conformance.remote.raw_websocket import CLOSE, PING, TEXT, RawFrame, accept_key, encode, read_frame
from antiphon.traffic.entries import Direction, Entry, JsonObject

__all__ = ["JudgeScript", "JudgeServer", "SeenRequest"]

COOKIE: Final = "antiphon_affinity=judge"
EARLIER: Final = "judge-earlier"
"""A session that was there before the client came."""

LARGE: Final = 2 * 1024 * 1024
PERMISSION: Final = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """A request of the client, or the handshake of its WebSocket."""

    method: str
    head: HttpHead
    body: bytes
    entry: Entry

    @property
    def message(self) -> JsonObject:
        """The message that was posted; empty if the request has no body."""
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            found = msgspec.json.decode(self.body)
            return found if isinstance(found, dict) else {}
        return {}

    @property
    def asked(self) -> str:
        return str(self.message.get("method", ""))

    @property
    def session(self) -> str:
        """The session of the params; empty without one."""
        params = self.message.get("params")
        found = params.get("sessionId") if isinstance(params, dict) else None
        return found if isinstance(found, str) else ""


@dataclass(slots=True)
class JudgeScript:
    """What a scenario wants of the server."""

    permission: bool = False
    """Whether the agent asks for permission in a turn."""
    odd_events: bool = False
    """Whether events have comments, ids, several data lines and CRLF, and come in small pieces."""
    redirect: str = ""
    """Where every request is redirected to."""
    cut: str = ""
    """What ends in the middle of a turn: `stream`, that of the session, or `all`."""
    fails: str = ""
    """A method whose post gets status 500."""
    before_answer: Callable[["_Socket"], "list[bytes]"] | None = None
    """Frames that are sent before the response to a prompt."""
    fragments: bool = False
    """Whether messages come in several frames."""
    waits: bool = False
    """Whether a turn goes on until it is cancelled."""


@dataclass(slots=True)
class _Socket:
    """One end of a connection over which messages go to the client."""

    send: Callable[[JsonObject, str | None], None]
    cut: Callable[[], None]
    raw: Callable[[bytes], None] = lambda data: None


@dataclass(slots=True)
class _Stream:
    writer: asyncio.StreamWriter
    number: int = 0


@dataclass(slots=True)
class JudgeServer:
    """The server. `url` is its address for a profile."""

    script: JudgeScript = field(default_factory=JudgeScript)
    log: ExchangeLog = field(default_factory=ExchangeLog)
    requests: list[SeenRequest] = field(default_factory=list)
    frames: list[RawFrame] = field(default_factory=list)
    messages: list[Entry] = field(default_factory=list)
    """All messages of the client, over either profile."""
    connection: str = ""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)
    _streams: dict[str, _Stream] = field(default_factory=dict)
    _kept: dict[str, list[bytes]] = field(default_factory=dict)
    _sessions: int = 0
    _turn: object = None
    _gone: bool = False
    _waiting: tuple[object, str] | None = None

    async def start(self) -> None:
        """Listen on a free port of the loopback interface."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=1024 * 1024)

    def url(self, scheme: str) -> str:
        """The address for a profile, by its scheme: `http` or `ws`."""
        port = self._server.sockets[0].getsockname()[1] if self._server is not None else 0
        return f"{scheme}://127.0.0.1:{port}/acp"

    async def until(self, wanted: Callable[[], bool], limit: float) -> bool:
        """Wait until something has been received."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                while not wanted():
                    self.changed.clear()
                    await self.changed.wait()
        return wanted()

    async def close(self) -> None:
        """End it, with all connections."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.close()

    # Connections.

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer), name="a connection of the client")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, EOFError, ValueError):
            while True:
                head = await read_head(reader)
                method = head.first.split()[0] if head.first else ""
                body = await read_body(head, reader, to_end=False)
                entry = self.log.note(Direction.C2A, head.raw + body[:2000])
                seen = SeenRequest(method, head, body, entry)
                self.requests.append(seen)
                self.changed.set()
                if await self._answer(seen, reader, writer):
                    return
                await writer.drain()
        writer.close()

    async def _answer(self, seen: SeenRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer a request; whether the connection is not for requests any more."""
        is_socket = seen.head.get("upgrade").lower() == "websocket"
        if self.script.redirect:
            to = urlsplit(self.script.redirect)._replace(scheme="ws" if is_socket else "http").geturl()
            _respond(writer, 307, {"Location": to})
        elif self._gone:
            _respond(writer, 404)
        elif is_socket:
            await self._serve_socket(seen, reader, writer)
            return True
        elif seen.method == "GET":
            await self._open_stream(seen, writer)
            return True
        elif seen.method == "POST":
            self._posted(seen, writer)
        else:
            _respond(writer, 202)
        return False

    # Streamable HTTP.

    def _posted(self, seen: SeenRequest, writer: asyncio.StreamWriter) -> None:
        if seen.asked == "initialize":
            self.connection = token_hex(16)
            self._note(seen.body)
            body = msgspec.json.encode({"jsonrpc": "2.0", "id": seen.message.get("id"), "result": _HELLO})
            headers = {
                "Content-Type": "application/json",
                CONNECTION: self.connection,
                "Set-Cookie": f"{COOKIE}; Path=/acp; HttpOnly",
            }
            _respond(writer, 200, headers, body)
        elif self.script.fails and seen.asked == self.script.fails:
            _respond(writer, 500, {"Content-Type": "text/plain"}, b"the judge fails here\n")
        else:
            _respond(writer, 202)
            self._received(seen.body, _Socket(self._event, self._cut_http))

    async def _open_stream(self, seen: SeenRequest, writer: asyncio.StreamWriter) -> None:
        session = seen.head.get(SESSION)
        before = self._streams.get(session)
        stream = _Stream(writer, before.number if before is not None else 0)
        if before is None or before.writer.is_closing():  # one that is opened beside another gets nothing
            self._streams[session] = stream
        head = (
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + (b": the stream is open\n\n" if self.script.odd_events else b""))
        for data in self._kept.pop(session, []):
            self._write_event(stream, data)
        await writer.drain()

    def _event(self, message: JsonObject, session: str | None) -> None:
        data = msgspec.json.encode(message)
        self.log.note(Direction.A2C, data)
        stream = self._streams.get(session or "")
        if stream is None or stream.writer.is_closing():
            self._kept.setdefault(session or "", []).append(data)
        else:
            self._write_event(stream, data)

    def _write_event(self, stream: _Stream, data: bytes) -> None:
        stream.number += 1
        if not self.script.odd_events:
            stream.writer.write(b"id: %d\ndata: %b\n\n" % (stream.number, data))
            return
        at = data.index(b",") + 1  # a line end between two members is white space
        text = b"event: message\r\nid: %d\r\nretry: 1000\r\ndata: %b\r\ndata:%b\r\n\r\n: a comment\r\n\r\n" % (
            stream.number,
            data[:at],
            data[at:],
        )
        for start in range(0, len(text), 7):
            stream.writer.write(text[start : start + 7])

    def _cut_http(self) -> None:
        if self.script.cut == "all":
            self._gone = True
            for stream in self._streams.values():
                stream.writer.close()
        else:
            for session, stream in self._streams.items():
                if session:
                    stream.writer.close()

    # WebSocket.

    async def _serve_socket(
        self, seen: SeenRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        fields = {
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Accept": accept_key(seen.head.get("sec-websocket-key")),
        }
        fields |= {CONNECTION: token_hex(16), "Set-Cookie": f"{COOKIE}; Path=/acp; HttpOnly"}
        lines = ["HTTP/1.1 101 Switching Protocols", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
        writer.write("\r\n".join(lines).encode())
        parts: list[bytes] = []

        def send(message: JsonObject, session: str | None) -> None:
            data = msgspec.json.encode(message)
            self.log.note(Direction.A2C, data)
            if self.script.fragments:
                at = len(data) // 2
                writer.write(encode(TEXT, data[:at], fin=False, mask=False) + encode(PING, b"between", mask=False))
                writer.write(encode(0, data[at:], mask=False))
            else:
                writer.write(encode(TEXT, data, mask=False))

        def cut() -> None:
            writer.transport.abort()

        socket = _Socket(send, cut, writer.write)
        with suppress(OSError, EOFError, ValueError):
            while True:
                frame = await read_frame(reader)
                self.frames.append(frame)
                self.changed.set()
                if frame.opcode == CLOSE:
                    writer.write(encode(CLOSE, frame.payload[:2], mask=False))
                    await writer.drain()
                    break
                if frame.opcode in (TEXT, 0):
                    parts.append(frame.payload)
                    if frame.fin:
                        self._received(b"".join(parts), socket)
                        parts = []
                await writer.drain()
        writer.close()

    # The agent.

    def _note(self, body: bytes) -> Entry:
        entry = self.log.note(Direction.C2A, body)
        self.messages.append(entry)
        self.changed.set()
        return entry

    def _received(self, body: bytes, socket: _Socket) -> None:
        entry = self._note(body)
        if entry.is_request:
            self._request(entry, socket)
        elif entry.method == "session/cancel" and self._waiting is not None:
            self._end(socket, *self._waiting, reason="cancelled")
        elif entry.is_response and self._waiting is not None and not self.script.waits:
            self._end(socket, *self._waiting)

    def _request(self, entry: Entry, socket: _Socket) -> None:
        session = str(entry.params.get("sessionId") or "")
        result: JsonObject = {}
        match entry.method:
            case "initialize":
                result = _HELLO
            case "session/new":
                self._sessions += 1
                result = {"sessionId": f"judge-{self._sessions}"}
            case "session/list":
                result = {"sessions": [{"sessionId": EARLIER, "cwd": str(entry.params.get("cwd") or "/")}]}
            case "session/load":
                socket.send(_message_update(session, "user_message_chunk", "earlier"), session)
            case "session/prompt":
                self._prompted(entry, session, socket)
                return
            case _:  # whatever else it is, there is nothing to add
                pass
        route = session if session and entry.method not in ("session/load",) else None
        socket.send({"jsonrpc": "2.0", "id": entry.msg["id"], "result": result}, route)

    def _prompted(self, entry: Entry, session: str, socket: _Socket) -> None:
        socket.send(_message_update(session, "agent_message_chunk", "Grüße from the judge."), session)
        self._waiting = entry.msg["id"], session
        if self.script.cut:
            socket.cut()
            if self.script.cut == "stream":
                self._end(socket, *self._waiting)
        elif self.script.permission:
            call = {"toolCallId": "judge-1", "title": "Look at the time", "kind": "other"}
            params = {"sessionId": session, "toolCall": call, "options": PERMISSION}
            socket.send(
                {"jsonrpc": "2.0", "id": "judge", "method": "session/request_permission", "params": params}, session
            )
        elif not self.script.waits:
            for data in self.script.before_answer(socket) if self.script.before_answer is not None else []:
                socket.raw(data)
            self._end(socket, *self._waiting)

    def _end(self, socket: _Socket, id: object, session: str, reason: str = "end_turn") -> None:
        self._waiting = None
        socket.send({"jsonrpc": "2.0", "id": id, "result": {"stopReason": reason}}, session)


_HELLO: Final[JsonObject] = {
    "protocolVersion": 1,
    "agentCapabilities": {"loadSession": True, "sessionCapabilities": {"list": {}}},
    "agentInfo": {"name": "antiphon-check", "title": "Judge of Antiphon's check", "version": "1"},
    "authMethods": [],
}


def _message_update(session: str, kind: str, text: str) -> JsonObject:
    update = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}}


def large_update(session: str) -> bytes:
    """A frame with an update of 2 MiB."""
    return encode(TEXT, msgspec.json.encode(_message_update(session, "agent_message_chunk", "x" * LARGE)), mask=False)


def _respond(
    writer: asyncio.StreamWriter, status: int, fields: dict[str, str] | None = None, body: bytes = b""
) -> None:
    listed = {**(fields or {}), "Content-Length": str(len(body))}
    lines = [
        f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}",
        *(f"{name}: {value}" for name, value in listed.items()),
        "",
        "",
    ]
    writer.write("\r\n".join(lines).encode() + body)


_REASONS: Final = {
    200: "OK",
    202: "Accepted",
    307: "Temporary Redirect",
    404: "Not Found",
    500: "Internal Server Error",
}
