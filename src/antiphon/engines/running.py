"""Keeps one process of a CLI: started ahead, started again when it is gone, never two at a time. Knows no particular CLI."""

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from antiphon.aio import ignore_result
from antiphon.errors import ConnectionClosed, fresh

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

__all__ = ["TRIES", "Owner", "Running", "Spoken"]

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


class Owner(Protocol[P, H]):
    """Who has the process, and hears from it."""

    async def start(self) -> P:
        """Start one, as things stand now."""

    async def began(self, process: P) -> None:
        """It runs: introduce yourself. Raising means that it is of no use."""

    def hear(self, process: P, line: H) -> "Awaitable[None]":
        """It says something. What comes next waits for this."""

    async def ended(self, process: P) -> None:
        """It says no more, whoever ended it."""


class Running(Generic[P]):
    """The process of one owner."""

    def __init__(self, owner: Owner[P, Any]) -> None:
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
