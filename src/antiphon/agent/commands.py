"""A command while it runs: in a terminal of the client, or as a process of ours where the client has none."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final, Self, TypeVar

import msgspec
from msgspec import UNSET

from antiphon.aio import background, ignore_result
from antiphon.errors import Code, LocalProtocolError, RequestRefused, RequestTimeout, SpawnFailed
from antiphon.protocol import v1
from antiphon.protocol.timeouts import APPROVAL_TIMEOUT, NO_TIMEOUT, Timeout
from antiphon.protocol.v1 import methods as m

if TYPE_CHECKING:
    from types import TracebackType

    from antiphon.agent.turn import AgentTurn
    from antiphon.local.commands import LocalCommand

__all__ = ["FinishedCommand", "InTerminal", "OnThisMachine", "RunningCommand", "added_output"]

R = TypeVar("R")

FOLLOW_EVERY: Final = 0.1
"""Seconds between two requests for a terminal's output: the protocol has no notification for it."""

OUTPUT_LIMIT: Final = 1024 * 1024
"""Bytes of output that are kept by default: more is no use to a model, and the end matters most."""

RELEASE_GRACE: Final = 2.0
"""Seconds that we wait for the client to release a terminal. Nothing depends on its response."""

OVERLAP: Final = 256
"""Characters by which a cut output is matched with what was seen before."""

MATCHES: Final = 1000
"""Positions that are tried for that: an output that repeats itself may have any number of them."""


class FinishedCommand(msgspec.Struct, frozen=True):
    """How a command ended and what it wrote. One of `exit_code` and `signal` is set."""

    output: str
    exit_code: int | None
    signal: str | None
    truncated: bool = False

    @property
    def ok(self) -> bool:
        """Whether the command ended with 0."""
        return self.exit_code == 0


class RunningCommand(ABC):
    """A command that runs: `async with turn.run(…) as running`. It starts on entry and is gone after the block."""

    terminal_id: str | None = None
    """The client's terminal, to be shown in a tool call; None where the command runs without one."""

    def __init__(self, turn: "AgentTurn", words: list[str], cwd: str, env: dict[str, str], limit: int | None) -> None:
        self._turn = turn
        self._words = words
        self._cwd = cwd
        self._env = env
        self._limit = OUTPUT_LIMIT if limit is None else limit

    @abstractmethod
    async def __aenter__(self) -> Self: ...

    @abstractmethod
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None: ...

    @abstractmethod
    def __aiter__(self) -> AsyncIterator[str]:
        """Iterate over the output, piece by piece, until the command ends."""

    @abstractmethod
    async def output(self, *, timeout: Timeout = UNSET) -> v1.TerminalOutputResult:
        """Return the output so far, and how the command ended if it has. `timeout` is that of the client's response."""

    @abstractmethod
    async def _ended(self) -> v1.ExitStatus:
        """Wait until the command ends."""

    @abstractmethod
    async def kill(self, *, timeout: Timeout = UNSET) -> None:
        """Kill the command. Its output stays. `timeout` is that of the client's response."""

    async def wait(self, *, timeout: float | None = NO_TIMEOUT) -> v1.ExitStatus:
        """Wait until the command ends.

        Raises:
            RequestTimeout: it runs for more than `timeout` seconds from now, and goes on. Leaving the block ends it.
        """
        try:
            async with asyncio.timeout(timeout):
                return await self._ended()
        except TimeoutError:
            if timeout is None:
                raise
            hint = "give it longer, or kill it with `kill()`"
            raise RequestTimeout(m.WAIT_FOR_EXIT.name, timeout, hint, f"`{self._words[0]}`") from None

    async def finish(self, *, timeout: float | None = NO_TIMEOUT) -> FinishedCommand:
        """Wait until the command ends, and return all that it wrote. `timeout` is that of `wait`."""
        exit = await self.wait(timeout=timeout)
        last = await self.output()
        return FinishedCommand(last.output, exit.exit_code, exit.signal, last.truncated)


