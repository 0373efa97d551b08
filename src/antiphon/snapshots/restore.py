"""A plan carried out: each file at once or not at all, and what an interruption leaves.

1. No link is followed: each directory on the way to a path is opened by itself, below the one before.
2. Nothing called `.git` is touched.
3. A path that is not any more as the plan saw it is left alone, and named.
4. Before the first change the plan is written down. If it is still there at the next start, it was interrupted, and can be finished or
   taken back: every step can be done again.
"""

import asyncio
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from errno import ENOTEMPTY
from pathlib import Path
from typing import Final

import msgspec

from antiphon.snapshots.entries import DIRECTORY, FILE, LINK, TreeEntry
from antiphon.snapshots.plan import RestorePlan, RestoreStep
from antiphon.snapshots.store import SnapshotStore, blob_id, write_file
from antiphon.snapshots.walk import is_git

__all__ = ["Interrupted", "Restored", "forget_interrupted", "interrupted", "restore"]

BATCH: Final = 32 * 1024 * 1024
"""Bytes of contents that are in memory at once."""

PART: Final = b".antiphon-undo-"
"""The beginning of the name of a file that is being written."""

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Restored(msgspec.Struct):
    """What was done."""

    done: list[RestoreStep] = []
    failed: dict[bytes, str] = {}
    """What was left as it is → why."""


class Interrupted(msgspec.Struct):
    """Plans that were not carried out to their end."""

    plans: list[RestorePlan]


def _journal(store: SnapshotStore) -> Path:
    return store.directory / "restore.msgpack"


def interrupted(store: SnapshotStore) -> Interrupted | None:
    """The plans whose execution was interrupted; None: there are none. Call it in a thread."""
    try:
        return msgspec.msgpack.decode(_journal(store).read_bytes(), type=Interrupted)
    except (OSError, msgspec.DecodeError):
        return None


def forget_interrupted(store: SnapshotStore) -> None:
    """Leave the files as the interruption left them."""
    _journal(store).unlink(missing_ok=True)


async def restore(store: SnapshotStore, plans: Sequence[RestorePlan], *, again: bool = False) -> list[Restored]:
    """Carry out plans, one for each directory. `again`: a part of them may be done already, so what is there now is not compared.

    Raises:
        OSError: the plans cannot be written down; nothing was changed.
    """
    await asyncio.to_thread(write_file, _journal(store), msgspec.msgpack.encode(Interrupted(list(plans))))
    results: list[Restored] = []
    for plan in plans:
        restorer = _Restorer(plan, again=again)
        await asyncio.to_thread(restorer.clear)
        for steps in restorer.batches():
            contents = await store.contents(plan.root, [step.then for step in steps if step.then is not None])
            await asyncio.to_thread(restorer.put, steps, contents)
        results.append(await asyncio.to_thread(restorer.finish))
    await asyncio.to_thread(forget_interrupted, store)
    return results


