"""A gateway in a process of its own, to be killed: its hub on a socket, with the demo behind it. Prints its port."""

import asyncio
import socket
import sys
from pathlib import Path

from antiphon.gateway.base import AccessRole, HubLimits, Principal
from antiphon.gateway.data import GatewayData
from antiphon.gateway.hub import Hub
from antiphon.transports.asgi.endpoint import AcpEndpoint
from antiphon.transports.asgi.server import listen
from antiphon.transports.process import spawn

DEMO = [sys.executable, "-P", "-m", "antiphon", "agent", "--engine", "demo"]


async def main(directory: Path) -> None:
    principal = Principal("alice", AccessRole.DRIVE)
    async with (
        GatewayData.open(directory / "data") as data,
        Hub(
            {"demo": lambda: spawn(DEMO, cwd=directory)},
            data,
            data.journal,
            roots=[str(directory)],
            limits=HubLimits(prompts_per_minute=1000),
        ) as hub,
    ):
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            async with listen(AcpEndpoint(lambda transport: hub.serve(transport, principal, "demo")), listening):
                print(listening.getsockname()[1], flush=True)
                await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
