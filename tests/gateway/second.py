"""A client of version 2 of ACP, by hand: it keeps every frame, and what it has of each session."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from antiphon.transports.remote import RemoteAddress
from antiphon.transports.sse import EventParser
from tests.gateway.peers import RawClient
from tests.gateway.processes import Gateway
from tests.limits import limit
from tests.waits import until

__all__ = ["HELLO", "EventReader", "SecondClient", "connected", "stream_of"]

Json = dict[str, Any]
HELLO: Json = {"protocolVersion": 2, "info": {"name": "by hand", "version": "1"}, "capabilities": {}}


class SecondClient(RawClient):
    """It reads and writes version 2."""

    async def initialize(self, *, numbers: bool = False, **more: object) -> Json:
        return await self.request("initialize", {**HELLO, **more})

    async def new(self, cwd: Path) -> str:
        return str((await self.request("session/new", {"cwd": str(cwd)}))["sessionId"])

    async def resume(self, session: str, cwd: Path, **more: object) -> Json:
        return await self.request("session/resume", {"sessionId": session, "cwd": str(cwd), **more})

    async def turn(self, session: str, text: str) -> str:
        """Send a prompt, wait until its work has ended, and return the id of its message."""
        before = len(self.ends)
        id = (await self.response(self.prompt(session, text)))["result"]["messageId"]
        await until(lambda: len(self.ends) > before)
        return str(id)

    @property
    def updates(self) -> list[Json]:
        return [each["params"]["update"] for each in self.messages if each.get("method") == "session/update"]

    @property
    def states(self) -> list[str]:
        """The states it was sent; that of work which has ended with its stop reason."""
        found = [each for each in self.updates if each["sessionUpdate"] == "state_update"]
        return [" ".join(filter(None, (each["state"], each.get("stopReason")))) for each in found]

    @property
    def ends(self) -> list[str]:
        return [state for state in self.states if state.startswith("idle ")]

    @property
    def transcript(self) -> dict[tuple[str, str], str]:
        """The text of each message, by its kind and id, as the rules of version 2 put it together."""
        found: dict[tuple[str, str], str] = {}
        for update in self.updates:
            kind, _, chunk = update["sessionUpdate"].partition("_chunk")[0], "", "_chunk" in update["sessionUpdate"]
            if kind not in ("user_message", "agent_message", "agent_thought"):
                continue
            key = kind, update["messageId"]
            if chunk:
                found[key] = found.get(key, "") + update["content"]["text"]
            elif "content" in update:
                found[key] = "".join(block["text"] for block in update["content"] or ())
        return found


async def connected(gateway: Gateway, *, scheme: str = "ws", path: str = "/acp", token: str = "") -> SecondClient:
    """A client that has connected and sent nothing."""
    url = f"{scheme}://127.0.0.1:{gateway.port}{path}"
    return SecondClient(None, transport=await RemoteAddress(url, token=token or gateway.token).open())


class EventReader:
    """A stream of events over HTTP, read one by one."""

    def __init__(self, response: httpx.Response) -> None:
        self._pieces = response.iter_bytes()
        self._parser = EventParser()
        self._waiting: list[tuple[str, Json]] = []
        self.messages: list[Json] = []
        self.last = ""
        """The id of the last event that was read."""

    def until(self, fits: Callable[[Json], object]) -> Json:
        """Read up to a message that fits, and return it."""
        while not (self.messages and fits(self.messages[-1])):
            while not self._waiting:
                self._waiting += [(each.id, json.loads(each.data)) for each in self._parser.feed(next(self._pieces))]
            self.last, message = self._waiting.pop(0)
            self.messages.append(message)
        return self.messages[-1]


@contextmanager
def stream_of(gateway: Gateway, connection: str, session: str = "", last_id: str = "") -> Iterator[EventReader]:
    """Read the stream of a session or of the connection, after an event. It is cut at the end of the block."""
    named = {"Acp-Connection-Id": connection, "Acp-Session-Id": session, "Last-Event-ID": last_id}
    headers = {"Accept": "text/event-stream", **gateway.bearer, **{key: value for key, value in named.items() if value}}
    url = f"http://127.0.0.1:{gateway.port}/acp"
    with (
        httpx.Client(trust_env=False, timeout=limit()) as client,
        client.stream("GET", url, headers=headers) as response,
    ):
        assert response.status_code == 200, response
        yield EventReader(response)
