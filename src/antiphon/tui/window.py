"""The live part of the terminal below the scrollback: open lines, questions, the input line and the status.

While a question is open that one key answers, keys answer it; but not in the middle of a word. A user who is typing when a question
comes up goes on typing, and answers when they have stopped.
"""

import asyncio
import os
import sys
import termios
from collections.abc import Callable
from errno import EIO
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.application.run_in_terminal import in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, ThreadedCompleter
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.layout import BufferControl, ConditionalContainer, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.output import Output
from prompt_toolkit.output.vt100 import Vt100_Output
from rich.text import Text

from antiphon.config.directories import make_private_directory
from antiphon.tui.input import bindings
from antiphon.tui.painter import one_line
from antiphon.tui.panels import PAUSE, Panel
from antiphon.tui.screen import PROMPT, ChatScreen

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindingsBase
    from prompt_toolkit.layout.screen import Screen as Cells

__all__ = ["ChatWindow", "HeldOutput", "InlineApplication", "WindowOwner"]

# --- drawing below the scrollback ------------------------------------------------------------------------------------
# Rule 1: one redraw is one write. Between erasing and drawing the terminal has nothing to show, so it must not show that.
# Rule 2: the cursor's place is never asked for: the answer would have to come over ssh, and some terminals give none.

BEGIN: Final = "\x1b[?2026h"
END: Final = "\x1b[?2026l"
"""Synchronized update: terminals that know it show all of it at once, the others ignore it."""

FASTEST: Final = 0.04
"""Seconds between two redraws: 25 in a second look like none at all."""

ESCAPE_WAIT: Final = 0.15
"""Seconds after which an escape is the key and not the beginning of another one. Over a slow line they may come apart."""


class HeldOutput(Vt100_Output):
    """Output that is held back until a whole frame is complete."""

    held = False

    def hold(self) -> None:
        """Hold output back until `release`."""
        if not self.held:
            self.write_raw(BEGIN)
            self.held = True

    def release(self) -> None:
        """Write the held output in one piece."""
        if self.held:
            self.write_raw(END)
            self.held = False
            self.flush()

    def flush(self) -> None:
        """Write, unless held back."""
        if not self.held:
            super().flush()

    @property
    def responds_to_cpr(self) -> bool:
        """False: the cursor position is never requested."""
        return False


class InlineApplication(Application[None]):
    """An application below the scrollback: prints final lines before each redraw, and is as high as its content."""

    def __init__(self, layout: "Layout", keys: "KeyBindingsBase", take: Callable[[], list[str]]) -> None:
        output = HeldOutput.from_pty(sys.stdout)
        if not isinstance(output, HeldOutput):
            raise TypeError("prompt_toolkit made another kind of output")
        super().__init__(
            layout=layout, key_bindings=keys, output=output, erase_when_done=True, min_redraw_interval=FASTEST,
            max_render_postpone_time=FASTEST, mouse_support=False, enable_page_navigation_bindings=False,
        )  # fmt: skip
        self.ttimeoutlen = ESCAPE_WAIT
        self._held = output
        self._take = take
        self._drawn_for: Size | None = None
        self.before_render += lambda _: self._raise_final_lines()
        self.after_render += lambda _: self._drawn()

    def _raise_final_lines(self) -> None:
        self._held.hold()
        size = self.output.get_size()
        lines = self._take()
        drawn = self.renderer.last_rendered_screen
        needed = self.layout.container.preferred_height(size.columns, size.rows).preferred
        if lines or (drawn is not None and needed < drawn.height):  # prompt_toolkit by itself never gets lower again
            self.renderer.erase()
            if lines:
                self.output.write_raw("\x1b[0m\r\n".join(lines) + "\x1b[0m\r\n")

    def _drawn(self) -> None:
        self._drawn_for = self.output.get_size()
        self._held.release()

    def _on_resize(self) -> None:
        # The terminal has wrapped what no longer fits, so there are more lines above the cursor than were drawn.
        self._held.hold()
        drawn, before, now = self.renderer.last_rendered_screen, self._drawn_for, self.output.get_size()
        if drawn is not None and before is not None and now.columns < before.columns:
            self.renderer._cursor_pos = _after_wrapping(drawn, self.renderer._cursor_pos, now.columns)
        super()._on_resize()
        self._held.release()

    def finish(self) -> None:
        """Write the rest, also after an error."""
        self._held.release()


