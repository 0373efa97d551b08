"""The sockets of a server: how they are bound, how many are open, and which have to go when there are too many.

A socket costs memory and a file before anything is known of its client, also one that never sends a byte or never ends its TLS
handshake. So sockets are counted as they are accepted, whatever server reads them. One without a request that was let in is of an
unknown client: where there are too many of those, the oldest of the network that has most is cut. A client that signs in needs
milliseconds for it, and is not kept out by those that wait.
"""

import asyncio
import ipaddress
import logging
import os
import socket
import stat
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from antiphon.transports.asgi.connections import SOCKET, CountedSocket, Receive, Scope, Send

__all__ = ["OpenSockets", "bound_tcp", "bound_unix", "sign_in_socket"]

ADDRESS_SOCKETS: Final = 64
"""Sockets of unknown clients from one network: an address, or 64 bits of IPv6, of which a client may have all."""

UNKNOWN_SOCKETS: Final = 256
"""The same from all networks."""

OWNER_SOCKETS: Final = 192
"""Sockets on which one token is used: its connections, their streams, and posts."""

MOST_SOCKETS: Final = 4096
"""Sockets in all, or half of the files that the process may have open if that is less: agents need some, too."""

STALL_TIMEOUT: Final = 60.0
"""Seconds in which a client has to read some of what it is sent."""

_log = logging.getLogger(__name__)
_RESET: Final = struct.pack("ii", 1, 0)
"""The option of a socket that is closed without a wait for what was not sent."""


