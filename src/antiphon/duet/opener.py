"""How joint sessions are opened: new, where the last one ended, as they were left, as a copy, or from an engine's own list.

One writer per session: the agent that opens a session claims it in the journal until it is closed. What is replayed of its history is stored already,
so it goes to the client straight.
"""

import logging
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from antiphon.aio import maybe_await
from antiphon.catalogue.known import DEMO
from antiphon.config.directories import state_dir
from antiphon.config.shapes import SCRIPTS, is_one_person
from antiphon.duet.history.catch_up import ends_of_open_calls
from antiphon.duet.history.events import ClearEvent, GivenEvent, PromptEvent, unpack
from antiphon.duet.history.writer import OURS
from antiphon.duet.permission import Guard
from antiphon.duet.preferences import JOINT_ROUTES, preferences, start_route
from antiphon.duet.session import JointSession
from antiphon.duet.session_list import has_session, normal_directory
from antiphon.duet.settings import EngineState, JointSettings, JointState
from antiphon.errors import AcpError, Advice, Code, RequestError
from antiphon.journal.sqlite import SqliteJournal
from antiphon.protocol import v1
from antiphon.store.locks import LiveElsewhere
from antiphon.store.sessions import EngineSessionStore, SessionStore
from antiphon.transcript.fork_point import cut_point, dropped_prompts, no_cut, text_in

if TYPE_CHECKING:
    from antiphon.agent.client import ConnectedClient
    from antiphon.agent.session import AgentSession
    from antiphon.engines.base import Engine
    from antiphon.journal.base import Lease
    from antiphon.store.database import Database
    from antiphon.store.sessions import SessionRow

__all__ = ["SessionOpener", "continue_session"]

_log = logging.getLogger(__name__)

_OWN_ID: Final = re.compile("[0-9a-f]{32}").fullmatch
"""Only an id of ours begins a session: others may mean something to an engine, or as a path."""

NO_ENGINE: Final = "No engine is installed, so the demo answers"


