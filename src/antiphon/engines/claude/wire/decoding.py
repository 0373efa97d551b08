"""From bytes to lines. Never raises: what it does not know is `Unknown`, what it cannot read is `Garbled`.

A line is decoded in one go, strictly. Only one that is refused gets a second look, which mends cut characters and forgives
wrong optional fields, so that a newer CLI with one odd field loses that field and not the line.
"""

import re
from typing import Any, Final, TypeAlias

import msgspec

from antiphon.engines.claude.wire import system
from antiphon.engines.claude.wire.base import Part
from antiphon.engines.claude.wire.blocks import Message
from antiphon.engines.claude.wire.control import (
    CanUseTool,
    ControlCancel,
    ControlRequest,
    ControlResponse,
    OtherControl,
    RequestOnWire,
    ResponseOnWire,
)
from antiphon.engines.claude.wire.events import StreamEvent
from antiphon.engines.claude.wire.lines import (
    Assistant,
    AssistantOfBlocks,
    AuthStatus,
    KeepAlive,
    Lifecycle,
    RateLimit,
    Reset,
    Result,
    ToolProgress,
    User,
    UserOfBlocks,
)
from antiphon.protocol.base import BAD_INPUT
from antiphon.protocol.salvage import salvage

__all__ = ["Garbled", "Line", "System", "Unknown", "decode"]

HEAD: Final = 200
"""Characters of a garbled line that are kept for the log; it may be megabytes long."""


class Unknown(Part, frozen=True):
    """A line of a sort that we do not read."""

    type: str
    subtype: str = ""


class Garbled(Part, frozen=True):
    """A line that is no JSON, or of a known sort with something essential missing."""

    text_head: str
    error: str


System: TypeAlias = (
    system.ApiRetry
    | system.AuthRequired
    | system.BackgroundTasks
    | system.CommandsChanged
    | system.CompactBoundary
    | system.ElicitationComplete
    | system.FellBack
    | system.HookResponse
    | system.Informational
    | system.Init
    | system.LocalCommandOutput
    | system.Notification
    | system.PermissionDenied
    | system.PluginInstall
    | system.Refused
    | system.SessionState
    | system.Status
    | system.TaskNotification
    | system.TaskProgress
    | system.TaskStarted
    | system.TaskUpdated
    | system.TitleChanged
)
Line: TypeAlias = (
    StreamEvent
    | Assistant
    | User
    | Result
    | ControlRequest
    | ControlResponse
    | ControlCancel
    | Lifecycle
    | Reset
    | RateLimit
    | AuthStatus
    | ToolProgress
    | KeepAlive
    | System
    | Unknown
    | Garbled
)


class _SystemHead(Part, frozen=True, tag_field="type", tag="system"):
    subtype: str = ""


class _Head(Part, frozen=True):
    type: str
    subtype: Any = ""


class _Asking(Part, frozen=True):
    request_id: str


class _Content(Part, frozen=True):
    content: msgspec.Raw = msgspec.Raw(b"[]")


class _Saying(Part, frozen=True):
    message: _Content


_WireLine: TypeAlias = (
    StreamEvent
    | Assistant
    | User
    | Result
    | RequestOnWire
    | ResponseOnWire
    | ControlCancel
    | Lifecycle
    | Reset
    | RateLimit
    | AuthStatus
    | ToolProgress
    | KeepAlive
    | _SystemHead
)

_SECOND_CHANCE: Final[dict[str, type[Part]]] = {
    "stream_event": StreamEvent,
    "assistant": Assistant,
    "user": User,
    "result": Result,
    "control_request": RequestOnWire,
    "control_response": ResponseOnWire,
    "control_cancel_request": ControlCancel,
    "command_lifecycle": Lifecycle,
    "conversation_reset": Reset,
    "rate_limit_event": RateLimit,
    "auth_status": AuthStatus,
    "tool_progress": ToolProgress,
    "keep_alive": KeepAlive,
}
_OF_BLOCKS: Final[dict[type[Part], type[Part]]] = {Assistant: AssistantOfBlocks, User: UserOfBlocks}

