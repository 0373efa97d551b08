"""The list of sessions: ours and the engines' own, newest first, one row per session, page by page.

Every source has its own pages. A cursor of ours holds for each of them which page is being read and which of its rows were shown: not how
many, because others use sessions while a user turns pages, and then rows come, go and move. It is smaller than the page that it is about.
"""

import asyncio
import base64
import hashlib
import logging
import math
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.aio import maybe_await
from antiphon.config.shapes import is_script
from antiphon.duet.history.writer import OURS
from antiphon.errors import AcpError, Code, RequestError, ResponseError
from antiphon.protocol import v1
from antiphon.store.errors import BadCursor

if TYPE_CHECKING:
    from antiphon.engines.base import Engine
    from antiphon.store.sessions import SessionRow, SessionStore

__all__ = ["PAGE", "has_session", "list_sessions", "normal_directory", "page_of"]


def normal_directory(cwd: str) -> str:
    """A directory as we compare and keep it: `/w/`, `/w/.` and `//w` are `/w`.

    Nothing is looked at: a directory may be a link, or gone, and `..` behind a link leads elsewhere, so both stay as they are.
    """
    parts = [part for part in cwd.split("/") if part not in ("", ".")]
    return f"/{'/'.join(parts)}" if cwd.startswith("/") else "/".join(parts) or cwd


_log = logging.getLogger(__name__)

PAGE: Final = 50
"""Rows of a page."""

MOST_PAGES: Final = 1000
"""Pages of one source. One that has more turns in a circle."""

UNIQUE: Final = 16
"""Characters of an id from which on no two sessions have the same by chance. Engines that count from one have shorter ones."""

_MINE: Final = ""
"""The name of our own source; the others are named by their engines."""


