"""One message on the wire: when, in which direction, and its bytes. Reads the line format of recordings.

A line of a recording is a JSON object: `{"t": seconds, "dir": "c2a" | "a2c", "msg": the message as sent}`, where `raw` takes the
place of `msg` for a line that was not JSON. Where even the text is not what was sent, because that was not UTF-8, `base64` holds the
bytes. Other keys are allowed, and so are lines of other kinds (`"dir": "note"`): they are skipped.
"""

import binascii
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

import msgspec

from antiphon.text import replace_surrogates

__all__ = [
    "BAD_INPUT",
    "NO_JSON",
    "Direction",
    "Entry",
    "Json",
    "JsonObject",
    "RecordingReader",
    "as_object",
    "as_text",
    "entries_of",
    "objects_in",
    "parse",
    "shown",
    "texts_in",
    "twice_in",
]


BAD_INPUT: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a decoder of JSON raises for bytes that it refuses."""

Json: TypeAlias = Any
"""A decoded JSON value of a peer, of any shape."""

JsonObject: TypeAlias = dict[str, Json]
"""A decoded JSON object of a peer: its members may be anything."""


class Direction(StrEnum):
    """The direction of a message: client to agent, or agent to client."""

    C2A = "c2a"
    A2C = "a2c"

    __hash__ = str.__hash__  # that of enums is slow, and this is part of every key

    @property
    def sender(self) -> str:
        return "client" if self is Direction.C2A else "agent"

    @property
    def other(self) -> "Direction":
        return Direction.A2C if self is Direction.C2A else Direction.C2A


class _NoJson:
    """What stands in `Entry.msg` for a line that is not JSON; null is JSON, so None cannot."""

    def __repr__(self) -> str:
        return "NO_JSON"


NO_JSON: Final = _NoJson()


@dataclass(frozen=True, slots=True)
class Entry:
    """One line on the wire. `msg` is the decoded message, `NO_JSON` for a line that is not JSON; `number` counts lines from 1."""

    number: int
    t: float
    dir: Direction
    raw: bytes = field(repr=False)
    msg: Json
    line: int = 0
    """Line in its file, from 1; 0 without a file."""
    method: str | None = field(init=False, repr=False, compare=False, default=None)
    """The method of a request or a notification."""
    params: JsonObject = field(init=False, repr=False, compare=False, default_factory=dict)
    """The params of a request or a notification; empty if they are absent or not an object."""

    def __post_init__(self) -> None:
        # Rules ask for these dozens of times, so they are looked up once.
        if isinstance(self.msg, dict):
            method, params = self.msg.get("method"), self.msg.get("params")
            if isinstance(method, str):
                object.__setattr__(self, "method", method)
            if isinstance(params, dict):
                object.__setattr__(self, "params", params)

    @property
    def is_noise(self) -> bool:
        return self.msg is NO_JSON

    @property
    def is_request(self) -> bool:
        return self.method is not None and "id" in self.msg

    @property
    def is_notification(self) -> bool:
        return self.method is not None and "id" not in self.msg

    @property
    def is_response(self) -> bool:
        """Whether it is a result or an error, requested or not."""
        return isinstance(self.msg, dict) and "method" not in self.msg and ("result" in self.msg or "error" in self.msg)


def parse(number: int, t: float, direction: Direction, raw: bytes, line: int = 0) -> Entry:
    """The entry for bytes that were on the wire, without their line end."""
    msg = _decoded(raw)
    if msg is NO_JSON and (repaired := replace_surrogates(raw)) is not raw:
        msg = _decoded(repaired)
    return Entry(number, t, direction, raw, msg, line)


def _decoded(raw: bytes) -> Json:
    try:
        return msgspec.json.decode(raw)
    except BAD_INPUT:
        return NO_JSON


@dataclass(slots=True)
class RecordingReader:
    """A recording that is being read: what was understood so far, and how much was not."""

    messages: int = 0
    undecodable: int = 0
    """Lines of the file that are not JSON objects, and bytes on the wire that were not JSON."""
    skipped: int = 0
    """Lines of another kind: notes, headers, another tool's remarks."""
    lines: int = 0
    _number: int = 0

    def entry(self, line: bytes) -> Entry | None:
        """The entry of the next line of the file, or None where it holds none."""
        self.lines += 1
        if not line.strip():
            return None
        found = _line_of(line)
        if found is None and (repaired := replace_surrogates(line)) is not line:
            found = _line_of(repaired)
        if found is None:
            self.undecodable += 1
            return None
        if found.dir not in ("c2a", "a2c") or not (found.msg or isinstance(found.raw, str)):
            self.skipped += 1
            return None
        return self._taken(found)

    def _taken(self, found: "_Line") -> Entry:
        self._number += 1
        raw = _raw_line(found)
        entry = parse(self._number, _seconds(found.t), Direction(found.dir), raw, self.lines)
        if entry.is_noise:
            self.undecodable += 1
        else:
            self.messages += 1
        return entry


def _raw_line(found: "_Line") -> bytes:
    """What was on the wire: beside a message the very text of it may stand, where that has carriage returns in it."""
    text = found.raw.encode("utf-8", "surrogatepass") if isinstance(found.raw, str) else b""
    if not found.msg:
        return _exact(found.base64) or text
    msg = bytes(found.msg)
    return text if b"\r" in text and text.replace(b"\r", b" ").strip() == msg.strip() else msg


class _Line(msgspec.Struct):
    """A line of a recording, with the message left as the bytes it is: its size and its key order are facts too."""

    t: Json = 0.0
    dir: Json = None
    msg: msgspec.Raw = msgspec.Raw(b"")
    raw: Json = None
    base64: Json = None


def _line_of(line: bytes) -> _Line | None:
    try:
        return _LINES.decode(line)
    except BAD_INPUT:
        return None


LATEST: Final = 1e15
"""No time of a recording is farther from its beginning: whatever is written there, one can count with it."""


def _seconds(value: object) -> float:
    """The time of a line; 0 if it is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return 0.0
    return float(min(max(value, -LATEST), LATEST))


def _exact(text: object) -> bytes:
    """The bytes that were sent, where the recording has them; they may have been taken out of it since."""
    try:
        return b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        return b""


_LINES: Final = msgspec.json.Decoder(_Line)


def entries_of(lines: Iterable[bytes], reading: RecordingReader | None = None) -> Iterator[Entry]:
    """The entries of a recording, line by line."""
    reading = reading if reading is not None else RecordingReader()
    for line in lines:
        entry = reading.entry(line)
        if entry is not None:
            yield entry


# --- decoded JSON of a peer, read without trust


def as_object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def as_text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def objects_in(value: object) -> list[JsonObject]:
    """The objects in a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def texts_in(value: object, name: str) -> list[str]:
    """The texts that the objects in a list have under a name."""
    return [one[name] for one in objects_in(value) if isinstance(one.get(name), str)]


def twice_in(texts: list[str]) -> list[str]:
    """Items that are in a list more than once."""
    return [text for text, count in Counter(texts).items() if count > 1]


def shown(value: object) -> str:
    """A value as a sentence shows it, however long it is."""
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case str() if len(value) > 60:
            return f'"{value[:57]}…"'
        case _:
            return msgspec.json.encode(value).decode()
