"""The title of a session, as long as nobody gives it a better one: the first thing that the user said, in one line."""

from typing import Final

from antiphon.engines.wording import sentence

__all__ = ["TITLE_LENGTH", "title_of"]

TITLE_LENGTH: Final = 80


def title_of(text: str) -> str | None:
    """One line of it; None if there are no words."""
    return sentence(text, TITLE_LENGTH) or None
