"""A joint session: the client's one session, and the engines' parts in it.

What an engine says comes here through its part (`heard`), and leaves through the journal. What it asks comes here, too (`asked`), and the
policy decides first. News of how things stand (modes, settings, commands, a title) are put together for the client.
"""

import asyncio
import itertools
import logging
import os
from collections.abc import Awaitable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import UNSET

from antiphon.aio import NO_WAIT, ignore_result, maybe_await
from antiphon.duet.engine_sessions import EngineSessions, InnerSession
from antiphon.duet.history.events import ClearEvent, Event, PromptEvent, now, unpack, update_event
from antiphon.duet.history.summary import SessionSummary
from antiphon.duet.history.writer import HistoryWriter, failure_of, notice_update
from antiphon.duet.limits import Budget, Nudges, UsageTotals
from antiphon.duet.preferences import REVIEW, DuetPreferences
from antiphon.duet.settings import JointSettings, JointState
from antiphon.errors import AcpError, Advice, Code, RequestError
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.store.errors import StoreError
from antiphon.store.sessions import ConversationStore

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession
    from antiphon.duet.permission import Guard
    from antiphon.duet.routes import MessageOrder
    from antiphon.engines.base import Engine
    from antiphon.protocol.methods import Call
    from antiphon.protocol.timeouts import Timeout
    from antiphon.store.locks import SessionLock
    from antiphon.store.sessions import SessionStore

__all__ = ["JointSession", "Saying"]

_log = logging.getLogger(__name__)
P = TypeVar("P")
R = TypeVar("R")

BYPASS: Final = "bypassPermissions"
_GUARDED: Final = (m.READ_TEXT_FILE, m.WRITE_TEXT_FILE, m.CREATE_TERMINAL)


