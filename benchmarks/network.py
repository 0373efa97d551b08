"""Relays measured at a client's socket: how many updates of one session a second reach a WebSocket client, or a pipe.

    python -m benchmarks.network                  # five rounds of 100,000 updates, about a minute
    python -m benchmarks.network --rounds 3 --count 20000

Each contestant is started as people start it, with an agent behind it that has encoded its updates beforehand (`neutral.py`). The
official Python SDK has no relay: there its own agent sends. The client reads bytes and looks for the end of the turn, so it is never
what is measured. `pipe` lines are stdio to stdio, next to `cat`.

stdio-to-ws comes from npm; STDIO_TO_WS may name its `dist/main.js`. What is not installed is left out, and that is printed.
"""

import argparse
import base64
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.commands import HERE, node
from benchmarks.contestants.probe import REPORT

NEW: Final = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/tmp", "mcpServers": []}}
INITIALIZE: Final = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
STDIO_TO_WS: Final = Path(os.environ.get("STDIO_TO_WS") or HERE / "node_modules" / "stdio-to-ws" / "dist" / "main.js")
LIMIT: Final = 120.0
GRACE: Final = 3.0


def neutral(count: int) -> list[str]:
    return [sys.executable, "-m", "benchmarks.neutral", "agent", "stream", str(count), "1", "0"]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def started(words: list[str], **options: object) -> "Iterator[subprocess.Popen[bytes]]":
    env = {**os.environ, REPORT: os.devnull}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process: subprocess.Popen[bytes] = subprocess.Popen(words, **{"env": env, **quiet, **options})  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:  # a server that waits for its client
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


class Socket:
    """A WebSocket that is read as bytes: frames are found by what is in them."""

    def __init__(self, port: int) -> None:
        self.raw = self._opened(port)
        key = base64.b64encode(os.urandom(16)).decode()
        self.raw.sendall(
            f"GET /acp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self.read_until(b"\r\n\r\n")

    def _opened(self, port: int) -> socket.socket:
        until = time.monotonic() + LIMIT
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), LIMIT)
            except ConnectionRefusedError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def send(self, message: object) -> None:
        text = json.dumps(message).encode()
        mask = b"\0\0\0\0"  # allowed, and costs nothing to apply
        size = bytes((0x80 | len(text),)) if len(text) < 126 else b"\xfe" + len(text).to_bytes(2, "big")
        self.raw.sendall(b"\x81" + size + mask + text)

    def read_until(self, mark: bytes) -> bytes:
        tail = b""
        while mark not in tail:
            chunk = self.raw.recv(1 << 20)
            if not chunk:
                raise ConnectionError("the relay has closed the socket")
            tail = tail[-len(mark) :] + chunk
        return tail

    def close(self) -> None:
        self.raw.close()


def prompt(session: str) -> dict[str, object]:
    params = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
    return {"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params}


class Measured(NamedTuple):
    """The updates a second that arrived, and the CPU time of the relay for each, in microseconds."""

    rate: float
    cpu: float


def cpu_of(process: "subprocess.Popen[bytes]") -> float:
    """Return the CPU seconds of a process so far, without those of its children."""
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def over_socket(words: Callable[[int], list[str]], count: int) -> Measured:
    """Measure what arrives at a socket."""
    port = free_port()
    with started(words(port)) as relay:
        client = Socket(port)
        client.send(INITIALIZE)
        client.read_until(b"protocolVersion")
        client.send(NEW)
        found = client.read_until(b"sessionId")
        session = found.partition(b'sessionId"')[2].split(b'"')[1].decode()
        began, before = time.perf_counter(), cpu_of(relay)
        client.send(prompt(session))
        client.read_until(b"stopReason")
        seconds, used = time.perf_counter() - began, cpu_of(relay) - before
        client.close()
    return Measured(count / seconds, used / count * 1e6)


def over_pipe(words: list[str], count: int) -> Measured:
    """Measure what arrives at a pipe."""
    with started(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        line = b""
        for message in (INITIALIZE, NEW):
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        session = json.loads(line)["result"]["sessionId"]
        descriptor, tail = process.stdout.fileno(), b""
        began, before = time.perf_counter(), cpu_of(process)
        process.stdin.write(json.dumps(prompt(session)).encode() + b"\n")
        process.stdin.flush()
        while b"stopReason" not in tail:
            tail = tail[-20:] + os.read(descriptor, 1 << 20)
        return Measured(count / (time.perf_counter() - began), (cpu_of(process) - before) / count * 1e6)


def contestants(count: int) -> dict[str, Callable[[], Measured]]:
    agent = neutral(count)
    found: dict[str, Callable[[], Measured]] = {
        "antiphon bridge --listen": lambda: over_socket(
            lambda port: [sys.executable, "-m", "antiphon", "bridge", "--listen", str(port), "--no-auth", "--", *agent],
            count,
        ),
        "python-sdk server": lambda: over_socket(
            lambda port: [sys.executable, "-m", "benchmarks.contestants.python_sdk_server", str(port), str(count)],
            count,
        ),
        "pipe: antiphon bridge": lambda: over_pipe([sys.executable, "-m", "antiphon", "bridge", "--", *agent], count),
        "pipe: cat": lambda: over_pipe(["sh", "-c", 'cat | "$@" | cat', "sh", *agent], count),
    }
    if STDIO_TO_WS.exists():
        command = " ".join(agent)
        found["stdio-to-ws"] = lambda: over_socket(
            lambda port: [node(), str(STDIO_TO_WS), "--quiet", "--port", str(port), command], count
        )
    else:
        print("stdio-to-ws is not installed: npm --prefix benchmarks ci", file=sys.stderr)
    return found


RATIOS: Final = (
    ("antiphon bridge --listen", "stdio-to-ws", 15.0),
    ("antiphon bridge --listen", "python-sdk server", 10.0),
    ("pipe: antiphon bridge", "pipe: cat", 0.2),
)
"""Ours, what it is compared with, and how many times as many messages a second it is to relay."""


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--count", type=int, default=100_000)
    words.add_argument("--json", type=Path, help="write all numbers to this file")
    options = words.parse_args()
    playing = contestants(options.count)
    numbers: dict[str, list[Measured]] = {name: [] for name in playing}
    for _ in range(options.rounds):
        for name, play in playing.items():
            numbers[name].append(play())
    for name, found in numbers.items():
        rate, cpu = (statistics.median(each[n] for each in found) for n in range(2))
        print(f"{name:28} {rate:>12,.0f} updates/s {cpu:>8.2f} µs of CPU each")
    met = True
    for ours, rival, bound in RATIOS:
        if rival in numbers:
            ratio = statistics.median(a.rate / b.rate for a, b in zip(numbers[ours], numbers[rival], strict=True))
            met &= ratio >= bound
            print(f"{ours} ÷ {rival}: {ratio:.2f} (≥ {bound:g})")
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
