"""What translation between the versions of the protocol costs: `python -m benchmarks.translation`.

Processor time of the road from an agent's transport to the client's, with a translator and without one, in turn within a round; the
start of an agent that speaks both versions beside one that speaks version 1 alone; and the memory of a message that stays open.
"""

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any, Final, Literal

from msgspec import Raw

from antiphon.connection.adapter import TranslatedTransport
from antiphon.errors import ConnectionClosed
from antiphon.protocol.exchange import Adapter
from antiphon.protocol.translate.v1_client import V1ClientTranslator
from antiphon.protocol.translate.v2_client import V2ClientTranslator
from antiphon.transports.base import Frame
from antiphon.transports.memory import memory_pair
from benchmarks.updates import TEXTS

BLOCK: Final = 64 * 1024
"""Bytes of a full read of a pipe."""
UPDATES: Final = 4_000
"""Updates that are measured at once."""
CHUNK_TARGET: Final = 1.6
CALL_TARGET: Final = 6.0
"""Microseconds that a translator may add to a piece of text, and to an update of a tool call."""
START_TARGET: Final = 1.05
"""Times the start of an agent of version 1 alone."""
MESSAGE_TARGET: Final = 128 * 1024
"""Bytes of an open message, however long it is: 16 Ki characters that wait for the digest, in 512 pieces at most."""

_AGENT: Final = """
from antiphon import Agent
agent = Agent("a", versions={versions})
@agent.on
async def prompt(turn): pass
agent.run()
"""

Kind = Literal["chunk", "named chunk", "tool call"]
Json = dict[str, Any]

ROADS: Final[dict[str, tuple[type[Adapter], int, tuple[Kind, ...]]]] = {
    "agent of version 2, client of version 1": (V1ClientTranslator, 1, ("named chunk", "tool call")),
    "agent of version 1, client of version 2": (V2ClientTranslator, 2, ("chunk", "named chunk", "tool call")),
}
"""Title → the translator, the version of the client, and what is measured."""


class _Sink:
    """Takes what arrives and does nothing with it."""

    def __init__(self) -> None:
        self.size = 0
        self.last: list[Frame] = []

    def block_received(self, block: Frame) -> None:
        self.size += len(block) if isinstance(block, bytes | bytearray) else 0
        self.last = [block]

    def connection_lost(self, error: ConnectionClosed) -> None:
        """The end."""


class Road:
    """The transport of an agent with a translator on it, or with none, and a session with a prompt that the agent works on."""

    def __init__(self, kind: type[Adapter] | None, version: int) -> None:
        self.below, self.agent = memory_pair()
        clock = asyncio.get_running_loop().time
        adapter = None if kind is None else kind(clock)  # type: ignore[call-arg]  # a protocol has no constructor
        self.transport = TranslatedTransport(self.below, adapter, above="client")
        self.sink = _Sink()
        self.transport.attach(self.sink)
        if adapter is not None:
            _begin(adapter, version)
            adapter.to_client.clear()
            adapter.to_agent.clear()

    def receive(self, blocks: Sequence[bytes]) -> float:
        """Return the processor seconds of these blocks."""
        take = self.transport.block_received
        began = time.thread_time()
        for block in blocks:
            take(block)
        return time.thread_time() - began


def _begin(adapter: Any, version: int) -> None:
    """Do the handshake, open the session `s`, and send a prompt that is inserted."""
    name = {"name": "n", "version": "1"}
    new, old = {"protocolVersion": 2, "info": name}, {"protocolVersion": 1, "clientInfo": name}
    able: Json = {"capabilities": {"session": {}}} if version == 1 else {"agentCapabilities": {}, "agentInfo": name}
    prompt = {"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]}
    requests: list[tuple[str, Json, Json | None]] = [
        ("initialize", old if version == 1 else new, {**(new if version == 1 else old), **able}),
        ("session/new", {"cwd": "/w", "mcpServers": []}, {"sessionId": "s"}),
        ("session/prompt", prompt, {"messageId": "u"} if version == 1 else None),
    ]
    for id, (method, params, result) in enumerate(requests, 1):
        adapter.client_request(id, method, _raw(params))
        if result is not None:
            adapter.agent_response(adapter.to_agent[-1].id, _raw(result), None)
    if version == 1:
        running = {"sessionUpdate": "state_update", "state": "running"}
        adapter.agent_notification("session/update", _raw({"sessionId": "s", "update": running}))


def _raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode())


