"""The engines' sessions inside a joint session: what an engine is given as its session, and how these are opened, changed and closed.

An `InnerSession` is the session to its engine; what the engine sends and asks there goes to the joint session. Its id is the engine's
own, or one that we made if the engine leaves that to us. The client knows only the joint session, so what it is asked carries that id.

An engine's own session may have gone on elsewhere, in a terminal: when it is opened again its history is read first, and what we did
not know is shown.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec
from msgspec import UNSET

from antiphon.agent.questions import why_refused
from antiphon.agent.session import AgentSession, SessionHost, close_session
from antiphon.aio import NO_WAIT, ignore_result, maybe_await
from antiphon.config.shapes import asked_of_engines
from antiphon.duet.history.catch_up import missed_updates
from antiphon.duet.history.events import EndEvent, now
from antiphon.duet.settings import EngineOffer
from antiphon.errors import AcpError, Code, LocalProtocolError, RequestError, ResponseError
from antiphon.protocol import v1
from antiphon.transcript.fork_point import fork_meta

if TYPE_CHECKING:
    from antiphon.agent.work import SessionWork
    from antiphon.duet.history.writer import JointHistory
    from antiphon.duet.limits import UsageTotals
    from antiphon.duet.settings import JointSettings
    from antiphon.engines.base import Engine, EngineSession
    from antiphon.policy import Rules
    from antiphon.protocol.methods import Call, Notice
    from antiphon.protocol.timeouts import Timeout

__all__ = ["EngineHost", "EngineSessions", "InnerSession", "Labels"]

_log = logging.getLogger(__name__)
P = TypeVar("P")
R = TypeVar("R")

_TEXT_UPDATES: Final = (v1.AgentMessageChunk, v1.AgentThoughtChunk)
U = TypeVar("U", bound=v1.ToolCall | v1.ToolCallUpdate | v1.ToolCallPatch)


class Labels:
    """The labels on the updates of one engine: in `_meta` for clients, and in the text for people where more than one engine answers.

    A message begins with the engine's name as a paragraph of its own, so that Markdown after it stays what it is. Ids of an engine that
    counts from one get its name, because another engine may count from one as well.
    """

    def __init__(self, engine: str, title: str, *, own_ids: bool) -> None:
        self._engine = engine
        self._title = title
        self.own_ids = own_ids
        """Whether the engine's ids get its name."""
        self.visible = False
        """Whether other engines answer, too."""
        self.follows = False
        """Whether the message before is of another engine: clients may join it with this one."""
        self._labelled: set[tuple[type, str]] = set()

    def on(self, update: v1.Update, *, fresh: bool) -> Iterator[tuple[v1.Update, bool]]:
        """The update as it is shown, after a label if one is due; with each, whether it is the label. `fresh`: the update before was of
        another engine, or of another kind."""
        if not self.visible and not self.own_ids:  # alone: no label is needed
            yield update, False
        elif isinstance(update, v1.MessageChunk):
            yield from self._add_text(update, fresh)
        elif isinstance(update, v1.ToolCall | v1.ToolCallUpdate):
            own: v1.Update = self.call(update)
            yield own, False
        else:
            yield self._marked(update), False

    def _add_text(self, update: v1.MessageChunk, fresh: bool) -> Iterator[tuple[v1.Update, bool]]:
        own = self._marked(update)
        if own.message_id is not None:
            own = msgspec.structs.replace(own, message_id=self.own(own.message_id))
        if self.visible and isinstance(update, _TEXT_UPDATES) and self._is_due(own, fresh):
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
        """A tool call, an update of one, or the one that a permission request is about."""
        changes: dict[str, Any] = {"meta": self._meta(call.meta), "tool_call_id": self.own(call.tool_call_id)}
        title = call.title
        if self.visible and title and not title.startswith(f"{self._title}: "):
            changes["title"] = f"{self._title}: {title}"
        return msgspec.structs.replace(call, **changes)

    def _marked(self, update: Any) -> Any:
        if not hasattr(update, "meta"):  # an unknown kind is shown as it came
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
        return f"{self._engine}:{id}" if self.own_ids else id


