"""The stored sessions of a gateway, read from its file beside the gateway that may be running. Changes nothing."""

import sqlite3
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection
from typing import Final

import msgspec

from antiphon.gateway.data import FILE_NAME
from antiphon.gateway.events import PROMPT, TURN, parse_event
from antiphon.rpc.envelope import BAD_INPUT
from antiphon.store.errors import StoreError

__all__ = ["StoredGatewaySession", "read_sessions", "with_turns"]

_BEGUN: Final = TURN + b"{"
"""How the event of a turn that begins looks at the start of a line."""


class StoredGatewaySession(msgspec.Struct, frozen=True):
    """A session as another command lists it."""

    key: str
    agent: str
    session_id: str
    cwd: str
    directories: tuple[str, ...]
    title: str
    created: float
    updated: float
    """Seconds since 1970 at the last turn."""
    turns: int = 0


_COLUMNS: Final = StoredGatewaySession.__struct_fields__[:-1]
_QUERY: Final = f"""
    SELECT {", ".join(_COLUMNS)} FROM session WHERE archived = 0 AND updated > 0 ORDER BY updated DESC, id DESC
"""  # noqa: S608


def read_sessions(directory: Path) -> list[StoredGatewaySession]:
    """Return the sessions of a data directory that had a turn, the last used first; none if no gateway has used it.

    Raises:
        StoreError: there is a file, and it cannot be read.
    """
    path = directory / FILE_NAME
    if not path.exists():
        return []
    try:
        with closing(_open(path)) as connection:
            return [_session(row) for row in connection.execute(_QUERY)]
    except (sqlite3.Error, msgspec.DecodeError, msgspec.ValidationError) as error:
        raise _unreadable(path, error) from error


def with_turns(directory: Path, sessions: list[StoredGatewaySession]) -> list[StoredGatewaySession]:
    """Return sessions with the number of their turns; the first prompt replaces a missing title.

    Raises:
        StoreError: their events cannot be read.
    """
    if not sessions:
        return []
    try:
        with closing(_open(directory / FILE_NAME)) as connection:
            return [_counted(connection, session) for session in sessions]
    except sqlite3.Error as error:
        raise _unreadable(directory / FILE_NAME, error) from error


def _open(path: Path) -> Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def _unreadable(path: Path, error: Exception) -> StoreError:
    return StoreError(
        f"the gateway's data in `{path}` cannot be read: {error}", hint="`antiphon serve status` says more"
    )


def _session(row: tuple[object, ...]) -> StoredGatewaySession:
    given = dict(zip(_COLUMNS, row, strict=True))
    given["directories"] = msgspec.json.decode(str(given["directories"]))
    return msgspec.convert(given, StoredGatewaySession)


def _counted(connection: Connection, session: StoredGatewaySession) -> StoredGatewaySession:
    query = "SELECT data FROM event WHERE session = (SELECT id FROM session WHERE key = ?) ORDER BY first"
    turns, title = 0, session.title
    for (data,) in connection.execute(query, (session.key,)):
        turns += data.count(b"\n" + _BEGUN) + data.startswith(_BEGUN)
        title = title or _first_prompt(data)
    return msgspec.structs.replace(session, turns=turns, title=title)


class _Content(msgspec.Struct):
    text: str = ""


class _Update(msgspec.Struct):
    content: _Content


class _Params(msgspec.Struct):
    update: _Update


class _Frame(msgspec.Struct):
    params: _Params


def _first_prompt(data: bytes) -> str:
    """Return the first line of the first text of a prompt in a run of events."""
    for event in data.split(b"\n"):
        if event.startswith(PROMPT):
            try:
                text = msgspec.json.decode(parse_event(event).frame, type=_Frame).params.update.content.text
            except BAD_INPUT:
                continue
            if text.strip():
                return text.strip().partition("\n")[0]
    return ""
