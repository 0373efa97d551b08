"""Our directories on this machine, and how they are made: readable by the user alone, whatever the umask is."""

import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from errno import ENOTDIR
from pathlib import Path
from typing import Final

__all__ = [
    "CONFIG_DIR",
    "STATE_DIR",
    "config_dir",
    "make_private_directory",
    "make_private_file",
    "private_opener",
    "state_dir",
    "write_private_file",
]

STATE_DIR: Final = "ANTIPHON_STATE_DIR"
"""The environment variable that moves everything we keep to another directory."""

CONFIG_DIR: Final = "ANTIPHON_CONFIG_DIR"
"""The environment variable that names another directory for `config.toml`."""


def state_dir(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """The directory for what outlives a process: sessions, decisions, logs. It may not exist yet."""
    return _place(STATE_DIR, "XDG_STATE_HOME", Path(".local", "state"), environment, platform)


def config_dir(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """The directory for what the user writes: `config.toml`. It may not exist yet."""
    return _place(CONFIG_DIR, "XDG_CONFIG_HOME", Path(".config"), environment, platform)


def make_private_directory(path: str | os.PathLike[str]) -> None:
    """Make a directory with all above it that are missing, each for the user alone. `mkdir -p` does that for the last one only.

    One that is there stays as it is, since it may be shared on purpose; but not our own in its usual place, which was made with the
    rights of the umask once.

    Raises:
        OSError: it cannot be made.
    """
    directory = Path(path)
    missing = []
    while not directory.is_dir() and directory != directory.parent:
        missing.append(directory)
        directory = directory.parent
    for each in reversed(missing):
        with suppress(FileExistsError):  # made by another process meanwhile; what is there and no directory fails below
            os.mkdir(each, 0o700)
    found = os.stat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), os.fspath(path))
    usual = Path(path) in (state_dir({}), config_dir({}))
    if usual and found.st_mode & 0o077 and found.st_uid == os.geteuid():
        with suppress(OSError):  # a file system without modes
            os.chmod(path, 0o700)


def make_private_file(path: str | os.PathLike[str]) -> None:
    """Make an empty file for the user alone, in a directory for the user alone. One that is there keeps its content and its mode.

    Raises:
        OSError: it cannot be made.
    """
    make_private_directory(Path(path).parent)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def write_private_file(path: str | os.PathLike[str], text: str) -> None:
    """Write a file for the user alone, in the place of one that may be there, whose mode does not count.

    Raises:
        OSError: it cannot be written.
    """
    make_private_directory(Path(path).parent)
    half = Path(f"{os.fspath(path)}.{os.urandom(4).hex()}")
    descriptor = os.open(half, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        half.replace(path)
    except BaseException:
        half.unlink(missing_ok=True)
        raise


def private_opener(path: str, flags: int) -> int:
    """Open a file for `open(…, opener=private_opener)`: a new one is for the user alone."""
    return os.open(path, flags, 0o600)


def _place(ours: str, xdg: str, otherwise: Path, environment: Mapping[str, str], platform: str) -> Path:
    if chosen := environment.get(ours):
        return Path(chosen).expanduser().absolute()
    if platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "antiphon"
    base = Path(environment.get(xdg, ""))
    # The XDG rules: a relative path there is a mistake, and is to be ignored.
    return (base if base.is_absolute() else Path.home() / otherwise) / "antiphon"
