"""Over a transport that sends each frame its own way, a connection hands frames over with their session and request."""

import asyncio
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from antiphon.connection.connection import Connection
from antiphon.connection.router import Router
from antiphon.errors import RequestError
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1
from antiphon.rpc.envelope import RequestId
from antiphon.transports.memory import MemoryTransport
from tests.connection.ends import Raw
from tests.limits import limit


class Routed(MemoryTransport):
    """A transport that notes where each frame belongs, and then sends it."""

    routed = True

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, str | None, object]] = []

    def route(self, frame: bytes, session_id: str | None, answers: RequestId | UnsetType) -> None:
        message: dict[str, Any] = msgspec.json.decode(frame)
        kind = message.get("method") or ("error" if "error" in message else "result")
        self.seen.append((kind, session_id, answers))
        self.out += frame + b"\n"
        self.flush()


def refuse(_: v1.ForkSession) -> v1.ForkSessionResult:
    raise RequestError(-32603, "no")


async def test_each_frame_is_handed_over_with_its_session_and_the_request_that_it_answers() -> None:
    near, far = Routed(), MemoryTransport()
    near._connect(far)
    far._connect(near)
    router = Router()
    router.on_request(m.LOGOUT, lambda _: v1.LogoutResult())
    router.on_request(m.FORK_SESSION, refuse)
    raw = Raw(far)
    async with asyncio.timeout(limit()), Connection(near, router, version=V1) as connection:
        await raw.ask("logout", {}, "a")
        await raw.ask("session/fork", {"sessionId": "s", "cwd": "/"}, 1.5)
        await connection.sender("v").say("text")
        await connection.notify(m.SESSION_UPDATE, v1.SessionUpdate("n", v1.AgentMessageChunk(v1.TextBlock("x"))))
        waiting = asyncio.ensure_future(connection.request(m.READ_TEXT_FILE, v1.ReadTextFile("r", "/x")))
        while (await raw.receive()).get("method") != "fs/read_text_file":
            pass
        waiting.cancel()
        await asyncio.wait([waiting])
        await far.close()
    assert near.seen == [
        ("result", None, "a"),
        ("error", None, 1.5),
        ("session/update", "v", UNSET),
        ("session/update", "n", UNSET),
        ("fs/read_text_file", "r", UNSET),
        ("$/cancel_request", None, UNSET),
    ]
