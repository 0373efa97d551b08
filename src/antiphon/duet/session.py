"""A joint session: the client's one session, with the engines' sessions, the settings and the history that it owns.

An update of an engine comes here from its session (`engine_update`) and leaves through the history. A request of an engine comes here too
(`engine_request`), and the policy decides first. Settings, commands and titles of the engines are put together for the client.
"""

import asyncio
import os
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from msgspec import UNSET

from antiphon.aio import NO_WAIT, ignore_result
from antiphon.duet.engine_sessions import EngineSessions, InnerSession
from antiphon.duet.history.summary import SessionSummary
from antiphon.duet.history.writer import JointHistory, explained
from antiphon.duet.limits import Budget, Nudges, UsageTotals
from antiphon.duet.settings import AUTO_RESUME, MODE, PRIMARY, REVIEW_OPTION, ROUTE, JointSettings, address
from antiphon.errors import AcpError, Advice, Code, RequestError, ResponseError
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.store.errors import NoSuchSession, StoreError
from antiphon.store.sessions import EngineSessionStore

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession
    from antiphon.duet.permission import Guard
    from antiphon.duet.routes import MessageOrder
    from antiphon.journal.base import Journal, Lease
    from antiphon.protocol.methods import Call
    from antiphon.protocol.timeouts import Timeout
    from antiphon.store.sessions import SessionStore

__all__ = ["JointSession"]

P = TypeVar("P")
R = TypeVar("R")

BYPASS: Final = "bypassPermissions"
_GUARDED: Final = (m.READ_TEXT_FILE, m.WRITE_TEXT_FILE, m.CREATE_TERMINAL)


