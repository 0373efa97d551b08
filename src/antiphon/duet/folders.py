"""Temporary directories that are ours alone. Who is killed leaves one behind; the name says whose it was, and others of us remove it."""

import os
import re
import shutil
import stat
import tempfile
import time
from pathlib import Path
from typing import Final

__all__ = ["new_folder", "sweep"]

LEFT: Final = 24 * 60 * 60.0
"""Seconds after which a directory whose process is not there was left. Not at once: another container may share the directory, and not the
processes."""

_PREFIX: Final = "antiphon-look-"
_NAME: Final = re.compile(rf"{_PREFIX}(\d+)-")


def new_folder() -> Path:
    """A directory that nobody else can look into."""
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))  # always with the mode 0700


def sweep() -> None:
    """Remove those that were left. Takes its time: call it in a thread."""
    now = time.time()
    try:
        with os.scandir(tempfile.gettempdir()) as entries:
            left = [entry.path for entry in entries if _was_left(entry, now)]
    except OSError:
        return
    for path in left:
        shutil.rmtree(path, ignore_errors=True)


def _was_left(entry: "os.DirEntry[str]", now: float) -> bool:
    named = _NAME.match(entry.name)
    if named is None or _lives(int(named[1])):
        return False
    try:
        facts = entry.stat(follow_symlinks=False)
    except OSError:  # somebody else was faster
        return False
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid() and now - facts.st_mtime > LEFT


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is there, and somebody else's
        return True
    return True
