"""One writer per session. A lock is the kernel's, on a small file: whoever crashes has let go of it, and no clock decides anything.

Rule 1: who writes a session has its file locked for itself alone; who only looks shares the lock for a moment. So a taker that finds
the file locked can tell the two apart: it shares the lock with one who looks, and never with an owner.
Rule 2: the file goes with the lock. Who has locked a file looks whether it still is the one at its path, and if not, begins again:
somebody let go of it in between.
Rule 3: what the file says (who, since when) is for people. Nothing is decided by it.
"""

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from antiphon.errors import AcpError

__all__ = ["FOLDER", "Holder", "LiveElsewhere", "SessionLock", "holder", "look_at_all"]

FOLDER: Final = "locks"
"""Where the files are, in the state directory."""

PATIENCE: Final = 0.5
"""Seconds that a taker gives those who only look. Each of them is done in microseconds."""

PAUSE: Final = 0.001
"""Seconds between two tries."""

MOST: Final = 4096
"""Bytes that are read of a file of ours: more is none of ours."""

_PLAIN: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
"""Small letters only: some disks do not tell `A` from `a`."""


class Holder(msgspec.Struct, frozen=True):
    """Who has a session open. What could not be read is 0 or empty."""

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
    """Somebody else writes this session."""

    def __init__(self, session_id: str, holder: Holder) -> None:
        self.session_id, self.holder = session_id, holder
        where = "in this Antiphon already" if holder.pid == os.getpid() else "in another Antiphon"
        told = f" ({holder})" if str(holder) else ""
        super().__init__(f"session `{session_id}` is open {where}{told}\nhint: close it there, or fork it")


class SessionLock:
    """A session that nobody else may write. It is free again with `release`, or when this process ends, however that happens."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, directory: Path, session_id: str, who: str) -> Self:
        """Take the lock of a session, now or not at all. `directory` is the state directory, `who` the client that wants it.

        Raises:
            LiveElsewhere: another process has it, or another part of this one.
            AcpError: the file cannot be made or locked; with a hint.
        """
        path = path_of(directory, session_id)
        with _explained(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = _locked(path, session_id)
            _write(descriptor, Holder(session_id, os.getpid(), who, round(time.time(), 3)))
        return cls(path, descriptor)

    def release(self) -> None:
        """Let go of it, and leave no file. Twice is as good as once."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        try:
            if _is_at(descriptor, self.path):  # as long as we hold it nobody else removes it
                self.path.unlink()
        except OSError:
            pass  # a file that stays is in nobody's way: it is not locked
        finally:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def holder(directory: Path, session_id: str) -> Holder | None:
    """Who has the session open; None: nobody. Takes nothing away from anybody."""
    path = path_of(directory, session_id)
    with _explained(path):
        return _look(path)


def look_at_all(directory: Path) -> Iterator[tuple[Path, Holder | None]]:
    """Every file there is and who holds it. None: it was left by somebody who crashed."""
    folder = directory / FOLDER
    with _explained(folder):
        for path in sorted(folder.glob("*.lock")):
            found = _look(path)
            if found is not None or path.exists():
                yield path, found


def path_of(directory: Path, session_id: str) -> Path:
    """The file of a session. It has the id for a name where any disk takes that and tells it from all others."""
    name = session_id
    if not _PLAIN.fullmatch(session_id):
        from hashlib import sha256  # late: it takes longer than all else here, and our own ids never need it

        name = f"+{sha256(session_id.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return directory / FOLDER / f"{name}.lock"


def _locked(path: Path, session_id: str) -> int:
    """A descriptor of the file at this path, locked for us alone."""
    give_up = time.monotonic() + PATIENCE
    while True:
        # No program that we start gets it: it would hold the session after us.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            taken = _taken(descriptor, path, session_id, give_up)
        except BaseException:
            os.close(descriptor)
            raise
        if taken:
            return descriptor
        os.close(descriptor)
        time.sleep(PAUSE)


def _taken(descriptor: int, path: Path, session_id: str, give_up: float) -> bool:
    """Whether the file is locked for us alone; False: it is worth another try."""
    if _try(descriptor, fcntl.LOCK_EX):
        return _is_at(descriptor, path)
    if not _try(descriptor, fcntl.LOCK_SH) or time.monotonic() > give_up:
        raise LiveElsewhere(session_id, _read(descriptor))
    return False


def _look(path: Path) -> Holder | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        if _try(descriptor, fcntl.LOCK_SH):
            return None
        return _read(descriptor) if _is_at(descriptor, path) else None
    finally:
        os.close(descriptor)


def _try(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)


def _write(descriptor: int, who: Holder) -> None:
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, msgspec.json.encode(who), 0)
    except (OSError, msgspec.EncodeError, UnicodeEncodeError):
        pass  # a full disk takes the names away, not the lock


def _read(descriptor: int) -> Holder:
    """What the owner wrote. Between its lock and its first word stand the words of one who crashed: those of the dead do not count."""
    try:
        found = msgspec.json.decode(os.pread(descriptor, MOST, 0), type=Holder)
    except (OSError, msgspec.DecodeError):
        return Holder()
    try:
        os.kill(found.pid, 0)
    except PermissionError:
        pass  # somebody else's, and alive
    except (OSError, OverflowError):
        return Holder()
    return found


def _clock(since: float) -> str:
    """A time of today as `14:02`, an earlier one with its day."""
    then = time.localtime(since)
    return time.strftime("%H:%M" if then[:3] == time.localtime()[:3] else "%Y-%m-%d %H:%M", then)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = "check the permissions and the disk, or choose another directory with ANTIPHON_STATE_DIR"
        raise AcpError(f"`{path}` cannot be locked: {error.strerror}\nhint: {hint}") from error