def line_of(kind: Kind, number: int) -> bytes:
    """One update of an agent."""
    text = TEXTS[number % len(TEXTS)]
    update: Json
    if kind == "tool call":
        content = [{"type": "content", "content": {"type": "text", "text": text}}]
        call = f"call_{number % 50}"
        update = {"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "in_progress", "content": content}
    else:
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        update |= {"messageId": f"msg_{number // 200}"} if kind == "named chunk" else {}
    params = {"sessionId": "s", "update": update}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": params}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def blocks_of(lines: Sequence[bytes], size: int) -> list[bytes]:
    """Join lines to blocks of up to so many bytes; each alone if that is 0."""
    found: list[bytes] = []
    for line in lines:
        if found and size and len(found[-1]) + len(line) <= size:
            found[-1] += line
        else:
            found.append(line)
    return found


async def added(kind: type[Adapter], version: int, what: Kind, size: int, rounds: int) -> tuple[float, float]:
    """Return the least microseconds that an update costs with the translator above the road without, and without at all."""
    blocks = blocks_of([line_of(what, number) for number in range(UPDATES)], size)
    best: dict[bool, float] = {}
    for _ in range(rounds):
        for translated in (False, True):
            road = Road(kind if translated else None, version)
            road.receive(blocks[: len(blocks) // 10 + 1])
            spent = road.receive(blocks) / UPDATES * 1e6
            best[translated] = min(spent, best.get(translated, spent))
            if not road.sink.size:
                raise RuntimeError("nothing arrived")
    return best[True] - best[False], best[False]


def _start(versions: tuple[int, ...]) -> float:
    """Return the processor seconds of an agent from its start to the response to a handshake of version 1, and its end."""
    program = _AGENT.format(versions=versions)
    asked = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}\n'
    before = _children()
    done = subprocess.run([sys.executable, "-c", program], input=asked, stdout=subprocess.PIPE, check=True)
    if b'"protocolVersion":1' not in done.stdout:
        raise RuntimeError(f"no handshake: {done.stdout!r}")
    return _children() - before


def _children() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def start_ratio(rounds: int) -> tuple[float, float]:
    """Return the start of an agent of both versions divided by that of one of version 1 alone, and the latter in milliseconds."""
    spent: dict[tuple[int, ...], list[float]] = {(1,): [], (1, 2): []}
    for versions in spent:
        _start(versions)  # what the first start reads from the disk is not the price of a version
    for _ in range(rounds):
        for versions, found in spent.items():
            found.append(_start(versions))
    return min(spent[1, 2]) / min(spent[1,]), min(spent[1,]) * 1000


async def message_memory(pieces: int) -> int:
    """Return the bytes of a message of so many pieces that is still open."""
    road = Road(V1ClientTranslator, 1)
    line = line_of("named chunk", 0)
    road.receive([line])
    gc.collect()
    tracemalloc.start()
    for _ in range(pieces):
        road.transport.block_received(line)
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size


async def measure(rounds: int, starts: int) -> dict[str, float]:
    """All lines."""
    lines: dict[str, float] = {}
    for title, (kind, version, measured) in ROADS.items():
        for what in measured:
            for size, how in ((BLOCK, "in blocks of 64 KiB"), (0, "each alone")):
                more, bare = await added(kind, version, what, size, rounds)
                lines[f"{title}: {what}, {how}, µs added"] = more
                lines[f"{title}: {what}, {how}, µs without"] = bare
    ratio, bare = await asyncio.to_thread(partial(start_ratio, starts))
    lines["start of an agent of both versions, ratio"] = ratio
    lines["start of an agent of version 1, ms"] = bare
    for pieces in (1_000, 100_000):
        lines[f"an open message of {pieces:,} pieces, bytes"] = await message_memory(pieces)
    return lines


TARGETS: Final[tuple[tuple[Callable[[str], bool], float], ...]] = (
    (lambda name: "chunk" in name and name.endswith("added"), CHUNK_TARGET),
    (lambda name: "tool call" in name and name.endswith("added"), CALL_TARGET),
    (lambda name: name.endswith("ratio"), START_TARGET),
    (lambda name: name.endswith("bytes"), MESSAGE_TARGET),
)


def target_of(name: str) -> float | None:
    """Return what a line may be at most; None if it is judged by nothing."""
    return next((most for matches, most in TARGETS if matches(name)), None)


def main() -> int:
    """Measure, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="for each line; the best counts (30)")
    parser.add_argument("--starts", type=int, default=20, help="of each agent; the best counts (20)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--strict", action="store_true", help="exit 1 if a target is not met")
    options = parser.parse_args()
    lines = asyncio.run(measure(options.rounds, options.starts))
    missed = [name for name, value in lines.items() if (most := target_of(name)) is not None and value > most]
    if options.json:
        print(json.dumps(lines))
    else:
        print(f"load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}")
        for name, value in lines.items():
            most = target_of(name)
            verdict = "" if most is None else f"at most {most:,.2f}" + (" MISSED" if name in missed else "")
            print(f"{name:80} {value:12,.2f}  {verdict}")
    return 1 if options.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main())
