"""Renders text, Markdown and code as lines of some width, safe to show. Pure: never writes to the terminal.

Colour adds no information: without it every line reads the same.
"""

import io
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from rich.color import Color
from rich.console import Console, RenderableType
from rich.segment import Segment, SegmentLines
from rich.style import Style
from rich.text import Text
from rich.theme import Theme

from antiphon import text as texts
from antiphon.text import prose
from antiphon.transcript.presentation import written_lines
from antiphon.tui.display.theme import STYLES
from antiphon.tui.output.markdown import ChatMarkdown

__all__ = ["Painter", "clean", "exact", "one_line", "output_lines"]

# --- text that is safe to show ---------------------------------------------------------------------------------------
# Rule 1: a control character is shown as a picture of itself, not obeyed and not dropped.
# Rule 2: a character that shows nothing is kept where it is needed to write something (an emoji, a script that joins letters), else
# shown by its number. Where a person decides by what is shown (a command, a path, an address), nothing is invisible.

TAB: Final = 4
"""Columns from one tab stop to the next, in everything that is shown."""


def clean(text: str) -> str:
    """Return prose without control characters."""
    return prose(_unmixed(text)).expandtabs(TAB)


def exact(text: str) -> str:
    """Return a command, path or address with every invisible character shown."""
    return texts.exact(text).expandtabs(TAB)


def one_line(text: str) -> str:
    """Return a title on one line, with single spaces."""
    return " ".join(clean(text).split())


def output_lines(text: str) -> list[str]:
    """Return what a command wrote, as it looks in the end."""
    return [clean(line) for line in written_lines(text)]


def _unmixed(text: str) -> str:
    """Replace lone surrogates, which cannot be written to a terminal."""
    return text.replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")


NARROWEST: Final = 20
"""Columns below which nothing is laid out any more: the terminal wraps as it likes."""

WIDEST: Final = 1 << 20
"""Columns of a line that is not to be wrapped."""

_THEME: Final = Theme(
    {
        **STYLES,
        "markdown.h1": "bold underline",
        "markdown.h2": "bold",
        "markdown.h3": "bold italic",
        "markdown.h4": "italic",
        "markdown.code_block": "none",
        "markdown.block_quote": "italic",
        "markdown.link": "underline",
        "markdown.link_url": "dim",
        "markdown.item.bullet": "bold",
        "markdown.item.number": "bold",
        "markdown.hr": "dim",
        "diff.same": "dim",
        "diff.part": "dim cyan",
        "diff.number": "dim",
        "diff.added.word": "bold underline",
        "diff.removed.word": "bold underline",
    }
)


class Painter:
    """Renders text for one terminal, whose width may change at any time."""

    def __init__(
        self,
        width: int,
        environment: Mapping[str, str] | None = None,
        *,
        colour: bool = True,
        styles: Mapping[str, str] | None = None,
        light: bool = False,
    ) -> None:
        self._environment = environment
        self._styles = styles
        self._light = light
        self._theme = Theme({**_THEME.styles, **(styles or {})})
        self._colour = colour
        self._width = 0
        self.width = width

    @property
    def width(self) -> int:
        """The columns of the terminal."""
        return self._width

    @width.setter
    def width(self, width: int) -> None:
        width = max(width, NARROWEST)
        if width != self._width:
            self._width = width
            self._console = Console(
                file=io.StringIO(), force_terminal=True, color_system="auto" if self._colour else None, width=width,
                height=100, no_color=not self._colour, highlight=False, markup=False, emoji=False, theme=self._theme,
                legacy_windows=False, _environ=self._environment,
            )  # fmt: skip

    def paint(self, thing: RenderableType, *, indent: int = 0) -> list[str]:
        """Return the lines of a renderable, in colour, none wider than the terminal."""
        options = self._console.options.update_width(max(self._width - indent, NARROWEST))
        lines = [_without_trailing(line) for line in self._console.render_lines(thing, options, pad=False)]
        if self._light:
            lines = [[Segment(text, _darker(style), control) for text, style, control in line] for line in lines]
        with self._console.capture() as captured:
            self._console.print(SegmentLines(lines, new_lines=True), end="", soft_wrap=True)
        return [" " * indent + line if line else "" for line in captured.get().split("\n")[:-1]]

    def all(self, things: Iterable[RenderableType]) -> list[str]:
        """Return the lines of several renderables."""
        return [line for thing in things for line in self.paint(thing)]

    def unwrapped(self, things: Iterable[RenderableType]) -> list[str]:
        """Return the lines of several renderables however long they are: a pager wraps them itself."""
        return Painter(WIDEST, self._environment, colour=self._colour, styles=self._styles, light=self._light).all(
            things
        )

    def markdown(self, text: str, cwd: str = "") -> list[str]:
        """Return the lines of Markdown. What would be invisible, such as a link definition, is shown as source.

        With `cwd`, paths of files there can be clicked.
        """
        lines = self.paint(ChatMarkdown(clean(text), cwd))
        while lines and not lines[0].strip():
            del lines[0]
        while lines and not lines[-1].strip():
            del lines[-1]
        return lines or (self.paint(Text(clean(text).strip())) if text.strip() else [])


BRIGHT: Final = range(9, 16)
"""The numbers of the terminal's bright colours, which highlighted code has: on a light background they are hard to read."""


@lru_cache(maxsize=512)
def _darker(style: Style | None) -> Style | None:
    """Return a style with the ordinary colour in place of a bright one."""
    number = style.color.number if style is not None and style.color is not None else None
    if style is None or number is None or number not in BRIGHT:
        return style
    return style + Style(color=Color.from_ansi(number - 8))


def _without_trailing(line: list[Segment]) -> list[Segment]:
    """Return a line without trailing spaces, which would be copied with it."""
    while line and not line[-1].text.rstrip(" "):
        line = line[:-1]
    return [*line[:-1], Segment(line[-1].text.rstrip(" "), line[-1].style)] if line else line
