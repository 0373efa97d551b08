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

from antiphon.errors import AcpError, Code, ConnectionClosed, RequestError
from antiphon.gateway.agents.link import UPDATE_HEAD, AgentLink
from antiphon.gateway.attachment import EventRun, SessionAttachment
from antiphon.gateway.base import GatewaySession
from antiphon.gateway.events import for_session, notice, notification
from antiphon.gateway.requests import WaitingRequests
from antiphon.gateway.settings import SETTINGS_KINDS, HubSettings, with_title
from antiphon.gateway.turns import HubTurns
from antiphon.journal.base import Lease, StaleLease
from antiphon.rpc.envelope import BAD_INPUT, ErrorObject, RequestId, Response
from antiphon.store.errors import NoSuchSession

if TYPE_CHECKING:
    from antiphon.gateway.agents.process import AgentProcess
    from antiphon.gateway.client import RemoteClient
    from antiphon.gateway.hub import Hub

__all__ = ["HubSession"]

RETRY: Final = 1.0
"""Seconds until events that could not be stored are tried again, as when the disk is full. The agent is not read on meanwhile."""

LAST_TRIES: Final = 3
"""How often the last events of a session are tried again. The end of the gateway waits for that."""

_NOT_STORED: Final = (
    "The gateway cannot store this session now",
    "Look at its disk. Nothing is lost: the agent waits, and the session goes on when there is space.",
)
_BEGUN_ANEW: Final = (
    "The agent goes on in a new session of its own",
    "It does not have the earlier one here. It gets the transcript with the next prompt, and knows nothing else of what was before.",
)
_KIND: Final = b',"update":{"sessionUpdate":"'
_log = logging.getLogger(__name__)


class _NewSession(msgspec.Struct, rename="camel"):
    session_id: str = ""


def _id_of_new(response: Response) -> str:
    """Return the id of the session that a response names; empty if it names no session."""
    try:
        return msgspec.json.decode(response.result or b"{}", type=_NewSession).session_id
    except BAD_INPUT:
        return ""


