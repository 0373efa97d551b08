"""`antiphon agents`: list, check, add and remove agents."""

import argparse
import asyncio
import fcntl
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.catalogue import registry_copy as fetching
from antiphon.catalogue.agents import FoundAgent, MissingAgent, find, find_all, names, start_of
from antiphon.catalogue.known import KNOWN
from antiphon.catalogue.registry import Registry, RegistryProblem
from antiphon.cli.arguments import Parser, duration, shown_time, split_command
from antiphon.cli.outcome import Misused
from antiphon.cli.terminal import warn_about_settings
from antiphon.config.directories import make_private_directory, make_private_file
from antiphon.config.reader import read_file, user_file
from antiphon.config.shapes import OwnAgent, Settings
from antiphon.errors import AcpError, sentence_and_hint
from antiphon.permission.settings import settings_here
from antiphon.text import one_line, prose

if TYPE_CHECKING:
    from antiphon.client.agent import ConnectedAgent
    from antiphon.config.settings import Loaded
    from antiphon.protocol import v1

__all__ = ["add", "check", "in_words", "parser", "remove", "rows", "run", "show", "table"]

CHECK_LIMIT: Final = 60.0
"""Seconds for a handshake, by default: the first start of some agents is a download."""

EPILOG: Final = """\
Without a command all agents are listed: whether each is installed, its version, and how to start or install it. `on demand` means that
a runner (npx, uvx) downloads it when it is first started. Nothing is downloaded by this command.
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    top = Parser(
        prog="antiphon agents",
        description="List, check and add agents.",
        epilog=EPILOG,
    )
    form = top.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object per line")
    form.add_argument("--names", action="store_true", help="only the names, one per line, without looking for programs")
    commands = top.add_subparsers()

    check = commands.add_parser("check", help="start an agent and print its capabilities")
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
    add.add_argument("name", metavar="NAME", help="the name of the agent; a known name then means this command")

    remove = commands.add_parser("remove", help="remove an agent of your own from the config file")
    remove.add_argument("agent", metavar="AGENT", help="its name")

    registry = commands.add_parser(
        "registry",
        description="Read a registry of agents and keep a copy; without an argument, print which one is kept.",
        help="read a registry of agents from a file or an address",
    )
    registry.add_argument("source", metavar="FILE|URL", nargs="?", help="a registry.json, or its https:// address")
    registry.add_argument("--forget", action="store_true", help="remove the copy")
    return top


def run(arguments: list[str]) -> int:
    """Run the subcommand that the arguments name, and return the exit status."""
    words, program = split_command(arguments)
    options = parser().parse_args(words)
    if program is not None and options.command != "add":
        raise Misused("only `add` takes a program after `--`")
    return _do(options, program or [])


def _do(options: argparse.Namespace, program: list[str]) -> int:
    match options.command:
        case "check":
            loaded = _settings()
            return asyncio.run(check(options.agent, loaded.settings, limit=options.timeout, as_json=options.json))
        case "add":
            if not program:
                raise Misused("PROGRAM is missing", hint="antiphon agents add NAME -- PROGRAM [ARGUMENT …]")
            return add(options.name, program)
        case "remove":
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
    return asyncio.run(show(loaded.settings, registry, as_json=options.json))


def _registry(source: str | None, forget: bool) -> int:
    if forget and source is not None:
        raise Misused("`--forget` takes no FILE or URL")
    if forget:
        sys.stderr.write("forgotten\n" if fetching.forget() else "there was none\n")
        return 0
    if source is None:
        kept = fetching.kept()
        copy_text = f"{kept.source}, read {kept.read_at}, {_count(kept.read())}" if kept is not None else "none"
        sys.stdout.write(f"{prose(copy_text)}\n")
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
        warn_about_settings(loaded)
    return loaded


def _kept_registry(*, quiet: bool) -> Registry:
    """Return the stored registry. A damaged copy gives a warning and an empty registry."""
    try:
        kept = fetching.kept()
    except RegistryProblem as error:
        if not quiet:
            sys.stderr.write(f"warning: {prose(str(error))}\n")
        return Registry({})
    return Registry({}) if kept is None else kept.read()


# --- the list of agents ----------------------------------------------------------------------------------------------

HEADER = ("NAME", "STATE", "VERSION", "COMMAND, OR HOW TO GET IT")


class AgentRow(msgspec.Struct, frozen=True, rename="camel"):
    """One agent as `--json` prints it."""

    name: str
    title: str
    origin: str
    state: str
    version: str | None
    command: tuple[str, ...] | None
    hint: str | None


async def show(settings: Settings, registry: Registry, *, as_json: bool) -> int:
    """Find all agents, ask installed ones for their version, and print the list."""

    from antiphon.catalogue.agents import with_versions

    agents = find_all(settings, registry=registry)
    versions = {
        agent.name: agent.version for agent in await with_versions([a for a in agents if isinstance(a, FoundAgent)])
    }
    if as_json:
        lines = [msgspec.json.encode(_row(agent, versions.get(agent.name))).decode() for agent in agents]
    else:
        lines = table(rows(agents, versions))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def rows(agents: Sequence[FoundAgent | MissingAgent], versions: dict[str, str | None]) -> list[tuple[str, ...]]:
    """Return the rows of the table, without its header."""
    found = []
    for agent in agents:
        last = agent.shown if isinstance(agent, FoundAgent) else agent.hint
        cells = (agent.name, _state(agent), versions.get(agent.name) or "-", last)
        found.append(tuple(one_line(cell) for cell in cells))
    return found


def table(cells: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table, with every column as wide as its cells."""
    every = [HEADER, *cells]
    widths = [max(len(row[column]) for row in every) for column in range(len(HEADER) - 1)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in every
    ]


