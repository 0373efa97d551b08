"""A transport that finds out in the handshake whether the peer speaks another version, and translates only then.

Until the handshake is done, and for good where both sides speak the same version, every byte is forwarded as it came. What is chosen, a
function knows that is given: this module knows that `initialize` is the handshake, and nothing of any version.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

from msgspec import Raw, UnsetType

from antiphon.connection.adapter import TranslatedTransport, failure_of
from antiphon.connection.reports import Observer
from antiphon.errors import AcpError, ConnectionClosed, RequestError
from antiphon.protocol.exchange import Adapter, RequestFailure
from antiphon.rpc.envelope import (
    ErrorObject,
    Frame,
    Line,
    Overlong,
    Request,
    RequestId,
    Response,
    decode,
    error_frame,
)
from antiphon.rpc.peer import id_key
from antiphon.transports.base import Transport
from antiphon.transports.framing import lines_of

__all__ = ["AgentNegotiation", "ChooseByAnswer", "ChooseByRequest", "ClientNegotiation", "Reopen"]

INITIALIZE: Final = "initialize"
_MARK: Final = b'"initialize"'
"""In every handshake, and in few other messages: the others are not decoded."""

ChooseByAnswer: TypeAlias = Callable[[Raw, Raw | None, RequestFailure | None], Adapter | None]
"""Given the params of the handshake, and the agent's result or error: what translates; None if nothing is to be translated.

Raises RequestError if the handshake is to be refused whatever the agent answered."""

ChooseByRequest: TypeAlias = Callable[[Raw], Adapter | None]
"""Given the params of a client's handshake: what translates; None if nothing is to be translated. Raises RequestError to refuse it."""

Reopen: TypeAlias = Callable[[], Awaitable[Transport]]
"""Starts the agent again. Some end, or answer nothing but errors, once they have refused a version."""


class _Negotiation(TranslatedTransport):
    """A transport that translates if the handshake says so."""

    _decided = False

    def settled(self) -> Transport:
        """Return what to use after the handshake: the transport below if nothing is translated, so that nothing stands between."""
        if (
            self.translates
            or self._up
            or not self._decided
            or self.below.lost is not None
            or self.below.sink is not self
        ):
            return self
        self.below.out += self.out
        self.out = bytearray()
        self.below.sink = self.sink
        return self.below


