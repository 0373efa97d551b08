"""Where things stand in a TOML text: its statements with their keys and lines. Judges nothing: the text has been parsed already.

The standard library's parser tells what a file says but not where, and people want to be told the line.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

__all__ = ["Path", "Statement", "line_of", "statement_of", "statements"]

Path = tuple[str, ...]

_TOKEN: Final = re.compile(
    r'''"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}'''  # strings of several lines; up to two quotes may stand before the closing ones
    r"""|'''(?:[^']|'{1,2}(?!'))*'{3,5}"""
    r"""|"(?:[^"\\\n]|\\.)*"|'[^'\n]*\'"""
    r"|\#[^\n]*|[\[\]{}=\n]",
    re.DOTALL,
)


class Statement(msgspec.Struct, frozen=True):
    """A header or a key with its value: `text[start:end]`, with its last line's end. `line` counts from 1."""

    path: Path
    """The whole path: of a key with that of its table."""
    header: bool
    start: int
    end: int
    line: int


def statements(text: str) -> Iterator[Statement]:
    """The statements of a valid TOML text, in order. What is between them is comments and empty lines."""
    table: Path = ()
    start, line = 0, 1
    while start < len(text):
        end, equals = _extent(text, start)
        words = text[start:end].lstrip(" \t")
        if words.startswith("["):
            table = _path(words)
            yield Statement(table, True, start, end, line)
        elif equals is not None:
            yield Statement(table + _path(f"{text[start:equals]} = 0"), False, start, end, line)
        line += text.count("\n", start, end)
        start = end


def statement_of(among: Iterable[Statement], path: Path) -> Statement | None:
    """The statement that sets a key, or comes nearest to it: the line it is on, or the table that it is missing from."""
    best: Statement | None = None
    depth = 0
    for statement in among:
        shared = min(len(path), len(statement.path))
        if shared > depth and statement.path[:shared] == path[:shared]:
            best, depth = statement, shared
    return best


def line_of(text: str, statement: Statement | None, value: str | None = None) -> int:
    """The line on which a statement begins, or a string in its value. 1 if nobody knows."""
    if statement is None:
        return 1
    inside = -1 if value is None else text.find(value, statement.start, statement.end)
    return statement.line + (text.count("\n", statement.start, inside) if inside >= 0 else 0)


def _extent(text: str, start: int) -> tuple[int, int | None]:
    """Where the statement or the empty line that starts here ends, and where its equals sign is."""
    depth, equals = 0, None
    for token in _TOKEN.finditer(text, start):
        match token[0]:
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
            case "=" if equals is None and depth == 0:
                equals = token.start()
            case "\n" if depth == 0:
                return token.end(), equals
            case _:
                pass
    return len(text), equals


def _path(words: str) -> Path:
    """The path of a header or of `key = 0`: asked of the parser, which knows how keys are quoted."""
    found: list[str] = []
    part: object = tomllib.loads(words)
    while part and isinstance(part, dict | list):
        if isinstance(part, list):  # [[a.b]]
            part = part[0]
            continue
        ((key, part),) = part.items()
        found.append(key)
    return tuple(found)
