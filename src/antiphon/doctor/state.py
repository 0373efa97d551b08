"""Checks of the state directory and its database. Reads only: the doctor may run before the first use."""

import os
import shutil
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from antiphon.config.directories import state_dir
from antiphon.doctor.findings import DoctorContext, Finding, note, ok, problem, split
from antiphon.errors import AcpError, sentence_and_hint
from antiphon.store.errors import explained
from antiphon.store.locks import look_at_all
from antiphon.store.schema import FILE_NAME, MIGRATIONS

__all__ = ["database", "directory", "is_trusted", "leftovers", "sessions"]

LOCK_TIMEOUT: Final = 1.0
"""Seconds until a locked database is reported. A commit takes milliseconds."""

CHECKED_WHOLE: Final = 256 * 1024 * 1024
"""Bytes up to which a database is read from end to end: it takes a second or two."""

LOW_DISK_SPACE: Final = 100 * 1024 * 1024
"""Bytes of free disk below which a note is made: a long session has some megabytes."""

STALE: Final = 3600.0
"""Seconds after which a file that was to be moved into its place has been left over."""


def directory(context: DoctorContext) -> Sequence[Finding]:
    """Check whether the state directory can be written and has space."""
    place = state_dir(context.environment)
    facts = {"path": str(place)}
    there = next((folder for folder in (place, *place.parents) if folder.exists()), Path("/"))
    other = "check the permissions, or choose another directory with ANTIPHON_STATE_DIR"
    if not there.is_dir():
        return problem(f"{place} cannot be used: {there} is not a directory", other, **facts)
    if not os.access(there, os.W_OK | os.X_OK):
        return problem(f"{place} cannot be written to: {there} may not be changed by you", other, **facts)
    free = shutil.disk_usage(there).free
    if free < LOW_DISK_SPACE:
        return problem(
            f"{place} has little space: {_size(free)} are free",
            "free some space on that disk, or choose another one",
            **facts,
        )
    made = "" if there == place else ", which is made when something is to be kept"
    return ok(f"{place}{made}; {_size(free)} are free", **facts)


def database(context: DoctorContext) -> Sequence[Finding]:
    """Check the database: whether it opens and can be written, its size and version."""
    path = state_dir(context.environment) / FILE_NAME
    facts = {"path": str(path)}
    if not path.exists():
        return ok("there is none yet: the first session makes it", **facts)
    size = path.stat().st_size
    try:
        version, damage = _look_into(path, whole=size <= CHECKED_WHOLE)
    except sqlite3.Error as error:
        sentence, hint = sentence_and_hint(explained(error, path))
        return problem(sentence, hint or "move it away, and a new one is made", **facts)
    facts |= {"version": str(version), "bytes": str(size)}
    if damage is not None:
        hint = f"`sqlite3 {path} .recover` may save what is in it; moved away, a new one is made"
        return problem(f"{path} is damaged ({damage})", hint, **facts)
    if version > len(MIGRATIONS):
        return problem(
            f"{path} was written by a newer Antiphon (its tables are version {version}, we know {len(MIGRATIONS)})",
            "update this Antiphon, or give it a directory of its own with ANTIPHON_STATE_DIR",
            **facts,
        )
    old = "" if version == len(MIGRATIONS) else f"; it is brought to {len(MIGRATIONS)} when it is next used"
    return ok(f"{path} opens, {_size(size)}, tables of version {version}{old}", **facts)


def leftovers(context: DoctorContext) -> Sequence[Finding]:
    """Check for files that a crash has left behind."""
    place = state_dir(context.environment)
    found: list[Finding] = []
    journal = place / f"{FILE_NAME}-journal"
    if journal.exists() and journal.stat().st_size > 0 and time.time() - journal.stat().st_mtime > STALE:
        found += note(
            f"{journal} is left of something that did not end", "leave it there: the next use of the database needs it"
        )
    stray = [path for path in _files(place) if _is_stray(path)]
    if stray:
        listed = ", ".join(map(str, stray[:3])) + (" …" if stray[3:] else "")
        found += note(f"left over from something that did not end: {listed}", "they can be deleted")
    return found


def sessions(context: DoctorContext) -> Sequence[Finding]:
    """Check the open sessions, and locks that a killed process has left."""
    try:
        every = list(look_at_all(state_dir(context.environment)))
    except AcpError as error:
        return problem(*split(error.advice, "check the permissions"))
    found: list[Finding] = []
    for path, holder in every:
        if holder is not None:
            holder_name = str(holder) or "another Antiphon"
            found += ok(
                f"session `{holder.session_id or '?'}` is open ({holder_name})", path=str(path), pid=str(holder.pid)
            )
    stale = [path for path, holder in every if holder is None]
    if stale:
        count = f"{len(stale)} lock{'' if len(stale) == 1 else 's'} of sessions"
        found += note(
            f"{count} in {stale[0].parent} left by processes that were killed",
            "nothing to do: each goes when its session is opened again",
            count=str(len(stale)),
        )
    return found


def is_trusted(context: DoctorContext) -> bool:
    """Whether the project's file is trusted as it is now. No, if the database cannot be read."""
    sources, path = context.loaded.sources, state_dir(context.environment) / FILE_NAME
    if sources.directory is None or sources.project is None or not sources.project.digest or not path.exists():
        return False
    find = "SELECT 1 FROM trusted_project WHERE project = ? AND digest = ?"
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=LOCK_TIMEOUT)) as connection:
            row = connection.execute(find, (str(sources.directory), sources.project.digest)).fetchone()
    except sqlite3.Error:
        return False
    return row is not None


def _look_into(path: Path, *, whole: bool) -> tuple[int, str | None]:
    """Return the version of the tables, and what is damaged. Raises if it cannot be written."""
    uri = f"{path.as_uri()}?mode=rw"
    with closing(sqlite3.connect(uri, uri=True, timeout=LOCK_TIMEOUT, isolation_level=None)) as connection:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        word = connection.execute("PRAGMA quick_check(1)").fetchone()[0] if whole else "ok"
        connection.execute("BEGIN IMMEDIATE")  # as every writer begins; it writes nothing
        connection.execute("ROLLBACK")
    return version, None if word == "ok" else str(word).partition("\n")[0][:100]


def _files(place: Path) -> list[Path]:
    return [path for folder in (place, place / "engines") if folder.is_dir() for path in sorted(folder.iterdir())]


def _is_stray(path: Path) -> bool:
    """Whether this is one of the hidden names under which `engines.cli_program` and `local.files` write before they move a file into place."""
    if not path.name.startswith(".") or not path.is_file():
        return False
    return time.time() - path.stat().st_mtime > STALE


def _size(number: int) -> str:
    if number < 1024 * 1024:
        return f"{number / 1024:.0f} KiB"
    return f"{number / 1024 / 1024:.0f} MiB" if number < 1024**3 else f"{number / 1024**3:.1f} GiB"
