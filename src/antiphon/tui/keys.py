"""Which key does what. Decides nothing: it tells the window, the panel or the talker."""

from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

if TYPE_CHECKING:
    from antiphon.tui.window import Room

__all__ = ["bindings"]


def bindings(room: "Room") -> KeyBindings:
    """The keys of the chat, on top of those that every line editor has."""
    keys = KeyBindings()
    _bind_questions(keys, room)
    _bind_typing(keys, room)
    _bind_leaving(keys, room)
    return keys


def _bind_questions(keys: KeyBindings, room: "Room") -> None:
    answering = Condition(lambda: room.takes_keys)
    filling_in = Condition(lambda: room.panel is not None and room.panel.typed is not None)

    @keys.add(Keys.Any, filter=answering, eager=True)
    def _(event: KeyPressEvent) -> None:
        room.press(event.data)

    @keys.add("enter", filter=answering, eager=True)
    @keys.add("c-d", filter=answering, eager=True)
    @keys.add(Keys.BracketedPaste, filter=answering, eager=True)
    def _(event: KeyPressEvent) -> None:
        """Neither an accident with Enter nor a paste is an answer."""

    @keys.add("escape", filter=answering | filling_in, eager=True)
    def _(event: KeyPressEvent) -> None:
        if (panel := room.panel) is not None:
            panel.leave("escape")
            room.field.reset()
            room.touched()

    @keys.add("c-c", filter=answering | filling_in, eager=True)
    def _(event: KeyPressEvent) -> None:
        if (panel := room.panel) is not None:
            panel.leave("interrupt")
            room.field.reset()
            room.touched()

    @keys.add("enter", filter=filling_in, eager=True)
    def _(event: KeyPressEvent) -> None:
        text = room.field.text
        room.field.reset()
        if (panel := room.panel) is not None:
            panel.enter(text)
            room.touched()


def _bind_typing(keys: KeyBindings, room: "Room") -> None:
    typing = Condition(lambda: not room.takes_keys and room.app.layout.has_focus(room.input))
    chosen = Condition(
        lambda: (state := room.input.complete_state) is not None and state.current_completion is not None
    )
    menu = Condition(lambda: room.input.complete_state is not None)

    @keys.add("enter", filter=typing & chosen, eager=True)
    def _(event: KeyPressEvent) -> None:
        room.input.complete_state = None

    @keys.add("enter", filter=typing & ~chosen, eager=True)
    def _(event: KeyPressEvent) -> None:
        text = room.input.text
        if room.input.document.text_before_cursor.endswith("\\") and not room.input.document.text_after_cursor:
            room.input.delete_before_cursor()
            room.input.newline(copy_margin=False)
        elif text.strip():
            room.input.reset(append_to_history=True)
            room.talker.submit(text.strip("\n"))
            room.refresh()

    @keys.add("escape", "enter", filter=typing)
    @keys.add("c-j", filter=typing)
    def _(event: KeyPressEvent) -> None:
        room.input.newline(copy_margin=False)

    @keys.add("tab", filter=typing)
    def _(event: KeyPressEvent) -> None:
        if room.input.complete_state is not None:
            room.input.complete_next()
        else:
            room.input.start_completion(insert_common_part=True)

    @keys.add("s-tab", filter=typing & menu)
    def _(event: KeyPressEvent) -> None:
        room.input.complete_previous()

    @keys.add("escape", filter=typing & menu)
    def _(event: KeyPressEvent) -> None:
        room.input.cancel_completion()


def _bind_leaving(keys: KeyBindings, room: "Room") -> None:
    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        room.talker.interrupt()
        room.refresh()

    empty = Condition(lambda: not room.input.text and room.panel is None)

    @keys.add("c-d", filter=empty, eager=True)
    def _(event: KeyPressEvent) -> None:
        room.talker.leave()

    @keys.add("c-z")
    def _(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add("c-l")
    def _(event: KeyPressEvent) -> None:
        room.clear()
