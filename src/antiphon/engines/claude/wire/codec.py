"""From bytes to lines. Never raises: what it does not know is `UnknownLine`, what it cannot read is `GarbledLine`.

A line is decoded in one go, strictly. Only one that is refused gets a second look, which mends cut characters and forgives
wrong optional fields, so that a newer CLI with one odd field loses that field and not the line.
"""

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from antiphon.engines.claude.wire.blocks import ClaudeMessage, ClaudeStruct, StreamEvent
from antiphon.engines.claude.wire.lines import (
    SUBTYPES,
    ApiRetry,
    Assistant,
    AssistantOfBlocks,
    AuthRequiredLine,
    AuthStatusLine,
    BackgroundTasks,
    CommandsLine,
    CompactBoundary,
    ElicitationComplete,
    FallbackLine,
    HookResponse,
    Informational,
    Init,
    KeepAlive,
    Lifecycle,
    LocalCommandOutput,
    NotificationLine,
    PermissionDenied,
    PluginInstall,
    RateLimit,
    RefusalLine,
    Reset,
    ResultLine,
    SessionStateLine,
    Status,
    TaskNotification,
    TaskProgress,
    TaskStarted,
    TaskUpdated,
    TitleLine,
    ToolProgress,
    User,
    UserOfBlocks,
)
from antiphon.protocol.base import BAD_INPUT, Items, JsonObject
from antiphon.protocol.base import Unknown as UnknownPart
from antiphon.protocol.salvage import salvage
from antiphon.text import repaired_json

__all__ = [
    "CanUseTool",
    "ControlCancel",
    "ControlRequest",
    "ControlResponse",
    "ElicitationRequest",
    "GarbledLine",
    "Line",
    "OtherControl",
    "System",
    "UnknownLine",
    "control_answer",
    "control_refusal",
    "control_request",
    "decode",
    "user_message",
]

# Control lines: requests of the CLI, responses to ours, and requests that the CLI cancels.


class CanUseTool(ClaudeStruct, frozen=True, tag_field="subtype", tag="can_use_tool"):
    """A permission request: may this tool run with this input?"""

    tool_name: str
    input: JsonObject
    """Never guessed: a user cannot allow what is not shown."""
    tool_use_id: str | None = None
    display_name: str | None = None
    title: str | None = None
    description: str | None = None
    permission_suggestions: Items[JsonObject] = msgspec.field(default_factory=list)
    blocked_path: str | None = None
    decision_reason: str | None = None
    decision_reason_type: str | None = None
    agent_id: str | None = None
    mcp_server: object = None
    requires_user_interaction: bool = False
    suppress_always_allow_rule: bool = False
    default_to_no: bool = False
    matched_ask_rule: JsonObject | None = None
    """The user's own rule that made it a question, where that is not the reason it gives."""
    repaired: bool = msgspec.field(default=False, name="_mended")
    """Whether a part of it could not be read, so that it may show less than it should."""


class ElicitationRequest(ClaudeStruct, frozen=True, tag_field="subtype", tag="elicitation"):
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


class OtherControl(ClaudeStruct, frozen=True):
    """A request that this engine does not know."""

    subtype: str
    fields: JsonObject = msgspec.field(default_factory=dict)


class ControlRequest(ClaudeStruct, frozen=True):
    """A request of the CLI, which waits for one response with the same id."""

    request_id: str
    request: CanUseTool | ElicitationRequest | OtherControl


class ControlResponse(ClaudeStruct, frozen=True):
    """The response of the CLI to a request of ours."""

    request_id: str
    ok: bool
    response: JsonObject = msgspec.field(default_factory=dict)
    error: str = ""
    error_code: str = ""


class ControlCancel(ClaudeStruct, frozen=True, tag_field="type", tag="control_cancel_request"):
    """The CLI cancels a request."""

    request_id: str


if TYPE_CHECKING:
    _RequestBody: TypeAlias = CanUseTool | ElicitationRequest | UnknownPart
else:
    _RequestBody = CanUseTool | ElicitationRequest


