"""One writer per session. A lock is the kernel's, on one byte of one file: a process that ends, however that happens, has released it.

One descriptor holds all locks of a process (ADR 0032), so the number of open sessions is not bounded by the number of descriptors.

Rule 1: a process that writes a session locks its byte exclusively; one that only looks shares the lock for a moment. So a taker that finds
the byte locked can distinguish the two: it can share the lock with one that looks, and never with an owner.
Rule 2: the kernel knows these locks by process. Within ours `_Table.held` has what is held, and the file is never closed: that
would release every lock of this process.
Rule 3: the small file beside it (process, client, since when) is for people. What is in it decides nothing.
Rule 4: an Antiphon from before the table has that file itself locked (`flock`). It is looked at, so that an older process that runs on
keeps its sessions; ours are not locked in this way, since each would take a descriptor.
"""

import fcntl
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from antiphon.config.directories import make_private_directory
from antiphon.errors import AcpError

__all__ = ["FOLDER", "TABLE", "Holder", "LiveElsewhere", "SessionLock", "byte_of", "holder", "look_at_all", "path_of"]

FOLDER: Final = "locks"
"""The directory of the lock files, in the state directory."""

TABLE: Final = "table"
"""The file whose bytes are locked, one for each session. It is empty: a byte need not be there to be locked."""

LOOK_TIMEOUT: Final = 0.5
"""Seconds that a taker waits for processes that only look. Each of them is done in microseconds."""

PAUSE: Final = 0.001
"""Seconds between two tries."""

MOST: Final = 4096
"""Bytes that are read of a lock file: a larger file is not one of ours."""

_PLAIN: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
"""Small letters only: some disks take `A` and `a` for the same name."""

_OURS: Final = re.compile(r"[0-9a-f]{32}")
_PLACES: Final = (1 << 62) - 1
"""A place in a file is a signed number of 64 bits."""


class Holder(msgspec.Struct, frozen=True):
    """The process that has a session open. What could not be read is 0 or empty."""

    session_id: str = ""
    pid: int = 0
    who: str = ""
    """The client's name, such as `Zed`."""
    since: float = 0.0
    """Seconds since 1970."""

    def __str__(self) -> str:
        parts = [
            f"process {self.pid}" if self.pid else "",
            self.who,
            f"since {_clock(self.since)}" if self.since else "",
        ]
        return ", ".join(part for part in parts if part)


class LiveElsewhere(AcpError):
    """Another process, or another client of this one, writes this session."""

    def __init__(self, session_id: str, holder: Holder) -> None:
        self.session_id, self.holder = session_id, holder
        where = "in this Antiphon already" if holder.pid == os.getpid() else "in another Antiphon"
        by = f" ({holder})" if str(holder) else ""
        super().__init__(f"session `{session_id}` is open {where}{by}", hint="close it there, or fork it")


class SessionLock:
    """A session that only this holder may write. It is free again with `release`, or when this process ends, however that happens."""

    def __init__(self, path: Path, table: "_Table", place: int) -> None:
        self.path = path
        """The file that names the owner."""
        self._table: _Table | None = table
        self._place = place

    @classmethod
    def take(cls, directory: Path, session_id: str, client: str) -> Self:
        """Take the lock of a session, now or not at all. `directory` is the state directory, `client` the name of the client that wants it.

        Waits for processes that only look, at most `LOOK_TIMEOUT`. On an event loop use `take_async`.

        Raises:
            LiveElsewhere: another process has it, or another part of this one.
            AcpError: the file cannot be made or locked; with a hint.
        """
        give_up = time.monotonic() + LOOK_TIMEOUT
        while (lock := cls._try(directory, session_id, client, give_up)) is None:
            time.sleep(PAUSE)
        return lock

    @classmethod
    async def take_async(cls, directory: Path, session_id: str, client: str) -> Self:
        """The same, without holding up the event loop. A caller that is cancelled while it waits holds nothing."""
        import asyncio  # late: most commands have no event loop

        give_up = time.monotonic() + LOOK_TIMEOUT
        while (lock := cls._try(directory, session_id, client, give_up)) is None:  # noqa: ASYNC110 - other processes send no event
            await asyncio.sleep(PAUSE)
        return lock

    @classmethod
    def _try(cls, directory: Path, session_id: str, client: str, give_up: float) -> Self | None:
        """The lock; None: it is worth another try."""
        path = path_of(directory, session_id)
        with _explained(path):
            make_private_directory(path.parent)
            table, place = _table(path.parent, make=True), byte_of(session_id)
            if _is_locked_by_older(path):
                raise LiveElsewhere(session_id, _read(path))
            match table.take(place):
                case "owned":
                    raise LiveElsewhere(session_id, _read(path))
                case "looked at":
                    if time.monotonic() > give_up:
                        raise LiveElsewhere(session_id, _read(path))
                    return None
                case _:
                    _write(path, Holder(session_id, os.getpid(), client, round(time.time(), 3)))
        return cls(path, table, place)

    def release(self) -> None:
        """Release it, and remove the file that names the owner. Calling it twice does no harm."""
        table, self._table = self._table, None
        if table is None:
            return
        try:
            self.path.unlink(missing_ok=True)  # as long as we hold the lock the file is ours
        except OSError:
            pass  # a file that stays does no harm: nothing is locked by it
        finally:
            table.release(self._place)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class _Table:
    """The file whose bytes are locked, as this process has it open."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.held: set[int] = set()
        self._mutex = threading.Lock()

    def take(self, place: int) -> str:
        """Lock a byte for ourselves alone: `taken`; or not: `owned` by another, or `looked at` and worth another try."""
        with self._mutex:
            if place in self.held:
                return "owned"
            if self._lock(place, fcntl.LOCK_EX):
                self.held.add(place)
                return "taken"
            return "looked at" if self._can_share(place) else "owned"

    def is_owned(self, place: int) -> bool:
        """Whether another process has the byte for itself alone."""
        with self._mutex:
            # The kernel would take a second lock of ours for a change of the first.
            return place in self.held or not self._can_share(place)

    def release(self, place: int) -> None:
        """Unlock a byte."""
        with self._mutex:
            if place in self.held:
                self.held.discard(place)
                self._unlock(place)

    def _can_share(self, place: int) -> bool:
        if not self._lock(place, fcntl.LOCK_SH):
            return False
        self._unlock(place)
        return True

    def _lock(self, place: int, how: int) -> bool:
        try:
            fcntl.lockf(self.descriptor, how | fcntl.LOCK_NB, 1, place)
        except (BlockingIOError, PermissionError):  # systems differ in the error for a locked byte
            return False
        return True

    def _unlock(self, place: int) -> None:
        fcntl.lockf(self.descriptor, fcntl.LOCK_UN, 1, place)


_tables: Final[dict[tuple[int, int], _Table]] = {}
"""Lock tables by device and inode: one file has one table here, by whatever path it is named."""

_opening = threading.Lock()


def _table(folder: Path, *, make: bool) -> _Table:
    """The table in this directory.

    Raises:
        FileNotFoundError: there is no such file, and it was not to be made.
    """
    path = folder / TABLE
    with _opening:
        try:
            found = _tables.get(_identity(os.stat(path)))
        except FileNotFoundError:
            found = None
        if found is not None:
            return found
        # No program that we start gets it. It stays open: see rule 2.
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if make else 0), 0o600)
        return _tables.setdefault(_identity(os.fstat(descriptor)), _Table(descriptor))


def _identity(file: os.stat_result) -> tuple[int, int]:
    return file.st_dev, file.st_ino


def _forget_tables() -> None:
    """Forget all tables, in a child process made by `fork`: the locks are its parent's."""
    global _opening  # a thread of the parent may have held it
    _opening = threading.Lock()
    _tables.clear()