def _state(agent: FoundAgent | MissingAgent) -> str:
    if isinstance(agent, MissingAgent):
        return "not found"
    return "on demand" if agent.on_demand else "found"


def _row(agent: FoundAgent | MissingAgent, version: str | None) -> AgentRow:
    command = agent.command if isinstance(agent, FoundAgent) else None
    hint = agent.hint if isinstance(agent, MissingAgent) else None
    return AgentRow(agent.name, agent.title, agent.origin, _state(agent), version, command, hint)


# --- `antiphon agents check` -----------------------------------------------------------------------------------------


class AuthMethodReport(msgspec.Struct, frozen=True):
    """A login method, as `--json` prints it."""

    id: str
    name: str


class AgentReport(msgspec.Struct, frozen=True, rename="camel"):
    """The report of `agents check --json`."""

    agent: str
    name: str
    version: str | None
    protocol_version: int
    command: tuple[str, ...]
    capabilities: "v1.AgentCapabilities"
    auth_methods: list[AuthMethodReport]


async def check(name: str, settings: Settings, *, limit: float, as_json: bool) -> int:
    """Start an agent, print what it answers to `initialize`, and end it."""

    from antiphon.client.connect import connect
    from antiphon.client.link import Retry

    found = start_of(name, settings)
    env = found.environment()
    try:
        async with (
            asyncio.timeout(limit),
            connect(found.command, cwd=found.cwd, env=env, files=None, retry=Retry(delays=())) as agent,
        ):
            report = _report(found, agent)
    except TimeoutError:
        raise AcpError(
            f"`{name}` did not answer within {shown_time(limit)}",
            hint=f"check that `{found.shown}` serves ACP on stdin and stdout, or give it more time with --timeout",
        ) from None
    except AcpError as error:
        sentence, hint = sentence_and_hint(error)
        raise AcpError(f"`{name}` cannot be used: {sentence}", hint=f"{hint or _what_to_do(found)}") from error
    text = msgspec.json.encode(report).decode() if as_json else _text(report, found)
    sys.stdout.write(f"{text}\n")
    return 0


def in_words(capabilities: "v1.AgentCapabilities") -> dict[str, list[str]]:
    """Return the capabilities of an agent in words, by subject, including those that every agent has."""
    prompt, mcp, session = (
        capabilities.prompt_capabilities,
        capabilities.mcp_capabilities,
        capabilities.session_capabilities,
    )
    offers: dict[str, dict[str, object]] = {
        "prompts": {
            "text": True,
            "links": True,
            "images": prompt.image,
            "sound": prompt.audio,
            "embedded files": prompt.embedded_context,
        },
        "sessions": {
            "new": True,
            "load": capabilities.load_session,
            "resume": session.resume,
            "fork": session.fork,
            "list": session.list,
            "close": session.close,
            "delete": session.delete,
            "more directories": session.additional_directories,
        },
        "MCP servers": {"programs": True, "http": mcp.http, "sse": mcp.sse, "over ACP": mcp.acp},
        "account": {"sign out": capabilities.auth.logout},
    }
    # An empty object announces the capability too, so its truth value is not enough.
    return {
        subject: [word for word, offered in words.items() if offered is not None and offered is not False]
        for subject, words in offers.items()
    }


