"""The terminal: messages on stdout, everything else on stderr, live lines, and yes-or-no questions.

On a terminal some lines are live: they stand at the bottom and are drawn again when they change, until something else is written.
Without one (a pipe, `TERM=dumb`) there is not a single control code. Knows columns and colours, nothing of agents.
"""

import os
import select
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Generic, TextIO, TypeVar

from antiphon.cli.outcome import coloured, error_text
from antiphon.errors import AcpError
from antiphon.text import CODES, Paint, Style, cut, exact, one_line, prose

if TYPE_CHECKING:
    from antiphon.config.settings import Loaded

__all__ = [
    "QUIET",
    "YES_OR_NO",
    "Screen",
    "TypedAnswers",
    "answered_yes",
    "confirm",
    "stdout_paint",
    "warn_about_settings",
]

STATUS: Final = "status"


class Screen:
    """Writes the agent's messages to stdout and everything else to stderr."""

    def __init__(
        self, out: TextIO | None = None, err: TextIO | None = None, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        smart = environment.get("TERM", "") not in ("", "dumb")
        self.out_is_terminal = self._out.isatty()
        self.is_terminal = self._err.isatty()
        self.can_redraw = self.is_terminal and smart
        self._coloured = coloured(self._err, environment)
        self._shared = self.out_is_terminal and self.is_terminal
        self.lost: Callable[[], None] = lambda: None
        """Called when the terminal that shows the agent's words is gone."""
        self.shown: set[object] = set()
        """What need not be shown again."""
        self._open: dict[TextIO, bool] = {self._out: False, self._err: False}  # whether its last line has not ended
        self._dim = False
        self._message_end = self._thought = ""  # the end of the agent's words and thoughts so far, as they came
        self._live: dict[str, tuple[str, Style]] = {}

    def data(self, data: bytes) -> None:
        """Write bytes to stdout, as they are."""
        try:
            self._out.buffer.write(data)
            self._out.buffer.flush()
        except OSError:
            if not self.out_is_terminal:
                raise
            self._lose(self._out)

    # The agent's words.

    def say(self, text: str) -> None:
        """Write a piece of a message: unchanged, but on a terminal without control codes."""
        self.status(None)
        if self._shared:
            self._leave_live()
            self._end_line(self._err)
        if self.out_is_terminal:
            text, self._message_end = prose(text, self._message_end), text[-2:]
        self._write(self._out, text)

    def end_message(self, *, gap: bool = False) -> None:
        """End the open line on stdout; with `gap`, add an empty line."""
        self._end_line(self._out)
        if gap:
            self._write(self._out, "\n")

    def finish(self) -> None:
        """End all open lines."""
        self._leave_live()
        self._end_line(self._out)
        self._end_line(self._err)

    # Everything else.

    def note(self, text: str, style: Style = "") -> None:
        """Write a line to stderr."""
        self._turn_to_err()
        self._end_line(self._err)
        self._write(self._err, f"{self.styled(exact(text), style)}\n")

    def error(self, sentence: str, hint: str) -> None:
        """Write an error and its hint, as every command does."""
        self._turn_to_err()
        self._end_line(self._err)
        self._write(self._err, error_text(exact(sentence), exact(hint), color=self._coloured))

    def think(self, text: str) -> None:
        """Write a piece of a thought, dim if there are colours."""
        self._turn_to_err()
        lines, self._thought = prose(text, self._thought), text[-2:]
        self._write(self._err, self.styled(lines, "dim") if lines.strip() else lines, ends_line=lines.endswith("\n"))

    def ask(self, text: str) -> None:
        """Write a question that is answered on the same line."""
        self._turn_to_err()
        self._end_line(self._err)
        self._write(self._err, self.styled(prose(text), "bold"))

    def answered(self) -> None:
        """Note that the user has ended the line of a question."""
        self._open[self._err] = False
        if self._shared:
            self._open[self._out] = False

    # Live lines.

    def live(self, key: str, text: str, style: Style = "") -> None:
        """Draw a line at the bottom, or draw it again, if lines can be redrawn."""
        line = (one_line(text), style)
        if not self.can_redraw or self._live.get(key) == line:
            return
        if not self._live:
            self._turn_to_err()
            self._end_line(self._err)
        self._erase_live()
        self._live.pop(STATUS, None)
        self._live[key] = line
        self._draw_live()

    def is_live(self, key: str) -> bool:
        """Whether a line can still be redrawn."""
        return key in self._live

    def status(self, text: str | None) -> None:
        """Show what is being waited for, as a last line that anything else replaces. None removes it."""
        if text is not None:
            self.live(STATUS, text, "dim")
        elif STATUS in self._live:
            self._erase_live()
            del self._live[STATUS]
            self._draw_live()

    def _leave_live(self) -> None:
        """Make the live lines final."""
        self.status(None)
        self._live.clear()

    def _erase_live(self) -> None:
        if self._live:
            self._write(self._err, f"\x1b[{len(self._live)}A\r\x1b[J")

    def _draw_live(self) -> None:
        width, height = self._size()
        while len(self._live) >= height:  # what has left the screen cannot be drawn again
            key = next(iter(self._live))
            text, style = self._live.pop(key)
            self._write(self._err, f"{self.styled(cut(text, width - 1), style)}\n")
        lines = [f"{self.styled(cut(text, width - 1), style)}\n" for text, style in self._live.values()]
        self._write(self._err, "".join(lines))

    def _size(self) -> tuple[int, int]:
        try:
            columns, lines = os.get_terminal_size(self._err.fileno())
        except (OSError, ValueError):
            columns, lines = 0, 0
        return columns or 80, lines or 24

    # Parts of the above.

    def styled(self, text: str, style: Style) -> str:
        """Return a text in a colour, if there are colours."""
        if not self._coloured or not style or not text:
            return text
        return f"\x1b[{CODES[style]}m{text}\x1b[0m"

    def _turn_to_err(self) -> None:
        self._leave_live()
        if self._shared:
            self._end_line(self._out)

    def _end_line(self, stream: TextIO) -> None:
        if self._open[stream]:
            self._write(stream, "\n")

    def _write(self, stream: TextIO, text: str, *, ends_line: bool | None = None) -> None:
        if text:
            try:
                stream.write(text)
                stream.flush()
            except OSError:
                # The terminal or stderr is closed: no reason to fail, least of all before a turn is cancelled.
                if stream is self._out and not self.out_is_terminal:
                    raise
                self._lose(stream)
            self._open[stream] = not (text.endswith("\n") if ends_line is None else ends_line) and not text.endswith(
                "\x1b[J"
            )

    def _lose(self, stream: TextIO) -> None:
        """Drop everything that is written to a stream from now on."""
        with suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
            stream.flush()
        if stream is self._out:
            self.lost()


def stdout_paint() -> Paint:
    """Return the colours and the width of stdout."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    return Paint(coloured=coloured(sys.stdout), columns=columns)


# --- answers to a question -------------------------------------------------------------------------------------------
# Rule 1: only a whole line is an answer. The first letter of a word means nothing: "exit" is not "e".
# Rule 2: text that goes on behind the line was pasted or typed ahead, and is not an answer.
# Rule 3: the end of the input is not the end of a line. "y" and then nothing is not an answer.

T = TypeVar("T")

QUIET: Final = 0.2
"""Seconds without input behind a line that allows something. A paste goes on at once; a person who has answered waits."""


class TypedAnswers(Generic[T]):
    """The answers that a question lists, each with its meaning."""

    def __init__(self, words: Mapping[str, T]) -> None:
        self._words = dict(words)

    def read(self, typed: bytes) -> T | None:
        """Return the meaning of what was typed; None if it is not exactly one of the answers on a line of its own."""
        line, end, rest = typed.partition(b"\n")
        if not end or rest:
            return None
        try:
            word = line.removesuffix(b"\r").strip(b" \t").decode("ascii")
        except UnicodeDecodeError:
            return None
        return self._words.get(word.lower())


YES_OR_NO: Final = TypedAnswers({"y": True, "yes": True, "n": False, "no": False})


# --- yes-or-no questions ---------------------------------------------------------------------------------------------


def terminal_of(screen: Screen) -> int | None:
    """Return where to read answers: stdin if it is a terminal, else the terminal that shows stderr. None: there is no terminal."""
    if not screen.is_terminal:
        return None
    if sys.stdin is not None and sys.stdin.isatty():
        return sys.stdin.fileno()
    try:
        return os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None


def confirm(screen: "Screen", question: str, *, nothing: str, otherwise: str) -> bool:
    """Ask the person at the terminal, and return whether the answer is yes.

    If not, `nothing` is printed as what was not done, `otherwise` as how to do it without asking.

    Raises:
        AcpError: there is no terminal to ask in.
    """
    terminal = terminal_of(screen)
    if terminal is None:
        raise AcpError(f"{nothing}: there is no terminal to ask in", hint=otherwise)
    if answered_yes(screen, terminal, f"{question} (y yes, n no): "):
        return True
    screen.note(nothing)
    return False


def answered_yes(screen: "Screen", terminal: int, question: str, quiet: float = QUIET) -> bool:
    """Ask once, and return whether the answer is yes. What was typed before the question does not answer it; nor does the end of the input."""
    import termios

    with suppress(termios.error):  # before it is shown: an answer that comes at once counts
        termios.tcflush(terminal, termios.TCIFLUSH)
    screen.ask(question)
    typed = b""
    while b"\n" not in typed:
        chunk = _read(terminal)
        if not chunk:
            sys.stderr.write("\n")
            return False
        typed += chunk
    if YES_OR_NO.read(typed) is not True:
        return False
    return not select.select([terminal], [], [], quiet)[0]  # a text that goes on was pasted


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the terminal is gone
        return b""


# --- problems with the settings --------------------------------------------------------------------------------------


def warn_about_settings(loaded: "Loaded") -> None:
    """Print the problems of the config files, and what is ignored until it is trusted."""
    for kind, texts in (("warning", loaded.problems), ("note", loaded.notes)):
        for text in texts:
            sys.stderr.write(f"{kind}: {prose(str(text))}\n")
