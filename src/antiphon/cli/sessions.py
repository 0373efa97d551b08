"""`antiphon sessions`: list, show, search, export, delete and resume the stored sessions of the joint agent."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.cli.arguments import Options, Parser, count
from antiphon.cli.outcome import FAILED, Misused, did_you_mean, invocation
from antiphon.errors import AcpError

if TYPE_CHECKING:
    import re

    from antiphon.export.stored import Hit, ListedSession, StoredSessions
    from antiphon.gateway.stored_sessions import StoredGatewaySession
    from antiphon.store.locks import SessionLock
    from antiphon.store.sessions import SessionRow
    from antiphon.text import Paint

__all__ = ["SessionFilter", "delete", "export", "parser", "run", "search", "show", "show_list", "to_resume"]

FORMATS: Final = ("markdown", "json", "html")
_UNLESS_GIVEN: Final = argparse.SUPPRESS
"""The default of options that may stand before the command as well: a value given there holds."""

EPILOG: Final = """\
Without a command the sessions of this directory are listed, and those of other agents that the gateway has stored, marked `gateway:`.
ID is an id of that list, its first letters, or `last` for the session that was used last in this directory.

  antiphon sessions --all
  antiphon sessions show last
  antiphon sessions search "rate limit"
  antiphon sessions export last -o session.html
  antiphon sessions resume last
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    top = Parser(
        prog="antiphon sessions",
        description="List, search, export and resume the saved sessions of `antiphon agent`.",
        epilog=EPILOG,
    )
    _add_list(top)
    commands = top.add_subparsers()
    listed = commands.add_parser("list", help="list sessions, the last used first")
    _add_list(listed, _UNLESS_GIVEN)

    show = commands.add_parser("show", help="print a session as Markdown")
    show.add_argument("id", metavar="ID", help="the session")
    form = show.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="as Markdown (default)")
    form.add_argument("--json", action="store_true", default=_UNLESS_GIVEN, help="as one JSON object, with everything")
    show.add_argument("--thoughts", action="store_true", help="include thoughts")
    calls = argparse.BooleanOptionalAction
    show.add_argument("--calls", action=calls, default=True, help="include tool calls (default) or not")

    search = commands.add_parser("search", help="find sessions that contain some words")
    search.add_argument(
        "words", metavar="WORD", nargs="+", help="a word to find; all have to be in the session, case is ignored"
    )
    search.add_argument(
        "--all", action="store_true", default=_UNLESS_GIVEN, help="search all directories (default: this one)"
    )
    search.add_argument("--json", action="store_true", default=_UNLESS_GIVEN, help="one JSON object per line")

    export = commands.add_parser("export", help="write a session as Markdown, JSON or HTML")
    export.add_argument("id", metavar="ID", help="the session")
    export.add_argument("-o", "--output", metavar="FILE", help="the file to write (default: stdout)")
    export.add_argument(
        "--format", choices=FORMATS, help="the format (default: by the extension of FILE, else markdown)"
    )

    delete = commands.add_parser("delete", help="delete sessions")
    delete.add_argument("ids", metavar="ID", nargs="+", help="the sessions")
    delete.add_argument("-y", "--yes", action="store_true", help="do not ask")

    resume = commands.add_parser(
        "resume",
        usage="antiphon sessions resume ID [OPTIONS OF CHAT]",
        help="continue a session in `antiphon chat`",
    )
    resume.add_argument("id", metavar="ID", help="the session")
    resume.add_argument("chat", metavar="OPTIONS", nargs=argparse.REMAINDER, help="options of `antiphon chat`")
    return top


