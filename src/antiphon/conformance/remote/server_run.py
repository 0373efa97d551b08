"""One scenario with one server: ACP connections to it over one of the remote profiles, and the verdicts."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from antiphon.conformance.agent_run import AUTH_REQUIRED, CheckOptions
from antiphon.conformance.remote.raw_http import (
    CONNECTION,
    SESSION,
    ExchangeLog,
    HttpAddress,
    HttpReply,
    RawStream,
    result_of,
)
from antiphon.conformance.remote.raw_websocket import TEXT, RawSocket
from antiphon.conformance.requirements import Blocked, NotOffered, NotSeen
from antiphon.conformance.wire import VerdictRecorder
from antiphon.traffic.entries import Direction, Entry, JsonObject, objects_in, texts_in

__all__ = ["HttpPeer", "RemotePeer", "ServerRun", "SocketPeer", "is_update", "request_of"]

INITIALIZE: Final[JsonObject] = {
    "protocolVersion": 1,
    "clientCapabilities": {},
    "clientInfo": {"name": "antiphon-check", "title": "Antiphon check", "version": "1"},
}
"""The params of a client that can do nothing, so that an agent asks it for permission alone."""

PERMISSION: Final = "session/request_permission"


def request_of(id: object, method: str, params: object) -> bytes:
    """A request as JSON."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def is_update(session: str) -> Callable[[Entry], bool]:
    """Whether a message is an update of a session."""
    return lambda entry: entry.method == "session/update" and entry.params.get("sessionId") == session


