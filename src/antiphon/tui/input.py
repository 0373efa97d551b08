"""Key bindings and completion of the chat."""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from antiphon.tui.painter import one_line

if TYPE_CHECKING:
    from antiphon.tui.window import ChatWindow

__all__ = ["ChatCompleter", "bindings", "paths_for"]

# --- completion ------------------------------------------------------------------------------------------------------

MOST_PATHS: Final = 200
"""Names of one directory that are offered. With more, users type another letter."""


class ChatCompleter(Completer):
    """Completes commands, their values and paths before the cursor."""

    def __init__(
        self,
        commands: Callable[[], Iterable[tuple[str, str]]],
        values: Callable[[str], Iterable[tuple[str, str]]],
        cwd: Callable[[], str],
    ) -> None:
        self._commands = commands
        self._values = values
        self._cwd = cwd

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield completions with descriptions."""
        text = document.text_before_cursor
        command, space, rest = text.partition(" ")
        word = text[max(text.rfind(" "), text.rfind("\n")) + 1 :]
        if text.startswith("/") and not space and "\n" not in text:
            yield from _matching(text, ((f"/{name}", about) for name, about in self._commands()))
        elif (at := _mention(text)) is not None:
            yield from self._paths(at)
        elif text.startswith("/") and "\n" not in text and " " not in rest:
            yield from _matching(word, self._values(command[1:]))

    def _paths(self, at: str) -> Iterator[Completion]:
        typed = at[1:].removeprefix('"')
        for path in paths_for(typed, self._cwd()):
            quoted = f'@"{path}' if " " in path or at.startswith('@"') else f"@{path}"
            if quoted.startswith('@"') and not path.endswith("/"):
                quoted += '"'
            yield Completion(quoted, start_position=-len(at), display=one_line(path))


def _mention(text: str) -> str | None:
    """Return the `@path` before the cursor."""
    quote = text.rfind('@"')
    if quote >= 0 and '"' not in text[quote + 2 :] and "\n" not in text[quote:]:
        return text[quote:]
    word = text[max(text.rfind(" "), text.rfind("\n")) + 1 :]
    return word if word.startswith("@") else None


def _matching(word: str, offered: Iterable[tuple[str, str]]) -> Iterator[Completion]:
    for name, about in offered:
        if name.lower().startswith(word.lower()) and name != word:
            yield Completion(name, start_position=-len(word), display=name, display_meta=about)


def paths_for(typed: str, cwd: str) -> list[str]:
    """Return the paths that begin like this, directories first; hidden ones only after a dot."""
    folder, name = os.path.split(typed)
    try:
        with os.scandir(os.path.join(cwd, os.path.expanduser(folder) if folder else "")) as found:
            names = sorted(
                (not entry.is_dir(), entry.name)
                for entry in found
                if entry.name.lower().startswith(name.lower())
                and (name.startswith(".") or not entry.name.startswith("."))
            )
    except OSError:
        return []
    return [os.path.join(folder, entry) + ("" if plain else "/") for plain, entry in names[:MOST_PATHS]]


def bindings(window: "ChatWindow") -> KeyBindings:
    """Return the key bindings of the chat, in addition to those of the line editor."""
    keys = KeyBindings()
    _bind_question_keys(keys, window)
    _bind_input_keys(keys, window)
    _bind_exit_keys(keys, window)
    return keys


def _bind_question_keys(keys: KeyBindings, window: "ChatWindow") -> None:
    answering = Condition(lambda: window.takes_keys)
    filling_in = Condition(lambda: window.panel is not None and window.panel.typed is not None)

    @keys.add(Keys.Any, filter=answering, eager=True)
    def _(event: KeyPressEvent) -> None:
        window.press(event.data)

    @keys.add("enter", filter=answering, eager=True)
    @keys.add("c-d", filter=answering, eager=True)
    @keys.add(Keys.BracketedPaste, filter=answering, eager=True)
    def _(event: KeyPressEvent) -> None:
        """Ignore Enter and pasted text: they are no answers."""

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
    typing = Condition(lambda: not window.takes_keys and window.app.layout.has_focus(window.input))
    chosen = Condition(
        lambda: (state := window.input.complete_state) is not None and state.current_completion is not None
    )
    menu = Condition(lambda: window.input.complete_state is not None)

    @keys.add("enter", filter=typing & chosen, eager=True)
    def _(event: KeyPressEvent) -> None:
        window.input.complete_state = None

    @keys.add("enter", filter=typing & ~chosen, eager=True)
    def _(event: KeyPressEvent) -> None:
        text = window.input.text
        if window.input.document.text_before_cursor.endswith("\\") and not window.input.document.text_after_cursor:
            window.input.delete_before_cursor()
            window.input.newline(copy_margin=False)
        elif text.strip():
            window.input.reset(append_to_history=True)
            window.owner.submit(text.strip("\n"))
            window.refresh()

    @keys.add("escape", "enter", filter=typing)
    @keys.add("c-j", filter=typing)
    def _(event: KeyPressEvent) -> None:
        window.input.newline(copy_margin=False)

    @keys.add("tab", filter=typing)
    def _(event: KeyPressEvent) -> None:
        if window.input.complete_state is not None:
            window.input.complete_next()
        else:
            window.input.start_completion(insert_common_part=True)

    @keys.add("s-tab", filter=typing & menu)
    def _(event: KeyPressEvent) -> None:
        window.input.complete_previous()

    @keys.add("escape", filter=typing & menu)
    def _(event: KeyPressEvent) -> None:
        window.input.cancel_completion()


def _bind_exit_keys(keys: KeyBindings, window: "ChatWindow") -> None:
    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        window.owner.interrupt()
        window.refresh()

    empty = Condition(lambda: not window.input.text and window.panel is None)

    @keys.add("c-d", filter=empty, eager=True)
    def _(event: KeyPressEvent) -> None:
        window.owner.leave()

    @keys.add("c-z")
    def _(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add("c-l")
    def _(event: KeyPressEvent) -> None:
        window.clear()
