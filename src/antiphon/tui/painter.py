"""Renders text, Markdown and code as lines of some width, safe to show. Pure: never writes to the terminal.

Colour adds no information: without it every line reads the same.
"""

import io
from collections.abc import Iterable, Mapping
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, HorizontalRule, Markdown
from rich.rule import Rule
from rich.segment import Segment, SegmentLines
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

from antiphon import text as texts
from antiphon.text import prose
from antiphon.transcript.presentation import written_lines

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

_THEME: Final = Theme(
    {
        "markdown.h1": "bold underline",
        "markdown.h2": "bold",
        "markdown.h3": "bold italic",
        "markdown.h4": "italic",
        "markdown.code": "cyan",
        "markdown.code_block": "none",
        "markdown.block_quote": "italic",
        "markdown.link": "underline",
        "markdown.link_url": "dim",
        "markdown.item.bullet": "bold",
        "markdown.item.number": "bold",
        "markdown.hr": "dim",
    }
)

_PARSER: Final = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")
"""Without HTML: rich would leave out what it cannot draw, and nothing is to be left out."""


class _Heading(Heading):
    """A heading at the left."""

    LEVEL_ALIGN = {}  # noqa: RUF012


class _Code(CodeBlock):
    """Code indented by two columns, without a frame, so that it can be selected with the mouse."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        theme = "ansi_dark" if console.color_system and not console.no_color else "bw"
        yield Syntax(code, self.lexer_name, theme=theme, word_wrap=True, padding=(0, 2), background_color="default")


class _Rule(HorizontalRule):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Rule(style="markdown.hr", characters="─")


class _Markdown(Markdown):
    elements = {  # noqa: RUF012
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "hr": _Rule,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        self.parsed = [_as_written(token) for token in _PARSER.parse(text)]


def _as_written(token: Token) -> Token:
    """Keep the agent's line ends, and show an address that is its own text once."""
    kept: list[Token] = []
    for child in token.children or ():
        if child.type == "softbreak":
            child.type = "hardbreak"
        if child.type not in ("link_open", "link_close") or child.markup != "autolink":
            kept.append(child)
    if token.children:
        token.children = kept
    return token


class Painter:
    """Renders text for one terminal, whose width may change at any time."""

    def __init__(self, width: int, environment: Mapping[str, str] | None = None, *, colour: bool = True) -> None:
        self._environment = environment
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
                height=100, no_color=not self._colour, highlight=False, markup=False, emoji=False, theme=_THEME,
                legacy_windows=False, _environ=self._environment,
            )  # fmt: skip

    def paint(self, thing: RenderableType, *, indent: int = 0) -> list[str]:
        """Return the lines of a renderable, in colour, none wider than the terminal."""
        options = self._console.options.update_width(max(self._width - indent, NARROWEST))
        lines = [_without_trailing(line) for line in self._console.render_lines(thing, options, pad=False)]
        with self._console.capture() as captured:
            self._console.print(SegmentLines(lines, new_lines=True), end="", soft_wrap=True)
        return [" " * indent + line if line else "" for line in captured.get().split("\n")[:-1]]

    def all(self, things: Iterable[RenderableType]) -> list[str]:
        """Return the lines of several renderables."""
        return [line for thing in things for line in self.paint(thing)]

    def markdown(self, text: str) -> list[str]:
        """Return the lines of Markdown. What would be invisible, such as a link definition, is shown as source."""
        lines = self.paint(_Markdown(clean(text)))
        while lines and not lines[0].strip():
            del lines[0]
        while lines and not lines[-1].strip():
            del lines[-1]
        return lines or (self.paint(Text(clean(text).strip())) if text.strip() else [])


def _without_trailing(line: list[Segment]) -> list[Segment]:
    """Return a line without trailing spaces, which would be copied with it."""
    while line and not line[-1].text.rstrip(" "):
        line = line[:-1]
    return [*line[:-1], Segment(line[-1].text.rstrip(" "), line[-1].style)] if line else line
