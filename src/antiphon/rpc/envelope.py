"""One frame ⇄ one message. Opens the envelope and leaves `params` and `result` as the bytes they are."""

import re
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from antiphon.errors import Code

__all__ = [
    "BAD_INPUT", "ErrorObject", "Frame", "Line", "Malformed", "Message", "Noise", "Notification", "Overlong", "Request", "RequestId",
    "Response", "decode", "error_frame", "head_of_answer", "head_of_notification", "head_of_request",
]  # fmt: skip

BAD_INPUT: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a decoder of JSON raises for bytes that it refuses."""

RequestId = int | float | str | None
"""What JSON-RPC allows. `0`, `1` and `"1"` are three different ids, and each goes back as it came."""


class WrittenNumber(float):
    """A number with a fraction or exponent as an id: strange but legal, so it goes back in the very digits it came in."""

    __slots__ = ("written",)
    written: bytes

    def __new__(cls, value: float, written: bytes) -> "WrittenNumber":
        number = super().__new__(cls, value)
        number.written = written
        return number


EMPTY: Final = Raw(b"{}")
"""Params of a message that sent none."""

MAX_ID: Final = 1024
"""Longest id, in characters, that we echo. Real ids are numbers and UUIDs; a longer one is an attack on our memory."""


NOISE_KEPT: Final = 4096
"""Bytes kept of a line that is not protocol: enough to see what it was."""


class _Part(msgspec.Struct, frozen=True, gc=False):
    pass


class Request(_Part, frozen=True):
    """A request: it has an id and gets one response."""

    id: RequestId
    method: str
    params: Raw = EMPTY

    def __repr__(self) -> str:
        return f"Request({self.id!r}, {self.method!r}, {_short(self.params)})"


class Notification(_Part, frozen=True):
    """A notification: no id, no response."""

    method: str
    params: Raw = EMPTY

    def __repr__(self) -> str:
        return f"Notification({self.method!r}, {_short(self.params)})"


class ErrorObject(_Part, frozen=True, omit_defaults=True):
    """Why a request got no result."""

    code: int
    message: str
    data: object = None


class Response(_Part, frozen=True):
    """A response: a result or an error."""

    id: RequestId
    result: Raw | None = None
    error: ErrorObject | None = None


def _short(raw: Raw) -> str:
    text = bytes(raw)
    return repr(text[:100]) + ("…" if len(text) > 100 else "")


class Malformed(_Part, frozen=True):
    """A frame that means to be protocol and is not.

    `id` is that of the request or response that it was meant to be, where that is known. `answerable`: an error may be sent back; false for what
    is certainly a notification or a response, which has no response.
    """

    error: ErrorObject
    id: RequestId | UnsetType
    raw: bytes
    answerable: bool = True

    @property
    def asks(self) -> bool:
        """Whether it was a request or a notification, not a response."""
        return _names_a_method(self.raw)


class Noise(_Part, frozen=True):
    """A line that is not protocol at all, such as a log line on stdout. `raw` is at most its first `NOISE_KEPT` bytes."""

    raw: bytes
    is_json: bool = False


class Overlong(_Part, frozen=True):
    """A line over the limit: its first and last bytes, where an id may stand, and how long it was."""

    head: bytes
    tail: bytes
    size: int
    limit: int


Line = bytes | bytearray
"""One line, with or without its end. A long one is the very buffer it was read into, so that it is not copied."""

Frame = Line | Overlong
Message = Request | Notification | Response | Malformed | Noise


class _Envelope(msgspec.Struct, gc=False):
    jsonrpc: str | UnsetType = UNSET
    id: int | float | str | None | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_JSON_BEGINS: Final = frozenset(b'{["-0123456789tfn \t\r\n')
_open_envelope = msgspec.json.Decoder(_Envelope).decode
_open_error = msgspec.json.Decoder(ErrorObject).decode
_validate = msgspec.json.Decoder(Raw).decode
_encode = msgspec.json.encode


def decode(frame: Frame) -> Message:
    """Open one envelope. Never raises: what makes no sense comes back as `Malformed` or `Noise`."""
    if isinstance(frame, Overlong):
        return _overlong(frame)
    if frame and frame[0] not in _JSON_BEGINS:  # spares a flood of log lines the price of an exception each
        return Noise(_clipped(frame))
    try:
        if not frame.isascii():
            frame.decode("utf-8")  # the decoder only checks the strings it opens
        envelope = _open_envelope(frame)
    except BAD_INPUT as error:
        return _not_an_envelope(bytes(frame), error)
    return _message(envelope, frame)


def _message(envelope: _Envelope, frame: Line) -> Message:
    id, method = envelope.id, envelope.method
    if isinstance(id, float):
        id = WrittenNumber(id, bytes(msgspec.json.decode(frame, type=dict[str, Raw])["id"]))
    if envelope.jsonrpc is not UNSET and envelope.jsonrpc != "2.0":
        answerable = method is UNSET or id is not UNSET
        return _malformed('`jsonrpc` must be "2.0"', id, frame, answerable=answerable)
    if isinstance(id, str) and len(id) > MAX_ID:
        return _malformed(f"the id is longer than {MAX_ID} characters", UNSET, frame)
    if isinstance(method, str):
        params = EMPTY if isinstance(envelope.params, UnsetType) else envelope.params
        return Notification(method, params) if isinstance(id, UnsetType) else Request(id, method, params)
    if not isinstance(envelope.error, UnsetType) and bytes(envelope.error) != b"null":
        # Some peers leave the id out of an error they cannot place; the schema's null means the same.
        return Response(None if isinstance(id, UnsetType) else id, error=_error(envelope.error))
    if isinstance(id, UnsetType):
        if envelope.jsonrpc is UNSET and envelope.params is UNSET and envelope.result is UNSET:
            return Noise(_clipped(frame), is_json=True)  # an object with nothing of ours in it: a structured log
        return _malformed("the message has neither `method` nor `id`", UNSET, frame)
    if isinstance(envelope.result, UnsetType):
        return _malformed("the message has an `id` but no `method`, `result` or `error`", id, frame)
    return Response(id, result=envelope.result)


def _clipped(line: Line) -> bytes:
    return bytes(line[:NOISE_KEPT]).strip()


def _error(raw: Raw) -> ErrorObject:
    """An error object, whatever shape it has: a code that is not an integer must not hide the message."""
    try:
        return _open_error(raw)
    except BAD_INPUT:
        pass
    try:
        value = msgspec.json.decode(raw)
    except BAD_INPUT:
        return ErrorObject(Code.INTERNAL_ERROR, "an error that cannot be read")
    if not isinstance(value, dict):
        return ErrorObject(Code.INTERNAL_ERROR, value if isinstance(value, str) else "unnamed error", value)
    code, message = value.get("code"), value.get("message")
    try:
        number = int(code) if isinstance(code, int | float | str) else Code.INTERNAL_ERROR
    except (ValueError, OverflowError):
        number = Code.INTERNAL_ERROR
    return ErrorObject(number, message if isinstance(message, str) else "unnamed error", value.get("data", value))


def _not_an_envelope(frame: bytes, error: Exception) -> Message:
    text = frame.strip()
    if isinstance(error, UnicodeDecodeError):
        if not text.startswith(b"{"):
            return Noise(_clipped(text))
        return _malformed(f"not UTF-8: {error.reason} at byte {error.start}", _find_id(text), frame, Code.PARSE_ERROR)
    if isinstance(error, RecursionError):
        return _malformed("nested too deeply", _find_id(text), frame, Code.PARSE_ERROR)
    if isinstance(error, msgspec.ValidationError):
        return _wrong_shape(text, frame, error)
    from antiphon.text import replace_surrogates  # only a bad frame needs it, and every start would pay for it

    repaired = replace_surrogates(frame)
    if repaired is not frame:
        message = decode(repaired)
        if isinstance(message, Request):
            return _malformed("text with half of a surrogate pair", message.id, frame, Code.PARSE_ERROR)
        return message  # there is no response to a notification or a response: better with � than lost
    if not text.startswith(b"{"):
        return Noise(_clipped(text))
    return _malformed(f"not JSON: {error} (one message per line)", _find_id(text), frame, Code.PARSE_ERROR)


def _wrong_shape(text: bytes, frame: bytes, error: Exception) -> Message:
    """Good JSON, but no envelope. (The decoder stops at the first wrong type, so "good" has to be seen first.)"""
    try:
        _validate(frame)
    except (msgspec.DecodeError, RecursionError) as worse:
        return _not_an_envelope(frame, worse)
    if text.startswith(b"["):
        return _malformed("batches are not supported: send one message per line", UNSET, frame)
    if not text.startswith(b"{"):
        return _malformed("a message must be a JSON object", UNSET, frame)
    fields = msgspec.json.decode(frame, type=dict[str, Raw])
    try:
        id = msgspec.json.decode(fields["id"], type=int | float | str | None) if "id" in fields else UNSET
    except msgspec.DecodeError:
        return _malformed("`id` must be a string, a number or null", UNSET, frame)
    return _malformed(str(error), id, frame)


def _malformed(
    reason: str, id: RequestId | UnsetType, frame: Line, code: int = Code.INVALID_REQUEST, *, answerable: bool = True
) -> Malformed:
    title = "Parse error" if code == Code.PARSE_ERROR else "Invalid request"
    return Malformed(ErrorObject(code, title, reason), id, bytes(frame), answerable)


def _overlong(frame: Overlong) -> Malformed:
    reason = f"a message of {frame.size} bytes is over the limit of {frame.limit}"
    id, asks = _find_id(frame.head, frame.tail), _names_a_method(frame.head, frame.tail)
    return _malformed(reason, id, frame.head, answerable=asks and not isinstance(id, UnsetType))


# The id of a message that cannot be decoded. Only its outermost fields count. An `"id"` deeper inside belongs to something else,
# and an error sent under it would end the wrong request. So these look at the very start and the very end, where every peer we
# know puts the envelope's fields, and stop where another object begins.
_SCALAR = rb'(?:"(?:[^"\\]|\\.){0,200}"|-?\d{1,18}|null)'
_FIRST_FIELDS = re.compile(rb'\s*\{((?:\s*"[^"\\]{0,40}"\s*:\s*' + _SCALAR + rb"\s*,)*)")
_LAST_FIELDS = re.compile(rb'(?:[}\]"\d]\s*)((?:,\s*"[^"\\]{0,40}"\s*:\s*' + _SCALAR + rb"\s*)+)\}\s*$")
_FIELD = re.compile(rb'"(id|method)"\s*:\s*(' + _SCALAR + rb")")


def _outermost(head: bytes, tail: bytes) -> dict[bytes, bytes]:
    first = _FIRST_FIELDS.match(head[:600])
    last = _LAST_FIELDS.search(tail[-300:])
    found = dict(_FIELD.findall(last[1])) if last else {}
    return {**found, **(dict(_FIELD.findall(first[1])) if first else {})}


def _find_id(head: bytes, tail: bytes | None = None) -> RequestId | UnsetType:
    written = _outermost(head, head if tail is None else tail).get(b"id")
    if written is None:
        return UNSET
    try:
        id: RequestId = msgspec.json.decode(written)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return UNSET
    return id


def _names_a_method(head: bytes, tail: bytes | None = None) -> bool:
    return b"method" in _outermost(head, head if tail is None else tail)


def _id(id: RequestId) -> bytes:
    return id.written if isinstance(id, WrittenNumber) else _encode(id)


def head_of_request(id: RequestId, method: str) -> bytes:
    """A request up to its params; `}` ends it."""
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":' % (_id(id), _encode(method))


def head_of_notification(method: str) -> bytes:
    """A notification up to its params; `}` ends it."""
    return b'{"jsonrpc":"2.0","method":%b,"params":' % _encode(method)


def head_of_answer(id: RequestId) -> bytes:
    """A response up to its result; `}` ends it."""
    return b'{"jsonrpc":"2.0","id":%b,"result":' % _id(id)


def error_frame(id: RequestId | UnsetType, error: ErrorObject) -> bytes:
    """A whole response that carries an error. Data with no JSON form is left out: the error itself must arrive."""
    known = None if isinstance(id, UnsetType) else id
    try:
        written = _encode(error)
    except (TypeError, ValueError, RecursionError):  # ValueError: text with half a surrogate pair
        message = error.message.encode("utf-8", "replace").decode()
        written = _encode(ErrorObject(error.code, message))
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (_id(known), written)