class RequestOnWire(ClaudeStruct, frozen=True, tag_field="type", tag="control_request"):
    """A request as it is on the wire."""

    request_id: str
    request: _RequestBody

    def read(self) -> ControlRequest:
        """The question, with an unknown kind opened."""
        request = self.request
        if isinstance(request, UnknownPart):
            return ControlRequest(
                request_id=self.request_id, request=OtherControl(subtype=request.kind, fields=request.fields)
            )
        return ControlRequest(request_id=self.request_id, request=request)


class _ResponseBody(ClaudeStruct, frozen=True):
    request_id: str
    subtype: str = "success"
    response: JsonObject | None = None
    error: str | None = None
    error_code: str | None = None


class ResponseOnWire(ClaudeStruct, frozen=True, tag_field="type", tag="control_response"):
    """A response as it is on the wire: one level deeper."""

    response: _ResponseBody

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


HEAD: Final = 200
"""Characters of a garbled line that go to the log; it may be megabytes long."""


class UnknownLine(ClaudeStruct, frozen=True):
    """A line of a type that we do not read."""

    type: str
    subtype: str = ""


class GarbledLine(ClaudeStruct, frozen=True):
    """A line that is not JSON, or that lacks something essential."""

    text_head: str
    error: str


System: TypeAlias = (
    ApiRetry
    | AuthRequiredLine
    | BackgroundTasks
    | CommandsLine
    | CompactBoundary
    | ElicitationComplete
    | FallbackLine
    | HookResponse
    | Informational
    | Init
    | LocalCommandOutput
    | NotificationLine
    | PermissionDenied
    | PluginInstall
    | RefusalLine
    | SessionStateLine
    | Status
    | TaskNotification
    | TaskProgress
    | TaskStarted
    | TaskUpdated
    | TitleLine
)
Line: TypeAlias = (
    StreamEvent
    | Assistant
    | User
    | ResultLine
    | ControlRequest
    | ControlResponse
    | ControlCancel
    | Lifecycle
    | Reset
    | RateLimit
    | AuthStatusLine
    | ToolProgress
    | KeepAlive
    | System
    | UnknownLine
    | GarbledLine
)


class _SystemHead(ClaudeStruct, frozen=True, tag_field="type", tag="system"):
    subtype: str = ""


class _Head(ClaudeStruct, frozen=True):
    type: str
    subtype: object = ""


class _RequestHead(ClaudeStruct, frozen=True):
    request_id: str


class _Content(ClaudeStruct, frozen=True):
    content: msgspec.Raw = msgspec.Raw(b"[]")


class _MessageHead(ClaudeStruct, frozen=True):
    message: _Content


_WireLine: TypeAlias = (
    StreamEvent
    | Assistant
    | User
    | ResultLine
    | RequestOnWire
    | ResponseOnWire
    | ControlCancel
    | Lifecycle
    | Reset
    | RateLimit
    | AuthStatusLine
    | ToolProgress
    | KeepAlive
    | _SystemHead
)

_SECOND_CHANCE: Final[dict[str, type[ClaudeStruct]]] = {
    "stream_event": StreamEvent,
    "assistant": Assistant,
    "user": User,
    "result": ResultLine,
    "control_request": RequestOnWire,
    "control_response": ResponseOnWire,
    "control_cancel_request": ControlCancel,
    "command_lifecycle": Lifecycle,
    "conversation_reset": Reset,
    "rate_limit_event": RateLimit,
    "auth_status": AuthStatusLine,
    "tool_progress": ToolProgress,
    "keep_alive": KeepAlive,
}
_OF_BLOCKS: Final[dict[type[ClaudeStruct], type[ClaudeStruct]]] = {Assistant: AssistantOfBlocks, User: UserOfBlocks}

_OUTER: Final = frozenset({_SystemHead, RequestOnWire, ResponseOnWire})
"""Lines of which the first decoder reads only the outer part."""

_line: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_WireLine)
_head = msgspec.json.Decoder(_Head)
_request_head = msgspec.json.Decoder(_RequestHead)
_message_head = msgspec.json.Decoder(_MessageHead)
_system: dict[str, msgspec.json.Decoder[Any]] = {
    subtype: msgspec.json.Decoder(kind) for subtype, kind in SUBTYPES.items()
}


