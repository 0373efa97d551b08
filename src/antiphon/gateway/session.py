"""One session of the gateway: what happens in it is numbered, stored, and only then shown.

It lives without clients, and without a process of its agent: then it is opened again when
it is needed.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from antiphon.errors import AcpError, Code, RequestError
from antiphon.gateway.agents.link import UPDATE_HEAD, AgentLink
from antiphon.gateway.attachment import EventRun, SessionAttachment
from antiphon.gateway.base import GatewaySession
from antiphon.gateway.events import notice
from antiphon.gateway.requests import WaitingRequests
from antiphon.gateway.settings import SETTINGS_KINDS, HubSettings
from antiphon.gateway.turns import HubTurns
from antiphon.journal.base import Lease, StaleLease
from antiphon.rpc.envelope import ErrorObject, RequestId, Response, head_of_request
from antiphon.store.errors import NoSuchSession

if TYPE_CHECKING:
    from antiphon.gateway.agents.process import AgentProcess
    from antiphon.gateway.client import RemoteClient
    from antiphon.gateway.hub import Hub

__all__ = ["HubSession"]

RETRY: Final = 1.0
"""Seconds until events that could not be stored are tried again, as when the disk is full. The agent is not read on meanwhile."""

_NOT_STORED: Final = (
    "The gateway cannot store this session now",
    "Look at its disk. Nothing is lost: the agent waits, and the session goes on when there is space.",
)
_KIND: Final = b',"update":{"sessionUpdate":"'
_log = logging.getLogger(__name__)


class HubSession:
    """A session in memory. The journal has all that happened in it."""

    def __init__(self, hub: "Hub", agent: "AgentProcess", session_id: str, cwd: str) -> None:
        self.hub = hub
        self.agent = agent
        self.id = session_id
        self.head = UPDATE_HEAD + session_id.encode() + b'"'
        """How an update of this session begins."""
        self.row = GatewaySession("", agent.name, session_id, cwd)
        self.last = 0
        """The number of the last event that is stored and was shown."""
        self.attachments: list[SessionAttachment] = []
        self.settings = HubSettings()
        self.requests = WaitingRequests(self)
        self.turns = HubTurns(self)
        self.opened_in = 0
        """The generation of the agent's process in which it is open; 0: in none."""
        self.is_over = False
        self._lease: Lease | None = None
        self._waiting: list[bytes] = []
        self._batch: list[bytes] = []
        """Events that are being stored."""
        self._thens: deque[tuple[int, Callable[[], None]]] = deque()
        self._is_swallowing = False
        """Whether updates are a replay that the journal has already."""
        self._reopening: asyncio.Future[Response] | None = None
        """The response of the agent that opens it again, until it has come."""
        self._is_failing = False
        """Whether what was recorded last could not be stored."""
        self._row_changed = False
        """Whether the row is to be stored with the next events."""

    @property
    def key(self) -> str:
        """The name of the session in the journal."""
        return self.row.key

    @property
    def recorded(self) -> int:
        """The number of the last event, stored or not."""
        return self.last + len(self._batch) + len(self._waiting)

    @property
    def in_use(self) -> bool:
        """Whether a client is attached or something is going on."""
        return bool(self.attachments or self.turns.running or self.turns.queued or self._waiting or self._batch)

    @property
    def is_lost_by_parking(self) -> bool:
        """Whether the agent has nothing to open it again from, because it has had no prompt yet."""
        return self.opened_in == self.agent.generation and not self.row.updated

    # Opening.

    def begin(self, row: GatewaySession, lease: Lease, last: int) -> None:
        """Take the row and the right to append. What was recorded until now is stored."""
        if row.state != b"{}":
            self.settings = HubSettings(row.state)
        self.row = row
        self._lease = lease
        self._thens = deque((number + last, then) for number, then in self._thens)
        self.last = last
        self._commit()

    async def reopen(self) -> AgentLink:
        """Return the connection to an agent that has the session open; open it there again if it has not.

        Raises:
            AcpError: the agent does not start, or cannot continue the session.
        """
        link = await self.agent.ready()
        if self.opened_in == self.agent.generation:
            return link
        if self._reopening is None:
            self._reopening = asyncio.get_running_loop().create_future()
            self._open_again(link, self._reopening)
        try:
            async with asyncio.timeout(self.hub.limits.start_timeout):
                response = await asyncio.shield(self._reopening)
        except TimeoutError as error:
            raise RequestError(Code.REQUEST_TIMEOUT, "the agent did not open the session again in time") from error
        if link.lost is not None:
            raise link.lost
        if response.error is not None:
            raise RequestError(
                response.error.code,
                f"session `{self.id}` cannot be continued: {response.error.message}",
                hint="read it here, and go on in a new session",
            )
        return link

    def _open_again(self, link: AgentLink, done: "asyncio.Future[Response]") -> None:
        """Request the session from the agent. It is waited for until its response has come, however late that is:
        until then updates are the replay of a load, and a second request would bring a second replay."""
        offers, generation = self.agent.abilities, self.agent.generation
        if offers.session_capabilities.resume is not None:
            method = "session/resume"
        elif offers.load_session:
            method = "session/load"
        else:
            self._reopening = None
            raise RequestError(
                Code.RESOURCE_NOT_FOUND,
                f"session `{self.id}` cannot be continued: its agent has ended and cannot open it again",
                hint="read it here, and go on in a new session",
            )

        def opened(response: Response, line: bytes) -> None:
            self._is_swallowing = False
            self._reopening = None
            if response.error is None:
                self.settings.opened(bytes(response.result or b"null"))
                self.opened_in = generation
            done.set_result(response)

        try:
            cwd, *directories = self.hub.inside_roots(self.row.cwd, *self.row.directories)
        except RequestError:
            self._reopening = None
            raise
        more: dict[str, object] = {"additionalDirectories": directories} if directories else {}
        if not self.row.updated:
            more["_meta"] = {"antiphon": {"unused": True}}  # an agent may have stored nothing of it
        servers = Raw(self.settings.mcp_servers)
        params = msgspec.json.encode({"sessionId": self.id, "cwd": cwd, "mcpServers": servers, **more})
        self._is_swallowing = method == "session/load"
        link.forward(lambda id: b"%b%b}" % (head_of_request(int(id), method), params), opened)

    # Recording.

    def receive(self, run: list[bytes]) -> None:
        """Record notifications of the agent."""
        if self._is_swallowing or self.is_over:
            return
        at = len(self.head) + len(_KIND)
        for line in run:
            if not line.startswith(_KIND, len(self.head)) or line[at : at + 2] in SETTINGS_KINDS:
                title = self.settings.note(line)
                if title is not None:
                    self.row = msgspec.structs.replace(self.row, title=title)
                self._save_soon()
        self._record(run)

    def when_recorded(self, then: Callable[[], None]) -> None:
        """Call `then` once all that was recorded is stored and shown."""
        self._thens.append((self.recorded, then))

    def record(self, *events: bytes, then: Callable[[], None] | None = None) -> int:
        """Store events in one commit and show them. `then` is called once both are done. Return the number of the last one."""
        if self.is_over:
            if then is not None:
                then()
            return self.recorded
        self._record([*events])
        if then is not None:
            self._thens.append((self.recorded, then))
        return self.recorded

    async def stored(self, event: bytes) -> None:
        """Record an event, and wait until it is stored and shown."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.record(event, then=lambda: None if done.done() else done.set_result(None))
        await done

    def _record(self, events: list[bytes]) -> None:
        self.agent.uncommitted += sum(map(len, events))
        self._waiting += events
        if not self._batch:
            self._commit()

    def _commit(self) -> None:
        if self._batch or self._lease is None:
            return
        if self._row_changed:
            self._row_changed = False
            self.hub.rows.save(self.row)
        if not self._waiting:
            return
        self._batch, self._waiting = self._waiting, []
        try:
            append = asyncio.ensure_future(self.hub.journal.append(self._lease, self._batch))
        except StaleLease as error:
            batch, self._batch = self._batch, []
            self._not_stored(batch, error)
            return
        append.add_done_callback(self._committed)

    def _committed(self, append: "asyncio.Future[int]") -> None:
        batch, self._batch = self._batch, []
        error = asyncio.CancelledError() if append.cancelled() else append.exception()
        if error is not None:
            self._not_stored(batch, error)
            return
        self._is_failing = False
        run = EventRun(self.last + 1, batch)
        self.last = run.last
        for attachment in tuple(self.attachments):
            try:
                attachment.show(run)
            except Exception:  # the others get it all the same, and this one from the journal when it comes back
                _log.exception("an event of session `%s` could not be shown", self.id)
                attachment.client.close_soon("an event could not be shown to it")
        while self._thens and self._thens[0][0] <= self.last:
            self._thens.popleft()[1]()
        self._commit()
        self.agent.stored(sum(map(len, batch)))

    def _not_stored(self, batch: list[bytes], error: BaseException) -> None:
        """Keep what could not be stored, and try again; unless the session is not ours any more."""
        if self.is_over or isinstance(error, StaleLease | NoSuchSession | asyncio.CancelledError):
            self.agent.stored(sum(map(len, [*batch, *self._waiting])))
            self._waiting.clear()
            self.hub.forget(self)
            return
        _log.error("events of session `%s` cannot be stored, they are tried again: %s", self.id, error)
        self._waiting = batch + self._waiting
        self._row_changed = True  # a row that was to be stored in the same commit was not
        self.turns.not_stored(error)
        if not self._is_failing and self._waiting:
            self._is_failing = True
            for attachment in self.attachments:
                attachment.client.put(notice(self.id, *_NOT_STORED), self.id)
        asyncio.get_running_loop().call_later(RETRY, self._commit)

    def drop_last(self, count: int) -> None:
        """Forget the last events. None of them is stored or being stored."""
        self.agent.stored(sum(map(len, self._waiting[-count:])))
        del self._waiting[-count:]
        while self._thens and self._thens[-1][0] > self.recorded:
            self._thens.pop()

    # Clients.

    def attach(self, client: "RemoteClient", cursor: int, *, replay: bool = False) -> SessionAttachment:
        """Add a client after an event; `start` of what is returned begins to send.

        A client that was attached is still asked what it was asked, and gets its responses after the events before them.
        """
        before = client.attachments.get(self.id)
        if before is not None:
            self.attachments.remove(before)
        attachment = SessionAttachment(client, self, cursor, replay=replay, before=before)
        self.attachments.append(attachment)
        client.attachments[self.id] = attachment
        client.closed_sessions.pop(self.id, None)
        return attachment

    def detach(self, client: "RemoteClient") -> None:
        """Remove a client. Its prompts go on."""
        attachment = client.attachments.pop(self.id, None)
        if attachment is not None:
            attachment.end()
            self.attachments.remove(attachment)
            self.requests.client_left(client)

    def answer(self, client: "RemoteClient", frame: bytes, id: RequestId) -> None:
        """Send a response to a client, after the events that were recorded before it."""
        attachment = client.attachments.get(self.id)
        if attachment is None:
            client.put(frame, self.id, id)
        else:
            attachment.respond(frame, id)

    # The end of the agent, of the session, of the gateway.

    def agent_lost(self) -> None:
        """Handle the end of the agent's process: what waits for people is over, and the session is open nowhere."""
        self.opened_in = 0
        self.requests.agent_lost()

    def mark_used(self) -> None:
        """Remember that it had a prompt: its agent can open it again."""
        self.row = msgspec.structs.replace(self.row, updated=time.time(), state=self.settings.stored())
        self.save()

    def release_if_idle(self) -> None:
        """Leave memory if nothing goes on and no process has the session open."""
        if not self.in_use and not self.is_over and self.opened_in != self.agent.generation:
            self.hub.forget(self)

    def end(self, error: ErrorObject) -> Lease | None:
        """End in memory: clients are detached, prompts that wait are answered. Return the lease, to be released."""
        self.is_over = True
        self.turns.end_all(error)
        for attachment in tuple(self.attachments):
            self.detach(attachment.client)
        self.requests.agent_lost()
        self._store_rest()
        lease, self._lease = self._lease, None
        for _, then in self._thens:
            then()
        self._thens.clear()
        return lease

    def _store_rest(self) -> None:
        """Store what waits behind the events that are being stored now: nothing calls us when those are done."""
        rest, self._waiting = self._waiting, []
        if self._lease is not None and self._row_changed:
            self.hub.rows.save(self.row)
        if self._lease is None or not rest:
            self.agent.stored(sum(map(len, rest)))
            return

        async def store(lease: Lease) -> None:
            try:
                await self.hub.journal.append(lease, rest)
            except AcpError as error:
                _log.error("the last events of session `%s` were not stored: %s", self.id, error)
            finally:
                self.agent.stored(sum(map(len, rest)))

        self.hub.run(store(self._lease), to_the_end=True)

    async def settled(self) -> None:
        """Wait until all that was recorded is stored and shown."""
        if self.recorded > self.last and not self.is_over:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.when_recorded(lambda: None if done.done() else done.set_result(None))
            await done

    def save(self) -> None:
        """Store the row as it is now, in one commit with what is recorded next."""
        self._row_changed = True
        self._commit()

    def _save_soon(self) -> None:
        """Keep the settings with the row. They are small and change seldom."""
        self.row = msgspec.structs.replace(self.row, state=self.settings.stored())
        self.save()