class _Mark(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """How far one source was read."""

    cursor: str | None = None
    """Cursor of the page."""
    passed: list[str] = []
    """Rows of the page that were shown or skipped, in short; and the last ones of the page before: they move here when others come,
    and another source may have them too."""
    turned: list[str] = []
    """The cursors so far, in short."""
    over: bool = False


class _Source:
    """The list of one source, read as far as it is needed."""

    def __init__(self, name: str, mark: _Mark) -> None:
        self.name = name
        self.mark = mark
        self._rows: list[v1.SessionInfo] | None = None
        self._next: str | None = None

    async def head(self, read: "_Reader") -> v1.SessionInfo | None:
        """The next row; None if there are no more."""
        while not self.mark.over:
            if self._rows is None:
                rows, self._next = await read(self.name, self.mark.cursor)
                self._rows = _not_yet(rows, self.mark.passed)
            if self._rows:
                return self._rows[-1]
            self._turn()
        return None

    def step(self, row: v1.SessionInfo) -> None:
        """Take the row."""
        if self._rows:
            self._rows.pop()
        self.mark.passed.append(_short(row.session_id))

    def _turn(self) -> None:
        following = _following(self._next, self.mark.turned, self.name)
        if following is None:
            self.mark = _Mark(passed=self.mark.passed[-PAGE:], over=True)
        else:
            self.mark, self._rows = _Mark(following, self.mark.passed[-PAGE:], self.mark.turned), None


def _not_yet(rows: list[v1.SessionInfo], passed: Iterable[str]) -> list[v1.SessionInfo]:
    """The rows that were not passed, each once, the next one last. Those without a time come after all others."""
    skipped = frozenset(passed)
    found = {row.session_id: row for row in reversed(rows) if _short(row.session_id) not in skipped}
    return sorted(found.values(), key=lambda row: math.isfinite(_time(row)))


def _following(cursor: str | None, turned: list[str], name: str) -> str | None:
    """The cursor of the next page, noted in `turned`; None after the last page. Some engines end with an empty cursor, some with none."""
    if not cursor:
        return None
    mark = _short(cursor)
    if mark in turned or len(turned) >= MOST_PAGES:
        _log.warning("the list of %s does not end: it is read no further", name)
        return None
    turned.append(mark)
    return cursor


def _short(name: str) -> str:
    return base64.b64encode(hashlib.blake2b(name.encode(), digest_size=6).digest()).decode()


class _Reader:
    """Reads a page of a source. That an engine cannot list now is logged, and the others are shown."""

    def __init__(
        self,
        query: v1.ListSessions,
        marks: Mapping[str, _Mark],
        engines: "Mapping[str, Engine]",
        store: "SessionStore",
    ) -> None:
        self._query = query
        self._given = {name: mark.cursor for name, mark in marks.items()}
        """Cursors that come from the client."""
        self._cwd = None if query.cwd is None else normal_directory(query.cwd)
        self._engines = engines
        self._store = store

    async def __call__(self, name: str, cursor: str | None) -> tuple[list[v1.SessionInfo], str | None]:
        if name == _MINE:
            try:
                rows, following = await self._store.list(OURS, self._cwd, cursor, PAGE)
            except BadCursor as error:
                raise _refused() from error
            return [_row(row) for row in rows], following
        query = msgspec.structs.replace(self._query, cwd=self._cwd, cursor=cursor)
        try:
            page = await page_of(self._engines[name], query)
        except AcpError as error:
            given = cursor is not None and cursor == self._given.get(name)
            if given and isinstance(error, ResponseError) and error.code == Code.INVALID_PARAMS:
                raise _refused() from error
            _log.warning("the sessions of %s cannot be listed: %s", name, error)
            return [], None
        return list(page.sessions), page.next_cursor


async def page_of(engine: "Engine", query: v1.ListSessions) -> v1.ListSessionsResult:
    """A page of an engine's own list."""
    found: v1.ListSessionsResult | Iterable[v1.SessionInfo] = await maybe_await(engine.list(query))
    return found if isinstance(found, v1.ListSessionsResult) else v1.ListSessionsResult([*found])


async def has_session(engine: "Engine", id: str) -> bool:
    """Whether a session is in an engine's own list."""
    if not engine.does("list") or engine.keeps_with_us:
        return False
    cursor: str | None = None
    turned: list[str] = []
    while True:
        try:
            page = await page_of(engine, v1.ListSessions(cursor=cursor))
        except AcpError as error:
            _log.warning("the sessions of %s cannot be listed: %s", engine.name, error)
            return False
        if any(row.session_id == id for row in page.sessions):
            return True
        cursor = _following(page.next_cursor, turned, engine.name)
        if cursor is None:
            return False


async def list_sessions(
    query: v1.ListSessions,
    engines: "Mapping[str, Engine]",
    store: "SessionStore",
    known: Mapping[tuple[str, str], str],
) -> v1.ListSessionsResult:
    """A page of all lists together. `known` are the engines' sessions that belong to joint sessions: each of those is one row, ours.

    An engine that is an ACP agent may list sessions that another engine has too, or have its own in our store: each is one row.

    Raises:
        RequestError: the cursor is not one of ours, or an engine no longer knows its own.
    """
    names = [_MINE, *(name for name, engine in engines.items() if engine.does("list") and not engine.keeps_with_us)]
    marks = _read_cursor(query.cursor)
    sources = [_Source(name, marks.get(name, _Mark())) for name in names]
    read = _Reader(query, marks, engines, store)
    owners: dict[str, set[str]] = {}
    for (_, engine_session), owner in known.items():
        owners.setdefault(engine_session, set()).add(owner)
    page: list[v1.SessionInfo] = []
    while len(page) < PAGE:
        heads = await asyncio.gather(*(source.head(read) for source in sources))
        found = [(head, source) for head, source in zip(heads, sources, strict=True) if head is not None]
        if not found:
            return v1.ListSessionsResult(page)
        head, source = max(found, key=lambda each: _time(each[0]))
        source.step(head)
        if (source.name, head.session_id) not in known and _is_new(head.session_id, source, sources, owners):
            page.append(head if source.name == _MINE else _of_engine(head, source.name))
    heads = await asyncio.gather(*(source.head(read) for source in sources))
    more = any(head is not None for head in heads)
    return v1.ListSessionsResult(page, _cursor(sources) if more else None)


def _is_new(id: str, source: _Source, sources: Iterable[_Source], owners: Mapping[str, Collection[str]]) -> bool:
    """Whether a session of a source gets a row, by its id alone: not if another source had it, or it is a part of a joint session.

    A joint session may have the id of its part: it was an engine's before it became one of ours.
    """
    if len(id) < UNIQUE:
        return True
    if id in owners:
        return source.name == _MINE and id in owners[id]
    short = _short(id)
    return not any(short in other.mark.passed for other in sources if other is not source)


def _row(row: "SessionRow") -> v1.SessionInfo:
    made = {"client": row.client} if row.client else {}
    marks = {**made, "script": True} if is_script(row.client) else made
    return v1.SessionInfo(
        row.id,
        row.cwd,
        title=row.title,
        updated_at=row.updated_at,
        additional_directories=list(row.directories),
        meta={"antiphon": marks} if marks else None,
    )


def _of_engine(row: v1.SessionInfo, engine: str) -> v1.SessionInfo:
    return msgspec.structs.replace(row, meta={**(row.meta or {}), "antiphon": {"engine": engine}})


def _time(row: v1.SessionInfo) -> float:
    """When it was used last, as a number: engines write times in more than one way. Below all numbers if it is not known."""
    from datetime import UTC, datetime

    if not isinstance(row.updated_at, str):
        return -math.inf
    try:
        at = datetime.fromisoformat(row.updated_at)
    except ValueError:
        return -math.inf
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()


def _cursor(sources: list[_Source]) -> str:
    marks = {source.name: source.mark for source in sources}
    return base64.urlsafe_b64encode(msgspec.json.encode(marks)).decode()


def _read_cursor(cursor: str | None) -> dict[str, _Mark]:
    if cursor is None:
        return {}
    try:
        marks = msgspec.json.decode(base64.urlsafe_b64decode(cursor.encode()), type=dict[str, _Mark])
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        raise _refused() from error
    if _MINE not in marks:
        raise _refused()
    return marks


def _refused() -> RequestError:
    wrong = "this cursor is not one of ours, or too old"
    return RequestError(Code.INVALID_PARAMS, "Invalid params", wrong, hint="list again without a cursor")
