"""Which conversation of which engine belongs to which session of ours. The engines keep them; here are only their ids."""

from collections.abc import Mapping
from sqlite3 import Connection

from antiphon.store.database import Database
from antiphon.store.errors import NoSuchSession

__all__ = ["ConversationStore"]


class ConversationStore:
    """The conversations in a database. What it wrote is on the disk when a method returns. They go with their session."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def set_conversations(self, id: str, conversations: Mapping[str, str]) -> None:
        """From now on the session has these, engine → conversation id, and no others. One that another session had is taken from it.

        Raises:
            NoSuchSession: it was deleted, or never was.
        """
        wanted = list(conversations.items())

        def put(connection: Connection) -> None:
            found = connection.execute("SELECT key FROM session WHERE id = ?", (id,)).fetchone()
            if found is None:
                raise NoSuchSession(id)
            connection.execute("DELETE FROM conversation WHERE session = ?", found)
            connection.executemany(
                "INSERT OR REPLACE INTO conversation (engine, id, session) VALUES (?, ?, ?)",
                [(engine, conversation, found[0]) for engine, conversation in wanted],
            )

        await self.database.run(put)

    async def conversations(self) -> dict[tuple[str, str], str]:
        """All of them: (engine, conversation id) → the id of the session."""

        def every(connection: Connection) -> dict[tuple[str, str], str]:
            rows = (
                "SELECT conversation.engine, conversation.id, session.id"
                " FROM conversation JOIN session ON session.key = conversation.session"
            )
            return {(engine, conversation): id for engine, conversation, id in connection.execute(rows)}

        return await self.database.read(every)

    async def by_conversation(self, engine: str, conversation_id: str) -> str | None:
        """The id of the session that has this conversation."""

        def one(connection: Connection) -> str | None:
            row = connection.execute(
                "SELECT session.id FROM conversation JOIN session ON session.key = conversation.session"
                " WHERE conversation.engine = ? AND conversation.id = ?",
                (engine, conversation_id),
            ).fetchone()
            return None if row is None else str(row[0])

        return await self.database.read(one)