_KEEP_ALIVE: Final = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""Seconds of silence until the system asks whether a client is still there, between two tries, and how many of them."""


class OpenSocket(socket.socket):
    """A connection of a client, which is counted until it is closed."""

    def __init__(self, accepted: socket.socket, sockets: "OpenSockets", address: Any) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self.peer: tuple[str, int] = (str(address[0]), int(address[1]))
        self.network = _network_of(self.peer[0])
        self.owner: str | None = None
        """Who uses it; None: unknown."""
        self._sockets = sockets
        self.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # finds clients that are gone without a word
        for name, seconds in _KEEP_ALIVE.items():
            if hasattr(socket, name):
                self.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)

    def sign_in(self, owner: str) -> bool:
        """Note that a request of this owner was let in; empty: any. False: there are too many sockets of the same owner."""
        return self._sockets.sign_in(self, owner)

    def cut(self) -> None:
        """End the connection now, whatever waits to be sent: its server sees that the client is gone."""
        with suppress(OSError):
            self.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._sockets.remove(self)
        super().close()


class _Listener(socket.socket):
    """A listening socket whose connections are counted."""

    def __init__(self, listening: socket.socket, sockets: "OpenSockets") -> None:
        super().__init__(listening.family, listening.type, listening.proto, fileno=os.dup(listening.fileno()))
        self._sockets = sockets

    def accept(self) -> tuple[socket.socket, Any]:
        accepted, address = super().accept()
        if self.family == socket.AF_UNIX:  # for this user alone
            return accepted, address
        opened = OpenSocket(accepted, self._sockets, address)
        if not self._sockets.add(opened):
            opened.close()
            raise ConnectionAbortedError("there are too many connections")  # the loop goes on with the next
        return opened, address


class OpenSockets:
    """All sockets of a server. `is_proxy`: whether an address is that of a proxy, which has the sockets of many clients."""

    def __init__(self, is_proxy: Callable[[str], bool] = lambda address: False) -> None:
        self._is_proxy = is_proxy
        self._limit = min(MOST_SOCKETS, _files() // 2)
        self._open: dict[tuple[str, int], OpenSocket] = {}
        self._unknown: dict[str, dict[OpenSocket, None]] = {}
        """The sockets of unknown clients by network, in the order of their age."""
        self._owned: Counter[str] = Counter()

    def listener(self, listening: socket.socket) -> socket.socket:
        """Return a socket that accepts for one that is bound, and counts. Both have to be closed."""
        return _Listener(listening, self)

    def add(self, opened: OpenSocket) -> bool:
        """Count a socket. Others may have to go; if none can, return False."""
        self._open[opened.peer] = opened
        self._unknown.setdefault(opened.network, {})[opened] = None
        if (victim := too_many(self._unknown, opened, self._is_proxy)) is not None:
            victim.cut()
            self._forget(victim)
        if len(self._open) <= self._limit:
            return True
        for network in sorted(self._unknown.values(), key=len, reverse=True):
            for other in network:
                if other is not opened:
                    other.cut()
                    self._forget(other)
                    return True
        return False

    def sign_in(self, opened: OpenSocket, owner: str) -> bool:
        """Note whose socket it is. False: there are too many of the same owner."""
        if opened.owner != owner:
            if owner and has_too_many_sockets(self._owned, owner):
                return False
            self._forget(opened)
            opened.owner = owner
            self._owned[owner] += 1
        return True

    def remove(self, opened: OpenSocket) -> None:
        """Count a socket no more: it is closed."""
        self._forget(opened)
        if self._open.get(opened.peer) is opened:
            del self._open[opened.peer]

    def _forget(self, opened: OpenSocket) -> None:
        if opened.owner is not None:
            self._owned[opened.owner] -= 1
            self._owned += Counter()  # without those that are 0
            opened.owner = None
        elif (others := self._unknown.get(opened.network)) is not None:
            others.pop(opened, None)
            if not others:
                del self._unknown[opened.network]

    def watched(self, app: Any) -> Any:
        """Return an application that knows the socket of each request, and waits for no client that does not read."""

        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            client = scope.get("client")
            opened = self._open.get((client[0], client[1])) if client else None
            if opened is None or scope["type"] == "lifespan":
                await app(scope, receive, send)
                return
            scope["extensions"] = {**(scope.get("extensions") or {}), SOCKET: opened}

            async def send_in_time(message: Any) -> None:
                try:
                    async with asyncio.timeout(STALL_TIMEOUT):
                        await send(message)
                except TimeoutError:
                    opened.cut()
                    raise _ClientStalled("the client does not read") from None

            try:
                await app(scope, receive, send_in_time)
            except _ClientStalled:
                _log.info("a client at %s does not read: its connection was cut", opened.peer[0])

        return watched


class _ClientStalled(OSError):
    """A client has not read in time, and was cut."""


def sign_in_socket(scope: Scope, owner: str = "") -> bool:
    """Note that a request on its socket was let in. False: there are too many sockets of this owner; empty: of anyone."""
    opened: CountedSocket | None = (scope.get("extensions") or {}).get(SOCKET)
    return opened is None or opened.sign_in(owner)


def too_many(
    unknown: dict[str, dict[OpenSocket, None]], newest: OpenSocket, is_proxy: Callable[[str], bool]
) -> OpenSocket | None:
    """Return the socket of an unknown client that has to go, if there are too many of them."""
    if len(unknown[newest.network]) > ADDRESS_SOCKETS and not is_proxy(newest.peer[0]):
        return next(iter(unknown[newest.network]))
    if sum(map(len, unknown.values())) > UNKNOWN_SOCKETS:
        largest = max(unknown.values(), key=len)
        return next(iter(largest))
    return None


def has_too_many_sockets(owned: Counter[str], owner: str) -> bool:
    """Whether one owner has as many sockets as it may have."""
    return owned[owner] >= OWNER_SOCKETS


def _network_of(address: str) -> str:
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4 or found.ipv4_mapped is not None:
        return address
    return str(ipaddress.ip_network((found, 64), strict=False))


def _files() -> int:
    """Return how many files this process may have open."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return 2 * MOST_SOCKETS
    found = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 2 * MOST_SOCKETS if found == resource.RLIM_INFINITY else found


# Sockets that are bound.


@contextmanager
def bound_tcp(host: str, port: int) -> Iterator[socket.socket]:
    """Give a socket that is bound to an address.

    Raises:
        OSError: it cannot be.
    """
    family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(where)
        yield listening


@contextmanager
def bound_unix(path: Path) -> Iterator[socket.socket]:
    """Give a socket at a path, for its user alone. What a program that was killed has left there is removed.

    Raises:
        OSError: it cannot be made there.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        before = os.umask(0o177)  # for the user alone from the first moment on
        try:
            with suppress(FileNotFoundError):
                if stat.S_ISSOCK(path.lstat().st_mode) and not _answers(path):
                    path.unlink()
            listening.bind(str(path))
        finally:
            os.umask(before)
        ours = path.lstat().st_ino
        try:
            yield listening
        finally:
            with suppress(FileNotFoundError):
                if path.lstat().st_ino == ours:  # another program may have taken the path since we stopped to listen
                    path.unlink()


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(str(path)) == 0
