"""A client over streamable HTTP without sockets: it posts messages, reads streams, cuts them and comes back."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import msgspec

from antiphon.transports.asgi.connections import HttpConnection
from antiphon.transports.remote import head_of
from antiphon.transports.sse import EventParser
from tests.waits import until

__all__ = ["HttpClient", "HttpStream"]


class HttpStream:
    """One reader of a stream."""

    def __init__(self, connection: HttpConnection, session: str | None, last_id: str) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        """The messages, each with the id of its event."""
        self.last_id = last_id
        self._parser = EventParser()
        self._left = asyncio.Event()
        scope: dict[str, Any] = {"extensions": {}}
        self._task = asyncio.ensure_future(connection.send_events(session, last_id, scope, self._receive, self._send))

    async def _receive(self) -> MutableMapping[str, Any]:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if self._left.is_set():
            raise OSError("the client is gone")
        for event in self._parser.feed(bytes(message.get("body", b""))):
            if event.data:
                self.events.append((event.id, msgspec.json.decode(event.data)))
        self.last_id = self._parser.last_id or self.last_id  # also of an opening without events

    async def cut(self) -> None:
        """Leave in the middle of it."""
        self._left.set()
        await self._task


class HttpClient:
    """One connection over HTTP to a hub, with a stream for the connection and one for each session."""

    def __init__(self, hub: Any, principal: Any) -> None:
        self.hub = hub
        self.connection = HttpConnection(0)
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.streams: dict[str | None, HttpStream] = {}
        """Those that are read now."""
        self._last: dict[str | None, str] = {}
        self._id = 0
        self.serving = asyncio.ensure_future(hub.serve(self.connection, principal, "demo"))

    async def initialize(self, *, numbers: bool = False, **capabilities: object) -> dict[str, Any]:
        params: dict[str, Any] = {"protocolVersion": 1, "clientCapabilities": capabilities}
        if numbers:
            params["_meta"] = {"antiphon": {"numbers": True}}
        await until(lambda: self.connection.sink is not None)
        await self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        found: dict[str, Any] = msgspec.json.decode(await self.connection.initialized)
        self.listen(None)
        return found

    async def post(self, message: dict[str, Any]) -> None:
        body = msgspec.json.encode(message)
        head = head_of(body)
        assert head is not None
        await self.connection.posted(body, head, head.session_of(head.params))

    def listen(self, session: str | None) -> HttpStream:
        """Open a stream, or open it again where it was cut."""
        stream = HttpStream(self.connection, session, self._last.get(session, ""))
        self.streams[session] = stream
        return stream

    async def cut(self, session: str | None) -> None:
        """Cut a stream."""
        stream = self.streams.pop(session)
        await stream.cut()
        self.seen += stream.events
        self._last[session] = stream.last_id

    @property
    def events(self) -> list[tuple[str, dict[str, Any]]]:
        """All that came, in the order of the streams."""
        return [*self.seen, *(event for stream in self.streams.values() for event in stream.events)]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [message for _, message in self.events]

    async def begin(self, method: str, params: object) -> int:
        self._id += 1
        await self.post({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        return self._id

    async def response(self, id: int) -> dict[str, Any]:
        def found() -> list[dict[str, Any]]:
            return [each for each in self.messages if each.get("id") == id and "method" not in each]

        await until(found)
        assert len(found()) == 1, found()
        return found()[0]

    async def request(self, method: str, params: object) -> dict[str, Any]:
        found = await self.response(await self.begin(method, params))
        assert "result" in found, found
        result: dict[str, Any] = found["result"]
        return result

    async def prompt(self, session: str, text: str) -> int:
        return await self.begin("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})

    @property
    def texts(self) -> list[str]:
        updates = [each["params"]["update"] for each in self.messages if each.get("method") == "session/update"]
        return [each["content"]["text"] for each in updates if "content" in each]

    async def leave(self) -> None:
        await self.connection.close()
        await self.serving
