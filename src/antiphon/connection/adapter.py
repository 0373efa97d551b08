"""A transport that speaks one version of the protocol above and another one below.

A connection or a bridge is put on it as on any other transport, and notices nothing. This module knows frames; what they mean in the
other version, the `Adapter` knows that it is given.

Rule 1: the order of the wire is kept in both directions; what the adapter sends by itself comes where it was caused.
Rule 2: a piece of text of the stream is decoded by a small strict type. If the adapter takes it, its bytes are forwarded as they came
or with other params. Everything else goes through the adapter as a message.
Rule 3: lines that are no messages are forwarded as they came: the side that they are for judges them. One that was meant to be a
request or a response has an id of its sender: it is answered with an error, or ends the wait for that response.
Rule 4: what translation loses or refuses is reported (`TranslationLoss`), never passed over.
"""

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from msgspec import UNSET, Raw, UnsetType, defstruct
from msgspec.json import Decoder

from antiphon.connection.reports import Observer, Report, TranslationLoss
from antiphon.errors import ConnectionClosed, LocalProtocolError
from antiphon.protocol.base import BAD_INPUT, Kind, decoder, encode
from antiphon.protocol.exchange import (
    Adapter,
    ErrorMessage,
    Message,
    NotificationMessage,
    RequestFailure,
    RequestMessage,
    ResultMessage,
)
from antiphon.rpc.envelope import (
    ErrorObject,
    Frame,
    Line,
    Malformed,
    Notification,
    Overlong,
    Request,
    RequestId,
    Response,
    decode,
    error_frame,
    head_of_answer,
    head_of_notification,
    head_of_request,
)
from antiphon.rpc.peer import Stray
from antiphon.rpc.spans import session_in
from antiphon.transports.base import Transport
from antiphon.transports.framing import lines_of

if TYPE_CHECKING:
    import asyncio

__all__ = ["Side", "TranslatedTransport", "failure_of"]

Side: TypeAlias = Literal["client", "agent"]

_MARK_WITHIN: Final = 64
"""The method stands this near to the start of a frame in every peer we know that sends many."""

_TEXT: Final = b"_chunk"
"""In every piece of text, and in few other updates: the small type is not tried for all.

It is looked for with `find`: `in` first takes what it looks for as a number, and the error of that costs twice the search."""


_Pieces: TypeAlias = tuple[list[Any], int, bytes | None]
"""The pieces of text of a block, how many of them were taken as they came, and what becomes of the next one."""


@cache
def _chunk_decoder(adapter: type[Adapter]) -> "Decoder[Kind]":
    """The decoder of whole frames that hold a piece of text and nothing else."""
    return Decoder(_update_frame(adapter, adapter.chunks))


@cache
def _update_decoder(adapter: type[Adapter]) -> "Decoder[Kind]":
    """The decoder of whole frames that hold an update of any kind."""
    return decoder(_update_frame(adapter, adapter.updates))


def _update_frame(adapter: type[Adapter], params: Kind) -> Kind:
    return defstruct(
        "UpdateFrame",
        [
            ("method", Literal[adapter.update_method]),
            ("params", params),
            ("jsonrpc", Literal["2.0"] | UnsetType, UNSET),
        ],
        gc=False,
        forbid_unknown_fields=True,
    )


