"""Keeps one process of a CLI: started ahead, started again when it is gone, never two at a time. Knows no particular CLI."""

import asyncio
import logging
import os
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self, TypeVar

from antiphon.aio import ignore_result
from antiphon.errors import ConnectionClosed, fresh
from antiphon.transports import guard
from antiphon.transports.framing import lines_of
from antiphon.transports.process import ProcessTransport, spawn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from antiphon.transports.base import Frame

__all__ = ["TRIES", "KeptProcess", "LineProcess", "ProcessOwner", "ProgramPeer", "Spoken", "answer_of"]

# --- A program on pipes that speaks in lines: started, heard in order, spoken to, and ended with everything it started
# What the engines that drive a CLI have in common. It is the one module of the engines that knows a transport (ADR 0018).

MANY: Final = 1024
MUCH: Final = 4 * 1024 * 1024
"""Lines, and bytes of them, that wait to be heard before reading pauses."""

BREATH: Final = 0.001
"""Seconds between two handfuls of lines while a program speaks without pause. Nobody reads faster, and to wake us and the client
for every word costs more than the word."""


def answer_of(
    words: "Sequence[str]", env: "Mapping[str, str]", cwd: str | None, limit: float
) -> tuple[int, bytes, bytes] | None:
    """Run a program with nothing to read: its status, and what it wrote to stdout and stderr; None if it takes longer. It blocks.

    Raises:
        OSError: it cannot be started.
    """
    with open(os.devnull, "rb") as nothing, TemporaryFile() as out, TemporaryFile() as err:
        child = guard.start(words, (nothing.fileno(), out.fileno(), err.fileno()), env=env, cwd=cwd)
        try:
            if not child.ended(limit):
                return None
        finally:
            child.release()  # a wrapper and what it started are ended together
        out.seek(0)
        err.seek(0)
        return (1 if child.returncode is None else child.returncode), out.read(), err.read()


class _Ear:
    """Takes what the program says as it comes, and gives it away by the handful: a model writes small lines, and many of them."""

    def __init__(self, child: ProcessTransport, before: "Callable[[], None] | None") -> None:
        self._child = child
        self._before = before
        self._heard: list[bytes] = []
        self._size = 0
        self._over = False
        self._last = 0.0
        self._more: asyncio.Future[None] | None = None

    def block_received(self, block: "Frame") -> None:
        if isinstance(block, bytes | bytearray):
            self._heard += lines_of(block)
            self._size += len(block)
            if len(self._heard) > MANY or self._size > MUCH:
                self._child.pause()
            self._wake()
        else:  # only the remains of one
            _log.warning("`%s` said a line of %d bytes, which is too long to be kept", self._child.command, block.size)

    def connection_lost(self, error: "ConnectionClosed") -> None:
        self._over = True
        self._wake()

    def _wake(self) -> None:
        if self._more is not None and not self._more.done():
            self._more.set_result(None)
            if self._before is not None:
                self._before()

    async def take(self) -> list[bytes]:
        """All that came; nothing when there will be no more."""
        while not self._heard and not self._over:
            self._more = self._child.loop.create_future()
            await self._more
        heard, self._heard, self._size = self._heard, [], 0
        self._breathe()
        return heard

    def _breathe(self) -> None:
        """Read on: at once after a silence, else after a moment, in which more comes."""
        loop = self._child.loop
        before, self._last = self._last, loop.time()
        if self._last - before > BREATH:
            self._child.resume()
        else:
            self._child.pause()
            loop.call_later(BREATH, self._child.resume)


class LineProcess:
    """A running program. Who hears its lines slowly slows it down; nothing piles up here."""

    def __init__(self, child: ProcessTransport, before: "Callable[[], None] | None" = None) -> None:
        self._child = child
        self._before = before

    @classmethod
    async def start(
        cls,
        command: "Sequence[str]",
        *,
        cwd: str,
        env: "Mapping[str, str]",
        before: "Callable[[], None] | None" = None,
    ) -> Self:
        """Start it. `before` is called when it has said something, which is heard in the next turn of the loop.

        Raises:
            SpawnFailed: there is no such program, or it may not be run.
        """
        return cls(await spawn(command, cwd=cwd, env=env), before)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._child.pid

    @property
    def end(self) -> "ConnectionClosed | None":
        """Why nothing more will come from it; None while it may speak."""
        return self._child.lost

    @property
    def stderr(self) -> str:
        """Its last words there."""
        return self._child.stderr

    async def lines(self) -> "AsyncIterator[bytes]":
        """What it says, line by line, until it ends."""
        async for handful in self.handfuls():
            for line in handful:
                yield line

    async def handfuls(self) -> "AsyncIterator[list[bytes]]":
        """The same, as many lines at a time as came together."""
        ear = _Ear(self._child, self._before)
        self._child.attach(ear)
        while handful := await ear.take():
            yield handful

    def send(self, line: bytes) -> None:
        """Say a line, with its end. A program that is gone hears nothing; `lines` tells that it is."""
        if self._child.lost is None:
            self._child.out += line
            self._child.flush_soon()

    async def close(self) -> None:
        """End it: its input is closed, and what does not end by that is told to, then made to. Closing twice is fine."""
        await self._child.close()