class RemotePeer(ABC):
    """One ACP connection to a server. Messages of all its streams are in `received`, in the order in which they came."""

    def __init__(self, address: HttpAddress, log: ExchangeLog, options: CheckOptions) -> None:
        self.address = address
        self.log = log
        self.options = options
        self.received: list[Entry] = []
        self.initialized: JsonObject = {}
        self._changed = asyncio.Event()
        self._ids = 0

    def notice(self, entry: Entry) -> None:
        """Take something that came: a message, or a sign that a stream has ended."""
        if not entry.is_noise:
            self.received.append(entry)
        self._changed.set()

    async def until(self, wanted: Callable[[], bool], limit: float | None = None) -> bool:
        """Wait until something holds that messages or ends of streams can bring about; whether it does, within the limit."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.options.limit if limit is None else limit):
                while not wanted():
                    self._changed.clear()
                    await self._changed.wait()
        return wanted()

    async def silence(self) -> None:
        """Wait until nothing has come for a while."""
        before = -1
        while before != len(self.received):
            before = len(self.received)
            await asyncio.sleep(self.options.silence)

    def find(self, wanted: Callable[[Entry], bool]) -> Entry | None:
        """The first message that is wanted, if it has come."""
        return next((entry for entry in self.received if wanted(entry)), None)

    async def message(self, wanted: Callable[[Entry], bool], limit: float | None = None) -> Entry | None:
        """The first message that is wanted; None where it does not come in time."""
        await self.until(lambda: self.find(wanted) is not None, limit)
        return self.find(wanted)

    def new_id(self) -> int:
        """An id that was not used."""
        self._ids += 1
        return self._ids

    @abstractmethod
    async def connect(self, headers: Mapping[str, str | None] | None = None) -> None:
        """Open the connection, `initialize` included.

        Raises:
            Blocked: there is none.
        """

    @abstractmethod
    async def send(self, body: bytes, session: str | None = None) -> Entry:
        """Send a message as a correct client does; return what stands for it as evidence.

        Raises:
            Blocked: it is not taken.
        """

    @abstractmethod
    async def close(self) -> None:
        """End the connection."""

    @abstractmethod
    async def listen(self, session: str) -> None:
        """Read the messages of a session, where that takes a stream of its own."""

    async def ask(self, method: str, params: JsonObject, *, id: object = None) -> object:
        """Send a request; return its id."""
        number = self.new_id() if id is None else id
        session = params.get("sessionId")
        await self.send(request_of(number, method, params), session if isinstance(session, str) else None)
        return number

    def answer(self, id: object) -> Entry | None:
        """The response to a request, if it has come. The type of the id counts: 1 is not "1"."""
        return self.find(
            lambda one: one.is_response and one.msg.get("id") == id and type(one.msg.get("id")) is type(id)
        )

    async def response(self, id: object, what: str) -> Entry:
        """Wait for the response to a request.

        Raises:
            Blocked: it did not come.
        """
        await self.until(lambda: self.answer(id) is not None)
        found = self.answer(id)
        if found is None:
            raise Blocked(f"`{what}` was not answered within {self.options.limit:g} s")
        return found

    async def request(self, method: str, params: JsonObject) -> Entry:
        """Send a request, and wait for its response.

        Raises:
            Blocked: it did not come.
        """
        return await self.response(await self.ask(method, params), method)

    async def session(self, cwd: Path) -> str:
        """Open a session and read its messages; return its id.

        Raises:
            Blocked: there is none.
        """
        found = await self.new_session(cwd)
        await self.listen(found)
        return found

    async def new_session(self, cwd: Path) -> str:
        """Open a session, and read nothing of it yet; return its id.

        Raises:
            Blocked: there is none.
        """
        params = {"cwd": str(cwd), "mcpServers": []}
        response = await self.request("session/new", params)
        error = response.msg.get("error")
        if isinstance(error, dict) and error.get("code") == AUTH_REQUIRED and self.options.auth is not None:
            await self.request("authenticate", {"methodId": self.options.auth})
            response = await self.request("session/new", params)
        found = result_of(response).get("sessionId")
        if not isinstance(found, str):
            raise Blocked("`session/new` gave no session")
        return found

    async def prompt(self, session: str, purpose: str) -> object:
        """Start a turn; return the id of its request.

        Raises:
            NotSeen: there is no prompt for it.
        """
        text = self.options.prompts.text(purpose, cwd="", file="antiphon-check.txt", text="antiphon", command="true")
        if not text:
            raise NotSeen(f"there is no prompt for `{purpose}`: a prompt file can name one")
        content = [{"type": "text", "text": text}]
        return await self.ask("session/prompt", {"sessionId": session, "prompt": content})

    def refusal(self, asked: Entry) -> bytes:
        """The response to a permission request of a user who refuses, so that nothing is changed there."""
        options = objects_in(asked.params.get("options"))
        refusing = [one for one in options if str(one.get("kind")).startswith("reject")] or options
        chosen = next(iter(texts_in(refusing, "optionId")), None)
        outcome = {"outcome": "cancelled"} if chosen is None else {"outcome": "selected", "optionId": chosen}
        return msgspec.json.encode({"jsonrpc": "2.0", "id": asked.msg.get("id"), "result": {"outcome": outcome}})


class HttpPeer(RemotePeer):
    """A connection over streamable HTTP: posts, and a stream for the connection and for each session."""

    def __init__(self, address: HttpAddress, log: ExchangeLog, options: CheckOptions) -> None:
        super().__init__(address, log, options)
        self.id = ""
        self.opened: HttpReply | None = None
        self.streams: dict[str | None, RawStream] = {}
        self._all: list[RawStream] = []

    async def connect(self, headers: Mapping[str, str | None] | None = None) -> None:
        self.opened = await self.post(request_of(0, "initialize", INITIALIZE), headers=headers)
        self.id = self.opened.head.get(CONNECTION)
        body = self.opened.message
        if self.opened.status != 200 or not self.id or not isinstance(body, dict):
            raise Blocked(f"`initialize` opened no connection: status {self.opened.status}")
        result = body.get("result")
        self.initialized = result if isinstance(result, dict) else {}

    async def post(
        self, body: bytes, session: str | None = None, headers: Mapping[str, str | None] | None = None
    ) -> HttpReply:
        """Post a body with the headers of this connection, changed as wanted."""
        usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        ids = {CONNECTION: self.id or None, SESSION: session}
        return await self.address.exchange(self.log, "POST", {**usual, **ids, **(headers or {})}, body)

    async def send(self, body: bytes, session: str | None = None) -> Entry:
        reply = await self.post(body, session)
        if not 200 <= reply.status < 300:
            raise Blocked(f"a message was refused with status {reply.status}")
        return reply.request

    async def stream(self, session: str | None, headers: Mapping[str, str | None] | None = None) -> RawStream:
        """Ask for a stream; it may be refused."""
        ids = {CONNECTION: self.id or None, SESSION: session}
        found = await RawStream.open(self.address, self.log, {**ids, **(headers or {})}, self.notice)
        self._all.append(found)
        if found.is_open:
            self.streams[session] = found
        return found

    async def listen(self, session: str | None) -> None:
        if not (await self.stream(session)).is_open:
            raise Blocked("the stream was not opened")

    async def delete(self, id: str | None = None) -> HttpReply:
        """End a connection: this one, or another."""
        return await self.address.exchange(self.log, "DELETE", {CONNECTION: self.id if id is None else id})

    async def close(self) -> None:
        for one in self._all:
            await one.close()
        if self.id:
            with suppress(OSError, EOFError, ValueError):
                await self.delete()


class SocketPeer(RemotePeer):
    """A connection over a WebSocket."""

    def __init__(self, address: HttpAddress, log: ExchangeLog, options: CheckOptions) -> None:
        super().__init__(address, log, options)
        self._socket: RawSocket | None = None

    @property
    def socket(self) -> RawSocket:
        """The socket.

        Raises:
            Blocked: it is not open.
        """
        if self._socket is None or not self._socket.is_open:
            raise Blocked("the server does not switch to WebSocket")
        return self._socket

    async def shake(self, headers: Mapping[str, str | None] | None = None) -> RawSocket:
        """Do the handshake, and send nothing yet."""
        self._socket = await RawSocket.open(self.address, self.log, headers or {}, self.notice)
        return self._socket

    async def connect(self, headers: Mapping[str, str | None] | None = None) -> None:
        await self.shake(headers)
        await self.send(request_of(0, "initialize", INITIALIZE))
        self.initialized = result_of(await self.response(0, "initialize"))

    async def send(self, body: bytes, session: str | None = None) -> Entry:
        return await self.socket.send_frame(TEXT, body)

    async def listen(self, session: str) -> None:
        """Nothing has to be done: all messages come on the socket."""

    async def close(self) -> None:
        if self._socket is not None:
            await self._socket.close()


class ServerRun(VerdictRecorder):
    """What a scenario is given: connections to the server, and where to put verdicts."""

    def __init__(self, address: HttpAddress, options: CheckOptions, cwd: Path, *, over_http: bool) -> None:
        super().__init__()
        self.address = address
        self.options = options
        self.cwd = cwd
        self.log = ExchangeLog()
        self._over_http = over_http
        self._peers: list[RemotePeer] = []

    def http(self) -> HttpPeer:
        """One more connection over HTTP, which is not open yet."""
        made = HttpPeer(self.address, self.log, self.options)
        self._peers.append(made)
        return made

    def socket(self) -> SocketPeer:
        """One more WebSocket, which is not open yet."""
        made = SocketPeer(self.address, self.log, self.options)
        self._peers.append(made)
        return made

    async def connected(self) -> RemotePeer:
        """A connection over the profile that is checked, with `initialize` behind it."""
        if self._over_http:
            peer = self.http()
            await peer.connect()
            await peer.listen(None)
            return peer
        socket = self.socket()
        await socket.connect()
        return socket

    async def connected_http(self) -> HttpPeer:
        """The same, for a scenario about HTTP."""
        peer = self.http()
        await peer.connect()
        await peer.listen(None)
        return peer

    def need_load(self, peer: RemotePeer) -> None:
        """Go on only if sessions can be loaded.

        Raises:
            NotOffered: they cannot.
        """
        offered = peer.initialized.get("agentCapabilities")
        if not isinstance(offered, dict) or offered.get("loadSession") is not True:
            raise NotOffered("the agent does not offer `loadSession`")

    def sent(self, text: str) -> Entry:
        """A note of what was done, as evidence where no message is one."""
        return self.log.note(Direction.C2A, text.encode())

    async def close(self) -> None:
        """End all connections."""
        await asyncio.gather(*(peer.close() for peer in self._peers), return_exceptions=True)


PlayServer = Callable[[ServerRun], Awaitable[None]]
"""A scenario for servers."""