class EngineHost(Protocol):
    """The joint session, as the engines' sessions see it."""

    def engine_update(self, inner: "InnerSession", update: v1.Update) -> Awaitable[None]:
        """Handle an update of an engine."""

    async def engine_request(
        self, inner: "InnerSession", call: "Call[P, R]", params: P, timeout: "Timeout" = UNSET
    ) -> R:
        """Handle a request of an engine to the client."""

    async def admitted(self, inner: "InnerSession", call: "Call[P, R]", params: P) -> None:
        """Let an engine do something on this machine that the client cannot do for it. Raises if it may not."""

    def show_settings(self) -> None:
        """Update the settings and commands that the client sees."""

    def send_settings(self) -> Awaitable[None]:
        """Send the client what has changed of its settings."""

    async def save(self) -> None:
        """Store what is needed to go on."""


class InnerSession(AgentSession):
    """The session that an engine is given inside a joint session."""

    def __init__(self, sessions: "EngineSessions", outer: AgentSession, name: str, engine: "Engine") -> None:
        reached, self.unreached = _sorted(outer.mcp_servers, engine.mcp)
        host = _InnerHost(self, sessions, outer.host.id_prefix)
        super().__init__(os.urandom(16).hex(), outer.cwd, outer.client, outer.directories, reached, host=host)
        self.meta = {"antiphon": asked_of_engines(outer.meta)}
        self.name = name
        """The engine's name in this session."""
        self.title = engine.title or name
        self.engine = engine
        self.engine_session: EngineSession | None = None
        """The engine at work, once it has been opened."""
        self.working = False
        """Whether a turn of it runs."""
        self.changing_mode = False
        """Whether we are changing its mode, so that its update about it is ignored."""
        self.knows_nothing = False
        """Whether the next prompt has to bring a summary of the whole session."""
        self.briefed = False
        """Whether it was given a summary: a title that it makes of that is not the session's."""
        self.spend: Callable[[v1.UsageUpdate], None] | None = None
        self.words: list[str] = []
        """Messages of the engine in the current or last turn."""
        self.calls: list[v1.Update] = []
        """The tool calls with changes of that turn."""
        self.known: dict[str, v1.ToolCall] = {}
        """The tool calls of that turn, as they were announced."""
        self.denied: dict[str, str] = {}
        """The tool calls of that turn that the engine asked for and was not allowed, by the engine's ids → why, if a policy denied it."""
        self.collected: list[v1.Update] | None = None
        """If set, updates are collected here, while its history is read or something is added to its turn."""
        self.offered: list[v1.Command] = []
        """Slash commands of the engine."""
        self.labels = Labels(name, self.title, own_ids=not engine.unique_ids)
        self._sessions = sessions
        self._outer = outer

    def update(self, update: v1.Update) -> Awaitable[None]:
        if self._held is None:
            raise LocalProtocolError("the session is closed")
        if self.collected is not None:
            self.collected.append(update)
            return NO_WAIT
        return self._sessions.host.engine_update(self, update)

    async def request(self, call: "Call[P, R]", params: P, *, timeout: "Timeout" = UNSET) -> R:
        if self.closed:
            raise LocalProtocolError("the session is closed")
        return await self._sessions.host.engine_request(self, call, params, timeout)

    async def notify(self, notice: "Notice[P]", params: P) -> None:
        await self._sessions.settled()
        await self._outer.notify(notice, self.under(self._outer.id, params))

    # What the engine does beside its answers is a part of what the joint session does.

    @property
    def _work(self) -> "SessionWork":
        return self._outer._work

    async def wait_idle(self) -> None:
        await self._outer.wait_idle()

    def _prompt_id(self) -> str | None:
        return self._outer._prompt_id()

    def _shown_id(self, id: str) -> str:
        return self.labels.own(id)

    def _shown(self) -> Awaitable[None]:
        return self._sessions.settled()

    def begins(self, spend: Callable[[v1.UsageUpdate], None]) -> None:
        """Begin a turn. `spend` is called with each update about what it uses."""
        self.working, self.spend = True, spend
        self.words, self.calls, self.known, self.denied = [], [], {}, {}

    def ends(self) -> None:
        """End the turn."""
        self.working, self.spend = False, None

    def noted(self, update: v1.Update) -> v1.Update:
        """Remember what is needed later of an update; return it as it is shown: a denied call that failed is marked as denied."""
        match update:
            case v1.AgentMessageChunk(content=v1.TextBlock(text=text)):
                self.words.append(text)
            case v1.ToolCall() | v1.ToolCallUpdate():
                return self._noted_call(update)
            case v1.UsageUpdate() if self.spend is not None:
                self.spend(update)
            case _:
                pass
        return update

    def _noted_call(self, update: v1.ToolCall | v1.ToolCallUpdate) -> v1.ToolCall | v1.ToolCallUpdate:
        if isinstance(update, v1.ToolCall):
            self.known[update.tool_call_id] = update
        if isinstance(update.content, list) and any(isinstance(item, v1.Diff) for item in update.content):
            self.calls.append(update)
        if update.tool_call_id not in self.denied or update.status is v1.UNSET or update.status != v1.ToolStatus.FAILED:
            return update
        meta = update.meta or {}
        ours = meta.get("antiphon")
        why = self.denied[update.tool_call_id]
        mark = {**(ours if isinstance(ours, dict) else {}), "denied": True, **({"why": why} if why else {})}
        return msgspec.structs.replace(update, meta={**meta, "antiphon": mark})

    def answered(self, request: v1.RequestPermission, result: v1.PermissionResult) -> None:
        """Remember whether a call was denied: the engine only reports that it failed."""
        chosen = getattr(result.outcome, "option_id", None)
        kind = next((option.kind for option in request.options if option.option_id == chosen), None)
        if kind in (v1.PermissionOptionKind.REJECT_ONCE, v1.PermissionOptionKind.REJECT_ALWAYS):
            self.denied[request.tool_call.tool_call_id] = why_refused(result) or ""
        else:
            self.denied.pop(request.tool_call.tool_call_id, None)

    def under(self, session_id: str, params: P) -> P:
        """The params of a request as the client gets them: with the session id and the ids of calls that it knows."""
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

    @property
    def mode(self) -> str:
        """The mode that the engine is in; empty: it has none."""
        return "" if self.modes is None else self.modes.current_mode_id

    def has_mode(self, mode: str | None) -> bool:
        """Whether the engine offers a mode."""
        return self.modes is not None and any(each.id == mode for each in self.modes.available_modes)


