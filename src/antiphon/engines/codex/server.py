"""One `codex app-server` process: requests with their responses, and what it refuses as errors for the client."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from antiphon.engines.codex import wire
from antiphon.engines.process import CliProcess, CliRefused
from antiphon.errors import Code, ConnectionClosed, RequestError
from antiphon.text import strip_ansi

if TYPE_CHECKING:
    from antiphon.protocol.base import JsonObject

__all__ = [
    "REQUEST_LIMIT",
    "CodexServer",
    "client_errors",
    "is_archived",
    "is_open_elsewhere",
    "key_at_fault",
    "refusal_of",
    "server_ended",
]

REQUEST_LIMIT: Final = 60.0
"""Seconds that the server may take to respond. Most responses take milliseconds; a thread with MCP servers, or a login, takes longer."""

T = TypeVar("T")


class CodexServer(CliProcess[wire.ServerNotification | wire.ServerRequest | wire.GarbledMessage]):
    """A running `codex app-server`."""

    title = "Codex"

    def read(self, line: bytes) -> "wire.ServerNotification | wire.ServerRequest | wire.GarbledMessage | None":
        message = wire.decode(line)
        if not isinstance(message, wire.ServerResponse):
            return message
        if message.error is not None:
            self.failed(message.id, message.error.message)
        else:
            self.succeeded(message.id, message.result)
        return None

    async def request(
        self, method: str, params: "JsonObject | None" = None, limit: float = REQUEST_LIMIT
    ) -> msgspec.Raw:
        """Send a request and return the result as it came.

        Raises:
            CliRefused: the server refuses, or does not respond.
            ConnectionClosed: the server ended.
        """
        id = self.next_number()
        return await self.exchange(id, method, wire.request(id, method, params), _same, limit)

    async def call(
        self, method: str, params: "JsonObject", kind: type[T], at_once: Callable[[T], None] | None = None
    ) -> T:
        """Send a request and return the result as a `kind`. `at_once` gets it before any line that follows the response is handled.

        Raises:
            RemoteProtocolError: the result is something else.
        """

        def read(raw: msgspec.Raw) -> T:
            found = wire.read(raw, kind)
            if at_once is not None:
                at_once(found)
            return found

        id = self.next_number()
        return await self.exchange(id, method, wire.request(id, method, params), read, REQUEST_LIMIT)

    def request_without_response(self, method: str, params: "JsonObject | None" = None) -> None:
        """Send a request whose response does not matter."""
        self.send(wire.request(self.next_number(), method, params))

    def notify(self, method: str) -> None:
        """Send a notification."""
        self.send(wire.notification(method))

    def answer(self, id: wire.RequestId, result: "JsonObject") -> None:
        self.send(wire.answer(id, result))

    def refuse(self, id: wire.RequestId, message: str, code: int = Code.INTERNAL_ERROR) -> None:
        self.send(wire.refusal(id, message, code))


def _same(result: msgspec.Raw) -> msgspec.Raw:
    return result


# What the server refuses, and its end, as errors for the client: what is wrong, where, and what to do.

_UNKNOWN_THREAD: Final = re.compile(
    r"no rollout found|thread not found|unknown thread|invalid thread id", re.IGNORECASE
)
_OPEN_ELSEWHERE: Final = re.compile(r"\bis closing\b|\balready has an active writer\b", re.IGNORECASE)
_ARCHIVED: Final = re.compile(r"\bis archived\b", re.IGNORECASE)
_CONFIGURATION: Final = "failed to load configuration"
_KEY: Final = re.compile(r"^in `(.+)`$", re.MULTILINE)


@contextmanager
def client_errors() -> Iterator[None]:
    """What the server refuses in this block, and that it ended, is an error for the client.

    Raises:
        RequestError: instead of what was raised.
    """
    try:
        yield
    except CliRefused as error:
        raise refusal_of(error) from error
    except ConnectionClosed as error:
        raise server_ended(error) from error


def refusal_of(error: CliRefused, key: str | None = None) -> RequestError:
    """The server's no. `key` is what is wrong in its configuration, where that is why."""
    message = error.message
    if _UNKNOWN_THREAD.search(message):
        return RequestError(
            Code.RESOURCE_NOT_FOUND,
            "Resource not found",
            f"{message}: `session/list` shows the sessions that there are",
        )
    if is_archived(error):
        return RequestError(
            Code.INVALID_PARAMS, "The session is archived", "load or resume it first: that takes it out of the archive"
        )
    if is_open_elsewhere(error):
        hint = "close it in the other program, or wait until that has closed it"
        return RequestError(Code.INTERNAL_ERROR, "The session is open in another program", message, hint=hint)
    if message.startswith(_CONFIGURATION):
        where = message.removeprefix(_CONFIGURATION).lstrip(": ") + (f", in `{key}`" if key else "")
        return RequestError(
            Code.INTERNAL_ERROR,
            f"Codex cannot read its configuration: {where}",
            {"kind": "configuration", "details": where},
            hint="correct the file at that line and column, and open the session again",
        )
    return RequestError(Code.INTERNAL_ERROR, f"Codex refuses: {message}")


def is_open_elsewhere(error: CliRefused) -> bool:
    """Whether a server still has the thread: the same one closes it, or another one writes in it."""
    return _OPEN_ELSEWHERE.search(error.message) is not None


def is_archived(error: CliRefused) -> bool:
    """Whether that is why."""
    return _ARCHIVED.search(error.message) is not None


def server_ended(why: ConnectionClosed | None) -> RequestError:
    """The server is gone, and with it what was asked of it."""
    return RequestError(
        Code.INTERNAL_ERROR,
        "Codex ended unexpectedly",
        f"{strip_ansi(str(why or 'no more is known'))}",
        hint="try again: the session goes on in a new process",
    )


async def key_at_fault(server: "CodexServer") -> str | None:
    """The key of its configuration that the server cannot read: empty if it does not name the key, None if it can read all."""
    try:
        await server.request("config/read", {})
    except CliRefused as error:
        found = _KEY.search(error.message)
        return found[1] if found is not None else ""
    return None
