"""The requests that are open in both directions. Fed with frames, it returns events; it does no I/O and keeps no time.

The events: `RequestReceived`, `NotificationReceived`, `ResultReceived` and `ErrorReceived` (a response to a request of ours),
`RequestCancelled` (by the peer), `Stray` (a response that nothing waits for), `Rejected` (input that breaks the rules).

Rule 1: every request of the peer gets exactly one response of ours; a second one is a mistake of ours and raises.
Rule 2: a response that is not waited for (unknown, late, sent twice) is an event, never an error.
Rule 3: a notification never gets a response, not even a broken one.
"""

from collections import deque
from collections.abc import Callable

import msgspec
from msgspec import UNSET, Raw, UnsetType

from antiphon.errors import Code, LocalProtocolError
from antiphon.rpc.envelope import (
    BAD_INPUT,
    ErrorObject,
    Frame,
    Malformed,
    Noise,
    Notification,
    Request,
    RequestId,
    Response,
    decode,
    error_frame,
    head_of_answer,
    head_of_notification,
    head_of_request,
)

__all__ = [
    "CANCEL_REQUEST",
    "FIRST_ID",
    "ErrorReceived",
    "Event",
    "Noise",
    "NotificationReceived",
    "Peer",
    "Rejected",
    "RequestCancelled",
    "RequestReceived",
    "ResultReceived",
    "Stray",
    "id_key",
]  # fmt: skip

CANCEL_REQUEST = "$/cancel_request"
FIRST_ID = 1

MAX_CANCELLED = 1000
"""Cancelled requests whose late responses we still expect. A peer may never send them; a later one is then just a stray."""
CANCELLED = ErrorObject(Code.REQUEST_CANCELLED, "Request cancelled")


class _Event(msgspec.Struct, frozen=True, gc=False):
    pass


class RequestReceived(_Event, frozen=True):
    """A request of the peer: respond to it once."""

    request: Request


class NotificationReceived(_Event, frozen=True):
    """A notification of the peer."""

    notification: Notification


class ResultReceived(_Event, frozen=True):
    """A request of ours has its result."""

    id: RequestId
    result: Raw


class ErrorReceived(_Event, frozen=True):
    """A request of ours got an error."""

    id: RequestId
    error: ErrorObject


class RequestCancelled(_Event, frozen=True):
    """The peer cancelled an open request: stop, and respond with -32800 or what there is."""

    id: RequestId


class Stray(_Event, frozen=True):
    """A response that is not waited for. `late`: we had cancelled the request. `error`: the error of a response without an id."""

    id: RequestId
    late: bool = False
    error: ErrorObject | None = None


class Rejected(_Event, frozen=True):
    """Input that breaks the rules, and the frame to send back, if one may be sent."""

    message: Malformed
    reply: bytes | None


Event = (
    RequestReceived
    | NotificationReceived
    | ResultReceived
    | ErrorReceived
    | RequestCancelled
    | Stray
    | Rejected
    | Noise
)
Encode = Callable[[object, bytearray, int], None]
_encode_into: Encode = msgspec.json.Encoder().encode_into


