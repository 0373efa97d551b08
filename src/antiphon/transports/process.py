"""Another program as the peer: started, read, and ended with everything that it started.

The ladder, for every child and always to the end: close its stdin, wait; TERM to the whole group, wait; KILL; then whatever
left the group. Wrappers (npx, uv, shells) are groups like any other. If we are killed, the watcher does it for us.
"""

import asyncio
import logging
import os
import shlex
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from antiphon.errors import ConnectionClosed, LocalProtocolError, ProcessDied, SpawnFailed
from antiphon.transports import guard, tree
from antiphon.transports.framing import MAX_FRAME
from antiphon.transports.guard import Child
from antiphon.transports.pipes import InputState, OutputEvent, PipeTransport
from antiphon.transports.watcher import END_LIMIT

__all__ = [
    "KILL_GRACE",
    "STDERR_LINES",
    "STDIN_GRACE",
    "TERM_GRACE",
    "ProcessTransport",
    "all_gone",
    "release",
    "spawn",
    "when_exited",
]

# The end of a child, and of all that it started.

RELEASE_LIMIT: Final = END_LIMIT + 1
"""Seconds that a supervisor may take to end what is left: a little more than it gives itself."""

LOOK_AGAIN: Final = 0.02
"""Seconds between two looks at what is left of a tree."""


def when_exited(loop: asyncio.AbstractEventLoop, child: Child, callback: Callable[[], None]) -> None:
    """Call `callback` on the loop once the child has exited. It is not reaped before it is released, so its process group id is not reused."""
    descriptor = child.fileno()

    def look() -> None:
        if child.ended():
            loop.remove_reader(descriptor)
            callback()

    loop.add_reader(descriptor, look)


async def release(child: Child) -> None:
    """Release a child whose exit this loop watches, and wait until its supervisor has ended what was left of it."""
    descriptor = child.fileno()
    if descriptor < 0:
        return
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    loop.remove_reader(descriptor)
    child.dismiss()
    loop.add_reader(descriptor, lambda: gone.set() if child.dismissed() else None)
    try:
        async with asyncio.timeout(RELEASE_LIMIT):
            await gone.wait()
    except TimeoutError:
        pass
    finally:
        loop.remove_reader(descriptor)
        child.release()


async def all_gone(child: Child, seconds: float) -> bool:
    """Whether the whole tree ends by itself within the time. No thread waits for it: many may end at once, and threads are few."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while await asyncio.to_thread(tree.processes_with, child.mark, child.supervisor):
        left = deadline - loop.time()
        if left <= 0:
            return False
        await asyncio.sleep(min(left, LOOK_AGAIN))
    return True


_log = logging.getLogger(__name__)

STDIN_GRACE: Final = 2.0
"""Seconds a child may take to exit after its stdin closes, before TERM. Most agents take under one."""

TERM_GRACE: Final = 2.0
"""Seconds between TERM and KILL: time to save a session."""

KILL_GRACE: Final = 5.0
"""Seconds we wait for the kernel to report a killed child before we log it and go on."""

EXIT_GRACE: Final = 0.5
"""Seconds between the end of a child's output and its exit status, or the reverse, before one is taken without the other."""

STDERR_LINES: Final = 50
STDERR_LINE_BYTES: Final = 4096
"""Lines of stderr that are kept of a child: enough for a traceback, and bounded."""


