"""Connections of clients to workers, carried by the broker as messages that are not stored. Both ends are transports.

Subjects: a request to `acp.open.WORKER` opens a connection; what goes to a worker is published on `acp.c.up.WORKER`, what comes back on
`acp.c.down.GATEWAY`, where GATEWAY is a random name of the process that opens connections. So a process has one subscription for all of
its connections, and each role has subjects of its own to publish on. Which connection a message is for stands in its first bytes.

Rules, the same at both ends:

1. Bytes travel in numbered chunks. Every message has the number of the last chunk that its sender has sent, so a hole is found by the
   next message of any kind, and ends the connection. Nothing is sent again: the link above attaches again.
2. The receiver grants bytes, as much as a window behind what its reader has taken. A reader that pauses makes the sender wait.
3. Chunks that are not confirmed after a while are asked about, and a close is repeated until it is confirmed. A message that was lost
   without any behind it is found, too.
4. Two processes that share connections send pings when nothing else comes, one for all connections. Each ping has the *epoch* of its
   sender: a connection of an older epoch is over. A process that gives a peer up, or has lost the broker, begins a new epoch with it.
5. A lost connection to the broker ends all connections at once: some message may be missing, and only the epoch reaches the peers later.
"""

import asyncio
import itertools
import logging
import re
import struct
from collections.abc import Callable
from contextlib import suppress
from secrets import token_bytes, token_hex
from typing import Final

import msgspec

from antiphon.errors import AcpError, ConnectionClosed, LocalProtocolError, sentence_and_hint
from antiphon.fleet.broker import Broker, BrokerAway, CoreMessage, NoResponder
from antiphon.fleet.connection import CLOSE, GONE, HEAD, PROBE, CarrierLimits, CarrierPeer, CarrierTransport, Closed
from antiphon.protocol.base import BAD_INPUT
from antiphon.transports.remote import ConnectionRefused

__all__ = ["DOWN", "OPEN", "UP", "CarrierDialer", "CarrierListener"]

OPEN: Final = "acp.open."
"""The subject on which a worker takes requests to open a connection, without its name."""

UP: Final = "acp.c.up."
"""The subject of what goes to a worker, without its name."""

DOWN: Final = "acp.c.down."
"""The subject of what goes to a gateway, without its name."""

RETRY_INTERVAL: Final = 0.005
"""Seconds until what waits because this process has much to send to the broker is tried again."""

STOOD_STILL: Final = 1.5
"""Pings' time between two looks at the peers, above which this process is taken to have stood still itself."""

PING, PONG = 11, 12
"""Kinds of messages between processes, beside those about a connection."""

_PING: Final = struct.Struct(">BQ")
"""Kind and epoch; the name of the sender follows."""

