"""A connection to one of several NATS servers that comes back by itself: login, TLS, subscriptions, pings.

Nothing that was sent is ever sent again: what was not written when a connection is lost is lost with it, and its sender gets an error.
`nats-py` was tried first. While a server is frozen or its network is gone it waits for its old socket to close, for as long as that lasts,
before it goes to another server; and then it sends everything that had been waiting, however old.
"""

import asyncio
import ipaddress
import json
import logging
import os
import random
import re
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, cast

from antiphon.errors import AcpError
from antiphon.fleet.broker import BrokerAway
from antiphon.fleet.errors import BrokerRefused, BrokerUnfit
from antiphon.fleet.nats.login import Login, ServerAddress, connect_options, read_address
from antiphon.fleet.nats.program import OLDEST_SERVER, read_version, version_text
from antiphon.fleet.nats.wire import (
    PING,
    PONG,
    ServerLine,
    WireError,
    WireEvent,
    WireMessage,
    WireParser,
    encode_subscribe,
    encode_unsubscribe,
)

__all__ = ["LinkSubscription", "ServerLink"]

CONNECT_LIMIT: Final = 3.0
"""Seconds for one server to take a connection and let us in."""

CLOSE_LIMIT: Final = 2.0
"""Seconds for the last bytes to leave when a connection is closed."""

PING_INTERVAL: Final = 1.0
"""Seconds between two pings."""

PINGS_MISSED: Final = 4
"""Pings without a byte from the server after which the connection counts as lost."""

FIRST_WAIT: Final = 0.1
LONGEST_WAIT: Final = 2.0
"""Seconds between two rounds of attempts, doubled each time; a random part of it is left out, so that not all come at once."""

READ_SIZE: Final = 1 << 16
"""Bytes that are read at once, into one buffer: asyncio's own way takes 256 KiB from the system for each read, and gives them back."""

FLUSH_SIZE: Final = 1 << 16
"""Bytes that are written at once; fewer wait until everything that is ready in the event loop has run."""

_log = logging.getLogger(__name__)


class LinkSubscription:
    """A pattern that messages are taken of, over all connections."""

    def __init__(
        self, link: "ServerLink", sid: int, pattern: str, queue: str, take: Callable[[WireMessage], None]
    ) -> None:
        self.command = encode_subscribe(sid, pattern, queue)
        self.pattern = pattern
        self.take: Callable[[WireMessage], None] | None = take
        self._link, self._sid = link, sid

    def end(self) -> None:
        """Take no more messages."""
        if self.take is not None:
            self.take = None
            self._link._unsubscribe(self._sid)


