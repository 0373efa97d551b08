"""A client over a WebSocket that can set no header: it sends its token with `authenticate`, before anything else is answered.

The page that describes this way names `{"method": "password", "password": …}` and `{"method": "oauth", "token": …}`. Until the
token was right, `initialize` and `authenticate`, in version 2 `auth/login`, are answered and nothing else, three times and for ten seconds at most. A page in
a browser is never let in like this: it has no need to, and another site's page could try.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import msgspec

from antiphon import __version__
from antiphon.codes import meaning_of, recovery_from
from antiphon.errors import Code, ConnectionClosed
from antiphon.gateway.access.checks import Access
from antiphon.gateway.access.tokens import AccessToken
from antiphon.gateway.clients.dialect import OpenCodeDialect
from antiphon.rpc.envelope import BAD_INPUT, Frame, Overlong
from antiphon.transports.asgi.connections import SocketConnection
from antiphon.transports.asgi.heads import Refusal
from antiphon.transports.base import Transport
from antiphon.transports.framing import lines_of

__all__ = ["LOGIN_TIMEOUT", "TRIES", "serve_login"]

TRIES: Final = 3
LOGIN_TIMEOUT: Final = 10.0
"""Seconds until the right token has to be there."""

HELD: Final = 64 * 1024
"""Bytes that a client may send before it is let in, in one message and in all."""


HINT: Final = "the token of the gateway is needed: with `--token-file` or ANTIPHON_TOKEN, as `Authorization: Bearer …`, or in `authenticate`"

_log = logging.getLogger(__name__)


class _Params(msgspec.Struct):
    """What `authenticate` may carry, in the words of the page and of the schema."""

    method: str = ""
    password: str = ""
    token: str = ""


class _Message(msgspec.Struct):
    id: int | str | None = None
    method: str = ""
    params: msgspec.Raw = msgspec.Raw(b"{}")
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


async def serve_login(
    transport: Transport, access: Access, address: str, may_go_on: Callable[[AccessToken], str]
) -> "tuple[LoginTransport, AccessToken] | None":
    """Let a client sign in, and return its token and the transport to serve it with; None: it did not, and the connection is closed.

    `may_go_on` returns why a token may open no further connection; empty if it may.
    """
    login = LoginTransport(transport, access, address, may_go_on)
    transport.attach(login)
    try:
        async with asyncio.timeout(LOGIN_TIMEOUT):
            return login, await login.signed_in
    except (TimeoutError, ConnectionClosed) as error:
        if isinstance(transport, SocketConnection):
            transport.close_status = (1008, str(error) or "no token was shown in time")
        await transport.close()  # and no abort: the client gets the answer to its last try
        return None


class LoginTransport(Transport):
    """A transport in front of another: it answers by itself until the client has signed in, and then stands aside."""

    def __init__(self, inner: Transport, access: Access, address: str, may_go_on: Callable[[AccessToken], str]) -> None:
        super().__init__()
        self.signed_in: asyncio.Future[AccessToken] = asyncio.get_running_loop().create_future()
        self._inner = inner
        self._access = access
        self._address = address
        self._may_go_on = may_go_on
        self._tries = 0
        self._received = 0
        self._initialize: bytes | None = None
        self._unanswered: int | str | None = None
        """The id of `initialize`, which was answered here: the second response is dropped."""
        self._held = bytearray()
        self._passing = False
        self._failing: asyncio.Future[None] | None = None

    # What arrives.

    def block_received(self, block: Frame) -> None:
        """Take what the client sent."""
        if self._passing and self.sink is not None:
            self.sink.block_received(block)
            return
        if self.signed_in.done() and not isinstance(block, Overlong):
            self._held += block
            if len(self._held) > HELD:
                self.pause()  # until it is served
            return
        self._received += 0 if isinstance(block, Overlong) else len(block)
        if isinstance(block, Overlong) or self._received > HELD:
            self.pause()
            self._refuse("too much was sent before the sign-in")
        else:
            for line in lines_of(block):
                if self.signed_in.done():
                    self._held += line + b"\n"
                else:
                    self._line_received(bytes(line))

    def _line_received(self, line: bytes) -> None:
        try:
            message = msgspec.json.decode(line, type=_Message)
        except BAD_INPUT:
            self._answer(None, Code.PARSE_ERROR, "this is not a message")
            return
        match message.method:
            case "initialize" if message.id is not None and self._initialize is None and len(line) <= HELD:
                self._initialize, self._unanswered = line, message.id
                self._reply(message.id, {"result": _introduction(bytes(message.params))})
            case "authenticate" | "auth/login" if message.id is not None:
                self._authenticate(message.id, bytes(message.params))
            case _ if message.id is not None and message.method:
                self._answer(message.id, Code.AUTH_REQUIRED, "sign in first: send `authenticate` with the token")
            case _:
                pass  # a notification or a response: there is nothing that it can be about

    def _authenticate(self, id: int | str, params: bytes) -> None:
        self._tries += 1
        try:
            given = msgspec.json.decode(params, type=_Params)
        except BAD_INPUT:
            given = _Params()
        secret = {"password": given.password, "oauth": given.token}.get(given.method, "")
        found = self._access.check_secret(secret, self._address) if secret else Refusal(401, "the token is missing")
        if isinstance(found, AccessToken) and (why := self._may_go_on(found)):
            found = Refusal(429, why)
        if isinstance(found, AccessToken):
            self._reply(id, {"result": {}})
            self.signed_in.set_result(found)
            return
        self._answer(id, Code.AUTH_REQUIRED, found.sentence)
        if is_over(self._tries) or found.status == 429:
            self._refuse("too many wrong tokens, or too many connections")

    def _answer(self, id: int | str | None, code: int, sentence: str) -> None:
        recoverable, action = recovery_from(meaning_of(code, sentence))
        data = {"recoverable": recoverable, "action": action, **({"hint": HINT} if code == Code.AUTH_REQUIRED else {})}
        self._reply(id, {"error": {"code": code, "message": sentence, "data": data}})

    def _reply(self, id: int | str | None, rest: dict[str, object]) -> None:
        self._inner.out += msgspec.json.encode({"jsonrpc": "2.0", "id": id, **rest}) + b"\n"
        self._inner.flush_soon()

    def _refuse(self, sentence: str) -> None:
        if not self.signed_in.done():
            self.signed_in.set_exception(ConnectionClosed(sentence))
            self.signed_in.exception()  # seen, even if nothing waits for it

    def connection_lost(self, error: ConnectionClosed) -> None:
        """Nothing more arrives."""
        self._refuse(str(error))
        self._lose(error)

    def _start_reading(self) -> None:
        """Hand what came before over to the reader that has attached itself now."""
        self._passing = True
        first = b"" if self._initialize is None else self._initialize + b"\n"
        held, self._held = first + bytes(self._held), bytearray()
        self.resume()
        if held and self.sink is not None:
            self.sink.block_received(held)

    # What leaves.

    @property
    def unsent(self) -> int:
        return len(self.out) + self._inner.unsent

    def flush(self) -> None:
        lines, self.out = bytes(self.out), bytearray()
        if self._unanswered is not None and lines:
            lines = b"".join(line + b"\n" for line in lines[:-1].split(b"\n") if not self._answered(line))
        self._inner.out += lines
        self._inner.flush_soon()

    def _answered(self, line: bytes) -> bool:
        """Whether a line is the second response to `initialize`."""
        try:
            message = msgspec.json.decode(line, type=_Message)
        except BAD_INPUT:
            return False
        if message.method or message.id != self._unanswered or type(message.id) is not type(self._unanswered):
            return False
        self._unanswered = None
        if not isinstance(message.error, msgspec.UnsetType):
            # The client has a result. A lost connection shows it that the agent has failed, and is tried again.
            _log.warning("`initialize` failed after the sign-in: %s", bytes(message.error).decode(errors="replace"))
            self._failing = asyncio.ensure_future(self.abort("the agent could not be initialized"))
        return True

    async def drain(self) -> None:
        self.flush()
        await self._inner.drain()

    def pause(self) -> None:
        self._inner.pause()

    def resume(self) -> None:
        self._inner.resume()

    async def close(self) -> None:
        if self.lost is None:
            self.flush()
        await self._inner.close()

    async def abort(self, reason: str) -> None:
        await self._inner.abort(reason)


class _Asked(msgspec.Struct, rename="camel"):
    protocol_version: object = None


def _introduction(params: bytes) -> dict[str, object]:
    """Return the result of `initialize` for a client that has not signed in, in its own version and words."""
    try:
        version = msgspec.json.decode(params, type=_Asked).protocol_version
    except BAD_INPUT:
        version = None
    if type(version) is int and version >= 2:
        return _IN_VERSION_2
    return _IN_WORDS if OpenCodeDialect.is_spoken(params) else _INITIALIZED


def is_over(tries: int) -> bool:
    """Whether a client has tried often enough."""
    return tries >= TRIES


_INITIALIZED: Final = {
    "protocolVersion": 1,
    "agentInfo": {"name": "antiphon", "title": "Antiphon", "version": __version__},
    "agentCapabilities": {"loadSession": True, "modes": True, "plan": True},
    "authMethods": [
        {"id": "password", "name": "Token of the gateway", "description": 'as {"method": "password", "password": …}'},
        {"id": "oauth", "name": "Token of the gateway", "description": 'as {"method": "oauth", "token": …}'},
    ],
    "_meta": {"antiphon": {"wantsToken": True}},
}
"""What a client gets that has not signed in: nothing about the agents here."""

_IN_VERSION_2: Final = {
    "protocolVersion": 2,
    "info": _INITIALIZED["agentInfo"],
    "capabilities": {"session": {}},
    "authMethods": [
        {
            "type": "agent",
            "methodId": method,
            "name": "Token of the gateway",
            "description": f'`auth/login` with {{"methodId": "{method}", "method": "{method}", "{field}": …}}',
        }
        for method, field in (("password", "password"), ("oauth", "token"))
    ],
    "_meta": _INITIALIZED["_meta"],
}
"""The same for a client of version 2."""

_IN_WORDS: Final = {
    **{key: value for key, value in _INITIALIZED.items() if key != "_meta"},
    "authMethods": ["password", "oauth"],
}
"""The same for a client that knows the page alone."""
