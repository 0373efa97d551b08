"""One remote connection, whatever is behind the gateway: its lines are read for a moment at a time, and each message goes to what handles it.

What leaves is bounded: a client that does not read its responses is not read on, and one that never does is closed.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from antiphon.errors import Code, ConnectionClosed, RequestError
from antiphon.gateway.access.messages import check_spelling
from antiphon.gateway.base import AccessRole, Principal
from antiphon.gateway.clients.capabilities import ClientOffer, read_offer
from antiphon.gateway.clients.dialect import OpenCodeDialect
from antiphon.gateway.settings import without_boolean_options
from antiphon.gateway.turns import with_recovery
from antiphon.protocol.v1.version import V1
from antiphon.protocol.version import chosen_version
from antiphon.rpc.envelope import (
    BAD_INPUT,
    ErrorObject,
    Frame,
    Malformed,
    Noise,
    Notification,
    Overlong,
    Request,
    RequestId,
    Response,
    decode,
    error_frame,
)
from antiphon.rpc.peer import id_key
from antiphon.rpc.spans import UNREADABLE
from antiphon.transports.asgi.connections import HttpConnection
from antiphon.transports.base import OUTPUT_HIGH, Transport

if TYPE_CHECKING:
    from antiphon.gateway.clients.translation import ClientTranslation
    from antiphon.gateway.methods.base import GatewayHub

__all__ = ["MAX_OPEN", "GatewayConnection"]

MAX_OPEN: Final = 1000
"""Requests of one connection that may wait for their responses."""

MAX_OWED: Final = 64 * 1024 * 1024
"""Bytes that wait for a client which does not read, beside events. More ends its connection."""

SLICE: Final = 0.005
"""Seconds for which lines of one client are handled before it is the turn of others: one frame may hold a million of them."""

MAX_VERSION: Final = 65_535
VERSIONS: Final = (1, 2)
"""The versions of ACP that clients may speak."""

_log = logging.getLogger(__name__)

Way = TypeVar("Way")
"""Where a request of the client went."""


class _Asked(msgspec.Struct, rename="camel"):
    protocol_version: object = None


def _version_in(message: object) -> int:
    """Return the version of ACP that a message asks for. One that is no `initialize`, or makes no sense, means version 1."""
    if not isinstance(message, Request) or message.method != "initialize":
        return 0
    try:
        asked = msgspec.json.decode(message.params, type=_Asked).protocol_version
    except BAD_INPUT:
        return V1.number
    return asked if type(asked) is int and 0 <= asked <= MAX_VERSION else V1.number


class GatewayConnection(ABC, Generic[Way]):
    """The sink of the transport to one client."""

    def __init__(self, transport: Transport, principal: Principal) -> None:
        self.transport = transport
        self.principal = principal
        self.offer = ClientOffer()
        """What it can show and serve, and what it asked for."""
        self.closed = asyncio.Event()
        self._is_initialized = False
        self._answered_once = False
        """Whether `initialize` was answered, with a result or an error: what needs no agent works from then on."""
        self._open: dict[object, Way | None] = {}
        """Requests of the client without a response; those that were forwarded, with where they are."""
        self._dialect: OpenCodeDialect | None = None
        self._translation: ClientTranslation | None = None
        """What translates for a client that speaks another version of ACP than the gateway."""
        self._unread: deque[bytes] = deque()
        """Blocks of lines that arrived and are not handled yet. They are not split at once: short lines would take ten times the memory."""
        self._at = 0
        """How much of the first block is handled."""
        self._is_held = False
        """Whether handling them waits for the client or the agent to read."""
        self._owed = 0
        """Bytes that were sent and are no events, since the client was last seen to read."""

    @property
    @abstractmethod
    def hub(self) -> "GatewayHub":
        """What is behind the connection."""

    def may(self, role: AccessRole, key: str | None = None) -> bool:
        """Whether it may do what needs this role."""
        return self.principal.may(role, key)

    async def serve(self) -> None:
        """Talk with the client until it leaves."""
        if isinstance(self.transport, HttpConnection):
            self.transport.stream_opened = self._stream_opened
        try:
            self.transport.attach(self)
            await self.closed.wait()
        finally:
            self._leave()
            await self.transport.close()

    def close_soon(self, why: str) -> None:
        """End the connection: the client may come back."""
        _log.info("the connection of `%s` is closed: %s", self.principal.name, why)
        self.closed.set()

    def connection_lost(self, error: ConnectionClosed) -> None:
        """Handle the end of the connection."""
        self.closed.set()
        if self._translation is not None:
            self._translation.connection_lost(error)
        self._leave()

    @abstractmethod
    def _leave(self) -> None:
        """Forget what was for this client. Called once or more."""

    @abstractmethod
    def _stream_opened(self, session_id: str, last_id: str) -> None:
        """Send what comes after the event that the client of a stream over HTTP has seen last."""

    # What leaves.

    def put(
        self,
        frame: bytes,
        session_id: str | None = None,
        answers: RequestId | UnsetType = UNSET,
        *,
        number: int | None = None,
    ) -> None:
        """Send one frame. `answers` is the id of the request that it responds to, `number` that of its event."""
        if not isinstance(answers, UnsetType):
            self._open.pop(id_key(answers), None)
        transport = self.transport
        if transport.lost is not None or self.closed.is_set():
            return
        if not self.offer.booleans and b'"boolean"' in frame:
            frame = without_boolean_options(frame)
        if self._dialect is not None:
            frame = self._dialect.sent(frame, session_id, answers, number or 0)
        if not number:
            self._owed += len(frame)
            if self._owed > MAX_OWED and transport.unsent > MAX_OWED:
                self.close_soon("it does not read what is sent to it")
                return
        if self._translation is not None:
            self._translation.send_to_client(frame)
            return
        if isinstance(transport, HttpConnection):
            transport.route(frame, session_id, answers, number or 0)
            return
        transport.out += frame
        transport.out += b"\n"
        transport.flush_soon()

    def put_block(self, block: bytes) -> None:
        """Send whole lines, with those of other sessions that were stored in the same commit."""
        if self.transport.lost is None:
            self.transport.out += block
            self.transport.gather()

    def refuse(
        self,
        request: Request,
        code: int,
        why: str,
        hint: str = "",
        session_id: str | None = None,
        *,
        recovery: Mapping[str, object] | None = None,
    ) -> None:
        """Answer a request with an error. `recovery`: what its data have about another try, where the code does not say it."""
        error = with_recovery(code, why, {**({"hint": hint} if hint else {}), **(recovery or {})})
        self.put(error_frame(request.id, error), session_id, request.id)

    # What arrives.

    def block_received(self, block: Frame) -> None:
        """Take whole lines."""
        if self.closed.is_set():
            return
        if isinstance(block, Overlong):
            self._message(decode(block), b"")
            return
        self._unread.append(bytes(block))
        if not self._is_held:
            self._read_on()

    def _read_on(self) -> None:
        """Handle what has arrived, as long as the client reads its responses and the agent reads what it is sent, and for a moment at a time."""
        was_held, self._is_held = self._is_held, False
        loop = asyncio.get_running_loop()
        until = loop.time() + SLICE
        while self._unread and not self.closed.is_set():
            slow = self._slow_reader()
            if slow is not None or loop.time() > until:
                self._is_held = True
                self.transport.pause()
                if slow is not None:
                    slow.when_drained(self._read_on)
                else:
                    loop.call_soon(self._read_on)
                return
            line = self._next_line()
            if line and not line.isspace():
                self._message(decode(line), line)
        if was_held:
            self.transport.resume()

    def _next_line(self) -> bytes:
        """Take the next line of what has arrived."""
        block, begin = self._unread[0], self._at
        end = block.find(b"\n", begin)
        self._at = end + 1
        if end < 0 or self._at == len(block):
            self._unread.popleft()
            self._at = 0
        return block[begin:] if end < 0 else block[begin:end]

    def _slow_reader(self) -> Transport | None:
        """Return the transport that has to be waited for before more is handled. Events do not count: a cancellation must get through."""
        if self._owed > OUTPUT_HIGH:
            if self.transport.unsent >= OUTPUT_HIGH:
                return self.transport
            self._owed = 0
        return self._slow_way()

    @abstractmethod
    def _slow_way(self) -> Transport | None:
        """Return the transport towards the agent if that does not read what it is sent."""

    async def room(self) -> None:
        """Wait until the client has read enough of its responses for another large one."""
        if self.transport.unsent >= OUTPUT_HIGH:
            with suppress(ConnectionClosed):
                await self.transport.drain()

    def _message(self, message: object, line: bytes) -> None:
        if self._translation is None:
            self.handle_message(message, line)
        elif self._is_initialized or _version_in(message) != V1.number:
            self._translation.line_received(message, line)
        else:  # its first try, in another version, has failed
            self._translation = None
            self.handle_message(message, line)

    def handle_message(self, message: object, line: bytes) -> None:
        """Handle a message of version 1."""
        if isinstance(message, Request | Notification | Response) and (why := check_spelling(line)):
            self._misspelled(message, why)
            return
        try:
            message, line = self._in_the_schema(message, line)
            match message:
                case Request():
                    self._request(message, line)
                case Notification():
                    self._notification(message, line)
                case Response():
                    self._response(message, line)
                case Noise():
                    self.put(error_frame(None, ErrorObject(Code.PARSE_ERROR, "Parse error", "not JSON")))
                case Malformed(answerable=True):
                    self.put(error_frame(message.id, message.error), None, message.id)
                case _:
                    pass
        except UNREADABLE as error:
            if isinstance(message, Request):
                self.refuse(message, Code.INVALID_REQUEST, f"the message cannot be read: {error}")

    def _misspelled(self, message: Request | Notification | Response, why: str) -> None:
        """Refuse what can be read in two ways. A response is taken for an error: what it was to mean is in doubt."""
        if isinstance(message, Request):
            self.refuse(message, Code.INVALID_REQUEST, why)
        elif isinstance(message, Response):
            error = ErrorObject(Code.INVALID_REQUEST, why)
            self._response(Response(message.id, error=error), error_frame(message.id, error))

    def _in_the_schema(self, message: object, line: bytes) -> tuple[object, bytes]:
        """Return a message in the schema's words. The first one says whether the client uses others."""
        if isinstance(message, Request) and message.method == "initialize" and not self._is_initialized:
            if self._is_translated(message, line):
                return None, b""
            self._dialect = OpenCodeDialect() if OpenCodeDialect.is_spoken(bytes(message.params)) else None
        return (message, line) if self._dialect is None else self._dialect.received(message, line)

    def _is_translated(self, request: Request, line: bytes) -> bool:
        """Begin to translate, if `initialize` asks for another version. Returns whether it was handled."""
        if self._translation is not None:
            return False
        try:
            if chosen_version(_version_in(request), VERSIONS) == V1.number:
                return False
        except RequestError as error:
            self.put(error_frame(request.id, ErrorObject(error.code, error.message, error.data)), None, request.id)
            return True
        from antiphon.gateway.clients.translation import ClientTranslation

        self._translation = ClientTranslation(self)
        self._translation.line_received(request, line)
        return True

    def _request(self, request: Request, line: bytes) -> None:
        key = id_key(request.id)
        if key in self._open:
            return  # an error under this id would end the first one
        if len(self._open) >= MAX_OPEN:
            self.refuse(request, Code.INVALID_REQUEST, f"{MAX_OPEN} requests wait for their responses")
            return
        self._open[key] = None
        if request.method == "initialize" and not self._is_initialized:
            self._begin(request, line)
        elif request.method == "initialize":
            self.refuse(request, Code.INVALID_REQUEST, "this connection has been initialized")
        elif not self._is_initialized and not (self._answered_once and self._needs_no_agent(request.method)):
            self.refuse(request, Code.INVALID_REQUEST, "the first request has to be `initialize`")
        else:
            self._handle(request, line)

    def begin_again(self) -> None:
        """Take another `initialize` in place of the one before."""
        self._is_initialized = False

    def _begin(self, request: Request, line: bytes) -> None:
        """Read what the client offers at once: requests may follow before the agent, which may have to be started, has answered."""
        try:
            self.offer, self._is_initialized = read_offer(request.params), True
        except BAD_INPUT as error:
            self.refuse(request, Code.INVALID_PARAMS, f"`initialize` cannot be read: {error}")
        else:
            self._introduce(request, line)

    @abstractmethod
    def _introduce(self, request: Request, line: bytes) -> None:
        """Answer `initialize`."""

    @abstractmethod
    def _needs_no_agent(self, method: str) -> bool:
        """Whether a method is about the whole gateway."""

    @abstractmethod
    def _handle(self, request: Request, line: bytes) -> None:
        """Handle a request of a client that is initialized."""

    @abstractmethod
    def _notification(self, notification: Notification, line: bytes) -> None:
        """Handle a notification."""

    @abstractmethod
    def _response(self, response: Response, line: bytes) -> None:
        """Handle the response to a request of the agent."""
