"""A terminal in which a real program is typed into, and the film of its screens as one animated SVG.

The film has no clock of the recording: each step has a length of its own, so that the same output makes the same film. A row of the screen
is drawn once, however many screens show it.
"""

import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from fcntl import ioctl
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyte

__all__ = ["Film", "FilmedTerminal"]

KEY: Final = 0.05
"""Seconds of the film between two keys."""
KEYS: Final = 3
"""Keys typed between two screens."""
WIDTH, HEIGHT = 8.4, 18.0
"""Pixels of a cell."""
PAD: Final = 14.0
LONGEST: Final = 120.0
"""Seconds to wait for a text, at most."""
QUIET: Final = 0.3
"""Seconds without output after which a screen counts as drawn."""

COLOURS: Final = {
    "default": "#e6e6ee", "black": "#3a3a46", "red": "#ff7b85", "green": "#7ee0a0", "brown": "#ecc272", "blue": "#8fb4ff",
    "magenta": "#d8a4ff", "cyan": "#7fdbe6", "white": "#e6e6ee", "brightblack": "#8b8b9b", "brightred": "#ff9aa2", "brightgreen": "#9cf0b8",
    "brightbrown": "#f7d793", "brightblue": "#adc8ff", "brightmagenta": "#e5c1ff", "brightcyan": "#a3eaf2", "brightwhite": "#ffffff",
}  # fmt: skip


class Cell(NamedTuple):
    """How a letter is drawn."""

    colour: str
    background: str
    bold: bool
    dim: bool
    underlined: bool


class Run(NamedTuple):
    """Letters of a row that are drawn alike."""

    column: int
    text: str
    cell: Cell


Row = tuple[Run, ...]


class Film:
    """Screens, and how long each is shown."""

    def __init__(self, columns: int, rows: int, title: str) -> None:
        self.columns, self.rows, self.title = columns, rows, title
        self.frames: list[tuple[tuple[Row, ...], float]] = []

    def add(self, screen: tuple[Row, ...], seconds: float) -> None:
        """Show a screen for so long; one that is the same as the last makes that longer."""
        if self.frames and self.frames[-1][0] == screen:
            seconds += self.frames.pop()[1]
        self.frames.append((screen, seconds))

    def text(self) -> list[list[str]]:
        """Return the text of every screen."""
        return [["".join(run.text for run in row) for row in screen] for screen, _ in self.frames]

    def svg(self) -> str:
        """Return the film as one picture that plays for ever; where motion is not wanted, its last screen."""
        width, height = self.columns * WIDTH + 2 * PAD, self.rows * HEIGHT + 2 * PAD + 18
        whole = sum(seconds for _, seconds in self.frames)
        rows: dict[Row, str] = {}
        screens, keys, passed = [], [], 0.0
        for number, (screen, seconds) in enumerate(self.frames):
            uses = []
            for line, row in enumerate(screen):
                if row:
                    name = rows.setdefault(row, f"r{len(rows)}")
                    uses.append(f'<use href="#{name}" y="{line * HEIGHT:g}"/>')
            screens.append(f'<g transform="translate({number * width:g})">{"".join(uses)}</g>')
            keys.append(f"{passed / whole * 100:.3f}%{{transform:translateX({-number * width:g}px)}}")
            passed += seconds
        last = -(len(self.frames) - 1) * width
        style = (
            "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}"
            f".film{{animation:film {whole:.2f}s steps(1,end) infinite}}@keyframes film{{{''.join(keys)}}}"
            f"@media (prefers-reduced-motion:reduce){{.film{{animation:none;transform:translateX({last:g}px)}}}}"
        )
        drawn = "".join(f'<g id="{name}">{"".join(map(_drawn, row))}</g>' for row, name in rows.items())
        dots = "".join(f'<circle cx="{PAD + 6 + 18 * n}" cy="15" r="5" fill="#3a3a46"/>' for n in range(3))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img">'
            f"<title>{escape(self.title)}</title><style>{style}</style><defs>{drawn}</defs>"
            f'<rect width="100%" height="100%" rx="8" fill="#17171c"/>{dots}'
            f'<svg x="{PAD:g}" y="{PAD + 18:g}" width="{width - 2 * PAD:g}" height="{self.rows * HEIGHT:g}">'
            f'<g class="film">{"".join(screens)}</g></svg></svg>\n'
        )