class InTerminal(RunningCommand):
    """A command in a terminal of the client, which the user can watch."""

    async def __aenter__(self) -> Self:
        command, *args = self._words
        env = [v1.EnvVariable(name, value) for name, value in self._env.items()]
        asked = v1.CreateTerminal(self._session, command, args, env, self._cwd, self._limit)
        self._exit: asyncio.Task[v1.ExitStatus] | None = None
        # A request that is cancelled may have a response all the same, with a command that runs and has no owner. So this one
        # is not cancelled, and has no timeout of its own: whatever becomes of us, the terminal that it brings is released.
        creating = background(self._turn.session.request(m.CREATE_TERMINAL, asked, timeout=NO_TIMEOUT))
        try:
            async with asyncio.timeout(APPROVAL_TIMEOUT):
                self.terminal_id = (await asyncio.shield(creating)).terminal_id
        except asyncio.CancelledError:
            creating.add_done_callback(self._came_late)
            raise
        except TimeoutError:
            creating.add_done_callback(self._came_late)
            raise RequestTimeout(m.CREATE_TERMINAL.name, APPROVAL_TIMEOUT, peer="the client") from None
        return self

    def _came_late(self, creating: "asyncio.Task[v1.CreateTerminalResult]") -> None:
        if not creating.cancelled() and creating.exception() is None:
            _ = self._release(creating.result().terminal_id)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        if self._exit is not None:
            self._exit.cancel()
        released = self._release(self._id)
        if not self._turn.over and not isinstance(error, asyncio.CancelledError):
            await asyncio.wait([released], timeout=RELEASE_GRACE)

    def _release(self, terminal_id: str) -> "asyncio.Task[v1.ReleaseTerminalResult]":
        # Not through the turn: a turn that is cancelled must still give its terminal back, and is not held up by the response.
        release = v1.ReleaseTerminal(self._session, terminal_id)
        return background(self._turn.session.request(m.RELEASE_TERMINAL, release))

    async def __aiter__(self) -> AsyncIterator[str]:
        so_far, ended = "", False
        while True:
            now = await self.output()
            if piece := added_output(so_far, now.output):
                yield piece
            so_far = now.output
            if ended or now.exit_status is not None:
                return
            ended = await self._ends_soon()

    @property
    def _session(self) -> str:
        return self._turn.session.id

    @property
    def _id(self) -> str:
        if self.terminal_id is None:
            raise LocalProtocolError("the command is not running: use `async with turn.run(…)`")
        return self.terminal_id

    async def output(self, *, timeout: Timeout = UNSET) -> v1.TerminalOutputResult:
        asked = v1.TerminalOutput(self._session, self._id)
        return await self._turn.request(m.TERMINAL_OUTPUT, asked, timeout=timeout)

    async def _ended(self) -> v1.ExitStatus:
        return await asyncio.shield(self._waiting())

    def _waiting(self) -> "asyncio.Task[v1.ExitStatus]":
        if self._exit is None:
            self._exit = asyncio.get_running_loop().create_task(self._ask_for_exit())
            self._exit.add_done_callback(ignore_result)
        return self._exit

    async def _ask_for_exit(self) -> v1.ExitStatus:
        ended = await self._turn.request(m.WAIT_FOR_EXIT, v1.WaitForExit(self._session, self._id))
        return v1.ExitStatus(ended.exit_code, ended.signal)

    async def kill(self, *, timeout: Timeout = UNSET) -> None:
        await self._turn.request(m.KILL_TERMINAL, v1.KillTerminal(self._session, self._id), timeout=timeout)

    async def _ends_soon(self) -> bool:
        ended, _ = await asyncio.wait([self._waiting()], timeout=FOLLOW_EVERY)
        for exit in ended:
            exit.result()  # raises: a client that refuses this request would be sent it again and again
        return bool(ended)


class OnThisMachine(RunningCommand):
    """A command that runs as a process of ours, for a client without terminals."""

    _command: "LocalCommand | None" = None

    async def __aenter__(self) -> Self:
        import os

        from antiphon.local.commands import LocalCommand

        try:
            self._command = await LocalCommand.start(
                self._words, cwd=self._cwd, env={**os.environ, **self._env}, output_limit=self._limit
            )
        except SpawnFailed as error:  # the error that a client would respond with, so that callers handle one only
            raise RequestRefused(Code.INVALID_PARAMS, str(error)) from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        await self._running.close()

    async def __aiter__(self) -> AsyncIterator[str]:
        command, position = self._running, 0
        while True:
            ended, before, position = command.exit is not None, position, command.written
            if piece := command.output(before):
                yield piece
            if ended:
                return
            await command.more(position)

    @property
    def _running(self) -> "LocalCommand":
        if self._command is None:
            raise LocalProtocolError("the command is not running: use `async with turn.run(…)`")
        return self._command

    async def output(self, *, timeout: Timeout = UNSET) -> v1.TerminalOutputResult:
        command = self._running
        exit = command.exit
        status = None if exit is None else v1.ExitStatus(exit.code, exit.signal)
        return v1.TerminalOutputResult(command.output(), command.truncated, status)

    async def _ended(self) -> v1.ExitStatus:
        exit = await self._running.wait()
        return v1.ExitStatus(exit.code, exit.signal)

    async def kill(self, *, timeout: Timeout = UNSET) -> None:
        await self._running.kill()


def added_output(before: str, now: str) -> str:
    """Return what `now` has behind `before`. If its beginning was cut off meanwhile, it is matched by the longest part of both."""
    if now.startswith(before):
        return now[len(before) :]
    head, at = now[:OVERLAP], -1
    for _ in range(MATCHES):
        at = before.find(head, at + 1)
        if at < 0:
            break
        if now.startswith(before[at:]):
            return now[len(before) - at :]
    for size in range(min(OVERLAP, len(before)), 0, -1):  # less of it is left than `head` has, or nothing
        if now.startswith(before[-size:]):
            return now[size:]
    return now
