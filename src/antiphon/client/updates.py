"""What a session hears, in the order of the wire: in its turns, between them, and while it is opened again.

The updates of a turn wait until its consumer reads them. What the agent tells after the turn's answer waits behind them, so that
settings and transcript never see the later before the earlier.
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
from antiphon.protocol.base import encode
from antiphon.transcript.entries import CallEntry

if TYPE_CHECKING:
    from antiphon.client.session import ClientSession, SessionWorkspace
    from antiphon.client.turn import ClientTurn
    from antiphon.local.files import Roots
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
    "SessionInbox",
    "follow_settings",
    "of_category",
    "take_settings",
    "with_value",
]

# --- settings: taken from the responses that open a session, followed through its updates. Sends nothing

Offer: TypeAlias = v1.NewSessionResult | v1.LoadSessionResult | v1.ResumeSessionResult | v1.ForkSessionResult
"""The answers that say what a session offers."""


class Followed(Protocol):
    """Something that keeps up with a session's settings."""

    modes: v1.ModeState | None
    config_options: list[v1.ConfigOption] | None
    models: v1.ModelState | None
    commands: list[v1.Command] | None
    title: str | None


def take_settings(session: Followed, offer: Offer) -> None:
    """What an answer offers; what it leaves out stays as it was: some agents answer `session/resume` with nothing at all."""
    if offer.modes is not None:
        session.modes = offer.modes
    if offer.config_options is not None:
        session.config_options = offer.config_options
    if offer.models is not None:
        session.models = offer.models


def follow_settings(session: Followed, update: "Update") -> None:
    """Keep up with an update."""
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
            _keep_in_step(session)
        case v1.AvailableCommandsUpdate(available_commands=commands):
            session.commands = commands
        case v1.SessionInfoUpdate(title=title) if not isinstance(title, v1.UnsetType):
            session.title = title
        case _:
            pass


def _keep_in_step(session: Followed) -> None:
    """Modes and models are the older view of two settings: where an agent has both, they say the same."""
    mode, model = of_category(session, v1.ConfigCategory.MODE), of_category(session, v1.ConfigCategory.MODEL)
    if mode is not None and session.modes is not None:
        session.modes = msgspec.structs.replace(session.modes, current_mode_id=mode.current_value)
    if model is not None and session.models is not None:
        session.models = msgspec.structs.replace(session.models, current_model_id=model.current_value)


def of_category(session: Followed, category: v1.ConfigCategory) -> v1.SelectConfig | None:
    """The setting that is about this, if there is one."""
    for option in session.config_options or ():
        if isinstance(option, v1.SelectConfig) and option.category == category:
            return option
    return None


def with_value(options: Sequence[v1.ConfigOption], config_id: str, value: str | bool) -> list[v1.ConfigOption]:
    """The settings with one changed, for agents that do not say how they stand now."""
    changed: list[v1.ConfigOption] = []
    for option in options:
        kind = str if isinstance(option, v1.SelectConfig) else bool
        if isinstance(option, v1.ConfigBase) and option.id == config_id and isinstance(value, kind):
            changed.append(msgspec.structs.replace(option, current_value=value))
        else:
            changed.append(option)
    return changed


# --- updates

# What the agent has asked the user and waits for. When the turn is cancelled every open question is answered at once.

T = TypeVar("T")


class OpenQuestions:
    """The open questions of one session."""

    def __init__(self) -> None:
        self._open: set[asyncio.Future[None]] = set()

    async def wait_for(self, answer: Awaitable[T], instead: T) -> T:
        """The user's answer, or `instead` if the question is released before there is one."""
        work = asyncio.ensure_future(answer)
        released: asyncio.Future[None] = work.get_loop().create_future()
        self._open.add(released)
        try:
            # A race, not a cancellation: a handler that takes its time to stop must not hold up the answer.
            await asyncio.wait((work, released), return_when=asyncio.FIRST_COMPLETED)
            # The agent has been told of the cancellation by now: an answer that came with it would come too late.
            taken = work.done() and not work.cancelled() and not released.done()
            return work.result() if taken else instead
        finally:
            self._open.discard(released)
            if not work.done() or released.done():
                work.add_done_callback(_forget)
                work.cancel()
            released.cancel()

    def release(self) -> None:
        """Answer all that are open without the user; their handlers are cancelled."""
        for released in tuple(self._open):
            if not released.done():
                released.set_result(None)


def _forget(work: "asyncio.Future[T]") -> None:
    if not work.cancelled() and (error := work.exception()) is not None:
        _log.error("a handler failed after its question was released", exc_info=error)


# Updates of sessions that we do not know yet: several agents tell of a session before they answer the request that opens it.

EARLY_LIMIT: Final = 16 * 1024 * 1024
"""Bytes that may wait for their sessions to become known. Forks replay a whole history first; a session that never becomes known costs
no more than this."""


