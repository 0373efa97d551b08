"""People who use a fleet while it breaks: each has a session, sends prompts, answers what is asked, and remembers all that was seen."""

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import UNSET

from antiphon.client.agent import ConnectedAgent
from antiphon.client.connect import connect
from antiphon.client.handlers import allow_once
from antiphon.errors import AcpError, ResponseError
from antiphon.protocol import v1
from antiphon.remote.address import LinkedAddress
from antiphon.remote.link import RemoteLink
from antiphon.remote.paths import PathMap
from antiphon.transports.remote import RemoteAddress
from antiphon.transports.websocket import open_websocket
from tests.fleet.faults.client_program import lines_of, number_of
from tests.fleet.faults.programs import FaultyFleet
from tests.gateway.peers import RawClient
from tests.limits import limit
from tests.waits import until

__all__ = ["ClientUser", "LinkedUser", "NumberedUser", "Prompt", "Watcher"]

MESSAGE = 64 * 1024 * 1024
DELAYS = (0.05, 0.1, 0.2, 0.4)
"""Seconds before each try to connect again."""


class Prompt:
    """A prompt that was sent, and what came of it."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.responses: list[dict[str, Any]] = []
        self.is_cut = False
        """Whether the connection that it was sent on has ended, so that no response can come."""


class _TimedClient(RawClient):
    """A client that knows when each message came."""

    def __init__(self, transport: Any) -> None:
        self.times: list[float] = []
        super().__init__(None, transport=transport)

    def block_received(self, block: object) -> None:
        super().block_received(block)
        now = asyncio.get_running_loop().time()
        self.times += [now] * (len(self.frames) - len(self.times))

    def send(self, frame: bytes) -> None:
        if not self.transport.routed:
            super().send(frame)
            return
        message = json.loads(frame)
        session = (message.get("params") or {}).get("sessionId")
        self.transport.route(frame, session, UNSET if "method" in message else message["id"])


class NumberedUser:
    """A user whose client connects to any gateway, and attaches by number after each cut."""

    kind = "numbered"

    def __init__(self, fleet: FaultyFleet, name: str) -> None:
        self.fleet = fleet
        self.name = name
        self.session = ""
        self.prompts: list[Prompt] = []
        self.earlier: list[dict[str, Any]] = []
        """The messages of earlier connections."""
        self.moved: list[tuple[str, float]] = []
        """Each worker that the session moved away from, and when this client was notified."""
        self.client: _TimedClient | None = None
        self._asked: dict[int, Prompt] = {}
        self._looked = 0

    @property
    def messages(self) -> list[dict[str, Any]]:
        """All that was seen."""
        return self.earlier + (self.client.messages if self.client is not None else [])

    @property
    def last(self) -> int:
        """The number of the last event that was seen."""
        return max(map(number_of, self.messages), default=0)

    async def _connect(self) -> _TimedClient:
        headers = {"Authorization": f"Bearer {self.fleet.token}"}
        client = _TimedClient(await open_websocket(self.fleet.front.url, headers=headers, limit=MESSAGE))
        await _answered(client, client.begin("initialize", _HELLO))
        return client

    async def come(self) -> None:
        """Connect, and attach after the last event that was seen, or open a session; for as long as it takes."""
        async with asyncio.timeout(limit()):
            while self.client is None:
                client = None
                try:
                    client = await self._connect()
                    if self.session:
                        params: dict[str, Any] = {"sessionId": self.session, "after": self.last}
                        await _answered(client, client.begin("_antiphon/session/attach", params))
                    else:
                        params = {"cwd": str(self.fleet.root), "mcpServers": []}
                        self.session = (await _answered(client, client.begin("session/new", params)))["sessionId"]
                    self.client, self._looked = client, 0
                except (AcpError, _Lost):
                    if client is not None:
                        self.earlier += [each for each in client.messages if self.session and number_of(each)]
                        await client.leave()
                    await asyncio.sleep(DELAYS[0])

    async def leave(self) -> None:
        """End the connection, and keep what was seen."""
        if self.client is not None:
            self.look()
            await self.client.leave()
            self.look()
            self.earlier, self.client = self.messages, None
            for prompt in self._asked.values():
                prompt.is_cut = not prompt.responses
            self._asked.clear()

    async def cut(self) -> None:
        """End the connection without a word, as a client does that is killed."""
        if self.client is not None:
            client = self.client
            client.transport._socket.transport.abort()  # type: ignore[attr-defined]
            await until(lambda: client.is_lost)

    def look(self) -> None:
        """Answer what is asked, and note what has come of prompts, and where the session went."""
        client = self.client
        if client is None:
            return
        for place in range(self._looked, len(client.messages)):
            message = client.messages[place]
            method = message.get("method")
            if method is None and (prompt := self._asked.get(message["id"])) is not None:
                prompt.responses.append(message)
            elif method == "session/request_permission" and not client.is_lost:
                client.choose(message)
            elif method == "_antiphon/session/moved":
                self.moved.append((message["params"].get("from", ""), client.times[place]))
        self._looked = len(client.messages)

    async def prompt(self, name: str, text: str) -> None:
        """Send a prompt and wait for its response, or until it cannot come any more."""
        prompt = Prompt(name, text)
        self.prompts.append(prompt)
        await self._back()
        assert self.client is not None
        about = {"antiphon": {"prompt": name}}
        params = {"sessionId": self.session, "prompt": [{"type": "text", "text": text}], "_meta": about}
        self._asked[self.client.begin("session/prompt", params)] = prompt

        def is_over() -> bool:
            self.look()
            return bool(prompt.responses) or self.client is None or self.client.is_lost

        await until(is_over)
        await self._back()

    async def _back(self) -> None:
        if self.client is not None and self.client.is_lost:
            await self.leave()
        if self.client is None:
            await self.come()

    async def idle(self) -> int:
        """Wait until no turn runs and no prompt waits, as a connection of its own shows; return the number of the last event then."""
        async with asyncio.timeout(limit()):
            while True:
                await self._back()
                self.look()
                with suppress(AcpError, _Lost):
                    client = await NumberedUser._connect(self)
                    try:
                        asked = client.begin("_antiphon/session/attach", {"sessionId": self.session})
                        state = await _answered(client, asked)
                    finally:
                        await client.leave()
                    if state["turn"] is None and not state["queued"]:
                        return int(state["number"])
                await asyncio.sleep(DELAYS[0])

    async def caught_up(self, number: int) -> None:
        """Wait until all events were seen."""
        async with asyncio.timeout(limit()):
            while self.last < number:
                await self._back()
                await asyncio.sleep(DELAYS[0])


class LinkedUser(NumberedUser):
    """A user whose client has the project's own link: it connects again by itself."""

    kind = "linked"

    async def _connect(self) -> _TimedClient:
        address = RemoteAddress(self.fleet.front.url, token=self.fleet.token)
        client = _TimedClient(RemoteLink(address, PathMap(), delays=DELAYS))
        await _answered(client, client.begin("initialize", _HELLO))
        return client

    async def cut(self) -> None:
        """End the connection below the link."""
        if self.client is not None:
            connection = self.client.transport._connection  # type: ignore[attr-defined]
            if connection is not None:
                connection.transport._socket.transport.abort()