def decode(line: bytes) -> Line:
    """Read one line."""
    try:
        found = _line.decode(line)
        return _opened(found, line) if type(found) in _OUTER else found
    except BAD_INPUT as refusal:
        return _second_look(line, refusal)


def _opened(found: "_SystemHead | RequestOnWire | ResponseOnWire", line: bytes) -> Line:
    """Read what is inside of a line of which only the outer part was read."""
    if not isinstance(found, _SystemHead):
        return found.read()
    decoder = _system.get(found.subtype)
    return decoder.decode(line) if decoder else UnknownLine(type="system", subtype=found.subtype)


def _second_look(line: bytes, refusal: Exception) -> Line:
    repaired = repaired_json(line)
    try:
        if repaired is not line:
            found = _line.decode(repaired)
            return _marked(_opened(found, repaired) if type(found) in _OUTER else found)
    except BAD_INPUT as error:
        refusal = error
    try:
        head = _head.decode(repaired)
    except BAD_INPUT:
        return _garbled(repaired, refusal)
    try:
        return _marked(_forgivingly(repaired, head.type, head.subtype if isinstance(head.subtype, str) else ""))
    except BAD_INPUT as error:
        return _unreadable_question(repaired, head.type) or _garbled(repaired, error)


def _forgivingly(line: bytes, type_: str, subtype: str) -> Line:
    kind = SUBTYPES.get(subtype) if type_ == "system" else _SECOND_CHANCE.get(type_)
    if kind is None:
        return UnknownLine(type=type_, subtype=subtype)
    result: Any
    if kind in _OF_BLOCKS and bytes(_message_head.decode(line).message.content)[:1] == b"[":
        result = salvage(line, _OF_BLOCKS[kind])
        message = ClaudeMessage(**msgspec.structs.asdict(result.message))
        result = kind(**{**msgspec.structs.asdict(result), "message": message})
    else:
        result = salvage(line, kind)
    found: Line = result.read() if isinstance(result, RequestOnWire | ResponseOnWire) else result
    return found


def _marked(line: Line) -> Line:
    """Mark a permission request that was repaired, so that a missing warning is not taken for none."""
    if not isinstance(line, ControlRequest) or not isinstance(line.request, CanUseTool):
        return line
    return msgspec.structs.replace(line, request=msgspec.structs.replace(line.request, repaired=True))


def _unreadable_question(line: bytes, type_: str) -> ControlRequest | None:
    """Return a request that can only be refused: the CLI waits for a response all the same."""
    try:
        id = _request_head.decode(line).request_id if type_ == "control_request" else None
    except BAD_INPUT:
        return None
    return None if id is None else ControlRequest(request_id=id, request=OtherControl(subtype=""))


def _garbled(line: bytes, error: Exception) -> GarbledLine:
    reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
    return GarbledLine(text_head=line[: HEAD * 4].decode(errors="replace")[:HEAD], error=reason[:HEAD])


# What we send to the CLI: whole lines with their line feed.

_encode = msgspec.json.Encoder().encode


def user_message(content: str | list[JsonObject], uuid: str) -> bytes:
    """Encode a message of the user: text or blocks. The id comes back in the turn's result."""
    return _encode({"type": "user", "uuid": uuid, "message": {"role": "user", "content": content}}) + b"\n"


def control_request(request_id: str, subtype: str, fields: JsonObject) -> bytes:
    """Ask the CLI for something."""
    request = {**fields, "subtype": subtype}
    return _encode({"type": "control_request", "request_id": request_id, "request": request}) + b"\n"


def control_answer(request_id: str, body: JsonObject) -> bytes:
    """Answer a question of the CLI."""
    return _response({"subtype": "success", "request_id": request_id, "response": body})


def control_refusal(request_id: str, error: str) -> bytes:
    """Encode the refusal of a request."""
    return _response({"subtype": "error", "request_id": request_id, "error": error})


def _response(response: JsonObject) -> bytes:
    return _encode({"type": "control_response", "response": response}) + b"\n"