class JointSession:
    """One session of a client, answered by several engines."""

    def __init__(
        self,
        outer: "AgentSession",
        settings: JointSettings,
        guard: "Guard",
        store: "SessionStore",
        journal: "Journal",
        lease: "Lease",
        *,
        absent: "Mapping[str, Advice]",
        stored: bool,
    ) -> None:
        preferences = settings.preferences
        self.outer = outer
        """The session as the client knows it."""
        self.settings = settings
        self.guard = guard
        self.store = store
        self.summary = SessionSummary(settings.titles)
        self.history = JointHistory(store, journal, lease, outer, self.summary)
        self.history.empty = not stored
        self.usage = UsageTotals()
        """Usage of the engine sessions so far."""
        self.engine_sessions = EngineSessions(self, outer, settings, self.history, self.usage, guard.rules)
        self.nudges = Nudges(preferences.tasks, cooldown=preferences.nudge_cooldown, maximum=preferences.nudge_max)
        self.absent = absent
        """Engines that are not here → why."""
        self.budget: Budget | None = None
        """The budget of the last prompt."""
        self.order: MessageOrder | None = None
        """Whether several engines answer at once."""
        self.last: object = None
        """The engine and the kind of the last update."""
        self.has_answer = False
        """Whether an engine has sent anything for the prompt that is being answered."""
        self.steering = asyncio.Lock()
        """Held while something is added to the turn that runs: two additions at once would be stored in the wrong order."""
        self._journal = journal
        self._lease = lease
        self._saved = b""
        self._sent: list[v1.Update] = [v1.ConfigOptionUpdate([])]
        """What the client was last sent about its settings."""
        self._commands: list[v1.Command] | None = None
        self._chores: set[asyncio.Task[None]] = set()
        guard.use_mode(lambda: settings.mode)

    # Opening engines.

    async def open(self, name: str) -> None:
        """Open an engine, so that the client gets what it offers and what it has done elsewhere. That it cannot be opened is shown;
        a prompt tries again."""
        try:
            await self.engine_sessions.get(name)
        except AcpError as error:
            alone = len(self.settings.engines) == 1
            if alone and isinstance(error, ResponseError) and error.code == Code.AUTH_REQUIRED:
                raise
            await self.history.report(self.settings.titles[name], error, stored=False)

    async def open_lead(self) -> None:
        """Open the engine that leads, so that the client gets what it offers; the others of the route while it reads that."""
        self.show_settings()
        await self.open(self.settings.lead)
        self._sent = self._settings_updates()
        await self.send_commands()
        self.engine_sessions.prepare()

    async def let_answer(self, signed_in: "Sequence[str]") -> None:
        """Let an engine that is signed in answer, if the one that would is not and the user has not chosen it. Nothing has been answered yet."""
        settings = self.settings
        if settings.is_route_chosen or settings.route in signed_in or not signed_in or not self.history.empty:
            return
        settings.choose_route(signed_in[0], by_user=False)
        await self.send_settings()
        self.engine_sessions.prepare()

    def _do(self, work: "Coroutine[Any, Any, None]") -> Awaitable[None]:
        """Begin work that is completed even if its caller does not wait for it. It is over before the session is closed."""
        task = asyncio.get_running_loop().create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)
        task.add_done_callback(ignore_result)
        return task

    # Updates of engines.

    def engine_update(self, inner: InnerSession, update: v1.Update) -> Awaitable[None]:
        """Handle an update of an engine."""
        match update:
            case v1.AvailableCommandsUpdate():
                inner.offered = list(update.available_commands)
                return self.send_commands()
            case v1.ConfigOptionUpdate() | v1.CurrentModelUpdate():
                return self.send_settings()
            case v1.CurrentModeUpdate():
                return self._mode_changed(inner, update.current_mode_id)
            case v1.SessionInfoUpdate():
                return self._titled(inner, update)
            case _:
                update = inner.noted(update)
                if self.order is not None:
                    return self.order.send(inner.name, update)
                return self.send_from_engine(inner.name, update)

    def send_from_engine(self, name: str, update: v1.Update) -> Awaitable[None]:
        """Show an update of an engine, with its label where one is due."""
        labels = self.engine_sessions.sending[name].labels
        kind = (name, type(update))
        shown: Awaitable[None] = NO_WAIT
        if labels.visible or labels.own_ids:
            labels.follows = self.has_answer
            for own, is_label in labels.on(update, fresh=kind != self.last):
                shown = self.history.send(own, "" if is_label else name)
        else:  # it answers alone: no label is needed
            shown = self.history.send(update, name)
        self.last = kind
        self.has_answer = self.has_answer or isinstance(update, v1.AgentMessageChunk)
        return shown

    def release(self, inner: InnerSession) -> list[Awaitable[None]]:
        """Forward the updates of an engine that were held back. Nothing can come between them and later ones, because nothing is awaited.

        Returns what to wait for: the disk and the client. A caller that is cancelled need not wait.
        """
        held, inner.collected = inner.collected or [], None
        return self._pass_on(inner, held)

    def _pass_on(self, inner: InnerSession, held: list[v1.Update]) -> list[Awaitable[None]]:
        return [wait for update in held if (wait := self.engine_update(inner, update)) is not NO_WAIT]

    def _mode_changed(self, inner: InnerSession, mode: str) -> Awaitable[None]:
        """Follow an engine that changed its mode itself. In its turn that is by the user's consent (a plan was approved, for example), and the
        session's mode follows; but never to the one without permission requests, and never for a third-party agent, which need not have
        asked."""
        if inner.changing_mode or inner.host.read_only:
            return NO_WAIT
        if inner.working and inner.name == self.settings.lead and not inner.engine.guarded and mode != BYPASS:
            self.settings.choose_mode(mode, for_all=False)

        async def save_after(shown: Awaitable[None]) -> None:
            await shown
            await self.save()

        return self._do(save_after(self.send_settings()))

    def _titled(self, inner: InnerSession, update: v1.SessionInfoUpdate) -> Awaitable[None]:
        if inner.name != self.settings.lead or inner.host.read_only or not isinstance(update.title, str):
            return NO_WAIT
        if self.history.title is not None and (inner.briefed or not inner.working):
            return NO_WAIT  # our title is made of the first prompt
        return self._do(self.history.entitle(update.title))

    # Requests of engines.

    async def engine_request(self, inner: InnerSession, call: "Call[P, R]", params: P, timeout: "Timeout" = UNSET) -> R:
        """Send a request of an engine to the client: after all its updates so far, and if the policy leaves it open."""
        if inner.working and inner.collected:
            # Something is being added to its turn; the request may be about what it did before.
            held, inner.collected = inner.collected, []
            _ = self._pass_on(inner, held)
        if self.order is not None:
            self.order.claim(inner.name)
        await self.history.settled()
        ours = inner.under(self.outer.id, params)
        if isinstance(params, v1.RequestPermission) and isinstance(ours, v1.RequestPermission):
            known = inner.known.get(params.tool_call.tool_call_id)
            answer = await self.guard.permission(
                inner.title,
                ours,
                partial(self._ask, timeout=timeout),
                looking=inner.host.read_only,
                trusted_marks=not inner.engine.guarded,
                known=None if known is None else inner.labels.call(known),
            )
            inner.answered(params, answer)
            return cast("R", answer)
        await self.admitted(inner, call, ours)
        return await self.outer.request(call, ours, timeout=timeout)

    async def admitted(self, inner: InnerSession, call: "Call[P, R]", params: P) -> None:
        """Let the policy decide about what an engine does by way of us. Raises if it may not."""
        if call in _GUARDED and (inner.engine.guarded or inner.host.read_only):
            ours: Any = inner.under(self.outer.id, params)
            await self.guard.admit(ours, self._ask, inner.title, looking=inner.host.read_only)

    async def _ask(self, request: v1.RequestPermission, timeout: "Timeout" = UNSET) -> v1.PermissionResult:
        return await self.outer.request(m.REQUEST_PERMISSION, request, timeout=timeout)

    # Settings.

    def show_settings(self) -> None:
        """Update the settings that the client sees, from our own and those of the open engines."""
        shown = self.settings.shown(self.engine_sessions.offers())
        outer = self.outer
        outer.modes, outer.models, outer.config_options = shown.modes, shown.models, shown.options

    def send_settings(self) -> Awaitable[None]:
        """Send the client what has changed of its settings since it was last sent them."""
        self.show_settings()
        before, self._sent = self._sent, self._settings_updates()
        sent: Awaitable[None] = NO_WAIT
        for update in self._sent:
            if update not in before:
                sent = self.history.send(update)
        return sent

    def _settings_updates(self) -> list[v1.Update]:
        outer = self.outer
        updates: list[v1.Update] = [v1.ConfigOptionUpdate(outer.host.settings.shown(outer.client.shows_booleans))]
        if outer.modes is not None:
            updates.append(v1.CurrentModeUpdate(outer.modes.current_mode_id))
        if outer.models is not None and outer.client.chooses_models:
            updates.append(v1.CurrentModelUpdate(outer.models.current_model_id))
        return updates

    def send_commands(self) -> Awaitable[None]:
        """Send the client the slash commands that there are, if they have changed."""
        commands = self.settings.commands(self.engine_sessions.commands())
        if commands == self._commands:
            return NO_WAIT
        self._commands = commands
        return self.history.send(v1.AvailableCommandsUpdate(commands))

    async def set_route(self, route: str) -> None:
        """Set the engines that answer from now on. They are opened while the user types."""
        self.settings.choose_route(route)
        await self._route_changed()

    async def _route_changed(self) -> None:
        """Open the engine that leads now, and send the client what that changes."""
        await self.open(self.settings.lead)
        await self.send_settings()
        await self.send_commands()
        self.engine_sessions.prepare()
        await self.save()

    async def set_mode(self, mode: str) -> None:
        """Change the mode of all engines. Those that are open change at once, and the others when they are opened.

        Raises:
            RequestError: the engine that leads refuses.
        """
        engines = self.engine_sessions
        lead = await engines.get(self.settings.lead)
        if mode != lead.mode:
            await engines.set_mode(lead, mode)
        self.settings.choose_mode(mode)
        for inner in tuple(engines.opened.values()):
            if (
                inner is lead or inner.host.read_only
            ):  # a reviewer goes on only reading; its next turn is in the new mode
                continue
            try:
                await engines.align(inner)
            except AcpError as error:  # it keeps its own, and that is shown among the settings
                await self.history.notice(f"{inner.title} stays in its mode", explained(error)[0])
        await self.send_settings()
        await self.save()

    async def set_model(self, model: str) -> None:
        """Change the model of the engine that leads, in the way of older clients."""
        inner = await self.engine_sessions.get(self.settings.lead)
        await self.engine_sessions.set_model(inner, model)
        self.settings.of(inner.name).options["model"] = model
        await self.send_settings()
        await self.save()

    async def set_option(self, option: str, value: bool | str) -> None:
        """Change one of our settings, or one of an engine's.

        Raises:
            RequestError: there is no such setting, or the engine refuses.
        """
        if option == ROUTE:
            await self.set_route(str(value))
        elif option == PRIMARY:
            self.settings.choose(primary=str(value))
            await self._route_changed()
        elif option == REVIEW_OPTION:
            self.settings.choose(review=str(value))
            await self.save()
        elif option == AUTO_RESUME:
            self.settings.choose(auto_resume=value in ("on", True))
            await self.save()
        elif option == MODE:
            await self.set_mode(str(value))
        else:
            await self._set_option_of_engine(option, value)

    async def _set_option_of_engine(self, option: str, value: bool | str) -> None:
        found = address(option, list(self.settings.engines))
        if found is None:
            raise RequestError(Code.INVALID_PARAMS, "Invalid params", f"there is no setting `{option}`")
        name, own = found
        inner = await self.engine_sessions.get(name)
        if own == MODE:  # of this engine alone
            inner.host.settings.check_mode(str(value))
            await self.engine_sessions.set_mode(inner, str(value))
            self.settings.of(name).mode = str(value)
        else:
            await self.engine_sessions.set_option(inner, own, value)
            self.settings.of(name).options[own] = str(value)
        await self.send_settings()
        await self.save()

    # Storing.

    async def save(self) -> None:
        """Wait until everything sent so far is stored and shown, and store what is needed to go on, if it has changed.

        An empty session is not stored.
        """
        await self.history.settled()
        await self.history.store_title()
        packed = self.settings.packed()
        if packed == self._saved or self.history.empty:
            return
        try:
            await self.store.set_state(self.outer.id, packed)
            await EngineSessionStore(self.store.database).set_engine_sessions(
                self.outer.id, self.settings.engine_sessions()
            )
        except StoreError as error:
            await self.history.unsaved(error)
        else:
            self._saved = packed

    async def clear(self) -> None:
        """Begin afresh. The old history stays in the list of sessions, under an id of its own; the client's session goes on, empty."""
        await self.put_away()
        self.engine_sessions.prepare()

    async def put_away(self, *, archived: bool = True) -> None:
        """Close the engines' sessions, and give the old history a session of its own; if not `archived`, forget it."""
        if archived:
            await self.save()
        await self.engine_sessions.stop_preparing()
        await self.engine_sessions.close()
        if not archived:
            self.history.restart()
            return
        self.settings.forget_engine_sessions()
        await self.history.settled()
        if not self.history.empty:
            with suppress(NoSuchSession):  # it was deleted meanwhile, so there is nothing to archive
                await self.store.archive(self.outer.id, os.urandom(16).hex(), self.settings.packed())
        self.history.restart()
        with suppress(StoreError):  # grants of the earlier session
            await self.guard.forget_session(self.outer.id)

    async def cancel(self) -> None:
        """Cancel what engines do outside of a turn."""
        await self.engine_sessions.cancel_idle()

    async def close(self) -> None:
        """Close the engines' sessions, store what is left, and release the session."""
        try:
            await self.engine_sessions.stop_preparing()
            await self.engine_sessions.close()
            if self._chores:
                await asyncio.wait(tuple(self._chores))
            await self.history.close()
            if self.history.failed:
                await self.save()
        finally:
            await self._journal.release(self._lease)