def _report(found: FoundAgent, agent: "ConnectedAgent") -> AgentReport:
    from antiphon.protocol.v1.version import V1

    info = agent.info
    return AgentReport(
        found.name,
        agent.name if info is not None else found.title,
        info.version if info is not None else None,
        V1.number,
        found.command,
        agent.capabilities,
        _methods(agent.auth_methods),
    )


def _methods(methods: "Sequence[v1.AuthMethod]") -> list[AuthMethodReport]:
    return [
        AuthMethodReport(str(getattr(method, "id", "?")), str(getattr(method, "name", "an unknown method")))
        for method in methods
    ]


def _text(report: AgentReport, found: FoundAgent) -> str:
    lines = {
        "name": report.name,
        "version": report.version or "not reported",
        "protocol": f"version {report.protocol_version}",
        "command": found.shown,
    }
    lines |= {subject: ", ".join(words) or "-" for subject, words in in_words(report.capabilities).items()}
    lines["sign-in"] = ", ".join(f"{method.id} ({method.name})" for method in report.auth_methods) or "-"
    width = max(map(len, lines))
    shown = [f"{subject.ljust(width)}  {one_line(words)}" for subject, words in lines.items()]
    if report.auth_methods and found.login:
        shown.append(f"{'to sign in'.ljust(width)}  {found.login}")
    return "\n".join(shown)


def _what_to_do(found: FoundAgent) -> str:
    start = f"try `{one_line(found.shown)}` by hand: it has to serve ACP on stdin and stdout"
    return f"{start}; to sign in, {found.login}" if found.login else start


# --- `antiphon agents add` and `remove` ------------------------------------------------------------------------------


def add(name: str, command: list[str]) -> int:
    """Add an agent to the user's config file.

    Raises:
        AcpError: it cannot be added; the file is as it was.
    """

    from antiphon.config.edits import WrongAgent, with_agent

    program = os.path.expanduser(command[0])
    if "/" in program:
        command = [os.path.abspath(program), *command[1:]]  # it is started from anywhere
    try:
        path = _edit(lambda text: with_agent(text, name, command))
    except WrongAgent as error:
        raise Misused(error.sentence, hint=error.hint) from error
    sys.stderr.write(f"added `{name}` to {path}; `antiphon agents check {name}` tries it\n")
    here = find(name, Settings(agents={name: OwnAgent(tuple(command))}))
    if isinstance(here, MissingAgent):
        sys.stderr.write(f"warning: there is no program `{one_line(command[0])}` yet\n")
    return 0


def remove(name: str) -> int:
    """Remove an agent from the user's config file.

    Raises:
        AcpError: it is not there, or cannot be taken out; the file is as it was.
    """

    from antiphon.config.edits import without_agent

    path = _edit(lambda text: without_agent(text, name))
    again = f"; `{name}` is the known agent again" if name in KNOWN else ""
    sys.stderr.write(f"removed `{prose(name)}` from {path}{again}\n")
    return 0


def _edit(change: Callable[[str], str]) -> Path:
    """Change the user's config file in one step, under a lock that other edits wait for."""

    from antiphon.config.edits import EditRefused
    from antiphon.local.files import write_text

    path = user_file()
    try:
        make_private_directory(path.parent)
        with _alone_in(path.parent):
            file = read_file(path)
            if file is not None and file.trouble is not None:
                raise EditRefused(f"{path} cannot be read: {file.trouble}", hint="correct it first")
            new = change("" if file is None else file.text)
            make_private_file(path)  # `env` in it may hold keys
            write_text(path, new)
    except OSError as error:
        raise EditRefused(
            f"{path} cannot be written: {error.strerror or error}", hint="check its permissions"
        ) from error
    return path


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)  # releases the lock
