"""A chat in a real pseudo-terminal, with a screen that is read as a person would. Waits for what is shown, never for time."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyte

from tests.limits import limit
from tests.prepared import Forked, start_on_terminal

ENTER, ESCAPE, CTRL_C, CTRL_D, TAB = "\r", "\x1b", "\x03", "\x04", "\t"


class Terminal:
    """The screen of one program, and its keyboard."""

    def __init__(self, process: "subprocess.Popen[bytes] | Forked", keyboard: int, columns: int, rows: int) -> None:
        self.written = ""
        """Everything that came, as it came."""
        self._process = process
        self._keyboard = keyboard
        self._screen = pyte.HistoryScreen(columns, rows, history=2000)
        self._stream = pyte.ByteStream(self._screen)

    @property
    def pid(self) -> int:
        """The program's process."""
        return self._process.pid

    @property
    def shown(self) -> str:
        """What is on the screen."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    @property
    def all(self) -> str:
        """With what has gone up."""
        columns = range(self._screen.columns)
        above = ["".join(line[x].data for x in columns).rstrip() for line in self._screen.history.top]
        return "\n".join([*above, self.shown])

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._keyboard, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the window."""
        self._screen.resize(rows, columns)
        fcntl.ioctl(self._keyboard, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait(self, text: str, *, gone: bool = False) -> str:
        """Read until the text is on the screen (or no longer), and return the screen."""
        return self.until(lambda: (text in self.shown) is not gone, f"{text!r} {'stays' if gone else 'is not there'}")

    def until(self, seen: Callable[[], bool], otherwise: str = "it does not come") -> str:
        """Read until it is true, and return the screen."""
        end = time.monotonic() + limit()
        while not seen():
            if not self._read(end - time.monotonic()):
                raise AssertionError(f"{otherwise}:\n{self.all[-3000:]}")
        return self.shown

    def ask(self, keys: str, answer: str) -> str:
        """Type, and wait for what comes of it."""
        self.press(keys)
        return self.wait(answer)

    def wait_for_end(self) -> int:
        """Read until the program has ended, and return its exit status."""
        end = time.monotonic() + limit()
        while self._read(end - time.monotonic()):
            pass
        return self._process.wait(limit())

    def _read(self, timeout: float) -> bool:
        """Take some output. False: there is no more, or it takes too long."""
        if timeout <= 0 or not select.select([self._keyboard], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self._keyboard, 65536)
        except OSError:  # EIO: the other end is closed
            return False
        self.written += data.decode(errors="replace")
        self._stream.feed(data)
        return bool(data)

    def terminate(self) -> None:
        """As `kill` does."""
        self._process.terminate()

    def close(self) -> None:
        """End the program."""
        self._process.terminate()
        self._process.wait(limit())
        os.close(self._keyboard)


@contextmanager
def chat(place: Path, *words: str, columns: int = 80, rows: int = 24, **environment: str) -> Iterator[Terminal]:
    """A chat in a directory of its own."""
    work = place / "work"
    work.mkdir(exist_ok=True)
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    env |= {
        "TERM": "xterm-256color",
        "ANTIPHON_STATE_DIR": str(place / "state"),
        "ANTIPHON_CONFIG_DIR": str(place / "config"),
        # Whatever is installed beside the tests: who names no agent gets the demo.
        "CLAUDE_CODE_EXECUTABLE": "/not/here/claude",
        "CODEX_EXECUTABLE": "/not/here/codex",
        **environment,
    }
    keyboard, other_end = pty.openpty()
    process = start_on_terminal("chat", *words, cwd=work, env=env, terminal=other_end)
    os.close(other_end)
    terminal = Terminal(process, keyboard, columns, rows)
    terminal.resize(columns, rows)
    try:
        yield terminal
    finally:
        terminal.close()
