"""Key bindings of the chat."""

from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from antiphon.tui.line.keys import bind_line_keys

if TYPE_CHECKING:
    from antiphon.tui.window import ChatWindow

__all__ = ["bindings"]


def bindings(window: "ChatWindow") -> KeyBindings:
    """Return the key bindings of the chat, in addition to those of the line editor."""
    keys = KeyBindings()
    _bind_question_keys(keys, window)
    _bind_input_keys(keys, window)
    bind_line_keys(keys, window)
    _bind_exit_keys(keys, window)
    _bind_chat_keys(keys, window)
    return keys


def _bind_question_keys(keys: KeyBindings, window: "ChatWindow") -> None:
    answering = Condition(lambda: window.takes_keys)
    filling_in = Condition(lambda: window.panel is not None and window.panel.typed is not None)

    @keys.add(Keys.Any, filter=answering, eager=True)
    def _(event: KeyPressEvent) -> None:
        window.press(event.data)

    @keys.add("enter", filter=answering, eager=True)
    @keys.add("c-d", filter=answering, eager=True)
    @keys.add("s-tab", filter=answering, eager=True)
    @keys.add(Keys.BracketedPaste, filter=answering, eager=True)
    def _(event: KeyPressEvent) -> None:
        """Ignore Enter, Shift-Tab and pasted text: they are no answers."""

    @keys.add("escape", filter=answering | filling_in, eager=True)
    def _(event: KeyPressEvent) -> None:
        if (panel := window.panel) is not None:
            panel.leave("escape")
            window.field.reset()
            window.touched()

    @keys.add("c-c", filter=answering | filling_in, eager=True)
    def _(event: KeyPressEvent) -> None:
        if (panel := window.panel) is not None:
            panel.leave("interrupt")
            window.field.reset()
            window.touched()

    @keys.add("enter", filter=filling_in, eager=True)
    def _(event: KeyPressEvent) -> None:
        text = window.field.text
        window.field.reset()
        if (panel := window.panel) is not None:
            panel.enter(text)
            window.touched()


def _bind_input_keys(keys: KeyBindings, window: "ChatWindow") -> None:
    typing = Condition(lambda: window.is_typing)
    chosen = Condition(
        lambda: (state := window.input.complete_state) is not None and state.current_completion is not None
    )
    menu = Condition(lambda: window.line.has_menu)

    picking = Condition(lambda: window.line.picking)

    @keys.add("enter", filter=typing & picking, eager=True)
    def _(event: KeyPressEvent) -> None:
        if (text := window.line.picked()) is not None:
            window.owner.submit(text)
            window.refresh()

    @keys.add("enter", filter=typing & chosen & ~picking, eager=True)
    def _(event: KeyPressEvent) -> None:
        window.input.complete_state = None

    @keys.add("enter", filter=typing & ~chosen & ~picking, eager=True)
    def _(event: KeyPressEvent) -> None:
        text = window.input.text
        if window.input.document.text_before_cursor.endswith("\\") and not window.input.document.text_after_cursor:
            window.input.delete_before_cursor()
            window.input.newline(copy_margin=False)
        elif text.strip():
            window.line.remember(text)
            window.input.reset()
            window.owner.submit(text.strip("\n"))
            window.refresh()

    @keys.add("escape", "enter", filter=typing)
    @keys.add("c-j", filter=typing)
    def _(event: KeyPressEvent) -> None:
        window.input.newline(copy_margin=False)

    @keys.add("s-tab", filter=typing & menu)
    def _(event: KeyPressEvent) -> None:
        window.input.complete_previous()

    @keys.add("escape", filter=typing & menu)
    def _(event: KeyPressEvent) -> None:
        window.input.cancel_completion()


FOCUS_IN, FOCUS_OUT = Keys.F23, Keys.F24
"""Keys that no keyboard has: the terminal reports by a sequence of its own that it is in front, or not any more."""

ANSI_SEQUENCES["\x1b[I"], ANSI_SEQUENCES["\x1b[O"] = FOCUS_IN, FOCUS_OUT


def _bind_chat_keys(keys: KeyBindings, window: "ChatWindow") -> None:
    typing = Condition(lambda: not window.takes_keys and window.app.layout.has_focus(window.input))
    menu = Condition(lambda: window.line.has_menu)

    @keys.add("s-tab", filter=typing & ~menu)
    def _(event: KeyPressEvent) -> None:
        window.owner.modes.change_to_next()

    @keys.add(FOCUS_IN, eager=True)
    def _(event: KeyPressEvent) -> None:
        window.owner.notifications.focus(here=True)

    @keys.add(FOCUS_OUT, eager=True)
    def _(event: KeyPressEvent) -> None:
        window.owner.notifications.focus(here=False)


def _bind_exit_keys(keys: KeyBindings, window: "ChatWindow") -> None:
    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        window.owner.interrupt()
        window.refresh()

    empty = Condition(lambda: not window.input.text and window.panel is None)

    @keys.add("c-d", filter=empty, eager=True)
    def _(event: KeyPressEvent) -> None:
        window.owner.leave()

    @keys.add("escape", "escape", filter=empty & Condition(lambda: not window.owner.busy))
    def _(event: KeyPressEvent) -> None:
        window.owner.submit("/undo")

    @keys.add("c-z", eager=True)  # also while a question is open
    def _(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add("c-o", eager=True)  # also while a question is open
    def _(event: KeyPressEvent) -> None:
        window.owner.actions.unfold()

    @keys.add("c-l")
    def _(event: KeyPressEvent) -> None:
        window.clear()
