"""The process of a CLI: started, read line by line, sent lines and requests, kept alive for its owner, and ended with all its children.

    CliProcess    a CLI on pipes: its lines, requests to it and their responses; Claude Code and Codex each have a subclass
    KeptProcess   keeps one such process for its owner: started ahead, started again when it has ended, never two at a time

It is the one module of the engines that knows a transport (ADR 0018).
"""

import asyncio
import itertools
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from enum import Enum
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, Self, TypeVar

from antiphon.aio import NO_WAIT, ignore_result
from antiphon.errors import AcpError, Code, ConnectionClosed, fresh
from antiphon.life import Life
from antiphon.transports import guard
from antiphon.transports.framing import lines_of
from antiphon.transports.process import ProcessTransport, spawn

if TYPE_CHECKING:
    from antiphon.protocol.base import JsonObject
    from antiphon.transports.base import Frame

__all__ = [
    "KEPT_PROCESS_LIFE",
    "CliProcess",
    "CliRefused",
    "KeptProcess",
    "KeptProcessEvent",
    "KeptProcessState",
    "LineSource",
    "ProcessOwner",
    "run_once",
]

UNREAD_LINES: Final = 1024
UNREAD_BYTES: Final = 4 * 1024 * 1024
"""Lines, and bytes of them, that wait to be read before reading from the pipe pauses."""

READ_PAUSE: Final = 0.001
"""Seconds between two batches of lines while a program writes without pause. No reader is faster, and to wake us and the client for every
word costs more than the word."""

TRIES: Final = 3
"""Processes that are started for one caller of `ready`, if each ends as soon as it has started."""

_log = logging.getLogger(__name__)

T = TypeVar("T")
L = TypeVar("L")
L_co = TypeVar("L_co", covariant=True)
L_contra = TypeVar("L_contra", contravariant=True)


