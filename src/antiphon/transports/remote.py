"""What the transports to remote agents share: limits, cookies, and why a server said no."""

import ssl
from collections.abc import Iterable
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from typing import Final

from antiphon.errors import AcpError

__all__ = ["CLOSE_TIMEOUT", "OPEN_TIMEOUT", "ConnectionRefused", "CookieJar", "not_reached", "refused_by_status"]

OPEN_TIMEOUT: Final = 30.0
"""Seconds for the connection, the proxy, TLS and the handshake together."""

CLOSE_TIMEOUT: Final = 5.0
"""Seconds that the other side has to answer our close before the connection is cut."""


class ConnectionRefused(AcpError):
    """A remote agent could not be reached, or did not let us in."""

    def __init__(self, sentence: str, *, status: int | None = None, hint: str = "") -> None:
        super().__init__(sentence, hint=hint)
        self.status = status
        """The HTTP status of the refusal; None if it never came to one."""


class CookieJar:
    """Cookies of one server, kept from one connection to the next: names and values, as other clients of the protocol keep them."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def store(self, headers: Iterable[str]) -> None:
        """Take the values of `Set-Cookie` headers. What makes no sense is left out."""
        for header in headers:
            with suppress(CookieError):
                self._values.update({name: morsel.value for name, morsel in SimpleCookie(header).items()})

    @property
    def header(self) -> str:
        """The value of a `Cookie` header; empty without any."""
        return "; ".join(f"{name}={value}" for name, value in self._values.items())


_HINTS: Final = {
    401: "give its token, as in `--token` or `token=…`",
    403: "the server does not let this client in: check the token and the address",
    404: "check the path of the address: an agent is usually at `/acp`",
    421: "use the name or the address that the server listens to",
    426: "the server has no WebSocket there: try the address with `http` in place of `ws`",
    429: "wait a moment before you try again",
}


def refused_by_status(url: str, status: int, location: str | None) -> ConnectionRefused:
    """Return the error for a status with which a server refused to open a connection."""
    if 300 <= status < 400:
        sentence = f"`{url}` redirects to `{location or 'another address'}`"
        return ConnectionRefused(sentence, status=status, hint="use that address if you trust it")
    hint = _HINTS.get(status, "look into the log of the server")
    return ConnectionRefused(f"`{url}` refused the connection with HTTP status {status}", status=status, hint=hint)


def not_reached(url: str, error: BaseException, timeout: float | None) -> ConnectionRefused:
    """Return the error for a server that was not reached at all. The cause may be deep inside of what a library raised."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            hint = "check the certificate, or name your own authority with SSL_CERT_FILE"
            return ConnectionRefused(f"the certificate of `{url}` is not trusted: {cause.verify_message}", hint=hint)
        if isinstance(cause, TimeoutError):
            limit = f" within {timeout:g} seconds" if timeout is not None else ""
            return ConnectionRefused(f"`{url}` did not answer{limit}", hint="check that it runs and can be reached")
        if isinstance(cause, OSError) and (cause.strerror or cause.errno is not None):
            sentence = f"`{url}` was not reached: {cause.strerror}"
            return ConnectionRefused(sentence, hint="check that it runs and can be reached")
        cause = cause.__cause__ or cause.__context__
    return ConnectionRefused(f"`{url}` was not reached: {error}", hint="check the address, and that it runs")
