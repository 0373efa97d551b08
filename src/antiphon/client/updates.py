"""The updates of sessions in the order of the wire: in turns, between them, and while a session is opened again.

The updates of a turn wait until its consumer reads them. What the agent sends after the response to the prompt waits behind them, so
that settings and transcript never get the later before the earlier.
"""

import asyncio
import logging
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

import msgspec

from antiphon.aio import maybe_await
from antiphon.errors import Code, LocalProtocolError, RequestError
from antiphon.protocol import v1
from antiphon.protocol.base import JsonObject, encode
from antiphon.protocol.extension import CANCEL_METHODS, MAX_WORK, OpenWork, WorkState, work_of
from antiphon.transcript.entries import CallEntry

if TYPE_CHECKING:
    from antiphon.client.session import ClientSession, SessionWorkspace
    from antiphon.client.turn import ClientTurn
    from antiphon.local.files import Roots
    from antiphon.protocol.extension import ExtensionUpdate, InsertedPrompt
    from antiphon.protocol.v1.session import SessionUpdate
    from antiphon.protocol.v1.updates import Update
    from antiphon.transcript.transcript import Transcript

__all__ = [
    "EARLY_LIMIT",
    "ClientSessions",
    "EarlyUpdates",
    "Followed",
    "Offer",
    "OnUpdate",
    "OpenQuestions",
    "SessionActivity",
    "SessionInbox",
    "StateWatcher",
    "follow_settings",
    "of_category",
    "take_settings",
    "with_value",
]

# Settings: taken from the responses that open a session, and changed by its updates. Nothing here sends.

Offer: TypeAlias = v1.NewSessionResult | v1.LoadSessionResult | v1.ResumeSessionResult | v1.ForkSessionResult
"""The responses with the settings of a session."""


class Followed(Protocol):
    """Something that keeps up with a session's settings."""

    modes: v1.ModeState | None
    config_options: list[v1.ConfigOption] | None
    models: v1.ModelState | None
    commands: list[v1.Command] | None
    title: str | None


def take_settings(session: Followed, offer: Offer) -> None:
    """Take the settings of a response. What it leaves out stays: some agents respond to `session/resume` with nothing at all."""
    if offer.modes is not None:
        session.modes = offer.modes
    if offer.config_options is not None:
        session.config_options = offer.config_options
    if offer.models is not None:
        session.models = offer.models


def follow_settings(session: Followed, update: "Update") -> None:
    """Apply an update to the settings."""
    if not isinstance(update, v1.SettingsUpdate):  # nearly all of them: pieces of text
        return
    match update:
        case v1.CurrentModeUpdate(current_mode_id=mode):
            modes = session.modes or v1.ModeState(mode, [])
            session.modes = msgspec.structs.replace(modes, current_mode_id=mode)
        case v1.CurrentModelUpdate(current_model_id=model):
            models = session.models or v1.ModelState([], model)
            session.models = msgspec.structs.replace(models, current_model_id=model)
        case v1.ConfigOptionUpdate(config_options=options):
            session.config_options = options
            _align_older_view(session)
        case v1.AvailableCommandsUpdate(available_commands=commands):
            session.commands = commands
        case v1.SessionInfoUpdate(title=title) if not isinstance(title, v1.UnsetType):
            session.title = title
        case _:
            pass


def _align_older_view(session: Followed) -> None:
    """Make modes and models, the older view of two options, equal to these where an agent has both."""
    mode, model = of_category(session, v1.ConfigCategory.MODE), of_category(session, v1.ConfigCategory.MODEL)
    if mode is not None and session.modes is not None:
        session.modes = msgspec.structs.replace(session.modes, current_mode_id=mode.current_value)
    if model is not None and session.models is not None:
        session.models = msgspec.structs.replace(session.models, current_model_id=model.current_value)


def of_category(session: Followed, category: v1.ConfigCategory) -> v1.SelectConfig | None:
    """Return the option of a category, if there is one."""
    for option in session.config_options or ():
        if isinstance(option, v1.SelectConfig) and option.category == category:
            return option
    return None