def run_once(
    words: Sequence[str], env: Mapping[str, str], cwd: str | None, limit: float
) -> tuple[int, bytes, bytes] | None:
    """Run a program with an empty stdin; return its status, stdout and stderr, or None if it takes longer than `limit`. Blocks.

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


# A CLI: requests and their responses.


class CliRefused(AcpError):
    """A CLI refuses a request, or does not respond within the limit."""

    def __init__(self, cli: str, method: str, message: str) -> None:
        super().__init__(f"{cli} refuses `{method}`: {message}")
        self.message = message


class _PendingRequest(Generic[T]):
    """A request that waits for its response."""

    __slots__ = ("method", "read", "response")

    def __init__(self, method: str, response: "asyncio.Future[T]", read: Callable[[Any], T]) -> None:
        self.method = method
        self.response = response
        self.read = read
        """Makes the result of the response that is waited for."""


class CliProcess(Generic[L]):
    """A running CLI. Iterate `lines`: responses to our requests are taken out of them on the way.

    A subclass knows the messages: it decodes a line, passes responses to `succeeded` and `failed`, and encodes what is sent. Lines are
    collected as they arrive and read in batches: a model writes small ones, and many of them. A slow reader slows the CLI down.
    """

    title: ClassVar[str]
    """What the CLI is called in errors."""

    def __init__(self, child: ProcessTransport, before: Callable[[], None] | None = None) -> None:
        self._child = child
        self._before = before
        self._unread: list[bytes] = []
        self._size = 0
        self._paused = False
        self._last = 0.0
        self._more: asyncio.Future[None] | None = None
        self._waiting: dict[Hashable, _PendingRequest[Any]] = {}
        self._numbers = itertools.count(1)

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        cwd: str,
        environment: Mapping[str, str],
        before: Callable[[], None] | None = None,
    ) -> Self:
        """Start the CLI. `before` is called when lines have arrived, which are handled in the next turn of the event loop.

        Raises:
            SpawnFailed: there is no such program, or it may not be run.
        """
        return cls(await spawn(command, cwd=cwd, env=environment), before)

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._child.pid

    @property
    def end(self) -> ConnectionClosed | None:
        """Why no more lines will come; None while the CLI may still write."""
        return self._child.lost

    async def close(self) -> None:
        """End the CLI and everything that it started: close its stdin; terminate, then kill what does not end by that. Closing twice is fine."""
        await self._child.close()

    # From the CLI.

    def read(self, line: bytes) -> L | None:
        """Decode a line; None if it was a response, which was given to its request."""
        raise NotImplementedError

    async def lines(self) -> AsyncIterator[L]:
        """Yield decoded lines until the CLI ends; then every request that still waits fails."""
        self._child.attach(self)
        while self._unread or self._child.lost is None:
            if not self._unread:
                self._more = self._child.loop.create_future()
                await self._more
                continue
            batch, self._unread, self._size = self._unread, [], 0
            self._read_on()
            for raw in batch:
                if (line := self.read(raw)) is not None:
                    yield line
        for waiting in self._waiting.values():
            if not waiting.response.done():
                waiting.response.set_exception(fresh(self.end or ConnectionClosed(f"{self.title} has ended")))

    def _read_on(self) -> None:
        """Read on: at once after a silence, else after a short pause in which more lines arrive."""
        before, self._last = self._last, self._child.loop.time()
        if self._last - before <= READ_PAUSE:
            self._pause()
            self._child.loop.call_later(READ_PAUSE, self._resume)
        elif self._paused:
            self._resume()

    def _pause(self) -> None:
        self._paused = True
        self._child.pause()

    def _resume(self) -> None:
        self._paused = False
        self._child.resume()

    def block_received(self, block: "Frame") -> None:
        """Keep lines that arrive until they are asked for."""
        if isinstance(block, bytes | bytearray):
            self._unread += lines_of(block)
            self._size += len(block)
            if len(self._unread) > UNREAD_LINES or self._size > UNREAD_BYTES:
                self._pause()
            self._wake()
        else:  # a line over the limit, of which only the size is left
            _log.warning("`%s` wrote a line of %d bytes, which is too long to be read", self._child.command, block.size)

    def connection_lost(self, error: ConnectionClosed) -> None:
        """No more lines will arrive."""
        self._wake()

    def _wake(self) -> None:
        if self._more is not None and not self._more.done():
            self._more.set_result(None)
            if self._before is not None:
                self._before()

    def succeeded(self, id: Hashable, result: object) -> None:
        """Give a result to the request with this id. It is read at once, before the lines that follow it."""
        waiting = self._waiting.get(id)
        if waiting is None or waiting.response.done():  # the caller was cancelled
            return
        try:
            waiting.response.set_result(waiting.read(result))
        except Exception as error:  # the caller of the request gets it
            waiting.response.set_exception(error)

    def failed(self, id: Hashable, message: str) -> None:
        """Let the request with this id fail."""
        waiting = self._waiting.get(id)
        if waiting is not None and not waiting.response.done():
            waiting.response.set_exception(CliRefused(self.title, waiting.method, message))

    # To the CLI.

    def send(self, line: bytes) -> None:
        """Send a line, which ends in a newline. To a CLI that has ended nothing is sent; `lines` ends with it."""
        if self._child.lost is None:
            self._child.out += line
            self._child.flush()

    def next_number(self) -> int:
        """Return a number that no other request to this process has."""
        return next(self._numbers)

    async def exchange(self, id: Hashable, method: str, line: bytes, read: Callable[[Any], T], limit: float) -> T:
        """Send a request and return what `read` makes of its response.

        Raises:
            CliRefused: the CLI refuses, or does not respond within `limit` seconds.
            ConnectionClosed: the CLI ended.
        """
        if self.end is not None:
            raise fresh(self.end)
        response: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting[id] = _PendingRequest(method, response, read)
        self.send(line)
        try:
            return await asyncio.wait_for(response, limit)
        except TimeoutError:
            raise CliRefused(self.title, method, f"no answer within {limit:g} seconds") from None
        finally:
            del self._waiting[id]

    def answer(self, id: Any, result: "JsonObject") -> None:
        """Respond to a request of the CLI."""
        raise NotImplementedError

    def refuse(self, id: Any, message: str, code: int = Code.INTERNAL_ERROR) -> None:
        """Respond to a request of the CLI with an error."""
        raise NotImplementedError


# One process, kept for its owner.


class LineSource(Protocol[L_co]):
    """A process that can be kept."""

    @property
    def pid(self) -> int:
        """The id of the process."""

    @property
    def end(self) -> ConnectionClosed | None:
        """Why no more lines will come; None while it runs."""

    def lines(self) -> AsyncIterator[L_co]:
        """Yield lines until it ends."""

    async def close(self) -> None:
        """End it, and what it started."""


P = TypeVar("P", bound=LineSource[object])


class ProcessOwner(Protocol[P, L_contra]):
    """Starts the process, and handles its lines."""

    async def start(self) -> P:
        """Start a process with the settings of this moment."""

    async def began(self, process: P) -> None:
        """Make the first requests to a new process. Raising means that the process is of no use."""

    def receive(self, process: P, line: L_contra) -> Awaitable[None]:
        """Handle a line. The next one waits for this."""

    async def ended(self, process: P) -> None:
        """Clean up after a process that has ended, for whatever reason. Called once for each process."""


class KeptProcessState(Enum):
    """The state of a kept process in its life."""

    ABSENT = "absent"
    STARTING = "starting"
    RUNNING = "running"
    CLOSED = "closed"


class KeptProcessEvent(Enum):
    """What can happen to a kept process."""

    START = "start"
    STARTED = "be started"
    FAILED = "fail to start"
    ENDED = "end"
    CLOSE = "close"


_S, _E = KeptProcessState, KeptProcessEvent
KEPT_PROCESS_LIFE: Final = Life(
    "kept process",
    _S.ABSENT,
    {
        _S.ABSENT: {_E.START: _S.STARTING, _E.CLOSE: _S.CLOSED},
        _S.STARTING: {_E.STARTED: _S.RUNNING, _E.FAILED: _S.ABSENT, _E.CLOSE: _S.CLOSED},
        # START: the process has ended, and its last lines are still being handled.
        _S.RUNNING: {_E.ENDED: _S.ABSENT, _E.START: _S.STARTING, _E.CLOSE: _S.CLOSED},
        _S.CLOSED: {_E.STARTED: _S.CLOSED, _E.FAILED: _S.CLOSED, _E.CLOSE: _S.CLOSED},
    },
    "The process of a CLI, as its owner keeps it. It is started ahead of the first prompt, and again when it has ended; "
    "a new one starts when all lines of the one before have been handled.",
)


class KeptProcess(Generic[P]):
    """The process of one owner."""

    def __init__(self, owner: ProcessOwner[P, Any]) -> None:
        self._owner = owner
        self.state = KEPT_PROCESS_LIFE.start
        self._starting: asyncio.Task[P] | None = None
        self._current: P | None = None
        self._pumps: set[asyncio.Task[None]] = set()
        self._ends: set[asyncio.Task[None]] = set()
        self._closing: asyncio.Task[None] | None = None

    def _happens(self, event: KeptProcessEvent) -> None:
        self.state = KEPT_PROCESS_LIFE.next(self.state, event)

    @property
    def process(self) -> P | None:
        """The process that runs and has been initialized."""
        current = self._current if self.state is _S.RUNNING else None
        return current if current is not None and current.end is None else None

    def start_soon(self) -> None:
        """Begin to start a process, if none runs or starts."""
        if self.state in (_S.CLOSED, _S.STARTING) or self.process is not None:
            return
        self._happens(_E.START)
        self._starting = asyncio.get_running_loop().create_task(self._start(), name="start an engine")
        self._starting.add_done_callback(ignore_result)  # a prompt gets the error; there may never be one

    async def ready(self) -> P:
        """Return the process once it can be used. Raises what kept it from starting.

        Raises:
            ConnectionClosed: it was closed for good, or every process that was started ended at once.
        """
        if (running := self.process) is not None:
            return running
        death: ConnectionClosed | None = None
        for _ in range(TRIES):
            if self.state is _S.CLOSED:
                raise ConnectionClosed("the session is closed")
            self.start_soon()
            starting = self._starting
            assert starting is not None  # noqa: S101 - just made
            await asyncio.wait([starting])  # cancelling this caller does not cancel the start
            if starting.cancelled() or self._is_closed():
                raise ConnectionClosed("the session is closed")
            process = starting.result()
            if process.end is None:
                return process
            death = process.end
            # It ended before we could run again: `ended` may have been called already, and will not be called again.
        raise fresh(death or ConnectionClosed("it ended"))

    def _is_closed(self) -> bool:
        return self.state is _S.CLOSED

    async def _start(self) -> P:
        try:
            process = await self._started()
        except BaseException:
            self._happens(_E.FAILED)
            raise
        self._current = process
        self._happens(_E.STARTED)
        return process

    async def _started(self) -> P:
        # Two processes would write to one file; and the last lines of the one before are not about the next one's work.
        while before := self._ends | self._pumps:
            await asyncio.wait(before)
        process = await self._owner.start()
        pump = asyncio.get_running_loop().create_task(self._pump(process), name=f"read {process.pid}")
        self._pumps.add(pump)
        pump.add_done_callback(self._pumps.discard)
        try:
            await self._owner.began(process)
        except BaseException:
            self.drop(process)
            raise
        return process

    async def _pump(self, process: P) -> None:
        try:
            async for line in process.lines():
                try:
                    if (wait := self._owner.receive(process, line)) is not NO_WAIT:
                        await wait
                except ConnectionClosed as error:  # the client is gone; later lines may still be needed
                    _log.debug("a line of an engine was not handled: %s", error)
                except Exception:  # an error in one line must not stop the others
                    if self._is_closed():
                        break
                    _log.exception("a line of an engine could not be handled: %.200r", line)
        except Exception:
            _log.exception("the output of process %d could not be read to its end", process.pid)
        finally:  # the prompts that wait for it must end in any case
            self.drop(process)
            await self._owner.ended(process)

    def drop(self, process: P) -> None:
        """End a process without waiting for it. The next one starts when it is gone."""
        current = self._current
        if self.state is _S.RUNNING and current is not None and (current is process or current.end is not None):
            self._happens(_E.ENDED)
        end = asyncio.get_running_loop().create_task(process.close(), name=f"end {process.pid}")
        self._ends.add(end)
        end.add_done_callback(self._ends.discard)

    async def close(self) -> None:
        """End the process for good. Cancelling this caller does not cancel that."""
        self._happens(_E.CLOSE)
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