class _InnerHost(SessionHost):
    """The joint session, as the host of one engine's session."""

    def __init__(self, inner: InnerSession, sessions: "EngineSessions", id_prefix: str) -> None:
        super().__init__()
        self.rules = sessions.rules
        self.id_prefix = id_prefix
        self._inner = inner
        self._sessions = sessions

    async def lost_session(self, id: str) -> str:
        return await self._sessions.forgot(self._inner, id)

    async def admit(self, call: "Call[P, Any]", params: P) -> None:
        await self._sessions.host.admitted(self._inner, call, params)


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


_LOST: Final = (Code.RESOURCE_NOT_FOUND, Code.METHOD_NOT_FOUND)
"""The error of an engine that cannot continue a session of its own."""


class EngineSessions:
    """The engines' sessions of one joint session: each is opened when it is first needed."""

    def __init__(
        self,
        host: EngineHost,
        outer: AgentSession,
        settings: "JointSettings",
        history: "JointHistory",
        usage: "UsageTotals",
        rules: "Rules | None",
    ) -> None:
        self.host = host
        self.rules = rules
        """Rules of the policy that the engines have to keep too."""
        self.opened: dict[str, InnerSession] = {}
        self.sending: dict[str, InnerSession] = {}
        """Engine sessions whose updates are shown, also while they are being opened."""
        self._outer = outer
        self._settings = settings
        self._history = history
        self._usage = usage
        self._locks: dict[str, asyncio.Lock] = {}
        self._preparing: set[asyncio.Task[None]] = set()

    def settled(self) -> Awaitable[None]:
        """Wait until everything sent so far is stored and shown."""
        return self._history.settled()

    def offers(self) -> list[EngineOffer]:
        """What the engines that are open offer to choose from."""
        return [
            EngineOffer(name, inner.title, inner.modes, inner.models, inner.config_options)
            for name, inner in self.opened.items()
        ]

    def commands(self) -> dict[str, list[v1.Command]]:
        """The slash commands of the engines that are open."""
        return {name: inner.offered for name, inner in self.opened.items()}

    # Opening.

    async def get(self, name: str) -> InnerSession:
        """The session of an engine, opened now if it is not open.

        Raises:
            AcpError: the engine cannot be opened.
        """
        async with self._locks.setdefault(name, asyncio.Lock()):
            if name not in self.opened:
                self.opened[name] = await self._open(name)
                self.host.show_settings()
            return self.opened[name]

    def prepare(self) -> None:
        """Open the engines of the route in the background, so that the first prompt finds them ready and their settings are shown."""

        async def prepare(name: str) -> None:
            await self.get(name)
            await self.host.send_settings()

        for name in self._settings.engines_of(self._settings.route):
            if name not in self.opened:
                task = asyncio.get_running_loop().create_task(prepare(name), name=f"open {name}")
                self._preparing.add(task)
                task.add_done_callback(self._preparing.discard)
                task.add_done_callback(ignore_result)  # a prompt will report it; there may never be one

    async def stop_preparing(self) -> None:
        """Stop opening engines in the background."""
        for task in tuple(self._preparing):
            task.cancel()
        if self._preparing:
            await asyncio.wait(tuple(self._preparing))

    async def _open(self, name: str) -> InnerSession:
        known = self._settings.of(name)
        if known.session_id:
            inner = await self._reopen(name, known.session_id)
        elif known.source:
            inner = await self._copy(name, known.source, known.dropped)
        else:
            inner = await self._begin(name)
        try:
            await self._furnish(inner)
        except BaseException:  # nothing else knows of it
            await _close(inner)
            raise
        return inner

    async def _furnish(self, inner: InnerSession) -> None:
        """Set up a session that was just opened as the user chose."""
        if inner.unreached:
            servers = ", ".join(f"`{each}`" for each in inner.unreached)
            title = f"{inner.title} cannot reach the MCP servers {servers}"
            await self._history.notice(title, "It works without them.", stored=False)
        await self.align(inner)
        for option, value in self._settings.of(inner.name).options.items():
            try:
                await self.set_option(inner, option, value)
            except AcpError as error:  # the model no longer exists: the engine uses its default
                _log.info("%s does not take %s = %s any more: %s", inner.name, option, value, error)

    async def _begin(self, name: str) -> InnerSession:
        self._usage.begins(name)
        inner = self._inner(name)
        inner.knows_nothing = self._history.summary.was_given(name)
        return await _opened(inner, lambda: maybe_await(inner.engine.new(inner)))

    async def _copy(self, name: str, source: str, dropped: list[str]) -> InnerSession:
        self._usage.unknown(name)
        inner = self._inner(name)
        if inner.engine.does("fork") and (inner.engine.cuts_forks or not dropped):
            inner.meta = fork_meta(dropped) if dropped else {}
            try:
                return await _opened(inner, lambda: maybe_await(inner.engine.fork(inner, source)))
            except ResponseError as error:
                if error.code not in _LOST and not (dropped and error.code == Code.INVALID_PARAMS):
                    raise
                _log.info("%s cannot begin with a copy of %s: %s", name, source, error)
        if dropped and not self._history.summary.everything():  # nothing is left of the session
            self._settings.of(name).source, self._settings.of(name).dropped = "", []
            return await self._begin(name)
        return await self._begin_anew(name)

    async def _reopen(self, name: str, session_id: str) -> InnerSession:
        self._usage.unknown(name)
        inner = self._inner(name)
        inner.id = session_id
        inner.collected = []
        engine = inner.engine
        load = engine.load if engine.does("load") else engine.resume
        try:
            await _opened(inner, lambda: maybe_await(load(inner)))
        except ResponseError as error:
            if error.code not in _LOST:
                raise
            _log.info("%s cannot go on with %s: %s", name, session_id, error)
            return await self._begin_anew(name)
        theirs, inner.collected = inner.collected, None
        await self._catch_up(inner, theirs)
        return inner

    async def _begin_anew(self, name: str) -> InnerSession:
        """Begin another session of an engine that has lost its own; its first prompt brings a summary."""
        known = self._settings.of(name)
        known.session_id = known.source = ""
        known.dropped = []
        inner = await self._begin(name)
        inner.knows_nothing = True
        title = f"{inner.title} could not continue its session"
        await self._history.notice(title, "It begins a new one, with a summary of this session.")
        return inner

    def _inner(self, name: str) -> InnerSession:
        inner = self.sending[name] = InnerSession(self, self._outer, name, self._settings.engines[name])
        return inner

    async def _catch_up(self, inner: InnerSession, theirs: list[v1.Update]) -> None:
        """Show and store what the engine's own history has beyond ours."""
        labelled: list[v1.Update] = []
        for update in theirs:
            if isinstance(update, v1.StateUpdate):
                await self.host.engine_update(inner, update)
            else:
                labelled += [own for own, _ in inner.labels.on(update, fresh=False)]
        view = await self._history.read()
        missed = missed_updates(view, labelled, inner.name)
        if missed and view.is_cut_off(inner.name):
            self._history.note(EndEvent(now(), inner.name, v1.StopReason.CANCELLED.value))
        for update in missed:
            await self._history.send(update, inner.name)

    async def forgot(self, inner: InnerSession, id: str) -> str:
        """Handle that an engine lost its session in the middle of a turn and began another; return the summary to give it."""
        inner.id = self._settings.of(inner.name).session_id = id
        self._usage.unknown(inner.name)
        await self.host.save()
        return self._history.summary.everything()

    # Settings.

    async def align(self, inner: InnerSession) -> None:
        """Set the mode of an engine that the user chose for it or for all, if it has that mode."""
        wanted = self._settings.mode_of(inner.name)
        if wanted and wanted != inner.mode and inner.has_mode(wanted):
            await self.set_mode(inner, wanted)

    @asynccontextmanager
    async def reading_only(self, inner: InnerSession) -> AsyncIterator[None]:
        """A block in which an engine only reads; afterwards it has its earlier mode again.

        Raises:
            RequestError: it has modes, and none in which it changes nothing without asking.
        """
        before = inner.mode
        quiet = next((mode for mode in (inner.engine.read_only, "plan", "default") if inner.has_mode(mode)), None)
        if inner.modes is not None and inner.modes.available_modes and quiet is None:
            why = f"{inner.title} has no mode in which it only looks: let another engine review"
            raise RequestError(Code.INVALID_REQUEST, "Invalid request", why)
        inner.host.read_only = True
        try:
            if quiet is not None and quiet != before:
                await self.set_mode(inner, quiet)
            yield
        finally:
            inner.host.read_only = False
            if before and before != inner.mode and not inner.closed:
                try:
                    await self.set_mode(inner, before)
                except AcpError as error:
                    _log.warning("%s stays in the mode in which it only reads: %s", inner.name, error)

    async def set_mode(self, inner: InnerSession, mode: str) -> None:
        """Change the mode of one engine."""
        inner.changing_mode = True
        try:
            await maybe_await(_engine_session(inner).set_mode(mode))
            inner.host.settings.choose_mode(mode)
        finally:
            inner.changing_mode = False
        self.host.show_settings()

    async def set_model(self, inner: InnerSession, model: str) -> None:
        """Change the model of one engine."""
        inner.host.settings.check_model(model)
        await maybe_await(_engine_session(inner).set_model(model))
        inner.host.settings.choose_model(model)

    async def set_option(self, inner: InnerSession, option: str, value: bool | str) -> None:
        """Change one of an engine's own settings."""
        inner.host.settings.check_option(option, value)
        await maybe_await(_engine_session(inner).set_config_option(option, value))
        inner.host.settings.choose_option(option, value)

    # The end.

    async def cancel_idle(self) -> None:
        """Cancel the background work of engines."""
        for inner in tuple(self.opened.values()):
            if inner.engine_session is not None and not inner.working:
                await maybe_await(inner.engine_session.cancel())

    async def close(self) -> None:
        """Close all of them, also those that are just being opened. They can be opened again."""
        await asyncio.gather(*(self._close(name) for name in tuple(self._locks)))

    async def _close(self, name: str) -> None:
        async with self._locks[name]:
            inner = self.opened.pop(name, None)
            if inner is not None:
                await _close(inner)


async def _opened(inner: InnerSession, open: "Callable[[], Awaitable[EngineSession]]") -> InnerSession:
    try:
        inner.engine_session = await open()
    except BaseException:
        close_session(inner)  # what the engine left running has no session any more
        raise
    return inner


async def _close(inner: InnerSession) -> None:
    try:
        if inner.engine_session is not None:
            await maybe_await(inner.engine_session.close())
    except Exception:
        _log.exception("closing %s failed", inner.name)
    finally:
        close_session(inner)


def _engine_session(inner: InnerSession) -> "EngineSession":
    assert inner.engine_session is not None  # noqa: S101 - only sessions that are open are given out
    return inner.engine_session