class _Restorer:
    """Carries out one plan. Things that go are removed first, the deepest first; then directories are made; then files are written."""

    def __init__(self, plan: RestorePlan, *, again: bool) -> None:
        self._plan = plan
        self._steps = [step for step in plan.steps if not any(is_git(name) for name in step.path.split(b"/"))]
        self._contents: Mapping[bytes, bytes] = {}
        self._again = again
        self._done: set[bytes] = set()
        self._failed: dict[bytes, str] = {}
        self._modes: dict[bytes, int] = {}
        """Directories that are opened for writing until the end → the mode that they get then."""

    def clear(self) -> None:
        """Remove what was not there, or was something else."""
        going = [step for step in self._steps if step.now is not None and _kind(step.now) != _kind(step.then)]
        if self._again:
            going = self._steps
            self._remove_parts({os.path.dirname(step.path) for step in going})
        for step in reversed(going):
            self._try(step, self._remove)

    def batches(self) -> Iterator[list[RestoreStep]]:
        """What has to be put in place, directories first, in pieces whose contents fit into memory."""
        coming = [step for step in self._steps if step.then is not None and step.path not in self._failed]
        batch, size = [step for step in coming if _kind(step.then) == DIRECTORY], 0
        for step in coming:
            if step.then is not None and step.then.kind != DIRECTORY:
                if size + step.then.size > BATCH:
                    yield batch
                    batch, size = [], 0
                batch.append(step)
                size += step.then.size
        yield batch

    def put(self, steps: Sequence[RestoreStep], contents: Mapping[bytes, bytes]) -> None:
        """Put things in place. `contents` has those of the files."""
        self._contents = contents
        for step in steps:
            self._try(step, self._put)

    def finish(self) -> Restored:
        """Give directories their modes, and report what was done."""
        for path in sorted(self._modes, reverse=True):
            with suppress(OSError), self._parent(path) as (folder, name):
                _set_mode(folder, name, self._modes[path])
        done = [step for step in self._steps if step.path in self._done and step.path not in self._failed]
        return Restored(done, self._failed)

    def _try(self, step: RestoreStep, do: Callable[[RestoreStep], None]) -> None:
        try:
            do(step)
        except OSError as error:
            self._failed[step.path] = (error.strerror or str(error)).lower()
        else:
            self._done.add(step.path)

    def _remove_parts(self, folders: Collection[bytes]) -> None:
        """Remove files that were being written when it was interrupted."""
        for folder in folders:
            with suppress(OSError), self._parent(os.path.join(folder, PART)) as (opened, _):
                for name in os.listdir(opened):
                    if os.fsencode(name).startswith(PART):
                        os.unlink(name, dir_fd=opened)

    # One path.

    def _remove(self, step: RestoreStep) -> None:
        """Remove what is there and was not, or was something else."""
        try:
            with self._parent(step.path) as (folder, name):
                found = _status(folder, name)
                if found is None or _fits(found, step.then):
                    return
                self._writable(step.path)
                if stat.S_ISDIR(found.st_mode):
                    self._remove_directory(folder, name)
                else:
                    self._check(folder, name, found, step)
                    os.unlink(name, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError):  # the directory that it was in is gone
            return

    def _remove_directory(self, folder: int, name: bytes) -> None:
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError as error:
            if error.errno == ENOTEMPTY:
                raise OSError(ENOTEMPTY, "there is something else in it") from error
            raise

    def _put(self, step: RestoreStep) -> None:
        """Put in place what was there."""
        then = step.then
        assert then is not None  # noqa: S101 - the caller chose such steps
        self._writable(step.path)
        with self._parent(step.path) as (folder, name):
            found = _status(folder, name)
            if then.kind == DIRECTORY:
                if found is None:
                    os.mkdir(name, 0o700, dir_fd=folder)
                elif not stat.S_ISDIR(found.st_mode):
                    raise OSError(0, "it changed meanwhile")
                self._modes[step.path] = then.mode
                return
            if found is not None:
                self._check(folder, name, found, step)
            part = PART + os.urandom(6).hex().encode()
            try:
                if then.kind == LINK:
                    os.symlink(then.digest, part, dir_fd=folder)
                elif self._only_mode(step, found):
                    _set_mode(folder, name, then.mode)
                    return
                else:
                    self._write(folder, part, then)
                os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(part, dir_fd=folder)
                raise

    def _only_mode(self, step: RestoreStep, found: os.stat_result | None) -> bool:
        now, then = step.now, step.then
        if found is None or now is None or then is None or now.kind != FILE or then.kind != FILE:
            return False
        # A file with two names would get the mode under both of them, so it is written anew under this one.
        return now.digest == then.digest and now.size == then.size and (found.st_nlink == 1 or not then.digest)

    def _write(self, folder: int, part: bytes, then: TreeEntry) -> None:
        data = self._contents.get(then.digest)
        if data is None:
            raise OSError(0, "its content is not kept any more")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(part, flags, 0o600, dir_fd=folder), "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), then.mode)

    def _check(self, folder: int, name: bytes, found: os.stat_result, step: RestoreStep) -> None:
        """Raise if a path is not as the plan saw it."""
        if self._again:
            return
        now = step.now
        if now is None or not _fits(found, now) or stat.S_IMODE(found.st_mode) != now.mode:
            raise OSError(0, "it changed meanwhile")
        if now.kind == LINK and os.readlink(name, dir_fd=folder) != now.digest:
            raise OSError(0, "it changed meanwhile")
        if now.kind == FILE:
            if found.st_size == now.size and (found.st_mtime_ns, found.st_ctime_ns, found.st_ino) == now.stamp:
                return
            # The dates may differ all the same: to remove one of two names of a file changes a date of the other.
            if not now.digest or found.st_size != now.size or _read_id(folder, name, len(now.digest)) != now.digest:
                raise OSError(0, "it changed meanwhile")

    # Directories on the way.

    @contextmanager
    def _parent(self, path: bytes) -> Iterator[tuple[int, bytes]]:
        """The directory of a path, opened without following a link, and the name in it."""
        *folders, name = path.split(b"/")
        opened = os.open(self._plan.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for each in folders:
                inner = os.open(each, _DIRECTORY, dir_fd=opened)
                os.close(opened)
                opened = inner
            yield opened, name
        finally:
            os.close(opened)

    def _writable(self, path: bytes) -> None:
        """Make sure that the directory of a path can be changed. It gets its mode back at the end."""
        above = os.path.dirname(path)
        if not above:
            return
        with self._parent(above) as (folder, name):
            found = _status(folder, name)
            if found is None or not stat.S_ISDIR(found.st_mode):
                return
            mode = stat.S_IMODE(found.st_mode)
            if mode & 0o300 != 0o300 and found.st_uid == os.geteuid():
                self._modes.setdefault(above, mode)
                _set_mode(folder, name, mode | 0o700)


def _kind(entry: TreeEntry | None) -> str:
    return "" if entry is None else entry.kind


def _status(folder: int, name: bytes) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _fits(found: os.stat_result, entry: TreeEntry | None) -> bool:
    """Whether what is there is of the kind of an entry."""
    test = {FILE: stat.S_ISREG, LINK: stat.S_ISLNK, DIRECTORY: stat.S_ISDIR}
    return entry is not None and test[entry.kind](found.st_mode)


def _set_mode(folder: int, name: bytes, mode: int) -> None:
    """Change the mode of a file or a directory, and never that of what a link means."""
    if not hasattr(os, "O_PATH"):  # macOS, which can do it directly
        os.chmod(name, mode, dir_fd=folder, follow_symlinks=False)
        return
    found = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        if not stat.S_ISLNK(os.fstat(found).st_mode):
            os.chmod(f"/proc/self/fd/{found}", mode)
    finally:
        os.close(found)


def _read_id(folder: int, name: bytes, size: int) -> bytes:
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with open(descriptor, "rb") as file:
        return blob_id(file.read(), size)
