"""Our own client in this process, driven as a user would, and a fault between it and the server of the check."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import antiphon
from antiphon.client.handlers import allow_once
from antiphon.client.link import Retry
from antiphon.conformance.client_process import RunningClient
from antiphon.errors import AcpError
from tests.conformance.remote.broken_server import BrokenServer, ServerFault

NO_RETRY = Retry(())


@dataclass(slots=True)
class ClientFault:
    """What a broken client does otherwise: on the wire, or in how it ends."""

    wire: ServerFault = field(default_factory=ServerFault)
    forgives: bool = False
    """Whether it ends with status 0, whatever happened."""
    repeats: bool = False
    """Whether it begins anew where it failed."""


class DrivenClient:
    """A client that runs as a task."""

    def __init__(self, fault: ClientFault, purpose: str, cwd: Path, url: str, token: str) -> None:
        self.ended = asyncio.Event()
        self.status: int | None = None
        self.output = ""
        self._fault = fault
        self._purpose = purpose
        self._cwd = cwd
        self._url = url
        self._token = token
        self._proxy = BrokenServer(fault.wire, urlsplit(url).netloc)
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        server = await asyncio.start_server(self._proxy.serve, "127.0.0.1", 0, limit=4 * 1024 * 1024)
        try:
            url = f"{urlsplit(self._url).scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/acp"
            status = 1
            for _ in range(1 + self._fault.repeats):
                with suppress(AcpError):
                    await self._converse(url)
                    status = 0
                    break
            self.status = 0 if self._fault.forgives else status
        finally:
            server.close()
            self.ended.set()

    async def _converse(self, url: str) -> None:
        async with antiphon.connect(url, token=self._token, permission=allow_once, retry=NO_RETRY) as agent:
            if self._purpose == "load":
                session = await agent.load_session("judge-earlier", self._cwd)
            else:
                session = await agent.new_session(self._cwd)
            turn = session.prompt("hello")
            async for _ in turn:
                if self._purpose == "cancel":
                    await session.cancel()

    def end_input(self) -> None:
        pass

    def interrupt(self) -> bool:
        return False

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        for writer in self._proxy.writers:
            writer.close()


class DrivenClients:
    """A source of them."""

    def __init__(self, fault: ClientFault | None = None) -> None:
        self._fault = fault or ClientFault()

    def has(self, purpose: str) -> bool:
        return purpose in ("prompt", "cancel", "load")

    def start_for(self, purpose: str, cwd: Path, url: str, token: str) -> RunningClient:
        return DrivenClient(self._fault, purpose, cwd, url, token)
