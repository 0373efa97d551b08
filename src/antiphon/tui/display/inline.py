"""An application below the scrollback: final lines go above it, and it is drawn anew below them.

Rule 1: one redraw is one write. Between erasing and drawing the terminal has nothing to show, so it must not show that.
Rule 2: the cursor's place is never asked for: the answer would have to come over ssh, and some terminals give none.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from errno import EIO
from typing import TYPE_CHECKING, Final

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from antiphon.tui.display.notifications import FOCUS_OFF, FOCUS_ON
from antiphon.tui.line.echo import WatchedInput

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindingsBase
    from prompt_toolkit.layout import Layout
    from prompt_toolkit.layout.screen import Screen as Cells

__all__ = ["HeldOutput", "InlineApplication"]

BEGIN: Final = "\x1b[?2026h"
END: Final = "\x1b[?2026l"
"""Synchronized update: terminals that know it show all of it at once, the others ignore it."""

FASTEST: Final = 0.04
"""Seconds between two redraws: 25 in a second look like none at all."""

TYPING_PAUSE: Final = 0.12
"""Seconds without another letter after which a frame is drawn for letters that are on the screen already."""

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
        """Write, unless held back. What a terminal that was closed does not take is lost with it: its end comes as a signal."""
        if self.held:
            return
        try:
            super().flush()
        except OSError as error:
            if error.errno != EIO:
                raise

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits to be written."""
        return not self.held and not self._buffer

    def write_now(self, codes: str) -> bool:
        """Write a few characters past all that flushing does, and return whether the terminal took them."""
        try:
            return os.write(self.fileno(), codes.encode()) > 0
        except OSError:  # it is full, or was closed: the next frame will show
            return False

    def erase_down(self) -> None:
        """Erase from the beginning of a line to the end of the screen.

        tmux takes "erase everything", which that is in the first line, for the end of a page, and puts what is erased into its
        history. So the line is erased by itself, and the rest from its second column on.
        """
        self.write_raw("\x1b[K\x1b[C\x1b[J\r")

    def enable_bracketed_paste(self) -> None:
        """Let the terminal mark pasted text, and report whether it is in front: both as long as the chat has the terminal."""
        super().enable_bracketed_paste()
        self.write_raw(FOCUS_ON)

    def disable_bracketed_paste(self) -> None:
        """Leave the terminal to another program."""
        self.write_raw(FOCUS_OFF)
        super().disable_bracketed_paste()

    @property
    def responds_to_cpr(self) -> bool:
        """False: the cursor position is never requested."""
        return False


class InlineApplication(Application[None]):
    """An application below the scrollback: prints final lines before each redraw, and is as high as its content."""

    def __init__(
        self, layout: "Layout", keys: "KeyBindingsBase", take: Callable[[], list[str]], output: HeldOutput
    ) -> None:
        super().__init__(
            layout=layout, key_bindings=keys, input=WatchedInput(sys.stdin), output=output, erase_when_done=True, min_redraw_interval=FASTEST,
            max_render_postpone_time=FASTEST, mouse_support=False, enable_page_navigation_bindings=False, color_depth=_depth(os.environ),
        )  # fmt: skip
        self.ttimeoutlen = ESCAPE_WAIT
        self._held = output
        self._take = take
        self._drawn_for: Size | None = None
        self._is_echoing = False
        self._postponed: asyncio.TimerHandle | None = None
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

    def echo(self, letter: str) -> bool:
        """Write a letter where the cursor is, and return whether there was a place for it. The redraw draws it again."""
        if self._drawn_for is None or not self._held.is_empty or self._running_in_terminal:
            return False
        x, y = self.renderer._cursor_pos
        if x + 1 >= self._drawn_for.columns:
            # In the last column terminals wait for the next letter before they wrap. Back there by its number, none of them does, and
            # the cursor is where the renderer has it. The frame, which may be a line higher, follows at once.
            return x < self._drawn_for.columns and self._held.write_now(f"{letter}\r\x1b[{x}C")
        if not self._held.write_now(letter):
            return False
        self.renderer._cursor_pos = Point(x=x + 1, y=y)
        self._is_echoing = True
        asyncio.get_running_loop().call_soon(self._echo_is_over)
        return True

    def _echo_is_over(self) -> None:
        self._is_echoing = False

    def invalidate(self) -> None:
        """Redraw soon; after a letter that is on the screen already, when the user pauses."""
        if not self._is_echoing:
            super().invalidate()
            return
        if self._postponed is not None:
            self._postponed.cancel()
        self._postponed = asyncio.get_running_loop().call_later(TYPING_PAUSE, self.invalidate)

    def _drawn(self) -> None:
        if self._postponed is not None:
            self._postponed.cancel()
            self._postponed = None
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


def _depth(environment: Mapping[str, str]) -> ColorDepth | None:
    """Return as many colours as the final lines have: a line must not change its colour when it becomes final."""
    return ColorDepth.TRUE_COLOR if environment.get("COLORTERM", "").lower() in ("truecolor", "24bit") else None


def _after_wrapping(drawn: "Cells", cursor: Point, columns: int) -> Point:
    """Return where the cursor is after lines are wrapped."""
    above = sum(_rows(drawn, y, columns) for y in range(cursor.y))
    return Point(x=cursor.x % columns, y=above + cursor.x // columns)


def _rows(drawn: "Cells", y: int, columns: int) -> int:
    row = drawn.data_buffer[y]
    used = max((x + 1 for x, cell in row.items() if cell.char.strip()), default=0)
    return max(-(-used // columns), 1)