def _add_list(words: argparse.ArgumentParser, default: str | None = None) -> None:
    where = words.add_mutually_exclusive_group()
    where.add_argument(
        "--all", action="store_true", default=default, help="sessions of all directories (default: of this one)"
    )
    where.add_argument("--cwd", metavar="DIR", default=default, help="sessions of this directory")
    made = words.add_mutually_exclusive_group()
    made.add_argument(
        "--from",
        metavar="CLIENT",
        dest="client",
        default=default,
        help="only those made by this client, such as zed or antiphon-run",
    )
    made.add_argument(
        "--no-scripts",
        action="store_true",
        default=default,
        help="without those made by `antiphon run` and other scripts",
    )
    words.add_argument("--limit", metavar="N", type=count, default=default, help="how many to list (default: 20)")
    words.add_argument("--json", action="store_true", default=default, help="one JSON object per line")


def run(arguments: list[str]) -> int:
    """Run the subcommand that the arguments name, and return the exit status."""
    options = parser().parse_args(arguments)
    if options.command == "resume":
        return _resume(options.id, options.chat)
    return asyncio.run(_do(options))


async def _do(options: argparse.Namespace) -> int:
    match options.command:
        case "show":
            if options.json:
                return await export(options.id, None, "line")
            return await show(options.id, thoughts=options.thoughts, calls=options.calls)
        case "search":
            return await search(options.words, everywhere=options.all, as_json=options.json)
        case "export":
            return await export(options.id, options.output, options.format or _format(options.output))
        case "delete":
            return await delete(options.ids, yes=options.yes)
        case _:
            limit = 20 if options.limit is None else options.limit
            folder = None if options.all else _folder(options.cwd)
            which = SessionFilter(folder, options.client, scripts=not options.no_scripts)
            return await show_list(which, limit=limit, as_json=options.json)


def _resume(word: str, rest: list[str]) -> int:
    """Open the chat on a session. If it is open elsewhere, the error comes before anything is started."""
    from antiphon.cli import chat

    Options.read(chat.parser(), rest)  # report mistakes in them first
    invocation.prog = "antiphon sessions resume"
    row = asyncio.run(to_resume(word))
    return chat.run(["--agent", row.engine, "--cwd", row.cwd, "--resume", row.id, *rest])


def _folder(given: str | None) -> str:
    folder = os.path.abspath(os.path.expanduser(given or "."))
    if not os.path.isdir(folder):
        raise Misused(f"there is no directory `{given}`")
    return folder


def _format(path: str | None) -> str:
    ending = os.path.splitext(path or "")[1].lower()
    known = {
        ".md": "markdown",
        ".markdown": "markdown",
        ".json": "json",
        ".html": "html",
        ".htm": "html",
        "": "markdown",
    }
    if ending not in known:
        meant = did_you_mean(ending, (each for each in known if each))
        raise Misused(
            f"`{path}` has no extension that names a format", hint=f"{meant}give --format {', '.join(FORMATS)}"
        )
    return known[ending]


# --- the subcommands -------------------------------------------------------------------------------------------------


class SessionFilter(msgspec.Struct, frozen=True):
    """The sessions to list."""

    folder: str | None
    """Sessions of this directory only; None: of all."""
    client: str | None = None
    """Made by this client; None: by any."""
    scripts: bool = True
    """Also sessions that scripts made."""

    def has(self, row: "SessionRow") -> bool:
        """Whether a session made by this client is listed."""

        from antiphon.config.shapes import is_script

        made = self.client is None or row.client.lower() == self.client.lower()
        return made and (self.scripts or not is_script(row.client))