class ServerLink:
    """A connection to one server of a list, at a time."""

    def __init__(
        self, servers: Sequence[ServerAddress], login: Login, name: str, tls: ssl.SSLContext | None = None
    ) -> None:
        self.info: dict[str, Any] = {}
        """What the server reports of itself."""
        self.problem: AcpError | None = None
        """Why there is no connection; None while there is one."""
        self.since: float | None = None
        """The time at which the connection was made; None without one."""
        self.on_up: Callable[[], None] = lambda: None
        """Called when a lost connection is there again."""
        self.on_lost: Callable[[int], None] = lambda written: None
        """Called when a connection is lost, with the number of the last command that may have left this process."""
        self.on_refused: Callable[[str], None] = lambda text: None
        """Called with what the server says where it does not permit a command."""
        self._given = list(servers)
        self._discovered: list[ServerAddress] = []
        self._login, self._name, self._tls = login, name, tls
        self._loop = asyncio.get_running_loop()
        self._socket: _Socket | None = None
        self._subscriptions: dict[int, LinkSubscription] = {}
        self._last: tuple[str, int] | None = None
        """The host and port of the server that was lost last."""
        self._next_sid = 0
        self._lost = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def unsent(self) -> int:
        """Bytes that have not left this process."""
        return self._socket.unsent if self._socket is not None else 0

    async def open(self) -> None:
        """Make the first connection, and keep one from then on.

        Raises:
            BrokerAway: no server answers.
            BrokerRefused: a server does not let us in.
            BrokerUnfit: what answers cannot be used.
        """
        if not await self._try_all():
            raise self.problem or BrokerAway("no broker answers")
        self._keeper = self._loop.create_task(self._keep(), name=f"broker connection of {self._name}")

    def send(self, command: bytes) -> int:
        """Send a command and return its number.

        Raises:
            BrokerAway: there is no connection.
        """
        if self._socket is None:
            raise BrokerAway("there is no connection to the broker", hint="it is tried again for ever")
        return self._socket.send(command)

    def subscribe(self, pattern: str, take: Callable[[WireMessage], None], queue: str = "") -> LinkSubscription:
        """Call a function with each message of a pattern, on this connection and all later ones."""
        self._next_sid += 1
        sid = self._next_sid
        subscription = self._subscriptions[sid] = LinkSubscription(self, sid, pattern, queue, take)
        if self._socket is not None:
            self._socket.send(subscription.command)
        return subscription

    async def close(self) -> None:
        """Write what waits, and end the connection for good."""
        self._closed = True
        connection, keeper = self._socket, self._keeper
        if keeper is not None:
            keeper.cancel()
        try:
            if connection is not None:
                connection.flush()
                connection.transport.close()
                async with asyncio.timeout(CLOSE_LIMIT):
                    await connection.ended.wait()
            if keeper is not None:
                await asyncio.wait([keeper])
        except TimeoutError:
            pass
        finally:
            self._break()

    def _break(self) -> None:
        """Lose the connection now."""
        connection = self._socket
        if connection is not None:
            connection.transport.abort()
            self._forget(connection)

    # What sockets report.

    def _take(self, message: WireMessage) -> None:
        subscription = self._subscriptions.get(message.sid)
        if subscription is None or subscription.take is None:
            return
        try:
            subscription.take(message)
        except Exception as error:
            self._loop.call_exception_handler(
                {"message": f"a subscription to {subscription.pattern} failed", "exception": error}
            )

    def _read_line(self, connection: "_Socket", line: ServerLine) -> None:
        if line.kind == "PING":
            connection.send(PONG)
        elif line.kind == "INFO":
            self._read_info(connection.address, line.text)
        elif line.kind == "-ERR":
            text = line.text.strip("'")
            if text.lower().startswith("permissions violation"):
                self.on_refused(text)
            else:
                _log.warning("the broker says: %s", text)
                self.problem = BrokerAway(f"the broker ended the connection: {text}")

    def _read_info(self, address: ServerAddress, text: str, *, is_greeting: bool = False) -> None:
        self.info = info = _decode_info(text)
        if is_greeting and self._encrypts(address):
            return  # it came as plain text, and would lead us to any server with a certificate; the server says it again
        known = {(each.host, each.port) for each in self._given}
        found = []
        for url in info.get("connect_urls") or ():
            with suppress(AcpError):
                other = read_address(str(url))
                if (other.host, other.port) not in known:
                    name = (address.certificate or address.host) if _is_ip(other.host) else ""
                    found.append(address._replace(host=other.host, port=other.port, certificate=name))
        if "connect_urls" in info:
            self._discovered = found

    def _forget(self, connection: "_Socket") -> None:
        """Count a connection as lost. It is no harm to call this twice."""
        if self._socket is not connection:
            return
        self._socket, self.since = None, None
        self._last = connection.address.host, connection.address.port
        if self.problem is None:
            self.problem = BrokerAway("the connection to the broker was lost", hint="it is tried again for ever")
        if not self._closed:
            _log.warning("the broker at %s is lost: %s", connection.address, self.problem.sentence)
        self._lost.set()
        self.on_lost(connection.written)

    def _unsubscribe(self, sid: int) -> None:
        if self._subscriptions.pop(sid, None) is not None and self._socket is not None:
            self._socket.send(encode_unsubscribe(sid))

    # Making connections.

    async def _keep(self) -> None:
        while True:
            await self._lost.wait()
            self._lost.clear()
            wait = FIRST_WAIT
            while not await self._try_all():
                await asyncio.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311
                wait = min(wait * 2, LONGEST_WAIT)
            _log.info("connected to the broker again")
            self.on_up()

    async def _try_all(self) -> bool:
        """Try each server once, in random order with the one that was lost last, and say whether one let us in. `problem` has the reason if none did."""
        servers = [*self._given, *self._discovered]
        random.shuffle(servers)
        servers.sort(
            key=lambda address: (address.host, address.port) == self._last
        )  # a frozen one takes a connection and says nothing
        problems: list[AcpError] = []
        for address in servers:
            connection = _Socket(self, address)
            try:
                async with asyncio.timeout(CONNECT_LIMIT):
                    await self._connect(connection)
            except (AcpError, OSError, TimeoutError) as error:
                connection.abort()
                problems.append(error if isinstance(error, AcpError) else _problem(address, error))
            except BaseException:
                connection.abort()
                raise
            else:
                return True
        refusals = [problem for problem in problems if not isinstance(problem, BrokerAway)]
        self.problem = (refusals or problems)[0]
        return False

    async def _connect(self, connection: "_Socket") -> None:
        address = connection.address
        await self._loop.create_connection(lambda: connection, address.host, address.port)
        info = await connection.greeting
        version = read_version(str(info.get("version", "")))
        if version < OLDEST_SERVER:
            raise BrokerUnfit(
                f"the broker at {address} is nats-server {info.get('version')}, and a fleet needs "
                f"{version_text(OLDEST_SERVER)} or newer",
                hint="install a newer nats-server; `pip install 'antiphon[fleet]'` brings one along",
            )
        encrypted = self._encrypts(address)
        if encrypted:
            await self._encrypt(connection, info)
        options = connect_options(self._login, address, info, self._name, encrypted=encrypted)
        connection.send(b"CONNECT %b\r\n" % json.dumps(options).encode() + PING)
        connection.introduced = True
        await connection.welcome
        if self._closed or connection.ended.is_set() or connection.transport.is_closing():
            raise BrokerAway(f"the broker at {address} ended the connection")
        for subscription in self._subscriptions.values():
            connection.send(subscription.command)
        self._socket, self.since, self.problem = connection, self._loop.time(), None
        connection.begin()

    def _encrypts(self, address: ServerAddress) -> bool:
        """Whether a connection to a server that has greeted is encrypted."""
        return address.tls or self._tls is not None or bool(self.info.get("tls_required"))

    async def _encrypt(self, connection: "_Socket", info: dict[str, Any]) -> None:
        address = connection.address
        if not (info.get("tls_required") or info.get("tls_available")):
            raise BrokerRefused(
                f"the broker at {address} has no TLS",
                hint="configure `tls` in nats-server, or use nats:// in the address",
            )
        context = self._tls or ssl.create_default_context()
        name = address.certificate or address.host
        connection.parser = WireParser()  # what came behind the greeting came from anyone
        transport = await self._loop.start_tls(connection.transport, connection, context, server_hostname=name)
        if transport is None:
            raise BrokerAway(f"the broker at {address} ended the connection")
        connection.transport = transport


