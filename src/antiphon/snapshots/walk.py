"""One look at a directory: what is there, and what git's own index knows of it. Reads no content of files, and changes nothing.

Nothing that is called `.git` is looked at, at any depth, and no link is followed. Another file system inside is left out.
"""

import os
import stat
import struct
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from antiphon.snapshots.entries import DIRECTORY, FILE, LINK, TreeEntry, WorkspaceTree
from antiphon.snapshots.git import Git, GitFailed, Repository, make_repository, repository_of, user_excludes

__all__ = [
    "ENTRIES_LIMIT",
    "FILE_LIMIT",
    "IGNORED_LIMIT",
    "IndexedFile",
    "TreeTooLarge",
    "TreeWalk",
    "as_indexed",
    "git_index",
    "ignored_directories",
    "is_git",
    "stamp_of",
]

ENTRIES_LIMIT: Final = 100_000
"""Files and directories that are looked at. More would take a second before each prompt; a home directory is such a tree, a project is not."""

IGNORED_LIMIT: Final = 2000
"""Files and directories in a directory that git ignores, above which it is left out: packages that were installed, output of a build."""

FILE_LIMIT: Final = 10 * 1024 * 1024
"""Bytes of a file whose content is kept. Larger ones are data; that they changed is still seen."""

WALK_TIME: Final = 10.0
"""Seconds for one walk. A file system over a slow network takes longer, and is not walked before each prompt."""

RACY: Final = 2_000_000_000
"""Nanoseconds. A file that was written so shortly before a look may be written again without another date: clocks of file systems are coarse,
that of FAT by two seconds. Its content is read again by the next look."""

BULKY: Final = frozenset({
    b"node_modules", b".venv", b"venv", b"__pycache__", b".tox", b".nox", b".mypy_cache", b".ruff_cache", b".pytest_cache", b"target",
    b"build", b"dist", b".gradle", b".next", b".cache", b"vendor", b"Pods", b"bower_components",
})  # fmt: skip
"""Names of directories that projects ignore. They count as ignored where there is no git to ask."""


class TreeTooLarge(Exception):
    """There is too much in a directory to look at it before each prompt; the text is the reason."""


def is_git(name: bytes) -> bool:
    """Whether a name is that of a repository. File systems that know no case find it by any spelling."""
    return name.lower() == b".git"


def stamp_of(facts: os.stat_result, now: int) -> tuple[int, int, int]:
    """What changes whenever a file does; zeros if that is not certain yet."""
    if max(facts.st_mtime_ns, facts.st_ctime_ns) > now - RACY:
        return (0, 0, 0)
    return (facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)


class TreeWalk:
    """Walks one directory. `ignored` are the directories that git ignores; None: it is not known which, and names decide."""

    def __init__(self, root: bytes, ignored: Collection[bytes] | None = None) -> None:
        self.tree = WorkspaceTree(root, {}, {})
        self.converts = False
        """Whether git may convert files here in a way that keeps their size, so that its objects do not have their bytes."""
        self._ignored = ignored
        self._deadline = time.monotonic() + WALK_TIME
        self._now = time.time_ns()
        self._device = os.lstat(root).st_dev

    def run(self, limit: int = ENTRIES_LIMIT) -> WorkspaceTree:
        """Walk it.

        Raises:
            TreeTooLarge: it holds more than `limit` entries, or the time is over.
            OSError: the directory itself cannot be read.
        """
        waiting = [b""]
        while waiting:
            folder = waiting.pop()
            try:
                for name, entry in self._scan(folder):
                    self.tree.entries[name] = entry
                    if entry.kind == DIRECTORY and name not in self.tree.uncovered:
                        if self._is_ignored(name):
                            self._take_ignored(name)
                        else:
                            waiting.append(name)
            except OSError as error:
                if not folder:
                    raise
                self.tree.uncovered[folder] = f"it cannot be read: {error.strerror}"
            if len(self.tree.entries) > limit:
                raise TreeTooLarge(f"there are more than {limit:,} files")
            if time.monotonic() > self._deadline:
                raise TreeTooLarge("looking at the files takes too long")
        return self.tree

    def _is_ignored(self, path: bytes) -> bool:
        if self._ignored is None:
            return path[path.rfind(b"/") + 1 :] in BULKY
        return path in self._ignored

    def _take_ignored(self, top: bytes) -> None:
        """Take an ignored directory if it is small: there may be settings in it. Else only that it is there."""
        found: dict[bytes, TreeEntry] = {}
        refused: dict[bytes, str] = {}
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            try:
                for name, entry in self._scan(folder, refused):
                    found[name] = entry
                    if entry.kind == DIRECTORY and name not in refused:
                        waiting.append(name)
            except OSError as error:
                refused[folder] = f"it cannot be read: {error.strerror}"
            if len(found) > IGNORED_LIMIT:
                self.tree.uncovered[top] = f"it is ignored, and holds more than {IGNORED_LIMIT:,} files"
                return
        self.tree.entries.update(found)
        self.tree.uncovered.update(refused)

    def _scan(self, folder: bytes, refused: dict[bytes, str] | None = None) -> Iterator[tuple[bytes, TreeEntry]]:
        """The entries of a directory. What cannot be kept is noted, and so is a name of git's that means conversions."""
        uncovered = self.tree.uncovered if refused is None else refused
        with os.scandir(os.path.join(self.tree.root, folder)) as entries:
            for each in entries:
                if is_git(each.name):
                    continue
                name = os.path.join(folder, each.name)
                try:
                    facts = each.stat(follow_symlinks=False)
                    entry = self._entry(each, facts)
                except FileNotFoundError:  # it comes and goes
                    continue
                except OSError as error:
                    uncovered[name] = f"it cannot be read: {error.strerror}"
                    continue
                if entry is None:
                    uncovered[name] = "it is neither a file nor a link nor a directory"
                    continue
                if entry.kind == DIRECTORY and facts.st_dev != self._device:
                    uncovered[name] = "it is another file system"
                if each.name == b".gitattributes":
                    self.converts = self.converts or _converts(Path(os.fsdecode(each.path)))
                yield name, entry

    def _entry(self, found: "os.DirEntry[bytes]", facts: os.stat_result) -> TreeEntry | None:
        mode = stat.S_IMODE(facts.st_mode)
        if stat.S_ISDIR(facts.st_mode):
            return TreeEntry(DIRECTORY, mode)
        if stat.S_ISLNK(facts.st_mode):
            return TreeEntry(LINK, mode, digest=os.readlink(found.path))
        if stat.S_ISREG(facts.st_mode):
            # The dates of a file that is not read are all that is known of it, certain or not.
            now = self._now if facts.st_size <= FILE_LIMIT else self._now + 10 * RACY
            return TreeEntry(FILE, mode, facts.st_size, stamp_of(facts, now))
        return None


