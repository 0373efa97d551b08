"""Text files of this machine: read in parts or whole, written whole and at once. Blocks; knows no loop and no ACP.

Text is UTF-8 and comes as it stands in the file: line ends are not translated, a byte order mark is not shown. Lines end
with `\\n` (so also with `\\r\\n`) and are counted from 1.
"""

import codecs
import os
import stat
from contextlib import suppress
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

__all__ = [
    "MAX_SCAN",
    "MAX_TEXT",
    "FileProblem",
    "NotAFile",
    "NotPermitted",
    "NotText",
    "NotThere",
    "OutsideRoots",
    "Roots",
    "TooLarge",
    "lines_of",
    "read_text",
    "replace",
    "write_text",
]

MAX_TEXT: Final = 10 * 1024 * 1024
"""Bytes of text read at once. JSON may write a byte as six (`\\u001b`), and six times this still fits into one frame."""

MAX_SCAN: Final = 1024 * 1024 * 1024
"""Bytes skipped to find a line: about a second of reading. A longer file is not text to work on."""

CHUNK: Final = 256 * 1024
"""Bytes per read: few calls for a long file, little memory for the lines that are skipped."""

OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def read_text(
    path: str | os.PathLike[str], line: int | None = None, limit: int | None = None, *, roots: Roots = EVERYWHERE
) -> str:
    """The text of a file, or at most `limit` lines of it from `line` on (0 is taken as 1). Empty past the end.

    Raises:
        FileProblem: its subclasses name what is wrong.
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

    Missing directories are created. A file that is there keeps its mode, owner, attributes, byte order mark, and its line ends if all
    of them are `\\r\\n`. Through a link the file it leads to is written. Other hard links to it keep the old text.

    Raises:
        FileProblem: its subclasses name what is wrong. Nothing is left behind then.
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
        raise NotAFile(f"cannot read `{asked}`: it is a directory", hint="give the path of a file")
    if not stat.S_ISREG(found.st_mode):
        raise NotAFile(f"cannot read `{asked}`: it is a pipe, a socket or a device", hint="give the path of a file")


def _pass_over(fd: int, lines: int, asked: str) -> bytes:
    """Skip lines, and return what was read after them."""
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
    """Return a number of lines, or the rest, from `chunk` on."""
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
    """The end of the line that is so many lines after `start`; -1 if there are fewer."""
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


# --- replacing a file ------------------------------------------------------------------------------------------------
# Works below an open directory, so that no link that is put there meanwhile can lead elsewhere.


_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def replace(folder: int, name: str, data: bytes, shown: str) -> None:
    """Put `data` into the file `name` of the directory, in the style of what is there.

    Raises:
        NotAFile, NotPermitted, OSError: nothing has changed then.
    """
    old = _look(folder, name, shown)
    # Not derived from the name, which may be as long as names can be.
    beside = f".antiphon-{os.urandom(8).hex()}"
    fd = os.open(beside, _NEW, 0o666 if old is None else 0o600, dir_fd=folder)
    try:
        try:
            _write(fd, data if old is None else _like_old(folder, name, fd, old, data))
        finally:
            os.close(fd)
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside, dir_fd=folder)
        raise
    _sync(folder)


def _look(folder: int, name: str, shown: str) -> os.stat_result | None:
    """What is there, if anything; it must be a file that we might have written in place."""
    try:
        old = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(old.st_mode):
        what = "a directory" if stat.S_ISDIR(old.st_mode) else "not a regular file"
        raise NotAFile(f"cannot write `{shown}`: it is {what}", hint="give the path of a file")
    if not os.access(name, os.W_OK, dir_fd=folder, effective_ids=os.access in os.supports_effective_ids):
        raise NotPermitted(f"cannot write `{shown}`: it is read-only", hint="make it writable first")
    return old


def _like_old(folder: int, name: str, fd: int, old: os.stat_result, data: bytes) -> bytes:
    """Give the new file what the old one has: owner, attributes, mode; and the data its mark and line ends."""
    try:
        old_fd = os.open(name, _OLD, dir_fd=folder)
    except PermissionError:  # writable but not readable
        _keep_rights(fd, old)
        return data
    try:
        _keep_attributes(old_fd, fd)
        _keep_rights(fd, old)
        return _in_style(old_fd, data)
    finally:
        os.close(old_fd)


def _keep_rights(fd: int, old: os.stat_result) -> None:
    mode = stat.S_IMODE(old.st_mode)
    with suppress(OSError):
        os.fchown(fd, -1, old.st_gid)
    with suppress(OSError):
        os.fchown(fd, old.st_uid, -1)
    new = os.fstat(fd)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        mode &= ~(stat.S_ISUID | stat.S_ISGID)  # they would give the new file the rights of another owner
    with suppress(OSError):  # a file system without modes
        os.fchmod(fd, mode)


def _keep_attributes(old_fd: int, fd: int) -> None:
    """Access lists and labels, where the system has them and lets us."""
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            for attribute in os.listxattr(old_fd):
                with suppress(OSError):
                    os.setxattr(fd, attribute, os.getxattr(old_fd, attribute))


def _in_style(old_fd: int, data: bytes) -> bytes:
    head = os.read(old_fd, CHUNK)
    if _is_crlf(old_fd, head):
        data = data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    if head.startswith(codecs.BOM_UTF8) and not data.startswith(codecs.BOM_UTF8):
        data = codecs.BOM_UTF8 + data
    return data


def _is_crlf(fd: int, chunk: bytes) -> bool:
    """Whether there are lines and all end with CRLF. Stops at the first that does not."""
    before, found = b"", False
    while chunk:
        chunk = before + chunk
        newlines = chunk.count(b"\n")
        if chunk.count(b"\r\n") != newlines:
            return False
        found = found or newlines > 0
        before = b"\r" if chunk.endswith(b"\r") else b""  # its newline may be in the next
        chunk = os.read(fd, CHUNK)
    return found


def _write(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]
    os.fsync(fd)  # before the rename: after a crash there is the old text or the new, not an empty file


def _sync(folder: int) -> None:
    """Make the rename last. It has happened, so a file system that cannot do this is not an error."""
    with suppress(OSError):
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
