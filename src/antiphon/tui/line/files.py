"""The files of a directory, as completions of `@path`: what git ignores is not offered, and a few letters of a name are enough."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from antiphon.tui.line.fuzzy import ranked

__all__ = ["FileIndex", "FileListing", "paths_for"]

MOST_PATHS: Final = 200
"""Names that are offered. With more, users type another letter."""

MOST_FILES: Final = 100_000
"""Files of a directory that are searched."""

FRESH: Final = 3.0
"""Seconds for which a listing is used again: it is asked for with each letter."""

GIT_LIMIT: Final = 10.0
"""Seconds that git may take."""

SKIPPED: Final = frozenset({"node_modules", "__pycache__", "venv", "site-packages", "target", "dist", "build"})
"""Directories that are not searched where git does not know what to ignore; hidden ones are not either."""


@dataclass(frozen=True)
class FileListing:
    """The files below a directory, and the directories that have some, each with a slash at its end."""

    paths: tuple[str, ...] = ()
    known: frozenset[str] = field(default=frozenset())

    @classmethod
    def of(cls, files: list[str]) -> "FileListing":
        """Return the listing of these files."""
        directories: dict[str, None] = {}
        for file in files:
            at = file.find("/")
            while at >= 0:
                directories[file[: at + 1]] = None
                at = file.find("/", at + 1)
        paths = (*directories, *files)
        return cls(paths, frozenset(paths))


class FileIndex:
    """Lists the files of a directory, and remembers the list for a short time."""

    def __init__(self) -> None:
        self._kept: tuple[str, float, FileListing] | None = None

    def listing(self, cwd: str) -> FileListing:
        """Return the files below a directory, without those that git ignores."""
        if self._kept is not None and self._kept[0] == cwd and monotonic() - self._kept[1] < FRESH:
            return self._kept[2]
        files = _of_git(cwd)
        listing = FileListing.of(files if files is not None else list(_walked(cwd)))
        self._kept = (cwd, monotonic(), listing)
        return listing

    def matching(self, typed: str, cwd: str) -> list[str]:
        """Return the paths that are meant: those that begin like this, then those that have the letters somewhere."""
        if typed.startswith(("/", "~", ".")):  # outside of the directory, or hidden: as it was typed
            return paths_for(typed, cwd)
        listing = self.listing(cwd)
        folder = typed[: typed.rfind("/") + 1]
        if folder and folder not in listing.known:  # the user names what git ignores
            return paths_for(typed, cwd)
        here = [path for path in paths_for(typed, cwd) if path in listing.known]
        if not typed or typed.endswith("/"):
            return here
        fuzzy = ranked(typed, listing.paths, str, MOST_PATHS)
        there = [path for path in fuzzy if path not in here and os.path.lexists(os.path.join(cwd, path))]
        return [*here, *there][:MOST_PATHS]


def _of_git(cwd: str) -> list[str] | None:
    """Return the files that git knows or would add; None if this is not a working tree, or there is no git."""
    try:
        found = subprocess.run(
            ["git", "-C", cwd, "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "-z"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_LIMIT,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return os.fsdecode(found.stdout).split("\0")[:-1][:MOST_FILES]


def _walked(cwd: str) -> Iterator[str]:
    count = 0
    for folder, directories, files in os.walk(cwd):
        directories[:] = sorted(name for name in directories if not name.startswith(".") and name not in SKIPPED)
        inside = os.path.relpath(folder, cwd)
        for name in sorted(files):
            if not name.startswith("."):
                yield name if inside == "." else os.path.join(inside, name)
                count += 1
        if count >= MOST_FILES:
            return


def paths_for(typed: str, cwd: str) -> list[str]:
    """Return the paths that begin like this, directories first; hidden ones only after a dot."""
    folder, name = os.path.split(typed)
    try:
        with os.scandir(os.path.join(cwd, os.path.expanduser(folder) if folder else "")) as found:
            names = sorted(
                (not entry.is_dir(), entry.name)
                for entry in found
                if entry.name.lower().startswith(name.lower())
                and (name.startswith(".") or not entry.name.startswith("."))
            )
    except OSError:
        return []
    return [os.path.join(folder, entry) + ("" if plain else "/") for plain, entry in names[:MOST_PATHS]]
