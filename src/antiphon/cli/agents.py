"""`antiphon agents`: which agents there are, what one can do, and agents of the user's own."""

import argparse
import asyncio
import os
import sys
from typing import TYPE_CHECKING, Final

from antiphon.catalogue import fetching
from antiphon.catalogue.finding import names
from antiphon.catalogue.registry import Registry, RegistryProblem
from antiphon.cli.grammar import Parser, duration, shown_time, split_command
from antiphon.cli.here import tell
from antiphon.cli.saying import Misused
from antiphon.permission.settings import settings_here
from antiphon.text import prose

if TYPE_CHECKING:
    from antiphon.config.settings import Loaded

__all__ = ["parser", "run"]

CHECK_LIMIT: Final = 60.0
"""Seconds for a handshake, unless told otherwise: the first start of some agents is a download."""

EPILOG: Final = """\
Without a command: every agent there is, whether it was found here, its version, and how it is started or how to get it. `on demand` means
that a runner (npx, uvx) downloads it when it is first started. Nothing is fetched unless you ask for it.
"""


def parser() -> argparse.ArgumentParser:
    """The command line, also for shell completion."""
    top = Parser(
        prog="antiphon agents",
        description="List, check and add agents.",
        epilog=EPILOG,
    )
    form = top.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object per line")
    form.add_argument("--names", action="store_true", help="only the names, one per line; nothing is looked for")
    commands = top.add_subparsers()

    check = commands.add_parser("check", help="start an agent, and print what it can do")
    check.add_argument("agent", metavar="AGENT", help="its name")
    check.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="as one JSON object")
    check.add_argument(
        "--timeout",
        metavar="TIME",
        type=duration,
        default=CHECK_LIMIT,
        help=f"how long to wait (default: {shown_time(CHECK_LIMIT)})",
    )

    add = commands.add_parser(
        "add",
        usage="antiphon agents add [OPTIONS] NAME -- PROGRAM [ARGUMENT …]",
        help="add an agent of your own to the config file",
    )
    add.add_argument("name", metavar="NAME", help="how it is called; a known name then means this command")

    remove = commands.add_parser("remove", help="take an agent of your own out of the config file")
    remove.add_argument("agent", metavar="AGENT", help="its name")

    registry = commands.add_parser(
        "registry",
        description="Read a registry of agents and keep a copy; without an argument, tell which one is kept.",
        help="read a registry of agents from a file or an address",
    )
    registry.add_argument("source", metavar="FILE|URL", nargs="?", help="a registry.json, or its https:// address")
    registry.add_argument("--forget", action="store_true", help="remove the copy")
    return top


def run(arguments: list[str]) -> int:
    """Do one of these commands."""
    words, program = split_command(arguments)
    options = parser().parse_args(words)
    if program is not None and options.command != "add":
        raise Misused("only `add` takes a program after `--`")
    return _do(options, program or [])


def _do(options: argparse.Namespace, program: list[str]) -> int:
    match options.command:
        case "check":
            from antiphon.cli.agent_check import check

            loaded = _settings()
            return asyncio.run(check(options.agent, loaded.settings, limit=options.timeout, as_json=options.json))
        case "add":
            from antiphon.cli.agent_editing import add

            if not program:
                raise Misused("PROGRAM is missing", hint="antiphon agents add NAME -- PROGRAM [ARGUMENT …]")
            return add(options.name, program)
        case "remove":
            from antiphon.cli.agent_editing import remove

            return remove(options.agent)
        case "registry":
            return _registry(options.source, options.forget)
        case _:
            return _list(options)


def _list(options: argparse.Namespace) -> int:
    loaded = _settings(quiet=options.names)
    registry = _kept_registry(quiet=options.names)
    if options.names:
        sys.stdout.write("".join(f"{name}\n" for name in names(loaded.settings, registry)))
        return 0
    from antiphon.cli.agent_list import show

    return asyncio.run(show(loaded.settings, registry, as_json=options.json))


def _registry(source: str | None, forget: bool) -> int:
    if forget and source is not None:
        raise Misused("`--forget` takes no FILE or URL")
    if forget:
        sys.stderr.write("forgotten\n" if fetching.forget() else "there was none\n")
        return 0
    if source is None:
        kept = fetching.kept()
        told = f"{kept.source}, read {kept.read_at}, {_count(kept.read())}" if kept is not None else "none"
        sys.stdout.write(f"{prose(told)}\n")
        return 0
    if "://" not in source and not os.path.exists(os.path.expanduser(source)):
        raise Misused(f"there is no file `{source}`", hint="give a registry.json, or its https:// address")
    registry = fetching.keep(source, fetching.fetch(source))
    for problem in registry.problems:
        sys.stderr.write(f"warning: {prose(problem)}\n")
    sys.stderr.write(f"{_count(registry)}; `antiphon agents` lists them\n")
    return 0


def _count(registry: Registry) -> str:
    return f"{len(registry.agents)} agent{'' if len(registry.agents) == 1 else 's'}"


def _settings(*, quiet: bool = False) -> "Loaded":
    loaded = asyncio.run(settings_here(os.getcwd()))
    if not quiet:
        tell(loaded)
    return loaded


def _kept_registry(*, quiet: bool) -> Registry:
    """The registry that was read; a damaged copy is told, and the other agents are listed all the same."""
    try:
        kept = fetching.kept()
    except RegistryProblem as error:
        if not quiet:
            sys.stderr.write(f"warning: {prose(str(error))}\n")
        return Registry({})
    return Registry({}) if kept is None else kept.read()
