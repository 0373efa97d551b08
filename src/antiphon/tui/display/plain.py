"""The chat by lines, for screen readers and terminals that cannot move the cursor: nothing is redrawn, and words answer questions.

Rule 1: a line that was printed stays. What still changes is printed when it is final; of a call that runs, its title is.
Rule 2: nothing is in a colour or a sign alone: a state has a word.
Rule 3: the terminal edits the line. What is typed while a turn runs is sent after it, as in the other chat.
"""

import asyncio
import io
import os
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable
from errno import EIO
from typing import Final, TypeVar

from prompt_toolkit.data_structures import Size

from antiphon.protocol import v1
from antiphon.text import strip_ansi
from antiphon.tui.blocks import UNFOLD
from antiphon.tui.display.inline import HeldOutput
from antiphon.tui.output.links import without_links
from antiphon.tui.painter import one_line
from antiphon.tui.panels import KeyPanel, Panel
from antiphon.tui.window import ChatWindow

__all__ = ["PlainWindow", "key_of", "plain_line"]

T = TypeVar("T")

WAITING: Final = "you> "
ANSWER: Final = "answer> "

HIGHEST: Final = 100_000
"""Lines of a question or an output: all of it is printed, since nothing can be viewed later."""

WORDS: Final = {
    "yes": "y", "once": "y", "no": "n", "always": "a", "all": "A", "all edits": "A", "because": "r", "view": "v",
    "session": "s", "project": "p", "everywhere": "e", "change": "c", "deny": "d", "allow": "d", "open": "o",
    "back": "esc", "none": "esc", "cancel": "esc",
}  # fmt: skip
"""Words that answer questions, and the keys that mean the same."""

MARKS: Final = {
    "✓ ": "Done: ",
    "✗ ": "Problem: ",
    "○ ": "To do: ",
    "▸ ": "Now: ",
    "! ": "Note: ",
    "i ": "Note: ",
    "● ": "From ",
}
"""Signs at the beginning of a line, in words."""


def plain_line(line: str) -> str:
    """Return a line of the chat as a screen reader can read it."""
    text = strip_ansi(without_links(line)).rstrip()
    if text.endswith(UNFOLD):  # there are no keys
        text = text.removesuffix(UNFOLD) + " · /output"
    inner = text.lstrip()
    for mark, word in MARKS.items():
        if inner.startswith(mark):
            return text[: len(text) - len(inner)] + word + inner[len(mark) :]
    return text


def key_of(text: str, panel: "KeyPanel[object]") -> str | None:
    """Return the key that a typed answer stands for; None if it is no answer."""
    typed = text.strip()
    for key in (typed, WORDS.get(typed.lower(), ""), WORDS.get(typed.lower().partition(" ")[0], "")):
        if key == "esc" or (key and panel.answers(key)):
            return key
    return None