class SessionOpener:
    """Opens the sessions of one agent, over its engines and its store."""

    def __init__(self, engines: "Mapping[str, Engine]", database: "Database", absent: Mapping[str, Advice]) -> None:
        self._engines = engines
        self._absent = absent
        self._database = database
        self.store = SessionStore(database)
        self._journal = SqliteJournal(self.store, state_dir())
        self._begun: WeakKeyDictionary[ConnectedClient, set[str]] = WeakKeyDictionary()
        """Clients → the directories in which each has begun a session."""
        self.engine_sessions = EngineSessionStore(database)

    async def new(self, outer: "AgentSession") -> JointSession:
        """Open a new session; or, if the user wants that, this client's last session in this directory."""
        outer.cwd = normal_directory(outer.cwd)
        guard = await Guard.open(outer.cwd, outer.directories, self._database)
        row = await self.store.last(OURS, outer.cwd)
        state = JointState() if row is None else JointState.read(await self.store.state(row.id))
        wanted = preferences(guard.settings, os.environ).auto_resume if state.auto_resume is None else state.auto_resume
        last = await self._to_resume(outer) if wanted else None
        if last is not None and (lease := await self._claim_if_free(last.id, outer)) is not None:
            outer.id = last.id
            return await self._load(outer, guard, lease, replay=True, auto_resumed=True)
        return await self._begin(outer, guard, JointState(auto_resume=state.auto_resume))

    async def _begin(self, outer: "AgentSession", guard: Guard, state: JointState) -> JointSession:
        """Open a session that has had no prompt."""
        async with self._opened(outer, guard, await self._claim(outer), state) as joint:
            await joint.open_lead()
        return joint

    async def _to_resume(self, outer: "AgentSession") -> "SessionRow | None":
        """The session that a client's first new session in a directory goes on with: the last one there that the same client made.

        A client without a name has none, and neither has a script. A gateway is the same client for all of its users: the last session is
        another user's.
        """
        begun = self._begun.setdefault(outer.client, set())
        first = outer.cwd not in begun
        begun.add(outer.cwd)
        name = outer.client.name
        return await self.store.last(OURS, outer.cwd, client=name) if first and is_one_person(name) else None

    async def load(self, outer: "AgentSession", *, replay: bool) -> JointSession:
        """Open a session as it was left; with its history replayed, if requested.

        Raises:
            RequestError: there is no such session, or it is open elsewhere.
        """
        outer.cwd = normal_directory(outer.cwd)
        row = await self.store.get(outer.id)
        if row is not None and row.engine == OURS:
            guard = await Guard.open(outer.cwd, outer.directories, self._database)
            return await self._load(outer, guard, await self._claim(outer), replay=replay)
        if row is not None:
            raise _not_found(
                f"the session `{outer.id}` is one of `antiphon agent --engine {row.engine}`: open it there"
            )
        if (ours := await self._session_with(outer.id)) is not None:
            raise _not_found(f"the engine session `{outer.id}` belongs to the session `{ours}`: open that one")
        if _is_unused(outer):
            return await self._begin(
                outer, await Guard.open(outer.cwd, outer.directories, self._database), JointState()
            )
        return await self._adopt(outer, replay=replay)

    async def _load(
        self, outer: "AgentSession", guard: Guard, lease: "Lease", *, replay: bool, auto_resumed: bool = False
    ) -> JointSession:
        """Open one of our sessions: first what we stored, then what the engines know beyond it, then the ends of calls that nothing
        will end any more. The history is read once for all of it."""
        try:
            state = JointState.read(await self.store.state(outer.id))
            row = await self.store.get(outer.id)
        except BaseException:
            await self._journal.release(lease)
            raise
        async with self._opened(outer, guard, lease, state, stored=True) as joint:
            history = joint.history
            history.silent = not replay
            view = await history.begin_sharing()
            for update in view.replayed() if replay else ():
                await outer.update(update)
            if row is not None and row.title:
                await history.entitle(row.title, stored=False)
            await joint.open_lead()
            settings = joint.settings
            for name in settings.engines_of(settings.route)[1:]:  # they may have gone on elsewhere, too
                if settings.of(name).session_id:
                    await joint.open(name)
            for update in ends_of_open_calls(view):
                await history.send(update)
            history.end_sharing()
            await history.settled()
            history.silent = False
            if auto_resumed:
                title = f"Going on with “{history.title}”" if history.title else "Going on with the last session here"
                why = "/clear begins afresh; the setting `auto_resume` turns this off."
                await history.notice(title, why, stored=False)
        return joint

    async def fork(self, outer: "AgentSession", source: str) -> JointSession:
        """A copy of another session, which goes on apart from it."""
        outer.cwd = normal_directory(outer.cwd)
        guard = await Guard.open(outer.cwd, outer.directories, self._database)
        row = await self.store.get(source)
        ours = row is not None and row.engine == OURS
        try:
            state = await (self._copied(source, outer) if ours else self._of_engine(source))
            async with self._opened(outer, guard, await self._claim(outer), state, stored=ours) as joint:
                history = joint.history
                await history.begin_sharing()
                await joint.open_lead()
                history.end_sharing()
                await joint.save()
        except BaseException:
            if ours:
                await self.store.delete(outer.id)
            raise
        return joint

    async def _copied(self, source: str, outer: "AgentSession") -> JointState:
        """The state of a copy of one of our sessions, which is in the store now. It ends before the prompts that are to be left out.

        Raises:
            RequestError: it is not certain where these prompts begin.
        """
        state = JointState.read(await self.store.state(source))
        length: int | None = None
        given: dict[str, list[str]] = {}
        if dropped := dropped_prompts(outer.meta):
            length, given = await self._cut(source, dropped)
        for name, known in state.engines.items():
            known.source, known.session_id = known.session_id or known.source, ""
            known.dropped = [*given.get(name, ()), *known.dropped]
        packed = state.packed()  # at once: until then it would have the engine sessions of its source
        await self.store.fork(
            source,
            outer.id,
            cwd=outer.cwd,
            directories=outer.directories,
            state=packed,
            client=outer.client.name,
            length=length,
        )
        return state

    async def _cut(self, source: str, dropped: list[str]) -> tuple[int, dict[str, list[str]]]:
        """How many events of a session come before these prompts, and what each engine was given from there on."""
        prompts: list[tuple[int, str]] = []
        given: list[tuple[int, GivenEvent]] = []
        for number, data in enumerate(await self.store.history(source)):
            for event in unpack([data]):
                match event:
                    case ClearEvent():
                        prompts.clear()
                    case PromptEvent(by="" | "command"):
                        prompts.append((number, text_in(event.prompt)))
                    case GivenEvent():
                        given.append((number, event))
                    case _:
                        pass
        cut = cut_point([text for _, text in prompts], dropped)
        if cut is None:
            raise no_cut()
        length = prompts[cut][0]
        left_out: dict[str, list[str]] = {}
        for number, event in given:
            if number >= length:
                left_out.setdefault(event.engine, []).append(event.text)
        return length, left_out

    async def _of_engine(self, source: str) -> JointState:
        """The state of a copy of an engine's own session."""
        name = await self._engine_of(source)
        return JointState(route=name, engines={name: EngineState(source=source)})

    async def delete(self, id: str) -> None:
        """Forget a session, and the engine sessions in it: they would be in the list as their own."""
        row = await self.store.get(id)
        if row is None or row.engine != OURS:
            await self._delete_of_engines(id)
            return
        try:
            lease = await self._journal.claim(id)
        except LiveElsewhere as error:
            raise RequestError(Code.INVALID_REQUEST, "Invalid request", str(error)) from error
        try:
            state = JointState.read(await self.store.state(id))
            await self.store.delete(id)
        finally:
            await self._journal.release(lease)
        for name, known in state.engines.items():
            if known.session_id and name in self._engines:
                await self._forget(name, known.session_id)

    async def _delete_of_engines(self, id: str) -> None:
        for name, engine in self._engines.items():
            if await has_session(engine, id):
                await self._forget(name, id)

    async def _forget(self, name: str, session_id: str) -> None:
        engine = self._engines[name]
        if not engine.does("delete"):
            return
        try:
            await maybe_await(engine.delete(session_id))
        except AcpError as error:  # ours is gone, which is what the user sees
            _log.warning("%s did not delete %s: %s", name, session_id, error)

    # Parts of it.

    async def _claim(self, outer: "AgentSession") -> "Lease":
        try:
            return await self._journal.claim(outer.id, by=_client_title(outer))
        except LiveElsewhere as error:
            raise RequestError(Code.INVALID_REQUEST, "Invalid request", str(error)) from error

    async def _claim_if_free(self, id: str, outer: "AgentSession") -> "Lease | None":
        try:
            return await self._journal.claim(id, by=_client_title(outer))
        except LiveElsewhere:
            return None

    @asynccontextmanager
    async def _opened(
        self, outer: "AgentSession", guard: Guard, lease: "Lease", state: JointState, *, stored: bool = False
    ) -> AsyncIterator[JointSession]:
        """A session that is opened in this block. If the block fails or is cancelled, nothing stays open and nothing stays claimed."""
        try:
            joint, problems = self._made(outer, guard, lease, state, stored=stored)
        except BaseException:
            await self._journal.release(lease)
            raise
        history = joint.history
        try:
            for problem in problems:
                severity = v1.NoticeSeverity.WARNING
                await history.notice(problem.sentence, problem.hint or None, severity, stored=False)
            yield joint
        except BaseException:
            await joint.close()
            raise

    def _made(
        self, outer: "AgentSession", guard: Guard, lease: "Lease", state: JointState, *, stored: bool
    ) -> tuple[JointSession, list[Advice]]:
        """The session, and what the user should know about its settings."""
        wanted = preferences(guard.settings, os.environ)
        first = start_route(wanted, list(self._engines))
        if state.route not in (*self._engines, *(JOINT_ROUTES if len(self._engines) > 1 else ())):
            state.route = first.route
        if state.primary not in self._engines:
            state.primary = first.primary
        state.review = state.review or wanted.review
        settings = JointSettings(self._engines, wanted, state)
        joint = JointSession(
            outer, settings, guard, self.store, self._journal, lease, absent=self._absent, stored=stored
        )
        alone = [*self._engines] == [DEMO] and self._absent
        problems = [Advice(NO_ENGINE, "`antiphon doctor` shows how to get one")] if alone else []
        problems += [*guard.problems, *guard.notes, *wanted.problems, *(() if stored else first.problems)]
        return joint, problems

    # Engine sessions that are not ours yet.

    async def _session_with(self, id: str) -> str | None:
        for name in self._engines:
            if (found := await self.engine_sessions.session_of(name, id)) is not None:
                return found
        return None

    async def _adopt(self, outer: "AgentSession", *, replay: bool) -> JointSession:
        """A session that was begun with an engine alone, in a terminal or elsewhere: it is ours from now on, under the same id."""
        name = await self._engine_of(outer.id)
        guard = await Guard.open(outer.cwd, outer.directories, self._database)
        state = JointState(route=name, engines={name: EngineState(session_id=outer.id)})
        async with self._opened(outer, guard, await self._claim(outer), state) as joint:
            history, settings = joint.history, joint.settings
            history.silent = not replay
            await joint.open_lead()  # opening it shows everything, since all of it is new to us
            if history.title is None:
                await history.entitle(f"A session of {settings.titles[name]}")
            await joint.save()
            history.silent = False
        return joint

    async def _engine_of(self, id: str) -> str:
        """The engine that has a session of this id.

        Raises:
            RequestError: none of them.
        """
        for name, engine in self._engines.items():
            if await has_session(engine, id):
                return name
        raise _not_found(f"there is no session `{id}`: `session/list` shows those that there are")


