"""Completion of the input line: commands, their values and paths, by a few of their letters."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from antiphon.tui.line.files import FileIndex
from antiphon.tui.line.fuzzy import ranked
from antiphon.tui.line.shell import LAST_OUTPUT
from antiphon.tui.painter import one_line

__all__ = ["ChatCompleter", "is_completed"]

_LINES: Final = re.compile(r":\d*(?:-\d*)?$|#L[\d:L-]*$")
"""The lines of a file behind its path: the path is complete."""


class ChatCompleter(Completer):
    """Completes commands, their values and paths before the cursor."""

    def __init__(
        self,
        commands: Callable[[], Iterable[tuple[str, str]]],
        values: Callable[[str], Iterable[tuple[str, str]]],
        cwd: Callable[[], str],
        last_command: Callable[[], str] = lambda: "",
    ) -> None:
        self._commands = commands
        self._values = values
        self._cwd = cwd
        self._last_command = last_command
        self._files = FileIndex()

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield completions with descriptions."""
        text = document.text_before_cursor
        command, space, rest = text.partition(" ")
        word = text[max(text.rfind(" "), text.rfind("\n")) + 1 :]
        if text.startswith("/") and not space and "\n" not in text:
            yield from _matching(text[1:], self._commands(), "/")
        elif (at := _mention(text)) is not None:
            yield from self._paths(at)
        elif text.startswith("/") and "\n" not in text and " " not in rest:
            yield from _matching(word, self._values(command[1:]))

    def _paths(self, at: str) -> Iterator[Completion]:
        typed = at[1:].removeprefix('"')
        if _LINES.search(typed):
            return
        if (last := self._last_command()) and LAST_OUTPUT.startswith(at):
            yield Completion(LAST_OUTPUT, start_position=-len(at), display_meta=f"the output of {last}")
        for path in self._files.matching(typed, self._cwd()):
            quoted = f'@"{path}' if " " in path or at.startswith('@"') else f"@{path}"
            if quoted.startswith('@"') and not path.endswith("/"):
                quoted += '"'
            yield Completion(quoted, start_position=-len(at), display=one_line(path))


def is_completed(text: str) -> bool:
    """Whether there is something to complete before the cursor: most letters are letters of a word, and wake no thread."""
    return text.startswith("/") or _mention(text) is not None


def _mention(text: str) -> str | None:
    """Return the `@path` before the cursor."""
    quote = text.rfind('@"')
    if quote >= 0 and '"' not in text[quote + 2 :] and "\n" not in text[quote:]:
        return text[quote:]
    word = text[max(text.rfind(" "), text.rfind("\n")) + 1 :]
    return word if word.startswith("@") else None


def _matching(word: str, offered: Iterable[tuple[str, str]], before: str = "") -> Iterator[Completion]:
    """Yield what fits by its name, then what fits by its description."""
    everything = list(offered)
    found = ranked(word, everything, lambda each: each[0], keep_order=True)
    if len(word) > 1:
        found += [each for each in everything if each not in found and word.lower() in each[1].lower()]
    for name, about in found:
        if name != word:
            yield Completion(
                before + name, start_position=-len(before + word), display=before + name, display_meta=about
            )