class ProcessTransport(PipeTransport):
    """A running child. `stderr` holds its last lines, `status` how it ended (negative: by that signal)."""

    noisy = True

    def __init__(
        self, child: guard.Child, streams: tuple[int, int, int], command: str, *, limit: int = MAX_FRAME
    ) -> None:
        """`streams` are our ends of the child's stdin, stdout and stderr."""
        stdin, stdout, self._stderr_fd = streams
        super().__init__(stdout, stdin, limit=limit)
        self.pid = child.pid
        self.command = command
        self.status: int | None = None
        self._child = child
        self._exited = asyncio.Event()
        self._output_over = asyncio.Event()
        self._quiet = asyncio.Event()  # stderr is over
        self._lines: deque[bytes] = deque(maxlen=STDERR_LINES)
        self._line = b""
        self.on_stderr: Callable[[bytes], None] | None = None
        """Called with what the child writes to stderr, as it comes."""
        self._ending: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._skips_grace = False
        self.loop.add_reader(self._stderr_fd, self._stderr_readable)
        when_exited(self.loop, child, self._child_exited)

    @property
    def stderr(self) -> str:
        """The last lines that the child wrote to stderr."""
        lines = [*self._lines, self._line] if self._line else list(self._lines)
        return "\n".join(line.decode("utf-8", "replace") for line in lines)

    def _stderr_readable(self) -> None:
        try:
            chunk = os.read(self._stderr_fd, 64 * 1024)
        except (BlockingIOError, InterruptedError):
            return  # it was not ready after all
        except OSError:  # as EIO of a terminal whose other side is closed: no more comes
            chunk = b""
        if not chunk:
            self.loop.remove_reader(self._stderr_fd)
            self._quiet.set()
            return
        if self.on_stderr is not None:
            self.on_stderr(chunk)
        *lines, rest = (self._line + chunk).split(b"\n")
        self._lines.extend(line.rstrip(b"\r")[:STDERR_LINE_BYTES] for line in lines[-STDERR_LINES:])
        self._line = rest[:STDERR_LINE_BYTES]

    # How it ends by itself. Output may end before the process or after it; the report waits for both, a moment.

    def _child_exited(self) -> None:
        self._exited.set()
        self._end_soon()

    def _input_ended(self) -> None:
        self._output_over.set()
        self._end_soon()

    def _end_soon(self) -> None:
        if self._ending is None and self._input is not InputState.CLOSED:
            self._ending = self.loop.create_task(self._report_end(), name=f"end of {self.command}")

    async def _report_end(self) -> None:
        await _wait(self._exited, EXIT_GRACE)
        await self._read_the_rest()
        await _wait(self._quiet, EXIT_GRACE)
        self.pause()
        self._lose(ProcessDied(self.command, self._take_status(), self.stderr))

    async def _read_the_rest(self) -> None:
        """Until its output is read to the end. A child of its own may hold the pipe open, so silence ends the wait too."""
        seen = -1
        while not self._output_over.is_set() and (seen != self._chunks or self._is_held_up()):
            seen = self._chunks
            await _wait(self._output_over, EXIT_GRACE)

    def _is_held_up(self) -> bool:
        """Whether we do not read because a consumer is slow. When we close, no consumer is waited for."""
        return self._input not in (InputState.READING, InputState.READING_ON) and self._closing is None

    def _take_status(self) -> int | None:
        if self.status is None and self._exited.is_set():
            self.status = self._child.returncode
        return self.status

    # For callers that let it end by itself.

    async def end_input(self) -> None:
        """Close its stdin and read on: what it still sends is received, and it has all the time that it is given to end by itself."""
        await self._send_the_rest()
        self._output_does(OutputEvent.BREAK)  # by us: the peer does not count as gone because of it
        self._close_output()

    async def exited(self, seconds: float) -> bool:
        """Whether it ends within the time; `status` then has the exit status."""
        if not await _wait(self._exited, seconds):
            return False
        self._take_status()
        return True

    async def left_behind(self, seconds: float) -> list[int]:
        """The processes that it or its children started, itself among them, and that still live after that time."""
        if await all_gone(self._child, seconds):
            return []
        return await asyncio.to_thread(self.members)

    def members(self) -> list[int]:
        """The ids of its process and of all that it started."""
        return tree.processes_with(self._child.mark, self._child.supervisor)

    # How we end it.

    def skip_grace(self) -> None:
        self._skips_grace = True

    async def kill(self) -> None:
        """End its process and all that it started at once, before any of them can do more. `close` is still needed."""
        await asyncio.to_thread(tree.kill_tree, self.pid, self._child.mark, self._child.supervisor)

    async def freeze(self) -> None:
        """Stop its process and all that it started, so that none of them does anything until `thaw`."""
        await asyncio.to_thread(tree.stop_tree, self.pid, self._child.mark, self._child.supervisor)

    async def thaw(self) -> None:
        """Let processes that were stopped go on."""
        await asyncio.to_thread(tree.signal_tree, self.pid, self._child.mark, signal.SIGCONT, self._child.supervisor)

    async def close(self) -> None:
        if self._closing is None:
            # A task of its own: if our caller is cancelled the ladder still reaches its end.
            self._closing = self.loop.create_task(self._climb_down(), name=f"end {self.command}")
        await asyncio.shield(self._closing)

    async def _climb_down(self) -> None:
        self.resume()  # a child that waits for us to read cannot exit
        await self._send_the_rest()
        self._close_output()
        await _wait(self._exited, 0 if self._skips_grace else STDIN_GRACE)
        child = self._child
        if await asyncio.to_thread(tree.signal_tree, self.pid, child.mark, signal.SIGTERM, child.supervisor):
            await all_gone(child, TERM_GRACE)
        left_behind = await asyncio.to_thread(tree.kill_tree, self.pid, child.mark, child.supervisor)
        if left_behind:
            _log.info("killed %d processes of `%s`", len(left_behind), self.command)
        if not await _wait(self._exited, KILL_GRACE):
            _log.error("`%s` (pid %d) does not end, not even by KILL", self.command, self.pid)
        self._take_status()
        if self._ending is not None:
            await self._ending
        if self._exited.is_set():
            await release(child)
        self.loop.remove_reader(self._stderr_fd)
        os.close(self._stderr_fd)
        self._shut()
        self._lose(ConnectionClosed(f"the connection to `{self.command}` is closed"))


