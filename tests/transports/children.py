"""What tests about child processes share."""

import asyncio
import os
from pathlib import Path

from antiphon.errors import ConnectionClosed
from antiphon.rpc.envelope import Frame
from antiphon.transports.process import ProcessTransport


class RecordingSink:
    """A sink that keeps what it receives."""

    def __init__(self) -> None:
        self.received: list[Frame] = []
        self.begun = asyncio.Event()
        self.end: asyncio.Future[ConnectionClosed] = asyncio.get_running_loop().create_future()

    def block_received(self, block: Frame) -> None:
        self.received.append(block)
        self.begun.set()

    def connection_lost(self, error: ConnectionClosed) -> None:
        self.end.set_result(error)


async def end_of(child: ProcessTransport) -> ConnectionClosed:
    sink = RecordingSink()
    child.attach(sink)
    async with asyncio.timeout(10):
        return await sink.end


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return b"\nState:\tZ" not in Path(f"/proc/{pid}/status").read_bytes()
    except OSError:
        return False


async def gone(*pids: int) -> None:
    """Until these processes have ended."""
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(fd, ended.set)
        await ended.wait()
        asyncio.get_running_loop().remove_reader(fd)
        os.close(fd)
