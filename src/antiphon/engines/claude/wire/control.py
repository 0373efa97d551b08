"""Control lines: questions that the CLI asks us, answers to ours, and questions that it takes back."""

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from antiphon.engines.claude.wire.base import Part
from antiphon.protocol.base import Items, JsonObject
from antiphon.protocol.base import Unknown as UnknownPart

__all__ = ["CanUseTool", "ControlCancel", "ControlRequest", "ControlResponse", "Elicitation", "OtherControl"]


class CanUseTool(Part, frozen=True, tag_field="subtype", tag="can_use_tool"):
    """May this tool run with this input?"""

    tool_name: str
    input: JsonObject
    """Never guessed: nobody can allow what they do not see."""
    tool_use_id: str | None = None
    display_name: str | None = None
    title: str | None = None
    description: str | None = None
    permission_suggestions: Items[JsonObject] = msgspec.field(default_factory=list)
    blocked_path: str | None = None
    decision_reason: str | None = None
    decision_reason_type: str | None = None
    agent_id: str | None = None
    mcp_server: Any = None
    requires_user_interaction: bool = False
    suppress_always_allow_rule: bool = False
    default_to_no: bool = False
    matched_ask_rule: JsonObject | None = None
    """The user's own rule that made it a question, where that is not the reason it gives."""
    mended: bool = msgspec.field(default=False, name="_mended")
    """Something in it could not be read, and what it says about itself may be less than was meant."""


class Elicitation(Part, frozen=True, tag_field="subtype", tag="elicitation"):
    """An MCP server wants something from the user: a form filled in, or an address visited."""

    mcp_server_name: str = ""
    message: str = ""
    mode: str | None = None
    url: str | None = None
    elicitation_id: str | None = None
    requested_schema: JsonObject | None = None
    title: str | None = None
    display_name: str | None = None
    description: str | None = None


class OtherControl(Part, frozen=True):
    """A question that this engine has no answer to."""

    subtype: str
    fields: JsonObject = msgspec.field(default_factory=dict)


class ControlRequest(Part, frozen=True):
    """The CLI asks; it waits for one answer with the same id."""

    request_id: str
    request: CanUseTool | Elicitation | OtherControl


class ControlResponse(Part, frozen=True):
    """The CLI answers what we asked."""

    request_id: str
    ok: bool
    response: JsonObject = msgspec.field(default_factory=dict)
    error: str = ""
    error_code: str = ""


class ControlCancel(Part, frozen=True, tag_field="type", tag="control_cancel_request"):
    """The CLI takes a question back."""

    request_id: str


if TYPE_CHECKING:
    _Asked: TypeAlias = CanUseTool | Elicitation | UnknownPart
else:
    _Asked = CanUseTool | Elicitation


class RequestOnWire(Part, frozen=True, tag_field="type", tag="control_request"):
    """A question as it is written."""

    request_id: str
    request: _Asked

    def read(self) -> ControlRequest:
        """The question, with an unknown kind opened."""
        asked = self.request
        if isinstance(asked, UnknownPart):
            return ControlRequest(
                request_id=self.request_id, request=OtherControl(subtype=asked.kind, fields=asked.fields)
            )
        return ControlRequest(request_id=self.request_id, request=asked)


class _AnswerOnWire(Part, frozen=True):
    request_id: str
    subtype: str = "success"
    response: JsonObject | None = None
    error: str | None = None
    error_code: str | None = None


class ResponseOnWire(Part, frozen=True, tag_field="type", tag="control_response"):
    """An answer as it is written: one level deeper."""

    response: _AnswerOnWire

    def read(self) -> ControlResponse:
        """The answer, without the wrapping."""
        answer = self.response
        return ControlResponse(
            request_id=answer.request_id,
            ok=answer.subtype == "success",
            response=answer.response or {},
            error=answer.error or "",
            error_code=answer.error_code or "",
        )