async def show_list(which: SessionFilter, *, limit: int, as_json: bool) -> int:
    """List the sessions of a directory, or of all."""

    from antiphon.cli.terminal import stdout_paint
    from antiphon.client.agent import shortened
    from antiphon.config.directories import state_dir
    from antiphon.export.stored import ListedSession, open_stored
    from antiphon.gateway.data import data_directory
    from antiphon.gateway.stored_sessions import with_turns
    from antiphon.store.locks import holder
    from antiphon.text import table

    folder = which.folder
    async with open_stored() as stored:
        every = list(stored.rows) if folder is None else stored.in_directory(folder)
        rows = [row for row in every if which.has(row)]
        joint = [await stored.about(row) for row in rows[:limit]]
    # Which client made a session is not stored in the gateway.
    behind = _behind_gateway({row.id for row in stored.rows}, folder) if which.client is None else []
    shown = [ListedSession(**msgspec.structs.asdict(about), open_in=holder(state_dir(), about.id)) for about in joint]
    shown = sorted(
        [*shown, *map(_listed, with_turns(data_directory(), behind[:limit]))],
        key=lambda each: each.updated_at,
        reverse=True,
    )[:limit]
    if as_json:
        sys.stdout.write("".join(f"{msgspec.json.encode(each).decode()}\n" for each in shown))
    if not shown:
        there = len(stored.rows) - len(every)
        elsewhere = f"; {there} elsewhere: `antiphon sessions --all` lists them" if there else ""
        otherwise = f"; {len(every)} made otherwise" if every else ""
        here = "" if folder is None else " in this directory"
        sys.stderr.write(f"there is no {'such ' if every else ''}session{here} yet{otherwise}{elsewhere}\n")
    if as_json or not shown:
        return 0
    paint = stdout_paint()
    names = shortened([*(row.id for row in stored.rows), *(each.session_id for each in behind)])
    cells = [_cells(names[about.id], about, everywhere=folder is None) for about in shown]
    header = ("ID", "USED", "TURNS", "ROUTE", "FROM", "TITLE", *(("FOLDER",) if folder is None else ()), "OPEN IN")
    styles = ("cyan", "", "", "", "dim", "", *(("",) if folder is None else ()), "green")
    if not any(about.open_in for about in shown):
        header, styles, cells = header[:-1], styles[:-1], [row[:-1] for row in cells]
    title = header.index("TITLE")
    if not any(about.client for about in shown):
        header, styles, title = (
            (*header[: title - 1], *header[title:]),
            (*styles[: title - 1], *styles[title:]),
            title - 1,
        )
        cells = [(*row[:title], *row[title + 1 :]) for row in cells]
    lines = table(header, cells, styles, title, paint)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if (total := len(rows) + len(behind)) > limit:
        sys.stderr.write(f"… and {total - limit} more: --limit shows more\n")
    if any(about.gateway for about in shown):
        sys.stderr.write("those with `gateway:` are stored by the gateway: see `antiphon serve sessions`\n")
    return 0


def _behind_gateway(known: set[str], folder: str | None = None) -> "list[StoredGatewaySession]":
    """Return the sessions that the gateway of this user has stored. One that the joint agent has stored too is known already."""

    from antiphon.gateway.data import data_directory
    from antiphon.gateway.stored_sessions import read_sessions

    try:
        found = [each for each in read_sessions(data_directory()) if each.session_id not in known]
    except AcpError as error:
        sys.stderr.write(f"{error}\n")
        return []
    real = None if folder is None else os.path.realpath(folder)
    return [each for each in found if real in (None, os.path.realpath(each.cwd))]


def _listed(session: "StoredGatewaySession") -> "ListedSession":
    from antiphon.export.stored import ListedSession
    from antiphon.store.database import stamp

    return ListedSession(
        id=session.session_id,
        title=session.title or None,
        cwd=session.cwd,
        directories=session.directories,
        created_at=stamp(datetime.fromtimestamp(session.created, UTC)),
        updated_at=stamp(datetime.fromtimestamp(session.updated, UTC)),
        route=None,
        engines=(),
        turns=session.turns,
        gateway=session.agent,
    )


def _find(stored: "StoredSessions", word: str) -> "SessionRow":
    """Return a session of the joint agent.

    Raises:
        SessionNotFound: there is none; the hint says who has stored the one that the list has.
    """
    from antiphon.export.stored import SessionNotFound
    from antiphon.text import prose

    try:
        return stored.find(word)
    except SessionNotFound as error:
        if not any(word and each.session_id.startswith(word) for each in _behind_gateway(set())):
            raise
        raise SessionNotFound(
            f"`{prose(word)}` is a session of the gateway",
            hint="`antiphon serve sessions` has it; `antiphon chat --agent URL` continues it",
        ) from error


