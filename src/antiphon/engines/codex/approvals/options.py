"""Options of a permission request and the decisions they stand for, in the newer and the older protocol. Pure."""

import json
import shlex
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from antiphon.engines.codex import wire
from antiphon.engines.questions import as_note, call_with, details_item
from antiphon.protocol import v1
from antiphon.protocol.base import JsonObject
from antiphon.text import exact, fenced

__all__ = [
    "NEW",
    "OLD",
    "ONCE",
    "REJECT",
    "SESSION",
    "STOP",
    "ApprovalOption",
    "DecisionForms",
    "as_json",
    "decided",
    "explained",
    "offers_for",
    "offers_of_old",
]

_Kind = v1.PermissionOptionKind
SESSION: Final = "allow_session"
ONCE: Final = v1.PermissionOption("allow", "Allow once", _Kind.ALLOW_ONCE)
REJECT: Final = v1.PermissionOption("reject", "Reject", _Kind.REJECT_ONCE)
STOP: Final = v1.PermissionOption("reject_and_stop", "Reject and stop", _Kind.REJECT_ONCE)

REJECTED: Final = "The user rejected this: it did not happen, and nothing was changed."
"""Read by the model. Only the older protocol has a place for it."""


class DecisionForms(msgspec.Struct, frozen=True):
    """How a version of the protocol writes decisions."""

    once: object
    session: object
    decline: object
    stop: object

    @property
    def declined(self) -> JsonObject:
        """The response that declines, after which the turn goes on."""
        return {"decision": self.decline}

    @property
    def stopped(self) -> JsonObject:
        """The response that declines, and ends the turn."""
        return {"decision": self.stop}


NEW: Final = DecisionForms("accept", "acceptForSession", "decline", "cancel")
# A server that knows `denied` only as a string takes what it cannot read for just that.
OLD: Final = DecisionForms("approved", "approved_for_session", {"denied": {"rejection": REJECTED}}, "abort")


class ApprovalOption(msgspec.Struct, frozen=True):
    """An option, the decision that it stands for, and a note to show with it."""

    option: v1.PermissionOption
    decision: object
    note: str | None = None


def decided(offers: list[ApprovalOption], chosen: v1.PermissionOption | None, argv: DecisionForms) -> JsonObject:
    """Return the response. What was not an option is not an approval."""
    for offer in offers:
        if offer.option is chosen:
            return {"decision": offer.decision}
    return argv.declined


# Notes of a request that the call does not show already.


def explained(call: v1.ToolCallPatch, notes: Iterable[str | None], ours: Iterable[str | None] = ()) -> v1.ToolCallPatch:
    """Return the call with the notes that are new, each once. Our own notes name what is allowed, and are never cut."""
    known = [call.title or "", *_texts(call)]
    notes_added = list[str]()
    for note in (*map(as_note, notes), *ours):
        if note and not any(note in one for one in known):
            known.append(note)
            notes_added.append(note)
    return (
        call_with(call, content=[*(call.content or []), details_item("\n\n".join(notes_added))])
        if notes_added
        else call
    )


def _texts(call: v1.ToolCallPatch) -> list[str]:
    items = [each.content for each in call.content or () if isinstance(each, v1.ContentItem)]
    return [item.text for item in items if isinstance(item, v1.TextBlock)]


def as_json(value: object) -> str:
    """Return any value as fenced JSON."""
    return fenced(exact(json.dumps(value, ensure_ascii=False, indent=2)), "json")


# What an approval of a command can amount to, beyond this once. Pure.
# Rule 1: an option names exactly what it allows, or it is not offered.
# Rule 2: what lasts beyond the session is offered only where the server offers it; "in this session" also where it merely does not
# mention it, because it never does for a plain command and keeps to it all the same.

MAX_NAME: Final = 160
"""Longest name of an option, in characters. A longer prefix is shown above the options instead."""

MAX_PREFIX: Final = 1000
"""Longest prefix that is an option at all. Users do not read a longer one before they allow it for good."""

STORED_BY_CODEX: Final = "What is allowed in all projects is kept among Codex's own rules, until it is removed there."

_AMEND: Final = "acceptWithExecpolicyAmendment"
_NETWORK: Final = "applyNetworkPolicyAmendment"


