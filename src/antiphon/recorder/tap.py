"""A tap that a client starts instead of an agent: it starts the agent, forwards and records every byte, and exits as the agent exits.

The agent is started before anything else is loaded, because the client waits for it. What can wait is imported while it starts.
"""

import _thread
import os
import select
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from antiphon.errors import SpawnFailed
from antiphon.recorder.writer import RecordingWriter, WriteQueue
from antiphon.transports import guard, tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.recorder.writer import RecordingFiles

__all__ = ["Pipe", "let_go", "tap"]

# --- one direction: reads what there is and writes it on unchanged, with a copy for the writer
# Both block, in a thread of its own. So nothing is buffered here, a slow reader slows only its writer, two full directions cannot wait
# for each other, and no file description that we share with an editor or a terminal is made non-blocking for the others. It is also the
# cheapest: one read and one write for each block, and nothing is asked before.

BLOCK = 64 * 1024
"""Bytes of one read: what a pipe holds."""


class Pipe:
    """Bytes from `source` to `sink`, and a copy of them into the queue.

    `ended` is called when there is nothing more to pass on; `broken`, before it, when the reader is gone: whether to go on recording.
    """

    def __init__(
        self,
        source: int,
        sink: int,
        direction: str,
        queue: WriteQueue,
        ended: Callable[[], None],
        broken: Callable[[], bool],
    ) -> None:
        self._source = source
        self._sink = sink
        self._direction = direction
        self._queue = queue
        self._ended = ended
        self._broken = broken
        self.reads = 0
        self.writing = False
        """Whether it is the reader behind us that is waited for."""
        self._over = _thread.allocate_lock()
        self._over.acquire()

    def start(self) -> None:
        """Begin, in a thread of its own."""
        _thread.start_new_thread(self._run, ())

    def join(self, seconds: float) -> bool:
        """Whether the last byte was forwarded, within the time."""
        return self._over.acquire(timeout=seconds)

    def _run(self) -> None:
        is_read = True
        while block := _read(self._source):
            self.reads += 1
            self._queue.put(self._direction, block)  # first: the answer to it may be read before our write returns
            if is_read:
                self.writing = True
                is_read = _write(self._sink, block)
                self.writing = False
                if not is_read and not self._broken():
                    break
        self._queue.put(self._direction, b"")
        self._ended()
        self._over.release()


def let_go(fd: int) -> None:
    """Close our end for good. Its number stays taken, so that no other file gets it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, fd)
    os.close(nothing)


def _read(fd: int) -> bytes:
    while True:
        try:
            return os.read(fd, BLOCK)
        except BlockingIOError:  # the program that gave it to us has made it non-blocking
            _wait(fd, select.POLLIN)
        except OSError:  # a terminal that is gone
            return b""


def _write(fd: int, block: bytes) -> bool:
    """Write all of it; False if the reader is gone."""
    written = 0
    while written < len(block):
        try:
            written += os.write(fd, memoryview(block)[written:] if written else block)
        except BlockingIOError:
            _wait(fd, select.POLLOUT)
        except OSError:
            return False
    return True


def _wait(fd: int, event: int) -> None:
    poll = select.poll()
    poll.register(fd, event)
    with suppress(OSError):
        poll.poll()


SILENCE = 0.5
"""Seconds without output after the agent has exited, after which processes that it left running are not waited for."""

STDIN_GRACE = 2.0
"""Seconds that an agent whose reader is gone may take to end by itself, before TERM."""

TERM_GRACE = 2.0
"""Seconds between TERM and KILL: time to save a session."""

SWITCH = 0.001
"""Seconds that the writer may keep the interpreter while a pipe has bytes to forward."""

FAILED = 1
"""The status of an agent whose end could not be seen."""

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that are meant for the agent when they come to us."""


def _print(words: str) -> None:
    """Print a line for people; an editor shows it in its log."""
    from antiphon.text import exact

    with suppress(OSError):  # stderr may be closed
        os.write(2, f"antiphon record: {exact(words)}\n".encode())


