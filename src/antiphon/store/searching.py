"""Looks through histories without opening them: what is stored is bytes of JSON, and stays that.

So a word is found where it stands in one entry of a history or in the title, and names of JSON fields are words like others. Who wants
to search what people see folds a history first.
"""

from collections.abc import Sequence
from sqlite3 import Connection
from string import ascii_lowercase, ascii_uppercase
from typing import Final

import msgspec

from antiphon.store.database import Database
from antiphon.store.sessions import MAX_LIST, SessionRow, read_rows

__all__ = ["SearchStore"]

_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)
"""As SQLite's `lower` does it."""


class SearchStore:
    """Searches the sessions of a database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def search(self, engine: str, words: Sequence[str], limit: int = 50) -> list[SessionRow]:
        """Sessions of an engine in which each of these words stands, the last used first. Case counts for letters beyond ASCII only."""
        limit = max(1, min(limit, MAX_LIST))
        places = [(word.translate(_LOWER), _as_stored(word)) for word in words]
        has = (
            " AND (instr(lower(title), ?) > 0 OR EXISTS (SELECT 1 FROM history"
            " WHERE history.session = session.key AND instr(lower(CAST(data AS TEXT)), ?) > 0))"
        )
        where = f"WHERE engine = ? AND length > 0{has * len(places)} ORDER BY updated_at DESC, id DESC LIMIT ?"
        values = (engine, *(text for place in places for text in place), limit)
        return await self.database.read(lambda connection: read_rows(connection, where, values))

    async def count(self, id: str, beginning: bytes) -> int:
        """How many entries of a session's history begin with these bytes."""
        entries = (
            "SELECT count(*) FROM history JOIN session ON session.key = history.session"
            " WHERE session.id = ? AND substr(data, 1, ?) = ?"
        )

        def count(connection: Connection) -> int:
            return int(connection.execute(entries, (id, len(beginning), beginning)).fetchone()[0])

        return await self.database.read(count)


def _as_stored(word: str) -> str:
    """As the word stands in JSON: with quotes and line ends escaped."""
    return msgspec.json.encode(word).decode()[1:-1].translate(_LOWER)
