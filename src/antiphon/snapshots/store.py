"""Snapshots on the disk, with the bytes of files, within limits. One store for the directories of a workspace.

A store is a directory that only this user can read:

    lock            held while something is written
    packs/N         contents of files, one behind the other, that snapshot N was the first to see
    N.snapshot      what stood in the directories
    points.jsonl    the prompts that snapshots were taken for

What did not change since the snapshot before is not read again, and what git has among its objects is not copied.
"""

import asyncio
import fcntl
import hashlib
import os
import shutil
import stat
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import EAGAIN
from pathlib import Path
from typing import IO, Final, NamedTuple

import msgspec

from antiphon.config.directories import make_private_directory, state_dir
from antiphon.snapshots.entries import DIRECTORY, FILE, TreeEntry, WorkspaceTree, contents_of
from antiphon.snapshots.git import Git, GitFailed, make_repository, repository_of
from antiphon.snapshots.walk import (
    ENTRIES_LIMIT,
    FILE_LIMIT,
    IGNORED_LIMIT,
    IndexedFile,
    TreeTooLarge,
    TreeWalk,
    as_indexed,
    git_index,
    ignored_directories,
    stamp_of,
)

__all__ = [
    "AGE_LIMIT",
    "ALL_STORES_LIMIT",
    "LOOK_TIME",
    "SNAPSHOTS_LIMIT",
    "STORE_LIMIT",
    "SnapshotStore",
    "UndoPoint",
    "WorkspaceSnapshot",
    "blob_id",
    "store_directory",
    "sweep_stores",
    "write_file",
]

STORE_LIMIT: Final = 256 * 1024 * 1024
"""Bytes of contents in one store. What does not fit is named as not covered."""

ALL_STORES_LIMIT: Final = 2 * 1024 * 1024 * 1024
"""Bytes of all stores of the user: the workspaces that were used longest ago go first."""

SNAPSHOTS_LIMIT: Final = 100
"""Snapshots of one store: two for each prompt, so fifty prompts."""

AGE_LIMIT: Final = 7 * 24 * 60 * 60.0
"""Seconds that a snapshot is kept."""

LOOK_TIME: Final = 3.0
"""Seconds that a look before a prompt may take. What was not read until then is named as not covered, and read by the next look."""

FEW: Final = 50
"""Files that are read sooner than the index of git."""

LOCK_TIME: Final = 5.0
"""Seconds to wait for another process that looks at the same directories. One that was stopped in the middle would hold the lock for ever."""

LOCK_PAUSE: Final = 0.02
"""Seconds between two tries."""

GIT_CHUNK: Final = 32 * 1024 * 1024
"""Bytes that git is asked for at once."""


class WorkspaceSnapshot(msgspec.Struct, array_like=True):
    """How the directories of a workspace looked."""

    number: int
    at: float
    trees: list[WorkspaceTree]


class UndoPoint(msgspec.Struct):
    """A prompt, and the snapshots from before and after its turn; 0: there is none."""

    session: str
    prompt: str
    at: float
    before: int = 0
    after: int = 0
    sent: str = ""
    """The text as the agent got it."""
    changed: list[str] = []
    """Files that the turn changed: the first of them."""
    changed_count: int = 0


class _Head(msgspec.Struct, array_like=True):
    """The beginning of a file with a snapshot."""

    at: float
    packs: list[int]


def store_directory(roots: Sequence[str]) -> Path:
    """The directory of the store for these directories."""
    name = hashlib.sha256(b"\0".join(os.fsencode(root) for root in roots)).hexdigest()[:24]
    return state_dir() / "undo" / name


def sweep_stores() -> None:
    """Remove stores that were not used for long, and the oldest ones while all of them are too large. Call it in a thread."""
    found: list[tuple[float, Path, int]] = []
    with suppress(OSError):
        for directory in (state_dir() / "undo").iterdir():
            with suppress(OSError):
                found.append((directory.stat().st_mtime, directory, _size(directory / "packs")))
    total = sum(size for _, _, size in found)
    for used, directory, size in sorted(found):
        if time.time() - used > AGE_LIMIT or total > ALL_STORES_LIMIT:
            with suppress(OSError), _locked(directory, wait=False):
                shutil.rmtree(directory, ignore_errors=True)
                total -= size