class ProgramPeer:
    """Somebody to talk to behind a program: what all of them share. The lines are their own."""

    def __init__(self, program: LineProcess) -> None:
        self._program = program

    @classmethod
    async def start(
        cls,
        command: "Sequence[str]",
        cwd: str,
        environment: "Mapping[str, str]",
        before: "Callable[[], None] | None" = None,
    ) -> Self:
        """Start one; `before` as a `Program` has it. Raises `SpawnFailed`."""
        return cls(await LineProcess.start(command, cwd=cwd, env=environment, before=before))

    @property
    def pid(self) -> int:
        """Its id."""
        return self._program.pid

    @property
    def end(self) -> "ConnectionClosed | None":
        """Why it says nothing more; None while it lives."""
        return self._program.end

    async def close(self) -> None:
        """End it, and what it started."""
        await self._program.close()


TRIES: Final = 3
"""Processes that are started for one caller of `ready`, if each dies as soon as it can be spoken to."""

_log = logging.getLogger(__name__)
L = TypeVar("L", covariant=True)
H = TypeVar("H", contravariant=True)


class Spoken(Protocol[L]):
    """A process that speaks in lines of some kind."""

    @property
    def pid(self) -> int:
        """Its id."""

    @property
    def end(self) -> ConnectionClosed | None:
        """Why it says nothing more; None while it lives."""

    def lines(self) -> "AsyncIterator[L]":
        """What it says."""

    async def close(self) -> None:
        """End it, and what it started."""


P = TypeVar("P", bound=Spoken[object])


class ProcessOwner(Protocol[P, H]):
    """Who has the process, and hears from it."""

    async def start(self) -> P:
        """Start one, as things stand now."""

    async def began(self, process: P) -> None:
        """It runs: introduce yourself. Raising means that it is of no use."""

    def hear(self, process: P, line: H) -> "Awaitable[None]":
        """It says something. What comes next waits for this."""

    async def ended(self, process: P) -> None:
        """It says no more, whoever ended it."""


class KeptProcess(Generic[P]):
    """The process of one owner."""

    def __init__(self, owner: ProcessOwner[P, Any]) -> None:
        self._owner = owner
        self._starting: asyncio.Task[P] | None = None
        self._pumps: set[asyncio.Task[None]] = set()
        self._ends: set[asyncio.Task[None]] = set()
        self._closed = False
        self._closing: asyncio.Task[None] | None = None

    @property
    def process(self) -> P | None:
        """The one that lives and can be spoken to."""
        starting = self._starting
        if starting is None or not starting.done() or starting.cancelled() or starting.exception() is not None:
            return None
        process = starting.result()
        return process if process.end is None else None

    def start_soon(self) -> None:
        """Begin to start it, if it does not run."""
        if self._closed or (self._starting is not None and (not self._starting.done() or self.process is not None)):
            return
        self._starting = asyncio.get_running_loop().create_task(self._start(), name="start an engine")
        self._starting.add_done_callback(ignore_result)  # a prompt will hear of it; there may never be one

    async def ready(self) -> P:
        """The process, once it can be spoken to. Raises what kept it from starting.

        Raises:
            ConnectionClosed: it was ended for good, or every one that was started died at once.
        """
        death = ConnectionClosed("it ended")
        for _ in range(TRIES):
            if self._closed:
                raise ConnectionClosed("the session is closed")
            self.start_soon()
            starting = self._starting
            assert starting is not None  # noqa: S101 - just made
            await asyncio.wait([starting])  # who stops waiting does not stop it
            if starting.cancelled() or self._is_closed():
                raise ConnectionClosed("the session is closed")
            process = starting.result()
            if process.end is None:
                return process
            death = process.end
            # It died before we could run again: `ended` may have been called already, and will not be called again.
        raise fresh(death)

    def _is_closed(self) -> bool:
        return self._closed

    async def _start(self) -> P:
        # Two of them would write to one file; and what the one before still has to say is not about the next one's work.
        while before := self._ends | self._pumps:
            await asyncio.wait(before)
        process = await self._owner.start()
        pump = asyncio.get_running_loop().create_task(self._pump(process), name=f"hear {process.pid}")
        self._pumps.add(pump)
        pump.add_done_callback(self._pumps.discard)
        try:
            await self._owner.began(process)
        except BaseException:
            self.give_up(process)
            raise
        return process

    async def _pump(self, process: P) -> None:
        try:
            async for line in process.lines():
                try:
                    await self._owner.hear(process, line)
                except (
                    ConnectionClosed
                ) as error:  # whoever it is for is gone; the process may be asked to end in what follows
                    _log.debug("a line of an engine was not handled: %s", error)
                except Exception:  # one line that went wrong does not silence the others
                    if self._closed:
                        break
                    _log.exception("a line of an engine could not be handled: %.200r", line)
        except Exception:
            _log.exception("the output of process %d could not be read to its end", process.pid)
        finally:  # whatever happened, the prompts that wait for it are told
            self.give_up(process)
            await self._owner.ended(process)

    def give_up(self, process: P) -> None:
        """End a process without waiting for it. The next one waits until it is gone."""
        if self._starting is not None and self._starting.done() and self.process in (process, None):
            self._starting = None
        end = asyncio.get_running_loop().create_task(process.close(), name=f"end {process.pid}")
        self._ends.add(end)
        end.add_done_callback(self._ends.discard)

    async def close(self) -> None:
        """End it for good. Who stops waiting for that does not stop it."""
        self._closed = True
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close(), name="close an engine's process")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        starting, self._starting = self._starting, None
        if starting is not None:
            starting.cancel()
            await asyncio.wait([starting])
            if not starting.cancelled() and starting.exception() is None:
                await starting.result().close()
        while rest := self._pumps | self._ends:
            await asyncio.wait(rest)
