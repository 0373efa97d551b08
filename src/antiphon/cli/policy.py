"""`antiphon policy`: explain permissions, list and revoke remembered answers, show the log, trust projects."""

import argparse
import asyncio
import os
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from antiphon.cli.arguments import MODES, Options, Parser, count
from antiphon.cli.outcome import Misused, did_you_mean

if TYPE_CHECKING:
    from antiphon.client.session import SessionWorkspace
    from antiphon.config.settings import Loaded
    from antiphon.permission.gate import PermissionGate
    from antiphon.policy import Action, Ruling
    from antiphon.store.database import Database
    from antiphon.store.decisions import AuditEntry, Decision, DecisionStore

__all__ = [
    "action_from",
    "distrust",
    "explain",
    "parser",
    "revoke",
    "run",
    "show_decisions",
    "show_log",
    "show_trusted",
    "trust",
]

EXPLAIN: Final = """\
Print `allow`, `deny` or `ask`, the rule that decided, and why. The rules given here, the config files and the remembered answers of this
project apply, as in `antiphon run`.

INPUT is the command line for Bash, a path for Edit, Read and similar tools, an address for WebFetch, and JSON for other tools.

  antiphon policy explain --allow 'Bash(git *)' Bash 'git status; rm -rf /'
  antiphon policy explain --mode acceptEdits Edit src/main.py
  antiphon policy explain mcp__github__create_issue '{"title": "…"}'
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    top = Parser(
        prog="antiphon policy",
        description="Explain permissions, list and revoke remembered answers, and show the log of decisions.",
    )
    commands = top.add_subparsers(required=True)
    _add_explain(commands)

    listed = commands.add_parser("list", help="list the answers that are remembered")
    listed.add_argument("--json", action="store_true", help="one JSON object per line")

    revoke = commands.add_parser("revoke", help="forget remembered answers")
    revoke.add_argument("which", metavar="ID|RULE", nargs="?", help="the number in `antiphon policy list`, or the rule")
    revoke.add_argument("--all", action="store_true", help="forget all")

    log = commands.add_parser("log", help="show the decisions, the latest last")
    log.add_argument("--limit", metavar="N", type=count, default=50, help="how many to show (default: 50)")
    log.add_argument("--session", metavar="ID", help="only decisions of this session")
    log.add_argument("--json", action="store_true", help="one JSON object per line")

    trust = commands.add_parser(
        "trust",
        description="Trust the files of a project as they are now: its .antiphon/config.toml may loosen the policy, and engines read its "
        "settings, hooks, MCP servers and commands (.claude, .mcp.json, .codex). What changes has to be trusted again.",
        help="trust the config files of a project",
    )
    trust.add_argument(
        "directory", metavar="DIR", nargs="?", default=".", help="a directory of the project (default: this one)"
    )
    trust.add_argument("--list", action="store_true", help="list the trusted projects instead")

    distrust = commands.add_parser("distrust", help="stop trusting a project")
    distrust.add_argument(
        "directory", metavar="DIR", nargs="?", default=".", help="a directory of the project (default: this one)"
    )
    return top


def _add_explain(commands: "argparse._SubParsersAction[Parser]") -> None:
    explain = commands.add_parser(
        "explain",
        usage="antiphon policy explain [OPTIONS] TOOL [INPUT]",
        description=EXPLAIN,
        help="explain what would be decided about a tool call",
    )
    explain.add_argument("tool", metavar="TOOL", help="such as Bash, Edit, Read, mcp__server__tool, kind:edit")
    explain.add_argument("input", metavar="INPUT", nargs="?", help="the input of the tool")
    for verb in ("allow", "deny", "ask"):
        explain.add_argument(f"--{verb}", metavar="RULE", action="append", default=[], help=f"{verb} this")
    explain.add_argument(
        "--mode", "--permission-mode", dest="permission_mode", metavar="MODE", choices=MODES, help=", ".join(MODES)
    )
    explain.add_argument("--cwd", metavar="DIR", default=".", help="the session's directory (default: this one)")
    explain.add_argument(
        "--add-dir", metavar="DIR", action="append", default=[], help="another directory of the session"
    )
    explain.add_argument("--json", action="store_true", help="as one JSON object")


def run(arguments: list[str]) -> int:
    """Run the subcommand that the arguments name, and return the exit status."""
    return asyncio.run(_do(parser().parse_args(arguments, namespace=Options())))


async def _do(options: Options) -> int:
    if options.command == "explain":
        return await explain(options)
    match options.command:
        case "list":
            return await show_decisions(as_json=options.json)
        case "revoke":
            if (options.which is None) == (not options.all):
                raise Misused("name the answer to forget: its number, its rule, or --all")
            return await revoke(options.which)
        case "log":
            return await show_log(options.limit, options.session, as_json=options.json)
        case "trust":
            return await (show_trusted() if options.list else trust(options.directory))
        case _:
            return await distrust(options.directory)


# --- `antiphon policy explain` ---------------------------------------------------------------------------------------


class Explained(msgspec.Struct, frozen=True):
    """The report of `policy explain --json`. Without a rule, `source` names what decided instead: the mode, or a doubt."""

    verdict: str
    rule: str | None
    source: str
    where: str | None
    why: str


async def explain(options: Options) -> int:
    """Print the verdict, the rule that gave it, and why.

    Raises:
        Misused: there is no such directory, or a rule or an input makes no sense.
    """

    from antiphon.cli.terminal import warn_about_settings
    from antiphon.permission.settings import settings_here
    from antiphon.store.decisions import DecisionStore
    from antiphon.store.schema import open_database

    place = _place(options)
    action = action_from(options.tool, options.input, place)
    database = open_database()
    try:
        kept = database if database.path.exists() else None  # `explain` must not create the database
        loaded = await settings_here(place.cwd, kept)
        warn_about_settings(loaded)
        ruling = await _gate(options, loaded, DecisionStore(database) if kept else None, place.cwd).judge("", action)
    finally:
        await database.close()
    _show(_explained(ruling, loaded), as_json=options.json)
    return 0


def _place(options: Options) -> "SessionWorkspace":
    from antiphon.client.session import SessionWorkspace

    cwd, *directories = map(os.path.expanduser, (options.cwd or ".", *options.add_dir))
    for folder in (cwd, *directories):
        if not os.path.isdir(folder):
            raise Misused(f"there is no directory `{folder}`")
    return SessionWorkspace.at(cwd, directories)


def action_from(tool: str, given: str | None, place: "SessionWorkspace") -> "Action":
    """Return the action of a tool call, as in a permission request of an agent.

    Raises:
        Misused: the tool needs an input, or takes no such one.
    """

    from antiphon.permission.actions import action_of
    from antiphon.policy.rules import KIND_OF, KINDS, canonical
    from antiphon.protocol import v1

    _refuse_rules(tool)
    if tool.startswith("kind:"):
        name, word = None, tool.removeprefix("kind:")
        if word not in KINDS:
            raise Misused(f"there is no kind `{word}`: use one of {', '.join(sorted(KINDS))}")
        known = None
    else:
        name, known = tool, canonical(tool)
        if known is None:
            _refuse_misspelt(tool, given)
        word = KIND_OF[known] if known is not None else "other"
    raw = _raw(known, word, given)
    call = v1.ToolCallPatch("explain", kind=v1.ToolKind(word), name=name, raw_input=raw)
    return action_of(v1.RequestPermission("", call, []), place)


def _refuse_rules(tool: str) -> None:
    """Raise `Misused` for a rule where a tool is expected: it would be taken for the name of an unknown tool."""

    from antiphon.policy.rules import canonical

    name, mark, pattern = tool.partition("(")
    if mark:
        given = pattern.removesuffix(")") or "…"
        raise Misused(
            f"`{tool}` is a rule, and what is explained is a call",
            hint=f"give the tool and its input apart, as in `antiphon policy explain {name or 'Bash'} {shlex.quote(given)}`",
        )
    if not tool or any(letter.isspace() for letter in tool):
        first, _, rest = tool.strip().partition(" ")
        example = f"{first} {shlex.quote(rest.strip())}" if canonical(first) and rest else "Bash 'git status'"
        raise Misused(
            f"`{tool}` is not the name of a tool",
            hint=f"give the tool and its input apart, as in `antiphon policy explain {example}`",
        )


def _refuse_misspelt(tool: str, given: str | None) -> None:
    """Raise `Misused` for a misspelt name of a tool, unless its input is JSON: agents have tools of their own."""

    from antiphon.policy.rules import KIND_OF, KINDS
    from antiphon.text import one_line

    meant = did_you_mean(tool, [*KIND_OF, *(f"kind:{kind}" for kind in KINDS)]) if not tool.startswith("mcp__") else ""
    if meant and not (given or "").lstrip().startswith("{"):
        raise Misused(
            f"there is no tool `{tool}`", hint=f"{meant}a tool of the agent's own takes its input as a JSON object"
        )
    if not tool.startswith("mcp__"):
        sys.stderr.write(
            f"note: `{one_line(tool)}` is taken for a tool of the agent's own: no rule but `{one_line(tool)}` and `kind:other` is about it\n"
        )


def _raw(known: str | None, kind: str, given: str | None) -> dict[str, object]:
    from antiphon.policy.rules import PATH_TOOLS

    if kind == "execute":
        if given is None:
            raise Misused("give the command line that it would run")
        return {"command": given}
    if given is None:
        return {}
    if known in PATH_TOOLS or (known is None and kind in ("read", "edit", "move", "delete", "search")):
        return {"path": given}
    if kind == "fetch":
        return {"url": given}
    try:
        return msgspec.json.decode(given, type=dict[str, object])
    except msgspec.MsgspecError as error:
        raise Misused(f"the input of this tool has to be a JSON object: {str(error).lower()}") from error


def _gate(options: Options, loaded: "Loaded", decisions: "DecisionStore | None", cwd: str) -> "PermissionGate":
    from antiphon.client.launch import LaunchOptions, rules_of
    from antiphon.permission.gate import PermissionGate
    from antiphon.policy import PolicyMode, RuleError

    try:
        rules = rules_of(LaunchOptions(allow=options.allow, deny=options.deny, ask=options.ask), loaded.settings)
    except RuleError as error:
        raise Misused(error.sentence, hint=error.hint) from error
    return PermissionGate(
        rules,
        PolicyMode(options.permission_mode or loaded.settings.permission_mode),
        decisions=decisions,
        project=str(loaded.sources.directory or os.path.realpath(cwd)),
        broken="A config file cannot be understood, so everything is asked." if loaded.policy_broken else "",
    )


def _explained(ruling: "Ruling", loaded: "Loaded") -> Explained:
    rule = None if ruling.rule is None else ruling.rule.text
    texts = (*loaded.settings.allow, *loaded.settings.deny, *loaded.settings.ask)
    found = (text.where for text in texts if text.text == rule and text.source == ruling.source and text.where)
    return Explained(ruling.verdict.value, rule, ruling.source, next(found, None), ruling.why)


def _show(explained: Explained, *, as_json: bool) -> None:
    from antiphon.text import one_line

    if as_json:
        sys.stdout.write(msgspec.json.encode(explained).decode() + "\n")
        return
    place = explained.where or explained.source
    rule = f"none ({place})" if explained.rule is None else f"{explained.rule} ({place})"
    lines = (explained.verdict, f"rule: {rule}", f"why: {explained.why}")
    sys.stdout.write("".join(f"{one_line(line)}\n" for line in lines))


# --- remembered answers, the log, trusted projects -------------------------------------------------------------------

Row = TypeVar("Row", bound=msgspec.Struct)


@asynccontextmanager
async def _opened() -> "AsyncIterator[Database | None]":
    """Open the database; None if there is no file yet, since listing creates none."""

    from antiphon.store.schema import open_database

    database = open_database()
    try:
        yield database if database.path.exists() else None
    finally:
        await database.close()


async def show_decisions(*, as_json: bool) -> int:
    """Print the remembered answers."""

    from antiphon.store.decisions import DecisionStore

    async with _opened() as database:
        found = [] if database is None else await DecisionStore(database).all()
    header = ("ID", "VERDICT", "RULE", "HOLDS IN", "MADE", "UNTIL")
    return _list(found, header, _decision, "nothing is remembered", as_json=as_json)


def _decision(row: "Decision") -> tuple[str, ...]:
    where = {"session": f"session {row.session_id} of {row.agent}", "project": row.project}.get(row.scope, row.scope)
    return str(row.id), row.verdict, row.rule, where, _time(row.made_at), _time(row.expires_at or "")


async def revoke(which: str | None) -> int:
    """Forget one answer, all of a rule, or all (None)."""

    from antiphon.store.decisions import DecisionStore

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
    """Print the log of decisions."""

    from antiphon.store.decisions import AuditStore

    async with _opened() as database:
        found = [] if database is None else await AuditStore(database).latest(limit, session_id=session_id)
    header = ("TIME", "AGENT", "VERDICT", "TOOL", "SUBJECT", "BY")
    return _list(found, header, _entry, "nothing was decided yet", as_json=as_json)


def _entry(row: "AuditEntry") -> tuple[str, ...]:
    by = f"{row.source}: {row.rule}" if row.rule else row.source
    return _time(row.at), row.agent, row.verdict, row.tool or row.kind, row.subject, by


async def show_trusted() -> int:
    """Print the trusted projects and files."""

    from antiphon.store.decisions import TrustStore

    async with _opened() as database:
        store = None if database is None else TrustStore(database)
        found = [] if store is None else [*await store.all(), *await store.files()]
    _table(("PROJECT", "SINCE"), [(row.project, _time(row.trusted_at)) for row in found], "no project is trusted")
    return 0


async def trust(directory: str) -> int:
    """Trust the config file of a project, and the files that engines read from it, as they are now."""

    from antiphon.permission.project_trust import trust_project
    from antiphon.text import prose

    trusted = await trust_project([_folder(directory)])
    for path in trusted:
        sys.stderr.write(f"trusted {prose(path)} as it is now\n")
    sys.stderr.write("hint: what changes has to be trusted again; `antiphon policy distrust` takes it back\n")
    return 0


async def distrust(directory: str) -> int:
    """Stop trusting the files of a project, also deleted ones."""

    from antiphon.config.project_files import directories_above
    from antiphon.config.settings import find
    from antiphon.store.decisions import TrustStore
    from antiphon.text import prose

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

    from antiphon.config.project_files import NAMES

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
    """Print a line for each row. An empty list is only noted on stderr."""
    if as_json and rows:
        sys.stdout.write("".join(msgspec.json.encode(row).decode() + "\n" for row in rows))
    else:
        _table(header, [cells(row) for row in rows], otherwise)
    return 0


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]], otherwise: str) -> None:
    from antiphon.text import exact_line

    if not rows:
        sys.stderr.write(f"{otherwise}\n")
        return
    every = [header, *(tuple(exact_line(cell) or "-" for cell in row) for row in rows)]
    widths = [max(len(row[column]) for row in every) for column in range(len(header) - 1)]
    for row in every:
        cells = [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def _time(stored: str) -> str:
    """Return a time without fractions of a second."""
    return f"{stored[:19]}Z" if stored else ""
