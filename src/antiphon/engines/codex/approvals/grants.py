"""What an approval of a command can amount to, beyond this once. Pure.

Rule 1: an option says exactly what it allows, or it is not offered.
Rule 2: what lasts beyond the session is offered only where the server offers it; "in this session" also where it merely does not
mention it, because it never does for a plain command and keeps to it all the same.
"""

import shlex
from collections.abc import Iterator
from typing import Any, Final

from antiphon.engines.codex import wire
from antiphon.engines.codex.approvals.decisions import NEW, OLD, ONCE, REJECT, SESSION, STOP, Offer
from antiphon.protocol import v1

__all__ = ["offers_for", "offers_of_old"]

MAX_NAME: Final = 160
"""Longest name of an option, in characters. A longer prefix is shown above the options instead."""

MAX_PREFIX: Final = 1000
"""Longest prefix that is offered at all. Nobody reads a longer one before they allow it for good."""

KEPT: Final = "What is allowed in all projects is kept among Codex's own rules, until it is removed there."

_Kind = v1.PermissionOptionKind
_AMEND: Final = "acceptWithExecpolicyAmendment"
_NETWORK: Final = "applyNetworkPolicyAmendment"


def offers_for(asked: wire.CommandApproval) -> list[Offer]:
    """The options for a command, from the least that can be allowed to the end of the turn."""
    listed = asked.available_decisions
    offers = [Offer(ONCE, NEW.once)] if listed is None or NEW.once in listed else []
    if _for_session(asked):
        option = v1.PermissionOption(SESSION, f"Always allow {_what(asked)} in this session", _Kind.ALLOW_ALWAYS)
        offers.append(Offer(option, NEW.session))
    if asked.network_approval_context is None:
        offers.extend(_prefixes(asked))
    else:
        offers.extend(_hosts(asked))
    return [*offers, Offer(REJECT, NEW.decline), Offer(STOP, NEW.stop)]


def offers_of_old() -> list[Offer]:
    """The older protocol proposes nothing that lasts longer than the session."""
    session = v1.PermissionOption(SESSION, "Always allow this command in this session", _Kind.ALLOW_ALWAYS)
    return [Offer(ONCE, OLD.once), Offer(session, OLD.session), Offer(REJECT, OLD.decline), Offer(STOP, OLD.stop)]


def _for_session(asked: wire.CommandApproval) -> bool:
    listed = asked.available_decisions
    if listed is not None and NEW.session in listed:
        return True
    if asked.network_approval_context is not None:
        return listed is None
    # Input to a running command is asked about each time, whatever was said before.
    return asked.kind == "command" and not asked.additional_permissions


def _what(asked: wire.CommandApproval) -> str:
    host = asked.network_approval_context
    if host is not None:
        return f"`{host.host}`" if _plain(host.host) else "this host"
    if asked.additional_permissions:
        return "this command with these permissions"
    return "this command" if asked.kind == "command" else "this"


def _prefixes(asked: wire.CommandApproval) -> Iterator[Offer]:
    """A rule for commands that begin in the same way, for good and everywhere."""
    if asked.available_decisions is None:
        proposed: list[Any] = [asked.proposed_execpolicy_amendment]
    else:
        proposed = [_inside(each, _AMEND, "execpolicy_amendment") for each in asked.available_decisions]
    for words in proposed:
        if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
            continue
        prefix = shlex.join(words)
        if not _plain(prefix) or len(prefix) > MAX_PREFIX:
            continue
        name = f"Always allow commands that begin with `{prefix}`, in all projects"
        note = KEPT
        if len(name) > MAX_NAME:
            name = "Always allow commands that begin with what is shown above, in all projects"
            note = f"What could be allowed in all projects is every command that begins with:\n\n`{prefix}`\n\n{KEPT}"
        option = v1.PermissionOption("allow_always_prefix", name, _Kind.ALLOW_ALWAYS)
        yield Offer(option, {_AMEND: {"execpolicy_amendment": words}}, note)
        return


def _hosts(asked: wire.CommandApproval) -> Iterator[Offer]:
    """A rule for the host, one way or the other."""
    if asked.available_decisions is None:
        proposed: list[Any] = asked.proposed_network_policy_amendments or []
    else:
        proposed = [_inside(each, _NETWORK, "network_policy_amendment") for each in asked.available_decisions]
    for rule in proposed:
        host, action = (rule.get("host"), rule.get("action")) if isinstance(rule, dict) else (None, None)
        if not isinstance(host, str) or not _plain(host):
            continue
        decision = {_NETWORK: {"network_policy_amendment": {"host": host, "action": action}}}
        if action == "allow":
            allow = v1.PermissionOption(
                "allow_always_host", f"Always allow `{host}`, in all projects", _Kind.ALLOW_ALWAYS
            )
            yield Offer(allow, decision, KEPT)
        elif action == "deny":
            block = v1.PermissionOption(
                "reject_always_host", f"Always block `{host}`, in all projects", _Kind.REJECT_ALWAYS
            )
            yield Offer(block, decision)


def _inside(decision: Any, name: str, part: str) -> Any:
    inner = decision.get(name) if isinstance(decision, dict) else None
    return inner.get(part) if isinstance(inner, dict) else None


def _plain(named: str) -> bool:
    """Whether a person sees all of it."""
    return bool(named) and named.isprintable() and "`" not in named