_NAME: Final = re.compile(r"(?=.{1,200}\Z)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
"""A process, as it is a part of subjects. A server ends a connection with a line of more than 4,096 bytes, so others may not choose long ones."""

_log = logging.getLogger(__name__)


class _OpenRequest(msgspec.Struct):
    """The first line of the request that opens a connection; what the caller wants the worker to know follows it."""

    connection: str
    sender: str
    epoch: int
    granted: int


class _Opened(msgspec.Struct, omit_defaults=True):
    """The answer of a worker. With an error there is no connection."""

    epoch: int = 0
    granted: int = 0
    error: str = ""
    hint: str = ""
    recoverable: bool | None = None


class _Exchange:
    """All connections of a process to peers of one kind."""

    def __init__(self, broker: Broker, name: str, ours: str, theirs: str, limits: CarrierLimits | None) -> None:
        self.name = name
        self.limits = limits or CarrierLimits()
        self._broker = broker
        self._theirs = theirs
        self._connections: dict[bytes, CarrierTransport] = {}
        self._peers: dict[str, CarrierPeer] = {}
        self._epochs = itertools.count(1)
        self._epoch = next(self._epochs)
        """The epoch of the next peer."""
        self._given_up: dict[str, None] = {}
        """Peers that are to learn of a new epoch when the broker is there again."""
        self._blocked: dict[CarrierTransport, None] = {}
        self._retry: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._looked = 0.0
        self._is_closed = False
        self._subscription = broker.subscribe(ours + name, self._take)
        broker.on_reconnect(self._reconnected)

    @property
    def connections(self) -> int:
        """How many connections there are."""
        return len(self._connections)

    @property
    def chunk(self) -> int:
        """Bytes of one message. Another server may take less."""
        return min(self.limits.chunk, self._broker.max_payload - HEAD.size)

    @property
    def window(self) -> int:
        """Bytes that each connection grants now."""
        limits = self.limits
        return min(limits.window, max(limits.least_window, limits.windows // (len(self._connections) or 1)))

    # Messages.

    def may_send(self, connection: CarrierTransport) -> bool:
        """Whether a connection may publish; if not, it is flushed again when it may."""
        if self._broker.is_connected and self._broker.unsent < self.limits.unsent:
            return True
        self._blocked[connection] = None
        if self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(RETRY_INTERVAL, self._send_blocked)
        return False

    def _send_blocked(self) -> None:
        self._retry = None
        blocked, self._blocked = self._blocked, {}
        for connection in blocked:
            connection.flush()

    def publish(self, peer: CarrierPeer, message: bytes) -> None:
        """Send a message to a peer."""
        self._broker.publish(peer.subject, message)

    def _ping(self, kind: int, name: str) -> None:
        peer = self._peers.get(name)
        epoch = self._epoch if peer is None else peer.epoch
        self._broker.publish(self._theirs + name, _PING.pack(kind, epoch) + self.name.encode())

    def _take(self, message: CoreMessage) -> None:
        data = message.data
        if not data:
            return
        if data[0] in (PING, PONG):
            self._pinged(data)
        elif len(data) >= HEAD.size:
            kind, id, number, received, granted = HEAD.unpack_from(data)
            connection = self._connections.get(id)
            if connection is not None:
                connection.peer.has_come = True
                connection.message_received(kind, number, received, granted, data[HEAD.size :])
            elif kind == GONE:
                for peer in [each for each in self._peers.values() if each.closes.pop(id, None) is not None]:
                    peer.has_come = True
                    self._drop_unused(peer)
            elif kind in (PROBE, CLOSE) and (sender := _sender(kind, data[HEAD.size :])):
                self._broker.publish(self._theirs + sender, HEAD.pack(GONE, id, 0, 0, 0))

    def _pinged(self, data: bytes) -> None:
        name = data[_PING.size :].decode("ascii", "replace")
        if len(data) <= _PING.size or not _NAME.fullmatch(name):
            return
        kind, epoch = _PING.unpack_from(data)
        if kind == PING:
            self._ping(PONG, name)
        peer = self._peers.get(name)
        if peer is not None:
            peer.has_come = True
            for connection in [each for each in peer.connections.values() if each.is_older(epoch)]:
                connection.end(ConnectionClosed("the other end has given up this connection"), reports=False)

    # Peers.

    def add(self, name: str, id: bytes) -> CarrierTransport:
        """Make the end of a connection to a peer, which is not open yet."""
        peer = self._peers.get(name)
        if peer is None:
            peer = self._peers[name] = CarrierPeer(name, self._theirs + name, self._epoch)
            self._epoch = next(self._epochs)
        connection = CarrierTransport(self, peer, id)
        self._connections[id] = peer.connections[id] = connection
        if self._timer is None:
            self._looked = self._broker.clock()
            self._look_later()
        return connection

    def ended(self, connection: CarrierTransport) -> None:
        """Forget a connection."""
        peer = connection.peer
        self._connections.pop(connection.id, None)
        peer.connections.pop(connection.id, None)
        peer.unsettled.pop(connection.id, None)
        self._blocked.pop(connection, None)
        connection.loop.call_soon(self._drop_unused, peer)  # and not yet: it may have to be informed of this end

    def _drop_unused(self, peer: CarrierPeer) -> None:
        if not peer.connections and not peer.closes and self._peers.get(peer.name) is peer:
            del self._peers[peer.name]

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self.limits.ping, self._look)

    def _look(self) -> None:
        """Look at all peers: send pings, ask about what is not confirmed, and give up those that are silent."""
        now, before = self._broker.clock(), self._looked
        self._looked, self._timer = now, None
        if not self._broker.is_connected:
            self._lose_broker()
        # When this process itself stood still, what came meanwhile waits to be read: silence begins anew.
        stood_still = now - before > STOOD_STILL * self.limits.ping
        for peer in [*self._peers.values()]:
            is_silent, peer.has_come = not peer.has_come, False
            peer.silence = peer.silence + now - before if is_silent and not stood_still else 0.0
            if peer.silence >= self.limits.silence:
                self._give_up(peer, f"nothing came from `{peer.name}` for {self.limits.silence:g} seconds")
                continue
            if is_silent:
                self._ping(PING, peer.name)
            for message in peer.closes.values():
                self.publish(peer, message)
            for connection in [*peer.unsettled.values()]:
                connection.probe()
        if self._peers and not self._is_closed:
            self._look_later()

    def _give_up(self, peer: CarrierPeer, why: str) -> None:
        """End all connections to a peer, and begin a new epoch with it."""
        peer.closes.clear()
        if self._peers.get(peer.name) is peer:
            del self._peers[peer.name]
        for connection in [*peer.connections.values()]:
            connection.end(ConnectionClosed(why, hint="it is tried again"), reports=False)
        if self._broker.is_connected:
            self._ping(PONG, peer.name)
        else:
            self._given_up[peer.name] = None

    def _lose_broker(self) -> None:
        for peer in [*self._peers.values()]:
            self._give_up(peer, "the connection to the broker was lost")

    def _reconnected(self) -> None:
        if self._is_closed:
            return
        self._lose_broker()
        names, self._given_up = self._given_up, {}
        for name in names:
            self._ping(PONG, name)

    def lost(self, name: str, why: str = "") -> None:
        """End all connections to a peer: its process is known to be gone."""
        peer = self._peers.get(name)
        if peer is not None:
            self._give_up(peer, why or f"`{name}` is gone")

    async def close(self) -> None:
        """Close all connections, and take no more messages."""
        self._is_closed = True
        await asyncio.gather(*(connection.close() for connection in [*self._connections.values()]))
        self._subscription.end()
        for timer in (self._timer, self._retry):
            if timer is not None:
                timer.cancel()


class CarrierDialer(_Exchange):
    """Opens connections to workers. A process has one of them."""

    def __init__(self, broker: Broker, *, limits: CarrierLimits | None = None) -> None:
        super().__init__(broker, token_hex(16), DOWN, UP, limits)
        self._asking: dict[asyncio.Task[bytes], str] = {}
        """The requests that wait for the answers of workers, with the names of these."""

    def lost(self, name: str, why: str = "") -> None:
        """End all connections to a worker, and those that are being opened."""
        super().lost(name, why)
        for asking, worker in self._asking.items():
            if worker == name:
                asking.cancel()

    async def _ask(self, worker: str, request: bytes, timeout: float) -> bytes:
        """Return the answer of a worker.

        Raises:
            NoResponder: it is not there.
            BrokerAway: it did not answer in time, or is gone.
        """
        asking = asyncio.ensure_future(self._broker.request(OPEN + worker, request, timeout=timeout))
        self._asking[asking] = worker
        try:
            await asyncio.wait([asking])
            if asking.cancelled():
                raise BrokerAway("it is taken for dead", hint="another worker is found")
            return asking.result()
        finally:
            del self._asking[asking]
            asking.cancel()

    async def open(self, worker: str, hello: bytes) -> CarrierTransport:
        """Open a connection to a worker. `hello` is what the worker gets to decide about it.

        Raises:
            ConnectionRefused: the worker is not there, did not answer in time, or refused.
        """
        if self._is_closed or not _NAME.fullmatch(worker):
            raise LocalProtocolError(f"no connection to `{worker}` can be opened")
        connection = self.add(worker, token_bytes(16))
        head = _OpenRequest(connection.id.hex(), self.name, connection.peer.epoch, connection.granted)
        try:
            request = msgspec.json.encode(head) + b"\n" + hello
            answer = await self._ask(worker, request, self.limits.open)
            opened = msgspec.json.decode(answer, type=_Opened)
        except NoResponder as error:
            connection.end(ConnectionClosed("it was not opened"), reports=False)
            hint = "it has ended or is being started: another try may find it"
            raise ConnectionRefused(f"the worker `{worker}` is not there", hint=hint) from error
        except (BrokerAway, *BAD_INPUT) as error:
            connection.end(ConnectionClosed("the answer did not come in time"))
            sentence, hint = sentence_and_hint(error)[0], "it may be busy, or cut off: it is tried again"
            raise ConnectionRefused(f"the worker `{worker}` did not answer: {sentence}", hint=hint) from error
        except BaseException:
            connection.end(ConnectionClosed("it is not wanted any more"))
            raise
        if opened.error:
            connection.end(ConnectionClosed(opened.error), reports=False)
            passes = opened.recoverable is not False
            raise ConnectionRefused(opened.error, hint=opened.hint, passes=passes)
        connection.established(opened.epoch, opened.granted)
        return connection


class CarrierListener(_Exchange):
    """Takes connections to a worker.

    `accept` is called with each and with what its opener sent. It raises an `AcpError` to refuse it, whose sentence and hint the opener
    gets.
    """

    def __init__(
        self,
        broker: Broker,
        worker: str,
        accept: Callable[[CarrierTransport, bytes], None],
        *,
        limits: CarrierLimits | None = None,
    ) -> None:
        if not _NAME.fullmatch(worker):
            hint = "letters, digits, `-` and `_`, in words with dots between them"
            raise LocalProtocolError(f"`{worker}` cannot be the name of a worker", hint=hint)
        super().__init__(broker, worker, UP, DOWN, limits)
        self._accept = accept
        self._openings = broker.subscribe(OPEN + worker, self._opened)

    def _opened(self, message: CoreMessage) -> None:
        if message.reply:
            head, _, hello = message.data.partition(b"\n")
            self._broker.publish(message.reply, msgspec.json.encode(self._answer(head, hello)))

    def _answer(self, head: bytes, hello: bytes) -> _Opened:
        try:
            request = msgspec.json.decode(head, type=_OpenRequest)
            id = bytes.fromhex(request.connection)
        except (*BAD_INPUT, ValueError) as error:
            return _Opened(error=f"the worker cannot read the request: {error}", recoverable=False)
        if self._is_closed:
            return _Opened(error=f"the worker `{self.name}` is about to end", hint="another try finds another one")
        if len(id) != 16 or id in self._connections or not _NAME.fullmatch(request.sender):
            return _Opened(error="the request for a connection has a wrong name", recoverable=False)
        connection = self.add(request.sender, id)
        try:
            self._accept(connection, hello)
        except AcpError as error:
            sentence, hint = sentence_and_hint(error)
            opened = _Opened(error=sentence, hint=hint or "", recoverable=error.recoverable)
        except Exception:
            _log.exception("the worker failed to take a connection")
            opened = _Opened(error="the worker failed to take the connection", hint="its log has the reason")
        else:
            connection.established(request.epoch, request.granted)
            return _Opened(epoch=connection.peer.epoch, granted=connection.granted)
        connection.end(ConnectionClosed(opened.error), reports=False)
        return opened

    async def close(self) -> None:
        """Take no more connections, and close those that there are."""
        self._openings.end()
        await super().close()


def _sender(kind: int, rest: bytes) -> str:
    """Return the name of the process that sent the end of a connection, or a question about one; empty if that cannot be read."""
    with suppress(*BAD_INPUT):
        name = rest.decode("ascii") if kind == PROBE else msgspec.json.decode(rest, type=Closed).sender
        return name if _NAME.fullmatch(name) else ""
    return ""