class ClientUser:
    """A user of `antiphon.connect`, whose client sees texts and no numbers."""

    kind = "client"

    def __init__(self, fleet: FaultyFleet, name: str) -> None:
        self.fleet = fleet
        self.name = name
        self.session = ""
        self.texts: list[str] = []
        """What the agent sent."""
        self.prompts: list[Prompt] = []
        self._agent: ConnectedAgent | None = None
        self._session: Any = None

    async def come(self) -> None:
        """Connect, and open a session."""
        address = LinkedAddress(self.fleet.front.url, token=self.fleet.token, report=lambda line: None)
        async with asyncio.timeout(limit()):
            while self._session is None:
                try:
                    self._agent = self._agent or await connect(address, permission=allow_once)
                    self._session = await self._agent.new_session(self.fleet.root, on_update=self._take)
                except AcpError:
                    await asyncio.sleep(DELAYS[0])
        self.session = self._session.id

    def _take(self, update: object) -> None:
        if isinstance(update, v1.AgentMessageChunk) and isinstance(update.content, v1.TextBlock):
            self.texts.append(update.content.text)

    async def prompt(self, name: str, text: str) -> None:
        """Send a prompt and wait for its response."""
        prompt = Prompt(name, text)
        self.prompts.append(prompt)
        try:
            turn = self._session.prompt(text)
            async for update in turn:
                self._take(update)
            prompt.responses.append({"result": {"stopReason": turn.result.stop_reason}})
        except ResponseError as error:
            prompt.responses.append({"error": {"message": error.message, "data": error.data}})

    async def leave(self) -> None:
        """End the connection."""
        if self._agent is not None:
            await self._agent.close()


class Watcher:
    """A client in a process of its own, that can be killed."""

    def __init__(self, fleet: FaultyFleet, session: str, file: Path) -> None:
        self.file = file
        program = Path(__file__).with_name("client_program.py")
        self._command = (sys.executable, "-P", str(program), fleet.front.url, fleet.token, session, str(file))
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process."""
        self._process = await asyncio.create_subprocess_exec(*self._command)

    async def kill(self) -> None:
        """Kill it, if it runs."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
            await self._process.wait()
            self._process = None

    @property
    def messages(self) -> list[dict[str, Any]]:
        """All that it has seen."""
        return lines_of(self.file)

    async def caught_up(self, number: int) -> None:
        """Wait until it has seen all events."""
        await until(lambda: max(map(number_of, self.messages), default=0) >= number)


class _Lost(Exception):
    """A connection that has ended, or an error of one that goes on elsewhere."""


_HELLO = {"protocolVersion": 1, "clientCapabilities": {}, "_meta": {"antiphon": {"numbers": True}}}


async def _answered(client: RawClient, id: int) -> dict[str, Any]:
    """Wait for the result of a request.

    Raises:
        _Lost: the connection ended, or the request can be sent again.
    """
    found: list[dict[str, Any]] = []

    def is_over() -> bool:
        found.extend(each for each in client.messages if each.get("id") == id and "method" not in each)
        return bool(found) or client.is_lost

    await until(is_over)
    if not found:
        raise _Lost
    if "error" in found[0]:
        assert (found[0]["error"].get("data") or {}).get("recoverable"), found[0]
        raise _Lost(json.dumps(found[0]))
    result: dict[str, Any] = found[0]["result"]
    return result
