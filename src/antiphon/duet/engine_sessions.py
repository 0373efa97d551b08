"""An engine's part in a joint session. To the engine it is the session; what it says and asks there goes to the joint one.

Its id is the engine's own name for the conversation, or one that we made if the engine leaves that to us. The client knows only the joint session, so what is asked of it carries that id.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec
from msgspec import UNSET

from antiphon.agent.session import AgentSession
from antiphon.aio import NO_WAIT, maybe_await
from antiphon.duet.history.catch_up import missed_updates
from antiphon.duet.history.events import EndEvent, Event, GivenEvent, now
from antiphon.errors import AcpError, Code, LocalProtocolError, RequestError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.duet.history.writer import HistoryWriter
    from antiphon.duet.session import JointSession
    from antiphon.engines.base import Engine, EngineSession
    from antiphon.policy import Rules
    from antiphon.protocol.methods import Call, Notice
    from antiphon.protocol.timeouts import Timeout

__all__ = ["EngineSessions", "InnerSession", "Labels", "Stage"]

# --- Whose words they are, where more than one engine speaks: in `_meta` for clients, and for the eye. Pure
# A message begins with the engine's name as a paragraph of its own, so that Markdown after it stays what it is. Ids of an engine that counts
# from one are made its own, because another engine may count from one as well.

_TALK: Final = (v1.AgentMessageChunk, v1.AgentThoughtChunk)
U = TypeVar("U", bound=v1.ToolCall | v1.ToolCallUpdate | v1.ToolCallPatch)


class Labels:
    """Of one engine in one session. `visible` is set while others speak, too."""

    def __init__(self, engine: str, title: str, *, own_ids: bool) -> None:
        self._engine = engine
        self._title = title
        self._own_ids = own_ids
        self.visible = False
        self.follows = False
        """Whether words of somebody else stand before, which clients may join with ours."""
        self._labelled: set[tuple[type, str]] = set()

    def on(self, update: v1.Update, *, fresh: bool) -> Iterator[tuple[v1.Update, bool]]:
        """The update as it is told, after a label if one is due; with each, whether it is the label. `fresh`: somebody else, or something
        else, was heard just before."""
        if not self.visible and not self._own_ids:  # alone: there is nothing to tell apart
            yield update, False
        elif isinstance(update, v1.MessageChunk):
            yield from self._talk(update, fresh)
        elif isinstance(update, v1.ToolCall | v1.ToolCallUpdate):
            own: v1.Update = self.call(update)
            yield own, False
        else:
            yield self._marked(update), False

    def _talk(self, update: v1.MessageChunk, fresh: bool) -> Iterator[tuple[v1.Update, bool]]:
        own = self._marked(update)
        if own.message_id is not None:
            own = msgspec.structs.replace(own, message_id=self.own(own.message_id))
        if self.visible and isinstance(update, _TALK) and self._is_due(own, fresh):
            before = "\n\n" if self.follows else ""
            label = v1.TextBlock(f"{before}**{self._title}**\n\n")
            yield msgspec.structs.replace(own, content=label, meta=self._meta(update.meta, label=True)), True
        yield own, False

    def _is_due(self, update: v1.MessageChunk, fresh: bool) -> bool:
        if update.message_id is None:
            return fresh
        key = (type(update), update.message_id)
        due = key not in self._labelled
        self._labelled.add(key)
        return due

    def call(self, call: U) -> U:
        """A tool call, or news of one, or the one that a question is about."""
        changes: dict[str, Any] = {"meta": self._meta(call.meta), "tool_call_id": self.own(call.tool_call_id)}
        title = call.title
        if self.visible and title and not title.startswith(f"{self._title}: "):
            changes["title"] = f"{self._title}: {title}"
        return msgspec.structs.replace(call, **changes)

    def _marked(self, update: Any) -> Any:
        if not hasattr(update, "meta"):  # a kind from tomorrow is told as it came
            return update
        return msgspec.structs.replace(update, meta=self._meta(update.meta))

    def _meta(self, meta: dict[str, Any] | None, *, label: bool = False) -> dict[str, Any]:
        added: dict[str, Any] = {"engine": self._engine, "label": True} if label else {"engine": self._engine}
        if not meta:
            return {"antiphon": added}
        ours = meta.get("antiphon")
        return {**meta, "antiphon": {**(ours if isinstance(ours, dict) else {}), **added}}

    def own(self, id: str) -> str:
        """The id of a message or a call, as the client knows it."""
        return f"{self._engine}:{id}" if self._own_ids else id


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


class InnerSession(AgentSession):
    """What one engine is given as its session."""

    def __init__(self, stage: Stage, outer: AgentSession, name: str, engine: "Engine", rules: "Rules | None") -> None:
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


# --- The engines' parts in one session: opened when they are needed, gone on with where their conversation stands, in the mode that holds
# A conversation may have gone on elsewhere, in a terminal: whoever is opened again is heard out first, and what we did not know is told.

_log = logging.getLogger(__name__)

_LOST = (Code.RESOURCE_NOT_FOUND, Code.METHOD_NOT_FOUND)
"""How an engine says that it cannot go on with a conversation."""


class EngineSessions:
    """Of one joint session."""

    def __init__(self, joint: "JointSession", engines: "Mapping[str, Engine]") -> None:
        self._joint = joint
        self.engines = engines
        self.parts: dict[str, InnerSession] = {}
        """Those that are open."""
        self.speaking: dict[str, InnerSession] = {}
        """Those that may be heard: also while they are being opened."""
        self._opening: dict[str, asyncio.Lock] = {}

    def title(self, name: str) -> str:
        """What people call an engine."""
        return self.engines[name].title or name

    async def part(self, name: str) -> InnerSession:
        """The part of an engine, opened now if it is not open.

        Raises:
            AcpError: the engine cannot be opened.
        """
        async with self._opening.setdefault(name, asyncio.Lock()):
            if name not in self.parts:
                self.parts[name] = await self._open(name)
                self._joint.standing.show()
            return self.parts[name]

    async def _open(self, name: str) -> InnerSession:
        known = self._joint.state.of(name)
        if known.conversation:
            part = await self._again(name, known.conversation)
        elif known.source:
            part = await self._copy(name, known.source)
        else:
            part = await self._begin(name)
        try:
            await self._furnish(part)
        except BaseException:  # nobody else knows of it
            await _end(part)
            raise
        return part

    async def _furnish(self, part: InnerSession) -> None:
        """What the user chose before it was there."""
        if part.unreached:
            servers = ", ".join(f"`{each}`" for each in part.unreached)
            title = f"{part.title} cannot reach the MCP servers {servers}"
            await self._joint.saying.notice(title, "It works without them.", kept=False)
        await self.align(part)
        for option, value in self._joint.state.of(part.name).options.items():
            await self._choose_again(part, option, value)

    async def _begin(self, name: str) -> InnerSession:
        self._joint.ledger.begins(name)
        part = self._part(name)
        part.knows_nothing = self._joint.journal.minutes.was_given(name)
        return await self._opened(part, lambda: maybe_await(part.engine.new(part)))

    async def _copy(self, name: str, source: str) -> InnerSession:
        self._joint.ledger.unknown(name)
        part = self._part(name)
        if part.engine.does("fork"):
            try:
                return await self._opened(part, lambda: maybe_await(part.engine.fork(part, source)))
            except RequestError as error:
                if error.code not in _LOST:
                    raise
        return await self._anew(name)

    async def _again(self, name: str, conversation: str) -> InnerSession:
        self._joint.ledger.unknown(name)
        part = self._part(name)
        part.id = conversation
        part.collected = []
        engine = part.engine
        hear = engine.load if engine.does("load") else engine.resume
        try:
            await self._opened(part, lambda: maybe_await(hear(part)))
        except RequestError as error:
            if error.code not in _LOST:
                raise
            _log.info("%s cannot go on with %s: %s", name, conversation, error)
            return await self._anew(name)
        theirs, part.collected = part.collected, None
        await self._catch_up(part, theirs)
        return part

    async def _anew(self, name: str) -> InnerSession:
        """The engine has lost its conversation: it begins another, and is told what was said."""
        known = self._joint.state.of(name)
        known.conversation = known.source = ""
        part = await self._begin(name)
        title = f"{part.title} could not go on with its own conversation"
        await self._joint.saying.notice(title, "It begins a new one, with a summary of what was said.")
        return part

    def _part(self, name: str) -> InnerSession:
        joint = self._joint
        part = self.speaking[name] = InnerSession(joint, joint.outer, name, self.engines[name], joint.guard.rules)
        return part

    async def _opened(self, part: InnerSession, open: "Callable[[], Awaitable[EngineSession]]") -> InnerSession:
        try:
            part.playing = await open()
        except BaseException:
            part.close()  # what it left running has nobody to speak to
            raise
        return part

    async def _catch_up(self, part: InnerSession, theirs: list[v1.Update]) -> None:
        """What the engine's own history holds beyond ours is ours from now on."""
        said: list[v1.Update] = []
        for update in theirs:
            if isinstance(update, v1.StateUpdate):
                await self._joint.heard(part, update)
            else:
                said += [own for own, _ in part.labels.on(update, fresh=False)]
        events = await self._joint.history()
        missed = missed_updates(events, said, part.name)
        if missed and _is_cut_off(events, part.name):
            self._joint.journal.note(EndEvent(now(), part.name, v1.StopReason.CANCELLED.value))
        for update in missed:
            await self._joint.journal.tell(update, part.name)

    async def forgot(self, part: InnerSession, id: str) -> str:
        """An engine has begun another conversation in the middle of this one, because it lost its own: what it has to be told."""
        part.id = self._joint.state.of(part.name).conversation = id
        self._joint.ledger.unknown(part.name)
        await self._joint.save()
        return self._joint.journal.minutes.everything()

    # What is chosen.

    async def align(self, part: InnerSession) -> None:
        """Bring a part into the mode that the user chose for it or for all, if it has that."""
        state = self._joint.state
        wanted = state.of(part.name).mode or state.mode
        if wanted and wanted != _mode(part) and wanted in _modes(part):
            await self.set_mode(part, wanted)

    @asynccontextmanager
    async def looking(self, part: InnerSession) -> AsyncIterator[None]:
        """In this block a part looks only; after it, it is in the mode that it was in.

        Raises:
            RequestError: it has modes, and none in which it changes nothing unasked.
        """
        before, offered = _mode(part), _modes(part)
        quiet = next((mode for mode in (part.engine.read_only, "plan", "default") if mode in offered), None)
        if offered and quiet is None:
            why = f"{part.title} has no mode in which it only looks: let another engine review"
            raise RequestError(Code.INVALID_REQUEST, "Invalid request", why)
        part.looking = True
        try:
            if quiet is not None and quiet != before:
                await self.set_mode(part, quiet)
            yield
        finally:
            part.looking = False
            if before and before != _mode(part) and not part.closed:
                await self._back(part, before)

    async def _back(self, part: InnerSession, mode: str) -> None:
        try:
            await self.set_mode(part, mode)
        except AcpError as error:
            _log.warning("%s stays in the mode in which it looks: %s", part.name, error)

    async def set_mode(self, part: InnerSession, mode: str) -> None:
        """Another mode, now."""
        part.obeying = True
        try:
            await maybe_await(_playing(part).set_mode(mode))
            part.settings.choose_mode(mode)
        finally:
            part.obeying = False

    async def set_model(self, part: InnerSession, model: str) -> None:
        """Another model."""
        part.settings.check_model(model)
        await maybe_await(_playing(part).set_model(model))
        part.settings.choose_model(model)

    async def set_option(self, part: InnerSession, option: str, value: bool | str) -> None:
        """Another value of one of the engine's own settings."""
        part.settings.check_option(option, value)
        await maybe_await(_playing(part).set_config_option(option, value))
        part.settings.choose_option(option, value)

    async def _choose_again(self, part: InnerSession, option: str, value: str) -> None:
        try:
            await self.set_option(part, option, value)
        except AcpError as error:  # a model that is no more: the engine's own choice holds
            _log.info("%s does not take %s = %s any more: %s", part.name, option, value, error)

    # The end.

    async def drop(self) -> None:
        """End all parts, also those that are just being opened. The next ones begin new conversations if nothing is known of the old."""
        await asyncio.gather(*(self._drop(name) for name in tuple(self._opening)))

    async def _drop(self, name: str) -> None:
        async with self._opening[name]:
            part = self.parts.pop(name, None)
            if part is not None:
                await _end(part)


def _is_cut_off(events: Sequence[Event], name: str) -> bool:
    """Whether the engine's last turn never ended before our eyes."""
    for event in reversed(events):
        if isinstance(event, GivenEvent | EndEvent) and event.engine == name:
            return isinstance(event, GivenEvent)
    return False


async def _end(part: InnerSession) -> None:
    try:
        if part.playing is not None:
            await maybe_await(part.playing.close())
    except Exception:
        _log.exception("closing %s failed", part.name)
    finally:
        part.close()


def _mode(part: InnerSession) -> str:
    return "" if part.modes is None else part.modes.current_mode_id


def _modes(part: InnerSession) -> list[str]:
    return [] if part.modes is None else [mode.id for mode in part.modes.available_modes]


def _playing(part: InnerSession) -> "EngineSession":
    assert part.playing is not None  # noqa: S101 - only open parts are in the cast
    return part.playing
