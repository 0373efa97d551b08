"""A transport to a remote agent that outlives its connections: what a client sees is one agent that is sometimes slow.

With a gateway at the other end, which numbers the events of sessions, nothing is lost and nothing is seen twice:

Rule 1: after a lost connection another one is opened, with growing delays, and each session is attached after the last event seen.
Rule 2: a prompt gets its response on whichever connection the end of its turn arrives. One whose turn has begun is never sent again; one
that the server does not know is.
Rule 3: a request of the agent that waits at the server is shown to the client once. An answer that may have been lost is sent again.
Rule 4: while there is no connection, requests wait for `WAIT_TIMEOUT` seconds, then get an error. Others that were under way get an error at
once, unless they can be sent twice without harm.
Rule 5: what waits, or is sent again, is sent in the order in which the client sent it. A prompt that is cancelled before the server has it
is answered here, and never sent.

Any other agent is initialized again, and its sessions are resumed or loaded; prompts that were under way get an error.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from antiphon.errors import AcpError, Code, ConnectionClosed, LocalProtocolError, RequestError, sentence_and_hint
from antiphon.protocol.v1.opt_in import is_unwanted, unwanted_updates
from antiphon.remote.connection import ServerConnection, closed_by
from antiphon.remote.held import HeldMessage, HeldMessages
from antiphon.remote.messages import OPENING, MessagePaths
from antiphon.remote.numbers import with_own_numbers
from antiphon.remote.paths import PathMap
from antiphon.remote.requests import ForwardedRequests
from antiphon.remote.sessions import (
    CANCELLED,
    Attached,
    EditorRequest,
    FollowedSession,
    MessageMark,
    ServerOffer,
    error_code,
    error_member,
    failed_member,
    follow,
    hello_frame,
    lost_member,
    mark_of,
    notification_frame,
    outcome_of,
    refusal_of,
    request_frame,
    wants_numbers,
)
from antiphon.rpc.envelope import RequestId
from antiphon.rpc.spans import replaced, values_of, with_value
from antiphon.transports.base import JITTER, Transport
from antiphon.transports.remote import OPEN_TIMEOUT, MessageHead, RemoteAddress, head_of, wants_token

__all__ = ["AWAY_TIMEOUT", "WAIT_TIMEOUT", "RemoteLink"]

DELAYS: Final = (1, 2, 4, 8, 16, 30)
"""Seconds before each try to connect again; the last for all that follow. The client may be there for days."""

WAIT_TIMEOUT: Final = 30.0
"""Seconds that a request waits for a connection."""

AWAY_TIMEOUT: Final = 600.0
"""Seconds without a connection after which a prompt that runs at the server gets an error here."""

_REPEATABLE: Final = frozenset(
    {"initialize", "session/list", "session/set_mode", "session/set_model", "session/set_config_option"}
)
"""Requests that do the same when they are sent twice."""

_log = logging.getLogger(__name__)


class RemoteLink(Transport):
    """The agent's end for a client of this machine, over one connection after the other."""

    routed = True

    def __init__(
        self,
        address: RemoteAddress,
        maps: PathMap,
        *,
        report: Callable[[str], None] = lambda _: None,
        delays: Sequence[float] = DELAYS,
        wait_timeout: float = WAIT_TIMEOUT,
        first: Transport | None = None,
        offers_files: bool = False,
    ) -> None:
        super().__init__()
        self._address = address
        self._paths = MessagePaths(maps, address.name, is_mapped=first is None)
        self._requests = ForwardedRequests(self._paths, self._forward, self._deliver, report, offers_files=offers_files)
        self._report = report
        self._delays = delays
        self._first = first
        self._passes_loss = first is not None
        """Whether the end of a connection to a server that numbers no events ends the link: its client was opened for it."""
        self._connection: ServerConnection | None = None
        self._generation = 0
        self._is_live = False
        """Whether what the client sends can be forwarded."""
        self._why: AcpError = ConnectionClosed("not connected yet")
        """Why there is no connection."""
        self._hello: bytes | None = None
        self.wants_numbers = False
        """Whether the client itself asked for the numbers of events."""
        self._unwanted: frozenset[str] = frozenset()
        """The kinds of update that the client did not ask for."""
        self._offer = ServerOffer()
        self._sessions: dict[str, FollowedSession] = {}
        self._open: dict[bytes, EditorRequest] = {}
        self._held = HeldMessages(wait_timeout, self._expire)
        self._away: asyncio.TimerHandle | None = None
        self._calls: dict[bytes, Callable[[MessageHead], None]] = {}
        """Our own requests that wait for their response."""
        self._last_id = 0
        self._paused = False
        self._room = asyncio.Event()
        """Set when there is a connection, or less waits for one."""
        self._tasks: set[asyncio.Task[None]] = set()

    # The connection.

    def _start_reading(self) -> None:
        self._tasks.add(asyncio.ensure_future(self._keep()))

    async def _keep(self) -> None:
        """Hold a connection to the server for as long as this transport is open."""
        tries = 0
        while self.lost is None:
            try:
                transport, self._first = self._first or await self._address.open(), None
                tries = 0 if await self._use(transport) else tries
            except AcpError as error:
                self._why = error
            except Exception as error:  # a bug of ours must not leave the client waiting for ever
                _log.exception("the link to `%s` failed", self._address.name)
                self._why = LocalProtocolError(f"the link failed: {error!r}", hint="report this as a bug")
            if self.lost is None:
                if self._why.recoverable is False:
                    self._fail(self._why)
                    return
                wanted = self._why.retry_after if isinstance(self._why, ConnectionClosed) else 0.0
                delay = max(self._delays[min(tries, len(self._delays) - 1)], wanted) * (1 + random.random() * JITTER)  # noqa: S311 - no secret
                self._report(f"{sentence_and_hint(self._why)[0]}; trying again in {delay:.0f} s")
                tries += 1
                await asyncio.sleep(delay)

    async def _use(self, transport: Transport) -> bool:
        """Use a connection until it is lost. Whether it could be used at all.

        Raises:
            AcpError: the server did not let us go on where we were.
        """
        self._generation += 1
        self._requests.generation = self._generation
        connection = self._connection = ServerConnection(self, transport)
        try:
            transport.attach(connection)
            if self._paused:
                transport.pause()
            await self._establish(connection)
            if not connection.ended.is_set():
                self._go_live()
            await connection.ended.wait()
            self._why = connection.error or self._why
            return True
        finally:
            if self._passes_loss and not self._offer.numbers:
                self._lose(closed_by(connection.error or self._why))
                self._room.set()
            connection.is_over = True
            self._connection = None
            self._is_live = False
            self._calls.clear()
            self._interrupted()
            await transport.close()

    async def _establish(self, connection: ServerConnection) -> None:
        """Initialize a connection that takes the place of another, and open the sessions there again.

        Raises:
            AcpError: the server refused, the connection was lost, or nothing more arrived.
        """
        if self._hello is None:
            return
        connection.awaits = 1
        self._call(self._hello, lambda head: self._greeted(connection, head))
        while True:
            connection.is_silent = True
            with suppress(TimeoutError):
                async with asyncio.timeout(OPEN_TIMEOUT):
                    await asyncio.shield(connection.established)
                    return
            if connection.is_silent and not self._paused:
                raise ConnectionClosed(f"`{self._address.name}` did not open the sessions again")

    def _greeted(self, connection: ServerConnection, head: MessageHead) -> None:
        """Handle the response to our own `initialize`."""
        self._initialized(head)
        if isinstance(head.result, UnsetType):
            connection.end(refusal_of(head.error))
            return
        for request in (*self._open.values(),):
            if request.name and not self._offer.numbers:
                self._finish(request, self._lost_error("another server has taken its place"))
        for session in self._sessions.values():
            self._open_again(connection, session)
        connection.one_less()

    def _initialized(self, head: MessageHead) -> None:
        if not isinstance(head.result, UnsetType):
            self._offer = ServerOffer.read(bytes(head.result))
            self._paths.roots = self._offer.roots
            if self._offer.wants_token and self._connection is not None:
                self._connection.end(wants_token(self._address.name))
                return
        for request in [each for each in self._open.values() if each.method == "initialize"]:
            self._finish(request, with_own_numbers(outcome_of(head), self.wants_numbers))

    def _open_again(self, connection: ServerConnection, session: FollowedSession) -> None:
        """Attach to a session, or have the agent open it."""
        if self._offer.numbers:
            connection.awaits += 1
            params = {"sessionId": session.id, "after": session.last}
            attach = request_frame("_antiphon/session/attach", params)
            self._call(attach, lambda head: self._attached(connection, session, head))
            return
        method = "session/resume" if self._offer.resumes else "session/load" if self._offer.loads else ""
        if not method:
            return

        def opened(head: MessageHead) -> None:
            session.is_replaying = False
            connection.one_less()

        connection.awaits += 1
        session.is_replaying = True
        params_of_session = with_value(session.opening, ("sessionId",), msgspec.json.encode(session.id))
        self._call(request_frame(method, Raw(params_of_session)), opened)

    def _attached(self, connection: ServerConnection, session: FollowedSession, head: MessageHead) -> None:
        found = Attached.read(head.result)
        if found is not None:
            session.target, session.known = found.number, frozenset(found.prompts)
            session.waiting = frozenset(found.requests)
            self._catch_up(connection, session)
            return
        error = refusal_of(head.error)
        if error.recoverable and error_code(head.error) != Code.SESSION_EXPIRED:
            connection.end(error)
            return
        # It was deleted, or cannot be read. The others go on.
        self._report(f"session `{session.id}` was not opened again: {sentence_and_hint(error)[0]}")
        self._sessions.pop(session.id, None)
        self._requests.only(session.id, [])
        for request in self._prompts_of(session.id):
            self._finish(request, outcome_of(head))
        connection.one_less()

    def _catch_up(self, connection: ServerConnection, session: FollowedSession) -> None:
        """Once all that the server knows of a session is seen: send the prompts that it does not know again, unless they were cancelled."""
        if session.target is None or session.last < session.target:
            return
        session.target = None
        self._requests.only(session.id, session.waiting)
        for request in [each for each in self._prompts_of(session.id) if each.generation]:
            is_known = request.has_begun or request.name in session.known
            if is_known and request.cancellation is not None:
                self._held.hold(request.cancellation)
            elif request.cancellation is not None:
                self._finish(request, CANCELLED)
            elif not is_known:
                self._held.hold_request(request)
        connection.one_less()

    def _go_live(self) -> None:
        if self._away is not None:
            self._away.cancel()
            self._away = None
            self._report(f"connected to `{self._address.name}` again")
        self._is_live = True
        while self._held and self._is_live:
            message = self._held.take()
            if message.request is not None:
                self._send(message.request)
            elif not message.cancels or any(self._open.get(each.key) is each for each in message.cancels):
                self._forward(message.frame, message.session_id)
        self._room.set()

    def _interrupted(self) -> None:
        """Decide about what was under way when the connection was lost."""
        if self.lost is not None:
            return
        if self._away is None and self._hello is not None:
            self._away = self.loop.call_later(AWAY_TIMEOUT, self._give_up_prompts)
        for session in (*self._sessions.values(),):
            session.loads = 0
            session.target = None
            if not session.is_open:
                del self._sessions[session.id]
        for request in (*self._open.values(),):
            if not request.generation:
                continue
            if request.outcome:
                self._finish(request, request.outcome)
            elif request.name and request.session_id in self._sessions:
                continue  # its turn goes on at the server
            elif request.method in _REPEATABLE:
                self._held.hold_request(request)
            else:
                self._finish(request, self._lost_error("the connection was lost before the response came"))
        self._requests.interrupted()

    def _give_up_prompts(self) -> None:
        for request in (*self._open.values(),):
            self._finish(request, self._lost_error("the turn goes on there: load the session again to see it"))

    def _lost_error(self, what: str) -> bytes:
        return lost_member(self._address.name, self._why, what)

    def _fail(self, error: AcpError) -> None:
        """End for good: another try would not help."""
        for request in (*self._open.values(),):
            self._finish(request, failed_member(error))
        self._room.set()
        self._lose(closed_by(error))

    def connection_ended(self) -> None:
        """Handle the end of the connection: what the client sends from now on waits."""
        self._is_live = False

    # What the client sends.

    def route(self, frame: bytes, session_id: str | None, answers: RequestId | UnsetType) -> None:
        """Take a frame of the client: a request, a notification, or the response to a request of the agent."""
        if not isinstance(answers, UnsetType):
            self._requests.answer(frame, answers)
            return
        head = head_of(frame)
        if head is None or not head.name:
            self._put(frame, session_id)
        elif not head.key:
            self._notification(frame, session_id, head)
        else:
            self._request(frame, session_id, head)

    def _request(self, frame: bytes, session_id: str | None, head: MessageHead) -> None:
        request = EditorRequest(head.key, head.name, session_id, frame, self._held.next_place())
        self._open[request.key] = request
        try:
            request.frame = self._paths.to_remote(frame, head.name)
        except RequestError as error:
            self._finish(request, error_member(error))
            return
        if head.name == "initialize":
            self.wants_numbers = wants_numbers(head.params)
            self._unwanted = unwanted_updates(head.params)
            request.frame = self._hello = hello_frame(request.frame, offers_files=self._requests.offers_files)
        elif head.name in OPENING:
            request.cwd = mark_of(head.params).cwd
        if self._is_live:
            self._send(request)
        else:
            self._held.hold_request(request)

    def _send(self, request: EditorRequest) -> None:
        """Send a request on the connection that there is."""
        request.generation = self._generation
        if request.method == "session/prompt" and self._offer.numbers and not request.name:
            request.give_name()
        if request.method == "session/load" and request.session_id is not None:
            session = self._sessions.setdefault(request.session_id, FollowedSession(request.session_id))
            session.loads += 1
        self._forward(request.frame, request.session_id)

    def _expire(self, request: EditorRequest) -> None:
        self._finish(request, self._lost_error("the request was not sent"))
        self._room.set()

    def _notification(self, frame: bytes, session_id: str | None, head: MessageHead) -> None:
        if head.name == "session/cancel" and session_id is not None:
            self._cancel(frame, session_id, [each for each in self._open.values() if each.prompts(session_id)])
        elif head.name == "$/cancel_request":
            named = mark_of(head.params).request_id
            request = None if isinstance(named, UnsetType) else self._open.get(bytes(named))
            if request is not None:
                self._cancel_request(frame, request)
        else:
            with suppress(RequestError):
                frame = self._paths.to_remote(frame, head.name)
            self._put(frame, session_id)

    def _cancel_request(self, frame: bytes, request: EditorRequest) -> None:
        """Cancel a request. A prompt that was sent on another connection is known to the server by its session alone."""
        if not request.generation:
            self._finish(request, error_member(RequestError(Code.REQUEST_CANCELLED, "Request cancelled")))
        elif request.name and request.session_id is not None:
            cancel = notification_frame("session/cancel", {"sessionId": request.session_id})
            self._cancel(
                cancel, request.session_id, [request], frame if request.generation == self._generation else b""
            )
        elif self._is_live:
            self._forward(frame, request.session_id)

    def _cancel(self, frame: bytes, session_id: str, prompts: list[EditorRequest], now: bytes = b"") -> None:
        """Cancel prompts of a session. Those that were never sent are answered here. `now` is sent instead if there is a connection."""
        sent = tuple(each for each in prompts if each.generation)
        cancellation = HeldMessage(self._held.next_place(), frame, session_id, None, sent)
        for request in prompts:
            request.cancellation = cancellation
            if not request.generation:
                self._finish(request, CANCELLED)
        if self._is_live:
            self._forward(now or frame, session_id)
        elif sent or not prompts:
            self._held.hold(cancellation)

    def _put(self, frame: bytes, session_id: str | None) -> None:
        """Send a frame that is no request, now or when there is a connection."""
        if self._is_live:
            self._forward(frame, session_id)
        else:
            self._held.hold(HeldMessage(self._held.next_place(), frame, session_id))

    def _forward(self, frame: bytes, session_id: str | None, answers: RequestId | UnsetType = UNSET) -> None:
        if self._connection is None:
            return
        transport = self._connection.transport
        if transport.routed:
            transport.route(frame, session_id, answers)
            return
        transport.out += frame
        transport.out += b"\n"
        transport.flush_soon()

    def _call(self, frame: bytes, then: Callable[[MessageHead], None]) -> None:
        """Send a request of our own. `then` is called with the response, before what comes after it is looked at."""
        self._last_id += 1
        id = b'"antiphon-%d"' % self._last_id
        self._calls[id] = then
        frame = replaced(frame, [(span, id) for span in values_of(frame, "id")])
        self._forward(frame, mark_of((head_of(frame) or MessageHead()).params).session_id or None)

    # What the server sends.

    def line_received(self, line: bytes) -> bytes | None:
        """Return what the client gets for a message of the server; None: nothing."""
        head = head_of(line)
        if head is None:
            return line
        if not head.name:
            return self._response(line, head)
        mark = mark_of(head.params)
        session = self._sessions.get(mark.session_id)
        numbers = self._offer.numbers
        number = mark.number_of(head.name) if numbers else 0
        if session is not None and ((session.is_replaying and not head.key) or (number and not session.takes(number))):
            return None
        if head.key:
            found = self._requests.receive(line, head, mark, mark.waiting if numbers else "")
        else:
            found = self._event(line, head, mark, session)
        if session is not None and number and self._connection is not None:
            self._catch_up(self._connection, session)
        return found

    def _event(
        self, line: bytes, head: MessageHead, mark: MessageMark, session: FollowedSession | None
    ) -> bytes | None:
        """A notification. What only a client with numbers understands is for us."""
        if head.name == "$/cancel_request":
            return self._requests.cancelled(line, mark)
        if not self._offer.numbers:
            return self._to_client(line, head.name)
        if head.name.startswith("_antiphon/"):
            self._about_session(head.name, mark)
            return line if self.wants_numbers else None
        own = mark.own_prompt
        if own and not self.wants_numbers and session is not None and not session.loads and self._prompt_named(own):
            return None  # the client has shown its own message
        if mark.number_of(head.name) and not self.wants_numbers and is_unwanted(line, self._unwanted):
            return None
        return self._to_client(line, head.name)

    def _about_session(self, method: str, mark: MessageMark) -> None:
        request = self._prompt_named(mark.prompt)
        if method == "_antiphon/session/turn_started" and request is not None:
            request.has_begun = True
        elif method == "_antiphon/session/turn_ended" and request is not None:
            request.outcome = mark.outcome or error_member(RequestError(Code.INTERNAL_ERROR, "the turn has ended"))
            if request.generation != self._generation:
                self._finish(request, request.outcome)
        elif method == "_antiphon/session/resolved":
            self._requests.resolved(mark)

    def _response(self, line: bytes, head: MessageHead) -> bytes | None:
        call = self._calls.pop(head.key, None)
        if call is not None:
            call(head)
            return None
        request = self._open.get(head.key)
        if request is None:
            return line  # it answers nothing that is open: the bridge reports it
        if request.method == "initialize":
            self._initialized(head)
            return None
        del self._open[head.key]
        if isinstance(head.result, UnsetType):
            return self._refused(line, request, head.error)
        follow(self._sessions, request, mark_of(head.result))
        return self._to_client(line, request.method)

    def _refused(self, line: bytes, request: EditorRequest, error: Raw | UnsetType) -> bytes:
        """An error of the server. One about a directory that is not there names the directories that are."""
        session = self._sessions.get(request.session_id or "")
        if session is not None and request.method == "session/load":
            session.loads = max(0, session.loads - 1)
            if not session.loads and not session.is_open:
                del self._sessions[session.id]
        if request.cwd and error_code(error) == Code.INVALID_PARAMS and self._paths.is_outside(request.cwd):
            return b'{"jsonrpc":"2.0","id":%b,%b}' % (request.key, error_member(self._paths.refusal(request.cwd)))
        return line

    def _to_client(self, line: bytes, method: str) -> bytes:
        try:
            return self._paths.to_local(line, method)
        except RequestError:
            return line  # what cannot be read is the client's to judge

    def _finish(self, request: EditorRequest, outcome: bytes) -> None:
        """Answer a request of the client ourselves."""
        self._held.remove(request)
        if self._open.pop(request.key, None) is not None:
            self._deliver(b'{"jsonrpc":"2.0","id":%b,%b}' % (request.key, outcome))

    def _deliver(self, frame: bytes) -> None:
        if self._connection is not None and self._connection.gathered is not None:
            self._connection.gathered += frame + b"\n"
        elif self.sink is not None:
            self.sink.block_received(frame + b"\n")

    def _prompts_of(self, session_id: str) -> list[EditorRequest]:
        return [each for each in self._open.values() if each.name and each.session_id == session_id]

    def _prompt_named(self, name: str) -> EditorRequest | None:
        return next((each for each in self._open.values() if name and each.name == name), None)

    # The transport.

    @property
    def unsent(self) -> int:
        return self._held.size + (self._connection.transport.unsent if self._connection is not None else 0)

    def flush(self) -> None:
        if self._connection is not None:
            self._connection.transport.flush()

    async def drain(self) -> None:
        if self.lost is None and (self._connection is None or not self._is_live):
            self._room.clear()
            await self._room.wait()
        elif self._connection is not None:
            with suppress(ConnectionClosed):
                await self._connection.transport.drain()
        if self.lost is not None:
            raise self.lost

    def pause(self) -> None:
        self._paused = True
        if self._connection is not None:
            self._connection.transport.pause()

    def resume(self) -> None:
        self._paused = False
        if self._connection is not None:
            self._connection.transport.resume()

    async def close(self) -> None:
        self._lose(ConnectionClosed("the connection is closed"))
        self._room.set()
        self._held.close()
        if self._away is not None:
            self._away.cancel()
        for task in (*self._tasks,):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._first is not None:  # it was never used
            await self._first.close()
