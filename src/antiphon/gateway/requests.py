"""Requests of an agent in one session: permission and questions wait for people, files and terminals are served on this machine.

Rules:

1. The policy of the gateway decides first. What it leaves open waits for people: it is stored, and every attached client that may answer is
   asked, also one that comes later. The first answer wins; for the others the request is cancelled.
2. An answer is stored before the agent gets it, and what is stored is what the agent gets: the outcome as the gateway understood it, in
   the form of the schema. What it does not understand is a rejection, never the bytes of a client.
3. A client that leaves answers nothing: the request goes on waiting. So does one that one client refuses with an error while another one
   may still answer. Once every client that could answer has refused it, and is still there, it is rejected.
4. When the turn is cancelled or the agent ends, what waits is over, and its clients see that.
5. Every decision is in the audit log: whose answer it was, or that the gateway decided alone.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Final, TypeVar
from weakref import WeakSet

import msgspec
from msgspec import Raw

from antiphon.aio import background, maybe_await
from antiphon.errors import AcpError, Code, RequestError
from antiphon.gateway.agents.host import HostServices
from antiphon.gateway.agents.link import AgentLink
from antiphon.gateway.answers import (
    CANCELLED,
    Answered,
    choice_of,
    decision_in,
    elicitation_frame,
    form_of,
    outcome_of,
    without_content,
)
from antiphon.gateway.base import MAX_PENDING, AccessRole, Principal
from antiphon.gateway.events import ANSWER, REQUEST, EventHeader, member, stored_event, with_id, written_id
from antiphon.gateway.methods.permission import facts_of, remembered_scope, with_scope
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
    from antiphon.gateway.hub import Hub
    from antiphon.gateway.session import HubSession
    from antiphon.local.roots import Workspace
    from antiphon.policy import Scope
    from antiphon.protocol.base import JsonObject
    from antiphon.store.decisions import AuditEntry

__all__ = ["AgentQuestions", "WaitingRequest", "WaitingRequests"]

T = TypeVar("T")

Answering = Callable[[], Awaitable[bytes]]
"""Finds the response to a request. Called in the task of the request."""

GATEWAY: Final = Principal("gateway")
"""Who decides what no client decided, in the audit log."""

REFUSAL_GRACE: Final = 1.0
"""Seconds after which an error of a client that is still there is a refusal. One that ends may send errors before it closes its connection."""

ALLOW: Final = "allow"
_OURS: Final = [
    v1.PermissionOption(ALLOW, "Allow", Kind.ALLOW_ONCE),
    v1.PermissionOption("reject", "Reject", Kind.REJECT_ONCE),
]
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
        self.facts: dict[str, object] = {} if session is None else {"agent": session.agent.name, "cwd": session.row.cwd}
        """What a client with numbers is shown beside it."""
        self.scope: Scope | None = None
        """How far the answer counts, if it is remembered."""
        self.form = form
        """What the client must be able to show: `form` or `url`; empty if every client can."""
        self.number = 0
        """The number of its event."""
        self.outlives_turn = HostServices.serves(method)
        """Whether it goes on when its turn is cancelled: a terminal that a client makes has to be released by the agent."""
        self.shown: dict[RemoteClient, int] = {}
        """The clients that were asked, with the id that the request has there."""
        self.refused: set[RemoteClient] = set()
        """Those that answered with an error and have not left."""
        self.answer: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        """The first answer; None: the turn was cancelled, the time is over, or every client refused it."""

    @property
    def key(self) -> str | None:
        """The key of its session; None if it is about none, which only a client of all sessions may answer."""
        return None if self.session is None else self.session.key

    def chosen(self, choice: PermissionChoice, found: "Answered") -> PermissionChoice:
        """Return a choice as the client wants it remembered, if it may."""
        choice = with_scope(choice, remembered_scope(found, self.facts))
        self.scope = choice.scope
        return choice

    def settle(self, answer: "Answered") -> bool:
        """Take an answer, if it is the first."""
        if self.answer.done():
            return False
        self.answer.set_result(answer)
        return True


class RequestTasks:
    """Requests of an agent that have no response yet, each with the task that answers it."""

    __slots__ = ("_hub", "_tasks")

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self._tasks: dict[object, asyncio.Task[None]] = {}

    @property
    def is_busy(self) -> bool:
        """Whether the agent waits for a response."""
        return bool(self._tasks)

    def receive(self, link: AgentLink, request: Request, line: bytes) -> None:
        """Handle a request of the agent."""
        if len(self._tasks) >= MAX_PENDING:
            error = ErrorObject(Code.INTERNAL_ERROR, "Internal error", f"{MAX_PENDING} requests wait")
            link.respond(request.id, error_frame(request.id, error))
            return
        key = id_key(request.id)
        task = background(self._answer(link, request, self._answering(link, request, line)), self._hub.tasks)
        self._tasks[key] = task

        def over(task: "asyncio.Task[None]") -> None:
            self._tasks.pop(key, None)
            if task.cancelled():  # here: a task that is cancelled before its first step runs nothing
                cancelled = ErrorObject(Code.REQUEST_CANCELLED, "Request cancelled")
                link.respond(request.id, error_frame(request.id, cancelled))

        task.add_done_callback(over)

    async def _answer(self, link: AgentLink, request: Request, answering: "Answering") -> None:
        try:
            frame = await answering()
        except AcpError as error:
            frame = error_frame(request.id, error_object(error))
        except Exception:
            _log.exception("a request `%s` of an agent failed", request.method)
            frame = error_frame(request.id, ErrorObject(Code.INTERNAL_ERROR, "Internal error"))
        link.respond(request.id, frame)

    def _answering(self, link: AgentLink, request: Request, line: bytes) -> "Answering":
        """Return what finds the response to a request. It is called when its task begins: one that is cancelled first never does."""
        raise NotImplementedError

    def cancel(self, link: AgentLink, id: RequestId) -> None:
        """Cancel one request: the agent wants no answer any more."""
        if (task := self._tasks.get(id_key(id))) is not None:
            task.cancel()

    def agent_lost(self) -> None:
        """Cancel all of them: the process that would get the answers has ended."""
        for task in (*self._tasks.values(),):
            task.cancel()


class WaitingRequests(RequestTasks):
    """The requests of the agent in one session that have no response yet."""

    __slots__ = ("_epoch", "_gate", "_host", "_pending", "_session", "_terminals", "_with_people")

    def __init__(self, session: "HubSession") -> None:
        super().__init__(session.hub)
        self._session = session
        self._pending: dict[str, WaitingRequest] = {}
        self._gate: PermissionGate | None = None
        self._host: HostServices | None = None
        self._terminals: dict[bytes, RemoteClient] = {}
        """The terminals that clients have, by their ids as they are written."""
        self._epoch = 0
        """How often all that waited was cancelled."""
        self._with_people: WeakSet[asyncio.Task[object]] = WeakSet()
        """The tasks that people were asked in: they end by themselves when the request is answered or cancelled."""

    def _answering(self, link: AgentLink, request: Request, line: bytes) -> "Answering":
        return partial(self._handle, request, line, self._epoch)

    async def _handle(self, request: Request, line: bytes, epoch: int) -> bytes:
        _received_in.set(epoch)
        if request.method == m.REQUEST_PERMISSION.name:
            return await self._permission(request, line)
        if request.method == m.CREATE_ELICITATION.name:
            return await self._elicitation(request, line)
        if HostServices.serves(request.method):
            return await self._file_or_terminal(request, line)
        return await self._by_driver(request, line, [each.client for each in self._session.attachments])

    # Permission.

    async def _permission(self, request: Request, line: bytes) -> bytes:
        params = m.REQUEST_PERMISSION.decode_params(request.params)
        epoch = _received_in.get()
        asked: list[tuple[WaitingRequest, Answered]] = []

        gate = await self._policy()

        async def ask(question: Question) -> PermissionChoice:
            pending = WaitingRequest(self._session, request.method, self.shown([line])[0])
            pending.facts |= facts_of(question, gate.scopes)
            found = await self._wait(pending)
            asked.append((pending, found))
            return pending.chosen(choice_of(found, params.options), found)

        error: RequestError | None = None
        frame = b""
        try:
            result = await gate.permission(params, ask)
            given = asked[-1][1] if asked else None
            meta = {**(result.meta or {}), **({} if given is None else self._meta_of(given))}
            result = msgspec.structs.replace(result, meta=meta or None)
            frame = b"%b%b}" % (head_of_answer(request.id), msgspec.json.encode(result))
        except RequestError as refused:
            error = refused
        if not asked:
            if error is not None:
                raise error
            return frame
        pending, found = asked[-1]
        if epoch != self._epoch if found is None else isinstance(outcome_of(found[1]), v1.Cancelled):
            frame = b"%b%b}" % (head_of_answer(request.id), CANCELLED[request.method])
        elif error is not None:
            frame = error_frame(request.id, error_object(error))
        await self._resolved(pending, found, frame)
        return frame

    def _meta_of(self, found: "tuple[RemoteClient, Response, bytes]") -> "JsonObject":
        """Return what the client that answered added in `_meta`, as far as clients may."""
        try:
            meta = m.REQUEST_PERMISSION.decode_result(found[1].result or Raw(b"null")).meta or {}
        except AcpError:
            return {}
        kept = {key: value for key, value in meta.items() if self._hub.client_rules.passes_meta(key)}
        if isinstance(ours := kept.get("antiphon"), dict) and "remember" in ours:  # for the gateway, and no one else
            kept["antiphon"] = {key: value for key, value in ours.items() if key != "remember"}
        return {key: value for key, value in kept.items() if value != {}}

    async def _ask_about(self, question: Question) -> PermissionChoice:
        """Ask people about something that the agent is about to do without a permission request of its own."""
        params = v1.RequestPermission(self._session.id, _call_asked(question), _OURS)
        frame = b"%b%b}" % (head_of_request(0, m.REQUEST_PERMISSION.name), msgspec.json.encode(params))
        pending = WaitingRequest(self._session, m.REQUEST_PERMISSION.name, frame)
        pending.facts |= facts_of(question, (await self._policy()).scopes)
        found = await self._wait(pending)
        choice = pending.chosen(choice_of(found, _OURS), found)
        allowed = choice.verdict is Verdict.ALLOW
        chosen = v1.PermissionResult(v1.Selected(_OURS[0 if allowed else 1].option_id))
        answer = b"%b%b}" % (head_of_answer(0), msgspec.json.encode(chosen))
        await self._resolved(pending, found, b"" if found is None else answer)
        return choice

    async def _policy(self) -> PermissionGate:
        if self._gate is None:
            session = self._session
            gate = await session.hub.gates(session.agent.name, session.row.cwd, self._ask_about)
            if self._gate is None:  # else another request was faster
                gate.attach(self)
                gate.one_at_a_time = False  # several clients, each of which can show several questions
                gate.decided_alone = self._decided_alone
                self._gate = gate
        return self._gate

    def _decided_alone(self, entry: "AuditEntry") -> None:
        """Write a decision of the policy to the audit log. Not a read that is allowed: it changes nothing, and is most of them."""
        if entry.kind == "read" and entry.verdict == Verdict.ALLOW.value:
            return
        why = f"{entry.source}: {entry.rule}" if entry.rule else entry.source
        detail = f"{entry.verdict} {entry.tool or entry.kind} {entry.subject} ({why})"
        self._hub.note(GATEWAY, "decide", self._session.key, detail)

    async def _served_here(self) -> HostServices:
        gate = await self._policy()
        if self._host is None:
            self._host = HostServices(gate, self.workspace(""), self._hub.roots, self._session.record)
        return self._host

    def shown(self, run: list[bytes]) -> list[bytes]:
        """Return messages of the agent with the output of our terminals where they name them."""
        return run if self._host is None else [self._host.outputs.shown(line) for line in run]

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
        pending = WaitingRequest(self._session, request.method, line, form=form_of(request))
        drivers = self._clients()
        if drivers and not any(each.offer.shows(pending.form) for each in drivers):
            # The person who is there would wait for a question that no screen shows. Without a client it waits for one.
            return b"%b%b}" % (head_of_answer(request.id), CANCELLED[request.method])
        found = await self._wait(pending)
        frame = elicitation_frame(request, found)
        await self._resolved(pending, found, without_content(frame))
        return frame

    async def _file_or_terminal(self, request: Request, line: bytes) -> bytes:
        """Have the client serve a file or a terminal that is to be one of its machine, else serve it here."""
        terminal = member(bytes(request.params), "terminalId") or b""
        owner = self._terminals.get(terminal)
        if owner is not None:
            if request.method == m.RELEASE_TERMINAL.name:
                del self._terminals[terminal]
            same = [each for each in self._clients() if each is owner] or self._clients()
            return await self._by_driver(
                request, line, [each for each in same if each.principal.identity == owner.principal.identity]
            )
        turn = self._session.turns.running
        owner_of_turn = None if turn is None else turn.client.principal.identity
        # Only the machine that the prompt came from, and never that of a share: a command of a guest is not for the editor of the owner.
        ours = [
            each
            for each in self._clients()
            if each.offer.serves(request.method)
            and each.principal.sessions is None
            and owner_of_turn in (None, each.principal.identity)
        ]
        if terminal or not ours or not self._hub.client_files:
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

    async def _wait(self, pending: WaitingRequest) -> "Answered":
        """Store a request, show it, and return the first answer; None if it was cancelled or its time is over."""
        if _received_in.get() != self._epoch:
            return None
        if (task := asyncio.current_task()) is not None:
            self._with_people.add(task)
        self._pending[pending.id] = pending
        header = EventHeader(request=pending.id, method=pending.method)
        self._note_first()
        pending.number = self._session.record(stored_event(REQUEST, header, pending.frame))
        self._session.turns.trace("request waits", method=pending.method)
        self._hub.feed.changed(self._session)
        try:
            async with asyncio.timeout(self._hub.limits.answer_timeout):
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
            self._hub.feed.changed(self._session)

    def _note_first(self) -> None:
        """Store that a request waits outside of a turn, with its event: else the next gateway would not look for it after a kill of this one."""
        if not self._session.row.turn and self._session.settings.asked_after < 0:
            self._session.settings.asked_after = self._session.recorded
            self._session.save()

    def _note_last(self) -> None:
        """Store that no such request waits any more, behind the event with the answer."""
        if self._session.settings.asked_after >= 0 and not any(each.number for each in self._pending.values()):
            self._session.settings.asked_after = -1
            self._session.save()

    async def _resolved(self, pending: WaitingRequest, found: "Answered", frame: bytes) -> None:
        """Store what the agent gets, and write to the audit log who decided it."""
        if not pending.number:
            return  # it was never shown
        by = GATEWAY if found is None else found[0].principal
        sender = "" if found is None else by.name
        self._session.turns.trace("request answered", method=pending.method, by=sender)
        header = EventHeader(request=pending.id, method=pending.method, sender=sender)
        await self._session.stored(stored_event(ANSWER, header, frame))
        self._note_last()
        extent = "" if pending.scope is None else f", remembered ({pending.scope}): {pending.facts['always']}"
        self._hub.note(by, "answer", self._session.key, f"{pending.method}: {decision_in(frame)}{extent}")

    def find(self, id: str) -> WaitingRequest | None:
        """Return a request that still waits."""
        pending = self._pending.get(id)
        return None if pending is None or pending.answer.done() else pending

    def waiting(self) -> Iterator[WaitingRequest]:
        """Yield the requests that wait for people."""
        yield from [each for each in self._pending.values() if each.number and not each.answer.done()]

    # How they end without an answer.

    def refused(self, pending: WaitingRequest, client: "RemoteClient") -> None:
        """Note that a client has answered with an error. One that leaves a moment later has answered nothing."""
        pending.refused.add(client)
        asyncio.get_running_loop().call_later(REFUSAL_GRACE, self._settle_if_refused, pending)

    def _settle_if_refused(self, pending: WaitingRequest) -> None:
        """Settle a request that every client which could answer it has refused."""
        able = {each for each in self._clients() if each.offer.shows(pending.form)}
        if pending.refused & able == able != set():
            pending.settle(None)

    def cancel_all(self) -> None:
        """Answer all that waits as cancelled: the turn is cancelled or over."""
        self._epoch += 1
        for pending in [each for each in self._pending.values() if not each.outlives_turn]:
            pending.settle(None)

    async def end_all(self) -> None:
        """End all of them, and wait until that is recorded: the session is about to end."""
        while self._tasks:
            self.cancel_all()
            tasks = set(self._tasks.values())
            for task in tasks.difference(self._with_people):
                task.cancel()
            await asyncio.wait(tasks)

    def record_ends(self) -> None:
        """Record that all that waits is over, because nothing can be recorded any more when its tasks end."""
        for pending in self._pending.values():
            if pending.number:
                header = EventHeader(request=pending.id, method=pending.method)
                self._session.record(stored_event(ANSWER, header))

    def client_left(self, client: "RemoteClient") -> None:
        """Forget a client that was asked. A request that only it could answer is over."""
        for pending in (*self._pending.values(),):
            pending.refused.discard(client)
            if pending.shown.pop(client, None) is not None and not pending.number:
                pending.settle(None)
            elif pending.refused:
                self._settle_if_refused(pending)

    def agent_lost(self) -> None:
        """End all of them: the process that would get the answers has ended."""
        self._epoch += 1
        super().agent_lost()
        self._terminals.clear()
        if self._host is not None:
            self._hub.run(self._host.close(), to_the_end=True)
            self._host = None


def _call_asked(question: Question) -> v1.ToolCallPatch:
    """Make the tool call that people are asked about, from what the gateway is about to do and not from what the agent says of it."""
    passing, id = question.passing, f"gateway-{token_hex(8)}"
    if passing is None:
        raise RequestError(Code.INTERNAL_ERROR, "there is nothing to ask about")
    if isinstance(passing, v1.CreateTerminal):
        passing = msgspec.structs.replace(passing, cwd=question.action.cwd)
    return call_of(passing, id, None if question.before is None else question.before.text)


class AgentQuestions(RequestTasks):
    """Questions of an agent that are about no session: about a request that a client sent, or about nothing that they name.

    The first are for the client of that request, the others for every client that may drive all of the agent. They are not stored: no
    journal is theirs, so a question that no client can answer is cancelled at once.
    """

    __slots__ = ("_process",)

    def __init__(self, process: "AgentProcess") -> None:
        super().__init__(process.hub)
        self._process = process

    def _answering(self, link: AgentLink, request: Request, line: bytes) -> "Answering":
        return partial(self._ask, link, request, line)

    async def _ask(self, link: AgentLink, request: Request, line: bytes) -> bytes:
        spans = list(params_values_of(line, "requestId"))
        clients = list(self._process.clients)
        if spans:
            found = [(each, id) for each in clients if (id := each.sent_as(link, line[slice(*spans[-1])])) is not None]
            clients = [each for each, _ in found]
            line = replaced(line, [(span, id) for _, id in found[:1] for span in spans])
        pending = WaitingRequest(None, request.method, line, form=form_of(request))
        asked = [client for client in clients if client.ask(pending, 0)]
        answer: Answered = None
        try:
            if asked:
                async with asyncio.timeout(self._hub.limits.answer_timeout):
                    answer = await pending.answer
        except TimeoutError:
            pass
        finally:
            for client in pending.shown:
                client.cancel_request(pending.id)
        frame = elicitation_frame(request, answer)
        if asked:
            by = GATEWAY if answer is None else answer[0].principal
            self._hub.note(by, "answer", "", f"{request.method}: {decision_in(frame)}")
        return frame