_line: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_WireLine)
_head = msgspec.json.Decoder(_Head)
_asking = msgspec.json.Decoder(_Asking)
_saying = msgspec.json.Decoder(_Saying)
_system: dict[str, msgspec.json.Decoder[Any]] = {
    subtype: msgspec.json.Decoder(kind) for subtype, kind in system.SUBTYPES.items()
}

# Halves of surrogate pairs, whole pairs (left alone) and escaped backslashes (so that `\\ud800` is not taken for one).
_SURROGATES = re.compile(rb"(?i)(?:\\\\)+|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(\\ud[89a-f][0-9a-f]{2})")


def decode(line: bytes) -> Line:
    """Read one line."""
    try:
        return _strictly(line)
    except BAD_INPUT as refusal:
        return _second_look(line, refusal)


def _strictly(line: bytes) -> Line:
    found = _line.decode(line)
    kind = type(found)
    if kind is _SystemHead:
        decoder = _system.get(found.subtype)
        found = decoder.decode(line) if decoder else Unknown(type="system", subtype=found.subtype)
    elif kind is RequestOnWire or kind is ResponseOnWire:
        found = found.read()
    told: Line = found
    return told


def _second_look(line: bytes, refusal: Exception) -> Line:
    mended = _mended(line)
    try:
        if mended is not line:
            return _marked(_strictly(mended))
    except BAD_INPUT as error:
        refusal = error
    try:
        head = _head.decode(mended)
    except BAD_INPUT:
        return _garbled(mended, refusal)
    try:
        return _marked(_forgivingly(mended, head.type, head.subtype if isinstance(head.subtype, str) else ""))
    except BAD_INPUT as error:
        return _unreadable_question(mended, head.type) or _garbled(mended, error)


def _forgivingly(line: bytes, type_: str, subtype: str) -> Line:
    kind = system.SUBTYPES.get(subtype) if type_ == "system" else _SECOND_CHANCE.get(type_)
    if kind is None:
        return Unknown(type=type_, subtype=subtype)
    told: Any
    if kind in _OF_BLOCKS and bytes(_saying.decode(line).message.content)[:1] == b"[":
        told = salvage(line, _OF_BLOCKS[kind])
        message = Message(**msgspec.structs.asdict(told.message))
        told = kind(**{**msgspec.structs.asdict(told), "message": message})
    else:
        told = salvage(line, kind)
    found: Line = told.read() if isinstance(told, RequestOnWire | ResponseOnWire) else told
    return found


def _marked(line: Line) -> Line:
    """A question for permission says that it was mended, so that nobody takes what is missing in it for a no to caution."""
    if not isinstance(line, ControlRequest) or not isinstance(line.request, CanUseTool):
        return line
    return msgspec.structs.replace(line, request=msgspec.structs.replace(line.request, mended=True))


def _unreadable_question(line: bytes, type_: str) -> ControlRequest | None:
    """The CLI waits for an answer, so a question that can only be refused is still a question."""
    try:
        id = _asking.decode(line).request_id if type_ == "control_request" else None
    except BAD_INPUT:
        return None
    return None if id is None else ControlRequest(request_id=id, request=OtherControl(subtype=""))


def _mended(line: bytes) -> bytes:
    """Characters that were cut in two become U+FFFD: programs cut output by length, and JavaScript writes the halves."""
    mended = _SURROGATES.sub(lambda found: rb"\ufffd" if found[1] else found[0], line) if b"\\u" in line else line
    try:
        mended.decode()
    except UnicodeDecodeError:
        mended = mended.decode(errors="replace").encode()
    return line if mended == line else mended


def _garbled(line: bytes, error: Exception) -> Garbled:
    reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
    return Garbled(text_head=line[: HEAD * 4].decode(errors="replace")[:HEAD], error=reason[:HEAD])
