"""Who asked what, in both directions. Fed with frames, it answers with events; it does no I/O and keeps no time.

Rule 1: every question of theirs gets exactly one answer of ours; a second one is a mistake of ours and raises.
Rule 2: an answer that nobody waits for (unknown, late, given twice) is an event, never an error.
Rule 3: a notification is never answered, not even a broken one.
"""

from collections import deque
from collections.abc import Callable

import msgspec
from msgspec import UNSET, Raw, UnsetType

from antiphon.errors import Code, LocalProtocolError
from antiphon.rpc.envelope import (
    ErrorObject,
    Frame,
    Malformed,
    Message,
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
    "CANCEL_REQUEST", "FIRST_ID", "Answered", "Asked", "Event", "Noise", "Peer", "Refused", "Rejected", "Stray", "Told", "Withdrawn",
    "id_key",
]  # fmt: skip

CANCEL_REQUEST = "$/cancel_request"
FIRST_ID = 1

MAX_WITHDRAWN = 1000
"""Withdrawn questions whose late answers we still expect. A peer may never answer them; a later one is then just a stray."""
CANCELLED = ErrorObject(Code.REQUEST_CANCELLED, "Request cancelled")


class _Event(msgspec.Struct, frozen=True, gc=False):
    pass


class Asked(_Event, frozen=True):
    """The peer asks: answer it once."""

    request: Request


class Told(_Event, frozen=True):
    """The peer tells."""

    notification: Notification


class Answered(_Event, frozen=True):
    """Our question has its result."""

    id: RequestId
    result: Raw


class Refused(_Event, frozen=True):
    """Our question was answered with an error."""

    id: RequestId
    error: ErrorObject


class Withdrawn(_Event, frozen=True):
    """The peer no longer wants the answer to its open question: stop, and answer with -32800 or what there is."""

    id: RequestId


class Stray(_Event, frozen=True):
    """An answer that nobody waits for. `late`: we had withdrawn the question. `error`: what an id-less error said."""

    id: RequestId
    late: bool = False
    error: ErrorObject | None = None


class Rejected(_Event, frozen=True):
    """Input that breaks the rules, and the frame to send back, where there is somebody to tell."""

    message: Malformed
    reply: bytes | None


Event = Asked | Told | Answered | Refused | Withdrawn | Stray | Rejected | Noise
Encode = Callable[[object, bytearray, int], None]
_encode_into: Encode = msgspec.json.Encoder().encode_into


