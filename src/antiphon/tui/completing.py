"""What a word on the line may become: a command, one of its values, a path behind an `@`. Reads directories, and nothing else."""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from antiphon.tui.clean import one_line

__all__ = ["ChatCompleter", "paths_for"]

MOST_PATHS: Final = 200
"""Names of one directory that are offered. Nobody reads more; they type another letter."""


class ChatCompleter(Completer):
    """Completes what stands before the cursor."""

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
        """Names and what they mean."""
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
    """The `@path` that the cursor stands at the end of."""
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
    """What this beginning of a path may become, directories first. Hidden names only if a dot was typed."""
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