class EarlyUpdates:
    """Kept in order, until somebody claims them. The oldest go first when there are too many."""

    def __init__(self, limit: int = EARLY_LIMIT) -> None:
        self._limit = limit
        self._size = 0
        self._kept: deque[tuple[SessionUpdate, int]] = deque()
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, news: "SessionUpdate") -> None:
        """One more."""
        size = len(encode(news))
        self._kept.append((news, size))
        self._size += size
        while self._size > self._limit:
            old, size = self._kept.popleft()
            self._size -= size
            self._dropped += 1
            if self._dropped == 1:  # once: there may be very many
                _log.warning("updates of sessions that nobody opened are dropped, first of `%s`", old.session_id)

    def clear(self) -> None:
        """Keep none of them."""
        self._kept.clear()
        self._size = 0

    def claim(self, session_id: str) -> "list[Update]":
        """Those of this session, in order; they wait no longer."""
        if not self._kept:
            return []
        mine = [news.update for news, _ in self._kept if news.session_id == session_id]
        self._kept = deque(each for each in self._kept if each[0].session_id != session_id)
        self._size = sum(size for _, size in self._kept)
        return mine


_log = logging.getLogger(__name__)

OnUpdate: TypeAlias = Callable[["Update"], None]
"""Takes the updates that come outside of turns."""

LATE_WEIGHT: Final = 1024
"""Bytes that an update counts for while it waits behind a turn that is over and not read. Enough of them slow the wire."""


class Listener(Followed, Protocol):
    """Who keeps up: a session."""

    id: str
    transcript: "Transcript"


class SessionInbox:
    """The ears of one session."""

    def __init__(self, session: Listener, on_update: OnUpdate | None) -> None:
        if iscoroutinefunction(on_update):
            raise LocalProtocolError("`on_update` must be a plain `def`: to wait, iterate over a turn")
        self._turns: dict[int, weakref.ref[ClientTurn]] = {}
        self._forgotten: dict[int, ClientTurn] = {}
        self.replaying = False
        """Whether the agent tells again what we know: the session is opened anew by `session/load`."""
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

    def worked(self) -> None:
        """Note that the agent works on the prompts that it has: they must not be sent again."""
        for turn in self.turns:
            turn._begun = turn._begun or turn._sent

    def heard(self, update: "Update") -> None:
        """An update that no turn was waiting for."""
        if self.replaying:
            follow_settings(self._session, update)
            return
        for turn in reversed(self.turns):
            if turn._sent:  # answered, or the update would have gone there; but not read to its end
                turn._keep_late(update, LATE_WEIGHT)
                return
        self._deliver(update)

    def follow(self, update: "Update") -> None:
        """Keep up with an update."""
        self._session.transcript.apply(update)
        follow_settings(self._session, update)

    def asked(self, patch: v1.ToolCallPatch) -> v1.ToolCallPatch:
        """Permission is asked for a call: note it, in its place, and return it with all that we know about it.

        Many agents name only the call that they announced just before, and whoever decides wants to know what it is.
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

    def tell(self, notice: v1.NoticeUpdate) -> None:
        """Say something of our own: in the turn, or else to `on_update`."""
        _log.warning("session `%s`: %s: %s", self._session.id, notice.title, notice.description)
        if turns := self.turns:
            self._session.transcript.apply(notice)
            turns[0]._notify(notice)
        else:
            self._deliver(notice)

    def over(self, turn: "ClientTurn") -> None:
        """Let go of a turn that has ended and is read."""
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
            except Exception:  # somebody's fault, but not a reason to hear no more
                _log.exception("`on_update` failed")


# The sessions of one agent by their ids: who gets an update, and whose directories count.


class ClientSessions:
    """Every session that is open here."""

    def __init__(self) -> None:
        self.early = EarlyUpdates()
        self.strangers = OpenQuestions()
        """Questions that belong to no session we know."""
        self._by_id: dict[str, ClientSession] = {}
        self._opening: list[SessionWorkspace] = []

    def get(self, session_id: str | None) -> "ClientSession | None":
        """The session, if it is open here."""
        return self._by_id.get(session_id) if session_id is not None else None

    def put(self, session: "ClientSession") -> "ClientSession | None":
        """From now on this session hears what is told of its id, first what was told already. Returns who heard it before."""
        before = self._by_id.get(session.id)
        self._by_id[session.id] = session
        for update in self.early.claim(session.id):
            session._inbox.heard(update)
        return before

    def forget(self, session: "ClientSession") -> None:
        """It hears no more."""
        if self._by_id.get(session.id) is session:
            del self._by_id[session.id]

    def heard(self, news: "SessionUpdate") -> None:
        """An update that no turn is waiting for."""
        session = self._by_id.get(news.session_id)
        if session is None:
            self.early.keep(news)
        else:
            session._inbox.heard(news.update)

    @contextmanager
    def opening(self, place: "SessionWorkspace") -> Iterator[None]:
        """A session is being opened whose id we do not know yet."""
        self._opening.append(place)
        try:
            yield
        finally:
            self._opening.remove(place)

    def roots(self, session_id: str) -> "Roots":
        """Where this session may read, write and run.

        Raises:
            RequestError: there is no such session.
        """
        if (place := self.workspace(session_id)) is not None:
            return place.roots
        raise RequestError(Code.INVALID_PARAMS, "there is no such session here", session_id)

    def workspace(self, session_id: str) -> "SessionWorkspace | None":
        """Where this session works, if we know it."""
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
        """Ask the user, unless the turn is being cancelled; stop asking when it is. Then the answer is `instead`."""
        session = self.get(session_id)
        if session is not None and session._inbox.being_cancelled:
            return instead
        questions = self.strangers if session is None else session._questions
        return await questions.wait_for(maybe_await(ask()), instead)