class SnapshotStore:
    """The snapshots of some directories. Looks are taken one after the other."""

    def __init__(self, roots: Sequence[str], directory: Path | None = None) -> None:
        self.roots = tuple(roots)
        self.directory = store_directory(roots) if directory is None else directory
        self.last: WorkspaceSnapshot | None = None
        """The last snapshot that was taken here; None: none was."""
        self._lock = asyncio.Lock()
        self._deadline = float("inf")
        self._checked: set[bytes] = set()
        """Contents that git has just as the files have them."""
        self._ignored: dict[str, _Ignored] = {}

    # Looking.

    async def take(self, seconds: float = LOOK_TIME) -> WorkspaceSnapshot:
        """Take a snapshot, or return the last one if nothing changed since. A look that runs already has to end in time, too.

        Raises:
            TreeTooLarge: there are too many files.
            OSError: the directories cannot be read, or the store cannot be written.
        """
        self._deadline = min(self._deadline, time.monotonic() + seconds)
        async with self._lock:
            self._deadline = time.monotonic() + seconds
            try:
                return await self._take()
            finally:
                self._deadline = float("inf")

    async def _take(self) -> WorkspaceSnapshot:
        await asyncio.to_thread(make_private_directory, self.directory / "packs")
        lock = await asyncio.to_thread(_Lock, self.directory)
        try:
            if self.last is None:
                self.last = await asyncio.to_thread(self._newest)
            walks = [await self._walk(root) for root in self.roots]
            known = {} if self.last is None else {tree.root: tree for tree in self.last.trees}
            packs = await asyncio.to_thread(self._packs)
            number = max([*self.numbers(), *packs], default=0) + 1
            pack = _Pack(self.directory / "packs" / str(number), number, STORE_LIMIT - sum(packs.values()))
            try:
                for walk in walks:
                    tree, before = walk.tree, known.get(walk.tree.root, WorkspaceTree(walk.tree.root))
                    indexed = {} if walk.converts else await self._indexed(tree, before)
                    reader = _Reader(tree, before, indexed, pack, {0, *packs}, lambda: self._deadline)
                    await asyncio.to_thread(reader.run)
            finally:
                pack.close()
            trees = [walk.tree for walk in walks]
            if self.last is not None and self.last.number in self.numbers() and _equal(trees, self.last.trees):
                self.last.trees = trees  # the same, with newer dates
                return self.last
            taken = WorkspaceSnapshot(number, time.time(), trees)
            await asyncio.to_thread(self._write, taken)
            await asyncio.to_thread(self._prune)
            self.last = taken
            return taken
        finally:
            lock.release()

    async def _walk(self, root: str) -> TreeWalk:
        """Walk a directory. Which of its directories git ignores matters only if there are many files.

        To ask git takes longer than to walk, so it is asked again only if there are other directories, or other rules.
        """
        limit, ignored = IGNORED_LIMIT, frozenset[bytes]()
        asked = self._ignored.get(root)
        if asked is not None:
            limit, ignored = ENTRIES_LIMIT, asked.ignored
        walk = TreeWalk(os.fsencode(root), ignored)
        try:
            await asyncio.to_thread(walk.run, limit)
            if asked is None or asked.depends_on == _rules(walk.tree):
                return walk
        except TreeTooLarge:
            pass
        found = await ignored_directories(root, self.directory / "git")
        walk = TreeWalk(os.fsencode(root), found)
        await asyncio.to_thread(walk.run, ENTRIES_LIMIT)
        if found is not None:
            self._ignored[root] = _Ignored(found, _rules(walk.tree))
        return walk

    async def _indexed(self, tree: WorkspaceTree, before: WorkspaceTree) -> dict[bytes, IndexedFile]:
        """The files whose content git has, byte by byte: one whose ends of lines it converts has another size there."""
        root = os.fsdecode(tree.root)
        unread = sum(
            entry.kind == FILE and not _unchanged(before.entries.get(path), entry)
            for path, entry in tree.entries.items()
        )
        repository = await asyncio.to_thread(repository_of, root) if unread > FEW else None
        if repository is None:
            return {}
        index = await asyncio.to_thread(git_index, repository, root)
        found = {
            path: known
            for path, known in index.items()
            if (entry := tree.entries.get(path)) is not None
            and entry.kind == FILE
            and as_indexed(entry, known)
            and not _unchanged(before.entries.get(path), entry)
        }
        unchecked = {known.digest: known.size for known in found.values() if known.digest not in self._checked}
        if unchecked:
            self._checked |= await self._of_size(root, unchecked)
        return {path: known for path, known in found.items() if known.digest in self._checked}

    async def _of_size(self, root: str, sizes: dict[bytes, int]) -> set[bytes]:
        try:
            async with asyncio.timeout(max(self._deadline - time.monotonic(), 0)):
                listed = await self._git(root, "cat-file", "--batch-check", lines=sizes)
        except (GitFailed, OSError, TimeoutError):
            return set()
        right: set[bytes] = set()
        for line in listed.splitlines():
            id, _, rest = line.partition(b" ")
            if rest.startswith(b"blob ") and sizes.get(bytes.fromhex(id.decode())) == int(rest[5:]):
                right.add(bytes.fromhex(id.decode()))
        return right

    async def _git(self, root: str, *words: str, lines: Iterable[bytes], limit: int = 16 * 1024 * 1024) -> bytes:
        folder = self.directory / "git"
        repository = repository_of(root)
        if repository is None:
            raise GitFailed("there is no repository")
        shutil.rmtree(folder, ignore_errors=True)
        make_repository(folder, repository)
        try:
            stdin = b"".join(id.hex().encode() + b"\n" for id in lines)
            return await Git(folder, repository.top, root, "/dev/null").run(*words, stdin=stdin, limit=limit)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    # Reading.

    def numbers(self) -> list[int]:
        """The snapshots that are kept, the oldest first."""
        names = [path.stem for path in self.directory.glob("*.snapshot")]
        return sorted(int(name) for name in names if name.isdigit())

    def load(self, number: int) -> WorkspaceSnapshot | None:
        """A snapshot; None if it is not kept any more. Call it in a thread."""
        if self.last is not None and self.last.number == number:
            return self.last
        try:
            data = (self.directory / f"{number}.snapshot").read_bytes()
            size = int.from_bytes(data[:4])
            return msgspec.msgpack.decode(zlib.decompress(data[4 + size :]), type=WorkspaceSnapshot)
        except (OSError, zlib.error, msgspec.DecodeError):
            return None

    async def contents(self, root: bytes, entries: Iterable[TreeEntry]) -> dict[bytes, bytes]:
        """The contents of files, id → bytes. What is not there any more is left out."""
        wanted = {entry.digest: entry for entry in entries if entry.kind == FILE and entry.digest}
        found = await asyncio.to_thread(self._packed, [entry for entry in wanted.values() if entry.pack])
        chunk: list[TreeEntry] = []
        for entry in [entry for entry in wanted.values() if not entry.pack] + [None]:
            if chunk and (entry is None or sum(each.size for each in chunk) + entry.size > GIT_CHUNK):
                found |= await self._borrowed(os.fsdecode(root), chunk)
                chunk = []
            if entry is not None:
                chunk.append(entry)
        return {id: data for id, data in found.items() if blob_id(data, len(id)) == id}

    def _packed(self, entries: Iterable[TreeEntry]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for entry in entries:
            with suppress(OSError), (self.directory / "packs" / str(entry.pack)).open("rb") as file:
                file.seek(entry.offset)
                found[entry.digest] = file.read(entry.size)
        return found

    async def _borrowed(self, root: str, entries: Sequence[TreeEntry]) -> dict[bytes, bytes]:
        limit = sum(each.size + 200 for each in entries)
        try:
            data = await self._git(root, "cat-file", "--batch", lines=[each.digest for each in entries], limit=limit)
        except (GitFailed, OSError):
            return {}
        found: dict[bytes, bytes] = {}
        place = 0
        while (end := data.find(b"\n", place)) >= 0:
            words = data[place:end].split()
            place = end + 1
            if len(words) == 3 and words[1] == b"blob":
                found[bytes.fromhex(words[0].decode())] = data[place : place + int(words[2])]
                place += int(words[2]) + 1
        return found

    # The prompts that snapshots were taken for.

    def points(self, session: str) -> list[UndoPoint]:
        """The prompts of a session, the oldest first."""
        return [point for point in self._points() if point.session == session]

    def add_points(self, points: Iterable[UndoPoint]) -> None:
        """Add prompts. One that is there already, of the same session and time, is replaced."""
        make_private_directory(self.directory)
        with _locked(self.directory):
            kept = {(point.session, point.at): point for point in [*self._points(), *points]}
            numbers = self.numbers()
            oldest = numbers[0] if numbers else 0
            lines = [
                msgspec.json.encode(point) for point in kept.values() if point.before >= oldest or not point.before
            ]
            write_file(
                self.directory / "points.jsonl", b"".join(line + b"\n" for line in lines[-10 * SNAPSHOTS_LIMIT :])
            )

    def _points(self) -> Iterator[UndoPoint]:
        try:
            lines = (self.directory / "points.jsonl").read_bytes().splitlines()
        except OSError:
            return
        for line in lines:
            with suppress(msgspec.DecodeError):
                yield msgspec.json.decode(line, type=UndoPoint)

    # Writing.

    def _newest(self) -> WorkspaceSnapshot | None:
        numbers = self.numbers()
        return self.load(numbers[-1]) if numbers else None

    def _packs(self) -> dict[int, int]:
        with os.scandir(self.directory / "packs") as found:
            return {int(each.name): each.stat().st_size for each in found if each.name.isdigit()}

    def _write(self, taken: WorkspaceSnapshot) -> None:
        packs = {entry.pack for tree in taken.trees for entry in tree.entries.values()}
        head = msgspec.msgpack.encode(_Head(taken.at, sorted(packs)))
        body = zlib.compress(msgspec.msgpack.encode(taken), 1)
        write_file(self.directory / f"{taken.number}.snapshot", len(head).to_bytes(4) + head + body)
        os.utime(self.directory)

    def _prune(self) -> None:
        """Remove what is too old or too much, and the contents that no snapshot needs any more."""
        numbers = self.numbers()
        heads = {number: self._head(number) for number in numbers}
        too_old = time.time() - AGE_LIMIT
        gone = {number for number in numbers if (head := heads[number]) is None or head.at < too_old}
        gone |= set(numbers[:-SNAPSHOTS_LIMIT])
        packs = self._packs()
        left = [number for number in numbers if number not in gone]
        while len(left) > 1:
            needed = {pack for number in left if (head := heads[number]) for pack in head.packs}
            if sum(size for pack, size in packs.items() if pack in needed) <= STORE_LIMIT // 2 or len(left) <= 20:
                break
            gone.add(left.pop(0))
        needed = {pack for number in left if (head := heads[number]) for pack in head.packs}
        for number in gone:
            (self.directory / f"{number}.snapshot").unlink(missing_ok=True)
        for pack in packs:
            if pack not in needed:
                (self.directory / "packs" / str(pack)).unlink(missing_ok=True)

    def _head(self, number: int) -> _Head | None:
        try:
            with (self.directory / f"{number}.snapshot").open("rb") as file:
                return msgspec.msgpack.decode(file.read(int.from_bytes(file.read(4))), type=_Head)
        except (OSError, msgspec.DecodeError):
            return None


class _Ignored(NamedTuple):
    """The directories that git ignores, and what that depends on."""

    ignored: frozenset[bytes]
    depends_on: frozenset[tuple[bytes, TreeEntry]]


def _rules(tree: WorkspaceTree) -> frozenset[tuple[bytes, TreeEntry]]:
    """The directories of a tree, and its files with rules for git."""
    return frozenset(
        (path, entry) for path, entry in tree.entries.items() if entry.kind == DIRECTORY or path.endswith(b".gitignore")
    )


def blob_id(data: bytes, size: int) -> bytes:
    """The id that git would give to a content, by the hash whose ids have this size."""
    hashed = hashlib.sha256() if size == 32 else hashlib.sha1(usedforsecurity=False)
    hashed.update(b"blob %d\0" % len(data))
    hashed.update(data)
    return hashed.digest()


class _Pack:
    """A file of contents that is written when there is one."""

    def __init__(self, path: Path, number: int, space: int) -> None:
        self.number = number
        self.space = space
        self._path = path
        self._file: IO[bytes] | None = None
        self._offset = 0

    def add(self, data: bytes) -> int:
        """Append a content, and return where it begins."""
        if self._file is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            self._file = os.fdopen(os.open(self._path, flags, 0o600), "wb")
        place = self._offset
        self._file.write(data)
        self._offset += len(data)
        self.space -= len(data)
        return place

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class _Reader:
    """Reads the files of one tree that are new or changed, the small ones first, and keeps their contents."""

    def __init__(
        self,
        tree: WorkspaceTree,
        before: WorkspaceTree,
        indexed: dict[bytes, IndexedFile],
        pack: _Pack,
        packs: set[int],
        deadline: Callable[[], float],
    ) -> None:
        self._tree = tree
        self._before = before
        self._indexed = indexed
        self._pack = pack
        self._packs = packs
        self._deadline = deadline
        self._now = time.time_ns()

    def run(self) -> None:
        entries, before = self._tree.entries, self._before.entries
        kept = {id: entry for id, entry in contents_of(before).items() if entry.pack in self._packs}
        unread: list[tuple[int, bytes]] = []
        for path, entry in entries.items():
            if entry.kind != FILE:
                continue
            known = before.get(path)
            if known is not None and _unchanged(known, entry) and known.pack in self._packs:
                entries[path] = known if known.mode == entry.mode else msgspec.structs.replace(known, mode=entry.mode)
            elif (indexed := self._indexed.get(path)) is not None:
                entries[path] = msgspec.structs.replace(entry, digest=indexed.digest)
            else:
                unread.append((entry.size, path))
        size = next((len(each.digest) for each in self._indexed.values()), 20)
        for _, path in sorted(unread):
            self._read(path, kept, size)

    def _read(self, path: bytes, kept: dict[bytes, TreeEntry], digest_size: int) -> None:
        entries, uncovered = self._tree.entries, self._tree.uncovered
        entry = entries[path]
        if entry.size > FILE_LIMIT:
            uncovered[path] = f"it is larger than {FILE_LIMIT // 1024**2} MB"
            return
        if time.monotonic() > self._deadline():
            uncovered[path] = "there was no time to read it"
            return
        try:
            data, facts = _content(os.path.join(self._tree.root, path))
        except FileNotFoundError:
            del entries[path]
            return
        except OSError as error:
            uncovered[path] = f"it cannot be read: {error.strerror}"
            return
        stamp = stamp_of(facts, self._now)
        entry = TreeEntry(FILE, stat.S_IMODE(facts.st_mode), len(data), stamp, blob_id(data, digest_size))
        known = kept.get(entry.digest)
        if known is not None:
            entry = msgspec.structs.replace(entry, pack=known.pack, offset=known.offset)
        elif len(data) > self._pack.space:
            uncovered[path] = f"there are more than {STORE_LIMIT // 1024**2} MB to keep"
            entry = msgspec.structs.replace(entry, digest=b"")
        else:
            entry = msgspec.structs.replace(entry, pack=self._pack.number, offset=self._pack.add(data))
            kept[entry.digest] = entry
        entries[path] = entry


def _content(path: bytes) -> tuple[bytes, os.stat_result]:
    """A file's content, and its status from before it was read. A link in its place is not followed, a pipe not waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        data = file.read(FILE_LIMIT + 1) if stat.S_ISREG(facts.st_mode) else b""
        if not stat.S_ISREG(facts.st_mode) or len(data) > FILE_LIMIT:
            raise OSError(EAGAIN, "it is changing")
        return data, facts


def _unchanged(known: TreeEntry | None, entry: TreeEntry) -> bool:
    """Whether a file is as the snapshot before saw it, with its content."""
    if known is None or not known.digest or known.kind != FILE:
        return False
    return known.size == entry.size and known.stamp == entry.stamp and any(entry.stamp)


def _equal(trees: Sequence[WorkspaceTree], others: Sequence[WorkspaceTree]) -> bool:
    """Whether two looks saw the same, and kept the same contents; dates do not count."""
    if [tree.root for tree in trees] != [tree.root for tree in others]:
        return False
    for tree, other in zip(trees, others, strict=True):
        if tree.uncovered != other.uncovered or tree.entries.keys() != other.entries.keys():
            return False
        for path, entry in tree.entries.items():
            before = other.entries[path]
            if entry is not before and (
                (entry.kind, entry.mode, entry.size, entry.digest)
                != (before.kind, before.mode, before.size, before.digest)
                or (entry.pack != before.pack)
                or (not entry.digest and entry.stamp != before.stamp)
            ):
                return False
    return True


def write_file(path: Path, data: bytes) -> None:
    """Write a file for the user alone, whole or not at all."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


class _Lock:
    """The lock of a store, held until it is released or the process ends."""

    def __init__(self, directory: Path, *, wait: bool = True) -> None:
        self._descriptor = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        end = time.monotonic() + (LOCK_TIME if wait else 0.0)
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError as error:
                if time.monotonic() > end:
                    os.close(self._descriptor)
                    raise OSError(EAGAIN, "another program is looking at these directories") from error
                time.sleep(LOCK_PAUSE)

    def release(self) -> None:
        os.close(self._descriptor)


@contextmanager
def _locked(directory: Path, *, wait: bool = True) -> Iterator[None]:
    lock = _Lock(directory, wait=wait)
    try:
        yield
    finally:
        lock.release()


def _size(directory: Path) -> int:
    with suppress(OSError), os.scandir(directory) as found:
        return sum(each.stat().st_size for each in found)
    return 0