def with_value(options: Sequence[v1.ConfigOption], config_id: str, value: str | bool) -> list[v1.ConfigOption]:
    """Return the options with one changed, for agents that do not send them in their response."""
    changed: list[v1.ConfigOption] = []
    for option in options:
        kind = str if isinstance(option, v1.SelectConfig) else bool
        if isinstance(option, v1.ConfigBase) and option.id == config_id and isinstance(value, kind):
            changed.append(msgspec.structs.replace(option, current_value=value))
        else:
            changed.append(option)
    return changed


# Open questions to the user. When the turn is cancelled all of them are answered at once.

T = TypeVar("T")


class OpenQuestions:
    """The open questions of one session: requests of the agent that wait for the user."""

    def __init__(self, on_change: Callable[[], None] | None = None) -> None:
        self._open: set[asyncio.Future[None]] = set()
        self._on_change = on_change or _nothing

    def __len__(self) -> int:
        return len(self._open)

    async def wait_for(self, answer: Awaitable[T], instead: T) -> T:
        """Return the user's answer, or `instead` if the question is released before."""
        work = asyncio.ensure_future(answer)
        released: asyncio.Future[None] = work.get_loop().create_future()
        self._open.add(released)
        self._on_change()
        try:
            # A race, not a cancellation: a handler that takes its time to stop must not hold up the answer.
            await asyncio.wait((work, released), return_when=asyncio.FIRST_COMPLETED)
            # The cancellation is sent by now: an answer that came at the same time is too late.
            taken = work.done() and not work.cancelled() and not released.done()
            return work.result() if taken else instead
        finally:
            self._open.discard(released)
            self._on_change()
            if not work.done() or released.done():
                work.add_done_callback(_forget)
                work.cancel()
            released.cancel()

    def release(self) -> None:
        """Answer all that are open without the user; their handlers are cancelled."""
        for released in tuple(self._open):
            if not released.done():
                released.set_result(None)


def _nothing() -> None:
    """Do nothing: nothing follows the questions."""


def _forget(work: "asyncio.Future[T]") -> None:
    if not work.cancelled() and (error := work.exception()) is not None:
        _log.error("a handler failed after its question was released", exc_info=error)


# What the agent does in a session.

STATES_KEPT: Final = 64
"""States that wait for one iteration. A consumer that is slower gets the latest."""

EARLY_REPORTS: Final = 64
"""Reports of work that are kept for a session whose request is not answered yet: the latest."""

EARLY_REPORT_SIZE: Final = 64 * 1024
"""Bytes of such a report at most. A larger one is dropped."""


class StateWatcher:
    """The states that wait for one consumer."""

    def __init__(self, first: WorkState) -> None:
        self.states: deque[WorkState] = deque([first], STATES_KEPT)
        self._changed = asyncio.Event()

    def add(self, state: WorkState) -> None:
        """Take the next state."""
        self.states.append(state)
        self.wake()

    def wake(self) -> None:
        """Have the consumer look again."""
        self._changed.set()

    async def wait(self, end: Awaitable[None]) -> None:
        """Wait for the next state, or until the connection is over."""
        ends = asyncio.ensure_future(end), asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in ends:
                each.cancel()
            self._changed.clear()


