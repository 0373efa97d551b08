"""A network between a process and a broker that tests can break: bytes are passed on, held, dropped or cut, each way."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

__all__ = ["Network", "network"]


class Network:
    """Connections to one server, through a port of our own."""

    def __init__(self) -> None:
        self.port = 0
        self.dropped = bytearray()
        self.is_open = asyncio.Event()
        """Unset: nothing is read any more, and nothing is closed, as if a cable were pulled."""
        self.is_open.set()
        self.drops_up = self.drops_down = False
        """Whether what clients send, or what the server sends, is taken and dropped."""
        self.refuses = False
        """Whether new connections are closed at once."""
        self.count = 0
        """Connections that were made."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"nats://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """End all connections at once."""
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
        self._writers.add(writer)
        try:
            if self.refuses:
                return
            self.count += 1
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            self._writers.add(far_writer)
            try:
                up = asyncio.ensure_future(self._pass(reader, far_writer, up=True))
                down = asyncio.ensure_future(self._pass(far_reader, writer, up=False))
                try:
                    await asyncio.wait([up, down], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    up.cancel()
                    down.cancel()
                    await asyncio.wait([up, down])
            finally:
                self._writers.discard(far_writer)
                far_writer.transport.abort()
        except OSError:
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, up: bool) -> None:
        with suppress(OSError, asyncio.CancelledError):
            while True:
                await self.is_open.wait()
                data = await reader.read(1 << 16)
                await self.is_open.wait()
                if not data:
                    return
                if self.drops_up if up else self.drops_down:
                    self.dropped += data
                    continue
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def network(port: int) -> AsyncIterator[Network]:
    """Serve a network in front of a server on this machine."""
    found = Network()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(found._serve(reader, writer, port))
        found._tasks.add(task)
        task.add_done_callback(found._tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        for task in list(found._tasks):
            task.cancel()
        if found._tasks:
            await asyncio.wait(list(found._tasks))
