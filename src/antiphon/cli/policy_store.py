"""`antiphon policy` and the store: remembered answers, the audit, trusted projects."""

import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import msgspec

from antiphon.cli.saying import Misused
from antiphon.config.project_files import NAMES, directories_above
from antiphon.config.settings import find
from antiphon.permission.project_trust import trust_project
from antiphon.store.database import Database
from antiphon.store.decisions import AuditEntry, AuditStore, Decision, DecisionStore, TrustStore
from antiphon.store.schema import open_database
from antiphon.text import exact_line, prose

__all__ = ["distrust", "revoke", "show_decisions", "show_log", "show_trusted", "trust"]

Row = TypeVar("Row", bound=msgspec.Struct)


@asynccontextmanager
async def _opened() -> AsyncIterator[Database | None]:
    """The database, or None if there is none yet: to look is not to make a file."""
    database = open_database()
    try:
        yield database if database.path.exists() else None
    finally:
        await database.close()


async def show_decisions(*, as_json: bool) -> int:
    """What is remembered."""
    async with _opened() as database:
        found = [] if database is None else await DecisionStore(database).all()
    header = ("ID", "VERDICT", "RULE", "HOLDS IN", "MADE", "UNTIL")
    return _list(found, header, _decision, "nothing is remembered", as_json=as_json)


def _decision(row: Decision) -> tuple[str, ...]:
    where = {"session": f"session {row.session_id} of {row.agent}", "project": row.project}.get(row.scope, row.scope)
    return str(row.id), row.verdict, row.rule, where, _time(row.made_at), _time(row.expires_at or "")


async def revoke(which: str | None) -> int:
    """Forget one answer, all of a rule, or (None) all."""
    gone = 0
    async with _opened() as database:
        if database is not None:
            store = DecisionStore(database)
            number = int(which) if which is not None and which.isascii() and which.isdigit() else which
            gone = await (store.revoke_all() if number is None else store.revoke(number))
    if gone == 0 and which is not None:
        raise Misused(f"nothing is remembered as `{which}`", hint="`antiphon policy list` shows what is")
    sys.stderr.write(f"forgot {gone} answer{'' if gone == 1 else 's'}\n")
    return 0


async def show_log(limit: int, session_id: str | None, *, as_json: bool) -> int:
    """What was decided."""
    async with _opened() as database:
        found = [] if database is None else await AuditStore(database).latest(limit, session_id=session_id)
    header = ("TIME", "AGENT", "VERDICT", "TOOL", "SUBJECT", "BY")
    return _list(found, header, _entry, "nothing was decided yet", as_json=as_json)


def _entry(row: AuditEntry) -> tuple[str, ...]:
    by = f"{row.source}: {row.rule}" if row.rule else row.source
    return _time(row.at), row.agent, row.verdict, row.tool or row.kind, row.subject, by


async def show_trusted() -> int:
    """Show which projects and files are trusted."""
    async with _opened() as database:
        store = None if database is None else TrustStore(database)
        found = [] if store is None else [*await store.all(), *await store.files()]
    _table(("PROJECT", "SINCE"), [(row.project, _time(row.trusted_at)) for row in found], "no project is trusted")
    return 0


async def trust(directory: str) -> int:
    """Trust what the project says as it is now: its config file, and what engines read from it."""
    trusted = await trust_project([_folder(directory)])
    for path in trusted:
        sys.stderr.write(f"trusted {prose(path)} as it is now\n")
    sys.stderr.write("hint: what changes has to be trusted again; `antiphon policy distrust` takes it back\n")
    return 0


async def distrust(directory: str) -> int:
    """Trust it no longer, also what is gone from it."""
    folder = _folder(directory)
    project = str(find(folder).directory or folder)
    above = set(directories_above(folder))
    async with _opened() as database:
        known = False
        if database is not None:
            store = TrustStore(database)
            files = [row.project for row in await store.files() if _is_of(row.project, project, above)]
            gone = await store.distrust_files(files)
            known = await store.distrust(project) or gone > 0
    if not known:
        raise Misused(f"`{project}` is not trusted", hint="`antiphon policy trust --list` shows what is")
    sys.stderr.write(f"{prose(project)} is trusted no longer\n")
    return 0


def _is_of(path: str, project: str, above: set[str]) -> bool:
    """Whether a trusted file is in a project, or in a directory above it, from where engines read too."""
    if path.startswith(f"{project.rstrip('/')}/"):
        return True
    return any(
        path == os.path.join(top, name) or path.startswith(f"{os.path.join(top, name)}/")
        for top in above
        for name in NAMES
    )


def _folder(directory: str) -> str:
    folder = os.path.realpath(os.path.expanduser(directory))
    if not os.path.isdir(folder):
        raise Misused(f"there is no directory `{directory}`")
    return folder


def _list(
    rows: Sequence[Row],
    header: tuple[str, ...],
    cells: Callable[[Row], tuple[str, ...]],
    otherwise: str,
    *,
    as_json: bool,
) -> int:
    """Print a line for each row. An empty list is a word on stderr, in either form."""
    if as_json and rows:
        sys.stdout.write("".join(msgspec.json.encode(row).decode() + "\n" for row in rows))
    else:
        _table(header, [cells(row) for row in rows], otherwise)
    return 0


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]], otherwise: str) -> None:
    if not rows:
        sys.stderr.write(f"{otherwise}\n")
        return
    every = [header, *(tuple(exact_line(cell) or "-" for cell in row) for row in rows)]
    widths = [max(len(row[column]) for row in every) for column in range(len(header) - 1)]
    for row in every:
        cells = [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def _time(stored: str) -> str:
    """To the second: nobody reads microseconds."""
    return f"{stored[:19]}Z" if stored else ""
