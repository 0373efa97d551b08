"""A client that speaks version 2 of ACP: what it sends becomes version 1 before it is handled, and what it gets becomes version 2.

All checks are made of what the translator has written: a message that is not of version 1 does not get past them. What can be read in two
ways is refused before that, as for every client. Lines are translated one by one, when it is their turn.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from antiphon.connection.adapter import TranslatedTransport
from antiphon.connection.reports import ReportLog
from antiphon.errors import Code, ConnectionClosed
from antiphon.gateway.access.messages import check_spelling
from antiphon.remote.translation import NumberedTranslator
from antiphon.rpc.envelope import (
    ErrorObject,
    Frame,
    Malformed,
    Noise,
    Notification,
    Overlong,
    Request,
    Response,
    decode,
    error_frame,
)
from antiphon.transports.asgi.connections import HttpConnection
from antiphon.transports.framing import lines_of

if TYPE_CHECKING:
    from antiphon.gateway.clients.connection import GatewayConnection

__all__ = ["ClientTranslation"]


class ClientTranslation(TranslatedTransport):
    """Stands between the transport of one client and its connection, which is handed messages of version 1."""

    def __init__(self, connection: "GatewayConnection[Any]") -> None:
        transport = connection.transport
        clock = asyncio.get_running_loop().time
        super().__init__(transport, NumberedTranslator(clock), above="agent", observer=ReportLog())
        self.sink = _Handler(connection)
        if isinstance(transport, HttpConnection):
            # Several messages of version 2 may be one event. A stream counts what it sends, and keeps it for a client that comes back.
            transport.stream_opened = None

    def line_received(self, message: object, line: bytes) -> None:
        """Take a line of the client."""
        match message:
            case Request() | Notification() | Response() if why := check_spelling(line):
                self._misspelled(message, why)
            case Request() | Notification() | Response():
                self.block_received(line + b"\n")
            case Noise():
                self._answer(error_frame(None, ErrorObject(Code.PARSE_ERROR, "Parse error", "not JSON")))
            case Malformed(answerable=True):
                self._answer(error_frame(message.id, message.error))
            case _:
                pass

    def _misspelled(self, message: Request | Notification | Response, why: str) -> None:
        if isinstance(message, Notification):
            return
        frame = error_frame(message.id, ErrorObject(Code.INVALID_REQUEST, why))
        if isinstance(message, Request):
            self._answer(frame)
        else:  # taken for an error: what it was to mean is in doubt
            self.block_received(frame + b"\n")

    def _answer(self, frame: bytes) -> None:
        """Answer the client without the gateway."""
        self._put_below(frame + b"\n")
        self.below.flush_soon()

    def send_to_client(self, frame: bytes) -> None:
        """Take a message of version 1 for the client."""
        self.route(frame, None, UNSET)
        if self.below.out:
            self.below.flush_soon()


class _Handler:
    """Hands messages of version 1 to the connection. A handshake may be repeated until another request comes: the last one counts."""

    def __init__(self, connection: "GatewayConnection[Any]") -> None:
        self._connection = connection
        self._is_settled = False

    def block_received(self, block: Frame) -> None:
        """Take whole lines."""
        for line in () if isinstance(block, Overlong) else lines_of(block):
            message = decode(line)
            if isinstance(message, Request) and message.method != "initialize":
                self._is_settled = True
            elif isinstance(message, Request) and not self._is_settled:
                self._connection.begin_again()
            self._connection.handle_message(message, bytes(line))

    def connection_lost(self, error: ConnectionClosed) -> None:
        """The connection learns of its end by itself."""
