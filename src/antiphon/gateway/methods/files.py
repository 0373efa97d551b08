"""The names of files and directories on this machine, for a person who types one: files of a session, and directories for a new one.

Names are listed and nothing is opened. What a repository ignores is left out: git says what that is, run so that the repository can have
it run nothing.
"""

import asyncio
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from antiphon.aio import background
from antiphon.errors import Code, RequestError
from antiphon.local.problems import FileProblem
from antiphon.local.roots import Workspace
from antiphon.snapshots.git import (
    Git,
    GitFailed,
    Repository,
    TooMuch,
    in_thread,
    make_repository,
    new_folder,
    repository_of,
    user_excludes,
)

if TYPE_CHECKING:
    from msgspec import Raw

    from antiphon.gateway.agents.host import GatewayRoots
    from antiphon.gateway.client import RemoteClient
    from antiphon.gateway.clients.connection import GatewayConnection
    from antiphon.gateway.hub import Hub
    from antiphon.gateway.session import HubSession

__all__ = ["FileNames", "list_directories", "list_files"]

MOST: Final = 200
"""Names of one answer."""

MOST_NAMES: Final = 50_000
"""Names that are kept of one directory."""

KEPT: Final = 8
"""Directories whose names are kept."""

FRESH: Final = 5.0
"""Seconds for which names are kept: a person types several letters, and a file may be made between two."""

GIT_TIMEOUT: Final = 10.0
"""Seconds that git has. Without its answer the directory is looked through, as one without a repository."""

MOST_DIRECTORIES: Final = 1000
"""Directories that are listed of one directory."""

MOST_QUERY: Final = 100
"""Characters of a query that count."""

_SKIPPED: Final = frozenset({"node_modules", "__pycache__", "venv"})
"""Directories that are not looked into where git does not say what is ignored; nor are those that begin with a dot."""


class FileNames:
    """The names of files and directories: those of files below some directories are kept for a short time."""

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self._found: dict[str, tuple[float, asyncio.Task[Sequence[str]]]] = {}

    async def below(self, directory: str) -> Sequence[str]:
        """Return the names of the files below a directory, relative to it, and those of the directories in between with a slash at the end."""
        now = time.monotonic()
        self._found = {path: kept for path, kept in self._found.items() if now - kept[0] < FRESH or not kept[1].done()}
        if directory not in self._found:
            while len(self._found) >= KEPT:
                del self._found[next(iter(self._found))]
            self._found[directory] = now, background(self._listed(directory), self._hub.tasks)
        return await asyncio.shield(self._found[directory][1])

    @property
    def roots(self) -> Sequence[str]:
        """The directories in which sessions may be opened."""
        return [str(each) for each in self._hub.roots.folders]

    async def usable(self, directories: Sequence[str]) -> Sequence[str]:
        """Return those of some directories that are there, and inside of the roots."""
        return await asyncio.to_thread(lambda: [each for each in directories if self._is_usable(each)])

    def _is_usable(self, directory: str) -> bool:
        try:
            return self._hub.inside_roots(directory) == [directory] and os.path.isdir(directory)
        except RequestError:
            return False

    async def directories(self, path: str) -> Mapping[str, object]:
        """Return the directories in a directory. Without a path it is the root, or the roots by their paths if there are several.

        Raises:
            RequestError: it is outside of the roots, or cannot be read.
        """
        roots = self.roots
        if not path and len(roots) != 1:
            return {"path": "", "parent": None, "directories": roots}
        (real,) = self._hub.inside_roots(path or roots[0])
        above = "" if len(roots) > 1 else None
        parent = above if real in roots else os.path.dirname(real)
        found = await asyncio.to_thread(_directories, self._hub.roots, real)
        return {"path": real, "parent": parent, "directories": found}

    async def _listed(self, directory: str) -> Sequence[str]:
        repository = await asyncio.to_thread(self._repository, directory)
        if repository is not None:
            try:
                async with asyncio.timeout(GIT_TIMEOUT):
                    found = await _by_git(directory, repository)
                if found:  # else the repository above ignores all of this directory
                    return found
            except (GitFailed, OSError, TimeoutError):
                pass  # damaged, or too slow: the files are there all the same
        return await asyncio.to_thread(lambda: with_directories([*_walk(directory)]))

    def _repository(self, directory: str) -> Repository | None:
        """Return the repository of a directory, unless it is kept at a place that the gateway does not serve: its index has names, too."""
        try:
            found = repository_of(directory)
            if found is not None and found.directory != Path(found.top, ".git"):
                self._hub.roots.resolve(found.directory)
        except (FileProblem, OSError, ValueError):
            return None
        return found


