"""Two ends in one process. The twin of every other transport: what holds over memory must hold over a pipe."""

import asyncio

from antiphon.errors import ConnectionClosed
from antiphon.transports.base import Transport
from antiphon.transports.framing import MAX_FRAME, LineFramer

__all__ = ["MemoryTransport", "memory_pair"]


class MemoryTransport(Transport):
    """One end of a connection in memory. What is sent reaches the other end in a later turn of the loop, as it would through a pipe."""

    def __init__(self, limit: int = MAX_FRAME) -> None:
        super().__init__()
        self._framer = LineFramer(limit)
        self._other: MemoryTransport | None = None
        self._incoming: list[bytes] = []
        self._scheduled = self._paused = self._over = self._closed = False
        self._drained = asyncio.Event()

    def _connect(self, other: "MemoryTransport") -> None:
        self._other = other

    @property
    def unsent(self) -> int:
        """What the other end has not read counts too: a slow reader is felt."""
        waiting = sum(map(len, self._other._incoming)) if self._other else 0
        return len(self.out) + waiting

    @property
    def deaf(self) -> bool:
        return self._over

    def flush(self) -> None:
        if self.out and self._other is not None and not self._over:
            data, self.out = bytes(self.out), bytearray()
            self._other._incoming.append(data)
            self._other._deliver_soon()

    async def drain(self) -> None:
        self.flush()
        await asyncio.sleep(0)
        while not self._over and self._other is not None and self._other._incoming:
            self._drained.clear()
            await self._drained.wait()
        if self._over:
            raise ConnectionClosed("the connection is closed")

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._deliver_soon()

    def _start_reading(self) -> None:
        self._deliver_soon()

    def _deliver_soon(self) -> None:
        if not self._scheduled and self.sink is not None:
            self._scheduled = True
            self.loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._scheduled = False
        while self._incoming and not self._paused and self.sink is not None:
            for block in self._framer.blocks(self._incoming.pop(0)):
                self.sink.block_received(block)
        if self._incoming:
            return
        if self._other is not None:
            self._other._drained.set()
        if self._over:
            self._finish("the other end closed")

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if not self._over:
            self.flush()
            self._over = True
            if self._other is not None:
                self._other._over = True
                self._other._drained.set()
                self._other._deliver_soon()
        self._finish("the connection is closed")
        self._incoming.clear()  # nothing may arrive after the sink has received the end

    def _finish(self, why: str) -> None:
        if self.lost is None and self.sink is not None:
            for frame in self._framer.end():
                self.sink.block_received(frame)
        self._lose(ConnectionClosed(why))


def memory_pair(limit: int = MAX_FRAME) -> tuple[MemoryTransport, MemoryTransport]:
    """Two connected ends."""
    near, far = MemoryTransport(limit), MemoryTransport(limit)
    near._connect(far)
    far._connect(near)
    return near, far
