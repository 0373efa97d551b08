"""Draws below the scrollback: final lines go up and stay, the rest is drawn again in place. Knows prompt_toolkit's renderer, and no chat.

Rule 1: one redraw is one write. Between erasing and drawing the terminal has nothing to show, so it must not show that.
Rule 2: the cursor's place is never asked for: the answer would have to come over ssh, and some terminals give none.
"""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.output.vt100 import Vt100_Output

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindingsBase
    from prompt_toolkit.layout import Layout
    from prompt_toolkit.layout.screen import Screen as Cells

__all__ = ["Drawing", "HeldOutput"]

BEGIN: Final = "\x1b[?2026h"
END: Final = "\x1b[?2026l"
"""Synchronized update: terminals that know it show all of it at once, the others ignore it."""

FASTEST: Final = 0.04
"""Seconds between two redraws: 25 in a second look like none at all."""

ESCAPE_WAIT: Final = 0.15
"""Seconds after which an escape is the key and not the beginning of another one. Over a slow line they may come apart."""


class HeldOutput(Vt100_Output):
    """Output that can be held back until there is a whole screen of it."""

    held = False

    def hold(self) -> None:
        """Keep everything until `release`."""
        if not self.held:
            self.write_raw(BEGIN)
            self.held = True

    def release(self) -> None:
        """Let all of it go, in one piece."""
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
        """Rule 2."""
        return False


class Drawing(Application[None]):
    """An application that takes final lines from somewhere before each redraw, and is only as high as it needs to be."""

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
        """Whatever happened, the terminal gets the rest."""
        self._held.release()


def _after_wrapping(drawn: "Cells", cursor: Point, columns: int) -> Point:
    """Where the cursor is once every line is wrapped at so many columns."""
    above = sum(_rows(drawn, y, columns) for y in range(cursor.y))
    return Point(x=cursor.x % columns, y=above + cursor.x // columns)


def _rows(drawn: "Cells", y: int, columns: int) -> int:
    row = drawn.data_buffer[y]
    used = max((x + 1 for x, cell in row.items() if cell.char.strip()), default=0)
    return max(-(-used // columns), 1)