async def _by_git(directory: str, repository: Repository) -> Sequence[str]:
    own = await asyncio.to_thread(new_folder)
    try:
        await in_thread(make_repository, own / "repository", repository)
        git = Git(own / "repository", repository.top, directory, await user_excludes(own))
        try:
            listed = await git.run("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
        except TooMuch as error:
            listed = error.output
    finally:
        await in_thread(shutil.rmtree, own, ignore_errors=True)
    return await asyncio.to_thread(lambda: with_directories(_names(listed)))


def _names(listed: bytes) -> list[str]:
    """Return names that can be written as text, from what git printed. What is not there any more is left to the person who sees it."""
    found = []
    for name in listed.split(b"\0")[:MOST_NAMES]:
        try:
            found.append(name.decode().rstrip("/"))
        except UnicodeDecodeError:
            continue
    return [name for name in found if name]


def _walk(directory: str) -> Iterator[str]:
    """Yield the files below a directory, those above first, without links, hidden directories and what packages brought."""
    waiting, seen = [""], 0
    for below in waiting:
        try:
            with os.scandir(os.path.join(directory, below)) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in listed:
            seen += 1
            if seen > MOST_NAMES:
                return
            name = os.path.join(below, entry.name)
            if not name.isprintable():
                continue
            if not entry.is_dir(follow_symlinks=False):
                yield name
            elif not entry.name.startswith(".") and entry.name not in _SKIPPED:
                waiting.append(name)


def with_directories(files: Sequence[str]) -> Sequence[str]:
    """Return the names of files with those of the directories that they are in."""
    directories: dict[str, None] = {}
    for name in files:
        while (name := name.rpartition("/")[0]) and name not in directories:
            directories[name] = None
    return [*files, *(f"{name}/" for name in directories)]


# Which of them fit.


def best(names: Sequence[str], query: str, limit: int) -> list[str]:
    """Return the names that fit a query best: its letters are in them in this order, better at one place, best at the start of the name."""
    wanted = query.lower()[:MOST_QUERY]
    if not wanted:
        return nsmallest(limit, names, key=lambda name: (name.rstrip("/").count("/"), name))
    letters = re.compile("".join(f"[^{re.escape(each)}]*+{re.escape(each)}" for each in wanted))
    ranked = [(rank, len(name), name) for name in names if (rank := _rank(name.lower(), wanted, letters)) is not None]
    return [name for _, _, name in nsmallest(limit, ranked)]


def _rank(name: str, wanted: str, letters: "re.Pattern[str]") -> int | None:
    last = name.rstrip("/").rpartition("/")[2]
    if last.startswith(wanted):
        return 0
    if wanted in last:
        return 1
    if wanted in name:
        return 2
    if letters.match(last):
        return 3
    return 4 if letters.match(name) else None


class _FilesParams(msgspec.Struct):
    query: str = ""
    limit: int = 50


async def list_files(client: "RemoteClient", session: "HubSession", params: "Raw") -> object:
    """Return files and directories of a session that fit what a person typed, relative to its directory."""
    given = msgspec.json.decode(params, type=_FilesParams)
    hub, cwd = session.hub, session.row.cwd
    (directory,) = hub.inside_roots(cwd)
    names = await hub.files.below(directory)
    roots = hub.roots.inside(Workspace(directory, ()))

    def shown() -> list[dict[str, object]]:
        limit = min(max(given.limit, 1), MOST)
        fitting = best(names, given.query, 2 * limit)  # some of them may not be served
        found = [name for name in fitting if _is_served(roots, directory, name)]
        return [{"path": name.rstrip("/"), "directory": name.endswith("/")} for name in found[:limit]]

    return {"files": await asyncio.to_thread(shown)}


def _is_served(roots: "GatewayRoots", directory: str, name: str) -> bool:
    """Whether the gateway serves a file at all: not one of its own, not a key, and none outside of its roots behind a link."""
    try:
        roots.resolve(os.path.join(directory, name))
    except FileProblem:
        return False
    return True


# Directories for a new session.


class _DirectoriesParams(msgspec.Struct):
    path: str = ""


async def list_directories(client: "GatewayConnection[Any]", params: "Raw") -> object:
    """Return the directories in a directory. Without a path it is the root, or the roots by their paths if there are several."""
    return await client.hub.files.directories(msgspec.json.decode(params, type=_DirectoriesParams).path)


def _directories(roots: "GatewayRoots", path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            names = [
                each.name
                for each in entries
                if each.name.isprintable() and not each.name.startswith(".") and each.is_dir()
            ]
    except OSError as error:
        raise RequestError(Code.INVALID_PARAMS, f"`{path}` cannot be read: {error.strerror}") from error
    return [name for name in sorted(names)[:MOST_DIRECTORIES] if _is_served(roots, path, name)]