def _drawn(run: Run) -> str:
    cell, x, length = run.cell, run.column * WIDTH, len(run.text) * WIDTH
    box = (
        f'<rect x="{x:g}" width="{length:g}" height="{HEIGHT:g}" fill="{cell.background}"/>' if cell.background else ""
    )
    looks = f' fill="{cell.colour}"'
    looks += ' font-weight="bold"' if cell.bold else ""
    looks += ' opacity=".6"' if cell.dim else ""
    looks += ' text-decoration="underline"' if cell.underlined else ""
    return (
        f'{box}<text x="{x:g}" y="13.5" textLength="{length:g}"{looks} xml:space="preserve">{escape(run.text)}</text>'
    )


def _colour(name: str) -> str:
    return COLOURS.get(name) or (f"#{name}" if len(name) == 6 else COLOURS["default"])


class FilmedTerminal:
    """A program on a terminal, filmed."""

    def __init__(
        self, words: Sequence[str], *, cwd: Path, env: Mapping[str, str], size: tuple[int, int], title: str
    ) -> None:
        columns, rows = size
        self.film = Film(columns, rows, title)
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.process, self._terminal = pty.fork()
        if not self.process:
            os.chdir(cwd)
            os.execvpe(
                words[0], list(words), {**env, "TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": str(rows)}
            )
        ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        """Type a text, a few keys for each screen."""
        for start in range(0, len(text), KEYS):
            keys = text[start : start + KEYS]
            os.write(self._terminal, keys.encode())
            self._until_quiet()
            self.show(KEY * len(keys))

    def press(self, keys: str) -> None:
        """Press keys that show nothing by themselves, such as Enter."""
        os.write(self._terminal, keys.encode())

    def wait_for(self, text: str, seconds: float) -> None:
        """Wait until a text is on the screen, then show that screen for so long."""
        self._wait(lambda: text in "\n".join(self._screen.display), text)
        self.show(seconds)

    def wait_for_prompt(self, prompt: str, seconds: float) -> None:
        """Wait until a shell waits for a command, then show that screen for so long."""
        self._wait(
            lambda: "\n".join(self._screen.display).strip().endswith(f"\n{prompt.strip()}") or self._empty(prompt),
            prompt,
        )
        self.show(seconds)

    def _empty(self, prompt: str) -> bool:
        return "\n".join(self._screen.display).strip() == prompt.strip()

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + LONGEST
        while not condition():
            if not self._read(until - time.monotonic()):
                raise SystemExit(f"error: `{what}` was not shown:\n" + "\n".join(self._screen.display))
        self._until_quiet()

    def show(self, seconds: float) -> None:
        """Show the screen as it is for so long."""
        self.film.add(tuple(self._row(line) for line in range(self.film.rows)), seconds)

    def close(self) -> None:
        """End the program."""
        os.kill(self.process, signal.SIGHUP)
        os.close(self._terminal)
        os.waitpid(self.process, 0)

    def _until_quiet(self) -> None:
        while self._read(QUIET):
            pass

    def _read(self, timeout: float) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], max(timeout, 0))
        if not ready:
            return False
        try:
            data = os.read(self._terminal, 65536)
        except OSError:  # the program has ended
            return False
        self._stream.feed(data)
        if b"\x1b[6n" in data:  # it asks where the cursor is, as prompt_toolkit does
            cursor = self._screen.cursor
            os.write(self._terminal, f"\x1b[{cursor.y + 1};{cursor.x + 1}R".encode())
        return bool(data)

    def _row(self, line: int) -> Row:
        runs: list[Run] = []
        cursor = self._screen.cursor
        for column in range(self.film.columns):
            char: Any = self._screen.buffer[line][column]
            at_cursor = (cursor.y, cursor.x) == (line, column) and not cursor.hidden
            text = char.data or ""
            colour, background = char.fg, char.bg
            if char.reverse != at_cursor:
                colour, background = "17171c", char.fg
            shown = "" if background == "default" else _colour(background)
            cell = Cell(_colour(colour), shown, char.bold, char.fg == "brightblack", char.underscore)
            if runs and runs[-1].cell == cell and runs[-1].column + len(runs[-1].text) == column:
                runs[-1] = runs[-1]._replace(text=runs[-1].text + text)
            elif text:
                runs.append(Run(column, text, cell))
        while runs and not runs[-1].text.strip() and not runs[-1].cell.background:
            runs.pop()
        return tuple(run for run in runs if run.text.strip() or run.cell.background)
