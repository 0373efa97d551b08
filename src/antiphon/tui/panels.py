"""Questions to the user as panels: what to show, and what a key or a typed line means. Pure: fed keys, asked for lines and for the answer.

Rule: only the keys that are shown answer. Anything else changes nothing; escape is always a no.
"""

from collections.abc import Sequence
from typing import Final, Generic, Literal, Protocol, TypeAlias, TypeVar

from rich.console import RenderableType
from rich.text import Text

from antiphon.tui.clean import clean, exact, one_line
from antiphon.tui.painting import Painter

__all__ = ["Leaving", "MenuPanel", "PagePanel", "Panel", "keys_text"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Leaving: TypeAlias = Literal["escape", "interrupt"]
"""How a question is left without an answer: by Esc, or by Ctrl-C."""

PAUSE: Final = 0.6
"""Seconds without a key after which a question may be answered by one."""

SHORTEST: Final = 3
"""Lines of what is asked about that are shown however small the terminal is."""


class Panel(Protocol):
    """One question."""

    done: bool

    @property
    def typed(self) -> str | None:
        """What stands before the line that is typed; None if single keys answer."""

    def lines(self, painter: Painter, height: int) -> list[str]:
        """What to show, in about that many lines."""

    def key(self, key: str) -> None:
        """A key was pressed."""

    def enter(self, text: str) -> None:
        """A line was typed."""

    def leave(self, how: Leaving) -> None:
        """The user does not want to answer."""


class Keyed(Generic[T]):
    """A question that single keys answer."""

    def __init__(self, if_left: T) -> None:
        self.done = False
        self.answer = if_left

    @property
    def typed(self) -> str | None:
        """Nothing is typed here."""
        return None

    def give(self, answer: T) -> None:
        """This is the answer."""
        self.answer, self.done = answer, True

    def enter(self, text: str) -> None:
        """Nothing is typed here."""

    def leave(self, how: Leaving) -> None:
        """The answer is what it is if none is given."""
        self.done = True


def keys_text(keys: Sequence[tuple[str, str]]) -> Text:
    """`y yes   n no`: the keys, and what they do."""
    text = Text()
    for key, meaning in keys:
        text.append("   " if text else "")
        text.append(f" {key} ", "reverse")
        text.append(f" {meaning}")
    return text


def fit(
    painter: Painter, above: list[RenderableType], body: list[str], below: list[RenderableType], height: int
) -> tuple[list[str], int]:
    """A panel whose middle is cut to fit; and how many lines of the middle are out of sight."""
    top, bottom = painter.all(above), painter.all(below)
    room = max(height - len(top) - len(bottom), SHORTEST)
    hidden = 0
    if len(body) > room:
        hidden = len(body) - room + 1
        body = [
            *body[: room - 1],
            *painter.paint(Text(f"  … {hidden} more {'line' if hidden == 1 else 'lines'}", "dim")),
        ]
    return [*top, *body, *bottom], hidden


class MenuPanel(Keyed[str | None]):
    """One of several, by its number. The answer is its id, None if none."""

    def __init__(self, title: str, choices: Sequence[tuple[str, str, str | None]]) -> None:
        super().__init__(None)
        self._title = title
        self._choices = choices
        """Id, name, description."""

    def lines(self, painter: Painter, height: int) -> list[str]:
        """The choices, one a line."""
        rows: list[RenderableType] = [Text(one_line(self._title), "bold yellow")]
        for number, (_, name, description) in enumerate(self._choices, 1):
            row = Text.assemble((f" {number} ", "reverse"), f" {one_line(name)}")
            if description:
                row.append(f"  {one_line(description)}", "dim")
            rows.append(row)
        body = painter.all(rows[1:])
        return fit(painter, rows[:1], body, [keys_text([("esc", "none of them")])], height)[0]

    def key(self, key: str) -> None:
        """A number chooses."""
        if key.isdigit() and 0 < int(key) <= len(self._choices):
            self.give(self._choices[int(key) - 1][0])


class PagePanel(Keyed[Literal["opened", "declined", "dismissed"]]):
    """A page that the agent wants opened. Nothing is opened unless the user says so, and the address is shown whole."""

    def __init__(self, message: str, url: str) -> None:
        super().__init__("dismissed")
        self.url = url
        self._message = message
        self.wants_browser = False

    def lines(self, painter: Painter, height: int) -> list[str]:
        """The message, the address, the keys."""
        above: list[RenderableType] = [
            Text("The agent asks you to open a page", "bold yellow"),
            Text(clean(self._message)),
        ]
        keys = keys_text([("o", "open it in the browser"), ("y", "I went there"), ("n", "no")])
        return fit(painter, above, painter.paint(Text(exact(self.url), "underline"), indent=2), [keys], height)[0]

    def key(self, key: str) -> None:
        """Open, done, or no."""
        if key in ("o", "y"):
            self.wants_browser = key == "o"
            self.give("opened")
        elif key == "n":
            self.give("declined")

    def leave(self, how: Leaving) -> None:
        """Esc says no; Ctrl-C says nothing."""
        self.give("declined" if how == "escape" else "dismissed")