class SessionActivity:
    """What the agent does in a session: as an agent of version 2 reports it, else as our open requests show it."""

    def __init__(self) -> None:
        self.questions = OpenQuestions(self._change)
        self.background: tuple[OpenWork, ...] | None = None
        """The background work; None if the agent does not report it."""
        self.cancellable: dict[OpenWork, None] = {}
        self._reported = WorkState.IDLE
        self._last: tuple[WorkState, tuple[OpenWork, ...]] = WorkState.IDLE, ()
        self._prompts = 0
        self._watchers: set[StateWatcher] = set()

    @property
    def state(self) -> WorkState:
        """The state of the session."""
        if self._reported is not WorkState.IDLE or not self._prompts:
            return self._reported
        # An agent of version 1, or one of version 2 that has not begun: a prompt is open.
        return WorkState.REQUIRES_ACTION if len(self.questions) else WorkState.RUNNING

    def prompted(self, response: "asyncio.Future[v1.PromptResult]") -> None:
        """Note that a prompt was sent."""
        self._prompts += 1
        response.add_done_callback(self._answered)
        self._change()

    def _answered(self, response: "asyncio.Future[v1.PromptResult]") -> None:
        self._prompts -= 1
        self._change()

    def follow(self, update: JsonObject) -> None:
        """Take a report of an agent of version 2. What makes no sense in it is left out."""
        kind = update.get("sessionUpdate")
        if kind == "state_update":
            if isinstance(word := update.get("state"), str):
                self._reported = WorkState(word)
            if (work := work_of(update.get("background"))) is not None:
                self.background = work
            self._change()
        elif isinstance(kind, str) and (of := kind.removesuffix("_update")) in CANCEL_METHODS:
            id, capabilities = update.get(CANCEL_METHODS[of][1]), update.get("capabilities")
            if isinstance(id, str):
                offered = isinstance(capabilities, dict) and isinstance(capabilities.get("cancel"), dict)
                self._offer(OpenWork(of, id), offered=offered)

    def _offer(self, work: OpenWork, *, offered: bool) -> None:
        self.cancellable.pop(work, None)
        if offered:
            if len(self.cancellable) >= MAX_WORK:
                del self.cancellable[next(iter(self.cancellable))]
            self.cancellable[work] = None

    def forget(self) -> None:
        """Drop what was reported: the session is open no longer."""
        self._reported, self.background = WorkState.IDLE, None
        self.cancellable.clear()
        self._change()

    def _change(self) -> None:
        state, background = self.state, self.background or ()
        if state is not self._last[0] or background != self._last[1]:
            self._last = state, background
            for watcher in self._watchers:
                watcher.add(state)

    def close(self) -> None:
        """End what waits for a state: the session is closed."""
        self.forget()
        for watcher in self._watchers:
            watcher.wake()

    @contextmanager
    def watched(self) -> Iterator[StateWatcher]:
        """In this block all states are collected, the current one first."""
        watcher = StateWatcher(self.state)
        self._watchers.add(watcher)
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)


# Updates of sessions that we do not know yet: several agents send them before their response to the request that opens the session.

EARLY_LIMIT: Final = 16 * 1024 * 1024
"""Bytes that may wait for their sessions to become known. Forks replay a whole history first; a session that never becomes known costs
no more than this."""


class EarlyUpdates:
    """Updates of unknown sessions, kept in order until their session is opened. The oldest are dropped when there are too many."""

    def __init__(self, limit: int = EARLY_LIMIT) -> None:
        self._limit = limit
        self._size = 0
        self._kept: deque[tuple[SessionUpdate, int]] = deque()
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, received: "SessionUpdate") -> None:
        """Keep an update."""
        size = len(encode(received))
        self._kept.append((received, size))
        self._size += size
        while self._size > self._limit:
            old, size = self._kept.popleft()
            self._size -= size
            self._dropped += 1
            if self._dropped == 1:  # once: there may be very many
                _log.warning("updates of sessions that were not opened are dropped, first of `%s`", old.session_id)

    def clear(self) -> None:
        """Drop all of them."""
        self._kept.clear()
        self._size = 0

    def claim(self, session_id: str) -> "list[Update]":
        """Return the updates of a session, in order, and keep them no longer."""
        if not self._kept:
            return []
        mine = [each.update for each, _ in self._kept if each.session_id == session_id]
        self._kept = deque(each for each in self._kept if each[0].session_id != session_id)
        self._size = sum(size for _, size in self._kept)
        return mine


_log = logging.getLogger(__name__)

OnUpdate: TypeAlias = Callable[["Update"], None]
"""Called with the updates that come outside of turns."""

LATE_WEIGHT: Final = 1024
"""Bytes that an update counts for while it waits behind a turn that is over and not read. Enough of them slow the wire."""


class UpdatedSession(Followed, Protocol):
    """A session, as its inbox sees it."""

    id: str
    transcript: "Transcript"