def _is_unused(outer: "AgentSession") -> bool:
    """Whether a gateway opens a session again that had no prompt yet: we store one with its first prompt, so it begins under its id."""
    about = outer.meta.get("antiphon")
    return isinstance(about, dict) and about.get("unused") is True and _OWN_ID(outer.id) is not None


def _not_found(why: str) -> RequestError:
    return RequestError(Code.RESOURCE_NOT_FOUND, "Resource not found", why)


def _client_title(outer: "AgentSession") -> str:
    info = outer.client.info
    return "" if info is None else info.title or info.name


SHOWN: Final = 8
"""Letters of an id that are shown where several begin alike."""

CANDIDATES: Final = 5
"""Sessions that are named then."""


async def continue_session(joint: JointSession, id: str) -> None:
    """Go on with the last session of this directory that a person made, or with the one whose id begins like this (`/continue`).

    The client knows its session by an id that cannot change, and others may know the earlier one by its own: so the client's session
    becomes a copy of the earlier one, which is left as it is.
    """
    outer, store, history = joint.outer, joint.store, joint.history
    if not id:
        row = await store.last(OURS, outer.cwd, not_by=SCRIPTS, but=outer.id)
        if row is None:
            await history.message("There is no earlier session in this directory. `/sessions` shows what there is.")
            return
    else:
        found = [each for each in await store.beginning(id, OURS) if each.id != outer.id and each.length]
        if len(found) != 1:
            await history.message(_not_one(id, found))
            return
        row = found[0]
    await _take_over(joint, row)
    title = f"Going on with “{row.title}”" if row.title else "Going on with an earlier session"
    await history.notice(title, "It stays in the list as it was, under its own id.", stored=False)


