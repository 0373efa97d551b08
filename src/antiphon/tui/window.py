"""The live part of the terminal below the scrollback: open lines, questions, the input line and the status.

While a question is open that one key answers, keys answer it; but not in the middle of a word. A user who is typing when a question
comes up goes on typing, and answers when they have stopped.
"""

import asyncio
import os
import sys
import termios
from collections.abc import Awaitable, Callable
from errno import EIO
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

from prompt_toolkit.application.current import set_app
from prompt_toolkit.application.run_in_terminal import in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, ThreadedCompleter
from prompt_toolkit.cursor_shapes import ModalCursorShapeConfig
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.layout import BufferControl, ConditionalContainer, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.output import Output
from prompt_toolkit.widgets import SearchToolbar
from rich.text import Text

from antiphon.config.directories import make_private_directory
from antiphon.tui.display.idle import IdleCollector
from antiphon.tui.display.inline import HeldOutput, InlineApplication
from antiphon.tui.display.notifications import Notifications
from antiphon.tui.input import bindings
from antiphon.tui.line.completion import is_completed
from antiphon.tui.line.echo import EarlyEcho
from antiphon.tui.line.entry import InputLine
from antiphon.tui.output.links import without_links
from antiphon.tui.output.pager import pager_command, run_pager
from antiphon.tui.painter import one_line
from antiphon.tui.panels import PAUSE, Panel
from antiphon.tui.screen import PROMPT, ChatScreen

if TYPE_CHECKING:
    from antiphon.tui.line.actions import LineActions
    from antiphon.tui.status import ChatModes

__all__ = ["ChatWindow", "WindowOwner"]

T = TypeVar("T")

TICK: Final = 0.01
"""Seconds by which a timer is late on purpose."""

INPUT_LINES: Final = 8
"""Lines of the prompt that are in sight while it is typed."""

MENU_LINES: Final = 7
"""Completions in sight."""

PICKER_LINES: Final = 12
"""Rows of a picker in sight."""

QUEUE_LINES: Final = 3
"""Prompts that wait and are in sight."""

FRAME_INTERVAL: Final = 0.2
"""Seconds between two states of the mark that turns."""


class WindowOwner(Protocol):
    """What the window needs of the chat."""

    @property
    def busy(self) -> bool:
        """Whether a turn is running."""

    @property
    def is_working(self) -> bool:
        """Whether a turn or a command runs."""

    @property
    def waiting(self) -> "list[str]":
        """Prompts that are queued."""

    def submit(self, text: str) -> None:
        """Take a line."""

    def interrupt(self) -> None:
        """Handle Ctrl-C."""

    def typed(self) -> None:
        """Handle a typed character."""

    @property
    def actions(self) -> "LineActions":
        """What keys of the input line do."""

    @property
    def modes(self) -> "ChatModes":
        """The modes that Shift-Tab goes through."""

    @property
    def notifications(self) -> Notifications:
        """Where to tell that a question waits, and whether the terminal is in front."""

    def leave(self) -> None:
        """Handle Ctrl-D."""

    async def look(self) -> None:
        """Read output of running commands, from time to time."""

    def status(self) -> Text:
        """The status line."""


Lines: TypeAlias = "Callable[[ChatWindow], list[str]]"


def _once_a_frame(lay_out: Lines) -> Lines:
    """Cache the layout of a part for one frame: it is needed for its height and its text."""

    def once(window: "ChatWindow") -> list[str]:
        known = window._frame.get(lay_out.__name__)
        if known is None:
            known = window._frame[lay_out.__name__] = lay_out(window)
        return known

    return once


