"""JSON with comments and trailing commas, as editors keep their settings, with the place of everything in the text. Pure.

The tree has the position of each key, value and comma, so that a value can be changed without touching the rest.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from antiphon.config.edits import EditRefused
from antiphon.errors import AcpError

__all__ = ["JsoncEdit", "Member", "NotJsonc", "Value", "has_entry", "line_end", "parse", "put_entry", "take_entry"]

DEEPEST: Final = 100
"""Objects and lists inside each other. Settings have some five; more is a mistake, and would be a stack overflow."""

_BLANK: Final = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_COMMENT_ON_LINE: Final = re.compile(r"[ \t]*(?:/\*(?:(?!\*/)[^\n])*\*/|//[^\r\n]*)")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_WORD: Final = re.compile(r"[-+.\w]+")


class NotJsonc(AcpError):
    """The text is not JSON, not even with comments; the message has the position."""


class Member(msgspec.Struct, frozen=True):
    """A key and its value in an object."""

    key: str
    start: int
    """Position of the key."""
    value: "Value"
    comma: int | None
    """Position of the comma behind it, if there is one."""

    @property
    def end(self) -> int:
        """Position of the end, with its comma."""
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
    """Return the position after the comments that follow `place` on its line, or `place` if there are no comments."""
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
        items: list[object] = []
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


# --- one entry put in or taken out; every other byte stays -----------------------------------------------------------
# An entry is put behind the others, in their style. Each edit is checked by reading the result: it must mean the same as the old text, plus the
# one entry more or less, or it is not made.


class JsoncEdit(msgspec.Struct, frozen=True):
    """The text with the entry, and what is needed to remove it from a text that has changed since."""

    text: str
    made_group: bool = False
    """Whether the object that holds the entry was made for it."""
    replaced: str | None = None
    """The text of the value that stood there before, if there was one."""


def put_entry(text: str, group: str, name: str, value: Mapping[str, object]) -> JsoncEdit:
    """The text with `{group: {name: value}}` in it. What stands there under that name is replaced.

    Raises:
        EditRefused: it is not JSON with comments, or has something else in that place.
    """
    root = _root(text)
    if root is None:
        newline = _newline(text)
        gap = "" if not text or text.endswith(("\n", "\ufeff")) else newline
        whole = _written({group: {name: value}}, newline, "", "  ")
        return _checked(JsoncEdit(f"{text}{gap}{whole}{newline}", made_group=True), root, group, name, value)
    holder = _member(root, group)
    if holder is None:
        put = JsoncEdit(_insert(text, root, root, group, {name: value}), made_group=True)
    else:
        inner = _object(holder)
        old = _member(inner, name)
        if old is None:
            put = JsoncEdit(_insert(text, root, inner, name, value))
        elif json.dumps(old.value.data) == json.dumps(value):
            put = JsoncEdit(text)
        else:
            new = _written(value, _newline(text), _indent(text, old.start), _unit(text, root))
            before = text[old.value.start : old.value.end]
            put = JsoncEdit(f"{text[: old.value.start]}{new}{text[old.value.end :]}", replaced=before)
    return _checked(put, root, group, name, value)


def has_entry(text: str, group: str, name: str) -> bool:
    """Whether there is such an entry.

    Raises:
        EditRefused: it is not JSON with comments.
    """
    root = _root(text)
    holder = None if root is None else _member(root, group)
    return holder is not None and _member(_object(holder), name) is not None


def take_entry(text: str, group: str, name: str, *, made_group: bool = False, replaced: str | None = None) -> str:
    """The text without the entry, or with what it replaced; without the group too, if it was made for the entry and is empty.

    Raises:
        EditRefused: it is not JSON with comments, or has no such entry.
    """
    root = _root(text)
    holder = None if root is None else _member(root, group)
    inner = None if holder is None else _object(holder)
    entry = None if inner is None else _member(inner, name)
    if root is None or holder is None or inner is None or entry is None:
        raise EditRefused(f"there is no `{name}` in `{group}` any more")
    expected = dict(root.data)
    if replaced is not None:
        expected[group] = {**expected[group], name: _data(replaced)}
        return _first_right([f"{text[: entry.value.start]}{replaced}{text[entry.value.end :]}"], expected)
    expected[group] = {key: data for key, data in inner.data.items() if key != name}
    new = _first_right(_without(text, inner, entry), expected)
    if not made_group or expected[group]:
        return new
    root = _root(new)
    holder = None if root is None else _member(root, group)
    if root is None or holder is None or "/" in new[holder.value.start : holder.value.end]:
        return new  # a comment was written into it
    del expected[group]
    return _first_right(_without(new, root, holder), expected)


def _insert(text: str, root: Value, where: Value, key: str, data: object) -> str:
    """The text with one more member behind the others of an object."""
    newline, unit = _newline(text), _unit(text, root)
    outer = _indent(text, where.start)
    close = where.end - 1
    last = where.members[-1] if where.members else None
    pad = outer + unit
    if last is not None and not text[_line_start(text, last.start) : last.start].strip():
        pad = _indent(text, last.start)
    member = f"{newline}{pad}{_quoted(key)}: {_written(data, newline, pad, unit)}"
    before = after = ""
    if last is None:
        start = place = where.start + 1
    elif last.comma is None:
        start, place, before = last.value.end, last.value.end, ","
    else:
        start, place, after = last.end, last.end, ","
    place = line_end(text, place)  # a comment behind the last entry stays with it
    rest = "" if "\n" in text[place:close] else f"{newline}{outer}"
    return f"{text[:start]}{before}{text[start:place]}{member}{after}{rest}{text[place:]}"


def _without(text: str, where: Value, member: Member) -> Iterator[str]:
    """The text without a member, the nicest way first. Comments around it stay."""
    members = where.members or ()
    index = members.index(member)
    start = len(text[: member.start].rstrip(" \t\r\n"))
    if len(members) == 1 and not text[where.start + 1 : start].strip() and not text[member.end : where.end - 1].strip():
        yield f"{text[: where.start]}{{}}{text[where.end :]}"
    comma = members[index - 1].comma if index and index == len(members) - 1 and member.comma is None else None
    for cut in (start, member.start):  # a comment that ends with its line needs the end of the line
        head = text[:cut] if comma is None else f"{text[:comma]}{text[comma + 1 : cut]}"
        yield f"{head}{text[member.end :]}"


def _checked(put: JsoncEdit, root: Value | None, group: str, name: str, value: Mapping[str, object]) -> JsoncEdit:
    expected = {} if root is None else dict(root.data)
    expected[group] = {**expected.get(group, {}), name: value}
    _first_right([put.text], expected)
    return put


def _first_right(texts: "Iterator[str] | list[str]", expected: dict[str, object]) -> str:
    """The first of the texts that parses to the expected data."""
    for text in texts:
        try:
            found = parse(text)
        except NotJsonc:
            continue
        if found is not None and json.dumps(found.data) == json.dumps(expected):
            return text
    raise EditRefused("the file is written in a way that cannot be edited from here")


def _root(text: str) -> Value | None:
    try:
        root = parse(text)
    except NotJsonc as error:
        raise EditRefused(f"it is not JSON with comments: {error}") from error
    if root is not None and root.members is None:
        raise EditRefused("it is JSON, but not an object")
    return root


def _member(where: Value, key: str) -> Member | None:
    found = where.named(key)
    if len(found) > 1:
        raise EditRefused(f"it has `{key}` twice")
    return found[0] if found else None


def _object(member: Member) -> Value:
    if member.value.members is None:
        raise EditRefused(f"`{member.key}` in it is not an object")
    return member.value


def _data(text: str) -> object:
    value = parse(text)
    return None if value is None else value.data


def _written(data: object, newline: str, pad: str, unit: str) -> str:
    """JSON as people write settings: an object has a line for each member, a list is on one line."""
    if not isinstance(data, dict) or not data:
        return json.dumps(data, ensure_ascii=False)
    inner = pad + unit
    lines = [f"{inner}{_quoted(key)}: {_written(item, newline, inner, unit)}" for key, item in data.items()]
    return f"{{{newline}{f',{newline}'.join(lines)}{newline}{pad}}}"


def _quoted(key: str) -> str:
    return json.dumps(key, ensure_ascii=False)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _line_start(text: str, place: int) -> int:
    return text.rfind("\n", 0, place) + 1


def _indent(text: str, place: int) -> str:
    """The blanks at the start of the line."""
    line = text[_line_start(text, place) : place]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str, root: Value) -> str:
    """What one level is indented by."""
    for member in root.members or ():
        indent = text[_line_start(text, member.start) : member.start]
        if indent and not indent.strip(" \t"):
            return indent
    return "  "
