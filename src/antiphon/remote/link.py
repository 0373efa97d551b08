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
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from antiphon.codes import FIND_OWNER
from antiphon.errors import AcpError, Code, ConnectionClosed, RequestError, sentence_and_hint
from antiphon.protocol.v1.opt_in import is_unwanted, unwanted_updates
from antiphon.remote.connection import ServerConnection, closed_by
from antiphon.remote.held_messages import HeldMessage, HeldMessages
from antiphon.remote.messages import OPENING, MessagePaths
from antiphon.remote.numbers import with_own_numbers, without_numbers
from antiphon.remote.paths import PathMap
from antiphon.remote.reconnection import DELAYS, LinkAddress, ReconnectingTransport
from antiphon.remote.requests import ForwardedRequests
from antiphon.remote.sessions import (
    ATTACH,
    CANCELLED,
    DETACH,
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
from antiphon.transports.base import Transport
from antiphon.transports.remote import OPEN_TIMEOUT, MessageHead, head_of, wants_token

__all__ = ["AWAY_TIMEOUT", "WAIT_TIMEOUT", "RemoteLink"]

WAIT_TIMEOUT: Final = 30.0
"""Seconds that a request waits for a connection."""

AWAY_TIMEOUT: Final = 600.0
"""Seconds without a connection after which a prompt that runs at the server gets an error here."""

TRIES: Final = 5
"""How often a request is sent whose connections are lost. It may be what ends them."""

_REPEATABLE: Final = frozenset(
    {
        "initialize",
        "session/list",
        "session/resume",
        "session/set_mode",
        "session/set_model",
        "session/set_config_option",
        ATTACH,
        DETACH,
        "_antiphon/session/read",
        "_antiphon/session/changes",
        "_antiphon/session/export",
        "_antiphon/session/files",
        "_antiphon/session/rename",
    }
)
"""Requests that do the same when they are sent twice. So does a load of which nothing has come yet."""


class RemoteLink(ReconnectingTransport):
    """The agent's end for a client of this machine, over one connection after the other."""

    routed = True

    def __init__(
        self,
        address: LinkAddress,
        maps: PathMap,
        *,
        report: Callable[[str], None] = lambda _: None,
        delays: Sequence[float] = DELAYS,
        wait_timeout: float = WAIT_TIMEOUT,
        first: Transport | None = None,
        offers_files: bool = False,
        hello: bytes | None = None,
        ids: Iterator[int] | None = None,
    ) -> None:
        """`hello` is the `initialize` of a client that has its answer already; `ids` counts the ids of the agent's requests there."""
        super().__init__(address, report=report, delays=delays, first=first)
        self._paths = MessagePaths(maps, address.name, is_mapped=first is None)
        self._requests = ForwardedRequests(
            self._paths, self._forward, self._give, report, offers_files=offers_files, ids=ids
        )
        self._is_of_client = first is not None
        """Whether its client was opened for the first connection: to a server that numbers no events, its end is that of the client's own."""
        self._hello: bytes | None = None
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
        if hello is not None:
            self._introduce(hello)

    # The connection.

    def _introduce(self, hello: bytes) -> bytes:
        """Note what the client's `initialize` asks for, and return it as the server gets it."""
        params = (head_of(hello) or MessageHead()).params
        self.wants_numbers = wants_numbers(params)
        self._unwanted = unwanted_updates(params)
        self._hello = hello_frame(hello, offers_files=self._requests.offers_files)
        return self._hello

    def _passes_loss(self) -> bool:
        return self._is_of_client and not self._offer.numbers

    def _waiting(self) -> int:
        return self._held.size

    async def _establish(self, connection: ServerConnection) -> None:
        """Initialize a connection that takes the place of another, and open the sessions there again."""
        self._requests.generation = self._generation
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
            attach = request_frame(ATTACH, params)
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
            session.waiting, session.queue = frozenset(found.requests), bytes(found.queue)
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
        if self.wants_numbers:
            queue = {"sessionId": session.id, "queue": Raw(session.queue)}
            self._give(notification_frame("_antiphon/session/queue", queue), session.id)
        for request in [each for each in self._prompts_of(session.id) if each.generation]:
            is_known = request.has_begun or request.name in session.known
            if is_known and request.cancellation is not None:
                self._held.hold(request.cancellation)
            elif request.cancellation is not None:
                self._finish(request, CANCELLED)
            elif not is_known:
                self._held.hold_request(request)
        self._caught_up(session)
        connection.one_less()

    def _caught_up(self, session: FollowedSession) -> None:
        """Handle that the client has all events that the server had when the session was attached again."""

    def _go_live(self) -> None:
        if self._away is not None:
            self._away.cancel()
            self._away = None
            self._report(f"connected to `{self._address.name}` again")
        self._is_live = True
        while self._is_live and (message := self._held.take(self._is_taken)) is not None:
            if message.request is not None:
                self._send(message.request)
            elif not message.cancels or any(self._open.get(each.key) is each for each in message.cancels):
                self._forward(message.frame, message.session_id)
        self._room.set()

    def _is_taken(self, message: HeldMessage) -> bool:
        """Whether the server that there is now takes a message. What it does not take goes on waiting."""
        return True

    def _interrupted(self) -> None:
        """Decide about what was under way when the connection was lost."""
        self._calls.clear()
        if self.lost is not None:
            return
        if self._away is None and self._hello is not None:
            self._away = self.loop.call_later(AWAY_TIMEOUT, self._give_up_prompts)
        for request in (*self._open.values(),):
            if not request.generation:
                continue
            if request.outcome:
                self._finish(request, request.outcome, request.number)
            elif request.name and self._follows(request.session_id):
                continue  # its turn goes on at the server
            elif self._is_repeatable(request):
                self._held.hold_request(request)
            else:
                self._finish(request, self._lost_error("the connection was lost before the response came"))
        for session in (*self._sessions.values(),):
            session.loads = session.rewinds = 0
            session.target = None
            if not session.is_open:
                del self._sessions[session.id]
        self._requests.interrupted()

    def _is_repeatable(self, request: EditorRequest) -> bool:
        """Whether a request whose connection was lost does the same when it is sent again."""
        is_untouched = request.method == "session/load" and not request.has_begun
        return (request.method in _REPEATABLE or is_untouched) and request.tries < TRIES

    def _give_up_prompts(self) -> None:
        for request in (*self._open.values(),):
            self._finish(request, self._lost_error("the turn goes on there: load the session again to see it"))

    def _lost_error(self, what: str) -> bytes:
        return lost_member(f"`{self._address.name}`", self._why, what)

    def _fail(self, error: AcpError) -> None:
        """End for good: another try would not help."""
        for request in (*self._open.values(),):
            self._finish(request, failed_member(error))
        self._room.set()
        self._lose(closed_by(error))

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
            request.frame = self._introduce(request.frame)
        elif head.name in OPENING:
            request.cwd = mark_of(head.params).cwd
        if self._is_live and self._is_taken(HeldMessage(request.order, request.frame, session_id, request)):
            self._send(request)
        else:
            self._held.hold_request(request)

    def _send(self, request: EditorRequest) -> None:
        """Send a request on the connection that there is."""
        request.generation = self._generation
        request.tries += 1
        if request.method == "session/prompt" and self._offer.numbers:
            if not request.name:
                request.give_name()
            self._follow_prompted(request.session_id)
        if request.method == "session/load" and request.session_id is not None:
            session = self._sessions.setdefault(request.session_id, FollowedSession(request.session_id))
            session.loads += 1
            session.again = 0
        self._forward(request.frame, request.session_id)

    def _follow_prompted(self, session_id: str | None) -> None:
        """Attach to a session that the client did not open: the server sends its events from a prompt on, and we have to know their numbers."""
        opens = (*OPENING, ATTACH)
        if session_id is None or session_id in self._sessions:
            return
        if any(each.session_id == session_id and each.method in opens for each in self._open.values()):
            return

        def attached(head: MessageHead) -> None:
            found = Attached.read(head.result)
            if found is None:
                del self._sessions[session_id]  # the prompt gets the error
            else:
                session.first = session.last = found.after
                session.is_open = True

        session = self._sessions[session_id] = FollowedSession(session_id)
        self._call(request_frame(ATTACH, {"sessionId": session_id}), attached)

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

    def line_received(self, line: bytes) -> None:
        """Take a message of the server, and give the client what it is for it."""
        head = head_of(line)
        if head is None:
            self._give(line)
            return
        if not head.name:
            self._response(line, head)
            return
        mark = mark_of(head.params)
        session = self._sessions.get(mark.session_id)
        numbers = self._offer.numbers
        number = mark.number_of(head.name) if numbers else 0
        if session is not None and not self._is_new(session, head, mark, number):
            return
        if head.key:
            found = self._requests.receive(line, head, mark, mark.waiting if numbers else "")
            if found is not None:
                self._give_line(found, mark.session_id or None, number=number)
        else:
            self._event(line, head, mark, session, number)
        if session is not None and number and self._connection is not None:
            self._catch_up(self._connection, session)

    def _is_new(self, session: FollowedSession, head: MessageHead, mark: MessageMark, number: int) -> bool:
        """Whether the client has not seen a message of a session. Its event is then counted as seen."""
        if session.is_replaying and not head.key:
            return False
        if number and session.loads:
            for request in self._open.values():
                if request.method == "session/load" and request.session_id == session.id:
                    request.has_begun = True
        return not number or session.takes(number)

    def _event(
        self, line: bytes, head: MessageHead, mark: MessageMark, session: FollowedSession | None, number: int
    ) -> None:
        """A notification. What only a client with numbers understands is for us."""
        session_id = mark.session_id or None
        if head.name == "$/cancel_request":
            cancelled = self._requests.cancelled(line, mark)
            if cancelled is not None:
                self._give(cancelled)
            return
        if self._offer.numbers and head.name.startswith("_antiphon/"):
            self._about_session(head.name, mark, number)
            if self.wants_numbers:
                self._give(line, session_id, number=number)
            return
        if self._offer.numbers and not self.wants_numbers:
            own = mark.own_prompt
            if own and session is not None and not session.loads and self._prompt_named(own):
                return  # the client has shown its own message
            if number and is_unwanted(line, self._unwanted):
                return
        self._give_line(self._to_client(line, head.name), session_id, number=number)

    def _about_session(self, method: str, mark: MessageMark, number: int) -> None:
        request = self._prompt_named(mark.prompt)
        if method == "_antiphon/session/turn_started" and request is not None:
            request.has_begun = True
        elif method == "_antiphon/session/turn_ended" and request is not None:
            request.outcome = mark.outcome or error_member(RequestError(Code.INTERNAL_ERROR, "the turn has ended"))
            request.number = number
            if request.generation != self._generation:
                self._finish(request, request.outcome, number)
        elif method == "_antiphon/session/resolved":
            self._requests.resolved(mark)

    def _response(self, line: bytes, head: MessageHead) -> None:
        call = self._calls.pop(head.key, None)
        if call is not None:
            call(head)
            return
        request = self._open.get(head.key)
        if request is None:
            self._give(line)  # it answers nothing that is open: the bridge reports it
        elif request.method == "initialize":
            self._initialized(head)
        elif isinstance(head.result, UnsetType):
            self._refused(line, request, head.error)
        else:
            self._answered(line, request, mark_of(head.result))

    def _answered(self, line: bytes, request: EditorRequest, mark: MessageMark) -> None:
        """Give the client the result of a request."""
        del self._open[request.key]
        follow(self._sessions, request, mark)
        self._give_line(self._to_client(line, request.method), request.session_id, request.id, mark.event)

    def _refused(self, line: bytes, request: EditorRequest, error: Raw | UnsetType) -> None:
        """An error of the server. One about a directory that is not there names the directories that are."""
        session = self._sessions.get(request.session_id or "")
        if session is not None and request.method == "session/load":
            session.loads = max(0, session.loads - 1)
            if not session.loads and not session.is_open:
                del self._sessions[session.id]
        refusal = refusal_of(error) if FIND_OWNER.encode() in line else None
        if refusal is not None and refusal.action == FIND_OWNER and self._connection is not None:
            self._held.hold_request(request, again=True)  # nothing was done: it is for the next connection
            self._is_live = False
            self._connection.end(refusal)
            return
        del self._open[request.key]
        if request.cwd and error_code(error) == Code.INVALID_PARAMS and self._paths.is_outside(request.cwd):
            line = b'{"jsonrpc":"2.0","id":%b,%b}' % (request.key, error_member(self._paths.refusal(request.cwd)))
        self._give_line(line, request.session_id, request.id, request.number)

    def _to_client(self, line: bytes, method: str) -> bytes:
        try:
            return self._paths.to_local(line, method)
        except RequestError:
            return line  # what cannot be read is the client's to judge

    def _finish(self, request: EditorRequest, outcome: bytes, number: int = 0) -> None:
        """Answer a request of the client ourselves."""
        self._held.remove(request)
        if self._open.pop(request.key, None) is not None:
            frame = b'{"jsonrpc":"2.0","id":%b,%b}' % (request.key, outcome)
            self._give(frame, request.session_id, request.id, number)

    def _give_line(
        self, line: bytes, session_id: str | None, answers: RequestId | UnsetType = UNSET, number: int = 0
    ) -> None:
        """Give the client a message of the server, with the numbers in it if it asked for them."""
        self._give(line if self.wants_numbers else without_numbers(line), session_id, answers, number)

    def _give(
        self, frame: bytes, session_id: str | None = None, answers: RequestId | UnsetType = UNSET, number: int = 0
    ) -> None:
        """Give the client one frame: about a session, as the response to a request, as the event of a number."""
        if self._connection is not None and self._connection.gathered is not None:
            self._connection.gathered += frame + b"\n"
        elif self.sink is not None:
            self.sink.block_received(frame + b"\n")

    def _follows(self, session_id: str | None) -> bool:
        """Whether a session is opened again when its connection is lost."""
        return session_id in self._sessions and self._sessions[session_id].is_open

    def _prompts_of(self, session_id: str) -> list[EditorRequest]:
        return [each for each in self._open.values() if each.name and each.session_id == session_id]

    def _prompt_named(self, name: str) -> EditorRequest | None:
        return next((each for each in self._open.values() if name and each.name == name), None)

    # The end.

    async def close(self) -> None:
        self._held.close()
        if self._away is not None:
            self._away.cancel()
        await super().close()
