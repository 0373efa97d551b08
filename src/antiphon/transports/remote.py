"""What the ends of a remote connection share: headers, the way of a message, limits, cookies, and why a server refused."""

import ipaddress
import os
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http.cookies import CookieError, Morsel, SimpleCookie
from typing import TYPE_CHECKING, Final
from urllib.parse import urldefrag, urlsplit

import msgspec
from msgspec import UNSET, Raw, UnsetType

from antiphon.errors import ConnectionClosed, ExtraMissing, LocalProtocolError
from antiphon.rpc.envelope import BAD_INPUT

if TYPE_CHECKING:
    from antiphon.transports.base import Transport

__all__ = [
    "CLOSE_TIMEOUT", "CONNECTION_ID", "OPEN_TIMEOUT", "PASSING", "REPLAYS", "SCHEMES", "SESSION_ID", "ConnectionRefused", "CookieJar",
    "MessageHead", "RemoteAddress", "head_of", "is_header_text", "is_loopback", "not_reached", "on_lines", "refused_by_status", "shown_address", "wants_token", "without_proxy",
]  # fmt: skip

HEADER_SIZE: Final = 8 * 1024
"""Characters of a header of ours. Servers refuse longer ones."""

OPEN_TIMEOUT: Final = 30.0
"""Seconds for the connection, the proxy, TLS and the handshake together."""

CLOSE_TIMEOUT: Final = 5.0
"""Seconds that the other side has to answer our close before the connection is cut."""


CONNECTION_ID: Final = "Acp-Connection-Id"
SESSION_ID: Final = "Acp-Session-Id"

REPLAYS: Final = frozenset({"session/load", "session/resume"})
"""Requests that send history before their response."""


class _Params(msgspec.Struct):
    session_id: str | UnsetType | None = msgspec.field(default=UNSET, name="sessionId")


class MessageHead(msgspec.Struct):
    """What a message says about its way. Nothing else of it is read."""

    id: Raw | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET

    @property
    def key(self) -> bytes:
        """The id as it is written, so that 1 is not "1"; empty without one."""
        return b"" if isinstance(self.id, UnsetType) else bytes(self.id)

    @property
    def request_id(self) -> str | float | None:
        """The id as a value; None without one, or with one that JSON-RPC does not allow."""
        try:
            return (
                None if isinstance(self.id, UnsetType) else msgspec.json.decode(self.id, type=str | int | float | None)
            )
        except BAD_INPUT:
            return None

    @property
    def name(self) -> str:
        """The method; empty for a response."""
        return "" if isinstance(self.method, UnsetType) else self.method

    def session_of(self, part: Raw | UnsetType) -> str | None:
        """Return the session that the params or the result name."""
        if isinstance(part, UnsetType):
            return None
        try:
            found = msgspec.json.decode(part, type=_Params).session_id
        except BAD_INPUT:  # an array, or a session that is no text
            return None
        return found if isinstance(found, str) else None


_heads: Final = msgspec.json.Decoder(MessageHead)


def head_of(message: bytes) -> MessageHead | None:
    """Read the head of a message; None if it is no JSON object, or one that is nested too deep."""
    try:
        return _heads.decode(message)
    except BAD_INPUT:
        return None


def on_lines(text: bytes) -> bytes:
    """Return one message on one line, or several each on its own.

    A line end inside of a JSON text is white space: within a string it would be escaped.
    """
    if b"\n" not in text and b"\r" not in text:
        return text
    flat = text.replace(b"\r", b" ").replace(b"\n", b" ").strip()
    try:
        msgspec.json.decode(flat, type=Raw)
    except BAD_INPUT:
        # A lone carriage return is white space to us and the end of a line to some programs: what is one message here stays one there.
        lines = text.replace(b"\r\n", b"\n").replace(b"\r", b" ").strip()
        # Not as a list of lines: millions of empty ones would take a second, and ten times the memory.
        while b"\n\n" in lines:
            lines = lines.replace(b"\n\n", b"\n")
        return lines
    return flat


PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""HTTP statuses that pass: of a server that starts, restarts or is busy, and of the proxy before it."""


class ConnectionRefused(ConnectionClosed):
    """A remote agent could not be reached, or did not let us in."""

    def __init__(self, sentence: str, *, status: int | None = None, hint: str = "", passes: bool = True) -> None:
        super().__init__(sentence, hint=hint)
        self.status = status
        """The HTTP status of the refusal; None if it never came to one."""
        self._passes = passes

    @property
    def recoverable(self) -> bool:
        """Whether another try can succeed: the server may start soon, or has too much to do. A certificate stays as it is."""
        return self._passes and (self.status is None or self.status in PASSING)


LONGEST_WAIT: Final = 60.0
"""Seconds for which a client stays away because a server says so, at most: any server can say anything."""


def seconds_of(header: str | None) -> float:
    """Return the seconds that a `Retry-After` header names, as a number or as a time; 0 without one that makes sense."""
    text = (header or "").strip()[:64]
    if text.isascii() and text.isdigit():
        return min(float(text), LONGEST_WAIT)
    try:
        return min(max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0), LONGEST_WAIT)
    except (TypeError, ValueError, OverflowError, IndexError):
        return 0.0


COOKIES: Final = 64
"""Cookies of a server that are kept."""

COOKIE_SIZE: Final = 4096
"""Characters of a cookie that is kept. Browsers take no more."""


class CookieJar:
    """Cookies of one server, kept from one connection to the next: names and values, as other clients of the protocol keep them.

    A value is sent as it came: the one that its quotes and escapes stand for may hold a line end.
    """

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def store(self, headers: Iterable[str]) -> None:
        """Take the values of `Set-Cookie` headers. What makes no sense is left out."""
        for header in headers:
            with suppress(CookieError):
                for name, morsel in SimpleCookie(header).items():
                    self._values.pop(name, None)
                    is_kept = len(self._values) < COOKIES and is_header_text(morsel.coded_value, COOKIE_SIZE)
                    if is_kept and not _has_expired(morsel):
                        self._values[name] = morsel.coded_value

    @property
    def header(self) -> str:
        """The value of a `Cookie` header; empty without any."""
        return "; ".join(f"{name}={value}" for name, value in self._values.items())


def _has_expired(morsel: "Morsel[str]") -> bool:
    """Whether a server deletes a cookie by setting it: it has no time left."""
    if age := str(morsel["max-age"]).strip():
        return not age.isdigit() or int(age[:9]) == 0
    try:
        return parsedate_to_datetime(morsel["expires"]).timestamp() <= time.time()
    except (TypeError, ValueError, OverflowError):  # it names no time, or one that makes no sense
        return False


def is_header_text(value: str, limit: int = 1024) -> bool:
    """Whether a text arrives as it is in a header: printable ASCII, and no more than any server reads."""
    return 0 < len(value) <= limit and value.isascii() and value.isprintable() and value == value.strip()


def without_proxy(url: str) -> bool:
    """Whether a proxy of the environment is not for an address: one on this machine, where the proxy would read what has no TLS."""
    parts = urlsplit(url)
    return parts.scheme in ("http", "ws") and is_loopback(parts.hostname or "")


_HINTS: Final = {
    401: "give its token, as in `--token-file`, ANTIPHON_TOKEN or `token=…`",
    403: "the server does not let this client in: check the token and the address",
    404: "check the path of the address: an agent is usually at `/acp`",
    421: "use the name or the address that the server listens to",
    426: "the server has no WebSocket there: try the address with `http` in place of `ws`",
    429: "wait a moment before you try again",
}


def shown_address(url: str) -> str:
    """Return an address as it may be shown: without a password, a query and a fragment, any of which may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def refused_by_status(url: str, status: int, location: str | None, retry_after: str | None = None) -> ConnectionRefused:
    """Return the error for a status with which a server refused to open a connection. `location` and `retry_after` are headers."""
    url = shown_address(url)
    if 300 <= status < 400:
        sentence = f"`{url}` redirects to `{shown_address(location) if location else 'another address'}`"
        return ConnectionRefused(sentence, status=status, hint="use that address if you trust it")
    hint = _HINTS.get(status, "look into the log of the server")
    refused = ConnectionRefused(f"`{url}` refused the connection with HTTP status {status}", status=status, hint=hint)
    refused.retry_after = seconds_of(retry_after)
    return refused


def wants_token(name: str) -> ConnectionRefused:
    """Return the error for a server that does nothing for a client without its token."""
    return ConnectionRefused(f"`{name}` wants its token", status=401, hint=_HINTS[401])


def not_reached(url: str, error: BaseException, timeout: float | None) -> ConnectionRefused:
    """Return the error for a server that was not reached at all. The cause may be deep inside of what a library raised."""
    url = shown_address(url)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            hint = "check the certificate, or name your own authority with SSL_CERT_FILE"
            wrong = f"the certificate of `{url}` is not trusted: {cause.verify_message}"
            return ConnectionRefused(wrong, hint=hint, passes=False)
        if isinstance(cause, TimeoutError):
            limit = f" within {timeout:g} seconds" if timeout is not None else ""
            return ConnectionRefused(f"`{url}` did not answer{limit}", hint="check that it runs and can be reached")
        if isinstance(cause, OSError) and (cause.strerror or cause.errno is not None):
            # asyncio writes the address into `strerror`, with all that it tried.
            reason = os.strerror(cause.errno) if cause.errno is not None and cause.errno > 0 else cause.strerror
            return ConnectionRefused(f"`{url}` was not reached: {reason}", hint="check that it runs and can be reached")
        cause = cause.__cause__ or cause.__context__
    return ConnectionRefused(f"`{url}` was not reached: {error}", hint="check the address, and that it runs")


