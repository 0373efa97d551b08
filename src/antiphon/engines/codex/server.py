"""One `codex app-server` process: requests and their answers, what it says by itself, and what it asks."""

import asyncio
import itertools
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from antiphon.engines.codex import wire
from antiphon.engines.program import Program, ProgramPeer
from antiphon.errors import AcpError, ConnectionClosed, fresh

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

__all__ = ["REQUEST_LIMIT", "Server", "ServerRefused"]

REQUEST_LIMIT: Final = 60.0
"""Seconds that the server may take to answer. Most answers take milliseconds; a thread with MCP servers, or a login, takes longer."""

T = TypeVar("T")


class ServerRefused(AcpError):
    """The server says no to a request, or does not answer."""

    def __init__(self, method: str, message: str, code: int = 0) -> None:
        super().__init__(f"Codex refuses `{method}`: {message}")
        self.message = message
        self.code = code


class Server(ProgramPeer):
    """A living one. Iterate `lines`: answers to our requests are taken out of it on the way."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._waiting: dict[wire.RequestId, tuple[str, asyncio.Future[Any], Callable[[msgspec.Raw], Any]]] = {}
        self._numbers = itertools.count(1)

    async def lines(self) -> "AsyncIterator[wire.Told | wire.Asked | wire.Garbled]":
        """What it says and asks, until it ends."""
        async for handful in self._program.handfuls():
            for raw in handful:
                line = wire.decode(raw)
                if isinstance(line, wire.Answer):
                    self._answered(line)
                else:
                    yield line
        for _, answer, _ in self._waiting.values():
            if not answer.done():
                answer.set_exception(fresh(self.end or ConnectionClosed("Codex has ended")))

    def _answered(self, line: wire.Answer) -> None:
        if line.id not in self._waiting:  # somebody stopped waiting
            return
        method, answer, read = self._waiting[line.id]
        if answer.done():
            return
        if line.error is not None:
            answer.set_exception(ServerRefused(method, line.error.message, line.error.code))
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
            raise ServerRefused(method, f"no answer within {limit:g} seconds") from None
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
