"""A correct, minimal agent without a model, which does everything that it offers. A scenario changes the parts that it is about."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from antiphon.conformance.wire import PeerRefusal, PeerWire, Responder
from antiphon.errors import Code
from antiphon.traffic.entries import Entry, JsonObject

__all__ = ["INFO", "LISTED", "AgentScript", "StandinAgent", "capabilities"]

Params = JsonObject
Does = Callable[["StandinAgent", Params], Awaitable[object]]
"""A replacement for what the stand-in would do for a request."""

LISTED: Final = "stand-in-earlier"
"""A session that was there before the client came."""


def capabilities() -> JsonObject:
    """Everything that the stable protocol has."""
    return {
        "loadSession": True,
        "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
        "mcpCapabilities": {"http": True, "sse": True},
        "sessionCapabilities": {
            "list": {},
            "resume": {},
            "close": {},
            "delete": {},
            "additionalDirectories": {},
        },
        "auth": {"logout": {}},
    }


INFO: Final = {"name": "antiphon-check", "title": "Stand-in of Antiphon's check", "version": "1"}
"""The name of the stand-in, whatever its version of the protocol."""


@dataclass(slots=True)
class AgentScript:
    """What a scenario wants the agent to be like, over all connections of its client."""

    initialize_result: JsonObject
    """The response to `initialize`."""
    offer: JsonObject = field(default_factory=dict)
    """What the response to `session/new` has besides the usual."""
    does: dict[str, Does] = field(default_factory=dict)
    held: set[str] = field(default_factory=lambda: {"session/prompt"})
    """Methods that the scenario answers itself."""
    folders: dict[str, str] = field(default_factory=dict)
    """The sessions that there are, with their directories."""
    modes: dict[str, str] = field(default_factory=dict)
    lengths: dict[str, str] = field(default_factory=dict)


class StandinAgent(Responder):
    """The agent at the end of one connection."""

    def __init__(self, wire: PeerWire, script: AgentScript, hold: Callable[["StandinAgent", Entry], None]) -> None:
        super().__init__(wire)
        self.script = script
        self._hold = hold

    @staticmethod
    def introduction() -> JsonObject:
        """The usual response to `initialize`."""
        return {"protocolVersion": 1, "agentCapabilities": capabilities(), "agentInfo": INFO, "authMethods": []}

    def receive(self, entry: Entry) -> None:
        if entry.is_request and entry.method in self.script.held:
            self._hold(self, entry)
        else:
            super().receive(entry)

    async def result_for(self, method: str, params: Params) -> object:
        if method in self.script.does:
            return await self.script.does[method](self, params)
        return await self.usual(method, params)

    async def usual(self, method: str, params: Params) -> object:
        """What a correct agent does."""
        match method:
            case "initialize":
                return self.script.initialize_result
            case "session/new":
                return self.new_session(params)
            case "session/load" | "session/resume":
                return await self._reopened(method, params)
            case "session/list":
                listed = {LISTED: "/", **self.script.folders}
                return {"sessions": [{"sessionId": id, "cwd": cwd} for id, cwd in listed.items()]}
            case "session/set_mode":
                self.script.modes[params["sessionId"]] = params["modeId"]
                return {}
            case "session/set_config_option":
                self.script.lengths[params["sessionId"]] = params["value"]
                return {"configOptions": self.options(params["sessionId"])}
            case "session/delete":
                self.script.folders.pop(params["sessionId"], None)
                return {}
            case "session/prompt":
                return {"stopReason": "end_turn"}
            case "authenticate" | "logout" | "session/close":
                return {}
            case _:
                raise PeerRefusal(Code.METHOD_NOT_FOUND, f"method not found: {method}")

    def new_session(self, params: Params) -> JsonObject:
        """The result of opening a session."""
        session = f"stand-in-{len(self.script.folders) + 1}"
        self.script.folders[session] = params["cwd"]
        return {"sessionId": session, **self._offer(session), **self.script.offer}

    async def _reopened(self, method: str, params: Params) -> object:
        session = params["sessionId"]
        self.script.folders[session] = params["cwd"]
        if method == "session/load":
            for kind, text in (("user_message_chunk", "earlier"), ("agent_message_chunk", "indeed")):
                await self.update(session, {"sessionUpdate": kind, "content": {"type": "text", "text": text}})
        return self._offer(session)

    def _offer(self, session: str) -> JsonObject:
        modes = [{"id": "ask", "name": "Ask"}, {"id": "plan", "name": "Plan"}]
        current = self.script.modes.get(session, "ask")
        return {"modes": {"currentModeId": current, "availableModes": modes}, "configOptions": self.options(session)}

    def options(self, session: str) -> list[JsonObject]:
        """The settings of a session, as they are now."""
        values = [{"value": "short", "name": "Short"}, {"value": "long", "name": "Long"}]
        now = self.script.lengths.get(session, "short")
        return [{"id": "length", "name": "Length", "type": "select", "currentValue": now, "options": values}]

    async def update(self, session: str, update: JsonObject) -> Entry:
        """Send an update of a session."""
        params = {"sessionId": session, "update": update}
        return await self.wire.send({"jsonrpc": "2.0", "method": "session/update", "params": params})
