"""The bytes of one direction as lines of a recording. Pure: takes blocks of bytes, cut anywhere, and returns whole lines.

A line of the wire that is JSON is recorded byte for byte: its key order, its spaces and its numbers are facts too. Every recorded
line is valid JSON in valid UTF-8, whatever was on the wire.
"""

from base64 import b64encode
from typing import Final

import msgspec

from antiphon import __version__
from antiphon.traffic.entries import BAD_INPUT

__all__ = ["LONGEST", "DirectionRecorder", "line_of", "note", "opening"]

LONGEST: Final = 128 * 1024 * 1024
"""The longest line of the wire that is held for the recording. Longer ones are forwarded, but only their size is recorded."""

_RAW: Final = msgspec.json.Decoder(msgspec.Raw)
"""Checks everything but the encoding: what is only carried is not turned into objects, and no text is looked at as text."""


class DirectionRecorder:
    """The lines of one direction. `is_protocol`: its lines are messages, and not only text for people, as on stderr."""

    def __init__(self, direction: str, *, is_protocol: bool = True, longest: int = LONGEST) -> None:
        self._direction = direction
        self._is_protocol = is_protocol
        self._longest = longest
        self._parts: list[bytes] = []  # pieces of the line that has not ended
        self._held = 0
        self._skipped = 0  # bytes of a line that is not recorded; above 0 until it ends

    def feed(self, t: float, block: bytes) -> bytes:
        """The lines that end in this block, as lines of the recording."""
        end = block.rfind(b"\n")
        if end < 0:
            if block:
                self._hold(block)
            return b""
        parts, self._parts, self._held = self._parts, [], 0
        before = b""
        begin = 0
        if self._skipped:
            begin = block.find(b"\n") + 1
            before = self._skipping_over(t, begin - 1)
        lines = b""
        if begin <= end:
            whole = block[begin:end]
            lines = self._lines(_head(t, self._direction), b"".join((*parts, whole)) if parts else whole)
        if rest := block[end + 1 :]:
            self._hold(rest)
        return before + lines

    def gap(self, t: float, lost: int) -> bytes:
        """Count bytes that were forwarded and not recorded: the line they belong to is lost, and a note marks it when it ends."""
        lines = self.end(t)
        self._skipped += lost
        return lines

    def end(self, t: float) -> bytes:
        """The line that never ended, if there is one."""
        if self._skipped:
            return self._skipping_over(t, 0)
        if not self._parts:
            return b""
        line = self._line(_head(t, self._direction), b"".join(self._parts), ended=False)
        self._parts, self._held = [], 0
        return line[:-2] + b',"partial":true}\n'

    def _hold(self, part: bytes) -> None:
        if not self._skipped:
            self._parts.append(part)
            self._held += len(part)
            if self._held <= self._longest:
                return
            part, self._skipped = b"", self._held
            self._parts, self._held = [], 0
        self._skipped += len(part)

    def _skipping_over(self, t: float, rest: int) -> bytes:
        size, self._skipped = self._skipped + rest, 0
        return note(t, "a line was not recorded", of=self._direction, bytes=size)

    def _lines(self, head: bytes, whole: bytes) -> bytes:
        if self._is_protocol and b"\r" not in whole and _is_text(whole) and _are_objects(whole):
            begin = head + b'"msg":'
            return begin + whole.replace(b"\n", b"}\n" + begin) + b"}\n"
        return b"".join(self._line(head, line) for line in whole.split(b"\n"))

    def _line(self, head: bytes, line: bytes, *, ended: bool = True) -> bytes:
        return _recorded(head, line, is_protocol=self._is_protocol, ended=ended)


def line_of(t: float, direction: str, line: bytes) -> bytes:
    """A line of the wire, without its line feed, as a line of a recording."""
    return _recorded(_head(t, direction), line, is_protocol=True, ended=True)


def _head(t: float, direction: str) -> bytes:
    return f'{{"t":{t:.6f},"dir":"{direction}",'.encode()


def _recorded(head: bytes, line: bytes, *, is_protocol: bool, ended: bool) -> bytes:
    """Every byte of the wire can be restored from it. A carriage return stands in no line of the file as it is: many programs would take it
    for the end of the line."""
    end = b"}\n"
    if ended and line.endswith(b"\r"):
        line, end = line[:-1], b',"end":"\\r\\n"}\n'
    if not _is_text(line):
        return b'%s"raw":%s,"base64":"%s"%s' % (head, _quoted(line), b64encode(line), end)
    if is_protocol and _is_json(line):
        if b"\r" in line:  # in JSON it can only stand between words, as a space does
            return b'%s"msg":%s,"raw":%s%s' % (head, line.replace(b"\r", b" "), _quoted(line), end)
        return b'%s"msg":%s%s' % (head, line, end)
    return b'%s"raw":%s%s' % (head, _quoted(line), end)


def _is_json(line: bytes) -> bool:
    try:
        _RAW.decode(line)
    except BAD_INPUT:
        return False
    return True


def note(t: float, words: str, **more: object) -> bytes:
    """A line of the recording that was not on the wire."""
    return msgspec.json.encode({"t": round(t, 6), "dir": "note", "note": words, **more}) + b"\n"


def _quoted(line: bytes) -> bytes:
    return msgspec.json.encode(line.decode("utf-8", "replace"))


def _are_objects(whole: bytes) -> bool:
    """Whether every line is a JSON object, found out without a step of ours for each: a busy wire has ten thousand in a second.

    A brace that closes, a line end and a brace that opens can follow each other in no JSON value. So where every line end stands between such
    braces a value ends with each line, and as many values as lines mean one in each.
    """
    ends = whole.count(b"\n")
    if whole[:1] != b"{" or whole[-1:] != b"}" or whole.count(b"}\n{") != ends:
        return False
    try:
        return len(_RAW.decode_lines(whole)) == ends + 1
    except BAD_INPUT:
        return False


def _is_text(line: bytes) -> bool:
    if line.isascii():
        return True
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


# --- the first line of a recording: version, time and command


def opening(command: list[str], started: str, part: int, redacted: frozenset[str]) -> bytes:
    """The first line of the file that holds this part of the recording."""
    more: dict[str, object] = {"part": part} if part > 1 else {}
    if redacted:
        more["redacted"] = sorted(redacted)
    # A word of a command line may be no text at all.
    words = [word.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for word in command]
    return note(0, f"antiphon record {__version__}", started=started, command=words, **more)