class JointSession:
    """One conversation of a client with several engines."""

    def __init__(
        self,
        outer: "AgentSession",
        engines: "Mapping[str, Engine]",
        wishes: DuetPreferences,
        guard: "Guard",
        store: "SessionStore",
        lock: "SessionLock | None",
        state: JointState,
    ) -> None:
        self.outer = outer
        self.wishes = wishes
        self.guard = guard
        self.store = store
        self.state = state
        self._lock = lock
        self.cast = EngineSessions(self, engines)
        titles = {name: engine.title or name for name, engine in engines.items()}
        self.journal = HistoryWriter(store, outer, SessionSummary(titles))
        self.saying = Saying(outer, self.journal, store)
        self.standing = JointSettings(self)
        enabled = wishes.nudge if state.nudge is None else state.nudge
        self.nudging = Nudges(wishes.tasks, enabled=enabled, cooldown=wishes.nudge_cooldown, maximum=wishes.nudge_max)
        self.absent: Mapping[str, Advice] = {}
        """Engines that are not here → why."""
        self.ledger = UsageTotals()
        """What the engines' conversations have taken so far."""
        self.budget: Budget | None = None
        """Of the last prompt."""
        self.floor: MessageOrder | None = None
        """While several engines speak at once."""
        self.last: object = None
        """Who was heard last, and with what kind of words."""
        self.spoken = False
        """Whether anybody has said anything to the prompt that is being played."""
        self._saved = b""
        self._preparing: set[asyncio.Task[None]] = set()
        self._chores: set[asyncio.Task[None]] = set()
        self.steering = asyncio.Lock()
        """Held while something is added to the turn that runs: two additions at once would be stored in the wrong order."""
        guard.mode = state.mode or "default"

    # Who plays.

    def engines_of(self, route: str) -> list[str]:
        """The engines of a route, the one that leads first."""
        names = list(self.cast.engines)
        if route in names:
            return [route]
        rest = [name for name in names if name != self.primary]
        return [self.primary, *(rest[:1] if route == REVIEW else rest)]

    @property
    def primary(self) -> str:
        """Who leads where several answer."""
        return self.state.primary if self.state.primary in self.cast.engines else next(iter(self.cast.engines))

    @property
    def lead(self) -> str:
        """Who answers, or answers first."""
        return self.engines_of(self.state.route)[0]

    @property
    def auto_resume(self) -> bool:
        """Whether the next new session in this directory goes on with this one."""
        return self.wishes.auto_resume if self.state.auto_resume is None else self.state.auto_resume

    async def open(self, name: str) -> None:
        """Open an engine, so that the client hears what it offers and what it has done elsewhere. One that cannot be opened is told of;
        a prompt tries again."""
        try:
            await self.cast.part(name)
        except AcpError as error:
            if isinstance(error, RequestError) and error.code == Code.AUTH_REQUIRED and len(self.cast.engines) == 1:
                raise
            await self.saying.failed(self.cast.title(name), error, kept=False)

    def prepare(self) -> None:
        """Open the parts of the route in the background, so that the first prompt finds them ready and their settings are shown."""

        async def prepare(name: str) -> None:
            await self.cast.part(name)
            await self.standing.tell()

        for name in self.engines_of(self.state.route):
            if name not in self.cast.parts:
                task = asyncio.get_running_loop().create_task(prepare(name), name=f"open {name}")
                self._preparing.add(task)
                task.add_done_callback(self._preparing.discard)
                task.add_done_callback(ignore_result)  # a prompt will hear of it; there may never be one

    async def stop_preparing(self) -> None:
        """Nobody is opened in the background any more."""
        for task in tuple(self._preparing):
            task.cancel()
        if self._preparing:
            await asyncio.wait(tuple(self._preparing))

    def do(self, work: "Coroutine[Any, Any, None]") -> Awaitable[None]:
        """Begin work that is done even if its caller does not wait for it. It is over before the session is closed."""
        task = asyncio.get_running_loop().create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)
        task.add_done_callback(ignore_result)
        return task

    # What engines say.

    def heard(self, part: InnerSession, update: v1.Update) -> Awaitable[None]:
        """An engine says something."""
        match update:
            case v1.AvailableCommandsUpdate():
                part.offered = list(update.available_commands)
                return self.standing.tell_commands()
            case v1.ConfigOptionUpdate() | v1.CurrentModelUpdate():
                return self.standing.tell()
            case v1.CurrentModeUpdate():
                return self._mode_is(part, update.current_mode_id)
            case v1.SessionInfoUpdate():
                return self._titled(part, update)
            case _:
                part.remember(update)
                update = part.marked(update)
                if self.floor is not None:
                    return self.floor.say(part.name, update)
                return self.tell_of(part.name, update)

    def release(self, part: InnerSession) -> list[Awaitable[None]]:
        """Pass on the updates of an engine that were held back. Nothing can come between them and later ones, because nothing is awaited.

        Returns what to wait for: the disk and the client. A caller that is cancelled need not wait.
        """
        held, part.collected = part.collected or [], None
        return self._pass_on(part, held)

    def _pass_on(self, part: InnerSession, held: list[v1.Update]) -> list[Awaitable[None]]:
        return [wait for update in held if (wait := self.heard(part, update)) is not NO_WAIT]

    def tell_of(self, name: str, update: v1.Update) -> Awaitable[None]:
        """Show what an engine says, with its label where one is due."""
        part = self.cast.speaking[name]
        kind = (name, type(update))
        told: Awaitable[None] = NO_WAIT
        part.labels.follows = self.spoken
        for own, is_label in part.labels.on(update, fresh=kind != self.last):
            told = self.journal.tell(own, "" if is_label else name)
        self.last = kind
        self.spoken = self.spoken or isinstance(update, v1.AgentMessageChunk)
        return told

    def _mode_is(self, part: InnerSession, mode: str) -> Awaitable[None]:
        """An engine has changed its mode by itself. In its turn that is by the user's consent (a plan was approved, say), and the session's
        mode follows; but never to the one without questions, and never for an agent of somebody else's, who need not have asked."""
        if part.obeying or part.looking:
            return NO_WAIT
        if part.working and part.name == self.lead and not part.engine.guarded and mode != BYPASS:
            self.state.mode = self.guard.mode = mode
        return self.do(self._saved_after(self.standing.tell()))

    async def _saved_after(self, told: Awaitable[None]) -> None:
        await told
        await self.save()

    def _titled(self, part: InnerSession, update: v1.SessionInfoUpdate) -> Awaitable[None]:
        if part.name != self.lead or part.looking or not isinstance(update.title, str):
            return NO_WAIT
        if self.saying.title is not None and (part.briefed or not part.working):
            return NO_WAIT  # ours is the first thing that the user said
        return self.do(self.saying.entitle(update.title))

    # What engines ask.

    async def asked(self, part: InnerSession, call: "Call[P, R]", params: P, timeout: "Timeout" = UNSET) -> R:
        """An engine asks the client something: after all that it has said, and if the policy leaves it open."""
        if (
            part.working and part.collected
        ):  # something is being added to its turn; the question may be about what it did before
            held, part.collected = part.collected, []
            _ = self._pass_on(part, held)
        if self.floor is not None:
            self.floor.claim(part.name)
        await self.journal.settled()
        ours: Any = part.under(self.outer.id, params)
        if call is m.REQUEST_PERMISSION:
            asked: Any = params
            known = part.known.get(asked.tool_call.tool_call_id)
            answer: Any = await self.guard.permission(
                part.title,
                ours,
                partial(self._ask, timeout=timeout),
                looking=part.looking,
                trusted_marks=not part.engine.guarded,
                known=None if known is None else part.labels.call(known),
            )
            part.answered(asked, answer)
            return answer  # type: ignore[no-any-return]  # the call says what it is
        await self.admitted(part, call, ours)
        return await self.outer.request(call, ours, timeout=timeout)

    async def admitted(self, part: InnerSession, call: "Call[P, R]", params: P) -> None:
        """What an engine does by way of us, the policy decides about, too."""
        if call in _GUARDED and (part.engine.guarded or part.looking):
            ours: Any = part.under(self.outer.id, params)
            await self.guard.admit(ours, self._ask, part.title, looking=part.looking)

    async def _ask(self, request: v1.RequestPermission, timeout: "Timeout" = UNSET) -> v1.PermissionResult:
        return await self.outer.request(m.REQUEST_PERMISSION, request, timeout=timeout)

    # What is kept.

    async def history(self) -> list[Event]:
        """All events since the user last began afresh."""
        await self.journal.settled()
        if self.journal.empty:
            return []
        events = list(unpack(await self.store.history(self.outer.id)))
        cleared = [place for place, event in enumerate(events) if isinstance(event, ClearEvent)]
        return events[cleared[-1] + 1 :] if cleared else events

    async def save(self) -> None:
        """Keep what is needed to go on, if it has changed. A session in which nothing was said is not kept."""
        await self.saying.keep_title()
        packed = self.state.packed()
        if packed == self._saved or self.journal.empty:
            return
        known = {name: each.conversation for name, each in self.state.engines.items() if each.conversation}
        try:
            await self.store.set_state(self.outer.id, packed)
            await ConversationStore(self.store.database).set_conversations(self.outer.id, known)
        except StoreError as error:
            await self.journal.unsaved(error)
        else:
            self._saved = packed

    async def cancel(self) -> None:
        """Call off what engines do by themselves."""
        for part in tuple(self.cast.parts.values()):
            if part.playing is not None and not part.working:
                await maybe_await(part.playing.cancel())

    async def close(self) -> None:
        """Free everything."""
        try:
            await self.stop_preparing()
            await self.cast.drop()
            if self._chores:
                await asyncio.wait(tuple(self._chores))
            await self.journal.close()
            if self.journal.failed:
                await self.save()
        finally:
            if self._lock is not None:
                self._lock.release()


