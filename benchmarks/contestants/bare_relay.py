"""The least relay that stores before it shows: a pipe, a bare group commit, a WebSocket. What the gateway's journal is compared with.

    python -m benchmarks.contestants.bare_relay PORT FILE -- AGENT...

Takes one client. When that leaves, it prints the milliseconds from an append to its commit, as the loop learns of it: `{"p50": …, "p99": …}`.
"""

import asyncio
import base64
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from benchmarks.journal import BareCommit, quantiles

MAGIC: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CHUNK: Final = 1 << 16


class BareRelay(asyncio.Protocol):
    """The one client, and the agent behind it."""

    def __init__(self, commit: BareCommit, agent: "subprocess.Popen[bytes]") -> None:
        assert agent.stdin is not None and agent.stdout is not None
        self.left: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waits: list[float] = []
        self._commit = commit
        self._stdin, self._stdout = agent.stdin, agent.stdout.fileno()
        self._transport: asyncio.Transport
        self._arrived = b""
        self._upgraded = False
        self._rest = self._shown = b""

    # The client.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        asyncio.get_running_loop().remove_reader(self._stdout)
        self.left.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._arrived += data
        if not self._upgraded:
            head, end, self._arrived = self._arrived.partition(b"\r\n\r\n")
            if not end:
                self._arrived = head
                return
            self._upgrade(head)
        while (frame := self._next_frame()) is not None:
            self._stdin.write(frame + b"\n")
            self._stdin.flush()

    def _upgrade(self, head: bytes) -> None:
        key = head.partition(b"Sec-WebSocket-Key: ")[2].partition(b"\r\n")[0]
        accept = base64.b64encode(hashlib.sha1(key + MAGIC).digest())
        answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %b\r\n\r\n"
        self._transport.write(answer % accept)
        self._upgraded = True
        asyncio.get_running_loop().add_reader(self._stdout, self._readable)

    def _next_frame(self) -> bytes | None:
        """Return the text of a frame that is here as a whole. Its mask is zero (`network.Socket`)."""
        if len(self._arrived) < 4:
            return None
        size, at = self._arrived[1] & 0x7F, 6
        if size == 126:
            size, at = int.from_bytes(self._arrived[2:4], "big"), 8
        if len(self._arrived) < at + size:
            return None
        frame, self._arrived = self._arrived[at : at + size], self._arrived[at + size :]
        return frame

    # The agent.

    def _readable(self) -> None:
        *lines, self._rest = (self._rest + os.read(self._stdout, CHUNK)).split(b"\n")
        for line in lines:
            given = time.perf_counter()
            self._commit.append(0, [line]).add_done_callback(lambda _, line=line, given=given: self._show(line, given))  # type: ignore[misc]

    def _show(self, line: bytes, given: float) -> None:
        self.waits.append((time.perf_counter() - given) * 1000)
        size = bytes((len(line),)) if len(line) < 126 else b"\x7e" + len(line).to_bytes(2, "big")
        if not self._shown:
            asyncio.get_running_loop().call_soon(self._flush)
        self._shown += b"\x81" + size + line

    def _flush(self) -> None:
        """Send what one commit has stored in one piece."""
        shown, self._shown = self._shown, b""
        self._transport.write(shown)


async def serve(port: int, file: Path, agent: "subprocess.Popen[bytes]") -> None:
    """Serve one client."""
    commit = BareCommit(file)
    try:
        relay = BareRelay(commit, agent)
        async with await asyncio.get_running_loop().create_server(lambda: relay, "127.0.0.1", port):
            await relay.left
    finally:
        agent.kill()
        agent.wait()
        commit.close()
    half, most = quantiles(relay.waits)
    print(json.dumps({"p50": half, "p99": most}), flush=True)


if __name__ == "__main__":
    started = subprocess.Popen(sys.argv[4:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    asyncio.run(serve(int(sys.argv[1]), Path(sys.argv[2]), started))