class _Socket(asyncio.BufferedProtocol):
    """One connection to one server, from its first byte to its last."""

    transport: asyncio.Transport

    def __init__(self, link: ServerLink, address: ServerAddress) -> None:
        self.address = address
        self._link = link
        self._loop = asyncio.get_running_loop()
        self.greeting: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        """What the server says of itself, first of all."""
        self.welcome: asyncio.Future[None] = self._loop.create_future()
        """Done when the server has let us in."""
        self.introduced = False
        """Whether it was sent who we are."""
        self.ended = asyncio.Event()
        self.written = 0
        """The number of the last command that was given to the transport."""
        self.parser = WireParser()
        self._read = memoryview(bytearray(READ_SIZE))
        self._waiting: list[bytes] = []
        self._waiting_size = 0
        self._sent = 0
        self._flush: asyncio.Handle | None = None
        self._pings: asyncio.TimerHandle | None = None
        self._missed = 0

    @property
    def unsent(self) -> int:
        """Bytes that have not left this process."""
        return self._waiting_size + self.transport.get_write_buffer_size()

    def send(self, command: bytes) -> int:
        """Write a command soon, and return its number."""
        self._sent += 1
        self._waiting.append(command)
        self._waiting_size += len(command)
        if self._waiting_size >= FLUSH_SIZE:
            self.flush()
        elif self._flush is None:
            self._flush = self._loop.call_soon(self.flush)
        return self._sent

    def flush(self) -> None:
        """Write what waits."""
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
        if self._waiting and not self.transport.is_closing():
            self.transport.write(b"".join(self._waiting))
            self.written = self._sent
        self._waiting.clear()
        self._waiting_size = 0

    def begin(self) -> None:
        """Send pings from now on."""
        self._pings = self._loop.call_later(PING_INTERVAL, self._ping)

    def abort(self) -> None:
        """End the connection at once."""
        for future in (self.greeting, self.welcome):
            future.cancel()
        if hasattr(self, "transport"):
            self.transport.abort()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport of a new connection."""
        self.transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes of the server are put."""
        return self._read

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes of the server."""
        self._missed = 0
        try:
            events = self.parser.feed(self._read[:nbytes])
        except WireError as error:
            self._fail(
                BrokerUnfit(f"{error.sentence.rstrip('.')} ({self.address})", hint="check the address and its port")
            )
            return
        for event in events:
            if not self.welcome.done():
                self._begin_with(event)
            elif isinstance(event, WireMessage):
                self._link._take(event)
            else:
                self._link._read_line(self, event)

    def connection_lost(self, exc: Exception | None) -> None:
        """End: the server, the network or we ended the connection."""
        self.ended.set()
        if self._pings is not None:
            self._pings.cancel()
        if self._flush is not None:
            self._flush.cancel()
        self._fail(BrokerAway(f"the broker at {self.address} ended the connection", hint="its log may say why"))

    # Beginning and end.

    def _begin_with(self, event: WireEvent) -> None:
        """Take what comes before we are let in. Until the connection is encrypted, anyone on the way may have sent it."""
        if isinstance(event, WireMessage):
            self._fail(BrokerUnfit(f"the broker at {self.address} sent a message before it let us in"))
        elif event.kind == "INFO" and not self.greeting.done():
            try:
                self._link._read_info(self.address, event.text, is_greeting=True)
            except WireError as error:
                self._fail(error)
            else:
                self.greeting.set_result(self._link.info)
        elif event.kind == "PONG" and self.introduced:
            self.welcome.set_result(None)
        elif event.kind == "PING":
            self.send(PONG)
        elif event.kind == "-ERR":
            self._fail(_refusal(self.address, event.text.strip("'"), self._link._login))

    def _fail(self, problem: AcpError) -> None:
        for future in (self.greeting, self.welcome):
            if not future.done():
                future.set_exception(problem)
                future.exception()  # only one of them is awaited
        if hasattr(self, "transport"):
            self.transport.abort()
        self._link._forget(self)

    def _ping(self) -> None:
        if self._missed >= PINGS_MISSED:
            self._link.problem = BrokerAway(
                f"the broker at {self.address} did not answer for {PINGS_MISSED * PING_INTERVAL:g} seconds"
            )
            self.transport.abort()
            self._link._forget(self)
            return
        self._missed += 1
        self.send(PING)
        self._pings = self._loop.call_later(PING_INTERVAL, self._ping)


def _decode_info(text: str) -> dict[str, Any]:
    try:
        info = json.loads(text)
    except ValueError:
        info = None
    if not isinstance(info, dict):
        raise WireError("the server says nothing of itself that can be read")
    return info


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _problem(address: ServerAddress, error: OSError | TimeoutError) -> AcpError:
    """Return why a connection could not be made."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return BrokerRefused(
            f"the certificate of the broker at {address} is not trusted: {error.verify_message.rstrip('.')}",
            hint="give the certificate of the authority that signed it, and use the name that it is made for",
        )
    if isinstance(error, ssl.SSLError):
        return BrokerRefused(
            f"the broker at {address} refused TLS: {error.reason or error}",
            hint="does it ask for a certificate of clients?",
        )
    reason = "no answer in time" if isinstance(error, TimeoutError) else _reason(error)
    return BrokerAway(
        f"no broker answers at {address}: {reason}", hint="is nats-server running there, and is the address right?"
    )


def _reason(error: OSError) -> str:
    """Return what the system says. The text of asyncio has its own call and the address again, for each address of a name."""
    found = re.search(r"\[Errno (\d+)\]", str(error))
    return (
        os.strerror(int(found[1])) if found and not isinstance(error, socket.gaierror) else error.strerror or str(error)
    )


def _refusal(address: ServerAddress, text: str, login: Login) -> AcpError:
    """Return why a server did not let us in."""
    if "uthor" in text or "uthent" in text:
        shown = f"the key in {login.source}" if login.source else "this login"
        return BrokerRefused(
            f"the broker at {address} does not accept {shown}: {text}",
            hint="is the key in the configuration of nats-server? `antiphon fleet credentials` prints what belongs there",
        )
    return BrokerAway(f"the broker at {address} ended the connection: {text}")
