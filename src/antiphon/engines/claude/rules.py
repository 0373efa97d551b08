"""The policy's deny and ask rules, applied by Claude Code too: it does not ask about everything, and in some modes about nothing.

They are given to it twice. As its own permission settings, as far as they can be expressed there and mean no less. And by a hook: before each
tool runs, in every mode and for sub-agents too, the CLI asks us, and our own reading of the rules decides. The hook alone would be enough
as long as nothing fails; the settings hold whatever happens to it.

In `acceptEdits` the hook also stops at files that name programs to run: the list of the CLI is shorter than ours. There it is asked about
without any rules too.

A read-only session is kept to that by the hook alone: the user's own settings may allow more, and the CLI goes by them in `plan` too.
"""

import json
import logging
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from antiphon.engines.claude.translate.descriptions import describe
from antiphon.engines.project import action_of
from antiphon.policy import Action, PolicyMode, Rules, Ruling, Verdict, decide
from antiphon.policy.decision import decide_read_only
from antiphon.policy.match import RuleMatcher
from antiphon.policy.rules import KIND_OF, permitted_as
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession
    from antiphon.policy import Rule
    from antiphon.policy.patterns import CommandPattern
    from antiphon.protocol.base import JsonObject

__all__ = ["HOOK", "before_tool", "settings_for"]

HOOK: Final = "hook_callback"
"""The subtype of the CLI's request before a tool runs."""

ONLY_OURS: Final = frozenset({"Delete", "Move"})
"""Tools of our rules that the CLI does not have."""

_SPECIAL: Final = frozenset("[](){}\\!#`")
"""Characters that a pattern of the CLI, or the syntax of its rules, may take for something else. The hook alone covers those."""

_QUESTION_TOOL: Final = "AskUserQuestion"
"""A tool that asks the user a question and changes nothing, so it may run in a read-only session."""

_log = logging.getLogger(__name__)


# Rules as settings of the CLI.


def settings_for(session: "AgentSession") -> str | None:
    """Return the rules as settings that the CLI is started with, beside the user's own. None if there are no rules to send."""
    if session.host.rules is None:
        return None
    roots = [session.cwd, *session.directories]
    roots = list(dict.fromkeys([*roots, *map(os.path.realpath, roots)]))
    lists = {"deny": session.host.rules.deny, "ask": session.host.rules.ask}
    permissions = {name: list(dict.fromkeys(_all_written(rules, roots))) for name, rules in lists.items()}
    sent = {name: written for name, written in permissions.items() if written}
    return json.dumps({"permissions": sent}, ensure_ascii=False) if sent else None


def _all_written(rules: "Iterable[Rule]", roots: list[str]) -> Iterator[str]:
    for rule in rules:
        yield from _written(rule, roots)


def _written(rule: "Rule", roots: list[str]) -> Iterator[str]:
    """Yield the rules of the CLI that together mean the same as one of ours, or more. Nothing, where they would mean less."""
    tool = rule.tool or ""
    if rule.kind is not None:
        yield from (name for name, kind in KIND_OF.items() if kind == rule.kind and name not in ONLY_OURS)
    elif rule.bare:
        family = [name for name in KIND_OF if tool in permitted_as(name)] or [tool]
        yield from (name for name in family if name not in ONLY_OURS)
    elif rule.command is not None:
        yield from _commands(rule.command)
    elif rule.host is not None and not rule.host.startswith("*"):
        yield f"WebFetch(domain:{rule.host})"
    elif rule.path is not None and tool in (
        "Edit",
        "Read",
    ):  # those stand for all tools that change files, or read them
        glob = rule.text.partition("(")[2].removesuffix(")").strip()
        for place in _places(glob, roots):
            if not _SPECIAL.intersection(place) and place.isprintable():
                yield from (f"{tool}({each})" for each in _and_below(place))


def _and_below(place: str) -> list[str]:
    """Return the patterns for a path and all below it: what is denied in a directory is denied all the way down."""
    if place.endswith("/"):
        return [f"{place}**"]
    return [place] if place.endswith("/**") else [place, f"{place}/**"]


def _places(glob: str, roots: list[str]) -> Iterator[str]:
    """Yield the patterns of the CLI for a glob of ours. Two slashes are the root of the disk there."""
    glob = glob.removeprefix("./")
    if glob.startswith("/"):
        yield f"//{glob.lstrip('/')}"
    elif glob == "~" or glob.startswith("~/"):
        yield glob
    else:
        yield from (f"/{root.rstrip('/')}/{glob}" for root in roots if not {"*", "?"} & set(root))


def _commands(pattern: "CommandPattern") -> Iterator[str]:
    """Yield the rules for a command. The CLI looks for it in each part of a line, as we do."""
    *words, last = pattern.items
    literal = [None if word is None else word.literal for word in (*words, *([] if last is None else [last]))]
    if not literal or not all(word and _is_plain(word) for word in literal):
        return
    line = " ".join(word for word in literal if word)
    yield f"Bash({line})"
    if last is None:
        yield f"Bash({line}:*)"


def _is_plain(word: str) -> bool:
    return word.isascii() and word.isprintable() and not set("*?[](){}\\'\"`$:;&|<> ").intersection(word)


# Rules by a hook.


def before_tool(session: "AgentSession", fields: "JsonObject") -> "JsonObject":
    """Return the response before a tool runs: that it may not, that the user is asked, or that the CLI's own rules decide."""
    hook = fields.get("input")
    hook = hook if isinstance(hook, dict) else {}
    name = hook.get("tool_name")
    if hook.get("hook_event_name", "PreToolUse") != "PreToolUse":
        return {}
    mode = hook.get("permission_mode", PolicyMode.ACCEPT_EDITS)
    try:
        if not isinstance(name, str):
            raise ValueError("the call has no name")
        action = _action(session, name, hook.get("tool_input"), hook.get("cwd"))
        ruling = _judged(session, session.host.rules or Rules(), action, accepts_edits=mode == PolicyMode.ACCEPT_EDITS)
    except Exception as error:  # the user is asked about what cannot be judged
        _log.exception("a call of Claude Code could not be judged")
        return _decided(
            "deny" if session.host.read_only else "ask",
            f"It could not be determined whether a rule denies this ({type(error).__name__}).",
        )
    match ruling.verdict:
        case Verdict.DENY:
            return _decided("deny", f"{ruling.why} It did not run, and nothing was changed.")
        case Verdict.ASK:
            return _decided("ask", ruling.why)
        case _:
            return {}


def _judged(session: "AgentSession", rules: Rules, action: Action, *, accepts_edits: bool) -> "Ruling":
    if session.host.read_only and action.name != _QUESTION_TOOL:
        return decide_read_only(action, rules)
    # If no rule stops it, the CLI decides.
    ruling = decide(action, Rules(deny=rules.deny, ask=rules.ask), PolicyMode.BYPASS)
    if ruling.verdict is Verdict.ALLOW and accepts_edits and (name := RuleMatcher(action).protected):
        return Ruling(Verdict.ASK, None, "mode", f"A file of this name (`{name}`) can name programs that run later.")
    return ruling


def _action(session: "AgentSession", name: str, given: object, cwd: object) -> Action:
    described = describe(name, given, session.cwd)
    call = v1.ToolCallPatch(
        "", kind=described.kind, name=described.name, content=described.content, locations=described.locations,
        raw_input=given,
    )  # fmt: skip
    return action_of(session, call, cwd if isinstance(cwd, str) and os.path.isabs(cwd) else None)


def _decided(decision: str, why: str) -> "JsonObject":
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": why,
        }
    }
