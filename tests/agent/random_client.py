"""What every client of the random end-of-life tests does: it answers permission requests at random, and follows the tool calls."""

import asyncio

import msgspec

from antiphon.connection.connection import Connection
from antiphon.errors import RequestError
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.schedules import World


class RandomClient:
    """`calls` has the last status of each tool call, by session and id."""

    def __init__(self, world: World, connection: Connection) -> None:
        self.world = world
        self.connection = connection
        connection.router.on_request(m.REQUEST_PERMISSION, self.permission)
        connection.tap(self.see)
        self.calls: dict[str, str] = {}

    def see(self, direction: str, _: float, frame: bytes) -> None:
        message = msgspec.json.decode(frame)
        update = message.get("params", {}).get("update", {}) if isinstance(message.get("params"), dict) else {}
        if direction == "in" and update.get("sessionUpdate", "").startswith("tool_call"):
            key = f"{message['params']['sessionId']} {update['toolCallId']}"
            self.calls[key] = update.get("status") or self.calls.get(key, "pending")

    async def permission(self, asked: v1.RequestPermission) -> v1.PermissionResult:
        await self.world.pause()
        match self.world.random.choice(["allow", "allow", "refuse", "never"]):
            case "allow":
                return v1.PermissionResult(v1.Selected(asked.options[0].option_id))
            case "refuse":
                raise RequestError(-32000, "not now")
            case _:
                await asyncio.Event().wait()
                raise AssertionError
