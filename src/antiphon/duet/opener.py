"""How joint sessions are opened: from nothing, where the last one ended, as they were left, as a copy, or from an engine's own list.

One writer per session: whoever opens it holds its lock until it is closed. What is told of its history is on the disk already, so it goes to
the client straight.
"""

import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from antiphon.aio import maybe_await
from antiphon.catalogue.known import DEMO
from antiphon.config.places import state_dir
from antiphon.config.shapes import SCRIPTS, is_script
from antiphon.duet.history.catch_up import ends_of_open_calls
from antiphon.duet.history.events import PromptEvent, replayed
from antiphon.duet.history.writer import OURS
from antiphon.duet.permission import Guard
from antiphon.duet.preferences import JOINT_ROUTES, preferences, start_route
from antiphon.duet.session import JointSession
from antiphon.duet.session_list import has_session, normal_directory
from antiphon.duet.settings import EngineState, JointState, put_away
from antiphon.errors import AcpError, Advice, Code, RequestError
from antiphon.protocol import v1
from antiphon.store.locks import LiveElsewhere, SessionLock
from antiphon.store.sessions import ConversationStore, SessionStore

if TYPE_CHECKING:
    from antiphon.agent.client import ConnectedClient
    from antiphon.agent.session import AgentSession
    from antiphon.engines.base import Engine
    from antiphon.store.database import Database
    from antiphon.store.sessions import SessionRow

__all__ = ["SessionOpener", "continue_session"]

_log = logging.getLogger(__name__)

NOBODY: Final = "No engine is installed, so the demo answers"


