"""The joint sessions there are, and which one somebody means by a few letters. Looks; makes and changes nothing."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from antiphon.cli.saying import Misused
from antiphon.client.agent import shortened
from antiphon.duet.history.events import PromptEvent, unpack
from antiphon.export.session import About, ExportedSession, about, read_session
from antiphon.protocol import v1
from antiphon.store.database import Database
from antiphon.store.schema import open_database
from antiphon.store.sessions import ConversationStore, SearchStore, SessionRow, SessionStore
from antiphon.text import one_line, prose

__all__ = ["JOINT", "Shelf", "opened"]

JOINT: Final = "antiphon"
"""The engine's name in the rows of the joint agent's sessions."""

LAST: Final = "last"
"""The word for the session that was used last in this directory."""

CANDIDATES: Final = 5
"""Sessions that an error lists."""

FIRST_EVENTS: Final = 50
"""Events in which the first prompt is looked for: before it come settings and commands."""

_PROMPTED: Final = b'{"event":"prompted"'


class Shelf:
    """The sessions of the joint agent in which anything was said, the last used first."""

    def __init__(self, database: Database, rows: Sequence[SessionRow], engines: dict[str, tuple[str, ...]]) -> None:
        self.store = SessionStore(database)
        self._search = SearchStore(database)
        self.rows = rows
        self._engines = engines
        self._shown = shortened([row.id for row in rows])

    def in_directory(self, directory: str) -> list[SessionRow]:
        """Those of a directory, by whatever name it is reached."""
        wanted, real = os.path.realpath(directory), dict[str, str]()
        for row in self.rows:
            if row.cwd not in real:
                real[row.cwd] = os.path.realpath(row.cwd)
        return [row for row in self.rows if real[row.cwd] == wanted]

    def short(self, id: str) -> str:
        """As many letters of an id as it takes to tell it from the others."""
        return self._shown.get(id, id)

    def find(self, word: str) -> SessionRow:
        """The session that is meant: by its id, the beginning of it, or `last`.

        Raises:
            Misused: there is none, or there are several.
        """
        if word == LAST:
            here = self.in_directory(os.getcwd())
            if not here:
                raise Misused("there is no session in this directory", hint="`antiphon sessions --all` lists all")
            return here[0]
        found = [row for row in self.rows if row.id == word] or [
            row for row in self.rows if word and row.id.startswith(word)
        ]
        if not found:
            raise Misused(
                f"there is no session `{prose(word)}`", hint="`antiphon sessions --all` lists those there are"
            )
        if len(found) > 1:
            listed = [f"\n  {self.short(row.id)}  {one_line(row.title or row.cwd)}" for row in found]
            more = f"\n  … and {len(found) - CANDIDATES} more" if len(found) > CANDIDATES else ""
            raise Misused(
                f"`{prose(word)}` is the beginning of {len(found)} sessions:{''.join(listed[:CANDIDATES])}{more}",
                hint="give some more letters of the one you mean",
            )
        return found[0]

    async def about(self, row: SessionRow) -> About:
        """What is known of a session; one without a title is called after what was asked first."""
        turns = await self._search.count(row.id, _PROMPTED)
        known = about(row, await self.store.state(row.id), self._engines.get(row.id, ()), turns)
        return known if row.title else _titled(known, await self._first_prompt(row.id))

    async def told(self, row: SessionRow) -> ExportedSession:
        """A session with its history."""
        return read_session(await self.about(row), await self.store.history(row.id))

    async def _first_prompt(self, id: str) -> str | None:
        seen = 0
        async for page in self.store.pages(id, page_bytes=4096):
            for event in unpack(page):
                if isinstance(event, PromptEvent):
                    text = " ".join(block.text for block in event.prompt if isinstance(block, v1.TextBlock))
                    return text.replace("**", "").replace("`", "").strip().partition("\n")[0] or None
            seen += len(page)
            if seen > FIRST_EVENTS:
                break
        return None


@asynccontextmanager
async def opened() -> AsyncIterator[Shelf]:
    """The shelf of this user. Where there is no database yet it is empty, and none is made."""
    database = open_database()
    try:
        if not database.path.exists():
            yield Shelf(database, (), {})
            return
        rows = [row async for row in _rows(SessionStore(database))]
        engines: dict[str, tuple[str, ...]] = {}
        for (engine, _), id in sorted((await ConversationStore(database).conversations()).items()):
            engines[id] = (*engines.get(id, ()), engine)
        yield Shelf(database, rows, engines)
    finally:
        await database.close()


async def _rows(store: SessionStore) -> AsyncIterator[SessionRow]:
    cursor = None
    while True:
        rows, cursor = await store.list(JOINT, cursor=cursor, limit=1000)
        for row in rows:
            if row.length > 0:
                yield row
        if cursor is None:
            return


def _titled(known: About, title: str | None) -> About:
    import msgspec

    return msgspec.structs.replace(known, title=title)