def _cells(name: str, about: "ListedSession", *, everywhere: bool) -> tuple[str, ...]:
    from antiphon.text import exact_line, one_line

    home = os.path.expanduser("~")
    folder = f"~{about.cwd.removeprefix(home)}" if about.cwd == home or about.cwd.startswith(f"{home}/") else about.cwd
    route = f"gateway: {about.gateway}" if about.gateway else about.route or "+".join(about.engines)
    live = "" if about.open_in is None else str(about.open_in) or "another Antiphon"
    made = "script" if about.script else about.client or ""
    cells = [name, ago(about.updated_at), str(about.turns), route, made, about.title or ""]
    cells += [folder] if everywhere else []
    return (*(one_line(cell) or "-" for cell in cells), exact_line(live))


async def show(word: str, *, thoughts: bool, calls: bool) -> int:
    """Print a session as Markdown."""

    from antiphon.export.markdown import markdown
    from antiphon.export.stored import open_stored

    async with open_stored() as stored:
        session = await stored.session(_find(stored, word))
    _write(markdown(session, thoughts=thoughts, calls=calls).encode("utf-8", "replace"))
    return 0


async def export(word: str, path: str | None, form: str) -> int:
    """Write the whole session to a file or to stdout."""

    from antiphon.export.stored import open_stored

    async with open_stored() as stored:
        session = await stored.session(_find(stored, word))
    match form:
        case "json" | "line":
            from antiphon.export.json import document

            data = document(session, indent=2 if form == "json" else -1)
        case "html":
            from antiphon.export.html import page

            data = page(session).encode("utf-8", "replace")
        case _:
            from antiphon.export.markdown import markdown

            data = markdown(session, thoughts=True).encode("utf-8", "replace")
    if path is None or path == "-":
        _write(data)
        return 0
    return _save(path, data)


def _save(path: str, data: bytes) -> int:
    from antiphon.config.directories import private_opener
    from antiphon.text import prose

    try:
        with open(os.path.expanduser(path), "wb", opener=private_opener) as file:
            file.write(data)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Misused(f"`{path}` cannot be written: there is no such directory", hint="give another FILE") from error
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise AcpError(f"`{path}` cannot be written: {why}", hint="give another FILE") from error
    sys.stderr.write(f"wrote {prose(path)}\n")
    return 0


async def search(words: Sequence[str], *, everywhere: bool, as_json: bool) -> int:
    """Print the sessions that contain all of these words, as they are found."""

    from antiphon.cli.terminal import stdout_paint
    from antiphon.export.stored import FoundSession, hits_in, open_stored, pattern_of
    from antiphon.text import one_line

    wanted = [word for word in words if word.strip()]
    if not wanted:
        raise Misused("WORD is missing")
    paint, found, pattern = stdout_paint(), 0, pattern_of(wanted)
    async with open_stored() as stored:
        for row in stored.rows if everywhere else stored.in_directory(os.getcwd()):
            session = await stored.session(row)
            hits = hits_in(session.about.title or "", session.lines, wanted)
            if hits is None:
                continue
            if as_json:
                sys.stdout.write(f"{msgspec.json.encode(FoundSession(session.about, hits)).decode()}\n")
            else:
                gap = "\n" if found else ""
                head = f"{stored.short(row.id)}  {one_line(session.about.title or '-')}"
                tail = f"  {ago(row.updated_at)}{f'  {one_line(row.cwd)}' if everywhere else ''}"
                sys.stdout.write(f"{gap}{paint(paint.fit(head, beside=tail), 'bold')}{tail}\n")
                sys.stdout.write("".join(f"{line}\n" for hit in hits for line in _hit(hit, pattern, paint)))
            sys.stdout.flush()
            found += 1
    if not found:
        elsewhere = "" if everywhere else " in this directory; --all looks in every one"
        sys.stderr.write(f"no session has that{elsewhere}\n")
    return 0


