"""Sessions that come to the hub of a worker from other workers, and those that go to them.

Rules:

1. A session that comes is claimed first, so the worker before can store nothing more. Then the journal gets what it lacks: that the session
   moved, that the turn which ran was interrupted, and that requests which waited are over. A prompt is never sent again.
2. The agent here opens the session when it is needed. If it does not know it, the session goes on in a new one of the agent, which gets the
   transcript with its next prompt (`moves.context`).
3. A session that another worker has claimed ends here at once. Its agent must not go on with it: the turn is cancelled, the session is
   closed at the agent, and an agent that does not confirm that in time is ended, with all that it started.
4. The clients of a session that goes lose their connection, and no request of theirs is answered here: they attach again at the other
   worker, and see there what became of it.
"""

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.errors import AcpError, RequestRefused
from antiphon.gateway.agents.link import end_process
from antiphon.gateway.base import GatewaySession, HubPlace
from antiphon.gateway.events import MOVED, EventHeader, notice, notification, stored_event
from antiphon.gateway.moves.interruption import find_interruption
from antiphon.gateway.settings import HubSettings
from antiphon.journal.base import Lease, StaleLease
from antiphon.journal.owner import OwnedElsewhere, SessionHome, worker_title
from antiphon.store.errors import NoSuchSession
from antiphon.store.locks import LiveElsewhere

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.gateway.agents.link import AgentLink
    from antiphon.gateway.agents.process import AgentProcess
    from antiphon.gateway.hub import Hub
    from antiphon.gateway.session import HubSession
    from antiphon.gateway.turns import HubTurn

__all__ = ["SessionMoves"]

END_LIMIT: Final = 2.0
"""Seconds that an agent has to end a turn, and to close a session, that another worker has now. Most take under one."""

_log = logging.getLogger(__name__)


