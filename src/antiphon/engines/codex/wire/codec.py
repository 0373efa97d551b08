"""From bytes to lines. Never raises: what it cannot read is `GarbledMessage`, what it has no type for is `UnreadParams`.

A line is opened once as an envelope, then its parameters strictly. Only parameters that are refused get a second look, which
forgives wrong optional fields and keeps unknown kinds of items, so that a newer Codex loses a field and not the line.
"""

from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec

from antiphon.engines.codex.wire.items import CodexStruct
from antiphon.engines.codex.wire.notifications import NOTIFICATIONS
from antiphon.engines.codex.wire.requests import REQUESTS
from antiphon.errors import Code, RemoteProtocolError
from antiphon.protocol.base import BAD_INPUT, JsonObject
from antiphon.protocol.salvage import salvage
from antiphon.text import repaired_json

if TYPE_CHECKING:
    from antiphon.engines.codex.wire.notifications import Notification
    from antiphon.engines.codex.wire.requests import Request

__all__ = [
    "GarbledMessage",
    "Line",
    "RequestId",
    "ServerError",
    "ServerNotification",
    "ServerRequest",
    "ServerResponse",
    "UnreadParams",
    "answer",
    "decode",
    "notification",
    "read",
    "refusal",
    "request",
]

# The four sorts of lines that the app server writes.

RequestId: TypeAlias = int | str
"""The server counts its questions from 0."""


class ServerError(CodexStruct, frozen=True):
    """The error in a response."""

    code: int = 0
    message: str = ""
    data: object = None


class UnreadParams(CodexStruct, frozen=True):
    """Parameters without a type of ours, or that do not match it; `error` has the reason."""

    raw: msgspec.Raw = msgspec.Raw(b"{}")
    thread_id: str | None = None
    error: str | None = None


class ServerNotification(CodexStruct, frozen=True):
    """A notification of the server."""

    method: str
    params: "Notification | UnreadParams"

    @property
    def thread_id(self) -> str | None:
        """The thread that it is about."""
        return self.params.thread_id


class ServerRequest(CodexStruct, frozen=True):
    """A request of the server, which waits for one response with the same id, which may be 0."""

    id: RequestId
    method: str
    params: "Request | UnreadParams"

    @property
    def thread_id(self) -> str | None:
        """The thread that it is about."""
        return self.params.thread_id


class ServerResponse(CodexStruct, frozen=True):
    """The response to a request of ours: a result, which `read` decodes, or an error."""

    id: RequestId
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: ServerError | None = None


class GarbledMessage(CodexStruct, frozen=True):
    """A line that is not JSON, not a message, or lacks something essential."""

    text_head: str
    error: str


Line: TypeAlias = ServerNotification | ServerRequest | ServerResponse | GarbledMessage


HEAD: Final = 200
"""Characters of a garbled line that go to the log; it may be megabytes long."""

T = TypeVar("T")
_EMPTY: Final = msgspec.Raw(b"{}")


class _Envelope(CodexStruct, frozen=True):
    method: str | None = None
    id: int | str | None = None
    params: msgspec.Raw = _EMPTY
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: ServerError | str | None = None


class _Head(CodexStruct, frozen=True):
    thread_id: str | None = None
    conversation_id: str | None = None


_envelope: Final = msgspec.json.Decoder(_Envelope)
_head: Final = msgspec.json.Decoder(_Head)
_decoders: Final[dict[str, "msgspec.json.Decoder[Any]"]] = {}
"""Made when a method is first seen: making all of them would slow down a short session."""


def decode(line: bytes) -> Line:
    """Read one line."""
    try:
        return _opened(line)
    except BAD_INPUT as refusal:
        return _second_look(line, refusal)


def read(raw: msgspec.Raw, kind: type[T]) -> T:
    """The result of a request as what it should be.

    Raises:
        RemoteProtocolError: it is something else.
    """
    try:
        return msgspec.json.decode(raw, type=kind)
    except BAD_INPUT:
        pass
    try:
        return salvage(repaired_json(bytes(raw)), kind)
    except BAD_INPUT as error:
        raise RemoteProtocolError(f"Codex responded with something that is no {kind.__name__}: {error}") from error


def _opened(line: bytes) -> Line:
    found = _envelope.decode(line)
    method = found.method
    if method is None:
        return _answer(found)
    if found.id is None:
        decoder = _decoders.get(method)
        if decoder is not None:
            return ServerNotification(method=method, params=decoder.decode(found.params))
        return ServerNotification(method=method, params=_params(method, found.params, NOTIFICATIONS))
    try:
        params = _params(method, found.params, REQUESTS)
    except BAD_INPUT as error:  # the server waits for a response
        params = _unread(found.params, str(error)[:HEAD])
    return ServerRequest(id=found.id, method=method, params=params)


def _answer(found: _Envelope) -> Line:
    if found.id is None:
        raise msgspec.ValidationError("Neither `method` nor `id`")
    if found.error is not None:
        error = found.error if isinstance(found.error, ServerError) else ServerError(message=found.error)
        return ServerResponse(id=found.id, error=error)
    if found.result is msgspec.UNSET:
        raise msgspec.ValidationError("Neither `method` nor `result`")
    return ServerResponse(id=found.id, result=found.result)


def _params(method: str, raw: msgspec.Raw, table: dict[str, type[CodexStruct]]) -> Any:
    kind = table.get(method)
    if kind is None:
        return _unread(raw)
    decoder = _decoders.get(method)
    if decoder is None:
        decoder = _decoders[method] = msgspec.json.Decoder(kind)
    try:
        return decoder.decode(raw)
    except BAD_INPUT:
        return salvage(raw, kind)


def _unread(raw: msgspec.Raw, error: str | None = None) -> UnreadParams:
    try:
        head = _head.decode(raw)
    except BAD_INPUT:
        head = _Head()
    return UnreadParams(raw=raw, thread_id=head.thread_id or head.conversation_id, error=error)


def _second_look(line: bytes, refusal: Exception) -> Line:
    repaired = repaired_json(line)
    try:
        found = _envelope.decode(repaired)
        if found.method is not None and found.id is None:
            return ServerNotification(method=found.method, params=_params(found.method, found.params, NOTIFICATIONS))
        if repaired is not line:
            return _opened(repaired)
    except BAD_INPUT as error:
        refusal = error
    return _garbled(repaired, refusal)


def _garbled(line: bytes, error: Exception) -> GarbledMessage:
    reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
    return GarbledMessage(text_head=line[: HEAD * 4].decode(errors="replace")[:HEAD], error=reason[:HEAD])


# What we send to the app server: whole lines with their line feed. JSON-RPC without the field `jsonrpc`.

_encode: Final = msgspec.json.Encoder().encode


def request(id: RequestId, method: str, params: object = None) -> bytes:
    """Ask for something."""
    return _line({"method": method, "id": id, "params": {} if params is None else params})


def notification(method: str, params: object = None) -> bytes:
    """Encode a notification."""
    return _line({"method": method} if params is None else {"method": method, "params": params})


def answer(id: RequestId, result: object) -> bytes:
    """Answer a question of the server."""
    return _line({"id": id, "result": result})


def refusal(id: RequestId, message: str, code: int = Code.INTERNAL_ERROR) -> bytes:
    """Encode the refusal of a request."""
    return _line({"id": id, "error": {"code": code, "message": message}})


def _line(value: JsonObject) -> bytes:
    return _encode(value) + b"\n"
