"""Asking for permission without options, and answering with a decision.

A decision that answers a question of ours arrives as the choice of an option named like a kind of option: `allow_once`,
`allow_always` or `reject_once`. Whoever reads an answer alone does not know the options that were offered, so the
caller who does know them looks first for the option with that id and then for one of that kind.
"""

from typing import Final

from antiphon.protocol.dialects.rule import (
    Fields,
    Rule,
    fields_of,
    is_null,
    items_of,
    opened,
    packed,
    text_of,
    with_meta,
)
from antiphon.protocol.dialects.sources import GO_CLIENT, OPENCODE

__all__ = ["PERMISSION_ID", "PERMISSION_RULES"]

PERMISSION_ID: Final = "antiphon/permissionId"
"""In the `_meta` of a question for permission: the id it was given besides that of the call."""

_KINDS: Final = {"once": "allow_once", "always": "allow_always", "reject": "reject_once"}
"""The three decisions → the kinds of option they amount to."""
_DECISIONS: Final = {kind: decision for decision, kind in _KINDS.items()}

_OPTIONS: Final = [
    {"optionId": "once", "name": "Allow once", "kind": "allow_once"},
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
]


def _without_options(fields: Fields) -> Fields | None:
    """`{permissionId, title, kind, toolCallId?, content?}`: the call's own fields stand beside the question's."""
    if "toolCall" in fields or text_of(fields.get("permissionId")) is None:
        return None
    own = ("title", "kind", "content")
    known = text_of(fields.get("toolCallId")) is not None
    call = {"toolCallId": fields["toolCallId" if known else "permissionId"]}
    call |= {key: fields[key] for key in own if key in fields}
    question = {key: value for key, value in fields.items() if key not in (*own, "toolCallId", "permissionId")}
    question = {"options": packed(_OPTIONS), **question, "toolCall": packed(call)}
    return with_meta(question, PERMISSION_ID, fields["permissionId"]) if known else question


def _as_decision(question: Fields, answer: bytes) -> bytes:
    """Our outcome as `{decision, cancelled}`. What is not one of the three is a rejection, never an approval."""
    outcome = fields_of((fields_of(answer) or {}).get("outcome")) or {}
    chosen = text_of(outcome.get("optionId"))
    if text_of(outcome.get("outcome")) == "cancelled":
        return b'{"decision":"reject","cancelled":true}'
    for option in map(fields_of, items_of(question.get("options")) or ()):
        if option is not None and text_of(option.get("optionId")) == chosen:  # the question had options of its own
            chosen = _DECISIONS.get(text_of(option.get("kind")) or "")
            break
    return bytes(packed({"decision": chosen if chosen in _KINDS else "reject"}))


def _decision(fields: Fields) -> Fields | None:
    if "outcome" in fields:
        return None
    rest = {key: value for key, value in fields.items() if key not in ("decision", "cancelled")}
    if not is_null(fields.get("cancelled")) and opened(fields["cancelled"]) is True:
        return {**rest, "outcome": packed({"outcome": "cancelled"})}
    kind = _KINDS.get(text_of(fields.get("decision")) or "")
    return None if kind is None else {**rest, "outcome": packed({"outcome": "selected", "optionId": kind})}


def _flat_outcome(fields: Fields) -> Fields | None:
    """`{outcome: "selected", optionId}`, without the object around the two."""
    if text_of(fields.get("outcome")) is None:
        return None
    own = {key: fields[key] for key in ("outcome", "optionId") if key in fields}
    rest = {key: value for key, value in fields.items() if key not in own}
    return {**rest, "outcome": packed(own)}


_METHOD: Final = "session/request_permission"

PERMISSION_RULES: Final = (
    Rule("permission without options", OPENCODE, _METHOD, "params", _without_options, answer=_as_decision),
    Rule("permission by decision", OPENCODE, _METHOD, "result", _decision),
    Rule("flat outcome", GO_CLIENT, _METHOD, "result", _flat_outcome),
)