class ChatWindow:
    """The window of one chat. `run` it, `ask` in it, `refresh` it when something changed."""

    has_keys = True
    """Whether single keys do something, such as Shift-Tab."""

    def __init__(
        self, screen: ChatScreen, owner: WindowOwner, completer: Completer, history: Path | None, *, keys: str = "emacs"
    ) -> None:
        self.screen = screen
        self.owner = owner
        self._search = SearchToolbar(ignore_case=True)
        self.panels: list[Panel] = []
        self._answered: dict[int, asyncio.Event] = {}
        self._typed_at = float("-inf")
        self._garbage = IdleCollector()
        self._filled: tuple[int, str, str] | None = None  # the step of a question for which the line was filled in
        self.input = Buffer(
            name="input", multiline=True, history=_history(history), completer=ThreadedCompleter(completer),
            complete_while_typing=Condition(lambda: is_completed(self.input.document.text_before_cursor)), enable_history_search=True, on_text_insert=lambda _: self._typing(),
            tempfile_suffix=".md",
        )  # fmt: skip
        self.line = InputLine(self.input, completer)
        self.field = Buffer(name="field", multiline=False)
        self.app = InlineApplication(self._layout(), bindings(self), self._take, self.output())
        EarlyEcho(self)
        if keys == "vi":
            self.app.editing_mode = EditingMode.VI
            self.app.cursor = ModalCursorShapeConfig()
        self._frame: dict[str, list[str]] = {}

    # Life.

    @staticmethod
    def output() -> HeldOutput:
        """Return the terminal to draw on."""
        output = HeldOutput.from_pty(sys.stdout)
        if not isinstance(output, HeldOutput):
            raise TypeError("prompt_toolkit made another kind of output")
        return output

    async def run(self) -> None:
        """Show the window until `close`."""
        beating = asyncio.get_running_loop().create_task(self._next_frame())
        try:
            await self.app.run_async(set_exception_handler=False)
        finally:
            beating.cancel()
            self.app.finish()

    def close(self) -> None:
        """Close the window."""
        if self.app.is_running and not self.app.is_done:
            self.app.exit()

    def refresh(self) -> None:
        """Redraw soon."""
        self.app.invalidate()

    def write(self, codes: str) -> None:
        """Write raw output to the terminal."""
        self.app.output.write_raw(codes)
        self.app.output.flush()

    def clear(self) -> None:
        """Clear the screen."""
        self.app.renderer.clear()
        self.refresh()

    def _take(self) -> list[str]:
        """Start a redraw: drop the cached layout."""
        self._frame.clear()
        self._size()
        return self.screen.take()

    async def _next_frame(self) -> None:
        while True:
            await asyncio.sleep(FRAME_INTERVAL)
            if _is_closed(self.app.output):
                self.owner.leave()
            elif self.owner.busy:
                await self.owner.look()
                self.screen.animation_frame += 1
                self.refresh()
            else:
                self._garbage.nothing_happens(monotonic() - self._typed_at)

    async def in_terminal(self, command: list[str], env: dict[str, str]) -> int:
        """Run a program in the terminal until it ends."""

        async def run() -> int:
            process = await asyncio.create_subprocess_exec(*command, env=env)
            try:
                return await process.wait()
            finally:
                if process.returncode is None:
                    process.terminate()

        return await self.with_terminal(run)

    @property
    def rows(self) -> int:
        """The rows of the terminal."""
        return self._size()[0]

    async def with_terminal(self, run: Callable[[], Awaitable[T]]) -> T:
        """Give the terminal to something else until that is over. What is final is written before."""
        self.app._redraw()
        with set_app(self.app):
            async with in_terminal():
                return await run()

    async def page(self, lines: list[str]) -> None:
        """Show lines in the pager until it is left; without a pager they are written below."""
        if (command := pager_command(os.environ)) is None:
            self.screen.write(lines)
            self.refresh()
            return
        await self.with_terminal(lambda: run_pager(lines, command, os.environ))

    # The input line.

    @property
    def is_typing(self) -> bool:
        """Whether keys go to the input line."""
        return not self.takes_keys and self.app.layout.has_focus(self.input)

    # Questions.

    async def ask(self, panel: Panel) -> None:
        """Show a question until it is answered. Questions are queued."""
        answered = asyncio.Event()
        self.panels.append(panel)
        self._answered[id(panel)] = answered
        self._arrange()
        self.owner.notifications.asked()
        try:
            await answered.wait()
        finally:
            self.panels.remove(panel)
            del self._answered[id(panel)]
            self._arrange()
            self.owner.notifications.answered(more=self.panel is not None)

    @property
    def panel(self) -> Panel | None:
        """The open question."""
        return next((panel for panel in self.panels if not panel.done), None)

    @property
    def takes_keys(self) -> bool:
        """Whether a single key answers the open question."""
        panel = self.panel
        return panel is not None and panel.typed is None and not self.in_mid_word

    @property
    def in_mid_word(self) -> bool:
        """Whether the user is typing."""
        return bool(self.input.text) and monotonic() - self._typed_at < PAUSE

    def press(self, key: str) -> None:
        """Give the panel a key, and the time when it may have become an answer."""
        if (panel := self.panel) is None:
            return
        panel.key(key, monotonic())
        if panel.due is not None:
            # A timer may fire a little early, and then nothing would come of it.
            asyncio.get_running_loop().call_later(panel.due - monotonic() + TICK, self._settle)
        self.touched()

    def _settle(self) -> None:
        for panel in self.panels:
            panel.settle(monotonic())
        self.touched()

    def touched(self) -> None:
        """Check whether the panel is answered, after a key."""
        for panel in self.panels:
            if panel.done:
                self._answered[id(panel)].set()
        self._arrange()

    def _typing(self) -> None:
        self._typed_at = monotonic()
        self.owner.typed()
        if self.panel is not None:
            asyncio.get_running_loop().call_later(PAUSE, self._arrange)

    def _arrange(self) -> None:
        """Move the focus to where keys go."""
        panel = self.panel
        if panel is not None and panel.typed is not None:
            if self._filled != (step := (id(panel), panel.typed, panel.prefill)):
                self._filled, self.field.text = step, panel.prefill
                self.field.cursor_position = len(panel.prefill)
            self.app.layout.focus(self.field)
        elif self.takes_keys:
            self.app.layout.focus(self._panel_window)
        else:
            self.app.layout.focus(self.input)
        if panel is not None and self.in_mid_word:
            asyncio.get_running_loop().call_later(PAUSE, self._arrange)
        self.refresh()

    # The look of it.

    def _layout(self) -> Layout:
        typing = Condition(lambda: not self.takes_keys and (self.panel is None or self.panel.typed is None))
        filling_in = Condition(lambda: self.panel is not None and self.panel.typed is not None)
        self._panel_window = _lines(self._panel_lines, focusable=True)
        # After the panel is focused there is no place for a cursor in it.
        self._panel_window.always_hide_cursor = Condition(lambda: True)
        rows = HSplit([
            _lines(self._live_lines),
            ConditionalContainer(self._panel_window, Condition(lambda: self.panel is not None)),
            _lines(self._queue_lines),
            ConditionalContainer(_typed(self.field, self._field_prefix), filling_in),
            ConditionalContainer(_typed(self.input, lambda: f"{PROMPT} ", self._search), typing),
            self._search,
            _lines(self._menu_lines),
            _lines(self._status_lines),
        ])  # fmt: skip
        return Layout(rows, focused_element=self.input)

    def _size(self) -> tuple[int, int]:
        size = self.app.output.get_size()
        self.screen.painter.width = size.columns
        return size.rows, size.columns

    def _typed_lines(self, columns: int) -> int:
        lines = sum(len(line) // max(columns - 2, 1) + 1 for line in self.input.text.split("\n"))
        return min(lines, INPUT_LINES)

    @_once_a_frame
    def _live_lines(self) -> list[str]:
        rows, columns = self._size()
        taken = 2 + self._typed_lines(columns) + len(self._queue_lines()) + len(self._menu_lines())
        taken += len(self._panel_lines())
        lines = self.screen.live(max(rows - taken, 1))
        return [*lines, ""] if lines or self.screen.has_lines else lines

    @_once_a_frame
    def _panel_lines(self) -> list[str]:
        panel = self.panel
        if panel is None:
            return []
        rows, _ = self._size()
        lines = panel.lines(self.screen.painter, max(rows // 2 if panel.half_screen else rows - 6, 4))
        more = len([each for each in self.panels if not each.done]) - 1
        if self.in_mid_word and panel.typed is None:
            lines.append("(stop typing to answer)")
        return [*lines, f"({more} more to answer)"] if more else lines

    @_once_a_frame
    def _queue_lines(self) -> list[str]:
        waiting = self.owner.waiting
        texts = [
            Text(f"queued {PROMPT} {one_line(text)}", "dim", no_wrap=True, overflow="ellipsis")
            for text in waiting[:QUEUE_LINES]
        ]
        if len(waiting) > QUEUE_LINES:
            texts.append(Text(f"queued: {len(waiting) - QUEUE_LINES} more", "dim"))
        return self.screen.painter.all(texts)

    @_once_a_frame
    def _menu_lines(self) -> list[str]:
        state = self.input.complete_state
        if state is None or not state.completions or self.panel is not None:
            return []
        chosen = 0 if self.line.picking and state.complete_index is None else state.complete_index
        most = min(PICKER_LINES if self.line.picking else MENU_LINES, max(self._size()[0] // 2, 1))
        first = min(max((chosen or 0) - most // 2, 0), max(len(state.completions) - most, 0))
        shown = state.completions[first : first + most]
        width = max(len(each.display_text) for each in shown)
        texts: list[Text] = []
        for number, each in enumerate(shown, first):
            row = Text(
                f"  {one_line(each.display_text):<{width}}",
                "reverse" if number == chosen else "",
                no_wrap=True,
                overflow="ellipsis",
            )
            texts.append(row.append(f"  {one_line(each.display_meta_text)}", "dim"))
        if (more := len(state.completions) - first - len(shown)) > 0:
            texts.append(Text(f"  … {more} more", "dim"))
        return self.screen.painter.all(texts)

    @_once_a_frame
    def _status_lines(self) -> list[str]:
        status = self.owner.status()
        status.no_wrap, status.overflow = True, "ellipsis"
        return self.screen.painter.paint(status)

    def _field_prefix(self) -> str:
        return (self.panel.typed or "") if self.panel is not None else ""


def _lines(lines: Callable[[], list[str]], *, focusable: bool = False) -> Window:
    """Return a part of the window that is as high as its lines."""
    control = FormattedTextControl(
        lambda: ANSI(without_links("\n".join(lines()))), focusable=focusable, show_cursor=False
    )
    inner = Window(control, dont_extend_height=True, wrap_lines=False, always_hide_cursor=True)
    # An empty text would still take a line.
    inner.height = lambda: Dimension.exact(len(lines()))
    return inner


def _typed(buffer: Buffer, prefix: Callable[[], str], search: SearchToolbar | None = None) -> Window:
    def before(line: int, wrapped: int) -> str:
        words = prefix()
        return words if line == 0 and wrapped == 0 else " " * min(len(words), 2)

    return Window(
        BufferControl(buffer, search_buffer_control=search.control if search is not None else None, preview_search=True),
        wrap_lines=True, dont_extend_height=True, get_line_prefix=before,
        height=Dimension(min=1, max=INPUT_LINES),
    )  # fmt: skip


def _is_closed(output: Output) -> bool:
    """Whether the terminal was closed: prompt_toolkit would read from it for ever."""
    try:
        termios.tcgetattr(output.fileno())
    except termios.error as error:
        return bool(error.args[0] == EIO)
    except (NotImplementedError, ValueError):  # no descriptor
        pass
    return False


def _history(path: Path | None) -> FileHistory | InMemoryHistory:
    """Return the input history, readable by the user alone; in memory if it cannot be stored."""
    if path is None:
        return InMemoryHistory()
    try:
        make_private_directory(path.parent)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
