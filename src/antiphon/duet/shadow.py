"""A second repository over a tree, in a temporary directory: it remembers how the tree looked, and tells what became of it.

The tree's own repository, if it has one, is only read: its index is copied, so that git need not read files that did not change, and its
objects are borrowed. What the tree ignores is ignored.
"""

import asyncio
import os
import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple, ParamSpec

from antiphon.duet.git import Git, GitFailed, TooMuch

__all__ = ["FILE_LIMIT", "Repository", "TreeSnapshot", "in_thread", "repository_of"]

P = ParamSpec("P")

FILE_LIMIT: Final = 2 * 1024 * 1024
"""Bytes of a file that is looked into. Larger ones are seldom written by hand; that they changed is told."""

TRIES: Final = 3
"""How often we look at a directory in which files come and go."""

TOTAL_LIMIT: Final = 256 * 1024 * 1024
"""Bytes that are read of a tree of which nothing is known yet."""

_SHA256: Final = re.compile(rb"^\s*objectformat\s*=\s*sha256\s*$", re.IGNORECASE | re.MULTILINE)


class Repository(NamedTuple):
    """Where a tree's own repository is."""

    top: str
    directory: Path
    """Of this work tree: its index is here."""
    common: Path
    """Of all its work trees: the objects are here."""


class SeenTree(NamedTuple):
    """How the tree looks: what is new since the look before was put into the index."""

    nested: list[str]
    """Repositories inside, which are trees of their own."""
    large: dict[str, tuple[int, int]]
    """Files that were not looked into, with their size and date."""


async def in_thread(work: "Callable[P, None]", *args: P.args, **named: P.kwargs) -> None:
    """Work on our own files, which may be large, beside the event loop. Whoever is called off waits for its end: the files are removed next."""
    working = asyncio.ensure_future(asyncio.to_thread(work, *args, **named))
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        if not working.cancelled():
            working.exception()  # no news: nobody wants it any more
        raise


def repository_of(root: str) -> Repository | None:
    """The repository that a directory is in. Found without running anything."""
    for top in (Path(root), *Path(root).parents):
        found = top / ".git"
        if found.is_file():
            pointer = found.read_text(encoding="utf-8", errors="surrogateescape").strip()
            if not pointer.startswith("gitdir:"):
                return None
            found = top / pointer.removeprefix("gitdir:").strip()
        if (found / "HEAD").exists():
            common = found / "commondir"
            shared = found / common.read_text(encoding="utf-8").strip() if common.is_file() else found
            return Repository(str(top), found, shared)
    return None


class TreeSnapshot:
    """How one tree looked."""

    def __init__(self, directory: Path, root: str, name: str, excludes: str) -> None:
        self.root = root
        self.name = name
        """What stands before its paths."""
        self._directory = directory
        self._excludes = excludes
        self._tree = ""
        self._large: dict[str, tuple[int, int]] = {}

    async def begin(self) -> list[str]:
        """Remember how it looks now: the repositories inside, which are not a part of it."""
        repository = await asyncio.to_thread(repository_of, self.root)
        try:
            seen = await self._begin(repository)
        except GitFailed:
            if repository is None:
                raise
            # It is damaged, or in a shape that we do not know: the files are there all the same.
            await in_thread(shutil.rmtree, self._directory)
            seen = await self._begin(None)
        self._large = seen.large
        self._tree = (await self._git.run("write-tree", "--missing-ok")).decode().strip()
        return seen.nested

    async def _begin(self, repository: Repository | None) -> SeenTree:
        await in_thread(_make, self._directory, repository)
        top = self.root if repository is None else repository.top
        self._git = Git(self._directory, top, self.root, self._excludes)
        if top != self.root and await self._git.run("check-ignore", ".", fails=(1,)):
            raise GitFailed(f"{top} ignores {self.root}")
        return await self._look()

    async def changes(self, limit: int) -> tuple[bytes, list[str], list[str]]:
        """The difference to how it looks now, the files in it, and those that changed and are too large for it."""
        seen = await self._look()
        large = [name for name, facts in seen.large.items() if self._large.get(name) != facts]
        compare = (
            "diff-index",
            "--cached",
            "-M",
            "--relative",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--submodule=short",
        )
        names = await self._git.run(*compare, "--name-only", "-z", self._tree)
        files = [_text(name) for name in names.split(b"\0") if name]
        if not files:
            return b"", [], large
        prefixes = (f"--src-prefix=a/{self.name}", f"--dst-prefix=b/{self.name}")
        return await self._git.run(*compare, "--patch", *prefixes, self._tree, limit=limit), files, large

    async def _look(self) -> SeenTree:
        """Take in how it looks. Files that come and go meanwhile (a build, the journal of a database) make git stumble: it looks again."""
        for left in reversed(range(TRIES)):
            try:
                return await self._look_once()
            except TooMuch:
                raise
            except GitFailed:
                if not left:
                    raise
        raise AssertionError("the last try returns or raises")

    async def _look_once(self) -> SeenTree:
        listed = await self._git.run("ls-files", "-z", "--others", "--modified", "--deleted", "--exclude-standard")
        staged = await self._git.run("ls-files", "-z", "--stage")
        found = await asyncio.to_thread(_sorted, os.fsencode(self.root), listed, staged)
        if found.total > TOTAL_LIMIT:
            raise GitFailed(f"{self.root} holds more than {TOTAL_LIMIT // 1024**2} MB that git does not know")
        await self._take(found.gone, found.here)
        return SeenTree(found.nested, found.large)

    async def _take(self, gone: list[bytes], here: list[bytes]) -> None:
        if gone:
            await self._git.run("update-index", "-z", "--force-remove", "--stdin", said=b"\0".join(gone) + b"\0")
        if here:
            # As if all were big: then all of them go into one file, and not each into one of its own.
            together = ("-c", "core.bigFileThreshold=1")
            said = b"\0".join(here) + b"\0"
            await self._git.run(*together, "update-index", "-z", "--add", "--remove", "--replace", "--stdin", said=said)


