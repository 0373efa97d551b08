"""`antiphon sessions`: the conversations with the joint agent, looked at from outside: listed, shown, searched, exported, deleted, resumed."""

import argparse
import asyncio
import os
from typing import Final

from antiphon.cli.arguments import Options
from antiphon.cli.grammar import Parser, count
from antiphon.cli.saying import Misused, did_you_mean, manner

__all__ = ["parser", "run"]

FORMATS: Final = ("markdown", "json", "html")
_UNLESS_SAID: Final = argparse.SUPPRESS
"""The default of options that may stand before the command as well: what was said there holds."""

EPILOG: Final = """\
Without a command: the sessions of this directory. ID is what the list shows, any beginning of an id that only one session has, or
`last` for the session that was used last in this directory.

  antiphon sessions --all
  antiphon sessions show last
  antiphon sessions search "rate limit"
  antiphon sessions export last -o talk.html
  antiphon sessions resume last
"""


def parser() -> argparse.ArgumentParser:
    """The command line, also for shell completion."""
    top = Parser(
        prog="antiphon sessions",
        description="List, search and export the saved sessions of `antiphon agent`, and go on with one.",
        epilog=EPILOG,
    )
    _add_list(top)
    commands = top.add_subparsers()
    listed = commands.add_parser("list", help="the sessions there are, the last used first")
    _add_list(listed, _UNLESS_SAID)

    show = commands.add_parser("show", help="what was said in a session, as Markdown")
    show.add_argument("id", metavar="ID", help="which one")
    form = show.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="as Markdown (default)")
    form.add_argument("--json", action="store_true", default=_UNLESS_SAID, help="as one JSON object, with everything")
    show.add_argument("--thoughts", action="store_true", help="with what the agents thought")
    calls = argparse.BooleanOptionalAction
    show.add_argument("--calls", action=calls, default=True, help="with or without what the agents did (default: with)")

    search = commands.add_parser("search", help="find sessions by what was said in them")
    search.add_argument("words", metavar="WORD", nargs="+", help="all of them have to be in it; case does not count")
    search.add_argument(
        "--all", action="store_true", default=_UNLESS_SAID, help="in every directory (default: in this one)"
    )
    search.add_argument("--json", action="store_true", default=_UNLESS_SAID, help="one JSON object per line")

    export = commands.add_parser("export", help="a session as a file: Markdown, JSON or HTML")
    export.add_argument("id", metavar="ID", help="which one")
    export.add_argument("-o", "--output", metavar="FILE", help="where to write (default: stdout)")
    export.add_argument(
        "--format", choices=FORMATS, help="the format (default: by the end of FILE's name, else markdown)"
    )

    delete = commands.add_parser("delete", help="forget sessions")
    delete.add_argument("ids", metavar="ID", nargs="+", help="which ones")
    delete.add_argument("-y", "--yes", action="store_true", help="do not ask")

    resume = commands.add_parser(
        "resume",
        usage="antiphon sessions resume ID [OPTIONS OF CHAT]",
        help="go on with a session in `antiphon chat`",
    )
    resume.add_argument("id", metavar="ID", help="which one")
    resume.add_argument("chat", metavar="OPTIONS", nargs=argparse.REMAINDER, help="options of `antiphon chat`")
    return top


def _add_list(words: argparse.ArgumentParser, default: str | None = None) -> None:
    where = words.add_mutually_exclusive_group()
    where.add_argument("--all", action="store_true", default=default, help="of every directory (default: of this one)")
    where.add_argument("--cwd", metavar="DIR", default=default, help="of this directory")
    made = words.add_mutually_exclusive_group()
    made.add_argument(
        "--from",
        metavar="CLIENT",
        dest="client",
        default=default,
        help="made by this client, such as zed or antiphon-run",
    )
    made.add_argument(
        "--no-scripts",
        action="store_true",
        default=default,
        help="without those that `antiphon run` and other scripts made",
    )
    words.add_argument("--limit", metavar="N", type=count, default=default, help="how many (default: 20)")
    words.add_argument("--json", action="store_true", default=default, help="one JSON object per line")


def run(arguments: list[str]) -> int:
    """Do one of these commands."""
    options = parser().parse_args(arguments)
    if options.command == "resume":
        return _resume(options.id, options.chat)
    return asyncio.run(_do(options))


async def _do(options: argparse.Namespace) -> int:
    from antiphon.cli import sessions_doing as doing

    match options.command:
        case "show":
            if options.json:
                return await doing.export(options.id, None, "line")
            return await doing.show(options.id, thoughts=options.thoughts, calls=options.calls)
        case "search":
            return await doing.search(options.words, everywhere=options.all, as_json=options.json)
        case "export":
            return await doing.export(options.id, options.output, options.format or _format(options.output))
        case "delete":
            return await doing.delete(options.ids, yes=options.yes)
        case _:
            limit = 20 if options.limit is None else options.limit
            folder = None if options.all else _folder(options.cwd)
            which = doing.Which(folder, options.client, scripts=not options.no_scripts)
            return await doing.show_list(which, limit=limit, as_json=options.json)


def _resume(word: str, rest: list[str]) -> int:
    """Open the chat on a session. Whoever else has it open is told before anything is started."""
    from antiphon.cli import chat
    from antiphon.cli.sessions_doing import to_resume

    Options.read(chat.parser(), rest)  # what is wrong with them is told first
    manner.prog = "antiphon sessions resume"
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
        raise Misused(f"`{path}` does not say in which format", hint=f"{meant}give --format {', '.join(FORMATS)}")
    return known[ending]
