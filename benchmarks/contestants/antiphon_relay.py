"""The bridge of antiphon between stdio and an agent that it starts."""

import asyncio
import os
import sys

from antiphon.connection.bridge import bridge
from antiphon.protocol.v1.version import V1
from antiphon.transports.process import spawn
from antiphon.transports.stdio import open_stdio
from benchmarks.commands import neutral_command
from benchmarks.contestants.probe import REPORT, Probe


async def main() -> None:
    probe = Probe()
    env = {**os.environ, REPORT: os.environ[REPORT] + ".behind"}
    agent = await spawn(neutral_command("agent", *sys.argv[1:5]), env=env)
    probe.start()
    await bridge(open_stdio(), agent, version=V1)
    probe.finish()


if __name__ == "__main__":
    asyncio.run(main())
