"""Requests of an agent in one session: permission and questions wait for people, files and terminals are served on this machine.

Rules:

1. The policy of the gateway decides first. What it leaves open waits for people: it is stored, and every attached client that may answer is
   asked, also one that comes later. The first answer wins; for the others the request is cancelled.
2. An answer is stored before the agent gets it.
3. A client that refuses the request, or leaves, answers nothing: the request goes on waiting.
4. When the turn is cancelled or the agent ends, what waits is over, and its clients see that.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import ContextVar
from secrets import token_hex
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from msgspec import Raw

from antiphon.aio import background, maybe_await
from antiphon.errors import AcpError, Code, RequestError
from antiphon.gateway.agents.host import HostServices
from antiphon.gateway.agents.link import AgentLink
from antiphon.gateway.base import MAX_PENDING, AccessRole
from antiphon.gateway.events import ANSWER, REQUEST, EventHeader, member, stored_event, with_id, written_id
from antiphon.gateway.turns import error_object
from antiphon.permission.actions import call_of
from antiphon.permission.gate import PermissionChoice, PermissionGate, Question
from antiphon.policy import Verdict
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.permission import PermissionOptionKind as Kind
from antiphon.rpc.envelope import (
    ErrorObject,
    Request,
    RequestId,
    Response,
    error_frame,
    head_of_answer,
    head_of_request,
)
from antiphon.rpc.peer import id_key
from antiphon.rpc.spans import params_values_of, replaced

if TYPE_CHECKING:
    from antiphon.gateway.agents.process import AgentProcess
    from antiphon.gateway.client import RemoteClient
    from antiphon.gateway.session import HubSession
    from antiphon.local.roots import Workspace

__all__ = ["AgentQuestions", "WaitingRequest", "WaitingRequests"]

T = TypeVar("T")

ALLOW: Final = "allow"
_OURS: Final = [
    v1.PermissionOption(ALLOW, "Allow", Kind.ALLOW_ONCE),
    v1.PermissionOption("reject", "Reject", Kind.REJECT_ONCE),
]
_CANCELLED: Final = {
    m.REQUEST_PERMISSION.name: b'{"outcome":{"outcome":"cancelled"}}',
    m.CREATE_ELICITATION.name: b'{"action":"cancel"}',
}
"""The result of a request whose turn was cancelled."""

_received_in: ContextVar[int] = ContextVar("received_in")
"""The epoch in which the request was received that this task answers: what was cancelled since then is not asked any more."""

_log = logging.getLogger(__name__)


class WaitingRequest:
    """A request of the agent that waits for the answer of a client."""

    def __init__(self, session: "HubSession | None", method: str, frame: bytes, *, form: str = "") -> None:
        self.id = token_hex(8)
        self.session = session
        self.method = method
        self.frame = frame
        """The request as the agent sent it. Its id is another one for each client."""
        self.form = form
        """What the client must be able to show: `form` or `url`; empty if every client can."""
        self.number = 0
        """The number of its event."""
        self.outlives_turn = HostServices.serves(method)
        """Whether it goes on when its turn is cancelled: a terminal that a client makes has to be released by the agent."""
        self.shown: dict[RemoteClient, int] = {}
        """The clients that were asked, with the id that the request has there."""
        self.answer: asyncio.Future[tuple[RemoteClient, Response, bytes] | None] = (
            asyncio.get_running_loop().create_future()
        )
        """The first answer; None: the turn was cancelled, or the time is over."""

    @property
    def key(self) -> str | None:
        """The key of its session; None if it is about none, which only a client of all sessions may answer."""
        return None if self.session is None else self.session.key

    def settle(self, answer: "tuple[RemoteClient, Response, bytes] | None") -> bool:
        """Take an answer, if it is the first."""
        if self.answer.done():
            return False
        self.answer.set_result(answer)
        return True


class WaitingRequests:
    """The requests of the agent in one session that have no response yet."""

    __slots__ = ("_epoch", "_gate", "_host", "_pending", "_session", "_tasks", "_terminals")

    def __init__(self, session: "HubSession") -> None:
        self._session = session
        self._pending: dict[str, WaitingRequest] = {}
        self._tasks: dict[object, asyncio.Task[None]] = {}
        self._gate: PermissionGate | None = None
        self._host: HostServices | None = None
        self._terminals: dict[bytes, RemoteClient] = {}
        """The terminals that clients have, by their ids as they are written."""
        self._epoch = 0
        """How often all that waited was cancelled."""

    def receive(self, link: AgentLink, request: Request, line: bytes) -> None:
        """Handle a request of the agent."""
        if len(self._tasks) >= MAX_PENDING:
            error = ErrorObject(Code.INTERNAL_ERROR, "Internal error", f"{MAX_PENDING} requests wait in this session")
            link.respond(request.id, error_frame(request.id, error))
            return
        key = id_key(request.id)
        task = background(self._answer(link, request, line, self._epoch), self._session.hub.tasks)
        self._tasks[key] = task
        task.add_done_callback(lambda _: self._tasks.pop(key, None))

    async def _answer(self, link: AgentLink, request: Request, line: bytes, epoch: int) -> None:
        _received_in.set(epoch)
        try:
            if request.method == m.REQUEST_PERMISSION.name:
                frame = await self._permission(request, line)
            elif request.method == m.CREATE_ELICITATION.name:
                frame = await self._elicitation(request, line)
            elif HostServices.serves(request.method):
                frame = await self._file_or_terminal(request, line)
            else:
                frame = await self._by_driver(request, line, [each.client for each in self._session.attachments])
        except asyncio.CancelledError:
            link.respond(request.id, error_frame(request.id, ErrorObject(Code.REQUEST_CANCELLED, "Request cancelled")))
            raise
        except AcpError as error:
            frame = error_frame(request.id, error_object(error))
        except Exception:
            _log.exception("a request `%s` of an agent failed", request.method)
            frame = error_frame(request.id, ErrorObject(Code.INTERNAL_ERROR, "Internal error"))
        link.respond(request.id, frame)

    # Permission.

    async def _permission(self, request: Request, line: bytes) -> bytes:
        params = m.REQUEST_PERMISSION.decode_params(request.params)
        epoch = _received_in.get()
        answered: list[tuple[WaitingRequest, tuple[RemoteClient, Response, bytes] | None]] = []

        async def ask(question: Question) -> PermissionChoice:
            pending = WaitingRequest(self._session, request.method, line)
            found = await self._wait(pending)
            answered.append((pending, found))
            return _choice(found, params.options)

        error: AcpError | None = None
        try:
            result = await (await self._policy()).permission(params, ask)
            chosen = result.outcome.option_id if isinstance(result.outcome, v1.Selected) else ""
            frame = b"%b%b}" % (head_of_answer(request.id), msgspec.json.encode(result))
        except RequestError as refused:
            error, chosen, frame = refused, "", b""
        if not answered:
            if error is not None:
                raise error
            return frame
        pending, found = answered[-1]
        if found is None and epoch != self._epoch:
            frame = b"%b%b}" % (head_of_answer(request.id), _CANCELLED[request.method])
        elif found is not None and _option(found[1]) in (chosen, None):
            frame = with_id(found[2], written_id(request.id))  # in the bytes of the client that answered
        elif error is not None:
            frame = error_frame(request.id, ErrorObject(error.code, error.message, error.data))  # type: ignore[attr-defined]
        await self._resolved(pending, found, frame)
        return frame

    async def _ask_about(self, question: Question) -> PermissionChoice:
        """Ask people about something that the agent is about to do without a permission request of its own."""
        params = v1.RequestPermission(self._session.id, _call_asked(question), _OURS)
        frame = b"%b%b}" % (head_of_request(0, m.REQUEST_PERMISSION.name), msgspec.json.encode(params))
        pending = WaitingRequest(self._session, m.REQUEST_PERMISSION.name, frame)
        found = await self._wait(pending)
        await self._resolved(pending, found, b"" if found is None else found[2])
        return _choice(found, _OURS)

    async def _policy(self) -> PermissionGate:
        if self._gate is None:
            session = self._session
            gate = await session.hub.gates(session.agent.name, session.row.cwd, self._ask_about)
            if self._gate is None:  # else another request was faster
                gate.attach(self)
                gate.one_at_a_time = False  # several clients, each of which can show several questions
                self._gate = gate
        return self._gate

    async def _served_here(self) -> HostServices:
        gate = await self._policy()
        if self._host is None:
            self._host = HostServices(gate, self.workspace(""), self._session.hub.roots)
        return self._host

    # What the gate has to know of the session.

    def workspace(self, session_id: str) -> "Workspace":
        """Return the directories of the session."""
        from antiphon.local.roots import Workspace

        return Workspace(self._session.row.cwd, self._session.row.directories)

    def running_turn(self, session_id: str) -> object:
        """Return the turn that runs."""
        return self._session.turns.running

    async def ask(self, session_id: str | None, ask: "Callable[[], T | Awaitable[T]]", instead: T) -> T:
        """Ask, unless the turn is being cancelled."""
        turn = self._session.turns.running
        return instead if turn is not None and turn.is_cancelled else await maybe_await(ask())

    # Questions, and requests that only a client can answer.

    async def _elicitation(self, request: Request, line: bytes) -> bytes:
        pending = WaitingRequest(self._session, request.method, line, form=_form_of(request))
        drivers = self._clients()
        if drivers and not any(each.offer.shows(pending.form) for each in drivers):
            # The person who is there would wait for a question that no screen shows. Without a client it waits for one.
            return b"%b%b}" % (head_of_answer(request.id), _CANCELLED[request.method])
        found = await self._wait(pending)
        if found is None:
            frame = b"%b%b}" % (head_of_answer(request.id), _CANCELLED[request.method])
        else:
            frame = with_id(found[2], written_id(request.id))
        await self._resolved(pending, found, _without_content(frame))
        return frame

    async def _file_or_terminal(self, request: Request, line: bytes) -> bytes:
        """Have the client serve a file or a terminal that is to be one of its machine, else serve it here."""
        terminal = member(bytes(request.params), "terminalId") or b""
        owner = self._terminals.get(terminal)
        if owner is not None:
            if request.method == m.RELEASE_TERMINAL.name:
                del self._terminals[terminal]
            same = [each for each in self._clients() if each is owner] or self._clients()
            return await self._by_driver(request, line, [each for each in same if each.principal == owner.principal])
        turn = self._session.turns.running
        owner_of_turn = None if turn is None else turn.client.principal
        # Only the machine that the prompt came from, and never that of a share: a command of a guest is not for the editor of the owner.
        ours = [
            each
            for each in self._clients()
            if each.offer.serves(request.method)
            and each.principal.sessions is None
            and owner_of_turn in (None, each.principal)
        ]
        if terminal or not ours or not self._session.hub.client_files:
            result = await (await self._served_here()).serve(request.method, request.params)
            return b"%b%b}" % (head_of_answer(request.id), msgspec.json.encode(result))
        frame = await self._by_driver(request, line, ours[:1])
        made = member(member(frame, "result") or b"{}", "terminalId")
        if request.method == m.CREATE_TERMINAL.name and made is not None:
            self._terminals[made] = ours[0]
        return frame

    def _clients(self) -> "list[RemoteClient]":
        """The clients that may drive the session, the one whose prompt runs first."""
        turn = self._session.turns.running
        drivers = [each.client for each in self._session.attachments]
        drivers = [each for each in drivers if each.may(AccessRole.DRIVE, self._session.key)]
        return sorted(drivers, key=lambda client: turn is None or client is not turn.client)

    async def _by_driver(self, request: Request, line: bytes, clients: "Sequence[RemoteClient]") -> bytes:
        """Send a request to the first of these clients that may answer it, and return its answer."""
        pending = WaitingRequest(self._session, request.method, line)
        self._pending[pending.id] = pending
        try:
            if not any(each.ask(pending, 0) for each in clients if each.may(AccessRole.DRIVE, self._session.key)):
                raise RequestError(Code.METHOD_NOT_FOUND, f"no client is attached that could answer `{request.method}`")
            found = await pending.answer
        finally:
            del self._pending[pending.id]
            for client in (*pending.shown,):
                client.cancel_request(pending.id)
        if found is None:
            raise RequestError(Code.REQUEST_CANCELLED, "Request cancelled")
        return with_id(found[2], written_id(request.id))

    # Waiting.

    async def _wait(self, pending: WaitingRequest) -> "tuple[RemoteClient, Response, bytes] | None":
        """Store a request, show it, and return the first answer; None if it was cancelled or its time is over."""
        if _received_in.get() != self._epoch:
            return None
        self._pending[pending.id] = pending
        header = EventHeader(request=pending.id, method=pending.method)
        pending.number = self._session.record(stored_event(REQUEST, header, pending.frame))
        self._session.turns.trace("request waits", method=pending.method)
        try:
            async with asyncio.timeout(self._session.hub.limits.answer_timeout):
                return await asyncio.shield(pending.answer)
        except TimeoutError:
            pending.settle(None)
            return None
        except asyncio.CancelledError:
            pending.settle(None)
            self._session.record(stored_event(ANSWER, header))
            raise
        finally:
            del self._pending[pending.id]

    async def _resolved(
        self, pending: WaitingRequest, found: "tuple[RemoteClient, Response, bytes] | None", frame: bytes
    ) -> None:
        if not pending.number:
            return  # it was never shown
        sender = "" if found is None else found[0].principal.name
        self._session.turns.trace("request answered", method=pending.method, by=sender)
        header = EventHeader(request=pending.id, method=pending.method, sender=sender)
        await self._session.stored(stored_event(ANSWER, header, frame))
        if found is not None:
            self._session.hub.note(found[0].principal, "answer", self._session.key, _decided(pending, found[1]))

    def find(self, id: str) -> WaitingRequest | None:
        """Return a request that still waits."""
        pending = self._pending.get(id)
        return None if pending is None or pending.answer.done() else pending

    def waiting(self) -> Iterator[WaitingRequest]:
        """Yield the requests that wait for people."""
        yield from [each for each in self._pending.values() if each.number and not each.answer.done()]

    # How they end without an answer.

    def cancel(self, link: AgentLink, id: RequestId) -> None:
        """Cancel one request: the agent wants no answer any more."""
        if (task := self._tasks.get(id_key(id))) is not None:
            task.cancel()

    def cancel_all(self) -> None:
        """Answer all that waits as cancelled: the turn is cancelled or over."""
        self._epoch += 1
        for pending in [each for each in self._pending.values() if not each.outlives_turn]:
            pending.settle(None)

    def client_left(self, client: "RemoteClient") -> None:
        """Forget a client that was asked. A request that only it could answer is over."""
        for pending in (*self._pending.values(),):
            if pending.shown.pop(client, None) is not None and not pending.number:
                pending.settle(None)

    def agent_lost(self) -> None:
        """End all of them: the process that would get the answers has ended."""
        self._epoch += 1
        for task in (*self._tasks.values(),):
            task.cancel()
        self._terminals.clear()
        if self._host is not None:
            self._session.hub.run(self._host.close(), to_the_end=True)
            self._host = None


def _call_asked(question: Question) -> v1.ToolCallPatch:
    """Make the tool call that people are asked about, from what the gateway is about to do and not from what the agent says of it."""
    passing, id = question.passing, f"gateway-{token_hex(8)}"
    if passing is None:
        raise RequestError(Code.INTERNAL_ERROR, "there is nothing to ask about")
    if isinstance(passing, v1.CreateTerminal):
        passing = msgspec.structs.replace(passing, cwd=question.action.cwd)
    return call_of(passing, id, None if question.before is None else question.before.text)


class AgentQuestions:
    """Questions of an agent that are about no session: about a request that a client sent, or about nothing that they name.

    The first are for the client of that request, the others for every client that may drive all of the agent. They are not stored: no
    journal is theirs, so a question that no client can answer is cancelled at once.
    """

    __slots__ = ("_process", "_tasks")

    def __init__(self, process: "AgentProcess") -> None:
        self._process = process
        self._tasks: dict[object, asyncio.Task[None]] = {}

    def receive(self, link: AgentLink, request: Request, line: bytes) -> None:
        """Handle a question."""
        key = id_key(request.id)
        if len(self._tasks) >= MAX_PENDING:
            error = ErrorObject(Code.INTERNAL_ERROR, "Internal error", f"{MAX_PENDING} questions wait")
            link.respond(request.id, error_frame(request.id, error))
            return
        task = background(self._answer(link, request, line), self._process.hub.tasks)
        self._tasks[key] = task
        task.add_done_callback(lambda _: self._tasks.pop(key, None))

    def cancel(self, link: AgentLink, id: RequestId) -> None:
        """Cancel one: the agent wants no answer any more."""
        if (task := self._tasks.get(id_key(id))) is not None:
            task.cancel()

    def agent_lost(self) -> None:
        """Cancel all of them: the process that would get the answers has ended."""
        for task in (*self._tasks.values(),):
            task.cancel()

    async def _answer(self, link: AgentLink, request: Request, line: bytes) -> None:
        spans = list(params_values_of(line, "requestId"))
        clients = list(self._process.clients)
        if spans:
            found = [(each, id) for each in clients if (id := each.sent_as(link, line[slice(*spans[-1])])) is not None]
            clients = [each for each, _ in found]
            line = replaced(line, [(span, id) for _, id in found[:1] for span in spans])
        pending = WaitingRequest(None, request.method, line, form=_form_of(request))
        frame = b"%b%b}" % (head_of_answer(request.id), _CANCELLED[request.method])
        for client in clients:
            client.ask(pending, 0)
        try:
            if pending.shown:
                async with asyncio.timeout(self._process.hub.limits.answer_timeout):
                    found_answer = await pending.answer
                if found_answer is not None:
                    frame = with_id(found_answer[2], written_id(request.id))
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            link.respond(request.id, error_frame(request.id, ErrorObject(Code.REQUEST_CANCELLED, "Request cancelled")))
            raise
        finally:
            for client in pending.shown:
                client.cancel_request(pending.id)
        link.respond(request.id, frame)


def _form_of(request: Request) -> str:
    """What a client has to be able to show for a question."""
    return "url" if member(bytes(request.params), "mode") == b'"url"' else "form"


def _choice(
    found: "tuple[RemoteClient, Response, bytes] | None", options: list[v1.PermissionOption]
) -> PermissionChoice:
    """Make a choice of an answer. What is no option of the request is no permission."""
    chosen = None if found is None else _option(found[1])
    kind = next((option.kind for option in options if option.option_id == chosen), None)
    allowed = kind is not None and kind.known and kind in (Kind.ALLOW_ONCE, Kind.ALLOW_ALWAYS)
    by = "gateway" if found is None else found[0].principal.name
    return PermissionChoice(Verdict.ALLOW if allowed else Verdict.DENY, option_id=chosen, by=by)


class _Outcome(msgspec.Struct, rename="camel"):
    outcome: str = ""
    option_id: str | None = None


class _Result(msgspec.Struct):
    outcome: _Outcome


class _Action(msgspec.Struct):
    action: str = ""


def _decided(pending: WaitingRequest, response: Response) -> str:
    """Return what was answered, for the audit log: the id of an option, or what became of a question. Not what people filled in."""
    try:
        action = msgspec.json.decode(response.result or Raw(b"null"), type=_Action).action
    except msgspec.DecodeError:
        action = ""
    return f"{pending.method}: {_option(response) or action or 'an error'}"


def _option(response: Response) -> str | None:
    """The option that a client chose; None: it cancelled, or sent something else."""
    try:
        outcome = msgspec.json.decode(response.result or Raw(b"null"), type=_Result).outcome
    except msgspec.DecodeError:
        return None
    return outcome.option_id if outcome.outcome == "selected" else None


def _without_content(frame: bytes) -> bytes:
    """Return the response to a question with its action alone: what a person filled in is for the agent, and may be a password."""
    action = member(member(frame, "result") or b"{}", "action")
    return b"%b%b}" % (head_of_answer(0), b"{}" if action is None else b'{"action":%b}' % action)
