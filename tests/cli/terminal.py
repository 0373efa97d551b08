"""A real pseudo-terminal with a program on it: what it shows is kept as a screen, what is typed reaches it as from a keyboard."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

import pyte

from tests.limits import limit

COLUMNS, LINES = 80, 24


class Terminal:
    """`with Terminal(words) as terminal`. The program leads a session of its own, with this as its terminal."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        cwd: str | os.PathLike[str],
        env: Mapping[str, str],
        stdout: int | None = None,
        stdin: int | None = None,
    ) -> None:
        self.raw = b""
        self._screen = pyte.HistoryScreen(COLUMNS, LINES, history=1000)
        self._stream = pyte.ByteStream(self._screen)
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            words,
            cwd=cwd,
            env={"TERM": "xterm-256color", **env},
            stdin=slave if stdin is None else stdin,
            stdout=slave if stdout is None else stdout,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.hang_up()

    def hang_up(self) -> None:
        """Close the terminal, as a window that is closed or a connection that is lost."""
        if self._master >= 0:
            os.close(self._master)
        self._master = -1

    @property
    def text(self) -> str:
        """Everything on the screen and what has left it at the top, without empty ends."""
        gone = ["".join(line[x].data for x in range(COLUMNS)) for line in self._screen.history.top]
        return "\n".join(line.rstrip() for line in [*gone, *self._screen.display]).rstrip()

    def type(self, text: str) -> None:
        """Press keys. `\\x03` is Ctrl-C, `\\x04` Ctrl-D."""
        os.write(self._master, text.encode())

    def wait_for(self, wanted: str | Callable[[str], bool]) -> str:
        """Read until the screen shows it, and return the screen."""
        shows = (lambda text: wanted in text) if isinstance(wanted, str) else wanted
        end = time.monotonic() + limit()
        while not shows(self.text):
            if not self._read(end - time.monotonic()):
                raise AssertionError(f"never shown: {wanted!r}; the screen is:\n{self.text}")
        return self.text

    def listen(self, seconds: float) -> str:
        """Read for so long, and return the screen: for what must not come."""
        end = time.monotonic() + seconds
        while self._read(end - time.monotonic()):
            pass
        return self.text

    def finish(self) -> tuple[int, str]:
        """Read to the end: the exit status, and the screen."""
        end = time.monotonic() + limit()
        while self._read(end - time.monotonic()):
            pass
        return self.process.wait(timeout=limit()), self.text

    def _read(self, seconds: float) -> bool:
        if seconds <= 0 or not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux says so when the last program has let go of it
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)