def _hit(hit: "Hit", pattern: "re.Pattern[str]", paint: "Paint") -> list[str]:
    lines = []
    if hit.before:
        lines.append(paint(paint.fit(f"    {hit.before}"), "dim"))
    line = paint.fit(f"  {hit.who}: {hit.line}")
    head = len(hit.who) + 4
    marked = pattern.sub(lambda match: paint(match.group(), "yellow"), line[head:])
    lines.append(line[:head] + marked)
    if hit.after:
        lines.append(paint(paint.fit(f"    {hit.after}"), "dim"))
    return lines


async def delete(words: Sequence[str], *, yes: bool) -> int:
    """Delete sessions; none of them if one is open somewhere."""

    from antiphon.export.stored import open_stored

    async with open_stored() as stored:
        rows = list({row.id: row for row in (_find(stored, word) for word in words)}.values())
        with ExitStack() as locks:
            for row in rows:
                locks.enter_context(_taken(row))
            if not yes and not await _agreed(stored, rows):
                return FAILED
            for row in rows:
                await stored.store.delete(row.id)
    sys.stderr.write(
        f"deleted {len(rows)} session{'' if len(rows) == 1 else 's'}; the engines' own histories were not touched:"
        " `claude` and `codex` keep theirs\n"
    )
    return 0


async def _agreed(stored: "StoredSessions", rows: "Sequence[SessionRow]") -> bool:
    from antiphon.cli.terminal import Screen, confirm

    screen = Screen()
    for row in rows:
        about = await stored.about(row)
        turns = f"{about.turns} turn{'' if about.turns == 1 else 's'}"
        screen.note(f"{stored.short(row.id)}  {about.title or '-'} ({turns}, {ago(row.updated_at)}, {row.cwd})")
    question = f"Delete {'it' if len(rows) == 1 else f'these {len(rows)}'}?"
    return confirm(screen, question, nothing="nothing was deleted", otherwise="--yes deletes")


def _taken(row: "SessionRow") -> "SessionLock":
    from antiphon.config.directories import state_dir
    from antiphon.store.locks import LiveElsewhere, SessionLock

    try:
        return SessionLock.take(state_dir(), row.id, "antiphon sessions delete")
    except LiveElsewhere as error:
        raise AcpError(f"{str(error).partition(chr(10))[0]}", hint="close it there first") from error


async def to_resume(word: str) -> "SessionRow":
    """Return the session to resume.

    Raises:
        AcpError: there is no such session, or another process has it open.
    """

    from antiphon.config.directories import state_dir
    from antiphon.export.stored import open_stored
    from antiphon.store.locks import LiveElsewhere, holder

    async with open_stored() as stored:
        row = _find(stored, word)
    owner = holder(state_dir(), row.id)
    if owner is not None:
        raise LiveElsewhere(row.id, owner)
    return row


def _write(data: bytes) -> None:
    """Write bytes to stdout, whatever its encoding is."""
    sys.stdout.flush()
    if (raw := getattr(sys.stdout, "buffer", None)) is None:
        sys.stdout.write(data.decode())
        return
    raw.write(data)
    raw.flush()


def ago(stored: str, now: datetime | None = None) -> str:
    """Return a stored time as people write it: `3 days ago`."""
    try:
        then = datetime.fromisoformat(stored)
    except ValueError:
        return stored
    seconds = ((now or datetime.now(UTC)) - then).total_seconds()
    for limit, unit, word in ((90, 1, ""), (5400, 60, "min"), (129600, 3600, "h"), (30 * 86400, 86400, "days")):
        if seconds < limit:
            return f"{round(seconds / unit)} {word} ago" if word else "just now"
    return f"{then.astimezone():%Y-%m-%d}"