class SessionInbox:
    """Where the updates of one session go: to its turns, its settings, its transcript and `on_update`."""

    def __init__(self, session: UpdatedSession, on_update: OnUpdate | None) -> None:
        if iscoroutinefunction(on_update):
            raise LocalProtocolError("`on_update` must be a plain `def`: to wait, iterate over a turn")
        self._turns: dict[int, weakref.ref[ClientTurn]] = {}
        self._forgotten: dict[int, ClientTurn] = {}
        self.replaying = False
        """Whether the agent replays a history that we have: the session is opened again by `session/load`."""
        self._session = session
        self._on_update = on_update

    @property
    def turns(self) -> "list[ClientTurn]":
        """The turns that are not over, the oldest first."""
        found = [self._forgotten.get(key) or turn() for key, turn in self._turns.items()]
        return [turn for turn in found if turn is not None]

    def add(self, turn: "ClientTurn") -> None:
        """Give updates to a turn. By a weak reference: one that its consumer has forgotten is cancelled."""
        self._turns[id(turn)] = weakref.ref(turn)

    def hold(self, turn: "ClientTurn") -> None:
        """Keep a turn that its consumer has forgotten until it is over."""
        self._forgotten[id(turn)] = turn

    @property
    def running(self) -> "ClientTurn | None":
        """The oldest turn that the agent has and that is not over."""
        return next((turn for turn in self.turns if turn._sent and not turn._over), None)

    @property
    def being_cancelled(self) -> bool:
        """Whether a turn has been cancelled that the agent has not ended yet."""
        return any(turn._being_cancelled for turn in self.turns)

    def note_work(self) -> None:
        """Note that the agent works on the prompts that it has: they must not be sent again."""
        for turn in self.turns:
            turn._begun = turn._begun or turn._sent

    def receive(self, update: "Update") -> None:
        """Take an update that no turn was waiting for."""
        if self.replaying:
            follow_settings(self._session, update)
            return
        for turn in reversed(self.turns):
            if turn._sent:  # answered, or the update would have gone there; but not read to its end
                turn._keep_late(update, LATE_WEIGHT)
                return
        self._deliver(update)

    def follow(self, update: "Update") -> None:
        """Apply an update to the transcript and the settings."""
        self._session.transcript.apply(update)
        follow_settings(self._session, update)

    def add_request(self, patch: v1.ToolCallPatch) -> v1.ToolCallPatch:
        """Enter the call of a permission request into the transcript, and return it with all that we know about it.

        Many agents send only the id of a call that they announced before, but the policy and the user need the rest.
        """
        transcript = self._session.transcript
        turn = self.running
        waiting = turn._waiting if turn is not None else []
        call = copy(transcript.call(patch.tool_call_id))
        if call is None or call.finished:  # some agents count their calls anew in each turn: this is another one
            call = CallEntry(0, patch.tool_call_id)
        for update in waiting:
            if isinstance(update, v1.ToolCall) and update.tool_call_id == call.id:
                call.announce(update)
            elif isinstance(update, v1.ToolCallUpdate) and update.tool_call_id == call.id:
                call.patch(update)
        if turn is not None and waiting:
            turn._enter_behind(patch)
        else:
            transcript.asked(patch)
        return call.known(patch)

    def send_notice(self, notice: v1.NoticeUpdate) -> None:
        """Deliver a notice of our own: in the turn, or else to `on_update`."""
        _log.warning("session `%s`: %s: %s", self._session.id, notice.title, notice.description)
        if turns := self.turns:
            self._session.transcript.apply(notice)
            turns[0]._notify(notice)
        else:
            self._deliver(notice)

    def over(self, turn: "ClientTurn") -> None:
        """Remove a turn that has ended and is read."""
        self._turns.pop(id(turn), None)
        self._forgotten.pop(id(turn), None)
        self._session.transcript.turn_ended()
        for update in turn._take_late():
            self._deliver(update)

    def _deliver(self, update: "Update") -> None:
        self.follow(update)
        if self._on_update is not None:
            try:
                self._on_update(update)
            except Exception:  # a mistake in the handler is not a reason to drop what follows
                _log.exception("`on_update` failed")


