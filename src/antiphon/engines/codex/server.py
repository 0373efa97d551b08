"""One `codex app-server` process: requests and their answers, what it says by itself, and what it asks."""

import asyncio
import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from antiphon.engines.codex import wire
from antiphon.engines.process import LineProcess, ProgramPeer
from antiphon.errors import AcpError, Code, ConnectionClosed, RequestError, fresh

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

__all__ = [
    "REQUEST_LIMIT",
    "CodexRefused",
    "CodexServer",
    "clearly",
    "ended",
    "is_archived",
    "is_open_elsewhere",
    "key_at_fault",
    "plain",
    "refused",
]

REQUEST_LIMIT: Final = 60.0
"""Seconds that the server may take to answer. Most answers take milliseconds; a thread with MCP servers, or a login, takes longer."""

T = TypeVar("T")


class CodexRefused(AcpError):
    """The server says no to a request, or does not answer."""

    def __init__(self, method: str, message: str, code: int = 0) -> None:
        super().__init__(f"Codex refuses `{method}`: {message}")
        self.message = message
        self.code = code


class CodexServer(ProgramPeer):
    """A living one. Iterate `lines`: answers to our requests are taken out of it on the way."""

    def __init__(self, program: LineProcess) -> None:
        super().__init__(program)
        self._waiting: dict[wire.RequestId, tuple[str, asyncio.Future[Any], Callable[[msgspec.Raw], Any]]] = {}
        self._numbers = itertools.count(1)

    async def lines(self) -> "AsyncIterator[wire.ServerNotification | wire.ServerRequest | wire.GarbledMessage]":
        """What it says and asks, until it ends."""
        async for handful in self._program.handfuls():
            for raw in handful:
                line = wire.decode(raw)
                if isinstance(line, wire.ServerResponse):
                    self._answered(line)
                else:
                    yield line
        for _, answer, _ in self._waiting.values():
            if not answer.done():
                answer.set_exception(fresh(self.end or ConnectionClosed("Codex has ended")))

    def _answered(self, line: wire.ServerResponse) -> None:
        if line.id not in self._waiting:  # somebody stopped waiting
            return
        method, answer, read = self._waiting[line.id]
        if answer.done():
            return
        if line.error is not None:
            answer.set_exception(CodexRefused(method, line.error.message, line.error.code))
            return
        try:
            answer.set_result(read(line.result))
        except Exception as error:  # whoever asked gets it
            answer.set_exception(error)

    # To the server.

    async def request(
        self, method: str, params: "dict[str, Any] | None" = None, limit: float = REQUEST_LIMIT
    ) -> msgspec.Raw:
        """Ask for something; the answer as it came.

        Raises:
            ServerRefused: it says no, or nothing.
            ConnectionClosed: it ended.
        """
        return await self._ask(method, params, limit, lambda raw: raw)

    async def call(
        self, method: str, params: "dict[str, Any]", kind: type[T], at_once: "Callable[[T], None] | None" = None
    ) -> T:
        """Ask for something; the answer as what it should be. `at_once` gets it before anything that the server says after it is heard.

        Raises:
            RemoteProtocolError: it is something else.
        """

        def read(raw: msgspec.Raw) -> T:
            found = wire.read(raw, kind)
            if at_once is not None:
                at_once(found)
            return found

        return await self._ask(method, params, REQUEST_LIMIT, read)

    async def _ask(
        self, method: str, params: "dict[str, Any] | None", limit: float, read: "Callable[[msgspec.Raw], T]"
    ) -> T:
        if self.end is not None:
            raise fresh(self.end)
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        id = self.send(method, params)
        self._waiting[id] = method, answer, read
        try:
            return await asyncio.wait_for(answer, limit)
        except TimeoutError:
            raise CodexRefused(method, f"no answer within {limit:g} seconds") from None
        finally:
            del self._waiting[id]

    def send(self, method: str, params: "dict[str, Any] | None" = None) -> int:
        """Ask for something, without waiting for the answer. The request's id."""
        id = next(self._numbers)
        self._program.send(wire.request(id, method, params))
        return id

    def notify(self, method: str) -> None:
        """Say something."""
        self._program.send(wire.notification(method))

    def answer(self, id: wire.RequestId, result: Any) -> None:
        """Answer a question of the server."""
        self._program.send(wire.answer(id, result))

    def refuse(self, id: wire.RequestId, message: str, code: int) -> None:
        """Say that it cannot be answered."""
        self._program.send(wire.refusal(id, message, code))


