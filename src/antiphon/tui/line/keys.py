"""The keys of the input line: completion, pasted text, images, the external editor, pickers."""

from typing import TYPE_CHECKING

from prompt_toolkit.completion import get_common_complete_suffix
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from antiphon.tui.line.pastes import pasted_image

if TYPE_CHECKING:
    from antiphon.tui.window import ChatWindow

__all__ = ["bind_line_keys"]


def bind_line_keys(keys: KeyBindings, window: "ChatWindow") -> None:
    """Add the keys of the input line."""
    typing = Condition(lambda: window.is_typing)
    menu = Condition(lambda: window.line.has_menu)
    label = Condition(lambda: bool(window.line.label_before_cursor))
    picking = Condition(lambda: window.line.picking)
    _bind_completion(keys, window)

    @keys.add("escape", filter=typing & picking, eager=True)
    def _(event: KeyPressEvent) -> None:
        window.line.reset()

    @keys.add(Keys.BracketedPaste, filter=typing)
    def _(event: KeyPressEvent) -> None:
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        window.input.insert_text(pasted_image(text, window.screen.cwd) or window.line.pastes.fold(text))

    @keys.add("backspace", filter=typing & label & ~menu)
    def _(event: KeyPressEvent) -> None:
        window.input.delete_before_cursor(len(window.line.label_before_cursor))

    @keys.add("c-v", filter=typing)
    def _(event: KeyPressEvent) -> None:
        window.owner.actions.paste_image()

    @keys.add("c-g", filter=typing)
    @keys.add("c-x", "c-e", filter=typing)
    def _(event: KeyPressEvent) -> None:
        window.input.text = window.line.unfolded(window.input.text)
        _ = window.input.open_in_editor()  # a task, which the application keeps


def _bind_completion(keys: KeyBindings, window: "ChatWindow") -> None:
    typing = Condition(lambda: window.is_typing)

    @keys.add("tab", filter=typing)
    def _(event: KeyPressEvent) -> None:
        state = window.input.complete_state
        if state is None or not state.completions:
            window.line.complete()
            state = window.input.complete_state
        if state is None:
            return
        common = (
            get_common_complete_suffix(window.input.document, state.completions) if state.complete_index is None else ""
        )
        if common:
            window.input.insert_text(common)
            window.line.complete()
        else:
            window.input.complete_next()