class TranslatedTransport(Transport):
    """A transport with an adapter on it. `above` is the side of the protocol that uses it; the peer behind `below` is the other one.

    Without an adapter, or with one that turned out to have nothing to do, everything is forwarded as it came.
    """

    def __init__(
        self, below: Transport, adapter: Adapter | None, *, above: Side, observer: Observer | None = None
    ) -> None:
        super().__init__()
        self.below = below
        self.noisy = below.noisy
        self.routed = below.routed
        self.answers_when_lost = above == "client"
        """Whether requests that a lost agent owes an answer get an error from here. Not where the side above does that itself."""
        self._above: Side = above
        self._is_agent_below = above == "client"
        self._observer = observer
        self._up: list[Line] = []
        """Frames for the side above that wait for the next turn of the loop, or for the end of a block."""
        self._delivering = False
        self._put_client, self._put_agent = (
            (self._put_above, self._put_below) if above == "client" else (self._put_below, self._put_above)
        )
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: float | None = None
        self._adapter: Adapter | None = None
        if adapter is not None:
            self.use(adapter)

    def use(self, adapter: Adapter) -> None:
        """Translate from now on."""
        self._adapter = adapter
        self._chunks = _chunk_decoder(type(adapter))
        self._updates = _update_decoder(type(adapter))
        self._mark = b'"%b"' % adapter.update_method.encode()
        self._head = head_of_notification(adapter.update_method)
        self._take_chunk, self._take_params, self._settle = adapter.agent_chunk, adapter.agent_update, adapter.settle

    @property
    def adapter(self) -> Adapter:
        """What translates."""
        if self._adapter is None:
            raise LocalProtocolError("this transport does not translate")
        return self._adapter

    @property
    def translates(self) -> bool:
        """Whether anything is translated."""
        return self._adapter is not None and not self._adapter.transparent

    @property
    def origin(self) -> Transport:
        """The transport that moves the bytes."""
        return self.below.origin

    # Frames from above.

    def flush(self) -> None:
        """Translate what was written, and send it."""
        data, self.out = self.out, bytearray()
        if not data:
            self.below.flush()
            return
        self._from_above(data)
        self.below.flush_soon()

    def _from_above(self, data: Line) -> None:
        if self.translates:
            self._take(data, from_agent=self._above == "agent")
        elif self.below.out:
            self.below.out += data
        else:  # not copied: it may be a file of 50 MiB
            self.below.out = data if isinstance(data, bytearray) else bytearray(data)

    def route(self, frame: bytes, session_id: str | None, answers: RequestId | UnsetType) -> None:
        """Take one frame, to send it where it belongs."""
        if self.translates:
            self._take(frame + b"\n", from_agent=self._above == "agent")
        else:
            self.below.route(frame, session_id, answers)

    # Frames from below.

    def block_received(self, block: Frame) -> None:
        """Translate lines, and hand them on."""
        sink, adapter = self.sink, self._adapter
        if sink is None:
            return
        if adapter is None or adapter.transparent or isinstance(block, Overlong):
            if self.translates and self._took_malformed(decode(block), from_agent=self._is_agent_below):
                self._settle()
                self._send_all()
                self._look_at_time()
                self._deliver()
                self.below.flush_soon()
            else:
                self._deliver()
                sink.block_received(block)
            return
        from_agent = self._is_agent_below
        taken: bool | _Pieces | None
        if from_agent and block.find(_TEXT) >= 0 and block.find(b"\n") == len(block) - 1:
            # A piece of text that comes alone, as in most streams: nothing else may cost time.
            try:
                frame = self._chunks.decode(block)
            except BAD_INPUT:
                taken = None
            else:
                verdict = self._take_chunk(frame.params)
                if verdict is not None and not self._up:
                    sink.block_received(block if verdict is True else b"%b%b}\n" % (self._head, verdict))
                    return
                taken = True if verdict is True else ([frame], 0, verdict)
        else:
            taken = self._taken(block) if from_agent else None
            if taken is True and not self._up:  # many that are forwarded as they came
                sink.block_received(block)
                return
        self._delivering = True  # below, without waiting for the loop
        self._translate(block, taken, from_agent=from_agent)
        self._deliver()
        if self.below.out:
            self.below.flush_soon()

    def connection_lost(self, error: ConnectionClosed) -> None:
        """The peer is gone: what it owes is answered with an error, and then the side above learns of it."""
        if self._timer is not None:
            self._timer.cancel()
        if self._adapter is not None:
            if self.answers_when_lost:
                self._adapter.agent_lost()
            self._send_all()
        self._deliver()
        self._lose(error)

    # Translation.

    def _take(self, block: Line, *, from_agent: bool) -> None:
        self._translate(block, self._taken(block) if from_agent else None, from_agent=from_agent)

    def _taken(self, block: Line) -> bool | _Pieces | None:
        """Take a block that holds nothing but updates, either all of them pieces of text or none.

        True: the block is to be forwarded as it came. Pieces: the first ones were taken so, and one was not. False: all went the general
        way. None: nothing was taken.
        """
        if block.find(_TEXT) >= 0:
            try:
                frames = self._chunks.decode_lines(block)
            except BAD_INPUT:
                return None
            take = self._take_chunk
            for place, frame in enumerate(frames):
                verdict = take(frame.params)
                if verdict is not True:
                    return frames, place, verdict
            return True
        if block.find(self._mark, 0, _MARK_WITHIN) < 0:
            return None
        try:
            frames = self._updates.decode_lines(block)
        except BAD_INPUT:
            return None
        for frame in frames:
            self._take_params(frame.params)
        return False

    def _translate(self, block: Line, taken: bool | _Pieces | None, *, from_agent: bool) -> None:
        if taken is True:
            self._put_client(block)
            return
        if isinstance(taken, tuple):
            self._take_pieces(block, taken)
        elif taken is None:
            for line in lines_of(block):
                if not from_agent or not self._take_update(line):
                    self._take_line(line, from_agent=from_agent)
        self._settle()
        self._send_all()
        self._look_at_time()

    def _take_pieces(self, block: Line, pieces: _Pieces) -> None:
        """Take the rest of the pieces of text of a block: those that are forwarded otherwise, or go the general way, stand between others."""
        frames, place, first = pieces
        verdict: Literal[True] | bytes | None = first
        lines = lines_of(block) if place or verdict is None else None
        ready = [] if lines is None else [line + b"\n" for line in lines[:place]]
        take, head = self._take_chunk, self._head
        for number in range(place, len(frames)):
            if number > place:
                verdict = take(frames[number].params)
            if verdict is not None and verdict is not True:
                ready.append(b"%b%b}\n" % (head, verdict))
                continue
            if lines is None:
                lines = lines_of(block)
            if verdict is True:
                ready.append(lines[number] + b"\n")
                continue
            if ready:
                self._put_client(b"".join(ready))
                ready = []
            self._take_other(lines[number])
        if ready:
            self._put_client(b"".join(ready))

    def _take_update(self, line: Line) -> bool:
        """Take a well-formed update of the agent: a piece of text, or any other."""
        if line.find(self._mark, 0, _MARK_WITHIN) < 0:
            return False
        try:
            verdict = self._take_chunk(self._chunks.decode(line).params) if line.find(_TEXT) >= 0 else None
        except BAD_INPUT:
            verdict = None
        if verdict is None:
            try:
                params = self._updates.decode(line).params
            except BAD_INPUT:
                return False
            self._take_params(params)
            self._send_all()
            return True
        self._put_client(bytes(line) + b"\n" if verdict is True else b"%b%b}\n" % (self._head, verdict))
        return True

    def _take_other(self, line: Line) -> None:
        """Take a piece of text that goes the general way."""
        try:
            params = self._updates.decode(line).params
        except BAD_INPUT:
            self._take_line(line, from_agent=True)
            return
        self._take_params(params)
        self._send_all()

    def _take_line(self, line: Line, *, from_agent: bool) -> None:
        adapter = self.adapter
        match decode(line):
            case Notification(method, params):
                (adapter.agent_notification if from_agent else adapter.client_notification)(method, params)
            case Request(id, method, params):
                (adapter.agent_request if from_agent else adapter.client_request)(id, method, params)
            case Response(id, result, error):
                failure = None if error is None else failure_of(error)
                taken = (adapter.agent_response if from_agent else adapter.client_response)(id, result, failure)
                if not taken and id is None and error is not None:
                    # About a line that could not be read, such as a batch. It has no id to translate, and is for the side that sent the line.
                    (self._put_client if from_agent else self._put_agent)(bytes(line) + b"\n")
                elif not taken:
                    self._report(Stray(id, error=error))
            case message:
                if not self._took_malformed(message, from_agent=from_agent):
                    self._send_all()
                    (self._put_client if from_agent else self._put_agent)(bytes(line) + b"\n")
        self._send_all()

    def _took_malformed(self, message: object, *, from_agent: bool) -> bool:
        """Take what was meant to be a request or a response, and cannot be read. Its id is not one that the other side knows."""
        if not isinstance(message, Malformed) or message.id is None or isinstance(message.id, UnsetType):
            return False
        take = self.adapter.agent_response if from_agent else self.adapter.client_response
        if not message.asks and take(message.id, None, failure_of(message.error)):
            self._send_all()
            return True
        if not message.answerable:
            self._report(Stray(message.id))
            return True
        frame = error_frame(message.id, message.error) + b"\n"
        (self._put_agent if from_agent else self._put_client)(frame)
        return True

    def _report(self, report: Report) -> None:
        if self._observer is not None:
            self._observer(report)

    def _look_at_time(self) -> None:
        at = None if self._adapter is None else self._adapter.deadline
        if at == self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at, self._timer = at, None
        if at is not None:
            self._timer = self.loop.call_at(at, self._expire)

    def _expire(self) -> None:
        self._timer = self._timer_at = None
        self.adapter.expire()
        self._send_all()
        self._look_at_time()
        self._deliver()
        if self.below.out:
            self.below.flush_soon()

    # What goes out.

    def _send_all(self) -> None:
        adapter = self._adapter
        if adapter is None:
            return
        if adapter.to_client:
            for message in adapter.to_client:
                self._put_client(_frame(message))
            adapter.to_client.clear()
        if adapter.to_agent:
            for message in adapter.to_agent:
                self._put_agent(_frame(message))
            adapter.to_agent.clear()
        if adapter.losses:
            for loss in adapter.losses:
                self._report(TranslationLoss(loss.what, loss.reason, loss.refused))
            adapter.losses.clear()

    def _put_below(self, frames: Line) -> None:
        if not self.below.routed:
            self.below.out += frames
            return
        for line in lines_of(frames):
            message = decode(line)
            answers = message.id if isinstance(message, Response) else UNSET
            self.below.route(bytes(line), session_in(line), answers)

    def _put_above(self, frames: Line) -> None:
        self._up.append(frames)
        if not self._delivering:
            self._delivering = True
            self.loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        """Hand over what waits. Never from within a call of the side above: it is not ready for an answer while it still sends."""
        self._delivering = False
        if self._up and self.sink is not None:
            frames, self._up = self._up, []
            self.sink.block_received(frames[0] if len(frames) == 1 else b"".join(frames))

    # As the transport below.

    @property
    def unsent(self) -> int:
        """Bytes that we have and the peer has not."""
        return len(self.out) + self.below.unsent

    @property
    def deaf(self) -> bool:
        """Whether the peer reads no more."""
        return self.below.deaf

    def linger(self) -> None:
        """Poll for a frame that may come within microseconds."""
        self.below.linger()

    def skip_grace(self) -> None:
        """Have `close` wait no longer than it must."""
        self.below.skip_grace()

    async def drain(self) -> None:
        """Wait until the peer has taken enough for more to be sent."""
        self.flush()
        await self.below.drain()

    def pause(self) -> None:
        """Stop reading until `resume`."""
        self.below.pause()

    def resume(self) -> None:
        """Continue to read."""
        self.below.resume()

    def _start_reading(self) -> None:
        self.below.attach(self)

    async def close(self) -> None:
        """Send what is left, within limits, and end."""
        self.flush()
        if self._timer is not None:
            self._timer.cancel()
        await self.below.close()
        self._lose(ConnectionClosed("the connection is closed"))


@lru_cache(64)
def _head_of(method: str) -> bytes:
    return head_of_notification(method)


def _frame(message: Message) -> bytes:
    match message:
        case NotificationMessage(method, params):
            return b"%b%b}\n" % (_head_of(method), encode(params))
        case RequestMessage(id, method, params):
            return b"%b%b}\n" % (head_of_request(cast("RequestId", id), method), encode(params))
        case ResultMessage(id, result):
            return b"%b%b}\n" % (head_of_answer(cast("RequestId", id)), encode(result))
        case ErrorMessage(id, code, text, data):
            plain = None if isinstance(data, UnsetType) else Raw(encode(data))
            return error_frame(cast("RequestId", id), ErrorObject(code, text, plain)) + b"\n"


def failure_of(error: ErrorObject) -> RequestFailure:
    """Return an error of the wire as a translator takes it."""
    return RequestFailure(error.code, error.message, UNSET if error.data is None else error.data)
