"""Markdown as rich draws it, with task boxes, links that can be clicked and code that can be copied.

Rule 1: nothing is left out. What Markdown would hide, such as the address of a link, is shown.
Rule 2: only an address that is safe to open becomes a link, and only an inline code that is the path of a file does.
"""

import os
import re
from collections.abc import Iterator
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, HorizontalRule, ListItem, Markdown, MarkdownElement
from rich.rule import Rule
from rich.segment import Segment
from rich.syntax import Syntax

from antiphon.tui.output.links import file_uri, is_safe

__all__ = ["ChatMarkdown"]

_PARSER: Final = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")
"""Without HTML: rich would leave out what it cannot draw, and nothing is to be left out."""

_BOX: Final = re.compile(r"\[([ xX])\] +(?=\S)")
_PATH: Final = re.compile(r"(?P<path>~?[\w./@+-]*[\w/])(?::\d+(?:[-:]\d+)?)?")
"""Inline code that may be a path, with the number of a line or without."""

BOXES: Final = {" ": "☐", "x": "☑", "X": "☑"}


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


class _Item(ListItem):
    """An item of a list; a task has its box where others have their bullet."""

    box = ""

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> MarkdownElement:
        """Make the item of a token."""
        item = cls()
        item.box = str(token.meta.get("box", ""))
        return item

    def render_bullet(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the item with its bullet or box."""
        segments = iter(super().render_bullet(console, options))
        for bullet in segments:  # the first one; the others are those of the items inside of this one
            has_box = bool(self.box) and isinstance(bullet, Segment)
            yield Segment(f" {self.box} ", bullet.style) if has_box and isinstance(bullet, Segment) else bullet
            break
        yield from segments


class ChatMarkdown(Markdown):
    """A text in Markdown. With `cwd`, inline code that names a file there can be clicked."""

    elements = {  # noqa: RUF012
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "hr": _Rule,
        "list_item_open": _Item,
    }

    def __init__(self, text: str, cwd: str = "") -> None:
        super().__init__("", hyperlinks=True)
        self.parsed = list(_prepared(_PARSER.parse(text), cwd))


def _prepared(tokens: list[Token], cwd: str) -> Iterator[Token]:
    item: Token | None = None
    for token in tokens:
        if token.type == "list_item_open":
            item = token
        elif token.type == "inline" and token.children:
            if item is not None:
                _take_box(item, token.children[0])
            token.children = list(_inlines(token.children, cwd))
            item = None
        elif token.type != "paragraph_open":
            item = None
        yield token


def _take_box(item: Token, first: Token) -> None:
    """Make the item a task if its text begins with a box."""
    if first.type == "text" and (box := _BOX.match(first.content)) is not None:
        rest, sign = first.content[box.end() :], BOXES[box[1]]
        if item.markup in (".", ")"):  # its number stays
            first.content = f"{sign} {rest}"
        else:
            item.meta["box"], first.content = sign, rest


def _inlines(children: list[Token], cwd: str) -> Iterator[Token]:
    """Keep the agent's line ends, show the address of a link behind its text, and link paths."""
    href, shown = "", ""
    for child in children:
        match child.type:
            case "softbreak":
                child.type = "hardbreak"
                yield child
            case "link_open":
                href, shown = str(child.attrs.get("href", "")), ""
                if is_safe(href):
                    yield child
            case "link_close":
                if is_safe(href):
                    yield child
                if shown != href and child.markup != "autolink":
                    yield from (_text(" ("), *_linked(_text(href), href), _text(")"))
            case "image" if not is_safe(str(child.attrs.get("src", ""))):
                yield _text(f"[image: {child.content}]")
            case "code_inline" if cwd and (uri := _uri_of(child.content, cwd)):
                shown += child.content
                yield from _linked(child, uri)
            case _:
                shown += child.content
                yield child


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _linked(token: Token, uri: str) -> Iterator[Token]:
    if is_safe(uri):
        yield Token("link_open", "a", 1, attrs={"href": uri})
        yield token
        yield Token("link_close", "a", -1)
    else:
        yield token


def _uri_of(code: str, cwd: str) -> str:
    """Return the address of the file that inline code names; empty if there is no such file."""
    found = _PATH.fullmatch(code)
    path = os.path.expanduser(found["path"]) if found is not None else ""
    return (
        file_uri(path, cwd) if path and ("." in path or "/" in path) and os.path.isfile(os.path.join(cwd, path)) else ""
    )