_SECRET_HEADERS: Final = frozenset({"authorization", "cookie", "proxy-authorization"})


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


SCHEMES: Final = ("http", "https", "unix", "ws", "wss")


class RemoteAddress:
    """The address of a remote agent, and what it takes to be let in there. It can be opened as often as needed.

    `wss://host/acp` is a WebSocket, `https://host/acp` streamable HTTP, `unix:///run/agent.sock` a WebSocket on a Unix socket, at `/acp`;
    `unix:///run/agent.sock:/agents/demo/acp` has another path. A token stands in no address: addresses are logged, and shown in lists of processes. It is not sent to another machine without TLS, unless
    `plaintext` allows it.

    Raises:
        LocalProtocolError: it is no such address, has a password in it, or the token would be sent without TLS.
    """

    restartable = True
    shared = True
    """Its server has other clients: after a restart they must not all come back in the same moment."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        plaintext: bool = False,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in SCHEMES or not (parts.hostname or (parts.scheme == "unix" and parts.path)):
            raise LocalProtocolError(
                f"`{_shown(url)}` is not the address of an agent",
                hint="write it like `wss://host/acp` or `https://host/acp`",
            )
        if parts.username is not None or parts.password is not None:
            raise LocalProtocolError(
                f"the address of `{parts.hostname}` has a password in it",
                hint="give the token by itself, as in `token=…`",
            )
        secret = token or any(name.lower() in _SECRET_HEADERS for name in headers or ())
        if secret and not plaintext and parts.scheme in ("http", "ws") and not is_loopback(parts.hostname or ""):
            secure = {"http": "https", "ws": "wss"}[parts.scheme]
            raise LocalProtocolError(
                f"everyone on the way to `{parts.hostname}` could read the token, because `{parts.scheme}` has no TLS",
                hint=f"use `{secure}://…` or a tunnel of SSH; if the way is private, as in a VPN, allow it with"
                " `--plaintext` or `plaintext=True`",
            )
        for name, value in {**(headers or {}), **({"token": token} if token else {})}.items():
            if not (is_header_text(name) and is_header_text(value, HEADER_SIZE)):
                raise LocalProtocolError(
                    f"`{name}` for `{parts.hostname or parts.path}` cannot be sent in a header"
                    if is_header_text(name)
                    else "the name of a header cannot be sent",
                    hint="it has to be printable ASCII on one line, without a space at its ends",
                )
        self.name = parts.path if parts.scheme == "unix" else parts.netloc
        """What it is called in errors: the host, without what may be secret."""
        self._url = urldefrag(url).url
        socket, _, path = parts.path.partition(":/")
        self._socket = socket if parts.scheme == "unix" else None
        self._path = f"/{path or 'acp'}"
        self._scheme = parts.scheme
        self._headers = {**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})}
        self._tls = tls
        self._cookies = CookieJar()

    async def open(self) -> "Transport":
        """Open a connection. Cookies are kept from one to the next.

        Raises:
            ConnectionRefused: it was not reached, or refused.
            ExtraMissing: the packages for it are not installed.
        """
        open_url: Callable[..., Awaitable[Transport]]
        try:
            if self._scheme in ("http", "https"):
                from antiphon.transports.http import open_http

                open_url = open_http
            else:
                from antiphon.transports.websocket import open_websocket

                open_url = open_websocket
        except ImportError as error:
            if error.name is None or error.name.partition(".")[0] not in ("httpx", "websockets"):
                raise
            raise ExtraMissing(
                f"an agent on a network needs the package `{error.name}`", hint="pip install 'antiphon[serve]'"
            ) from error
        url = f"ws://localhost{self._path}" if self._socket is not None else self._url
        return await open_url(url, headers=self._headers, cookies=self._cookies, tls=self._tls, path=self._socket)

    async def close(self) -> None:
        """Nothing is left open between connections."""


def _shown(url: str) -> str:
    """Return the host of an address alone: the rest may hold secrets anywhere."""
    return url.partition("://")[2].partition("/")[0].partition("?")[0].partition("#")[0].rpartition("@")[2] or "it"
