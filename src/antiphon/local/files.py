"""Text files of this machine: read in parts or whole, written whole and at once. Blocks; knows no loop and no ACP.

Text is UTF-8 and comes as it stands in the file: line ends are not translated, a byte order mark is not shown. Lines end
with `\\n` (so also with `\\r\\n`) and are counted from 1.
"""

import codecs
import os
import stat
from pathlib import Path
from typing import Final

from antiphon.local.problems import (
    FileProblem,
    NotAFile,
    NotPermitted,
    NotText,
    NotThere,
    OutsideRoots,
    TooLarge,
    problem,
)
from antiphon.local.roots import EVERYWHERE, Roots
from antiphon.local.writing import replace

__all__ = [
    "MAX_SCAN", "MAX_TEXT", "FileProblem", "NotAFile", "NotPermitted", "NotText", "NotThere", "OutsideRoots", "Roots",
    "TooLarge", "lines_of", "read_text", "write_text",
]  # fmt: skip

MAX_TEXT: Final = 10 * 1024 * 1024
"""Bytes of text read at once. JSON may write a byte as six (`\\u001b`), and six times this still fits into one frame."""

MAX_SCAN: Final = 1024 * 1024 * 1024
"""Bytes passed over to find a line: a second or so of reading. A file in which it stands further down is no text to work on."""

CHUNK: Final = 256 * 1024
"""Bytes per read: few calls for a long file, little memory for the lines that are passed over."""

OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def read_text(
    path: str | os.PathLike[str], line: int | None = None, limit: int | None = None, *, roots: Roots = EVERYWHERE
) -> str:
    """The text of a file, or at most `limit` lines of it from `line` on (0 is taken as 1). Past the end there is none.

    Raises:
        FileProblem: its subclasses say what is wrong.
    """
    place = roots.resolve(path)
    asked = os.fspath(path)
    first = max(line or 1, 1)
    try:
        data = _read(roots, place, asked, first, limit)
    except OSError as error:
        if isinstance(error, FileProblem):
            raise
        raise problem("read", asked, error) from error
    return _decoded(data, asked, first == 1)


def write_text(path: str | os.PathLike[str], text: str, *, roots: Roots = EVERYWHERE) -> None:
    """Write a whole file, so that a reader sees the old text or the new one and nothing between.

    Missing folders are made. A file that is there keeps its mode, owner, attributes, byte order mark, and its line ends if all
    of them are `\\r\\n`. Through a link the file it leads to is written. Other hard links to it keep the old text.

    Raises:
        FileProblem: its subclasses say what is wrong. Nothing is left behind then.
    """
    place = roots.resolve(path)
    asked = os.fspath(path)
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise NotText(f"cannot write `{asked}`: the text has half a surrogate pair at {error.start}") from error
    try:
        with roots.way_to(place) as way:
            way.go_down(make=True)
            replace(way.folder, way.name, data, asked)
    except OSError as error:
        if isinstance(error, FileProblem):
            raise
        raise problem("write", asked, error) from error


def lines_of(text: str, line: int | None = None, limit: int | None = None) -> str:
    """The same part of a text that `read_text` takes of a file."""
    start = _end_of_line(text, "\n", max(line or 1, 1) - 1)
    if start < 0:
        return ""
    end = -1 if limit is None else _end_of_line(text, "\n", limit, start)
    return text[start:] if end < 0 else text[start:end]


def _read(roots: Roots, place: Path, asked: str, first: int, count: int | None) -> bytes:
    with roots.way_to(place) as way:
        way.go_down()
        # Looked at before it is opened: opening a device may do something, and a pipe would wait for its writer.
        _must_be_regular(os.stat(way.name, dir_fd=way.folder, follow_symlinks=False), asked)
        fd = os.open(way.name, OPEN, dir_fd=way.folder)
    try:
        found = os.fstat(fd)
        _must_be_regular(found, asked)
        if first == 1 and count is None and found.st_size > MAX_TEXT:
            raise _too_large(asked)
        return _take(fd, _pass_over(fd, first - 1, asked), count, asked)
    finally:
        os.close(fd)


def _must_be_regular(found: os.stat_result, asked: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise NotAFile(f"cannot read `{asked}`: it is a folder", hint="give the path of a file")
    if not stat.S_ISREG(found.st_mode):
        raise NotAFile(f"cannot read `{asked}`: it is a pipe, a socket or a device", hint="give the path of a file")


def _pass_over(fd: int, lines: int, asked: str) -> bytes:
    """Read past so many lines: what was read beyond them."""
    passed = 0
    while lines and (chunk := os.read(fd, CHUNK)):
        here = chunk.count(b"\n")
        if here >= lines:
            return chunk[_end_of_line(chunk, b"\n", lines) :]
        lines -= here
        passed += len(chunk)
        if passed > MAX_SCAN:
            raise TooLarge(
                f"cannot read `{asked}`: the line is more than {MAX_SCAN >> 20} MiB into it",
                hint="use a command to search it",
            )
    return b""


def _take(fd: int, chunk: bytes, lines: int | None, asked: str) -> bytes:
    """So many lines, or all that is left, from `chunk` on."""
    taken = bytearray()
    while True:
        here = 0 if lines is None else chunk.count(b"\n")
        full = lines is not None and here >= lines
        taken += chunk[: _end_of_line(chunk, b"\n", lines)] if full and lines is not None else chunk
        if len(taken) > MAX_TEXT:
            raise _too_large(asked)
        if full:
            return bytes(taken)
        if lines is not None:
            lines -= here
        chunk = os.read(fd, CHUNK)
        if not chunk:
            return bytes(taken)


def _end_of_line(text: "str | bytes", newline: "str | bytes", count: int, start: int = 0) -> int:
    """Where the line ends that is so many lines after `start`; -1 if there are fewer."""
    for _ in range(count):
        start = text.find(newline, start) + 1  # type: ignore[arg-type]  # both str or both bytes
        if not start:
            return -1
    return start


def _too_large(asked: str) -> TooLarge:
    return TooLarge(
        f"cannot read `{asked}`: it is more than {MAX_TEXT >> 20} MiB",
        hint="ask for a part of it, with `line` and `limit`",
    )


def _decoded(data: bytes, asked: str, from_start: bool) -> str:
    if from_start:
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise NotText(f"cannot read `{asked}`: it is UTF-16", hint="only UTF-8 is read; convert it with a command")
        data = data.removeprefix(codecs.BOM_UTF8)
    if b"\0" in data:  # git's sign of a binary file, too
        raise NotText(f"cannot read `{asked}`: it is a binary file", hint="only text in UTF-8 is read")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotText(
            f"cannot read `{asked}`: it is not text in UTF-8 ({error.reason})", hint="is it binary?"
        ) from error
