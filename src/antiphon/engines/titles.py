"""The title of a session, as long as nobody gives it a better one: the first thing that the user said, in one line."""

from typing import Final

__all__ = ["TITLE_LENGTH", "title_of"]

TITLE_LENGTH: Final = 80


def title_of(text: str) -> str | None:
    """One line of it; None if there are no words."""
    line = " ".join(text.split())
    return (line[: TITLE_LENGTH - 1] + "…" if len(line) > TITLE_LENGTH else line) or None
