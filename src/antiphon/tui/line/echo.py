"""A typed letter on the screen before the line editor has handled it: to draw everything again takes some milliseconds.

It is a guess, that the letter will be inserted at the end of the line, and it is checked: where the line does not end with the letter
afterwards, everything is drawn anew.
"""

from typing import TYPE_CHECKING, Final

from prompt_toolkit.enums import EditingMode
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding.vi_state import InputMode

if TYPE_CHECKING:
    from collections.abc import Callable

    from prompt_toolkit.key_binding.key_processor import KeyPress

    from antiphon.tui.window import ChatWindow

__all__ = ["EarlyEcho", "WatchedInput"]

ESCAPE: Final = "\x1b"


class WatchedInput(Vt100Input):
    """The keyboard; a letter is seen before it is parsed and handled."""

    seen: "Callable[[str], None] | None" = None
    _is_open = False  # the last that was read may be the beginning of a longer sequence

    def read_keys(self) -> "list[KeyPress]":
        """Read the keys that were pressed."""
        data = self.stdin_reader.read()
        if len(data) == 1 and self.seen is not None and not self._is_open:
            self.seen(data)
        self.vt100_parser.feed(data)
        keys, self._buffer = self._buffer, []
        if self._is_open or ESCAPE in data:  # a complete sequence is a key; pasted text becomes one at its end
            last = keys[-1].data if keys else None
            self._is_open = last is None or not (data.endswith(last) or last.endswith(data))
        return keys

    def flush_keys(self) -> "list[KeyPress]":
        """Take what came for what it is: nothing has followed."""
        self._is_open = self.vt100_parser._in_bracketed_paste  # its end will come
        return super().flush_keys()


class EarlyEcho:
    """Shows letters of one window early."""

    def __init__(self, window: "ChatWindow") -> None:
        self._window = window
        self._is_ready = False
        """Whether a letter would be inserted at the end of the line. Found out when there is time, not when a key comes."""
        self._expected: str | None = None
        if isinstance(keyboard := window.app.input, WatchedInput):
            keyboard.seen = self._see
            window.app.key_processor.after_key_press += lambda _: self._check()
            window.app.after_render += lambda _: self._look()

    def _see(self, letter: str) -> None:
        if self._is_ready and "!" <= letter <= "~" and self._window.app.echo(letter):
            self._expected = self._window.input.text + letter

    def _look(self) -> None:
        window = self._window
        app, buffer = window.app, window.input
        self._is_ready = (
            window.panel is None
            and window.is_typing
            and not app.key_processor.key_buffer
            and app.key_processor.arg is None
            and (app.editing_mode is EditingMode.EMACS or app.vi_state.input_mode is InputMode.INSERT)
            and buffer.selection_state is None
            and buffer.document.is_cursor_at_the_end
        )

    def _check(self) -> None:
        """Draw everything anew if the letter went elsewhere."""
        expected, self._expected = self._expected, None
        if expected is not None and self._window.input.text != expected:
            self._window.app.renderer.erase()
            self._window.refresh()
        self._look()
