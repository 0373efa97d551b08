"""JSON with comments and trailing commas, as editors keep their settings, with the place of everything in the text. Pure.

For who wants to change a value without touching the rest: the tree knows where each key, value and comma stands.
"""

import json
import re
from typing import Any, Final

import msgspec

from antiphon.errors import AcpError

__all__ = ["Member", "NotJsonc", "Value", "line_end", "parse"]

DEEPEST: Final = 100
"""Objects and lists inside each other. Settings have some five; more is a mistake, and would be a stack overflow."""

_BLANK: Final = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_COMMENT_ON_LINE: Final = re.compile(r"[ \t]*(?:/\*(?:(?!\*/)[^\n])*\*/|//[^\r\n]*)")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_WORD: Final = re.compile(r"[-+.\w]+")


class NotJsonc(AcpError):
    """The text is not JSON, not even with comments; the message says where it stops being it."""


class Member(msgspec.Struct, frozen=True):
    """A key and its value in an object."""

    key: str
    start: int
    """Where the key stands."""
    value: "Value"
    comma: int | None
    """Where the comma behind it stands, if there is one."""

    @property
    def end(self) -> int:
        """Where it ends, with its comma."""
        return self.value.end if self.comma is None else self.comma + 1


class Value(msgspec.Struct, frozen=True):
    """A value, where it stands, and its members if it is an object."""

    start: int
    end: int
    data: Any
    members: tuple[Member, ...] | None = None

    def named(self, key: str) -> list[Member]:
        """The members with this key: none, one, or (a mistake) several."""
        return [member for member in self.members or () if member.key == key]


def parse(text: str) -> Value | None:
    """The one value of the text; None if it has nothing but blanks and comments.

    Raises:
        NotJsonc: it is something else.
    """
    reader = _Reader(text)
    start = reader.blanks(0)
    if start == len(text):
        return None
    value = reader.value(start, 0)
    end = reader.blanks(value.end)
    if end != len(text):
        raise reader.wrong(end, "something stands behind its end")
    return value


def line_end(text: str, place: int) -> int:
    """Behind the comments that stand after `place` on the same line; `place` itself if there are none."""
    while (found := _COMMENT_ON_LINE.match(text, place)) is not None:
        place = found.end()
    return place


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text

    def wrong(self, place: int, why: str) -> NotJsonc:
        line = self._text.count("\n", 0, place) + 1
        return NotJsonc(f"line {line}: {why}")

    def blanks(self, place: int) -> int:
        found = _BLANK.match(self._text, place)
        return found.end() if found is not None else place

    def value(self, place: int, depth: int) -> Value:
        if depth > DEEPEST:
            raise self.wrong(place, "too many objects inside each other")
        match self._text[place : place + 1]:
            case "{":
                return self._object(place, depth)
            case "[":
                return self._list(place, depth)
            case '"':
                text, end = self._string(place)
                return Value(place, end, text)
            case _:
                return self._word(place)

    def _object(self, place: int, depth: int) -> Value:
        members: list[Member] = []
        at = self.blanks(place + 1)
        while not self._text.startswith("}", at):
            if members and members[-1].comma is None:
                raise self.wrong(at, "a comma or `}` is missing")
            if not self._text.startswith('"', at):
                raise self.wrong(at, "a key in quotes is missing")
            key, end = self._string(at)
            colon = self.blanks(end)
            if not self._text.startswith(":", colon):
                raise self.wrong(colon, "a `:` is missing")
            value = self.value(self.blanks(colon + 1), depth + 1)
            after = self.blanks(value.end)
            comma = after if self._text.startswith(",", after) else None
            members.append(Member(key, at, value, comma))
            at = after if comma is None else self.blanks(comma + 1)
        return Value(place, at + 1, {member.key: member.value.data for member in members}, tuple(members))

    def _list(self, place: int, depth: int) -> Value:
        items: list[Any] = []
        at = self.blanks(place + 1)
        comma = True
        while not self._text.startswith("]", at):
            if not comma:
                raise self.wrong(at, "a comma or `]` is missing")
            value = self.value(at, depth + 1)
            items.append(value.data)
            at = self.blanks(value.end)
            comma = self._text.startswith(",", at)
            if comma:
                at = self.blanks(at + 1)
        return Value(place, at + 1, items)

    def _string(self, place: int) -> tuple[str, int]:
        found = _STRING.match(self._text, place)
        if found is None:
            raise self.wrong(place, "a string does not end")
        try:
            return str(json.loads(found[0], strict=False)), found.end()
        except ValueError as error:
            raise self.wrong(place, "a string is not as JSON has them") from error

    def _word(self, place: int) -> Value:
        found = _WORD.match(self._text, place)
        if found is None:
            raise self.wrong(place, "a value is missing")
        try:
            return Value(place, found.end(), json.loads(found[0]))
        except ValueError as error:
            raise self.wrong(place, f"`{found[0][:40]}` is no value") from error