# The sessions of one agent by their ids.


class ClientSessions:
    """The open sessions of one agent: where updates and requests find theirs."""

    def __init__(self) -> None:
        self.early = EarlyUpdates()
        self.unknown = OpenQuestions()
        """Questions of no session that we know."""
        self._by_id: dict[str, ClientSession] = {}
        self._early_reports: deque[ExtensionUpdate] = deque(maxlen=EARLY_REPORTS)
        self._opening: list[SessionWorkspace] = []

    def get(self, session_id: str | None) -> "ClientSession | None":
        """Return the session, if it is open here."""
        return self._by_id.get(session_id) if session_id is not None else None

    def put(self, session: "ClientSession") -> "ClientSession | None":
        """Give a session the updates of its id from now on, first those that came already. Return the session that had them before."""
        before = self._by_id.get(session.id)
        self._by_id[session.id] = session
        for update in self.early.claim(session.id):
            session._inbox.receive(update)
        for report in tuple(self._early_reports):
            if report.session_id == session.id:
                session._activity.follow(report.update)
        if not self._opening:
            self._early_reports.clear()
        return before

    def forget(self, session: "ClientSession") -> None:
        """Give a session no more updates."""
        if self._by_id.get(session.id) is session:
            del self._by_id[session.id]

    def receive(self, received: "SessionUpdate") -> None:
        """Take an update that no turn is waiting for."""
        session = self._by_id.get(received.session_id)
        if session is None:
            self.early.keep(received)
        else:
            session._inbox.receive(received.update)

    def follow_work(self, report: "ExtensionUpdate") -> None:
        """Take what an agent of version 2 reports of its work."""
        session = self._by_id.get(report.session_id)
        if session is not None:
            session._activity.follow(report.update)
        elif self._opening and len(encode(report)) <= EARLY_REPORT_SIZE:
            self._early_reports.append(report)

    def note_inserted(self, inserted: "InsertedPrompt") -> None:
        """Note the id that a prompt has as a message."""
        session = self._by_id.get(inserted.session_id)
        for turn in session._inbox.turns if session is not None else ():
            if turn._number == inserted.prompt:
                turn._message_id = inserted.message_id

    def drop_early(self) -> None:
        """Drop what came for sessions that are not known: their agent is lost, and the next one may use their ids for others."""
        self.early.clear()
        self._early_reports.clear()

    @contextmanager
    def opening(self, workspace: "SessionWorkspace") -> Iterator[None]:
        """In this block a session is being opened whose id we do not know yet."""
        self._opening.append(workspace)
        try:
            yield
        finally:
            self._opening.remove(workspace)

    def roots(self, session_id: str) -> "Roots":
        """Return the roots in which a session may read, write and run commands.

        Raises:
            RequestError: there is no such session.
        """
        if (workspace := self.workspace(session_id)) is not None:
            return workspace.roots
        raise RequestError(Code.INVALID_PARAMS, "there is no such session here", session_id)

    def workspace(self, session_id: str) -> "SessionWorkspace | None":
        """Return the workspace of a session, if we know it."""
        session = self._by_id.get(session_id)
        if session is not None:
            return session._workspace
        # Agents look for their instructions before they answer `session/new`.
        return self._opening[0] if len(self._opening) == 1 else None

    def running_turn(self, session_id: str) -> object:
        """Return the turn that runs in a session, if any."""
        session = self._by_id.get(session_id)
        return session._inbox.running if session is not None else None

    async def ask(self, session_id: str | None, ask: Callable[[], T | Awaitable[T]], instead: T) -> T:
        """Ask the user, unless the turn is being cancelled; a cancellation ends the question. Then the answer is `instead`."""
        session = self.get(session_id)
        if session is not None and session._inbox.being_cancelled:
            return instead
        questions = self.unknown if session is None else session._questions
        return await questions.wait_for(maybe_await(ask()), instead)
