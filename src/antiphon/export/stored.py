"""Finds stored sessions of the joint agent by the first letters of their id, and searches in them. Changes nothing."""

import os
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from antiphon.client.agent import shortened
from antiphon.duet.history.events import PromptEvent, unpack
from antiphon.errors import AcpError
from antiphon.export.session import ExportedLine, ExportedSession, SessionFacts, about, read_session, speaker, text_of
from antiphon.protocol import v1
from antiphon.store.database import Database
from antiphon.store.locks import Holder  # noqa: TC001 - msgspec reads the annotation
from antiphon.store.schema import open_database
from antiphon.store.sessions import EngineSessionStore, SearchStore, SessionRow, SessionStore
from antiphon.text import one_line, prose
from antiphon.transcript.transcript import CallEntry, Message

__all__ = ["JOINT", "Hit", "StoredSessions", "hits_in", "open_stored", "pattern_of"]

JOINT: Final = "antiphon"
"""The engine's name in the rows of the joint agent's sessions."""

LAST: Final = "last"
"""The argument for the session that was used last in this directory."""

CANDIDATES: Final = 5
"""Sessions that an error lists."""

FIRST_EVENTS: Final = 50
"""Events in which the first prompt is looked for: before it come settings and commands."""

_PROMPTED: Final = b'{"event":"prompted"'


class SessionNotFound(AcpError):
    """No stored session has this id, or several begin with it."""


class StoredSessions:
    """The stored sessions of the joint agent that are not empty, the last used first."""

    def __init__(self, database: Database, rows: Sequence[SessionRow], engines: dict[str, tuple[str, ...]]) -> None:
        self.store = SessionStore(database)
        self._search = SearchStore(database)
        self.rows = rows
        self._engines = engines
        self._shown = shortened([row.id for row in rows])

    def in_directory(self, directory: str) -> list[SessionRow]:
        """Return the sessions of a directory, whatever links lead to it."""
        wanted, real = os.path.realpath(directory), dict[str, str]()
        for row in self.rows:
            if row.cwd not in real:
                real[row.cwd] = os.path.realpath(row.cwd)
        return [row for row in self.rows if real[row.cwd] == wanted]

    def short(self, id: str) -> str:
        """Return the first letters of an id that no other session has."""
        return self._shown.get(id, id)

    def find(self, word: str) -> SessionRow:
        """Return a session by its id, its first letters, or `last`.

        Raises:
            SessionNotFound: no session matches, or several do.
        """
        if word == LAST:
            here = self.in_directory(os.getcwd())
            if not here:
                raise SessionNotFound(
                    "there is no session in this directory", hint="`antiphon sessions --all` lists all"
                )
            return here[0]
        found = [row for row in self.rows if row.id == word] or [
            row for row in self.rows if word and row.id.startswith(word)
        ]
        if not found:
            raise SessionNotFound(
                f"there is no session `{prose(word)}`", hint="`antiphon sessions --all` lists those there are"
            )
        if len(found) > 1:
            listed = [f"\n  {self.short(row.id)}  {one_line(row.title or row.cwd)}" for row in found]
            more = f"\n  … and {len(found) - CANDIDATES} more" if len(found) > CANDIDATES else ""
            raise SessionNotFound(
                f"`{prose(word)}` is the beginning of {len(found)} sessions:{''.join(listed[:CANDIDATES])}{more}",
                hint="give some more letters of the one you mean",
            )
        return found[0]

    async def about(self, row: SessionRow) -> SessionFacts:
        """Return the facts about a session. The first prompt replaces a missing title."""
        turns = await self._search.count(row.id, _PROMPTED)
        known = about(row, await self.store.state(row.id), self._engines.get(row.id, ()), turns)
        return known if row.title else _titled(known, await self._first_prompt(row.id))

    async def session(self, row: SessionRow) -> ExportedSession:
        """Return a session with its history."""
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
async def open_stored() -> AsyncIterator[StoredSessions]:
    """Open the stored sessions of this user. Without a database the list is empty, and no database is created."""
    database = open_database()
    try:
        if not database.path.exists():
            yield StoredSessions(database, (), {})
            return
        rows = [row async for row in _rows(SessionStore(database))]
        engines: dict[str, tuple[str, ...]] = {}
        for (engine, _), id in sorted((await EngineSessionStore(database).engine_sessions()).items()):
            engines[id] = (*engines.get(id, ()), engine)
        yield StoredSessions(database, rows, engines)
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


def _titled(known: SessionFacts, title: str | None) -> SessionFacts:
    import msgspec

    return msgspec.structs.replace(known, title=title)


# --- search ----------------------------------------------------------------------------------------------------------

MOST_HITS: Final = 3
"""Hits of one session that are shown: enough to recognise it."""

WINDOW: Final = 300
"""Letters of a line around a hit: a line of a model may be a page."""


class Hit(msgspec.Struct, frozen=True):
    """A line that contains one of the words, and its neighbours."""

    who: str
    line: str
    before: str = ""
    after: str = ""


def pattern_of(words: Sequence[str]) -> "re.Pattern[str]":
    """Return a pattern for any of these words, in any case."""
    longest_first = sorted(words, key=len, reverse=True)
    return re.compile("|".join(re.escape(word) for word in longest_first), re.IGNORECASE)


def hits_in(title: str, lines: Sequence[ExportedLine], words: Sequence[str]) -> list[Hit] | None:
    """Return lines with the words; None if not all words are there, empty if all are in the title."""
    missing = {word.casefold() for word in words}
    missing -= {word for word in missing if word in title.casefold()}
    pattern = pattern_of(words)
    found: list[Hit] = []
    for line in lines:
        if not isinstance(line.entry, Message | CallEntry):
            continue
        text = text_of(line)
        folded = text.casefold()
        missing -= {word for word in missing if word in folded}
        if len(found) < MOST_HITS and pattern.search(text):
            found += _hits(speaker(line), text, pattern)
    return None if missing else found[:MOST_HITS]


def _hits(speaker: str, text: str, pattern: "re.Pattern[str]") -> Iterator[Hit]:
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if found := pattern.search(line):
            begin = max(found.start() - WINDOW // 2, 0)
            shown = line[begin : begin + WINDOW]
            before, after = ([*lines[number - 1 : number]] if number else []), lines[number + 1 : number + 2]
            yield Hit(speaker, _one(shown, begin > 0), _one("".join(before)), _one("".join(after)))


def _one(line: str, cut: bool = False) -> str:
    return ("…" if cut else "") + one_line(line[:WINDOW])


class ListedSession(SessionFacts, frozen=True, rename="camel"):
    """A session as `--json` lists it."""

    open_in: "Holder | None" = None
    gateway: str | None = None
    """The name of the agent, if the gateway has stored the session and not the joint agent."""


class FoundSession(msgspec.Struct, frozen=True, rename="camel"):
    """A session that a search has found."""

    session: SessionFacts
    hits: "list[Hit]"
