"""Durable events a second of the journal of a gateway, and what it adds to an event's way: `python -m benchmarks.journal`.

Against a bare group commit in the same run: one thread, one table with a row for each event, one transaction for what waits, and
nothing else (no leases, no numbers, no sessions).
"""

import argparse
import asyncio
import json
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final, TypeAlias

from antiphon.gateway.data import GatewayData

SESSIONS: Final = 200
RATE: Final = 20
"""Updates of each session in a second, for the latency."""
EVENT: Final = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}' % (
    b'"' + b"x" * 265 + b'"'
)
"""349 bytes, like a real update."""

Append: TypeAlias = Callable[[int, list[bytes]], Awaitable[object]]


class BareCommit:
    """The least that stores an event durably: what the journal is compared with."""

    def __init__(self, path: Path) -> None:
        self._queue: SimpleQueue[tuple[int, list[bytes], asyncio.Future[None]] | None] = SimpleQueue()
        self._path = path
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def append(self, session: int, events: list[bytes]) -> "asyncio.Future[None]":
        """Store events, in the next transaction."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.put((session, events, future))
        return future

    def close(self) -> None:
        """End the thread."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        connection = sqlite3.connect(self._path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE event (session INTEGER, data BLOB)")
        while (first := self._queue.get()) is not None:
            group = [first]
            try:
                while (more := self._queue.get_nowait()) is not None:
                    group.append(more)
            except Empty:
                pass
            rows = [(session, data) for session, events, _ in group for data in events]
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO event VALUES (?, ?)", rows)
            connection.execute("COMMIT")
            group[0][2].get_loop().call_soon_threadsafe(_settle, [future for _, _, future in group])
        connection.close()


def _settle(futures: "list[asyncio.Future[None]]") -> None:
    for future in futures:
        future.set_result(None)


async def spread(append: Append, seconds: float) -> float:
    """Durable events a second over all sessions; each session appends its next event when the one before is stored."""
    end = time.perf_counter() + seconds

    async def one(session: int) -> int:
        count = 0
        while time.perf_counter() < end:
            await append(session, [EVENT])
            count += 1
        return count

    begin = time.perf_counter()
    counts = await asyncio.gather(*map(one, range(SESSIONS)))
    return sum(counts) / (time.perf_counter() - begin)


async def flood(append: Append, seconds: float) -> float:
    """Durable events a second of one session that sends blocks of 64 KiB, eight of them under way at a time."""
    block = [EVENT] * (64 * 1024 // len(EVENT))
    end = time.perf_counter() + seconds

    async def one() -> int:
        count = 0
        while time.perf_counter() < end:
            await append(0, block)
            count += len(block)
        return count

    begin = time.perf_counter()
    counts = await asyncio.gather(*(one() for _ in range(8)))
    return sum(counts) / (time.perf_counter() - begin)


async def paced(append: Append, seconds: float) -> tuple[float, float]:
    """Milliseconds from an append to its commit, half of them and 99 of 100, with `RATE` updates a second in every session."""
    waits: list[float] = []

    async def one(session: int) -> None:
        await asyncio.sleep(session / SESSIONS / RATE)
        begin = time.perf_counter()
        for each in range(int(seconds * RATE)):
            await asyncio.sleep(max(0.0, begin + each / RATE - time.perf_counter()))
            given = time.perf_counter()
            await append(session, [EVENT])
            waits.append(time.perf_counter() - given)

    await asyncio.gather(*map(one, range(SESSIONS)))
    return quantiles([1000 * wait for wait in waits])


def quantiles(waits: Sequence[float]) -> tuple[float, float]:
    """Return what half of these stay under, and 99 of 100."""
    found = sorted(waits)
    return found[len(found) // 2], found[len(found) * 99 // 100]


async def measure(seconds: float) -> dict[str, float]:
    """All lines, the journal and the bare commit in turn."""
    lines: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as directory:
        bare = BareCommit(Path(directory) / "bare.sqlite3")
        async with GatewayData.open(Path(directory) / "data") as data:
            keys = [(await data.create("demo", f"s{each}", "/w")).key for each in range(SESSIONS)]
            leases = [await data.journal.claim(key) for key in keys]

            def append(session: int, events: list[bytes]) -> "asyncio.Future[int]":
                return data.journal.append(leases[session], events)

            ways: list[tuple[str, Append]] = [("journal", append), ("bare commit", bare.append)]
            try:
                for name, way in ways:
                    lines[f"{name}, {SESSIONS} sessions, events/s"] = await spread(way, seconds)
                    lines[f"{name}, one that floods, events/s"] = await flood(way, seconds)
                for name, way in ways:
                    half, most = await paced(way, seconds)
                    lines[f"{name}, {SESSIONS} x {RATE}/s, p50 ms"] = half
                    lines[f"{name}, {SESSIONS} x {RATE}/s, p99 ms"] = most
            finally:
                bare.close()
    return lines


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each line (5)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    lines = asyncio.run(measure(options.seconds))
    if options.json:
        print(json.dumps(lines))
    else:
        for name, value in lines.items():
            print(f"{name:44} {value:12,.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