class Peer:
    """One end of a JSON-RPC connection.

    `tolerant`: lines that are not JSON are taken for log lines and skipped, as a client does with an agent's stdout.
    Otherwise they are answered with a parse error. `encode_into` writes a params or result value as JSON.
    """

    def __init__(self, *, tolerant: bool = False, encode_into: Encode = _encode_into) -> None:
        self._tolerant = tolerant
        self._encode_into = encode_into
        self._last_id = FIRST_ID - 1
        self._asked: dict[object, bool] = {}  # our open requests → cancelled?
        self._cancelled: deque[int] = deque()
        self._open: set[object] = set()  # open requests of the peer

    @property
    def open_requests(self) -> int:
        """How many requests of the peer wait for our response."""
        return len(self._open)

    # What the peer sends.

    def receive(self, frame: Frame) -> Event:
        """Take one frame; return one event."""
        message = decode(frame)
        match message:
            case Request():
                return self._receive_request(message)
            case Response():
                return self._receive_response(message)
            case Notification():
                return (
                    self._receive_cancellation(message)
                    if message.method == CANCEL_REQUEST
                    else NotificationReceived(message)
                )
            case Noise():
                return message if self._tolerant else _reject_noise(message)
            case Malformed():
                return self._malformed(message)

    def _receive_request(self, request: Request) -> Event:
        key = id_key(request.id)
        if key in self._open:
            # A response under this id would end the first request, so nothing is sent; it keeps its response.
            error = ErrorObject(Code.INVALID_REQUEST, "Invalid request", f"id {request.id!r} is already in use")
            return Rejected(Malformed(error, request.id, bytes(request.params), answerable=False), None)
        self._open.add(key)
        return RequestReceived(request)

    def _receive_cancellation(self, notification: Notification) -> Event:
        try:
            fields = msgspec.json.decode(notification.params, type=dict[str, Raw])
            id = msgspec.json.decode(fields["requestId"], type=int | float | str | None)
        except (*BAD_INPUT, KeyError):
            return NotificationReceived(notification)
        return RequestCancelled(id) if id_key(id) in self._open else Stray(id, late=True)

    def _receive_response(self, response: Response) -> Event:
        cancelled = self._asked.pop(id_key(response.id), None)
        if cancelled is None or cancelled:
            return Stray(response.id, late=bool(cancelled), error=response.error)
        if response.error is not None:
            return ErrorReceived(response.id, response.error)
        return ResultReceived(response.id, Raw(b"null") if response.result is None else response.result)

    def _malformed(self, message: Malformed) -> Event:
        if not isinstance(message.id, UnsetType) and id_key(message.id) in self._asked and not message.asks:
            # A response to us that cannot be read still ends the wait.
            cancelled = self._asked.pop(id_key(message.id))
            return Stray(message.id, late=True) if cancelled else ErrorReceived(message.id, message.error)
        return Rejected(message, error_frame(message.id, message.error) if message.answerable else None)

    # What we send. Each returns the frame to send, without the line end.

    def new_request(self, method: str, params: object) -> tuple[int, bytearray]:
        """A new request: its id and its frame."""
        id = self._last_id + 1
        frame = self._frame(head_of_request(id, method), params)
        self._last_id = id
        self._asked[id] = False
        return id, frame

    def notify(self, method: str, params: object) -> bytearray:
        """Return the frame of a notification."""
        return self._frame(head_of_notification(method), params)

    def answer(self, id: RequestId, result: object) -> bytearray:
        """The response to a request of the peer.

        Raises:
            LocalProtocolError: it was answered before, or never asked.
        """
        frame = self._frame(head_of_answer(id), result)  # first, so that a result with no JSON form leaves it open
        self._close(id)
        return frame

    def refuse(self, id: RequestId, error: ErrorObject) -> bytes:
        """An error as the response to a request of the peer.

        Raises:
            LocalProtocolError: it was answered before, or never asked.
        """
        frame = error_frame(id, error)
        self._close(id)
        return frame

    def cancel(self, id: int) -> bytearray | None:
        """Cancel a request of ours: the frame that does it, or None if the response is here already."""
        if self._asked.get(id, True):
            return None
        self._asked[id] = True
        self._cancelled.append(id)
        if len(self._cancelled) > MAX_CANCELLED:
            self._asked.pop(self._cancelled.popleft(), None)
        return self.notify(CANCEL_REQUEST, {"requestId": id})

    def forget(self) -> list[object]:
        """The connection is closed: the ids of our requests that will get no response."""
        waiting = [id for id, cancelled in self._asked.items() if not cancelled]
        self._asked.clear()
        self._open.clear()
        return waiting

    def _close(self, id: RequestId) -> None:
        try:
            self._open.remove(id_key(id))
        except KeyError:
            raise LocalProtocolError(f"request {id!r} has its response already, or was never received") from None

    def _frame(self, head: bytes, value: object) -> bytearray:
        frame = bytearray(head)
        self._encode_into(value, frame, -1)
        frame += b"}"
        return frame


def id_key(id: RequestId) -> object:
    """The key of an id: in Python `1 == 1.0`, on the wire they differ."""
    return (float, id) if isinstance(id, float) else id


def _reject_noise(noise: Noise) -> Rejected:
    if noise.is_json:
        error = ErrorObject(Code.INVALID_REQUEST, "Invalid request", "the message has neither `method` nor `id`")
    else:
        error = ErrorObject(Code.PARSE_ERROR, "Parse error", "not JSON")
    return Rejected(Malformed(error, UNSET, noise.raw), error_frame(UNSET, error))
