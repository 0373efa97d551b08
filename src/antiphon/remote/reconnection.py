"""A transport over one connection after the other: it opens another when one is lost, with growing delays, and feels the one that there is."""

import asyncio
import logging
import random
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from antiphon.errors import AcpError, ConnectionClosed, LocalProtocolError, sentence_and_hint
from antiphon.remote.connection import ServerConnection, closed_by
from antiphon.rpc.envelope import Frame
from antiphon.transports.base import JITTER, Transport

__all__ = ["DELAYS", "LinkAddress", "ReconnectingTransport"]

DELAYS: Final = (1, 2, 4, 8, 16, 30)
"""Seconds before each try to connect again; the last for all that follow. The client may be there for days."""

_log = logging.getLogger(__name__)


class LinkAddress(Protocol):
    """Where connections are opened."""

    @property
    def name(self) -> str:
        """What it is called in messages."""

    async def open(self) -> Transport:
        """Open a connection.

        Raises:
            AcpError: it was not reached, or refused.
        """


class ReconnectingTransport(Transport):
    """What opens connections for as long as it is open itself. What is sent on them is for those that derive from it."""

    wants_numbers = False
    """Whether the client itself asked for the numbers of events."""

    def __init__(
        self, address: LinkAddress, *, report: Callable[[str], None], delays: Sequence[float], first: Transport | None
    ) -> None:
        """`first` is a connection that is open already."""
        super().__init__()
        self._address = address
        self._report = report
        self._delays = delays
        self._first = first
        self._connection: ServerConnection | None = None
        self._generation = 0
        """The number of the connection that there is, or was last."""
        self._is_live = False
        """Whether what the client sends can be forwarded."""
        self._why: AcpError = ConnectionClosed("not connected yet")
        """Why there is no connection."""
        self._paused = False
        self._room = asyncio.Event()
        """Set when there is a connection, or less waits for one."""
        self._tasks: set[asyncio.Task[None]] = set()

    # For those that derive from it.

    @abstractmethod
    async def _establish(self, connection: ServerConnection) -> None:
        """Do what a new connection needs before the client can use it.

        Raises:
            AcpError: the server refused, the connection was lost, or nothing more arrived.
        """

    @abstractmethod
    def _go_live(self) -> None:
        """Use a connection that is established."""

    @abstractmethod
    def _interrupted(self) -> None:
        """Decide about what was under way when the connection was lost."""

    @abstractmethod
    def _fail(self, error: AcpError) -> None:
        """End for good: another try would not help."""

    @abstractmethod
    def _waiting(self) -> int:
        """Return the bytes of what waits for a connection."""

    @abstractmethod
    def line_received(self, line: bytes) -> None:
        """Take a message of the server."""

    def overlong_received(self, block: Frame) -> None:
        """Take the remains of a line over the limit."""
        if self.sink is not None:
            self.sink.block_received(block)

    def _is_final(self, error: AcpError) -> bool:
        """Whether another try would not help."""
        return error.recoverable is False

    def _passes_loss(self) -> bool:
        """Whether the end of a connection is that of the client's own."""
        return False

    # The connection.

    def _start_reading(self) -> None:
        self._tasks.add(asyncio.ensure_future(self._keep()))

    async def _keep(self) -> None:
        """Hold a connection to the server for as long as this transport is open."""
        tries = 0
        while self.lost is None:
            try:
                transport, self._first = self._first or await self._address.open(), None
                tries = 0 if await self._use(transport) else tries
            except AcpError as error:
                self._why = error
            except Exception as error:  # a bug of ours must not leave the client waiting for ever
                _log.exception("the link to `%s` failed", self._address.name)
                self._why = LocalProtocolError(f"the link failed: {error!r}", hint="report this as a bug")
            if self.lost is None:
                if self._is_final(self._why):
                    self._fail(self._why)
                    return
                wanted = self._why.retry_after if isinstance(self._why, ConnectionClosed) else 0.0
                delay = max(self._delays[min(tries, len(self._delays) - 1)], wanted) * (1 + random.random() * JITTER)  # noqa: S311 - no secret
                self._report(f"{sentence_and_hint(self._why)[0]}; trying again in {delay:.0f} s")
                tries += 1
                await asyncio.sleep(delay)

    async def _use(self, transport: Transport) -> bool:
        """Use a connection until it is lost. Whether it could be used at all.

        Raises:
            AcpError: the server did not let us go on where we were.
        """
        self._generation += 1
        connection = self._connection = ServerConnection(self, transport)
        try:
            transport.attach(connection)
            if self._paused:
                transport.pause()
            await self._establish(connection)
            if not connection.ended.is_set():
                self._go_live()
            await connection.ended.wait()
            self._why = connection.error or self._why
            return True
        finally:
            if self._passes_loss():
                self._lose(closed_by(connection.error or self._why))
                self._room.set()
            connection.is_over = True
            self._connection = None
            self._is_live = False
            self._interrupted()
            await transport.close()

    def connection_ended(self) -> None:
        """Handle the end of the connection: what the client sends from now on waits."""
        self._is_live = False

    # The transport.

    @property
    def unsent(self) -> int:
        return self._waiting() + (self._connection.transport.unsent if self._connection is not None else 0)

    def flush(self) -> None:
        if self._connection is not None:
            self._connection.transport.flush()

    async def drain(self) -> None:
        if self.lost is None and (self._connection is None or not self._is_live):
            self._room.clear()
            await self._room.wait()
        elif self._connection is not None:
            with suppress(ConnectionClosed):
                await self._connection.transport.drain()
        if self.lost is not None:
            raise self.lost

    def pause(self) -> None:
        self._paused = True
        if self._connection is not None:
            self._connection.transport.pause()

    def resume(self) -> None:
        self._paused = False
        if self._connection is not None:
            self._connection.transport.resume()

    async def close(self) -> None:
        self._lose(ConnectionClosed("the connection is closed"))
        self._room.set()
        for task in (*self._tasks,):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._first is not None:  # it was never used
            await self._first.close()