async def spawn(
    command: Sequence[str | os.PathLike[str]],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    limit: int = MAX_FRAME,
) -> ProcessTransport:
    """Start a program and exchange frames over its stdin and stdout. It gets our whole environment unless `env` is given.

    Raises:
        SpawnFailed: there is no such program, or it may not be run.
    """
    if isinstance(command, str) or not command:
        raise LocalProtocolError(
            f"a command is a list of its words, not {command!r}",
            hint="spawn(shlex.split(command)), or spawn([program, argument])",
        )
    words = [os.fspath(word) for word in command]
    name = _shown(words)
    ours, theirs = _pipes(name)
    try:
        child = guard.start(words, theirs, env=os.environ if env is None else env, cwd=cwd)
    except (OSError, ValueError) as error:
        for fd in ours:
            os.close(fd)
        raise SpawnFailed(name, error, _missing(cwd)) from error
    finally:
        for fd in theirs:
            os.close(fd)
    try:
        return ProcessTransport(child, ours, name, limit=limit)
    except (
        BaseException
    ) as error:  # no memory, or no descriptor left for the loop: the child runs, but there is no connection to it
        child.release()
        for fd in ours:
            os.close(fd)
        if isinstance(error, OSError):
            raise SpawnFailed(name, error) from error
        raise


def _pipes(name: str) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Make three pipes: our ends and the child's ends of its stdin, stdout and stderr.

    Raises:
        SpawnFailed: there are no descriptors left.
    """
    made: list[int] = []
    try:
        for _ in range(3):
            made += os.pipe()
    except OSError as error:
        for fd in made:
            os.close(fd)
        raise SpawnFailed(name, error) from error
    its_stdin, stdin, stdout, its_stdout, stderr, its_stderr = made
    return (stdin, stdout, stderr), (its_stdin, its_stdout, its_stderr)


def _shown(words: list[str]) -> str:
    """A command as errors and logs show it: up to its first option, because options may hold secrets."""
    options = next((n for n, word in enumerate(words) if n and word.startswith("-")), len(words))
    return shlex.join(words[:options]) + (" …" if options < len(words) else "")


def _missing(directory: str | os.PathLike[str] | None) -> str | None:
    return None if directory is None or os.path.isdir(directory) else os.fspath(directory)


async def _wait(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