def _converts(attributes: Path) -> bool:
    """Whether a file with attributes names a conversion that may keep the size of a file. Ends of lines change it, and that is seen."""
    try:
        text = attributes.read_bytes()
    except OSError:
        return True
    return b"filter" in text or b"working-tree-encoding" in text


async def ignored_directories(root: str, folder: Path) -> frozenset[bytes] | None:
    """The directories that git ignores in a tree, each alone if it stands in another; None: there is no repository, or no git.

    `folder` is removed and made anew; it becomes the repository with which git is run.
    """
    import shutil

    repository = repository_of(root)
    if repository is None:
        return None
    shutil.rmtree(folder, ignore_errors=True)
    try:
        make_repository(folder, repository)
        git = Git(folder, repository.top, root, await user_excludes(folder))
        if repository.top != root and await git.run("check-ignore", ".", fails=(1,)):
            return None
        listed = await git.run("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    except (GitFailed, OSError):
        return None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return frozenset(name[:-1] for name in listed.split(b"\0") if name.endswith(b"/"))


# git's index has, for each file that it knows, the id of its content and the dates at which the file had it. So such a file need not be read.


class IndexedFile(NamedTuple):
    """A file as git's index knows it."""

    digest: bytes
    size: int
    stamp: tuple[int, int, int]
    """As in an entry, with as much of the inode as the index has."""


_FIXED: Final = struct.Struct(">10I")
_INODE: Final = 0xFFFFFFFF


def git_index(repository: Repository, root: str) -> dict[bytes, IndexedFile]:
    """The files of a tree that git's index knows, as far as their dates can be trusted. Empty where the index has a shape unknown here."""
    inside = os.path.relpath(root, repository.top)
    prefix = b"" if inside == "." else os.fsencode(inside) + b"/"
    if any(_converts(each) for each in _attributes(repository) if each.exists()):
        return {}
    path = repository.directory / "index"
    try:
        written = path.stat().st_mtime_ns
        found = _parsed(path.read_bytes(), _digest_size(repository))
    except (OSError, ValueError, struct.error, IndexError):
        return {}
    return {name[len(prefix) :]: file for name, file in found if name.startswith(prefix) and file.stamp[0] < written}


def _attributes(repository: Repository) -> list[Path]:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return [repository.common / "info" / "attributes", Path(base, "git", "attributes"), Path("/etc/gitattributes")]


def _digest_size(repository: Repository) -> int:
    config = (repository.common / "config").read_bytes().lower()
    return 32 if b"sha256" in config else 20


def _parsed(data: bytes, digest_size: int) -> Iterator[tuple[bytes, IndexedFile]]:
    """The regular files of an index of version 2, 3 or 4 that are not in a conflict."""
    signature, version, count = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("not an index that is known here")
    place, name = 12, b""
    for _ in range(count):
        ctime, ctime_ns, mtime, mtime_ns, _, inode, mode, _, _, size = _FIXED.unpack_from(data, place)
        after = place + _FIXED.size + digest_size
        digest = data[after - digest_size : after]
        (flags,) = struct.unpack_from(">H", data, after)
        after += 4 if version > 2 and flags & 0x4000 else 2
        if version == 4:
            cut, after = _number(data, after)
            end = data.index(b"\0", after)
            name = name[: len(name) - cut] + data[after:end]
            place = end + 1
        else:
            end = data.index(b"\0", after)
            name = data[after:end]
            place += (end - place + 8) & ~7
        if stat.S_ISREG(mode) and not flags & 0x3000:
            stamp = (mtime * 10**9 + mtime_ns, ctime * 10**9 + ctime_ns, inode)
            yield name, IndexedFile(digest, size, stamp)


def _number(data: bytes, place: int) -> tuple[int, int]:
    """A number of variable length, and the place behind it."""
    byte = data[place]
    value = byte & 0x7F
    while byte & 0x80:
        place += 1
        byte = data[place]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, place + 1


def as_indexed(entry: TreeEntry, known: IndexedFile | None) -> bool:
    """Whether a file is as git's index knows it, so that git has its content."""
    if known is None or not any(entry.stamp):
        return False
    written, changed, inode = entry.stamp
    return known.size == entry.size & _INODE and known.stamp == (written, changed, inode & _INODE)
