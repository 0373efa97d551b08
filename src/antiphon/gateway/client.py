"""One remote connection: the gateway is its agent. Ids of this connection are its own, and what it asks is checked against its role.

A client that leaves ends nothing: its attachments end, its prompts go on.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Final, cast

import msgspec
from msgspec import UNSET, UnsetType

from antiphon.errors import AcpError, Code, ConnectionClosed
from antiphon.gateway.access.messages import REQUESTS, SHARED_METHODS, WHOLE_AGENT, check_spelling, chosen_setting
from antiphon.gateway.agents.link import AgentLink, cancel_frame
from antiphon.gateway.base import AccessRole, Principal
from antiphon.gateway.capabilities import ClientOffer, read_offer
from antiphon.gateway.dialect import OpenCodeDialect
from antiphon.gateway.events import notification, written_id
from antiphon.gateway.methods.extension import ExtensionMethods
from antiphon.gateway.methods.permission import with_facts
from antiphon.gateway.requests import WaitingRequest
from antiphon.gateway.session_methods import SessionMethods
from antiphon.gateway.settings import without_boolean_options
from antiphon.gateway.turns import LATER, RETURNING, error_object, for_role, with_recovery
from antiphon.rpc.envelope import (
    EMPTY,
    ErrorObject,
    Frame,
    Malformed,
    Noise,
    Notification,
    Overlong,
    Request,
    RequestId,
    Response,
    decode,
    error_frame,
    head_of_answer,
)
from antiphon.rpc.peer import CANCEL_REQUEST, FIRST_ID, id_key
from antiphon.rpc.spans import Unreadable, replaced, session_in, values_of
from antiphon.transports.asgi.connections import HttpConnection
from antiphon.transports.asgi.streams import event_place
from antiphon.transports.base import OUTPUT_HIGH, Transport

if TYPE_CHECKING:
    from antiphon.gateway.agents.process import AgentProcess
    from antiphon.gateway.attachment import SessionAttachment
    from antiphon.gateway.session import HubSession
    from antiphon.gateway.turns import HubTurn

__all__ = ["RemoteClient"]

MAX_OPEN: Final = 1000
"""Requests of one connection that may wait for their responses."""

MAX_OWED: Final = 64 * 1024 * 1024
"""Bytes that wait for a client which does not read, beside events. More ends its connection."""

SLICE: Final = 0.005
"""Seconds for which lines of one client are handled before it is the turn of others: one frame may hold a million of them."""

_log = logging.getLogger(__name__)


class RemoteClient:
    """The sink of the transport to one client."""

    def __init__(self, process: "AgentProcess", transport: Transport, principal: Principal) -> None:
        self.id = token_hex(8)
        self.process = process
        self.transport = transport
        self.principal = principal
        self.offer = ClientOffer()
        """What it can show and serve, and what it asked for."""
        self.attachments: dict[str, SessionAttachment] = {}
        self.turns: dict[str, tuple[RequestId, bytes]] = {}
        """The id of the request for each prompt of this connection that runs, and how it was written."""
        self._answered: set[str] = set()
        """Those whose response was sent, over HTTP."""
        self.closed = asyncio.Event()
        self._methods = SessionMethods(self)
        self._extension = ExtensionMethods(self)
        self._initialized = False
        self._answered_once = False
        """Whether `initialize` was answered, with a result or an error: what needs no agent works from then on."""
        self.closed_sessions: dict[str, None] = {}
        """The sessions that it has closed. It has to load or resume one before it uses it again."""
        self._open: dict[object, tuple[AgentLink, bytes] | None] = {}
        """Requests of the client without a response; those that were forwarded, with the id at the agent."""
        self._asked: dict[int, WaitingRequest] = {}
        self._dialect: OpenCodeDialect | None = None
        self._unread: deque[bytes] = deque()
        """Blocks of lines that arrived and are not handled yet. They are not split at once: short lines would take ten times the memory."""
        self._at = 0
        """How much of the first block is handled."""
        self._is_held = False
        """Whether handling them waits for the client or the agent to read."""
        self._owed = 0
        """Bytes that were sent and are no events, since the client was last seen to read."""
        self._last_id = FIRST_ID - 1

    def may(self, role: AccessRole, key: str | None = None) -> bool:
        """Whether it may do what needs this role."""
        return self.principal.may(role, key)

    async def serve(self) -> None:
        """Talk with the client until it leaves."""
        self.process.clients.add(self)
        if isinstance(self.transport, HttpConnection):
            self.transport.stream_opened = self._stream_opened
        try:
            self.transport.attach(self)
            await self.closed.wait()
        finally:
            self._leave()
            await self.transport.close()

    def close_soon(self, why: str) -> None:
        """End the connection: the client may come back."""
        _log.info("the connection of `%s` is closed: %s", self.principal.name, why)
        self.closed.set()

    def connection_lost(self, error: ConnectionClosed) -> None:
        """Handle the end of the connection."""
        self.closed.set()
        self._leave()

    def sent_as(self, link: AgentLink, agent_id: bytes) -> bytes | None:
        """Return the id that a request of this client has here, as it is written, by its id at the agent; None if it is not open."""
        for id, forwarded in self._open.items():
            if forwarded == (link, agent_id):
                return written_id(cast("RequestId", id[1] if isinstance(id, tuple) else id))
        return next((turn.line[slice(*turn.spans[-1])] for turn in self._running() if turn.agent_id == agent_id), None)

    def _running(self) -> "Iterator[HubTurn]":
        turns = (each.session.turns.running for each in self.attachments.values())
        return (turn for turn in turns if turn is not None and turn.client is self)

    def _leave(self) -> None:
        self.closed.set()  # what was on its way for it attaches it no more
        self.process.clients.discard(self)
        self.process.hub.feed.left(self)
        for pending in self._asked.values():
            if pending.session is None:
                self._cannot_answer(pending)
        for attachment in (*self.attachments.values(),):
            attachment.session.detach(self)
            attachment.session.release_if_idle()

    def _stream_opened(self, session_id: str, last_id: str) -> None:
        """Send what comes after the event that the client of a stream has seen last, from the journal."""
        seen = event_place(last_id)
        if seen is None:
            return
        after = seen[0]
        if seen == (0, 0) and (attached := self.attachments.get(session_id)) is not None:
            after = attached.first  # no event of this stream has arrived yet

        def found(session: "HubSession | None") -> None:
            if session is None or not self.may(AccessRole.WATCH, session.key) or after > session.last:
                return
            if isinstance(self.transport, HttpConnection):
                self.transport.rewind(session_id, last_id)
            for id, waiting in (*self._asked.items(),):
                if waiting.session is session and waiting.number > after:  # it was on its way: asked again
                    del self._asked[id]
                    waiting.shown.pop(self, None)
            session.attach(self, after).start()

        self.process.with_session(session_id, found, by=self.principal)

    def ended(self, turn: str, *, replayed: bool) -> tuple[RequestId, bytes] | None:
        """Return the request of a prompt that has ended, unless its response is history.

        Over HTTP a stream that was cut gets the response again, but a session that is loaded does not.
        """
        if not isinstance(self.transport, HttpConnection):
            return self.turns.pop(turn, None)
        while len(self.turns) > MAX_OPEN:
            oldest = next(iter(self.turns))
            self._answered.discard(oldest)
            del self.turns[oldest]
        if turn not in self.turns or (replayed and turn in self._answered):
            return None
        self._answered.add(turn)
        return self.turns[turn]

    def note_closed(self, session_id: str) -> None:
        """Remember that this client has closed a session."""
        self.closed_sessions[session_id] = None
        while len(self.closed_sessions) > MAX_OPEN:
            del self.closed_sessions[next(iter(self.closed_sessions))]

    def caught_up(self, session_id: str) -> None:
        """Send what waited for events of a session that this client does not get again: it has all of them."""
        if isinstance(self.transport, HttpConnection):
            self.transport.caught_up(session_id)

    # What leaves.

    @property
    def takes_blocks(self) -> bool:
        """Whether whole blocks of updates can be sent as they are."""
        return not self.offer.numbers and not self.transport.routed and self._dialect is None

    def put(
        self,
        frame: bytes,
        session_id: str | None = None,
        answers: RequestId | UnsetType = UNSET,
        *,
        number: int | None = None,
    ) -> None:
        """Send one frame. `answers` is the id of the request that it responds to, `number` that of its event."""
        if not isinstance(answers, UnsetType):
            self._open.pop(id_key(answers), None)
        transport = self.transport
        if transport.lost is not None or self.closed.is_set():
            return
        if not self.offer.booleans and b'"boolean"' in frame:
            frame = without_boolean_options(frame)
        if self._dialect is not None:
            frame = self._dialect.sent(frame, session_id, answers, number or 0)
        if not number:
            self._owed += len(frame)
            if self._owed > MAX_OWED and transport.unsent > MAX_OWED:
                self.close_soon("it does not read what is sent to it")
                return
        if isinstance(transport, HttpConnection):
            transport.route(frame, session_id, answers, number or 0)
            return
        transport.out += frame
        transport.out += b"\n"
        transport.flush_soon()

    def put_block(self, block: bytes) -> None:
        """Send whole lines, with those of other sessions that were stored in the same commit."""
        if self.transport.lost is None:
            self.transport.out += block
            self.transport.gather()

    def refuse(
        self,
        request: Request,
        code: int,
        why: str,
        hint: str = "",
        session_id: str | None = None,
        *,
        recovery: Mapping[str, object] | None = None,
    ) -> None:
        """Answer a request with an error. `recovery`: what its data have about another try, where the code does not say it."""
        error = with_recovery(code, why, {**({"hint": hint} if hint else {}), **(recovery or {})})
        self.put(error_frame(request.id, error), session_id, request.id)

    def ask(self, pending: WaitingRequest, number: int, at: float = 0.0) -> bool:
        """Send a request of the agent under an id of this connection. False: this client cannot or may not answer it."""
        if self in pending.shown:
            return True
        if not self.may(AccessRole.DRIVE, pending.key) or not self.offer.shows(pending.form):
            return False
        self._last_id += 1
        id = pending.shown[self] = self._last_id
        self._asked[id] = pending
        frame = replaced(pending.frame, [(span, b"%d" % id) for span in values_of(pending.frame, "id")])
        if self.offer.numbers:
            event = {"number": number, "time": at} if number else {}
            frame = with_facts(frame, {**pending.facts, "request": pending.id, **event}, self.principal)
        self.put(frame, pending.session.id if pending.session is not None else None, number=number)
        return True

    def cancel_request(self, request: str) -> None:
        """Cancel a request that another client has answered, or that is over."""
        for id, pending in (*self._asked.items(),):
            if pending.id == request:
                del self._asked[id]
                self.put(cancel_frame(b"%d" % id))

    # What arrives.

    def block_received(self, block: Frame) -> None:
        """Take whole lines."""
        if self.closed.is_set():
            return
        if isinstance(block, Overlong):
            self._message(decode(block), b"")
            return
        self._unread.append(bytes(block))
        if not self._is_held:
            self._read_on()

    def _read_on(self) -> None:
        """Handle what has arrived, as long as the client reads its responses and the agent reads what it is sent, and for a moment at a time."""
        was_held, self._is_held = self._is_held, False
        loop = asyncio.get_running_loop()
        until = loop.time() + SLICE
        while self._unread and not self.closed.is_set():
            slow = self._slow_reader()
            if slow is not None or loop.time() > until:
                self._is_held = True
                self.transport.pause()
                if slow is not None:
                    slow.when_drained(self._read_on)
                else:
                    loop.call_soon(self._read_on)
                return
            line = self._next_line()
            if line and not line.isspace():
                self._message(decode(line), line)
        if was_held:
            self.transport.resume()

    def _next_line(self) -> bytes:
        """Take the next line of what has arrived."""
        block, begin = self._unread[0], self._at
        end = block.find(b"\n", begin)
        self._at = end + 1
        if end < 0 or self._at == len(block):
            self._unread.popleft()
            self._at = 0
        return block[begin:] if end < 0 else block[begin:end]

    def _slow_reader(self) -> Transport | None:
        """Return the transport that has to be waited for before more is handled. Events do not count: a cancellation must get through."""
        if self._owed > OUTPUT_HIGH:
            if self.transport.unsent >= OUTPUT_HIGH:
                return self.transport
            self._owed = 0
        link = self.process.link
        return link.transport if link is not None and link.transport.unsent > self.process.hub.limits.unsent else None

    async def room(self) -> None:
        """Wait until the client has read enough of its responses for another large one."""
        if self.transport.unsent >= OUTPUT_HIGH:
            with suppress(ConnectionClosed):
                await self.transport.drain()

    def _message(self, message: object, line: bytes) -> None:
        if isinstance(message, Request | Notification | Response) and (why := check_spelling(line)):
            self._misspelled(message, why)
            return
        try:
            message, line = self._in_the_schema(message, line)
            match message:
                case Request():
                    self._request(message, line)
                case Notification():
                    self._notification(message, line)
                case Response():
                    self._response(message, line)
                case Noise():
                    self.put(error_frame(None, ErrorObject(Code.PARSE_ERROR, "Parse error", "not JSON")))
                case Malformed(answerable=True):
                    self.put(error_frame(message.id, message.error), None, message.id)
                case _:
                    pass
        except (Unreadable, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if isinstance(message, Request):
                self.refuse(message, Code.INVALID_REQUEST, f"the message cannot be read: {error}")

    def _misspelled(self, message: Request | Notification | Response, why: str) -> None:
        """Refuse what can be read in two ways. A response is taken for an error: what it was to mean is in doubt."""
        if isinstance(message, Request):
            self.refuse(message, Code.INVALID_REQUEST, why)
        elif isinstance(message, Response):
            error = ErrorObject(Code.INVALID_REQUEST, why)
            self._response(Response(message.id, error=error), error_frame(message.id, error))

    def _in_the_schema(self, message: object, line: bytes) -> tuple[object, bytes]:
        """Return a message in the schema's words. The first one says whether the client uses others."""
        if isinstance(message, Request) and message.method == "initialize" and not self._initialized:
            self._dialect = OpenCodeDialect() if OpenCodeDialect.is_spoken(bytes(message.params)) else None
        return (message, line) if self._dialect is None else self._dialect.received(message, line)

    def _request(self, request: Request, line: bytes) -> None:
        key = id_key(request.id)
        if key in self._open:
            return  # an error under this id would end the first one
        if len(self._open) >= MAX_OPEN:
            self.refuse(request, Code.INVALID_REQUEST, f"{MAX_OPEN} requests wait for their responses")
            return
        self._open[key] = None
        if request.method == "initialize" and not self._initialized:
            self._begin(request)
        elif request.method == "initialize":
            self.refuse(request, Code.INVALID_REQUEST, "this connection has been initialized")
        elif not self._initialized and not (self._answered_once and self._extension.is_of_gateway(request.method)):
            self.refuse(request, Code.INVALID_REQUEST, "the first request has to be `initialize`")
        elif not self._methods.handle(request, line) and not self._extension.handle(request):
            self._other(request, line)

    def _other(self, request: Request, line: bytes) -> None:
        """Forward a request that the gateway has no part in."""
        session_id = session_in(request.params)
        if self.principal.sessions is not None and request.method not in SHARED_METHODS:
            self.refuse(
                request, Code.INVALID_REQUEST, "a share is for its session alone, and this method may reach further"
            )
        elif request.method in WHOLE_AGENT and self.may(AccessRole.DRIVE) and not self.may(AccessRole.ADMIN):
            why = "this changes the agent for everyone: it is for admins"
            self.refuse(request, Code.INVALID_REQUEST, why, recovery=for_role(AccessRole.ADMIN))
        elif session_id is not None:
            self.with_session(
                request, session_id, AccessRole.DRIVE, lambda session: self._in_session(session, request, line)
            )
        elif self.may(AccessRole.DRIVE):
            if request.method in WHOLE_AGENT:
                self.process.hub.note(self.principal, request.method, "", "")
            self.forward_soon(request, line)
        else:
            self.refuse(request, Code.INVALID_REQUEST, "this token may only watch", recovery=for_role(AccessRole.DRIVE))

    def with_session(
        self,
        request: Request,
        session_id: str,
        role: AccessRole,
        then: "Callable[[HubSession], None]",
        none: Callable[[], None] | None = None,
    ) -> None:
        """Call `then` with the session of a request, if there is one and the client may do this with it.

        `none` is called where there is none, in place of an error.
        """

        def found(session: "HubSession | None") -> None:
            if session is None and none is not None and self.may(role):
                none()
            elif session is None or not self.may(AccessRole.WATCH, session.key):  # one that it may not see is unknown
                self.refuse(
                    request,
                    Code.RESOURCE_NOT_FOUND,
                    f"there is no session `{session_id}` here",
                    hint="`session/list` has those that there are",
                    session_id=session_id,
                )
            elif not self.may(role, session.key):
                why = "this token may only watch"
                self.refuse(request, Code.INVALID_REQUEST, why, session_id=session_id, recovery=for_role(role))
            else:
                then(session)

        def failed(error: AcpError) -> None:
            if id_key(request.id) in self._open:
                self.put(error_frame(request.id, error_object(error)), session_id, request.id)

        self.process.with_session(session_id, found, failed, by=self.principal)

    def _in_session(self, session: "HubSession", request: Request, line: bytes) -> None:
        if session.id in self.closed_sessions:
            self.refuse(
                request,
                Code.RESOURCE_NOT_FOUND,
                f"session `{session.id}` is closed",
                hint="load or resume it",
                session_id=session.id,
            )
            session.release_if_idle()
        elif request.method == "session/prompt" and session.turns.is_repeated(self, request, line):
            pass
        elif why := self.process.hub.refuse_often(self.principal, request.method):
            recovery = RETURNING if self.process.hub.is_draining else LATER
            hint = "try again in a minute"
            self.refuse(request, Code.INVALID_REQUEST, why, hint=hint, session_id=session.id, recovery=recovery)
        elif request.method == "session/prompt":
            self.process.hub.note(self.principal, "prompt", session.key, "")
            session.turns.prompt(self, request, line)
        elif request.method == "session/cancel":  # a notification in the schema; one page does not say that it is
            session.turns.cancel(self, notification(request.method, {"sessionId": session.id}))
            self.put(b"%bnull}" % head_of_answer(request.id), session.id, request.id)
        else:
            if request.method in SHARED_METHODS:  # a mode may allow what was asked about before
                self.process.hub.note(self.principal, request.method, session.key, chosen_setting(request.params))
            self.process.hub.run(self._forward(request, line, session))

    def forward_soon(self, request: Request, line: bytes) -> None:
        """Send a request that is about no session of ours to the agent, which is started if it does not run."""
        self.process.hub.run(self._forward(request, line))

    async def _forward(self, request: Request, line: bytes, session: "HubSession | None" = None) -> None:
        try:
            if session is None:
                self.forward(await self.process.ready(), request, line, self.answering(request, line))
                return
            async with session.order:
                link = await session.reopen()
                await session.settled()  # a prompt that came before it leaves when it is stored
                then = self.answering(request, line, session)
                self.forward(link, request, session.settings.for_agent(line), then)
        except AcpError as error:
            self.put(error_frame(request.id, error_object(error)), session.id if session else None, request.id)

    def forward(self, link: AgentLink, request: Request, line: bytes, then: Callable[[Response, bytes], None]) -> None:
        """Send a request of this client to the agent."""
        spans = list(values_of(line, "id"))
        agent_id = link.forward(lambda id: replaced(line, [(span, id) for span in spans]), then)
        if id_key(request.id) in self._open:
            self._open[id_key(request.id)] = link, agent_id

    def answering(
        self, request: Request, line: bytes, session: "HubSession | None" = None
    ) -> Callable[[Response, bytes], None]:
        """Return what sends the agent's response to this client, in the agent's bytes but for the id."""
        written = line[slice(*list(values_of(line, "id"))[-1])]
        named = 0 if session is None else session.settings.named(request.method)

        def then(response: Response, answer: bytes) -> None:
            if answer:
                frame = replaced(answer, [(span, written) for span in values_of(answer, "id")])
            else:
                frame = error_frame(request.id, response.error or ErrorObject(Code.INTERNAL_ERROR, "Internal error"))
            if session is None:
                self.put(frame, None, request.id)
                return
            if (result := response.result) is not None:
                method, params = request.method, bytes(request.params)
                session.save(lambda settings: settings.chosen(method, params, bytes(result), named))
            session.answer(self, frame, request.id)

        return then

    def _begin(self, request: Request) -> None:
        """Read what the client offers at once: requests may follow before the agent, which may have to be started, has answered."""
        try:
            self.offer, self._initialized = read_offer(request.params), True
        except msgspec.DecodeError as error:
            self.refuse(request, Code.INVALID_PARAMS, f"`initialize` cannot be read: {error}")
        else:
            self.process.hub.run(self._initialize(request))

    async def _initialize(self, request: Request) -> None:
        try:
            result = await self.process.introduced()
        except AcpError as error:
            self._initialized, self._answered_once = False, True
            self.put(error_frame(request.id, error_object(error)), None, request.id)
            return
        about = self._methods.offered(result, self._extension.introduction())
        self.put(b"%b%b}" % (head_of_answer(request.id), about), None, request.id)

    def _notification(self, notification: Notification, line: bytes) -> None:
        if not self._initialized:
            return
        session_id = session_in(notification.params)
        if notification.method == CANCEL_REQUEST:
            self._cancel(notification)
        elif notification.method in REQUESTS or notification.method in ExtensionMethods.NAMES:
            pass  # an agent that looks at the method alone would do it, and none of the checks of requests is made here
        elif self.principal.sessions is not None and notification.method not in SHARED_METHODS:
            pass
        elif session_id is None:
            if self.may(AccessRole.DRIVE) and self.process.link is not None:
                self.process.link.send(line)
        else:
            self.process.with_session(session_id, lambda session: self._notify(session, notification, line))

    def _notify(self, session: "HubSession | None", notification: Notification, line: bytes) -> None:
        if session is None or not self.may(AccessRole.DRIVE, session.key):
            return
        if notification.method == "session/cancel":
            session.turns.cancel(self, line)
        elif session.is_open and session.link is not None:
            session.link.send(session.settings.for_agent(line))

    def _cancel(self, notification: Notification) -> None:
        if notification.params is EMPTY:
            return
        id = msgspec.json.decode(notification.params, type=dict[str, int | float | str | None]).get("requestId")
        if any(attachment.session.turns.cancel_prompt(self, id) for attachment in (*self.attachments.values(),)):
            return
        forwarded = self._open.get(id_key(id))
        if forwarded is not None:
            forwarded[0].send(cancel_frame(forwarded[1]))

    def _response(self, response: Response, line: bytes) -> None:
        """Take the answer of a client. Only the first one counts; an error is not an answer."""
        pending = self._asked.pop(response.id, None) if type(response.id) is int else None
        if pending is None or not self.may(AccessRole.DRIVE, pending.key):
            return
        if response.error is not None and pending.session is None:
            self._cannot_answer(pending)
        elif response.error is not None and pending.session is not None and pending.number:
            _log.info("a client refused `%s`: %s", pending.method, response.error.message)
            pending.session.requests.refused(pending, self)
        else:
            pending.settle((self, response, line))

    def _cannot_answer(self, pending: WaitingRequest) -> None:
        """Leave a question about no session to the other clients. It is over if no client is left that could answer."""
        if pending.shown.pop(self, None) is not None and not pending.shown:
            pending.settle(None)