def _after_wrapping(drawn: "Cells", cursor: Point, columns: int) -> Point:
    """Return where the cursor is after lines are wrapped."""
    above = sum(_rows(drawn, y, columns) for y in range(cursor.y))
    return Point(x=cursor.x % columns, y=above + cursor.x // columns)


def _rows(drawn: "Cells", y: int, columns: int) -> int:
    row = drawn.data_buffer[y]
    used = max((x + 1 for x, cell in row.items() if cell.char.strip()), default=0)
    return max(-(-used // columns), 1)


TICK: Final = 0.01
"""Seconds by which a timer is late on purpose."""

INPUT_LINES: Final = 8
"""Lines of the prompt that are in sight while it is typed."""

MENU_LINES: Final = 7
"""Completions in sight."""

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
    def waiting(self) -> "list[str]":
        """Prompts that are queued."""

    def submit(self, text: str) -> None:
        """Take a line."""

    def interrupt(self) -> None:
        """Handle Ctrl-C."""

    def typed(self) -> None:
        """Handle a typed character."""

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

    def __init__(self, screen: ChatScreen, owner: WindowOwner, completer: Completer, history: Path | None) -> None:
        self.screen = screen
        self.owner = owner
        self.panels: list[Panel] = []
        self._answered: dict[int, asyncio.Event] = {}
        self._typed_at = float("-inf")
        self.input = Buffer(
            name="input", multiline=True, history=_history(history), completer=ThreadedCompleter(completer),
            complete_while_typing=True, enable_history_search=True, on_text_insert=lambda _: self._typing(),
        )  # fmt: skip
        self.field = Buffer(name="field", multiline=False)
        self.app = InlineApplication(self._layout(), bindings(self), self._take)
        self._frame: dict[str, list[str]] = {}

    # Life.

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

    async def in_terminal(self, command: list[str], env: dict[str, str]) -> int:
        """Run a program in the terminal until it ends."""
        with set_app(self.app):
            async with in_terminal():
                process = await asyncio.create_subprocess_exec(*command, env=env)
                try:
                    return await process.wait()
                finally:
                    if process.returncode is None:
                        process.terminate()

    # Questions.

    async def ask(self, panel: Panel) -> None:
        """Show a question until it is answered. Questions are queued."""
        answered = asyncio.Event()
        self.panels.append(panel)
        self._answered[id(panel)] = answered
        self._arrange()
        try:
            await answered.wait()
        finally:
            self.panels.remove(panel)
            del self._answered[id(panel)]
            self._arrange()

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
            ConditionalContainer(_typed(self.input, lambda: f"{PROMPT} "), typing),
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
        lines = panel.lines(self.screen.painter, max(rows - 6, 4))
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
        chosen = state.complete_index
        first = min(max((chosen or 0) - MENU_LINES // 2, 0), max(len(state.completions) - MENU_LINES, 0))
        shown = state.completions[first : first + MENU_LINES]
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
    control = FormattedTextControl(lambda: ANSI("\n".join(lines())), focusable=focusable, show_cursor=False)
    inner = Window(control, dont_extend_height=True, wrap_lines=False, always_hide_cursor=True)
    # An empty text would still take a line.
    inner.height = lambda: Dimension.exact(len(lines()))
    return inner


def _typed(buffer: Buffer, prefix: Callable[[], str]) -> Window:
    def before(line: int, wrapped: int) -> str:
        words = prefix()
        return words if line == 0 and wrapped == 0 else " " * min(len(words), 2)

    return Window(
        BufferControl(buffer), wrap_lines=True, dont_extend_height=True, get_line_prefix=before,
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