def _not_one(id: str, found: "list[SessionRow]") -> str:
    if not found:
        return f"There is no session whose id begins with `{id}`. `/sessions` shows those of this directory."
    named = ", ".join(f"`{row.id[: max(SHOWN, len(id) + 2)]}` ({row.title or row.cwd})" for row in found[:CANDIDATES])
    return f"Several sessions begin with `{id}`: {named}. Give some more letters."


async def _take_over(joint: JointSession, row: "SessionRow") -> None:
    outer, store, history, settings = joint.outer, joint.store, joint.history, joint.settings
    # Where only commands were typed there is nothing to keep.
    await joint.put_away(archived=(await history.read()).has_prompt)
    await store.delete(outer.id)
    state = JointState.read(await store.state(row.id))
    for known in state.engines.values():
        known.source, known.session_id = known.session_id or known.source, ""
    await store.fork(
        row.id,
        outer.id,
        cwd=outer.cwd,
        directories=outer.directories,
        state=state.packed(),
        client=outer.client.name,
    )
    history.empty = False
    settings.take_over(state)
    view = await history.begin_sharing()
    for update in view.replayed():
        await outer.update(update)
    if row.title:
        await history.entitle(row.title, stored=False)
    await joint.open(settings.lead)
    history.end_sharing()
    await joint.send_settings()
    await joint.send_commands()
    joint.engine_sessions.prepare()
