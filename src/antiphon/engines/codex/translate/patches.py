"""Unified hunks, read and applied. Exact: a hunk that does not stand where it says it does is not applied anywhere else."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

__all__ = ["BadPatch", "Hunk", "applied", "hunks_of", "reverted"]

_HEADER: Final = re.compile(r"@@ -(\d{1,10})(?:,(\d{1,10}))? \+(\d{1,10})(?:,(\d{1,10}))? @@")
_MOVED: Final = re.compile(r"\n\nMoved to: [^\n]*\n?\Z")


class BadPatch(ValueError):
    """The text is no patch, or not one of this file."""


class Hunk(msgspec.Struct, frozen=True):
    """Some lines of a file, before and after, from line `old_start` and `new_start` on (from 1). Lines have their ends."""

    old_start: int
    new_start: int
    old: Sequence[str]
    new: Sequence[str]
    first_change: int = 0
    """How many of the new lines stand before the first one that is changed."""

    @property
    def line(self) -> int:
        """The first changed line of the file as it is afterwards."""
        return max(self.new_start, 1) + self.first_change


def hunks_of(diff: str) -> list[Hunk]:
    """The hunks of a diff of one file, with or without its header. Codex writes below the hunks where the file is moved to.

    Raises:
        BadPatch: it is something else.
    """
    text = _MOVED.sub("\n", diff)
    lines = _lines(text)
    found: list[Hunk] = []
    at = 0
    while at < len(lines):
        header = _HEADER.match(lines[at])
        if header is None:
            if found and lines[at].strip():
                raise BadPatch(f"not a line of a patch: {lines[at][:40]!r}")
            at += 1
            continue
        hunk, at = _hunk(header, lines, at + 1)
        found.append(hunk)
    if not found and text.strip():
        raise BadPatch("no hunks")
    return found


def applied(text: str, hunks: Sequence[Hunk]) -> str:
    """The text after the change.

    Raises:
        BadPatch: these are not the lines that the hunks change.
    """
    return _put(text, [(_index(hunk.old_start, hunk.old), hunk.old, hunk.new) for hunk in hunks])


def reverted(text: str, hunks: Sequence[Hunk]) -> str:
    """The text before the change.

    Raises:
        BadPatch: these are not the lines that the hunks made.
    """
    return _put(text, [(_index(hunk.new_start, hunk.new), hunk.new, hunk.old) for hunk in hunks])


def _lines(text: str) -> list[str]:
    """Only a line feed ends a line: other separators are part of what a file says."""
    lines = text.split("\n")
    return [*(f"{line}\n" for line in lines[:-1]), *lines[-1:]] if lines[-1] else [f"{line}\n" for line in lines[:-1]]


def _index(start: int, lines: Sequence[str]) -> int:
    """Where lines begin. A hunk without any names the line after which the others go."""
    return start - 1 if lines else start


def _put(text: str, changes: Sequence[tuple[int, Sequence[str], Sequence[str]]]) -> str:
    lines = _lines(text)
    result: list[str] = []
    done = 0
    for at, before, after in changes:
        end = at + len(before)
        if at < done or end > len(lines) or lines[at:end] != list(before):
            raise BadPatch(f"line {at + 1} is not as the patch has it")
        result += lines[done:at]
        result += after
        done = end
    result += lines[done:]
    # A line without an end in the middle means that the patch is of another file.
    if any(not line.endswith("\n") for line in result[:-1]):
        raise BadPatch("it would join two lines")
    return "".join(result)


def _hunk(header: "re.Match[str]", lines: Sequence[str], at: int) -> tuple[Hunk, int]:
    old_left, new_left = int(header[2] or 1), int(header[4] or 1)
    old: list[str] = []
    new: list[str] = []
    first: int | None = None
    sign = ""
    while at < len(lines) and (old_left > 0 or new_left > 0 or lines[at].startswith("\\")):
        line = lines[at]
        at += 1
        if line.startswith("\\"):
            _without_end(old, new, sign)
            continue
        sign = line[0]
        body = line[1:]
        if sign == "\n":  # an empty line whose space somebody cut off
            sign, body = " ", "\n"
        if sign not in " +-":
            raise BadPatch(f"not a line of a hunk: {line[:40]!r}")
        if sign != " " and first is None:
            first = len(new)
        if sign != "+":
            old.append(body if body.endswith("\n") else f"{body}\n")
            old_left -= 1
        if sign != "-":
            new.append(body if body.endswith("\n") else f"{body}\n")
            new_left -= 1
    if old_left or new_left:
        raise BadPatch("the hunk is not as long as it says")
    return Hunk(int(header[1]), int(header[3]), tuple(old), tuple(new), first or 0), at


def _without_end(old: list[str], new: list[str], sign: str) -> None:
    """The line before has no end in the file."""
    if sign in (" ", "-") and old:
        old[-1] = old[-1].removesuffix("\n")
    if sign in (" ", "+") and new:
        new[-1] = new[-1].removesuffix("\n")
