"""The tables of our one file, in the order in which they came to be. Rooms that keep more add their migrations at the end.

A migration that was released is never changed: files out there have seen it.
"""

from pathlib import Path
from typing import Final

from antiphon.config.places import state_dir
from antiphon.store.database import Database
from antiphon.store.opening import Migration

__all__ = ["FILE_NAME", "MIGRATIONS", "open_database"]

FILE_NAME: Final = "antiphon.sqlite3"

# No index on `updated_at`: every append would have to write it, and sorting some thousand rows for a list is quick.
_SESSIONS: Final[Migration] = (
    """
    CREATE TABLE session (
        key INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        engine TEXT NOT NULL,
        cwd TEXT NOT NULL,
        directories TEXT NOT NULL,
        title TEXT,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        length INTEGER NOT NULL DEFAULT 0,
        state BLOB NOT NULL DEFAULT x''
    )
    """,
    """
    CREATE TABLE history (
        session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (session, seq)
    )
    """,
)

MIGRATIONS: Final[tuple[Migration, ...]] = (_SESSIONS,)


def open_database(directory: Path | None = None) -> Database:
    """The database of this user, or the one in `directory`. Nothing is touched before its first job."""
    return Database((state_dir() if directory is None else directory) / FILE_NAME, MIGRATIONS)
