"""What a client is shown beside a request of the agent, and what its answer has the gateway remember.

The facts are the gateway's own: the action as the policy understood it, why it is asked, and the very rules that "always" would store. What
the agent wrote in their place is left out, so that a page can show them as true.
"""

import shlex
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from antiphon.gateway.base import AccessRole
from antiphon.permission.gate import PermissionChoice, Question
from antiphon.rpc.envelope import BAD_INPUT
from antiphon.rpc.spans import params_values_of, with_value

if TYPE_CHECKING:
    from antiphon.gateway.answers import Answered
    from antiphon.gateway.base import Principal
    from antiphon.policy import Action, Scope

__all__ = ["facts_of", "remembered_scope", "with_facts", "with_scope"]

FACTS: Final = frozenset(
    {"action", "agent", "always", "cwd", "number", "policy", "remember", "request", "scopes", "time"}
)
"""The names that mean something of the gateway, and so never come from the agent."""

SCOPES: Final[dict[str, "Scope"]] = {"session": "session", "project": "project", "user": "everywhere"}
"""How far an answer counts, as clients write it and as the store does."""


def facts_of(question: Question, scopes: "tuple[Scope, ...]") -> dict[str, object]:
    """Return the facts about a permission request; `scopes` are those that the gate can store."""
    ruling, always = question.ruling, [rule.text for rule in question.always]
    policy = {"verdict": ruling.verdict.value, "why": ruling.why}
    if ruling.rule is not None:
        policy["rule"] = ruling.rule.text
    facts: dict[str, object] = {
        "action": {"kind": question.action.kind, "subject": _subject(question.action)},
        "policy": policy,
    }
    if always:
        facts |= {"always": always, "scopes": [name for name, scope in SCOPES.items() if scope in scopes]}
    return facts


def _subject(action: "Action") -> str:
    """Return the exact command, paths or address of an action; else its title."""
    if action.command is not None:
        return action.command
    if action.words is not None:
        return shlex.join(action.words)
    return "\n".join(action.paths) or action.url or action.title


class _OwnMeta(msgspec.Struct):
    antiphon: dict[str, Raw] = {}


def with_facts(frame: bytes, facts: dict[str, object], principal: "Principal") -> bytes:
    """Return a request of the agent with facts in its `_meta`, as they are for a principal.

    It is offered only the scopes that it may have remembered.
    """
    own: dict[str, Raw] = {}
    for begin, end in params_values_of(frame, "_meta"):
        try:
            own = msgspec.json.decode(frame[begin:end], type=_OwnMeta).antiphon
        except BAD_INPUT:
            own = {}  # nothing that could be kept
    kept: dict[str, object] = {name: value for name, value in own.items() if name not in FACTS}
    offered = facts.get("scopes")
    if isinstance(offered, list):
        facts = {**facts, "scopes": [scope for scope in offered if not reaches_too_far(principal, scope)]}
    return with_value(frame, ("params", "_meta", "antiphon"), msgspec.json.encode({**kept, **facts}))


# The answer.


class _Remember(msgspec.Struct):
    scope: str = ""


class _About(msgspec.Struct):
    remember: _Remember | None = None


class _Meta(msgspec.Struct):
    antiphon: _About | None = None


class _Result(msgspec.Struct):
    meta: _Meta | None = msgspec.field(default=None, name="_meta")


def remembered_scope(found: "Answered", facts: dict[str, object]) -> "Scope | None":
    """Return how far the answer of a client is to count; None: once. Only a client that was shown the rules can have them remembered."""
    if found is None or not found[0].offer.numbers or "always" not in facts:
        return None
    try:
        meta = msgspec.json.decode(found[1].result or b"{}", type=_Result).meta
    except BAD_INPUT:
        return None
    remember = None if meta is None or meta.antiphon is None else meta.antiphon.remember
    if remember is None or reaches_too_far(found[0].principal, remember.scope):
        return None
    offered = facts["scopes"]
    return SCOPES.get(remember.scope) if isinstance(offered, list) and remember.scope in offered else None


def reaches_too_far(principal: "Principal", scope: str) -> bool:
    """Whether a principal would decide about more than the session at hand.

    Rules of a project and of a user outlive the token, and count in the sessions that the owner runs without a gateway: they are for admins.
    """
    return scope != "session" and not principal.may(AccessRole.ADMIN)


def with_scope(choice: PermissionChoice, scope: "Scope | None") -> PermissionChoice:
    """Return a choice that is remembered, if it is one of the options that people had: what is not understood is a rejection, and only this once.

    The agent gets an option for once: its own "always" may cover more than the rule that was shown.
    """
    if scope is None or choice.option_id is None:
        return choice
    return PermissionChoice(choice.verdict, scope, by=choice.by)
