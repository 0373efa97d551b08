"""The tables of our one file, in the order in which they came to be. Packages that store more add their migrations at the end.

A migration that was released is never changed: files out there have seen it.
"""

from pathlib import Path
from typing import Final

from antiphon.config.directories import state_dir
from antiphon.store.database import Database, Migration

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

# AUTOINCREMENT: the number of a decision that was revoked is never given to another, so a list from yesterday revokes nothing else.
_PERMISSIONS: Final[Migration] = (
    """
    CREATE TABLE decision (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        rule TEXT NOT NULL,
        verdict TEXT NOT NULL,
        scope TEXT NOT NULL,
        session_id TEXT NOT NULL,
        project TEXT NOT NULL,
        agent TEXT NOT NULL,
        made_at TEXT NOT NULL,
        expires_at TEXT
    )
    """,
    """
    CREATE TABLE audit (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        at TEXT NOT NULL,
        agent TEXT NOT NULL,
        session_id TEXT NOT NULL,
        cwd TEXT NOT NULL,
        tool TEXT NOT NULL,
        kind TEXT NOT NULL,
        subject TEXT NOT NULL,
        verdict TEXT NOT NULL,
        rule TEXT NOT NULL,
        source TEXT NOT NULL,
        why TEXT NOT NULL,
        answer TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE named_session (
        name TEXT NOT NULL,
        agent TEXT NOT NULL,
        cwd TEXT NOT NULL,
        session_id TEXT NOT NULL,
        used_at TEXT NOT NULL,
        PRIMARY KEY (agent, cwd, name)
    )
    """,
    """
    CREATE TABLE trusted_project (
        project TEXT PRIMARY KEY,
        digest TEXT NOT NULL,
        trusted_at TEXT NOT NULL
    )
    """,
)

# A conversation (the session of an engine) belongs to one session of ours: one that takes it over has it alone.
_CONVERSATIONS: Final[Migration] = (
    """
    CREATE TABLE conversation (
        engine TEXT NOT NULL,
        id TEXT NOT NULL,
        session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
        PRIMARY KEY (engine, id)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX conversation_session ON conversation (session)",
)

_TRUSTED_FILES: Final[Migration] = (
    """
    CREATE TABLE trusted_file (
        path TEXT PRIMARY KEY,
        digest TEXT NOT NULL,
        trusted_at TEXT NOT NULL
    ) WITHOUT ROWID
    """,
)

# Sessions of before have an unknown client, which belongs to no client.
_CLIENTS: Final[Migration] = ("ALTER TABLE session ADD COLUMN client TEXT NOT NULL DEFAULT ''",)

MIGRATIONS: Final[tuple[Migration, ...]] = (_SESSIONS, _PERMISSIONS, _CONVERSATIONS, _TRUSTED_FILES, _CLIENTS)


def open_database(directory: Path | None = None) -> Database:
    """The database of this user, or the one in `directory`. Nothing is touched before its first job."""
    return Database((state_dir() if directory is None else directory) / FILE_NAME, MIGRATIONS)
