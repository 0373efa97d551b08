"""Replacing a file at one stroke: a new one beside it, written out to the disk, then renamed over it.

Works below an open folder, so that nothing put in the way can lead it elsewhere.
"""

import codecs
import os
import stat
from contextlib import suppress
from typing import Final

from antiphon.local.problems import NotAFile, NotPermitted

__all__ = ["replace"]

CHUNK: Final = 256 * 1024
"""Bytes per look at the old file's line ends. Most files show a bare newline in the first."""

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def replace(folder: int, name: str, data: bytes, shown: str) -> None:
    """Put `data` into the file `name` of the folder, in the style of what is there.

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
        what = "a folder" if stat.S_ISDIR(old.st_mode) else "not a regular file"
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
        mode &= ~(stat.S_ISUID | stat.S_ISGID)  # they would lend somebody else's rights
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
    """Make the rename last. It has happened, so a file system that cannot do this is no error."""
    with suppress(OSError):
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
