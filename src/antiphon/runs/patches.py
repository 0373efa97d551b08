"""All changes in a directory between two moments as one patch that `git apply` takes: edited, new, deleted, renamed, binary files.

What git ignores is left out, and so are repositories inside, which are trees of their own, and the files that this process writes its
output to (`> events.jsonl`). The repository is only read.
"""

import asyncio
import os
import shutil
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from antiphon.errors import AcpError
from antiphon.runs.events import PatchReport
from antiphon.snapshots.git import (
    GitFailed,
    TooMuch,
    TreeSnapshot,
    in_thread,
    new_folder,
    repository_of,
    user_excludes,
)

__all__ = ["PATCH_LIMIT", "PatchBase", "PatchError", "patch_base"]

PATCH_LIMIT: Final = 256 * 1024 * 1024
"""Bytes of a patch: as much as is read of files that git does not know."""


class PatchError(AcpError):
    """The changes could not be written as a patch."""


class PatchBase:
    """How a directory looked, for a patch of what changes in it."""

    def __init__(self, snapshot: TreeSnapshot) -> None:
        self._snapshot = snapshot

    @property
    def root(self) -> str:
        """The directory that the patch applies to: the top of the repository, or the directory itself."""
        return self._snapshot.root

    async def changes(self) -> tuple[bytes, list[str]]:
        """Return the patch up to now, and the files in it.

        Raises:
            PatchError: git fails, or there is too much.
        """
        try:
            patch, files, large = await self._snapshot.changes(PATCH_LIMIT)
        except (GitFailed, OSError) as error:
            raise _failed(error) from error
        if large:
            raise PatchError(
                f"`{large[0]}` is too large for a patch", hint="leave out `--patch`, or have git ignore it"
            )
        return patch, files

    async def write(self, path: str) -> PatchReport:
        """Write the patch to a file. Without changes the file is empty.

        Raises:
            PatchError: there is no patch, or the file cannot be written.
        """
        patch, files = await self.changes()
        try:
            await in_thread(_write, path, patch)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise PatchError(f"cannot write `{path}`: {why}", hint="check the path") from error
        return PatchReport(path=os.path.join(os.getcwd(), path), bytes=len(patch), files=files)


@asynccontextmanager
async def patch_base(cwd: str) -> AsyncIterator[PatchBase]:
    """Remember how a directory looks, for a patch of the changes in this block.

    Raises:
        PatchError: git is not there, or the directory cannot be read.
    """
    folder = new_folder()
    try:
        root = await asyncio.to_thread(_top, cwd)
        try:
            snapshot = TreeSnapshot(
                folder / "tree", root, "", await user_excludes(folder), whole=True, without=_own_output()
            )
            await snapshot.begin()
        except (GitFailed, OSError) as error:
            raise _failed(error) from error
        yield PatchBase(snapshot)
    finally:
        await in_thread(shutil.rmtree, folder, ignore_errors=True)


def _top(cwd: str) -> str:
    """Return the directory that a patch applies to."""
    here = os.path.realpath(cwd)
    found = repository_of(here)
    return here if found is None else os.path.realpath(found.top)


def _own_output() -> frozenset[tuple[int, int]]:
    """Return the files that stdout and stderr are, by device and inode."""
    found = set()
    for stream in (1, 2):
        try:
            facts = os.fstat(stream)
        except OSError:  # closed
            continue
        if stat.S_ISREG(facts.st_mode):
            found.add((facts.st_dev, facts.st_ino))
    return frozenset(found)


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)


def _failed(error: Exception) -> PatchError:
    why = "it is larger than 256 MiB" if isinstance(error, TooMuch) else str(error)
    return PatchError(f"no patch could be made: {why}", hint="leave out `--patch`, or look at what git reports")
