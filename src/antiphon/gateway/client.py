"""One client of the agents of this machine: the gateway is its agent. Ids of its connection are its own, and what it asks is checked against its role.

A client that leaves ends nothing: its attachments end, its prompts go on.
"""

import logging
from collections.abc import Callable, Iterator
from secrets import token_hex
from typing import TYPE_CHECKING, cast

import msgspec

from antiphon.errors import AcpError, Code
from antiphon.gateway.access.messages import REQUESTS, SHARED_METHODS, WHOLE_AGENT, chosen_setting
from antiphon.gateway.agents.link import AgentLink, cancel_frame
from antiphon.gateway.base import AccessRole, Principal
from antiphon.gateway.clients.connection import MAX_OPEN, GatewayConnection
from antiphon.gateway.events import notification, written_id
from antiphon.gateway.methods.extension import ExtensionMethods, introduction
from antiphon.gateway.methods.permission import with_facts
from antiphon.gateway.requests import WaitingRequest
from antiphon.gateway.session_methods import SessionMethods
from antiphon.gateway.turns import LATER, RETURNING, error_object, for_role
from antiphon.rpc.envelope import (
    EMPTY,
    ErrorObject,
    Notification,
    Request,
    RequestId,
    Response,
    error_frame,
    head_of_answer,
)
from antiphon.rpc.peer import CANCEL_REQUEST, FIRST_ID, id_key
from antiphon.rpc.spans import replaced, session_in, values_of
from antiphon.transports.asgi.connections import HttpConnection
from antiphon.transports.asgi.streams import event_place
from antiphon.transports.base import Transport

if TYPE_CHECKING:
    from antiphon.gateway.agents.process import AgentProcess
    from antiphon.gateway.attachment import SessionAttachment
    from antiphon.gateway.hub import Hub
    from antiphon.gateway.session import HubSession
    from antiphon.gateway.turns import HubTurn

__all__ = ["RemoteClient"]

_log = logging.getLogger(__name__)


class RemoteClient(GatewayConnection[tuple[AgentLink, bytes]]):
    """One client of the agents of this machine. A request that was forwarded is at a process of the agent, under an id of its own."""

    def __init__(self, process: "AgentProcess", transport: Transport, principal: Principal) -> None:
        super().__init__(transport, principal)
        self.id = token_hex(8)
        self.process = process
        self.attachments: dict[str, SessionAttachment] = {}
        self.turns: dict[str, tuple[RequestId, bytes]] = {}
        """The id of the request for each prompt of this connection that runs, and how it was written."""
        self._answered: set[str] = set()
        """Those whose response was sent, over HTTP."""
        self._methods = SessionMethods(self)
        self._extension = ExtensionMethods(self)
        self.closed_sessions: dict[str, None] = {}
        """The sessions that it has closed. It has to load or resume one before it uses it again."""
        self._asked: dict[int, WaitingRequest] = {}
        self._last_id = FIRST_ID - 1

    @property
    def hub(self) -> "Hub":
        return self.process.hub

    async def serve(self) -> None:
        """Talk with the client until it leaves."""
        self.process.clients.add(self)
        await super().serve()

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

    def _slow_way(self) -> Transport | None:
        link = self.process.link
        return link.transport if link is not None and link.transport.unsent > self.process.hub.limits.unsent else None

    def _needs_no_agent(self, method: str) -> bool:
        return self._extension.is_of_gateway(method)

    def _handle(self, request: Request, line: bytes) -> None:
        if not self._methods.handle(request, line) and not self._extension.handle(request):
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

    def _introduce(self, request: Request, line: bytes) -> None:
        self.process.hub.run(self._initialize(request))

    async def _initialize(self, request: Request) -> None:
        try:
            result = await self.process.introduced()
        except AcpError as error:
            self._is_initialized, self._answered_once = False, True
            self.put(error_frame(request.id, error_object(error)), None, request.id)
            return
        about = self._methods.offered(result, introduction(self))
        self.put(b"%b%b}" % (head_of_answer(request.id), about), None, request.id)

    def _notification(self, notification: Notification, line: bytes) -> None:
        if not self._is_initialized:
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