os.register_at_fork(after_in_child=_forget_tables)


def byte_of(session_id: str) -> int:
    """The byte of a session. Two sessions share one as seldom as two random numbers of 62 bits are the same."""
    if _OURS.fullmatch(session_id):
        return int(session_id, 16) & _PLACES
    from hashlib import sha256  # late: it takes longer than all else here, and our own ids never need it

    return int.from_bytes(sha256(session_id.encode("utf-8", "surrogatepass")).digest()[:8], "big") & _PLACES


def holder(directory: Path, session_id: str) -> Holder | None:
    """Return the holder of a session; None if it is not open. Takes no lock away."""
    path = path_of(directory, session_id)
    with _explained(path):
        return _read(path) if _is_owned(path.parent, session_id) or _is_locked_by_older(path) else None


def look_at_all(directory: Path) -> Iterator[tuple[Path, Holder | None]]:
    """Every session that is open, or was when its process crashed, by its file, with its holder, None if it is not open."""
    folder = directory / FOLDER
    with _explained(folder):
        for path in sorted(folder.glob("*.lock")):
            session_id = _decoded(path).session_id or path.stem  # a full disk leaves an empty file
            found = _read(path) if _is_owned(folder, session_id) or _is_locked_by_older(path) else None
            if found is not None or path.exists():
                yield path, found


def _is_owned(folder: Path, session_id: str) -> bool:
    try:
        return _table(folder, make=False).is_owned(byte_of(session_id))
    except FileNotFoundError:
        return False


def _is_locked_by_older(path: Path) -> bool:
    """Whether an Antiphon from before the table has this file locked. One that only looks shares the lock, and does not count."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # mostly there is no file
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a disk without such locks: no process can have one
        return False
    finally:
        os.close(descriptor)  # which releases it
    return False


def path_of(directory: Path, session_id: str) -> Path:
    """The file of a session. It is named by the id where every disk accepts that name and keeps it distinct."""
    name = session_id
    if not _PLAIN.fullmatch(session_id):
        from hashlib import sha256  # late: it takes longer than all else here, and our own ids never need it

        name = f"+{sha256(session_id.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return directory / FOLDER / f"{name}.lock"


def _write(path: Path, holder: Holder) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, msgspec.json.encode(holder))
        finally:
            os.close(descriptor)
    except (OSError, msgspec.EncodeError, UnicodeEncodeError):
        pass  # a full disk takes the names away, not the lock


def _decoded(path: Path) -> Holder:
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(MOST), type=Holder)
    except (OSError, msgspec.DecodeError):
        return Holder()


def _read(path: Path) -> Holder:
    """What the owner of a session wrote. It may not have written yet: the record of a process that is gone does not count."""
    found = _decoded(path)
    try:
        os.kill(found.pid, 0)
    except PermissionError:
        pass  # a process of another user, and alive
    except (OSError, OverflowError):
        return Holder()
    return found if found.pid > 0 else Holder()


def _clock(since: float) -> str:
    """A time of today as `14:02`, an earlier one with its day."""
    then = time.localtime(since)
    return time.strftime("%H:%M" if then[:3] == time.localtime()[:3] else "%Y-%m-%d %H:%M", then)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = "check the permissions and the disk, or choose another directory: ANTIPHON_STATE_DIR, or `--data` of a gateway"
        raise AcpError(f"`{path}` cannot be locked: {error.strerror}", hint=hint) from error