def _make(directory: Path, repository: Repository | None) -> None:
    (directory / "objects" / "info").mkdir(parents=True)
    (directory / "refs").mkdir()
    (directory / "info").mkdir()
    (directory / "HEAD").write_text("ref: refs/heads/antiphon\n", encoding="utf-8")
    config = "[core]\n\trepositoryformatversion = 1\n"
    if repository is not None:
        if (kept := repository.common / "config").is_file() and _SHA256.search(kept.read_bytes()):
            config += "[extensions]\n\tobjectformat = sha256\n"
        borrowed = os.path.abspath(repository.common / "objects")
        (directory / "objects" / "info" / "alternates").write_bytes(os.fsencode(borrowed) + b"\n")
        for kept in (repository.directory / "index", *repository.directory.glob("sharedindex.*")):
            if kept.is_file():
                shutil.copy2(kept, directory / kept.name)  # with its date: git compares it with the files'
        if (kept := repository.common / "info" / "exclude").is_file():
            shutil.copyfile(kept, directory / "info" / "exclude")
    (directory / "config").write_text(config, encoding="utf-8")


class _Sorted(NamedTuple):
    gone: list[bytes]
    here: list[bytes]
    nested: list[str]
    large: dict[str, tuple[int, int]]
    total: int


def _sorted(root: bytes, listed: bytes, staged: bytes) -> _Sorted:
    """What is to be done with the files that differ from the index, or are not in it."""
    links = [line.partition(b"\t")[2] for line in staged.split(b"\0") if line.startswith(b"160000 ")]
    modules = [name for name in dict.fromkeys(links) if os.path.exists(os.path.join(root, name, b".git"))]
    found = _Sorted([], [], [os.fsdecode(name) for name in modules], {}, 0)
    linked, total = _links_in(root), 0
    for name in dict.fromkeys(each for each in listed.split(b"\0") if each):
        if name.endswith(b"/"):
            found.nested.append(os.fsdecode(name.rstrip(b"/")))
            continue
        facts = None if linked(os.path.dirname(name)) else _facts(os.path.join(root, name))
        if facts is None:
            found.gone.append(name)
        elif facts[0] > FILE_LIMIT:
            found.large[_text(name)] = facts
        elif facts[0] >= 0:
            found.here.append(name)
            total += facts[0]
    return found._replace(total=total)


def _facts(path: bytes) -> tuple[int, int] | None:
    """Size and date of a file; none if it is gone; a size below zero if it is nothing to look into."""
    try:
        facts = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return -1, 0
    if os.path.isdir(path) and not os.path.islink(path):
        return (-1, 0) if os.path.exists(os.path.join(path, b".git")) else None
    if not os.path.islink(path) and not os.access(path, os.R_OK):
        return -1, 0
    return facts.st_size, facts.st_mtime_ns


def _links_in(root: bytes) -> Callable[[bytes], bool]:
    """Tells whether a folder in a tree is reached by a link, behind which git does not look. Each is looked at once."""

    @cache
    def linked(folder: bytes) -> bool:
        return folder != b"" and (linked(os.path.dirname(folder)) or os.path.islink(os.path.join(root, folder)))

    return linked


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")