def offers_for(request: wire.CommandApproval) -> list[ApprovalOption]:
    """The options for a command, from the least that can be allowed to the end of the turn."""
    listed = request.available_decisions
    offers = [ApprovalOption(ONCE, NEW.once)] if listed is None or NEW.once in listed else []
    if _for_session(request):
        option = v1.PermissionOption(SESSION, f"Always allow {_what(request)} in this session", _Kind.ALLOW_ALWAYS)
        offers.append(ApprovalOption(option, NEW.session))
    if request.network_approval_context is None:
        offers.extend(_prefixes(request))
    else:
        offers.extend(_hosts(request))
    return [*offers, ApprovalOption(REJECT, NEW.decline), ApprovalOption(STOP, NEW.stop)]


def offers_of_old() -> list[ApprovalOption]:
    """The older protocol proposes nothing that lasts longer than the session."""
    session = v1.PermissionOption(SESSION, "Always allow this command in this session", _Kind.ALLOW_ALWAYS)
    return [
        ApprovalOption(ONCE, OLD.once),
        ApprovalOption(session, OLD.session),
        ApprovalOption(REJECT, OLD.decline),
        ApprovalOption(STOP, OLD.stop),
    ]


def _for_session(request: wire.CommandApproval) -> bool:
    listed = request.available_decisions
    if listed is not None and NEW.session in listed:
        return True
    if request.network_approval_context is not None:
        return listed is None
    # Input to a running command needs permission each time, whatever was decided before.
    return request.kind == "command" and not request.additional_permissions


def _what(request: wire.CommandApproval) -> str:
    host = request.network_approval_context
    if host is not None:
        return f"`{host.host}`" if _plain(host.host) else "this host"
    if request.additional_permissions:
        return "this command with these permissions"
    return "this command" if request.kind == "command" else "this"


def _prefixes(request: wire.CommandApproval) -> Iterator[ApprovalOption]:
    """A rule for commands that begin in the same way, for good and everywhere."""
    if request.available_decisions is None:
        proposed: list[object] = [request.proposed_execpolicy_amendment]
    else:
        proposed = [_inside(each, _AMEND, "execpolicy_amendment") for each in request.available_decisions]
    for argv in proposed:
        if not isinstance(argv, list) or not argv or not all(isinstance(argument, str) for argument in argv):
            continue
        prefix = shlex.join(argv)
        if not _plain(prefix) or len(prefix) > MAX_PREFIX:
            continue
        name = f"Always allow commands that begin with `{prefix}`, in all projects"
        note = STORED_BY_CODEX
        if len(name) > MAX_NAME:
            name = "Always allow commands that begin with what is shown above, in all projects"
            note = f"What could be allowed in all projects is every command that begins with:\n\n`{prefix}`\n\n{STORED_BY_CODEX}"
        option = v1.PermissionOption("allow_always_prefix", name, _Kind.ALLOW_ALWAYS)
        yield ApprovalOption(option, {_AMEND: {"execpolicy_amendment": argv}}, note)
        return


def _hosts(request: wire.CommandApproval) -> Iterator[ApprovalOption]:
    """A rule for the host, one way or the other."""
    if request.available_decisions is None:
        proposed: list[object] = request.proposed_network_policy_amendments or []
    else:
        proposed = [_inside(each, _NETWORK, "network_policy_amendment") for each in request.available_decisions]
    for rule in proposed:
        host, action = (rule.get("host"), rule.get("action")) if isinstance(rule, dict) else (None, None)
        if not isinstance(host, str) or not _plain(host):
            continue
        decision = {_NETWORK: {"network_policy_amendment": {"host": host, "action": action}}}
        if action == "allow":
            allow = v1.PermissionOption(
                "allow_always_host", f"Always allow `{host}`, in all projects", _Kind.ALLOW_ALWAYS
            )
            yield ApprovalOption(allow, decision, STORED_BY_CODEX)
        elif action == "deny":
            block = v1.PermissionOption(
                "reject_always_host", f"Always block `{host}`, in all projects", _Kind.REJECT_ALWAYS
            )
            yield ApprovalOption(block, decision)


def _inside(decision: object, name: str, part: str) -> object:
    inner = decision.get(name) if isinstance(decision, dict) else None
    return inner.get(part) if isinstance(inner, dict) else None


def _plain(named: str) -> bool:
    """Whether a person sees all of it."""
    return bool(named) and named.isprintable() and "`" not in named
