"""A command of this machine: started, read, waited for, and ended with everything it started. Knows no ACP.

It runs in a session of its own, reads nothing (`/dev/null`), and what it writes to stdout and stderr comes in one stream of which
the last bytes are kept. It ends with us, even if we are killed: `transports.guard` sees to that.
"""

import asyncio
import codecs
import logging
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Self

from antiphon.errors import LocalProtocolError, SpawnFailed
from antiphon.transports import guard, tree
from antiphon.transports.process import all_gone, release, when_exited

__all__ = ["KILL_GRACE", "OUTPUT_LIMIT", "TERM_GRACE", "Exit", "LocalCommand", "Ring"]

# --- the last bytes of an output, in whole characters ----------------------------------------------------------------

_Decoder = codecs.getincrementaldecoder("utf-8")


class Ring:
    """Keeps at most `limit` bytes of valid UTF-8, the newest. What is not UTF-8 becomes U+FFFD on its way in, so that the limit counts
    what is kept and not what came."""

    def __init__(self, limit: int) -> None:
        self.limit = max(limit, 0)
        self.written = 0
        """Bytes that went in so far, those that were dropped included: a place in the output that stays valid."""
        self._kept = bytearray()
        self._decoder = _Decoder("replace")
        self._split = False  # in the middle of a character

    @property
    def truncated(self) -> bool:
        """Whether something was dropped."""
        return self.written > len(self._kept)

    def add(self, chunk: bytes) -> None:
        """Add output, cut anywhere."""
        if self._split or not chunk.isascii():
            chunk = self._decoder.decode(chunk).encode()
            self._split = self._decoder.getstate()[0] != b""
        self._keep(chunk)

    def end(self) -> None:
        """Note the end of the output."""
        self._keep(self._decoder.decode(b"", final=True).encode())
        self._split = False

    def text(self, since: int = 0) -> str:
        """Return what is kept, from a place in the output on."""
        gone = self.written - len(self._kept)
        start = self._boundary(max(since - gone, 0))
        return self._kept[start:].decode()

    def _keep(self, chunk: bytes) -> None:
        self.written += len(chunk)
        self._kept += chunk
        if len(self._kept) > self.limit:
            del self._kept[: self._boundary(len(self._kept) - self.limit)]

    def _boundary(self, at: int) -> int:
        """The next place where a character begins."""
        while at < len(self._kept) and self._kept[at] & 0xC0 == 0x80:
            at += 1
        return at


_log = logging.getLogger(__name__)

OUTPUT_LIMIT: Final = 1024 * 1024
"""Bytes of output kept by default: more than a model can read, little enough for many commands at once."""

TERM_GRACE: Final = 2.0
"""Seconds between TERM and KILL: time to remove a lock file."""

KILL_GRACE: Final = 5.0
"""Seconds we wait for the kernel to report a killed command before we log it and go on."""

READ_SIZE: Final = 64 * 1024
"""Bytes per turn of the loop: what a pipe holds, so a flood neither waits for us nor keeps others waiting."""

PIPE_MAX: Final = 1024 * 1024
"""Bytes that a pipe can hold at most (Linux's limit for those without privileges)."""


class Exit(NamedTuple):
    """How a command ended: with a code, or by a signal (`SIGTERM`)."""

    code: int | None
    signal: str | None


