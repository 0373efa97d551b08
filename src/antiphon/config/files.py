"""The config files of this machine: found and read. Never writes, and understands nothing of what they say."""

import errno
import os
import stat
from pathlib import Path
from typing import Final

import msgspec

from antiphon.config.places import config_dir

__all__ = ["MAX_FILE", "ConfigFile", "project_file", "read_file", "user_file"]

MAX_FILE: Final = 128 * 1024
"""Bytes of a config file. A thousand rules take half of it; what is larger was not written by hand."""

FOLDER: Final = ".antiphon"
NAME: Final = "config.toml"
_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class ConfigFile(msgspec.Struct, frozen=True):
    """A config file that is there: its text, or why there is none."""

    path: Path
    text: str = ""
    digest: str = ""
    """Of the very bytes that `text` is; empty if they could not be read, or if nobody asked for it."""
    trouble: str | None = None


def user_file() -> Path:
    """Where the user's config file is, or would be."""
    return config_dir() / NAME


def project_file(cwd: str | os.PathLike[str]) -> ConfigFile | None:
    """The config file of the project that a directory is in: its own, or that of the nearest parent that has one.

    Neither the home directory nor the root makes a project of everything below it; the directory itself may be either.
    """
    start = Path(cwd).resolve()
    home = Path.home().resolve()
    for folder in (start, *start.parents):
        if folder != start and folder in (home, Path(folder.anchor)):
            return None
        found = read_file(folder / FOLDER / NAME)
        if found is not None:
            return found
    return None


def read_file(path: Path, *, digest: bool = True) -> ConfigFile | None:
    """The file, if there is one. One that is there and cannot be read is not none. Without `digest` it is read sooner."""
    try:
        fd = os.open(path, _OPEN)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        return ConfigFile(path, trouble=error.strerror or str(error))
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ConfigFile(path, trouble="it is not a regular file")
        data = _read(fd)
    except OSError as error:
        return ConfigFile(path, trouble=error.strerror or str(error))
    finally:
        os.close(fd)
    if len(data) > MAX_FILE:
        return ConfigFile(path, trouble=f"it is larger than {MAX_FILE >> 10} KiB")
    try:
        return ConfigFile(path, data.decode(), _digest(data) if digest else "")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return ConfigFile(path, trouble=f"it is not text in UTF-8 (line {line})")


def _digest(data: bytes) -> str:
    import hashlib  # takes longer than all the rest, and who waits for an engine needs none

    return hashlib.sha256(data).hexdigest()


def _read(fd: int) -> bytes:
    data = b""
    while len(data) <= MAX_FILE and (chunk := os.read(fd, MAX_FILE + 1 - len(data))):
        data += chunk
    return data