def tap(
    command: "Sequence[str]",
    files: "RecordingFiles",
    *,
    redact: frozenset[str],
    with_stderr: bool = False,
    quiet: bool = False,
    shown: "Sequence[str] | None" = None,
) -> int:
    """Run the agent with our own stdin and stdout until it ends: its status, or 128 and the signal that ended it. `shown` are the words
    that the recording has, where they are not those of the command.

    Raises:
        SpawnFailed: there is no such program, or it may not be run.
    """
    sys.setswitchinterval(SWITCH)
    # Block signals in every thread but this one until their target is known: Python handles signals here.
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    try:
        agent = _Agent(list(command), with_stderr=with_stderr)
        queue = WriteQueue(("c2a", "a2c", "stderr"))
        writer = RecordingWriter(queue, files, _print)
        pipes = agent.pipes(queue)
        for pipe in pipes.values():
            pipe.start()
        writer.start(list(shown or command), redact, quiet=quiet)
        for number in PASSED_ON:
            if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` wants it so
                signal.signal(number, lambda number, _: agent.signal(number))
    finally:  # an agent that cannot be started leaves us to Ctrl-C, too
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    status = agent.wait()
    for name in ("a2c", "stderr"):
        if name in pipes:
            _read_the_rest(pipes[name])
    writer.finish()
    return status


def _read_the_rest(pipe: Pipe) -> None:
    """Wait until its output is forwarded to the end. A child of its own may hold it open, so silence ends the wait too."""
    reads = -1
    while not pipe.join(SILENCE) and (reads != pipe.reads or pipe.writing):
        reads = pipe.reads


class _Agent:
    """The program behind the tap, a session of its own, as every child of ours is."""

    def __init__(self, command: list[str], *, with_stderr: bool) -> None:
        _open_standard_streams()
        self._exited = _thread.allocate_lock()
        self._exited.acquire()
        its_stdin, self._stdin = os.pipe()
        self._stdout, its_stdout = os.pipe()
        self._stderr, its_stderr = os.pipe() if with_stderr else (-1, 2)
        try:
            self._child = guard.start(command, (its_stdin, its_stdout, its_stderr), env=_environment(), apart=True)
        except (OSError, ValueError) as error:
            raise SpawnFailed(command[0], error) from error
        finally:
            for end in (its_stdin, its_stdout, *((its_stderr,) if with_stderr else ())):
                os.close(end)

    def pipes(self, queue: WriteQueue) -> dict[str, Pipe]:
        """The pipes to forward, by direction."""
        pipes = {
            # Close both pipes: a client that writes to an agent which no longer reads has to notice, and so has one that waits for output.
            "c2a": Pipe(0, self._stdin, "c2a", queue, ended=self._close_stdin, broken=self._stops_reading),
            "a2c": Pipe(self._stdout, 1, "a2c", queue, ended=lambda: let_go(1), broken=self._has_no_reader),
        }
        if self._stderr >= 0:
            pipes["stderr"] = Pipe(self._stderr, 2, "stderr", queue, ended=lambda: None, broken=lambda: True)
        return pipes

    def _close_stdin(self) -> None:
        os.close(self._stdin)

    def _stops_reading(self) -> bool:
        let_go(0)
        return False

    def _has_no_reader(self) -> bool:
        _thread.start_new_thread(self._climb_down, ())
        return True

    def _climb_down(self) -> None:
        """End an agent whose reader is gone. Mostly its stdin ends too and it exits by itself; else it is stopped."""
        if not self._has_ended_within(STDIN_GRACE):
            tree.signal_tree(self._child.pid, self._child.mark, signal.SIGTERM, self._child.supervisor)
        if not self._has_ended_within(TERM_GRACE):
            tree.kill_tree(self._child.pid, self._child.mark, self._child.supervisor)

    def _has_ended_within(self, seconds: float) -> bool:
        if not self._exited.acquire(timeout=seconds):
            return False
        self._exited.release()
        return True

    def signal(self, number: int) -> None:
        """Pass a signal on to all of it: the program may be a wrapper (npx, uv, a shell) around the agent."""
        if self._exited.locked():
            with suppress(ProcessLookupError, PermissionError):  # it has just ended
                os.killpg(self._child.pid, number)

    def wait(self) -> int:
        """Until it has ended: its status, or 128 and the signal. If we are killed before that, it is ended all the same."""
        # A signal that comes just before we wait is handled all the same: it makes this pipe readable.
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        while not self._child.ended():
            ready, _, _ = select.select([self._child.fileno(), woken], [], [])
            if woken in ready:
                os.read(woken, 4096)
        self._exited.release()
        code = self._child.returncode
        self._child.leave()  # a daemon that it started on purpose would go on without us too
        if code is None:  # its supervisor was killed
            return FAILED
        return code if code >= 0 else 128 - code


def _environment() -> "dict[str, str]":
    """Ours, in which a new session of our own agent is new: a recording begins with nothing from before.

    As `config.environment` has it, which is not imported here because it takes too long.
    """
    is_set = any(os.environ.get(name, "").strip() for name in ("ANTIPHON_AUTO_RESUME", "BANJO_AUTO_RESUME"))
    return {**os.environ} if is_set else {**os.environ, "ANTIPHON_AUTO_RESUME": "false"}


def _open_standard_streams() -> None:
    """A stream that we were started without is one that leads nowhere; else a pipe of ours would get its number."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            let_go(fd)
