"""One connection of a link to its server, from its first message to its last."""

import asyncio
from typing import TYPE_CHECKING

from antiphon.aio import ignore_result
from antiphon.errors import AcpError, ConnectionClosed, fresh, sentence_and_hint
from antiphon.rpc.envelope import Frame, Overlong
from antiphon.transports.base import Transport

if TYPE_CHECKING:
    from antiphon.remote.reconnection import ReconnectingTransport

__all__ = ["ServerConnection", "closed_by"]


class ServerConnection:
    """The sink of one connection to the server."""

    def __init__(self, link: "ReconnectingTransport", transport: Transport) -> None:
        self.transport = transport
        self.ended = asyncio.Event()
        self.error: AcpError | None = None
        """Why it has ended."""
        self.is_over = False
        self.gathered: bytearray | None = None
        """What the client gets for the block that is being looked at."""
        self.awaits = 0
        """Responses and histories that it waits for before the client can use it."""
        self.established: asyncio.Future[None] = link.loop.create_future()
        """Done when they have come; its error is why they will not."""
        self.established.add_done_callback(ignore_result)
        self.is_silent = True
        """Whether nothing has arrived since this was set."""
        self._link = link

    def one_less(self) -> None:
        """Count one of the things that it waits for as come."""
        self.awaits -= 1
        if not self.awaits and not self.established.done():
            self.established.set_result(None)

    def end(self, error: AcpError) -> None:
        """Use it no more, for this reason."""
        self.error = self.error or error
        self.ended.set()
        if not self.established.done():
            self.established.set_exception(fresh(error))

    def block_received(self, block: Frame) -> None:
        """Take whole lines, and give the client what they are for it, in one piece."""
        sink = self._link.sink
        if self.is_over or sink is None:
            return
        self.is_silent = False
        if isinstance(block, Overlong):
            self._link.overlong_received(block)
            return
        self.gathered = bytearray()
        try:
            for line in bytes(block).split(b"\n"):
                if line and not line.isspace():
                    self._link.line_received(line)
        finally:
            gathered, self.gathered = bytes(self.gathered), None
        if gathered:
            sink.block_received(gathered)

    def connection_lost(self, error: ConnectionClosed) -> None:
        """Handle the end of the connection."""
        self._link.connection_ended()
        self.end(error)


def closed_by(error: AcpError) -> ConnectionClosed:
    """Return an error as the reason why a transport is closed."""
    sentence, hint = sentence_and_hint(error)
    return error if isinstance(error, ConnectionClosed) else ConnectionClosed(sentence, hint=hint or "")
