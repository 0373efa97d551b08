"""Answers of clients to the requests of an agent: what they mean, what the agent gets for them, and what is written down. Pure functions.

What the agent gets is in the form of the schema, made of what was understood. What is not understood is a rejection, or cancels a question.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
from msgspec import Raw

from antiphon.agent.questions import Permission
from antiphon.errors import AcpError
from antiphon.gateway.events import member
from antiphon.permission.gate import PermissionChoice
from antiphon.policy import Verdict
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.permission import PermissionOptionKind as Kind
from antiphon.rpc.envelope import BAD_INPUT, Request, Response, head_of_answer

if TYPE_CHECKING:
    from antiphon.gateway.client import RemoteClient

__all__ = [
    "CANCELLED",
    "Answered",
    "choice_of",
    "decision_in",
    "elicitation_frame",
    "form_of",
    "outcome_of",
    "without_content",
]

Answered: TypeAlias = "tuple[RemoteClient, Response, bytes] | None"
"""The client that answered, its response and the bytes of that; None without an answer."""

CANCELLED: Final = {
    m.REQUEST_PERMISSION.name: b'{"outcome":{"outcome":"cancelled"}}',
    m.CREATE_ELICITATION.name: b'{"action":"cancel"}',
}
"""The result of a request whose turn was cancelled."""


def form_of(request: Request) -> str:
    """What a client has to be able to show for a question."""
    return "url" if member(bytes(request.params), "mode") == b'"url"' else "form"


def choice_of(found: "Answered", options: list[v1.PermissionOption]) -> PermissionChoice:
    """Make a choice of an answer. What is no option of the request is no permission, and of two under one id the one that rejects counts."""
    option = None if found is None else Permission(outcome_of(found[1]) or v1.Cancelled(), options).option
    chosen = None if option is None else option.option_id
    kinds = [each.kind for each in options if each.option_id == chosen]
    allowed = bool(kinds) and all(kind.known and kind in (Kind.ALLOW_ONCE, Kind.ALLOW_ALWAYS) for kind in kinds)
    by = "gateway" if found is None else found[0].principal.name
    return PermissionChoice(Verdict.ALLOW if allowed else Verdict.DENY, option_id=chosen, by=by)


def outcome_of(response: Response) -> v1.PermissionOutcome | None:
    """What a client answered to a permission request, in the form of the schema or in one that is known; None if it makes no sense."""
    try:
        return m.REQUEST_PERMISSION.decode_result(response.result or Raw(b"null")).outcome
    except AcpError:
        return None


class _GivenOutcome(msgspec.Struct, rename="camel"):
    outcome: str = ""
    option_id: str = ""


class _GivenResult(msgspec.Struct):
    outcome: _GivenOutcome = msgspec.field(default_factory=_GivenOutcome)
    action: str = ""


class _GivenResponse(msgspec.Struct):
    result: _GivenResult | None = None


def decision_in(frame: bytes) -> str:
    """Return what a response to the agent says, for the audit log: the id of an option, or what became of a question. Not what people filled in."""
    try:
        result = msgspec.json.decode(frame or b"{}", type=_GivenResponse).result
    except BAD_INPUT:
        result = None
    if result is None:
        return "an error" if frame else "cancelled"
    return result.outcome.option_id or result.outcome.outcome or result.action or "an error"


class _Elicited(msgspec.Struct):
    action: Literal["accept", "decline", "cancel"]
    content: Raw = Raw(b"")


def elicitation_frame(request: Request, found: "Answered") -> bytes:
    """Return the response to a question, in the form of the schema: what was filled in as it was written. What makes no sense cancels it."""
    result = CANCELLED[request.method]
    if found is not None and found[1].result is not None:
        with suppress(*BAD_INPUT):
            given = msgspec.json.decode(found[1].result, type=_Elicited)
            content = b',"content":%b' % bytes(given.content) if given.action == "accept" and given.content else b""
            result = b'{"action":"%b"%b}' % (given.action.encode(), content)
    return b"%b%b}" % (head_of_answer(request.id), result)


def without_content(frame: bytes) -> bytes:
    """Return the response to a question with its action alone: what a person filled in is for the agent, and may be a password."""
    action = member(member(frame, "result") or b"{}", "action")
    return b"%b%b}" % (head_of_answer(0), b"{}" if action is None else b'{"action":%b}' % action)