class HubSession:
    """A session in memory. The journal has all that happened in it."""

    def __init__(self, hub: "Hub", agent: "AgentProcess", session_id: str, cwd: str, opened_by: str = "") -> None:
        self.hub = hub
        self.opened_by = opened_by
        """The number of the token that brought it into memory; empty: it counts for none."""
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
        self.link: AgentLink | None = None
        """The process of the agent in which it is open; None: in none."""
        self.order = asyncio.Lock()
        """Held while a request of a client is on its way to the agent, so that none overtakes another."""
        self.is_over = False
        self.is_hidden = False
        """Whether its agent has not confirmed yet that it has it: lists are without it."""
        self.released = asyncio.Event()
        """Set when it is over, its last events are stored, and another may claim it."""
        self.idle_since = asyncio.get_running_loop().time()
        """When it was last seen in use, by the clock of the event loop."""
        self._lease: Lease | None = None
        self._waiting: list[bytes] = []
        self._batch: list[bytes] = []
        """Events that are being stored."""
        self._batch_at = 0.0
        """Their time, in seconds since 1970."""
        self._batch_done: asyncio.Future[None] | None = None
        """Gets done when it is known what became of them, for the end of the session."""
        self._thens: deque[tuple[int, Callable[[], None]]] = deque()
        self._progress: asyncio.Future[None] | None = None
        """Done when more is stored, or dropped: what waits looks again."""
        self._needs_agent = 0
        """How many wait for an agent that has it open."""
        self.is_failing = False
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
        waits = self._needs_agent or (self.agent.link is not None and self.id in self.agent.link.reopening)
        goes_on = self.turns.running or self.turns.queued or self.requests.is_busy or self._waiting or self._batch
        return bool(self.attachments or goes_on or waits)

    @property
    def is_open(self) -> bool:
        """Whether the process of the agent that runs now has it open."""
        return self.link is not None and self.link is self.agent.link

    @property
    def agent_id(self) -> str:
        """The id that the agent knows it by: another one if the agent had lost it, unused, and opened a new session in its place."""
        return self.settings.agent_id or self.id

    # Opening.

    def begin(self, row: GatewaySession, lease: Lease, last: int) -> None:
        """Take the row and the right to append. What was recorded until now is stored."""
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
        self._needs_agent += 1
        try:
            while True:
                link = await self.agent.ready()
                try:
                    return await self._reopened(link)
                except ConnectionClosed:
                    if link.lost is None or link.is_blamed:
                        raise
                    # It was ended because another session moved. This one has not begun anything there.
        finally:
            self._needs_agent -= 1

    async def _reopened(self, link: AgentLink) -> AgentLink:
        self._check_life()
        if self.link is link:
            return link
        opening = link.reopening.get(self.id) or self._open_again(link)
        try:
            async with asyncio.timeout(self.hub.limits.start_timeout):
                response = await asyncio.shield(opening)
        except TimeoutError as error:
            raise RequestError(Code.REQUEST_TIMEOUT, "the agent did not open the session again in time") from error
        self._check_life()
        if link.lost is not None:
            raise link.lost
        if response.error is not None:
            raise RequestError(
                response.error.code,
                f"session `{self.id}` cannot be continued: {response.error.message}",
                hint="read it here, and go on in a new session",
            )
        return link

    def _check_life(self) -> None:
        if self.is_over:
            raise RequestError(Code.RESOURCE_NOT_FOUND, f"session `{self.id}` was closed", hint="load or resume it")

    def _open_again(self, link: AgentLink) -> "asyncio.Future[Response]":
        """Request the session from the agent. It is waited for until its response has come, however late that is:
        until then updates are the replay of a load, and a second request would bring a second replay. So the connection
        knows of it, and not this object: the session may be closed and brought into memory again meanwhile."""
        resumes = self.agent.abilities.session_capabilities.resume is not None
        is_known = self.agent.can_reopen and link.renamed.get(self.agent_id.encode(), self.id) == self.id
        if not is_known and not self.row.is_unused and self.hub.moves is None:
            raise RequestError(
                Code.RESOURCE_NOT_FOUND,
                f"session `{self.id}` cannot be continued: its agent has ended and cannot open it again",
                hint="read it here, and go on in a new session",
            )
        cwd, *directories = self.hub.inside_roots(self.row.cwd, *self.row.directories)
        params: dict[str, object] = {"cwd": cwd, "mcpServers": Raw(self.settings.mcp_servers)}
        if directories:
            params["additionalDirectories"] = directories
        done = link.reopening[self.id] = asyncio.get_running_loop().create_future()
        if not is_known:
            self._open_anew(link, params)
            return done

        def opened(response: Response, line: bytes) -> None:
            link.replays.discard(self.id)
            if response.error is not None and link.lost is None and self._may_open_anew(response.error):
                self._open_anew(link, params)
            else:
                self._opened(link, response)

        if self.agent_id != self.id:
            link.renamed[self.agent_id.encode()] = self.id
        if not resumes:
            link.replays.add(self.id)
        about = {"_meta": {"antiphon": {"unused": True}}} if self.row.is_unused else {}
        method = "session/resume" if resumes else "session/load"
        link.send_request(method, {"sessionId": self.agent_id, **params, **about}, opened)
        return done

    def _may_open_anew(self, error: ErrorObject) -> bool:
        """Whether a new session of the agent takes the place of this one, which the agent refused to open again."""
        is_strange = self.settings.is_moved or self.settings.needs_context
        return self.row.is_unused or (is_strange and self.hub.moves is not None and error.code != Code.AUTH_REQUIRED)

    def _open_anew(self, link: AgentLink, params: dict[str, object]) -> None:
        """Have the agent open a new session in the place of this one, which it has not stored. Clients keep its id."""

        def opened(response: Response, line: bytes) -> None:
            id = _id_of_new(response)
            session = self.agent.session_of(self.id)
            if id and session is not None:
                session.settings.agent_id = "" if id == self.id else id
                if id != self.id:
                    link.renamed[id.encode()] = self.id
                if not session.row.is_unused:
                    session.settings.needs_context = True
                    session.record(notice(self.id, *_BEGUN_ANEW))
                session.receive([for_session(early, self.id) for early in link.take_early(id)])
            elif response.error is None:
                response = Response(response.id, error=ErrorObject(Code.INTERNAL_ERROR, "the agent named no session"))
            link.opened()
            self._opened(link, response)

        link.opening += 1
        link.send_request("session/new", params, opened)

    def _opened(self, link: AgentLink, response: Response) -> None:
        """Take the response that opened the session again."""
        session = self.agent.session_of(self.id)
        if response.error is None and session is not None:
            session.link = link
            session.settings.is_moved = False
            session.save(lambda settings: settings.opened(bytes(response.result or b"null")))
        link.reopening.pop(self.id).set_result(response)

    # Recording.

    def receive(self, run: list[bytes]) -> None:
        """Record notifications of the agent."""
        if self.is_over or (self.agent.link is not None and self.id in self.agent.link.replays):
            return
        at = len(self.head) + len(_KIND)
        for place, line in enumerate(run):
            if not line.startswith(_KIND, len(self.head)) or line[at : at + 2] in SETTINGS_KINDS:
                is_stored, title = self.settings.note(line)
                if title is not None:
                    shown = self.row.title if self.row.renamed else title
                    self.row = msgspec.structs.replace(self.row, title=shown, agent_title=title)
                    self.hub.feed.changed(self)
                if self.row.renamed:
                    run[place] = with_title(line, self.row.title)
                if is_stored:
                    self.save()
        self._record(self.requests.shown(run))

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
        self._batch_at = round(time.time(), 3)
        try:
            self.hub.journal.store(self._lease, self._batch, self._committed, self._batch_at)
        except StaleLease as error:
            batch, self._batch = self._batch, []
            self._not_stored(batch, error)

    def _committed(self, number: int, error: BaseException | None) -> None:
        batch, self._batch = self._batch, []
        if self._batch_done is not None and not self._batch_done.done():
            self._batch_done.set_result(None)  # what waits for it goes on in a later turn of the loop
        if error is not None:
            self._not_stored(batch, error)
            return
        self.is_failing = False
        run = EventRun(self.last + 1, batch, self._batch_at)
        self.last = run.last
        for attachment in tuple(self.attachments):
            try:
                attachment.show(run)
            except Exception:  # the others get it all the same, and this one from the journal when it comes back
                _log.exception("an event of session `%s` could not be shown", self.id)
                attachment.client.close_soon("an event could not be shown to it")
        while self._thens and self._thens[0][0] <= self.last:
            self._thens.popleft()[1]()
        self._progressed()
        self._commit()
        self.agent.stored(sum(map(len, batch)))

    def _not_stored(self, batch: list[bytes], error: BaseException) -> None:
        """Keep what could not be stored, and try again; unless the session is not ours any more."""
        self._waiting = batch + self._waiting
        if isinstance(error, StaleLease | NoSuchSession | asyncio.CancelledError):
            self._drop_waiting()
            if isinstance(error, StaleLease) and self.hub.moves is not None:
                self.hub.moves.lose(self)
            self.hub.forget(self)
        if self.is_over:
            return  # `_store_rest` tries once more
        _log.error("events of session `%s` cannot be stored, they are tried again: %s", self.id, error)
        self._row_changed = True  # a row that was to be stored in the same commit was not
        self.turns.not_stored(error)
        if not self.is_failing and self._waiting:
            self.is_failing = True
            for attachment in self.attachments:
                attachment.tell(*_NOT_STORED)
        asyncio.get_running_loop().call_later(RETRY, self._commit)

    def drop_last(self, count: int) -> None:
        """Forget the last events. None of them is stored or being stored."""
        self.agent.stored(sum(map(len, self._waiting[-count:])))
        del self._waiting[-count:]
        while self._thens and self._thens[-1][0] > self.recorded:
            self._thens.pop()
        for attachment in tuple(self.attachments):
            attachment.drop_after(self.recorded)
        self._progressed()

    # Clients.

    def attach(self, client: "RemoteClient", cursor: int, *, replay: bool = False) -> SessionAttachment:
        """Add a client after an event; `start` of what is returned begins to send.

        A client that was attached is still asked what it was asked, and gets its responses after the events before them.
        One that has left meanwhile follows nothing, and neither does one whose session is over.
        """
        if client.closed.is_set() or self.is_over:
            attachment = SessionAttachment(client, self, cursor)
            attachment.end()
            asyncio.get_running_loop().call_soon(self.release_if_idle)
            return attachment
        before = client.attachments.get(self.id)
        if before is not None:
            before.session.attachments.remove(before)
        attachment = SessionAttachment(client, self, cursor, replay=replay, before=before)
        self.attachments.append(attachment)
        client.attachments[self.id] = attachment
        client.closed_sessions.pop(self.id, None)
        return attachment

    def detach(self, client: "RemoteClient") -> None:
        """Remove a client. Its prompts go on."""
        attachment = client.attachments.get(self.id)
        if attachment is not None and attachment.session is self:
            del client.attachments[self.id]
            attachment.end()
            self.attachments.remove(attachment)
            self.requests.client_left(client)

    def detach_all(self) -> None:
        """Remove all clients."""
        for attachment in tuple(self.attachments):
            self.detach(attachment.client)

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
        self.link = None
        self.requests.agent_lost()

    def release_if_idle(self) -> None:
        """Leave memory if nothing goes on and no process has the session open."""
        if not self.in_use and not self.is_over and not self.is_open:
            self.hub.forget(self)

    def end(self, error: ErrorObject, *, keep: bool = True) -> None:
        """End in memory: clients are detached, prompts that wait are answered, nothing is recorded any more.

        `released` is set when the last events are stored; without `keep` they are dropped.
        """
        if self.is_over:
            return
        self.requests.record_ends()
        self.is_over = True
        self.hub.opened[self.opened_by] -= 1
        if not self.hub.opened[self.opened_by]:
            del self.hub.opened[self.opened_by]
        self.hub.quotas.session_closed(self.opened_by)
        self.turns.end_all(error)
        self.detach_all()
        self.requests.agent_lost()
        lease, self._lease = self._lease, None
        for _, then in self._thens:
            then()
        self._thens.clear()
        self._progressed()
        if lease is None or not keep:
            self._drop_waiting()
        elif self._row_changed:
            self.hub.rows.save(self.row)
        if lease is None:
            self.released.set()
        else:
            self.hub.run(self._store_rest(lease, keep=keep), to_the_end=True)

    async def _store_rest(self, lease: Lease, *, keep: bool) -> None:
        """Store the last events behind those that are being stored now, and only then release the lease."""
        try:
            if self._batch:
                self._batch_done = asyncio.get_running_loop().create_future()
                await self._batch_done
            if self._waiting and keep:
                await self._append_rest(lease)
        except AcpError as error:
            _log.error("the last events of session `%s` were not stored: %s", self.id, error)
        finally:
            self._drop_waiting()
            await self.hub.journal.release(lease)
            self.released.set()

    async def _append_rest(self, lease: Lease) -> None:
        for _ in range(LAST_TRIES):
            try:
                await self.hub.journal.append(lease, self._waiting, round(time.time(), 3))
                return
            except (StaleLease, NoSuchSession):
                raise
            except AcpError:
                await asyncio.sleep(RETRY)
        await self.hub.journal.append(lease, self._waiting, round(time.time(), 3))

    def _drop_waiting(self) -> None:
        self.agent.stored(sum(map(len, self._waiting)))
        self._waiting = []

    async def settled(self) -> None:
        """Wait until all that is recorded now is stored and shown, or dropped."""
        goal = self.recorded
        while self.last < min(goal, self.recorded) and not self.is_over:
            if self._progress is None:
                self._progress = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._progress)

    def _progressed(self) -> None:
        if self._progress is not None:
            self._progress.set_result(None)
            self._progress = None

    def save(self, change: Callable[[HubSettings], None] | None = None) -> None:
        """Store the row as it is now, with the settings, in one commit with what is recorded next.

        `change` changes them before, as a response says. Those that are others then become events, so that no client believes the old ones.
        """
        before = None if change is None else HubSettings(self.settings.stored())
        if change is not None:
            change(self.settings)
        self.row = msgspec.structs.replace(self.row, state=self.settings.stored())
        self._row_changed = True
        self._commit()
        for update in () if before is None else self.settings.updates_since(before):
            self.record(notification("session/update", {"sessionId": self.id, "update": update}))
