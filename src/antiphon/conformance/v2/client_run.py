"""One scenario with one client of version 2: prompts are inserted, and states say when the work begins and ends."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Final

from antiphon.conformance.client_process import CLIENT_PURPOSES_V2
from antiphon.conformance.client_run import FENCE, OPTIONS, ClientConnection, ClientRun, HeldRequest
from antiphon.conformance.requirements import Blocked, NoResponse
from antiphon.conformance.standin_agent import INFO, LISTED, Params, StandinAgent
from antiphon.conformance.wire import PeerRefusal
from antiphon.errors import Code
from antiphon.traffic.entries import Direction, Entry, JsonObject, as_object

__all__ = ["ClientRunV2", "OpenPrompt", "StandinAgentV2", "capabilities_v2", "message_id"]

NOT_FOUND: Final = -32002
UNSUPPORTED_VERSION: Final = -32022


def capabilities_v2() -> JsonObject:
    """Everything that an agent of version 2 can offer."""
    return {
        "session": {
            "prompt": {"image": {}, "audio": {}, "embeddedContext": {}},
            "mcp": {"stdio": {}, "http": {}},
            "delete": {},
            "additionalDirectories": {},
        }
    }


def message_id(prompt: Entry) -> str:
    """The id of the message of a prompt."""
    return f"user-{prompt.number}"


class StandinAgentV2(StandinAgent):
    """A correct agent of version 2 at the end of one connection."""

    @staticmethod
    def introduction() -> JsonObject:
        return {"protocolVersion": 2, "info": INFO, "capabilities": capabilities_v2()}

    async def handle(self, entry: Entry) -> None:
        if entry.method == "session/prompt" and "session/prompt" not in self.script.does:
            await self.insert(entry)
            await self.report(entry.params["sessionId"], "idle", stopReason="end_turn")
        else:
            await super().handle(entry)

    async def usual(self, method: str, params: Params) -> object:
        match method:
            case "initialize":
                return self._initialize(params)
            case "session/resume":
                return await self._resumed(params)
            case "session/list":
                listed = {LISTED: "/", **self.script.folders}
                return {"sessions": [{"sessionId": id, "cwd": cwd} for id, cwd in listed.items()]}
            case "session/set_config_option":
                return await self._set(params)
            case "session/new" | "session/delete" | "session/close":
                return await super().usual(method, params)
            case "auth/login" | "auth/logout":
                return {}
            case "tool_call/cancel" | "terminal/cancel":
                raise PeerRefusal(Code.INVALID_PARAMS, "there is nothing of this name to be cancelled")
            case _:
                raise PeerRefusal(Code.METHOD_NOT_FOUND, f"method not found: {method}")

    def _initialize(self, params: Params) -> JsonObject:
        requested = params.get("protocolVersion")
        if isinstance(requested, int) and requested < 2:
            raise PeerRefusal(
                UNSUPPORTED_VERSION, "this agent speaks version 2 only", requested=requested, supported=[2]
            )
        return self.script.initialize_result

    async def _resumed(self, params: Params) -> JsonObject:
        session = params["sessionId"]
        self.script.folders[session] = params["cwd"]
        if as_object(params.get("replayFrom")).get("type") == "start":
            for kind, id, text in (("user_message", "u-0", "earlier"), ("agent_message", "a-0", "indeed")):
                content = [{"type": "text", "text": text}]
                await self.update(session, {"sessionUpdate": kind, "messageId": id, "content": content})
        await self.report(session, "idle")
        return self._offer(session)

    async def _set(self, params: Params) -> JsonObject:
        session = params["sessionId"]
        self.script.lengths[session] = params["value"]
        options = self.options(session)
        await self.update(session, {"sessionUpdate": "config_option_update", "configOptions": options})
        return {"configOptions": options}

    async def report(self, session: str, state: str, **more: object) -> Entry:
        """Send the state of a session."""
        return await self.update(session, {"sessionUpdate": "state_update", "state": state, **more})

    async def echo(self, prompt: Entry) -> Entry:
        """Send the message of a prompt."""
        message = {"messageId": message_id(prompt), "content": prompt.params["prompt"]}
        return await self.update(prompt.params["sessionId"], {"sessionUpdate": "user_message", **message})

    async def accept(self, prompt: Entry) -> Entry:
        """Answer a prompt: its message is inserted."""
        return await self.respond(prompt, {"messageId": message_id(prompt)})

    async def insert(self, prompt: Entry) -> None:
        """Insert the message of a prompt, and begin to work on it."""
        await self.echo(prompt)
        await self.accept(prompt)
        await self.report(prompt.params["sessionId"], "running")

    def _offer(self, session: str) -> JsonObject:
        commands = [{"type": "command", "name": "plan", "description": "Plan", "input": {"type": "text", "hint": "it"}}]
        return {"configOptions": self.options(session), "availableCommands": commands}

    def options(self, session: str) -> list[JsonObject]:
        [option] = super().options(session)
        return [{**{key: value for key, value in option.items() if key != "id"}, "configId": option["id"]}]


@dataclass(frozen=True, slots=True)
class OpenPrompt(HeldRequest):
    """A prompt that the scenario inserts, and whose work it ends."""

    @property
    def agent(self) -> StandinAgentV2:
        """The agent that it was sent to."""
        if not isinstance(self.connection.agent, StandinAgentV2):
            raise TypeError("this run is for agents of version 2")
        return self.connection.agent

    async def insert(self) -> None:
        """Insert its message, and begin to work on it."""
        await self.agent.insert(self.entry)

    async def end(self, reason: str = "end_turn", **more: object) -> Entry:
        """Report that the work on it is over."""
        return await self.agent.report(self.session, "idle", stopReason=reason, **more)

    @property
    def is_over(self) -> bool:
        """Whether the last state that was reported of the session is `idle`."""
        found = [
            as_object(one.params.get("update")).get("state")
            for one in self.connection.wire.trace[self.entry.number :]
            if one.dir is Direction.A2C and one.method == "session/update"
        ]
        return [state for state in found if state is not None][-1:] == ["idle"]


class ClientRunV2(ClientRun):
    """One scenario with one client."""

    agent_type: ClassVar[type[StandinAgent]] = StandinAgentV2
    purposes: ClassVar[Mapping[str, str]] = CLIENT_PURPOSES_V2

    def hold(self, connection: ClientConnection, entry: Entry) -> HeldRequest:
        return (OpenPrompt if entry.method == "session/prompt" else HeldRequest)(connection, entry)

    async def next_prompt(self) -> OpenPrompt:
        """The next prompt, which is neither inserted nor answered."""
        turn = await self.next_request("session/prompt")
        if not isinstance(turn, OpenPrompt):
            raise TypeError("this is no prompt")
        return turn

    async def prompted(self) -> OpenPrompt:
        """The next prompt. It is inserted, and the session is running."""
        turn = await self.next_prompt()
        await turn.insert()
        await self.take_over(turn)
        return turn

    async def finish(self, turn: HeldRequest) -> None:
        if isinstance(turn, OpenPrompt):
            await turn.insert()
        await turn.end()

    def text_update(self, text: str) -> JsonObject:
        return {
            "sessionUpdate": "agent_message_chunk",
            "messageId": "agent-1",
            "content": {"type": "text", "text": text},
        }

    def _permission(self, text: str = "") -> JsonObject:
        return self.permission({"toolCallId": "antiphon-check", "title": "Clock", "kind": "other"}, title=text)

    def permission(
        self, call: JsonObject | None, options: list[dict[str, str]] | None = None, *, title: str = "", **more: object
    ) -> JsonObject:
        """The params of a permission request about a tool call, or about nothing."""
        subject = {} if call is None else {"subject": {"type": "tool_call", "toolCall": call}}
        offered = OPTIONS if options is None else options
        return {"sessionId": self.session, "title": title or "Look at the time?", "options": offered, **subject, **more}

    async def is_gone(self) -> str:
        """Wait until all that was sent has been read; how the client is gone, if it is."""
        if self.traits.fences:
            with suppress(NoResponse):
                await self.request(FENCE, {})
        await self.wire.silence(self.options.silence)
        return "the client left" if self.wire.closed else "the client ended" if self.running.ended.is_set() else ""

    async def stays(self, requirement: str, what: str, *evidence: Entry | None) -> None:
        """The requirement is that the client does not take `what` for the end of the work.

        Raises:
            Blocked: it did, so nothing more can be shown.
        """
        left = await self.is_gone()
        if not self.holds(requirement, not left, f"after {what} {left}", *evidence):
            raise Blocked(f"after {what} {left}")

    async def release(self) -> None:
        """The scenario is over: what it held back is answered, and what runs ends, so that the client can end by itself."""
        await super().release()
        for turn in self._held:
            if isinstance(turn, OpenPrompt) and turn.is_answered and not turn.is_over:
                await turn.end()
