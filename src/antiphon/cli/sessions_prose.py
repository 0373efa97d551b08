"""The Markdown that models write, as HTML: paragraphs, code, lists, headings, quotes, bold, links. What it does not know stays text.

Everything is escaped before anything is marked up, so no text of anybody becomes a tag. Each pattern reads a line once, whatever is in it.
"""

import re
from collections.abc import Callable, Iterator
from html import escape
from typing import Final

from antiphon.text import prose as visible

__all__ = ["prose", "safe"]

DEEPEST: Final = 4
"""Quotes in quotes, and lists in lists; beyond, they are not told apart."""

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)$")
_HEADING: Final = re.compile(r" {0,3}(#{1,6}) +(.*)$")
_ITEM: Final = re.compile(r"( *)([-*+]|\d{1,9}[.)]) +(.*)$")
_RULE: Final = re.compile(r" {0,3}(?:-{3,}|\*{3,}|_{3,}) *$")
_CODE: Final = re.compile(r"``(?!`)(.+?)``|`([^`\n]+)`")
_BOLD: Final = re.compile(r"\*\*(?=\S)([^*\n]+)\*\*")
_LINK: Final = re.compile(r"\[([^\[\]\n]{1,300})\]\((https?://[^\s()<>]{1,2000})\)")


def safe(text: str) -> str:
    """Text that is only text: escaped, and what is invisible or turns the writing around shown."""
    return escape(visible(text.encode("utf-8", "replace").decode()))


def prose(text: str, depth: int = 0) -> str:
    """The HTML of a message."""
    return "\n".join(_blocks(text.replace("\r\n", "\n").split("\n"), depth))


def _blocks(lines: list[str], depth: int) -> Iterator[str]:
    place = 0
    while place < len(lines):
        line = lines[place]
        if not line.strip():
            place += 1
        elif fence := _FENCE.match(line):
            end = _end_of_fence(lines, place + 1, fence.group(1))
            yield f"<pre><code>{safe(chr(10).join(lines[place + 1 : end]))}</code></pre>"
            place = end + 1
        elif _RULE.match(line):
            yield "<hr>"
            place += 1
        elif heading := _HEADING.match(line):
            level = min(len(heading.group(1)) + 2, 6)
            yield f"<h{level}>{_inline(heading.group(2))}</h{level}>"
            place += 1
        else:
            kind, end = _run(lines, place, depth)
            yield kind(lines[place:end])
            place = end


def _run(lines: list[str], place: int, depth: int) -> tuple[Callable[[list[str]], str], int]:
    """How to write the lines from here on, and where that ends."""
    first = lines[place]
    if first.startswith("|"):
        return _table, _while(lines, place, lambda line: line.startswith("|"))
    if first.startswith(">") and depth < DEEPEST:
        return lambda quoted: _quote(quoted, depth), _while(lines, place, lambda line: line.startswith(">"))
    if _ITEM.match(first):
        return _list, _while(lines, place, lambda line: bool(_ITEM.match(line)) or line.startswith("  "))
    return _paragraph, _while(lines, place, lambda line: not _begins_block(line), at_least=1)


def _while(lines: list[str], place: int, goes_on: Callable[[str], bool], at_least: int = 0) -> int:
    end = place + at_least
    while end < len(lines) and lines[end].strip() and goes_on(lines[end]):
        end += 1
    return max(end, place + 1)


def _begins_block(line: str) -> bool:
    return bool(_FENCE.match(line) or _HEADING.match(line) or _ITEM.match(line) or _RULE.match(line)) or line[:1] in (
        "|",
        ">",
    )


def _end_of_fence(lines: list[str], place: int, fence: str) -> int:
    while place < len(lines):
        found = _FENCE.match(lines[place])
        if found and found.group(1)[0] == fence[0] and len(found.group(1)) >= len(fence) and not found.group(2).strip():
            break
        place += 1
    return place


def _paragraph(lines: list[str]) -> str:
    return f"<p>{_inline(chr(10).join(lines))}</p>"


def _table(lines: list[str]) -> str:
    """As it was written: columns stand below each other in most of them already."""
    return f"<pre>{safe(chr(10).join(lines))}</pre>"


def _quote(lines: list[str], depth: int) -> str:
    inner = "\n".join(line[1:].removeprefix(" ") for line in lines)
    return f"<blockquote>{prose(inner, depth + 1)}</blockquote>"


def _list(lines: list[str]) -> str:
    written: list[str] = []
    lists: list[tuple[int, str]] = []  # those that are open: how far each is indented, and its tag
    for depth, tag, text in _items(lines):
        while lists and lists[-1][0] > depth:
            written.append(f"</li></{lists.pop()[1]}>")
        if lists and lists[-1] == (depth, tag[:2]):
            written.append("</li>")
        else:
            if lists and lists[-1][0] == depth:  # the other kind of list
                written.append(f"</li></{lists.pop()[1]}>")
            lists.append((depth, tag[:2]))
            written.append(f"<{tag}>")
        written.append(f"<li>{_inline(text)}")
    return "".join([*written, *(f"</li></{tag}>" for _, tag in reversed(lists))])


def _items(lines: list[str]) -> list[tuple[int, str, str]]:
    """Each item: how deep it is, the tag that begins its list, its text with the lines below it."""
    items: list[tuple[int, str, str]] = []
    for line in lines:
        if found := _ITEM.match(line):
            space, mark, text = found.groups()
            tag = f'ol start="{int(mark[:-1])}"' if mark[0].isdigit() else "ul"
            items.append((min(len(space) // 2, DEEPEST), tag, text))
        else:
            depth, tag, text = items[-1]
            items[-1] = (depth, tag, f"{text}\n{line.strip()}")
    return items


def _inline(text: str) -> str:
    written, place = [], 0
    for found in _CODE.finditer(text):
        written.append(_marked(text[place : found.start()]))
        written.append(f"<code>{safe(found.group(1) or found.group(2))}</code>")
        place = found.end()
    return "".join([*written, _marked(text[place:])])


def _marked(text: str) -> str:
    """Bold and links, of text without code."""
    text = _BOLD.sub(r"<strong>\1</strong>", safe(text))
    return _LINK.sub(r'<a href="\2" rel="noopener noreferrer">\1</a>', text)