class PlainWindow(ChatWindow):
    """The chat by lines. It prints what is final, and reads whole lines from the terminal."""

    has_keys = False
    _is_open = False
    _is_prompted = False
    _held = False
    _typed = ""

    @staticmethod
    def output() -> HeldOutput:
        """Return an output that is not drawn on: the terminal gets no codes."""
        return HeldOutput(io.StringIO(), lambda: Size(rows=24, columns=80), term="dumb")

    async def run(self) -> None:
        """Print, and hand typed lines over, until `close`."""
        loop = asyncio.get_running_loop()
        self._announced: set[int] = set()
        self._ended = asyncio.Event()
        self._is_open = True
        self.screen.echoes = False
        self.screen.painter.width = shutil.get_terminal_size().columns
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        loop.add_reader(sys.stdin.fileno(), self._read)
        try:
            await self._ended.wait()
        finally:
            self._is_open = False
            loop.remove_reader(sys.stdin.fileno())
            self._print()

    def close(self) -> None:
        """End the chat."""
        if self._is_open:
            self._ended.set()

    # What is printed.

    def refresh(self) -> None:
        """Print what became final, and the prompt if the user may type."""
        if self._is_open and not self._held:
            self._print()
            busy = self.owner.is_working or self.owner.waiting or self.screen.opening or self.panel is not None
            if not busy and not self._is_prompted:
                self._is_prompted = True
                self._out(WAITING)

    def _print(self) -> None:
        if self.input.text:  # what is given back has no line here
            self.screen.note(f"not sent: {one_line(self.input.text)}")
            self.input.reset()
        lines = [plain_line(line) for line in self.screen.take()]
        for entry in self.screen.open_calls():
            if entry.status.meaning == v1.ToolStatus.IN_PROGRESS and entry.key not in self._announced:
                self._announced.add(entry.key)
                lines.append(f"Running: {one_line(entry.label)}")
        if lines:
            self._out(("\n" if self._is_prompted else "") + "".join(f"{line}\n" for line in lines))
            self._is_prompted = False

    def _out(self, text: str) -> None:
        sys.stdout.write(text.encode(sys.stdout.encoding or "utf-8", "replace").decode(sys.stdout.encoding or "utf-8"))
        sys.stdout.flush()

    def write(self, codes: str) -> None:
        """Nothing: the terminal gets no codes."""

    def clear(self) -> None:
        """Nothing: what was printed stays."""

    @property
    def rows(self) -> int:
        """More than any output has, so that no pager is used."""
        return HIGHEST

    async def page(self, lines: list[str]) -> None:
        """Print lines."""
        self.screen.write(lines)
        self.refresh()

    async def with_terminal(self, run: Callable[[], Awaitable[T]]) -> T:
        """Give the terminal to something else until that is over."""
        loop = asyncio.get_running_loop()
        self._print()
        self._held = True
        loop.remove_reader(sys.stdin.fileno())
        try:
            return await run()
        finally:
            self._held = False
            loop.add_reader(sys.stdin.fileno(), self._read)
            self.refresh()

    # What is typed.

    def _read(self) -> None:
        """Take what was typed: the terminal gives it line by line."""
        try:
            data = os.read(sys.stdin.fileno(), 65536)
        except OSError as error:
            if error.errno != EIO:  # the terminal was closed
                raise
            data = b""
        if not data:
            self.owner.leave()
            return
        *lines, self._typed = (self._typed + data.decode("utf-8", "replace")).split("\n")
        for line in lines:
            self._line(line.rstrip("\r"))

    def _line(self, line: str) -> None:
        self._is_prompted = False
        if (panel := self.panel) is not None:
            self._answer(panel, line)
        elif line.endswith("\\"):
            self._typed = f"{line[:-1]}\n{self._typed}"
        elif line.strip():
            self.owner.typed()
            self._is_prompted = True  # it is not asked for the next line before this one is taken
            self.owner.submit(line.strip("\n"))
            self._is_prompted = False
            if self.owner.busy and self.owner.waiting:
                self._out("Queued: it is sent after this turn.\n")
        else:
            self.refresh()

    def _interrupt(self) -> None:
        self._out("\n")
        self._is_prompted = False
        if (panel := self.panel) is not None:
            panel.leave("interrupt")
            self.touched()
            return
        self.owner.interrupt()
        if (words := self.owner.status().plain).startswith("Ctrl-C again"):
            self._out(f"{words}\n")
        self.refresh()

    # Questions.

    async def ask(self, panel: Panel) -> None:
        """Print a question, and wait for a typed answer. Questions are queued."""
        answered = asyncio.Event()
        self.panels.append(panel)
        self._answered[id(panel)] = answered
        self.owner.notifications.asked()
        if self.panel is panel:
            self._show(panel)
        try:
            await answered.wait()
        finally:
            self.panels.remove(panel)
            del self._answered[id(panel)]
            if self.panel is not None:
                self._show(self.panel)
            self.owner.notifications.answered(more=self.panel is not None)
            self.refresh()

    def touched(self) -> None:
        """Check whether a question is answered."""
        for panel in self.panels:
            if panel.done:
                self._answered[id(panel)].set()

    def _show(self, panel: Panel) -> None:
        self._print()
        lines = [plain_line(line) for line in panel.lines(self.screen.painter, HIGHEST)]
        self._out("\n" * self._is_prompted + "".join(f"{line}\n" for line in lines))
        self._is_prompted = False
        if panel.typed is None:
            self._out(f"Type a letter, or its word, such as no.\n{ANSWER}")
        else:
            now = f" (now: {panel.prefill})" if panel.prefill else ""
            self._out(f"{panel.typed.rstrip(': ')}{now}> ")

    def _answer(self, panel: Panel, line: str) -> None:
        if panel.typed is not None:
            panel.enter(line)
        elif isinstance(panel, KeyPanel) and (key := key_of(line, panel)) is not None:
            if key == "esc":
                panel.leave("escape")
            else:
                panel.take(key)
        else:
            self._out("That is no answer.\n")
        if not panel.done:
            self._show(panel)
        self.touched()