class SessionOpener:
    """For one agent: its engines and its store."""

    def __init__(self, engines: "Mapping[str, Engine]", database: "Database", absent: Mapping[str, Advice]) -> None:
        self._engines = engines
        self._absent = absent
        self._database = database
        self.store = SessionStore(database)
        self._begun: WeakKeyDictionary[ConnectedClient, set[str]] = WeakKeyDictionary()
        """Clients → the directories in which each has begun a session."""
        self.conversations = ConversationStore(database)

    async def new(self, outer: "AgentSession") -> JointSession:
        """From nothing; or, if the user wants that, where this client's last session in this directory ended."""
        outer.cwd = normal_directory(outer.cwd)
        guard = await Guard.open(outer.cwd, outer.directories, self._database)
        row = await self.store.last(OURS, outer.cwd)
        state = JointState() if row is None else JointState.read(await self.store.state(row.id))
        wanted = preferences(guard.settings, os.environ).auto_resume if state.auto_resume is None else state.auto_resume
        last = await self._to_resume(outer) if wanted else None
        if last is not None and (lock := await _free(last.id, outer)) is not None:
            outer.id = last.id
            return await self._again(outer, guard, lock, tell=True, unasked=True)
        async with self._opened(outer, guard, await _lock(outer), JointState(auto_resume=state.auto_resume)) as joint:
            await self._cast(joint)
        return joint

    async def _to_resume(self, outer: "AgentSession") -> "SessionRow | None":
        """The session that a client's first new session in a directory goes on with: the last one there that the same client made.

        A client that does not say who it is has none, and neither has a script.
        """
        begun = self._begun.setdefault(outer.client, set())
        first = outer.cwd not in begun
        begun.add(outer.cwd)
        name = outer.client.name
        return await self.store.last(OURS, outer.cwd, client=name) if first and name and not is_script(name) else None

    async def load(self, outer: "AgentSession", *, tell: bool) -> JointSession:
        """As it was left; with all that was said again, if wished.

        Raises:
            RequestError: there is no such session, or it is open elsewhere.
        """
        outer.cwd = normal_directory(outer.cwd)
        row = await self.store.get(outer.id)
        if row is not None and row.engine == OURS:
            guard = await Guard.open(outer.cwd, outer.directories, self._database)
            return await self._again(outer, guard, await _lock(outer), tell=tell)
        if row is not None:
            raise _not_found(
                f"the session `{outer.id}` is one of `antiphon agent --engine {row.engine}`: open it there"
            )
        if (ours := await self._of_conversation(outer.id)) is not None:
            raise _not_found(f"the conversation `{outer.id}` belongs to the session `{ours}`: open that one")
        return await self._adopt(outer, tell=tell)

    async def _again(
        self, outer: "AgentSession", guard: Guard, lock: SessionLock, *, tell: bool, unasked: bool = False
    ) -> JointSession:
        """One of ours: first what we kept, then what the engines know beyond it, then the ends of what nobody will end any more."""
        try:
            state = JointState.read(await self.store.state(outer.id))
        except BaseException:
            lock.release()
            raise
        async with self._opened(outer, guard, lock, state, kept=True) as joint:
            joint.journal.silent = not tell
            events = await joint.history()
            for event in events:
                joint.journal.minutes.hear(event)
            for update in replayed(events) if tell else ():
                await outer.update(update)
            row = await self.store.get(outer.id)
            if row is not None and row.title:
                await joint.saying.entitled(row.title)
            await self._cast(joint)
            for name in joint.engines_of(joint.state.route)[1:]:  # they may have gone on elsewhere, too
                if joint.state.of(name).conversation:
                    await joint.open(name)
            for update in ends_of_open_calls(await joint.history()):
                await joint.journal.tell(update)
            await joint.journal.settled()
            joint.journal.silent = False
            if unasked:
                title = (
                    f"Going on with “{joint.saying.title}”"
                    if joint.saying.title
                    else "Going on with the last session here"
                )
                await joint.saying.notice(
                    title, "/clear begins afresh; the setting `auto_resume` turns this off.", kept=False
                )
        return joint

    async def fork(self, outer: "AgentSession", source: str) -> JointSession:
        """A copy of another session, which goes on apart from it."""
        outer.cwd = normal_directory(outer.cwd)
        guard = await Guard.open(outer.cwd, outer.directories, self._database)
        row = await self.store.get(source)
        ours = row is not None and row.engine == OURS
        try:
            state = await (self._copied(source, outer) if ours else self._of_engine(source))
            async with self._opened(outer, guard, await _lock(outer), state, kept=ours) as joint:
                for event in await joint.history():
                    joint.journal.minutes.hear(event)
                await self._cast(joint)
                await joint.save()
        except BaseException:
            if ours:
                await self.store.delete(outer.id)
            raise
        return joint

    async def _copied(self, source: str, outer: "AgentSession") -> JointState:
        """The state of a copy of one of our sessions, which is in the store now."""
        state = JointState.read(await self.store.state(source))
        for known in state.engines.values():
            known.source, known.conversation = known.conversation or known.source, ""
        packed = state.packed()  # at once: until then it would have the conversations of its source
        await self.store.fork(
            source, outer.id, cwd=outer.cwd, directories=outer.directories, state=packed, client=outer.client.name
        )
        return state

    async def _of_engine(self, source: str) -> JointState:
        """The state of a copy of an engine's own session."""
        name = await self._whose(source)
        return JointState(route=name, engines={name: EngineState(source=source)})

    async def delete(self, id: str) -> None:
        """Forget a session, and the conversations that the engines have of it: they would be in the list as their own."""
        row = await self.store.get(id)
        if row is None or row.engine != OURS:
            await self._delete_of_engines(id)
            return
        try:
            lock = await SessionLock.take_async(state_dir(), id, "")
        except LiveElsewhere as error:
            raise RequestError(Code.INVALID_REQUEST, "Invalid request", str(error)) from error
        with lock:
            state = JointState.read(await self.store.state(id))
            await self.store.delete(id)
        for name, known in state.engines.items():
            if known.conversation and name in self._engines:
                await self._forget(name, known.conversation)

    async def _delete_of_engines(self, id: str) -> None:
        for name, engine in self._engines.items():
            if await has_session(engine, id):
                await self._forget(name, id)

    async def _forget(self, name: str, conversation: str) -> None:
        engine = self._engines[name]
        if not engine.does("delete"):
            return
        try:
            await maybe_await(engine.delete(conversation))
        except AcpError as error:  # ours is gone, which is what the user sees
            _log.warning("%s did not delete %s: %s", name, conversation, error)

    # Parts of it.

    @asynccontextmanager
    async def _opened(
        self, outer: "AgentSession", guard: Guard, lock: SessionLock, state: JointState, *, kept: bool = False
    ) -> AsyncIterator[JointSession]:
        """A session that is opened in this block. What fails, or is called off, leaves nothing open and nothing locked."""
        try:
            joint, problems = self._made(outer, guard, lock, state, kept=kept)
        except BaseException:
            lock.release()
            raise
        try:
            for problem in problems:
                await joint.saying.notice(problem.sentence, problem.hint or None, v1.NoticeSeverity.WARNING, kept=False)
            yield joint
        except BaseException:
            await joint.close()
            raise

    def _made(
        self, outer: "AgentSession", guard: Guard, lock: SessionLock, state: JointState, *, kept: bool
    ) -> tuple[JointSession, list[Advice]]:
        """The session, and what the user should know about its settings."""
        wanted = preferences(guard.settings, os.environ)
        first = start_route(wanted, list(self._engines))
        if state.route not in (*self._engines, *(JOINT_ROUTES if len(self._engines) > 1 else ())):
            state.route = first.route
        if state.primary not in self._engines:
            state.primary = first.primary
        state.review = state.review or wanted.review
        joint = JointSession(outer, self._engines, wanted, guard, self.store, lock, state)
        joint.absent = self._absent
        joint.journal.empty = not kept
        alone = [*self._engines] == [DEMO] and self._absent
        problems = [Advice(NOBODY, "`antiphon doctor` tells how to get one")] if alone else []
        problems += [*guard.problems, *guard.notes, *wanted.problems, *(() if kept else first.problems)]
        return joint, problems

    async def _cast(self, joint: JointSession) -> None:
        """Open the engine that leads, so that the client hears what it offers; the others of the route while it reads that."""
        joint.standing.show()
        await joint.open(joint.lead)
        joint.standing.known()
        await joint.standing.tell_commands()
        joint.prepare()

    # Conversations that are not ours yet.

    async def _of_conversation(self, id: str) -> str | None:
        for name in self._engines:
            if (found := await self.conversations.by_conversation(name, id)) is not None:
                return found
        return None

    async def _adopt(self, outer: "AgentSession", *, tell: bool) -> JointSession:
        """A session that was begun with an engine alone, in a terminal or elsewhere: it is ours from now on, under the same id."""
        name = await self._whose(outer.id)
        guard = await Guard.open(outer.cwd, outer.directories, self._database)
        state = JointState(route=name, engines={name: EngineState(conversation=outer.id)})
        async with self._opened(outer, guard, await _lock(outer), state) as joint:
            joint.journal.silent = not tell
            await self._cast(joint)  # opening it tells all that we do not know, which is everything
            if joint.saying.title is None:
                await joint.saying.entitle(f"A session of {joint.cast.title(name)}")
            await joint.save()
            joint.journal.silent = False
        return joint

    async def _whose(self, id: str) -> str:
        """The engine that has a conversation.

        Raises:
            RequestError: none of them.
        """
        for name, engine in self._engines.items():
            if await has_session(engine, id):
                return name
        raise _not_found(f"there is no session `{id}`: `session/list` shows those that there are")


