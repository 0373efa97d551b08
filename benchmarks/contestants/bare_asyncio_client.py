"""The least that a client on asyncio can do: wait until the pipe is readable, read it, decode each update. It checks nothing and keeps nothing.

Not a rival: the floor under `everyday-drip`, where most of the CPU time is the wake-up.
"""

import asyncio
import os

import msgspec

from benchmarks.contestants.probe import Probe, Task, task_from_argv


def _send(id: int, method: str, params: dict[str, object]) -> None:
    os.write(1, msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + b"\n")


async def play(task: Task, probe: Probe) -> None:
    """Prompt one session, and count its updates until the response."""
    _send(0, "initialize", {"protocolVersion": 1})
    os.read(0, 65536)
    _send(1, "session/new", {})
    session = msgspec.json.decode(os.read(0, 65536))["result"]["sessionId"]
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    decode = msgspec.json.Decoder().decode

    def readable() -> None:
        for line in os.read(0, 65536).splitlines():
            if "id" in decode(line):
                over.set_result(None)
            else:
                probe.handled += 1

    os.set_blocking(0, False)
    loop.add_reader(0, readable)
    probe.start()
    _send(2, "session/prompt", {"sessionId": session, "prompt": []})
    await over
    probe.finish()


if __name__ == "__main__":
    asyncio.run(play(task_from_argv(), Probe()))
