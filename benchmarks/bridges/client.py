"""A client that costs little: bytes are kept while the clock runs and understood afterwards. Knows no contestant.

What a bridge costs is read from the kernel, for its own process only: the CLI that it started is a process of its own.
"""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.bridges.place import Place
from benchmarks.measure import RunFailed

LIMIT: Final = 120.0
"""Seconds that one bridge may take for everything; an honest one needs about 10."""

END_LIMIT: Final = 10.0
"""Seconds that a bridge may take to end after its input did."""

CHUNK: Final = 1 << 16
_SPOKEN: Final = b'"agent_message_chunk"'
_UPDATE: Final = b'"session/update"'


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one request."""

    result: Any
    seconds: float
    """Until the answer."""
    first: float | None
    """Until the first words of the agent, if there were any."""
    text: str
    """All its words."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of one process."""

    resident: int
    shared_out: int
    """The same with what it shares with others counted in part (PSS)."""


class Bridge:
    """A running bridge, asked one thing after the other."""

    started = 0.0
    """Seconds from its start to the end of the handshake."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process = process
        self._in, self._out = process.stdin.fileno(), process.stdout.fileno()
        self._asked = 0
        self._rest = b""

    def ask(self, method: str, params: dict[str, Any]) -> Answer:
        """Ask, and wait for the answer.

        Raises:
            RunFailed: it says no, or nothing.
        """
        self._asked += 1
        question = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        line = json.dumps(question).encode() + b"\n"
        kept: list[bytes] = []
        first: float | None = None
        began = time.perf_counter()
        os.write(self._in, line)
        while True:
            lines = self._read(method)
            now = time.perf_counter() - began
            if first is None and any(_SPOKEN in line for line in lines):
                first = now
            kept += lines
            for said in (json.loads(line) for line in lines if _UPDATE not in line):
                if said.get("id") == self._asked and "method" not in said:
                    if "result" not in said:
                        raise RunFailed(f"{method}: {said.get('error')}")
                    return Answer(said["result"], now, first, _words(kept))

    def _read(self, method: str) -> list[bytes]:
        chunk = os.read(self._out, CHUNK)
        if not chunk:
            raise RunFailed(f"it ended before it answered {method}")
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return lines

    def cpu(self) -> float:
        """Seconds that all its threads have worked so far, by the kernel's clock for this process."""
        return time.clock_gettime((~self._process.pid << 3) | 2)

    def memory(self) -> Memory:
        """What it holds now."""
        rows = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
        sizes = {name: int(size.split()[0]) * 1024 for name, _, size in (row.partition(":") for row in rows)}
        return Memory(sizes["Rss"], sizes["Pss"])


def _words(lines: Sequence[bytes]) -> str:
    updates = (json.loads(line)["params"]["update"] for line in lines if _SPOKEN in line)
    return "".join(update["content"]["text"] for update in updates)


@contextmanager
def running(command: Sequence[str], place: Place) -> Iterator[Bridge]:
    """Start a bridge that has shaken hands; end it, or make it end."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        cwd=place.folder, env=place.environment, start_new_session=True,
    )  # fmt: skip
    guard = threading.Timer(LIMIT, process.kill)
    guard.start()
    try:
        bridge = Bridge(process)
        bridge.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        bridge.started = time.perf_counter() - began
        yield bridge
    finally:
        guard.cancel()
        _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.communicate(timeout=END_LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