def _not_found(why: str) -> RequestError:
    return RequestError(Code.RESOURCE_NOT_FOUND, "Resource not found", why)


async def _free(id: str, outer: "AgentSession") -> SessionLock | None:
    """The lock of another session, if nobody has it."""
    try:
        return await SessionLock.take_async(state_dir(), id, _who(outer))
    except LiveElsewhere:
        return None


async def _lock(outer: "AgentSession") -> SessionLock:
    try:
        return await SessionLock.take_async(state_dir(), outer.id, _who(outer))
    except LiveElsewhere as error:
        raise RequestError(Code.INVALID_REQUEST, "Invalid request", str(error)) from error


def _who(outer: "AgentSession") -> str:
    info = outer.client.info
    return "" if info is None else info.title or info.name


# --- `/continue`: the client's session becomes a copy of an earlier one, and goes on from there
# The client knows its session by an id that cannot change, and others may know the earlier one by its own: so both stay, and the earlier
# one is left as it is.

SHOWN: Final = 8
"""Letters of an id that are shown where several begin alike."""

CANDIDATES: Final = 5
"""Sessions that are named then."""


async def continue_session(joint: "JointSession", id: str) -> None:
    """Go on with the last session of this directory that a person made, or with the one whose id begins like this."""
    outer = joint.outer
    if not id:
        row = await joint.store.last(OURS, outer.cwd, not_by=SCRIPTS, but=outer.id)
        if row is None:
            await joint.saying.say("There is no earlier session in this directory. `/sessions` shows what there is.")
            return
    else:
        found = [each for each in await joint.store.beginning(id, OURS) if each.id != outer.id and each.length]
        if len(found) != 1:
            await joint.saying.say(_not_one(id, found))
            return
        row = found[0]
    await _take_up(joint, row)
    title = f"Going on with “{row.title}”" if row.title else "Going on with an earlier session"
    await joint.saying.notice(title, "It stays in the list as it was, under its own id.", kept=False)


def _not_one(id: str, found: "list[SessionRow]") -> str:
    if not found:
        return f"There is no session whose id begins with `{id}`. `/sessions` shows those of this directory."
    named = ", ".join(f"`{row.id[: max(SHOWN, len(id) + 2)]}` ({row.title or row.cwd})" for row in found[:CANDIDATES])
    return f"Several sessions begin with `{id}`: {named}. Give some more letters."


async def _take_up(joint: "JointSession", row: "SessionRow") -> None:
    outer, journal = joint.outer, joint.journal
    if any(isinstance(event, PromptEvent) and not event.by for event in await joint.history()):
        await put_away(joint)
    else:  # only commands were typed, which are nothing to keep
        await joint.stop_preparing()
        await joint.cast.drop()
        journal.restart()
    await joint.store.delete(outer.id)
    state = JointState.read(await joint.store.state(row.id))
    for known in state.engines.values():
        known.source, known.conversation = known.conversation or known.source, ""
    await joint.store.fork(
        row.id,
        outer.id,
        cwd=outer.cwd,
        directories=outer.directories,
        state=state.packed(),
        client=outer.client.name,
    )
    journal.empty = False
    _follow(joint, state)
    events = await joint.history()
    for event in events:
        journal.minutes.hear(event)
    for update in replayed(events):
        await outer.update(update)
    if row.title:
        await joint.saying.entitled(row.title)
    await joint.open(joint.lead)
    await joint.standing.tell()
    await joint.standing.tell_commands()
    joint.prepare()


def _follow(joint: "JointSession", state: JointState) -> None:
    """What was chosen there holds here, as far as the same engines are here."""
    engines = joint.cast.engines
    if state.route in (*engines, *(JOINT_ROUTES if len(engines) > 1 else ())):
        joint.state.route, joint.state.routed = state.route, state.routed
    if state.primary in engines:
        joint.state.primary = state.primary
    joint.state.review = state.review or joint.state.review
    joint.state.mode = state.mode
    joint.guard.mode = state.mode or "default"
    joint.state.engines = state.engines
