"""A program on pipes that speaks in lines: started, heard in order, spoken to, and ended with everything it started.

What the engines that drive a CLI have in common. It is the one module of the engines that knows a transport (ADR 0018).
"""

import logging
import os
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Final, Self

from antiphon.transports import guard
from antiphon.transports.framing import lines_of
from antiphon.transports.process import ProcessTransport, spawn

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from antiphon.errors import ConnectionClosed
    from antiphon.transports.base import Frame

__all__ = ["Program", "ProgramPeer", "answer_of"]

MANY: Final = 1024
MUCH: Final = 4 * 1024 * 1024
"""Lines, and bytes of them, that wait to be heard before reading pauses."""

BREATH: Final = 0.001
"""Seconds between two handfuls of lines while a program speaks without pause. Nobody reads faster, and to wake us and the client
for every word costs more than the word."""

_log = logging.getLogger(__name__)


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


class Program:
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

    def __init__(self, program: Program) -> None:
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
        return cls(await Program.start(command, cwd=cwd, env=environment, before=before))

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