# --- What we say ourselves in a joint session: answers to our own commands, notices, a title


class Saying:
    """In one session. All of it is kept like the engines' words."""

    def __init__(self, outer: "AgentSession", journal: "HistoryWriter", store: "SessionStore") -> None:
        self._outer = outer
        self._journal = journal
        self._store = store
        self._numbers = itertools.count(1)
        self._series = os.urandom(3).hex()
        self.title: str | None = None
        """Of the session; None: it has none yet."""
        self._kept_title: str | None = None

    def new_id(self) -> str:
        """The id of a message that no other has."""
        return f"antiphon-{self._series}-{next(self._numbers)}"

    async def say(self, text: str) -> None:
        """Words of our own."""
        await self._journal.tell(v1.AgentMessageChunk(v1.TextBlock(text), self.new_id()))

    async def notice(
        self,
        title: str,
        description: str | None = None,
        severity: v1.NoticeSeverity = v1.NoticeSeverity.INFO,
        *,
        kept: bool = True,
    ) -> None:
        """Something that the user should know. A client without notices gets it as a message. What only matters now is not kept."""
        update = notice_update(self._outer, title, description, severity, self.new_id())
        await (self._journal.tell(update) if kept else self._journal.pass_on(update))

    async def failed(self, who: str, error: AcpError, *, kept: bool = True) -> None:
        """An engine could not do its part."""
        await self.notice(*failure_of(who, error), v1.NoticeSeverity.ERROR, kept=kept)

    def note_failure(self, who: str, error: AcpError) -> None:
        """Keep it for those who read the history: whoever was there has heard of it by the answer."""
        self._journal.note(update_event(v1.NoticeUpdate(v1.NoticeSeverity.ERROR, *failure_of(who, error))))

    async def as_user(self, text: str, by: str) -> None:
        """Something that we say to the engines for the user, who sees it."""
        event = PromptEvent(now(), [v1.TextBlock(text)], self.new_id(), by)
        await self._journal.show(event, v1.UserMessageChunk(v1.TextBlock(text), event.message_id))

    async def entitled(self, title: str) -> None:
        """Tell the title that the session has."""
        self.title = self._kept_title = title
        await self._journal.tell(v1.SessionInfoUpdate(title=title))

    async def entitle(self, title: str) -> None:
        """Give the session a title."""
        if title == self.title:
            return
        self.title = title
        await self._journal.tell(v1.SessionInfoUpdate(title=title))
        await self.keep_title()

    async def keep_title(self) -> None:
        """Keep the title, once there is something that it could be the title of."""
        await self._journal.settled()
        if self.title is None or self.title == self._kept_title or self._journal.empty:
            return
        try:
            await self._store.rename(self._outer.id, self.title)
            self._kept_title = self.title
        except StoreError as error:
            await self._journal.unsaved(error)
