"""An engine's part in a joint session. To the engine it is the session; what it says and asks there goes to the joint one.

Its id is the engine's own name for the conversation, or one that we made if the engine leaves that to us. The client knows only the joint session, so what is asked of it carries that id.
"""

import os
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
from msgspec import UNSET

from antiphon.agent.session import Session
from antiphon.aio import NO_WAIT
from antiphon.duet.labels import Labels
from antiphon.errors import LocalProtocolError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.duet.cast import EngineSessions
    from antiphon.duet.journal import HistoryWriter
    from antiphon.engines.base import Engine, EngineSession
    from antiphon.policy import Rules
    from antiphon.protocol.methods import Call, Notice
    from antiphon.protocol.timeouts import Timeout

__all__ = ["InnerSession", "Stage"]

P = TypeVar("P")
R = TypeVar("R")


class Stage(Protocol):
    """The joint session, as its parts see it."""

    journal: "HistoryWriter"
    cast: "EngineSessions"

    def heard(self, part: "InnerSession", update: v1.Update) -> Awaitable[None]:
        """An engine says something."""

    async def asked(self, part: "InnerSession", call: "Call[P, R]", params: P, timeout: "Timeout" = UNSET) -> R:
        """An engine asks the client something."""

    async def admitted(self, part: "InnerSession", call: "Call[P, R]", params: P) -> None:
        """An engine is about to do something on this machine that the client cannot do for it. Raises if it may not."""


class InnerSession(Session):
    """What one engine is given as its session."""

    def __init__(self, stage: Stage, outer: Session, name: str, engine: "Engine", rules: "Rules | None") -> None:
        reached, self.unreached = _sorted(outer.mcp_servers, engine.mcp)
        super().__init__(os.urandom(16).hex(), outer.cwd, outer.client, outer.directories, reached)
        self.series = outer.series
        self.rules = rules
        self.name = name
        """The engine's name in this session."""
        self.title = engine.title or name
        self.engine = engine
        self.playing: EngineSession | None = None
        """The engine at work, once it has been opened."""
        self.working = False
        """Whether it has been given something that it has not ended yet."""
        self.obeying = False
        """Whether it is being told what mode to be in, and its news of that are no news."""
        self.knows_nothing = False
        """Whether it has to be told the whole conversation with the next prompt."""
        self.briefed = False
        """Whether it was told what others said: a title that it makes of that is none."""
        self.spend: Callable[[v1.UsageUpdate], None] | None = None
        self.words: list[str] = []
        """What it said in the turn that runs or ran last."""
        self.calls: list[v1.Update] = []
        """The tool calls with changes of that turn."""
        self.known: dict[str, v1.ToolCall] = {}
        """The tool calls of that turn, as they were announced."""
        self.denied: set[str] = set()
        """The tool calls of that turn that the engine asked for and was not allowed, by the engine's ids."""
        self.collected: list[v1.Update] | None = None
        """Where its words go instead, while its history is read."""
        self.offered: list[v1.Command] = []
        """Its slash commands."""
        self.labels = Labels(name, self.title, own_ids=not engine.unique_ids)
        self._stage = stage
        self._outer = outer

    def update(self, update: v1.Update) -> Awaitable[None]:
        if self.closed:
            raise LocalProtocolError("the session is closed")
        if self.collected is not None:
            self.collected.append(update)
            return NO_WAIT
        return self._stage.heard(self, update)

    async def request(self, call: "Call[P, R]", params: P, *, timeout: "Timeout" = UNSET) -> R:
        if self.closed:
            raise LocalProtocolError("the session is closed")
        return await self._stage.asked(self, call, params, timeout)

    async def notify(self, notice: "Notice[P]", params: P) -> None:
        await self._stage.journal.settled()
        await self._outer.notify(notice, self.under(self._outer.id, params))

    async def lost_conversation(self, id: str) -> str:
        return await self._stage.cast.forgot(self, id)

    async def admit(self, call: "Call[P, R]", params: P) -> None:
        await self._stage.admitted(self, call, params)

    def begins(self, spend: Callable[[v1.UsageUpdate], None]) -> None:
        """Its turn begins. `spend` hears what it uses."""
        self.working, self.spend = True, spend
        self.words, self.calls, self.known, self.denied = [], [], {}, set()

    def ends(self) -> None:
        """Its turn is over."""
        self.working, self.spend = False, None

    def remember(self, update: v1.Update) -> None:
        """Keep what others may want of its turn."""
        if isinstance(update, v1.ToolCall):
            self.known[update.tool_call_id] = update
        match update:
            case v1.AgentMessageChunk(content=v1.TextBlock(text=text)):
                self.words.append(text)
            case v1.ToolCall(content=[*_]) | v1.ToolCallUpdate(content=[*_]):
                if any(isinstance(item, v1.Diff) for item in update.content or ()):
                    self.calls.append(update)
            case v1.UsageUpdate() if self.spend is not None:
                self.spend(update)
            case _:
                pass

    def answered(self, request: v1.RequestPermission, result: v1.PermissionResult) -> None:
        """Remember whether a call was denied: the engine only says that it failed."""
        chosen = getattr(result.outcome, "option_id", None)
        kind = next((option.kind for option in request.options if option.option_id == chosen), None)
        if kind in (v1.PermissionOptionKind.REJECT_ONCE, v1.PermissionOptionKind.REJECT_ALWAYS):
            self.denied.add(request.tool_call.tool_call_id)
        else:
            self.denied.discard(request.tool_call.tool_call_id)

    def marked(self, update: v1.Update) -> v1.Update:
        """Return the update with `_meta.antiphon.denied` if it says that a denied call failed, so that it is also kept as denied."""
        if not isinstance(update, v1.ToolCall | v1.ToolCallUpdate) or update.tool_call_id not in self.denied:
            return update
        if update.status is v1.UNSET or update.status != v1.ToolStatus.FAILED:
            return update
        meta = update.meta or {}
        ours = meta.get("antiphon")
        mark = {**(ours if isinstance(ours, dict) else {}), "denied": True}
        return msgspec.structs.replace(update, meta={**meta, "antiphon": mark})

    def under(self, session_id: str, params: P) -> P:
        """The params of a question, as they leave: under the id that the client knows, with the ids of calls that it was told."""
        if isinstance(params, dict):  # of a method that we do not know
            known: Any = {**params, "sessionId": session_id} if "sessionId" in params else params
            return known  # type: ignore[no-any-return]  # still the same params
        changes: dict[str, Any] = {}
        if hasattr(params, "session_id"):
            changes["session_id"] = session_id
        if isinstance(params, v1.RequestPermission):
            changes["tool_call"] = self.labels.call(params.tool_call)
        elif isinstance(about := getattr(params, "tool_call_id", None), str):
            changes["tool_call_id"] = self.labels.own(about)
        return msgspec.structs.replace(params, **changes) if changes else params  # type: ignore[type-var]  # every params is a struct


def _sorted(servers: Sequence[v1.McpServer], kinds: Collection[str]) -> tuple[list[v1.McpServer], list[str]]:
    """The MCP servers that an engine reaches, and the names of those that it does not."""
    reached: list[v1.McpServer] = []
    unreached: list[str] = []
    for server in servers:
        kind = "http" if isinstance(server, v1.HttpServer) else "sse" if isinstance(server, v1.SseServer) else None
        if kind is None or kind in kinds:
            reached.append(server)
        else:
            unreached.append(getattr(server, "name", kind))
    return reached, unreached
