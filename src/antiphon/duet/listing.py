"""The list of sessions: ours and the engines' own, newest first, one row per conversation, page by page.

Every source has its own pages. A cursor of ours holds for each of them which page is being read and how many of its rows were shown.
"""

import asyncio
import base64
import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.agent.sessions import settle
from antiphon.duet.journal import OURS
from antiphon.errors import AcpError, Code, RequestError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.engines.base import Engine
    from antiphon.store.sessions import SessionRow, SessionStore

__all__ = ["PAGE", "list_sessions", "page_of"]

_log = logging.getLogger(__name__)

PAGE: Final = 50
"""Rows of a page."""

_MINE: Final = ""
"""Our own source's name; the others have their engines'."""


class _Mark(msgspec.Struct, array_like=True):
    """Where the reading of one source stands."""

    cursor: str | None = None
    """The page."""
    shown: int = 0
    """Rows of it that were shown, or passed over."""
    over: bool = False


class _Source:
    """One list, read as far as it is needed."""

    def __init__(self, name: str, mark: _Mark) -> None:
        self.name = name
        self.mark = mark
        self._rows: list[v1.SessionInfo] | None = None
        self._next: str | None = None

    async def head(self, read: "_Reader") -> v1.SessionInfo | None:
        """The next row; None: there is none."""
        while not self.mark.over:
            if self._rows is None:
                self._rows, self._next = await read(self.name, self.mark.cursor)
            if self.mark.shown < len(self._rows):
                return self._rows[self.mark.shown]
            if self._next is None:
                self.mark.over = True
            else:
                self.mark, self._rows = _Mark(self._next), None
        return None

    def step(self) -> None:
        """The row was taken."""
        self.mark.shown += 1


class _Reader:
    """Reads a page of a source. An engine that cannot list now is told of in the log, and the others are shown."""

    def __init__(self, query: v1.ListSessions, engines: "Mapping[str, Engine]", store: "SessionStore") -> None:
        self._query = query
        self._engines = engines
        self._store = store

    async def __call__(self, name: str, cursor: str | None) -> tuple[list[v1.SessionInfo], str | None]:
        if name == _MINE:
            rows, following = await self._store.list(OURS, self._query.cwd, cursor, PAGE)
            return [_row(row) for row in rows], following
        query = msgspec.structs.replace(self._query, cursor=cursor)
        try:
            page = await page_of(self._engines[name], query)
        except AcpError as error:
            _log.warning("the sessions of %s cannot be listed: %s", name, error)
            return [], None
        return list(page.sessions), page.next_cursor


async def page_of(engine: "Engine", query: v1.ListSessions) -> v1.ListSessionsResult:
    """A page of an engine's own list."""
    found: v1.ListSessionsResult | Iterable[v1.SessionInfo] = await settle(engine.list(query))
    return found if isinstance(found, v1.ListSessionsResult) else v1.ListSessionsResult([*found])


async def list_sessions(
    query: v1.ListSessions,
    engines: "Mapping[str, Engine]",
    store: "SessionStore",
    known: Mapping[tuple[str, str], str],
) -> v1.ListSessionsResult:
    """A page of all lists together. `known` are the conversations that belong to sessions of ours: those are one row, ours."""
    names = [_MINE, *(name for name, engine in engines.items() if engine.does("list") and not engine.keeps_with_us)]
    marks = _read_cursor(query.cursor)
    sources = [_Source(name, marks.get(name, _Mark())) for name in names]
    read = _Reader(query, engines, store)
    page: list[v1.SessionInfo] = []
    while len(page) < PAGE:
        heads = await asyncio.gather(*(source.head(read) for source in sources))
        found = [(head, source) for head, source in zip(heads, sources, strict=True) if head is not None]
        if not found:
            return v1.ListSessionsResult(page)
        head, source = max(found, key=lambda each: _time(each[0]))
        source.step()
        if source.name == _MINE:
            page.append(head)
        elif (source.name, head.session_id) not in known:
            page.append(_of_engine(head, source.name))
    heads = await asyncio.gather(*(source.head(read) for source in sources))
    more = any(head is not None for head in heads)
    return v1.ListSessionsResult(page, _cursor(sources) if more else None)


def _row(row: "SessionRow") -> v1.SessionInfo:
    return v1.SessionInfo(
        row.id, row.cwd, title=row.title, updated_at=row.updated_at, additional_directories=list(row.directories)
    )


def _of_engine(row: v1.SessionInfo, engine: str) -> v1.SessionInfo:
    return msgspec.structs.replace(row, meta={**(row.meta or {}), "antiphon": {"engine": engine}})


def _time(row: v1.SessionInfo) -> float:
    """When it was used last, as a number: engines write times in more than one way."""
    from datetime import UTC, datetime

    if not isinstance(row.updated_at, str):
        return 0.0
    try:
        at = datetime.fromisoformat(row.updated_at)
    except ValueError:
        return 0.0
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()


def _cursor(sources: list[_Source]) -> str:
    marks = {source.name: source.mark for source in sources}
    return base64.urlsafe_b64encode(msgspec.json.encode(marks)).decode()


def _read_cursor(cursor: str | None) -> dict[str, _Mark]:
    if cursor is None:
        return {}
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(cursor.encode()), type=dict[str, _Mark])
    except (ValueError, msgspec.DecodeError) as error:
        wrong = "this cursor is not one of ours: list again without a cursor"
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", wrong) from error
