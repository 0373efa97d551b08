"""`antiphon policy explain`: asks the gate what it would decide, without doing or remembering anything."""

import os
import shlex
import sys
from typing import TYPE_CHECKING

import msgspec

from antiphon.cli.arguments import Misused, Options
from antiphon.cli.here import tell
from antiphon.cli.saying import did_you_mean
from antiphon.client.launch import LaunchOptions, rules_of
from antiphon.client.session import SessionWorkspace
from antiphon.permission.actions import action_of
from antiphon.permission.gate import PermissionGate
from antiphon.permission.settings import settings_here
from antiphon.policy import PolicyMode, RuleError
from antiphon.policy.rules import KIND_OF, KINDS, PATH_TOOLS, canonical
from antiphon.protocol import v1
from antiphon.store.decisions import DecisionStore
from antiphon.store.schema import open_database
from antiphon.text import one_line

if TYPE_CHECKING:
    from antiphon.config.settings import Loaded
    from antiphon.policy import Action, Ruling

__all__ = ["action_from", "explain"]


class Explained(msgspec.Struct, frozen=True):
    """What `--json` prints. Without a rule, `source` tells what decided instead: the mode, or a doubt."""

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
    place = _place(options)
    action = action_from(options.tool, options.input, place)
    database = open_database()
    try:
        kept = database if database.path.exists() else None  # to explain is not to make a file
        loaded = await settings_here(place.cwd, kept)
        tell(loaded)
        ruling = await _gate(options, loaded, DecisionStore(database) if kept else None, place.cwd).judge("", action)
    finally:
        await database.close()
    _show(_explained(ruling, loaded), as_json=options.json)
    return 0


def _place(options: Options) -> SessionWorkspace:
    cwd, *directories = map(os.path.expanduser, (options.cwd or ".", *options.add_dir))
    for folder in (cwd, *directories):
        if not os.path.isdir(folder):
            raise Misused(f"there is no directory `{folder}`")
    return SessionWorkspace.at(cwd, directories)


def action_from(tool: str, given: str | None, place: SessionWorkspace) -> "Action":
    """The action of a call, as if an agent had asked for permission.

    Raises:
        Misused: the tool needs an input, or takes no such one.
    """
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
    """Refuse a rule in the place of a tool: it would be taken for a tool of this name, which no rule is about."""
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
    """Refuse a name that is nearly one that we know. With an input as agents send it, it may be a tool of the agent's own."""
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
    if kind == "execute":
        if given is None:
            raise Misused("say which command line it would run")
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


def _gate(options: Options, loaded: "Loaded", decisions: DecisionStore | None, cwd: str) -> PermissionGate:
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
    if as_json:
        sys.stdout.write(msgspec.json.encode(explained).decode() + "\n")
        return
    place = explained.where or explained.source
    rule = f"none ({place})" if explained.rule is None else f"{explained.rule} ({place})"
    lines = (explained.verdict, f"rule: {rule}", f"why: {explained.why}")
    sys.stdout.write("".join(f"{one_line(line)}\n" for line in lines))