class Peer:
    """One end of a JSON-RPC conversation.

    `tolerant`: lines that are not JSON are taken for log lines and skipped, as a client does with an agent's stdout.
    Otherwise they are answered with a parse error. `encode_into` writes a params or result value as JSON.
    """

    def __init__(self, *, tolerant: bool = False, encode_into: Encode = _encode_into) -> None:
        self._tolerant = tolerant
        self._encode_into = encode_into
        self._last_id = FIRST_ID - 1
        self._asked: dict[object, bool] = {}  # our open questions → withdrawn?
        self._withdrawn: deque[int] = deque()
        self._open: set[object] = set()  # their open questions

    @property
    def open_questions(self) -> int:
        """How many questions of theirs wait for our answer."""
        return len(self._open)

    # What they say.

    def receive(self, frame: Frame) -> Event:
        """One frame in, one event out."""
        return self.sort(decode(frame))

    def sort(self, message: Message) -> Event:
        """The same for a message already opened."""
        match message:
            case Request():
                return self._asked_by_them(message)
            case Response():
                return self._answered_by_them(message)
            case Notification():
                return self._withdrawn_by_them(message) if message.method == CANCEL_REQUEST else Told(message)
            case Noise():
                return message if self._tolerant else _reject_noise(message)
            case Malformed():
                return self._malformed(message)

    def _asked_by_them(self, request: Request) -> Event:
        key = id_key(request.id)
        if key in self._open:
            # Answering under this id would settle their first question, so nothing is sent; it keeps its answer.
            error = ErrorObject(Code.INVALID_REQUEST, "Invalid request", f"id {request.id!r} is already in use")
            return Rejected(Malformed(error, request.id, bytes(request.params), tellable=False), None)
        self._open.add(key)
        return Asked(request)

    def _withdrawn_by_them(self, notification: Notification) -> Event:
        try:
            fields = msgspec.json.decode(notification.params, type=dict[str, Raw])
            id = msgspec.json.decode(fields["requestId"], type=int | float | str | None)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
            return Told(notification)
        return Withdrawn(id) if id_key(id) in self._open else Stray(id, late=True)

    def _answered_by_them(self, response: Response) -> Event:
        withdrawn = self._asked.pop(id_key(response.id), None)
        if withdrawn is None or withdrawn:
            return Stray(response.id, late=bool(withdrawn), error=response.error)
        if response.error is not None:
            return Refused(response.id, response.error)
        return Answered(response.id, Raw(b"null") if response.result is None else response.result)

    def _malformed(self, message: Malformed) -> Event:
        if not isinstance(message.id, UnsetType) and id_key(message.id) in self._asked and not message.asks:
            # An answer to us that cannot be read still ends the wait.
            withdrawn = self._asked.pop(id_key(message.id))
            return Stray(message.id, late=True) if withdrawn else Refused(message.id, message.error)
        return Rejected(message, error_frame(message.id, message.error) if message.tellable else None)

    # What we say. Each returns the frame to send, without the line end.

    def ask(self, method: str, params: object) -> tuple[int, bytearray]:
        """A new question: its id and its frame."""
        id = self._last_id + 1
        frame = self._frame(head_of_request(id, method), params)
        self._last_id = id
        self._asked[id] = False
        return id, frame

    def tell(self, method: str, params: object) -> bytearray:
        """A notification."""
        return self._frame(head_of_notification(method), params)

    def answer(self, id: RequestId, result: object) -> bytearray:
        """The result of a question of theirs.

        Raises:
            LocalProtocolError: it was answered before, or never asked.
        """
        frame = self._frame(head_of_answer(id), result)  # first, so that a result with no JSON form leaves it open
        self._close(id)
        return frame

    def refuse(self, id: RequestId, error: ErrorObject) -> bytes:
        """An error as the answer to a question of theirs.

        Raises:
            LocalProtocolError: it was answered before, or never asked.
        """
        frame = error_frame(id, error)
        self._close(id)
        return frame

    def withdraw(self, id: int) -> bytearray | None:
        """We no longer want this answer: the frame that says so, or None if the answer is here already."""
        if self._asked.get(id, True):
            return None
        self._asked[id] = True
        self._withdrawn.append(id)
        if len(self._withdrawn) > MAX_WITHDRAWN:
            self._asked.pop(self._withdrawn.popleft(), None)
        return self.tell(CANCEL_REQUEST, {"requestId": id})

    def forget(self) -> list[object]:
        """The conversation is over: the ids of our questions that will never be answered."""
        waiting = [id for id, withdrawn in self._asked.items() if not withdrawn]
        self._asked.clear()
        self._open.clear()
        return waiting

    def _close(self, id: RequestId) -> None:
        try:
            self._open.remove(id_key(id))
        except KeyError:
            raise LocalProtocolError(f"question {id!r} was answered already, or never asked") from None

    def _frame(self, head: bytes, value: object) -> bytearray:
        frame = bytearray(head)
        self._encode_into(value, frame, -1)
        frame += b"}"
        return frame


def id_key(id: RequestId) -> object:
    """What tells ids apart: in Python `1 == 1.0`, on the wire they differ."""
    return (float, id) if isinstance(id, float) else id


def _reject_noise(noise: Noise) -> Rejected:
    if noise.is_json:
        error = ErrorObject(Code.INVALID_REQUEST, "Invalid request", "the message has neither `method` nor `id`")
    else:
        error = ErrorObject(Code.PARSE_ERROR, "Parse error", "not JSON")
    return Rejected(Malformed(error, UNSET, noise.raw), error_frame(UNSET, error))