class LocalCommand:
    """A command that was started. `close` it, or use it as `async with`; until then its process stays known to the system."""

    def __init__(self, child: guard.Child, output_fd: int, name: str, limit: int) -> None:
        self.pid = child.pid
        self.name = name
        self.exit: Exit | None = None
        self._child = child
        self._ring = Ring(limit)
        self._fd = output_fd
        self._loop = asyncio.get_running_loop()
        self._exited = asyncio.Event()
        self._followers: set[asyncio.Future[None]] = set()
        self._ending: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._loop.add_reader(output_fd, self._read_output)
        when_exited(self._loop, child, self._child_exited)

    @classmethod
    async def start(
        cls,
        words: Sequence[str | os.PathLike[str]],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        output_limit: int = OUTPUT_LIMIT,
        errors: bool = True,
        stdin: int = subprocess.DEVNULL,
    ) -> Self:
        """Start a program with its arguments. It gets our whole environment unless `env` is given. Without `errors` its stderr is not read.
        `stdin` is a descriptor that it may read from; ours to close.

        Raises:
            SpawnFailed: there is no such program or directory, or it may not be run.
        """
        if isinstance(words, str) or not words:
            raise LocalProtocolError(
                f"a command is a list of its words, not {words!r}",
                hint="[program, argument], or ['/bin/sh', '-c', line]",
            )
        name = os.fspath(words[0])  # alone: arguments may hold secrets
        try:
            null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise SpawnFailed(name, error) from error
        ours = theirs = -1
        try:
            ours, theirs = os.pipe()
            os.set_blocking(ours, False)
            streams = (null if stdin == subprocess.DEVNULL else stdin, theirs, theirs if errors else null)
            child = guard.start(words, streams, env=os.environ if env is None else env, cwd=cwd)
        except (OSError, ValueError) as error:
            if ours >= 0:
                os.close(ours)
            raise SpawnFailed(name, error, _missing(cwd)) from error
        finally:
            os.close(null)
            if theirs >= 0:
                os.close(theirs)
        return cls(child, ours, name, output_limit)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # What it writes.

    @property
    def written(self) -> int:
        """Bytes of output so far, counted as UTF-8: a place in the output, for `output` and `more`."""
        return self._ring.written

    @property
    def truncated(self) -> bool:
        """Whether older output was dropped."""
        return self._ring.truncated

    def output(self, since: int = 0) -> str:
        """Return the kept output, all of it or from a place on."""
        return self._ring.text(since)

    async def more(self, seen: int | None = None) -> int:
        """Wait until there is output after `seen` (unless given: after now), or the command has ended: the new `written`."""
        seen = self.written if seen is None else seen
        while self.exit is None and self.written <= seen:
            changed = self._loop.create_future()
            self._followers.add(changed)
            try:
                await changed
            finally:
                self._followers.discard(changed)
        return self.written

    def _read_output(self) -> int:
        """Read once: how many bytes there were."""
        try:
            chunk = os.read(self._fd, READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return 0
        if chunk:
            self._ring.add(chunk)
        else:
            self._stop_reading()
        self._wake_followers()
        return len(chunk)

    def _stop_reading(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
            self._ring.end()

    def _wake_followers(self) -> None:
        for follower in self._followers:
            if not follower.done():
                follower.set_result(None)

    # How it ends by itself.

    async def wait(self) -> Exit:
        """Wait until it ends. Processes that it left running may go on writing."""
        while self.exit is None:
            await self._exited.wait()
        return self.exit

    def _child_exited(self) -> None:
        # All it ever wrote is in the pipe now, so the end of the pipe need not be waited for: something it left
        # running may hold it open for hours, or fill it for ever.
        read = 0
        while self._fd >= 0 and read < PIPE_MAX and (size := self._read_output()):
            read += size
        self._settle(_exit(self._child.returncode))

    def _settle(self, exit: Exit) -> None:
        if self.exit is None:
            self.exit = exit
        self._exited.set()
        self._wake_followers()

    # How we end it.

    async def kill(self) -> None:
        """Kill it and everything it started: SIGTERM, a moment, SIGKILL. Its output stays."""
        if self._closing is not None:
            await asyncio.shield(self._closing)
            return
        if self._ending is None or self._ending.done():
            # A task of its own: if our caller is cancelled the ladder still reaches its end.
            self._ending = self._loop.create_task(self._climb_down(), name=f"kill {self.name}")
        await asyncio.shield(self._ending)

    async def close(self) -> None:
        """Kill it and release its resources. Its output and `exit` stay available."""
        if self._closing is None:
            self._closing = self._loop.create_task(self._free(self._ending), name=f"close {self.name}")
        await asyncio.shield(self._closing)

    async def _climb_down(self) -> None:
        child = self._child
        if await asyncio.to_thread(tree.signal_tree, self.pid, child.mark, signal.SIGTERM, child.supervisor):
            await self._let_go()
        await asyncio.to_thread(tree.kill_tree, self.pid, child.mark, child.supervisor)
        if not await _wait(self._exited, KILL_GRACE):
            _log.error("`%s` (pid %d) does not end, not even by KILL", self.name, self.pid)
            self._settle(Exit(None, "SIGKILL"))

    async def _let_go(self) -> None:
        """A moment for the whole tree."""
        deadline = self._loop.time() + TERM_GRACE
        await _wait(self._exited, TERM_GRACE)
        await all_gone(self._child, deadline - self._loop.time())

    async def _free(self, before: "asyncio.Task[None] | None") -> None:
        if before is not None:
            await before
        await self._climb_down()
        self._stop_reading()
        if self._child.ended():
            await release(self._child)  # the last: while the zombie stands its group keeps its number


def _missing(directory: str | os.PathLike[str] | None) -> str | None:
    return None if directory is None or os.path.isdir(directory) else os.fspath(directory)


def _exit(status: int | None) -> Exit:
    if status is None or status >= 0:
        return Exit(status, None)
    try:
        return Exit(None, signal.Signals(-status).name)
    except ValueError:  # a real-time signal has no name of its own
        return Exit(None, f"SIG{-status}")


async def _wait(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
