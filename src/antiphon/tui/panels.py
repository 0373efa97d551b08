"""Questions to the user as panels: what to show, and what a key or a typed line means. Pure: time is an argument.

Rule 1: only the keys that are shown answer. Anything else changes nothing; escape is always a no.
Rule 2: a key that means yes counts alone. One that has another key close before or behind it is a letter of a word or of a paste.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Final, Generic, Literal, Protocol, TypeAlias, TypeVar

from rich.console import RenderableType
from rich.text import Text

from antiphon.tui.painter import Painter, clean, exact, one_line

__all__ = ["ALONE", "CommandPanel", "Leaving", "MenuPanel", "PagePanel", "Panel", "key_lines"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Leaving: TypeAlias = Literal["escape", "interrupt"]
"""How a question is left without an answer: by Esc, or by Ctrl-C."""

PAUSE: Final = 0.6
"""Seconds without a key after which a question may be answered by one."""

ALONE: Final = 0.4
"""Seconds before and behind a key that means yes in which no other key may come. Letters of words come faster, answers do not."""

SEPARATOR: Final = " · "
"""Between two keys of a row."""

SHORTEST: Final = 3
"""Lines of what is asked about that are shown however small the terminal is."""


class Panel(Protocol):
    """A question to the user."""

    done: bool
    half_screen: bool
    """Whether it may take no more than half of the screen."""

    @property
    def prefill(self) -> str:
        """What stands on the input line before anything is typed."""

    @property
    def typed(self) -> str | None:
        """The text before the input line; None if single keys answer."""

    def lines(self, painter: Painter, height: int) -> list[str]:
        """Return what to show, in about `height` lines."""

    @property
    def due(self) -> float | None:
        """The time when a pressed key becomes an answer, unless another one follows; None without such a key."""

    def key(self, key: str, at: float) -> None:
        """Handle a key that was pressed at a time."""

    def settle(self, at: float) -> None:
        """Make a key that stayed alone the answer, if its time has come."""

    def enter(self, text: str) -> None:
        """Handle a typed line."""

    def leave(self, how: Leaving) -> None:
        """Leave the question without an answer."""


class KeyPanel(Generic[T]):
    """A question that is answered by single keys."""

    half_screen = False

    def __init__(self, if_left: T) -> None:
        self.done = False
        self.answer = if_left
        self._held: str | None = None
        self._pressed_at = -PAUSE
        self._strayed_at = -PAUSE

    @property
    def typed(self) -> str | None:
        """Nothing: there is no input line."""
        return None

    @property
    def prefill(self) -> str:
        """Nothing: there is no input line."""
        return ""

    # What a subclass fills in.

    def answers(self, key: str) -> bool:
        """Return whether the key is one of those that are shown."""
        return False

    def denies(self, key: str) -> bool:
        """Return whether the key can do no harm, so that it counts at once."""
        return False

    def take(self, key: str) -> None:
        """Do what the key is bound to."""

    def stray(self) -> None:
        """Go back to where no key has been pressed."""

    # What the window calls.

    @property
    def due(self) -> float | None:
        """When the key that is held becomes an answer."""
        return None if self._held is None else self._pressed_at + ALONE

    def key(self, key: str, at: float) -> None:
        """Hold a key that means yes until it is alone, take one that means no, and ignore the letters of words."""
        typing = at - self._pressed_at < ALONE or at - self._strayed_at < PAUSE
        self._held, self._pressed_at = None, at
        if typing or not self.answers(key):
            self._strayed_at = at
            self.stray()
        elif self.denies(key):
            self.take(key)
        else:
            self._held = key

    def settle(self, at: float) -> None:
        """Take the key that is held, if it stayed alone."""
        if self.due is not None and at >= self.due and not self.done:
            held, self._held = self._held or "", None
            self.take(held)

    def give(self, answer: T) -> None:
        """Set the answer."""
        self.answer, self.done = answer, True

    def enter(self, text: str) -> None:
        """Nothing: there is no input line."""

    def leave(self, how: Leaving) -> None:
        """Close the panel with its default answer."""
        self.done = True


def key_lines(keys: Sequence[tuple[str, str]], width: int) -> list[Text]:
    """Return keys and what they mean in a row that draws no attention, `y once · n no`; in several where it is narrow.

    A row ends between two keys, so that no key stands apart from its meaning.
    """
    rows: list[Text] = []
    for key, meaning in keys:
        each = Text.assemble((key, "key"), f" {meaning}")
        if rows and rows[-1].cell_len + len(SEPARATOR) + each.cell_len <= width:
            rows[-1].append(SEPARATOR).append_text(each)
        else:
            rows.append(each)
    return rows


def fit(
    painter: Painter,
    above: Sequence[RenderableType],
    body: list[str],
    below: Sequence[RenderableType],
    height: int,
    beyond: int = 0,
) -> tuple[list[str], int]:
    """Return a panel with its middle cut to fit, and the number of hidden lines; `beyond` are not in `body` at all."""
    top, bottom = painter.all(above), painter.all(below)
    rows_left = max(height - len(top) - len(bottom), SHORTEST)
    hidden = 0
    if len(body) + beyond > rows_left:
        hidden = len(body) + beyond - rows_left + 1
        body = [
            *body[: rows_left - 1],
            *painter.paint(Text(f"  … {hidden} more {'line' if hidden == 1 else 'lines'}", "dim")),
        ]
    return [*top, *body, *bottom], hidden


class MenuPanel(KeyPanel[str | None]):
    """A menu, answered by a number. The answer is the id of a row, or None."""

    def __init__(self, title: str, choices: Sequence[tuple[str, str, str | None]]) -> None:
        super().__init__(None)
        self._title = title
        self._choices = choices
        """Id, name, description."""

    def lines(self, painter: Painter, height: int) -> list[str]:
        """Return the choices, one per line."""
        rows: list[RenderableType] = [Text(one_line(self._title), "question")]
        for number, (_, name, description) in enumerate(self._choices, 1):
            row = Text.assemble((f" {number} ", "key"), f" {one_line(name)}")
            if description:
                row.append(f"  {one_line(description)}", "dim")
            rows.append(row)
        body = painter.all(rows[1:])
        numbers = "1" if len(self._choices) == 1 else f"1-{len(self._choices)}"
        keys = key_lines([(numbers, "choose"), ("esc", "none of them")], painter.width)
        return fit(painter, rows[:1], body, keys, height)[0]

    def answers(self, key: str) -> bool:
        """Return whether the key is a number of the menu."""
        return key.isascii() and key.isdigit() and 0 < int(key) <= len(self._choices)

    def take(self, key: str) -> None:
        """Choose a row."""
        self.give(self._choices[int(key) - 1][0])


class PagePanel(KeyPanel[Literal["opened", "declined", "dismissed"]]):
    """A web page that the agent wants opened. It is shown whole, and opened only if the user agrees."""

    def __init__(self, message: str, url: str) -> None:
        super().__init__("dismissed")
        self.url = url
        self._message = message
        self.wants_browser = False

    def lines(self, painter: Painter, height: int) -> list[str]:
        """Return the message, the address and the keys."""
        above: list[RenderableType] = [
            Text("The agent asks you to open a page", "question"),
            Text(clean(self._message)),
        ]
        keys = key_lines([("o", "open it in the browser"), ("y", "I went there"), ("n", "no")], painter.width)
        return fit(painter, above, painter.paint(Text(exact(self.url), "underline"), indent=2), keys, height)[0]

    def answers(self, key: str) -> bool:
        """Return whether the key opens, confirms or declines."""
        return key in ("o", "y", "n")

    def denies(self, key: str) -> bool:
        """Return whether the key declines."""
        return key == "n"

    def take(self, key: str) -> None:
        """Take the answer."""
        self.wants_browser = key == "o"
        self.give("declined" if key == "n" else "opened")

    def leave(self, how: Leaving) -> None:
        """Esc declines, Ctrl-C cancels."""
        self.give("declined" if how == "escape" else "dismissed")


class CommandPanel(KeyPanel[bool]):
    """A command that an agent wants to run in the user's terminal, outside of the policy: shown whole, yes or no."""

    def __init__(self, title: str, words: Sequence[str], variables: Mapping[str, str]) -> None:
        super().__init__(False)
        self._title = title
        self._line = shlex.join([*(f"{name}={value}" for name, value in variables.items()), *words])

    def lines(self, painter: Painter, height: int) -> list[str]:
        """Return the command, its variables and the keys."""
        above: list[RenderableType] = [Text(one_line(self._title), "question")]
        body = painter.paint(Text(f"$ {exact(self._line)}", "bold"), indent=2)
        keys = key_lines([("y", "run it here"), ("n", "no")], painter.width)
        return fit(painter, above, body, keys, max(height, len(body) + 2))[0]

    def answers(self, key: str) -> bool:
        """Return whether the key is yes or no."""
        return key in ("y", "n")

    def denies(self, key: str) -> bool:
        """Return whether the key is no."""
        return key == "n"

    def take(self, key: str) -> None:
        """Take the answer."""
        self.give(key == "y")