# --- What the server refuses, and its end, as the answer to a client: what is wrong, where, and what to do

_UNKNOWN_THREAD: Final = re.compile(
    r"no rollout found|thread not found|unknown thread|invalid thread id", re.IGNORECASE
)
_OPEN_ELSEWHERE: Final = re.compile(r"\bis closing\b|\balready has an active writer\b", re.IGNORECASE)
_ARCHIVED: Final = re.compile(r"\bis archived\b", re.IGNORECASE)
_CONFIGURATION: Final = "failed to load configuration"
_KEY: Final = re.compile(r"^in `(.+)`$", re.MULTILINE)
_COLOURS: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


@contextmanager
def clearly() -> Iterator[None]:
    """What the server refuses in this block, and that it ended, is an error for the client.

    Raises:
        RequestError: instead of what was raised.
    """
    try:
        yield
    except CodexRefused as error:
        raise refused(error) from error
    except ConnectionClosed as error:
        raise ended(error) from error


def refused(error: CodexRefused, key: str | None = None) -> RequestError:
    """The server's no. `key` is what is wrong in its configuration, where that is why."""
    said = error.message
    if _UNKNOWN_THREAD.search(said):
        return RequestError(
            Code.RESOURCE_NOT_FOUND, "Resource not found", f"{said}: `session/list` shows the sessions that there are"
        )
    if is_archived(error):
        return RequestError(
            Code.INVALID_PARAMS, "The session is archived", "load or resume it first: that takes it out of the archive"
        )
    if is_open_elsewhere(error):
        hint = "close it in the other program, or wait until that has closed it"
        return RequestError(Code.INTERNAL_ERROR, "The session is open in another program", said, hint=hint)
    if said.startswith(_CONFIGURATION):
        where = said.removeprefix(_CONFIGURATION).lstrip(": ") + (f", in `{key}`" if key else "")
        return RequestError(
            Code.INTERNAL_ERROR,
            f"Codex cannot read its configuration: {where}",
            {"kind": "configuration", "details": where},
            hint="correct the file at that line and column, and open the session again",
        )
    return RequestError(Code.INTERNAL_ERROR, f"Codex refuses: {said}")


def is_open_elsewhere(error: CodexRefused) -> bool:
    """Whether a server still has the thread: the same one closes it, or another one writes in it."""
    return _OPEN_ELSEWHERE.search(error.message) is not None


def is_archived(error: CodexRefused) -> bool:
    """Whether that is why."""
    return _ARCHIVED.search(error.message) is not None


def ended(why: ConnectionClosed | None) -> RequestError:
    """The server is gone, and with it what was asked of it."""
    return RequestError(
        Code.INTERNAL_ERROR,
        "Codex ended unexpectedly",
        f"{plain(str(why or 'no more is known'))}",
        hint="try again: the conversation goes on in a new process",
    )


def plain(text: str) -> str:
    """Without the colours that the program has for terminals."""
    return _COLOURS.sub("", text)


async def key_at_fault(server: "CodexServer") -> str | None:
    """The key of its configuration that the server cannot read: empty if it does not say which, None if it can read all."""
    try:
        await server.request("config/read", {})
    except CodexRefused as error:
        found = _KEY.search(error.message)
        return found[1] if found is not None else ""
    return None