class ClientNegotiation(_Negotiation):
    """Below a client or a bridge: if the agent refuses the version of the client, the handshake is repeated in the agent's own.

    The client's handshake goes to the agent as it is. So an agent that speaks the client's version is never translated.
    An agent that does not take a second handshake is started again, once, with `reopen`.
    """

    def __init__(
        self,
        below: Transport,
        choose: ChooseByAnswer,
        *,
        observer: Observer | None = None,
        reopen: Reopen | None = None,
    ) -> None:
        super().__init__(below, None, above="client", observer=observer)
        self._choose = choose
        self._asked: Request | None = None
        self._reopen = None if below.routed else reopen
        self._repeated: tuple[Request, RequestFailure] | None = None
        """The handshake that is repeated in the agent's version and is not answered, with the refusal of the first."""
        self._held: bytearray | None = None
        """What the side above sends while the agent is started again; None if it is not."""
        self._reopening: asyncio.Task[None] | None = None

    def _from_above(self, data: Line) -> None:
        if self._held is not None:
            self._held += data
            return
        if not self._decided and self._asked is None:
            self._look(data)
        super()._from_above(data)

    def route(self, frame: bytes, session_id: str | None, answers: RequestId | UnsetType) -> None:
        """Take one frame, to send it where it belongs."""
        if not self._decided and self._asked is None:
            self._look(frame)
        super().route(frame, session_id, answers)

    # An agent that does not take a second handshake.

    def _put_above(self, frames: Line) -> None:
        if self._repeated is not None:
            message = decode(frames)
            if isinstance(message, Response) and id_key(message.id) == id_key(self._repeated[0].id):
                if message.error is not None and self._reopen is not None:
                    self._start_again(self._reopen, *self._repeated)
                    return
                self._repeated = None
        super()._put_above(frames)

    def connection_lost(self, error: ConnectionClosed) -> None:
        """The peer is gone. If that was its answer to the second handshake, it is started again."""
        if self._held is not None:
            return  # the one that is replaced
        if self._repeated is not None and self._reopen is not None:
            self._start_again(self._reopen, *self._repeated)
        else:
            super().connection_lost(error)

    def _start_again(self, reopen: Reopen, asked: Request, failure: RequestFailure) -> None:
        self._held = bytearray()
        self._reopen = None  # once
        self._reopening = self.loop.create_task(self._open_again(reopen, asked, failure))

    async def _open_again(self, reopen: Reopen, asked: Request, failure: RequestFailure) -> None:
        self.below.skip_grace()
        await self.below.close()
        try:
            below = await reopen()
        except AcpError as error:
            self._held = None
            super().connection_lost(error if isinstance(error, ConnectionClosed) else ConnectionClosed(str(error)))
            return
        held, self._held = self._held or bytearray(), None
        self.below = below
        adapter = self._choose(asked.params, None, failure)
        if adapter is not None:  # as the first time
            self.use(adapter)
            adapter.client_request(asked.id, INITIALIZE, asked.params)
        below.attach(self)
        self._send_all()
        if held:
            self._from_above(held)
        self.below.flush_soon()

    @property
    def deaf(self) -> bool:
        """Whether the peer reads no more."""
        return self._held is None and super().deaf

    async def close(self) -> None:
        """Send what is left, within limits, and end."""
        if self._reopening is not None and not self._reopening.done():
            self._reopening.cancel()
            with suppress(asyncio.CancelledError):
                await self._reopening
            self._held = None
        await super().close()

    def _look(self, data: Line) -> None:
        """Look for the handshake. A client that was too early with something else may still begin it."""
        if _MARK not in data:
            return
        for line in lines_of(data):
            message = decode(line)
            if isinstance(message, Request) and message.method == INITIALIZE:
                # Not the bytes of the frame, which are sent and gone.
                self._asked = Request(message.id, message.method, Raw(bytes(message.params)))
                return

    def block_received(self, block: Frame) -> None:
        """Hand lines on. The response to the handshake decides what becomes of the rest."""
        asked = self._asked
        if self._decided or asked is None or isinstance(block, Overlong):
            super().block_received(block)
            return
        lines = lines_of(block)
        for place, line in enumerate(lines):
            message = decode(line)
            if isinstance(message, Response) and id_key(message.id) == id_key(asked.id):
                self._answered(asked, message, _block(lines[:place]), bytes(line) + b"\n")
                rest = _block(lines[place + 1 :])
                if rest:
                    super().block_received(rest)
                return
        super().block_received(block)

    def _answered(self, asked: Request, answer: Response, before: bytes, line: bytes) -> None:
        failure = None if answer.error is None else failure_of(answer.error)
        self._asked = None
        try:
            found = self._choose(asked.params, answer.result, failure)
        except RequestError as error:
            refused = error_frame(asked.id, ErrorObject(error.code, error.message, error.data))
            super().block_received(before + refused + b"\n")
            return
        # A refused handshake may be tried again, and then decides.
        self._decided = found is not None or failure is None
        if found is None:
            super().block_received(before + line)
            return
        if before:
            super().block_received(before)
        self.use(found)
        if failure is not None:
            self._repeated = asked, failure
        found.client_request(asked.id, INITIALIZE, asked.params)
        self._send_all()
        self.below.flush_soon()


class AgentNegotiation(_Negotiation):
    """Below an agent: a client that asks for another version than the agent's own is translated."""

    def __init__(self, below: Transport, choose: ChooseByRequest, *, observer: Observer | None = None) -> None:
        super().__init__(below, None, above="agent", observer=observer)
        self._choose = choose

    def block_received(self, block: Frame) -> None:
        """Hand lines on. The client's handshake decides what becomes of the rest."""
        if self._decided or isinstance(block, Overlong):
            super().block_received(block)
            return
        lines = lines_of(block)
        begin = 0
        for place, line in enumerate(lines):
            message = decode(line)
            if isinstance(message, Request) and message.method == INITIALIZE:
                if begin < place:
                    super().block_received(_block(lines[begin:place]))
                refused = self._decide(message)
                begin = place + 1 if refused else place
                if not refused:  # else another one may follow
                    break
        if lines[begin:]:
            super().block_received(_block(lines[begin:]) if begin else block)

    def _decide(self, request: Request) -> bool:
        """Choose by the handshake. Returns whether it was refused, and answered."""
        try:
            found = self._choose(request.params)
        except RequestError as error:
            wrong = ErrorObject(error.code, error.message, error.data)
            frame = error_frame(request.id, wrong)
            if self.below.routed:
                self.below.route(frame, None, request.id)
            else:
                self.below.out += frame + b"\n"
                self.below.flush_soon()
            return True
        self._decided = True
        if found is not None:
            self.use(found)
        return False


def _block(lines: Sequence[Line]) -> bytes:
    return b"".join(bytes(line) + b"\n" for line in lines)
