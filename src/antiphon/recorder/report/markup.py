"""HTML that no content can break out of: everything that is not markup is escaped when it goes into an element."""

from html import escape
from typing import Final

from antiphon.text import exact

__all__ = ["Markup", "joined", "tag", "text"]

_EMPTY: Final = frozenset({"br", "circle", "col", "line", "path", "rect"})
"""Elements that have no content and no end."""


class Markup(str):
    """A string that is HTML already. Only this module makes one of words."""

    __slots__ = ()


def text(words: object) -> Markup:
    """Words as they can be shown: nothing in them is markup, and nothing is invisible or turns the line around."""
    return Markup(escape(exact(str(words))))


def tag(name: str, *content: object, **attributes: object) -> Markup:
    """An element. Attributes that are None are left out; `class_` is `class`, and other underscores are dashes."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _EMPTY and not content:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{joined(*content)}</{name}>")


def joined(*content: object) -> Markup:
    """Parts joined in order; None is skipped."""
    return Markup("".join(one if isinstance(one, Markup) else text(one) for one in content if one is not None))