class SessionMoves:
    """The moves of sessions between the hub of one worker and the others."""

    def __init__(self, hub: "Hub", place: HubPlace) -> None:
        self._hub = hub
        self.place = place

    # Sessions that come.

    async def adopt(self, row: GatewaySession, epoch: int, why: str) -> bool:
        """Take a session whose worker is gone, and keep it in memory, ready to be opened. `epoch` is that of the lease of that worker.

        `why` says what became of the worker, as a part of a sentence. False: another worker was faster, or the session is gone.

        Raises:
            AcpError: it cannot be taken now.
        """
        agent = self._hub.agents[row.agent]
        self.place.localized(row)  # raises, before anything is claimed
        async with agent.alone(row.session_id):
            try:
                lease = await self._hub.journal.claim(row.key, epoch, by=self.place.worker)
            except (StaleLease, LiveElsewhere, NoSuchSession):
                return False
            return await self._hub.open_stored(agent, row.session_id, None, lease, why) is not None

    async def claim(self, key: str) -> Lease:
        """Claim a session that a client wants here.

        Raises:
            OwnedElsewhere: another worker has it: the client is to look for that one.
            AcpError: it cannot be claimed now.
        """
        if self._hub.is_draining:
            raise OwnedElsewhere("this worker is about to end", hint="connect again: another one takes the session")
        try:
            return await self._hub.journal.claim(key, by=self.place.worker)
        except (LiveElsewhere, StaleLease) as error:
            raise OwnedElsewhere("another worker has the session", hint="connect again: it is found there") from error

    async def take(self, row: GatewaySession, lease: Lease, why: str) -> GatewaySession:
        """Record what a session lacks that was claimed here, and return its row as it is here.

        `why`: its worker is gone, and why; empty: it may have been released in order.

        Raises:
            AcpError: its directories are not here, or it cannot be stored.
        """
        before = HubSettings(row.state).home
        localized = self.place.localized(row)
        reason = why or "its worker ended"
        came = before.worker not in ("", self.place.worker)
        found = await find_interruption(self._hub.journal, localized, reason, has_all=not came)
        settings = HubSettings(found.row.state)
        settings.home = self.place.home_of((localized.cwd, *localized.directories))
        if came and not row.is_unused:
            settings.is_moved = True
        events = found.events
        if came and (why or found.events or before.host != self.place.host):
            events = [*self._moved(row, before, reason, was_running=found.was_running), *events]
        if events:
            await self._hub.journal.append(lease, events, round(time.time(), 3))
        taken = msgspec.structs.replace(found.row, state=settings.stored())
        self._hub.rows.save(taken)
        return taken

    def _moved(self, row: GatewaySession, before: SessionHome, why: str, *, was_running: bool) -> list[bytes]:
        """Return the events that say that a session moved: one for programs, one for people."""
        header = EventHeader(sender=before.worker, to=self.place.worker, interrupted=was_running)
        place = f"worker `{worker_title(self.place.worker)}`"
        if before.host != self.place.host:
            place += f" on `{self.place.host}`"
        happened = (
            "Look at what the interrupted turn did before you send another message."
            if was_running
            else "No turn was running."
        )
        text = f"{why[:1].upper()}{why[1:]}. {happened}"
        # The warning is the end of the turn.
        shown = notice(row.session_id, f"This session moved to {place}", text, "info")
        return [stored_event(MOVED, header), shown]

    async def settle(self, session: "HubSession", row: GatewaySession, lease: Lease) -> None:
        """Store where a new session is, before a client knows of it: without that no other worker could take it.

        Raises:
            AcpError: it cannot be stored.
        """
        session.settings.home = self.place.home_of((row.cwd, *row.directories))
        self._hub.rows.save(msgspec.structs.replace(row, state=session.settings.stored()))
        await self._hub.journal.append(lease, ())  # behind the row

    # Sessions that go.

    def lost(self, key: str) -> None:
        """End the session with this key, if it is here: another worker has claimed it."""
        for agent in self._hub.agents.values():
            for session in (*agent.sessions.values(),):
                if session.key == key:
                    self.lose(session)

    def lose(self, session: "HubSession") -> None:
        """End a session that another worker has claimed. Nothing of it is stored any more."""
        if session.is_over:
            return
        _log.warning("session `%s` is at another worker now: it ends here", session.id)
        link, turn, agent_id = session.link, session.turns.running, session.agent_id
        self._close_clients(session, "another worker has the session")
        self._hub.forget(session, keep=False)
        if link is not None and link.lost is None:
            self._hub.run(self._end_at_agent(session.agent, link, agent_id, turn), to_the_end=True)

    def hand_over_idle(self, sessions: "Sequence[HubSession]") -> bool:
        """Release those sessions in which no turn runs, if this worker is about to end. False: it is not."""
        if self._hub.is_draining:
            for session in sessions:
                if session.turns.running is None and not session.is_over:
                    self._hand_over(session)
        return self._hub.is_draining

    def _hand_over(self, session: "HubSession") -> None:
        """Release a session, so that another worker can claim it."""
        link = session.link
        self._close_clients(session, "the session goes to another worker")
        if link is not None and session.is_open and session.agent.abilities.session_capabilities.close is not None:
            link.send_request("session/close", {"sessionId": session.agent_id}, lambda *_: None)
        self._hub.forget(session)

    def _close_clients(self, session: "HubSession", why: str) -> None:
        """End the connections of all clients that follow a session, or wait for it. They come back at its next worker."""
        clients = {attachment.client for attachment in session.attachments} | session.turns.clients
        for client in clients:
            client.close_soon(why)

    async def _end_at_agent(
        self, agent: "AgentProcess", link: "AgentLink", agent_id: str, turn: "HubTurn | None"
    ) -> None:
        """Have an agent end what it does in a session, or end the agent."""
        was_sent = turn is not None and bool(turn.agent_id)
        try:
            async with asyncio.timeout(END_LIMIT):
                if turn is not None and was_sent:
                    link.send(notification("session/cancel", {"sessionId": agent_id}))
                if agent.abilities.session_capabilities.close is not None:
                    params = msgspec.json.encode({"sessionId": agent_id})
                    try:
                        await link.call("session/close", params, END_LIMIT)
                    except RequestRefused as error:
                        _log.info("agent `%s` did not close a session: %s", agent.name, error.sentence)
                if turn is not None and was_sent:
                    await turn.answered.wait()
        except TimeoutError:
            why = "another worker has one of its sessions, and it did not end its turn there"
            await end_process(agent.name, link, why, at_once=True)
        except AcpError as error:  # it has ended
            _log.info("agent `%s` has ended with a session that moved: %s", agent.name, error.sentence)
