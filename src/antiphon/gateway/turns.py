"""The turns of one session: one at a time, and prompts that wait for it.

A prompt is sent to the agent once, after it was stored that it is sent. A turn whose agent ends is reported as interrupted.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from secrets import token_hex
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from msgspec import Raw

from antiphon.codes import meaning_of, recovery_from
from antiphon.errors import AcpError, Code, ResponseError
from antiphon.gateway.access.quotas import LATER
from antiphon.gateway.agents.link import AgentLink, cancel_frame
from antiphon.gateway.attachment import send_response
from antiphon.gateway.base import AccessRole
from antiphon.gateway.events import (
    END,
    PROMPT,
    TURN,
    EventHeader,
    notification,
    prompt_name,
    prompt_text,
    stored_event,
    user_messages,
    with_id,
)
from antiphon.gateway.moves.context import context_block, with_context
from antiphon.gateway.moves.interruption import interrupted_frame
from antiphon.rpc.envelope import BAD_INPUT, ErrorObject, Request, RequestId, Response, error_frame, head_of_answer
from antiphon.rpc.peer import id_key
from antiphon.rpc.spans import replaced, values_of

if TYPE_CHECKING:
    from antiphon.gateway.base import HubSpan
    from antiphon.gateway.client import RemoteClient
    from antiphon.gateway.session import HubSession

__all__ = [
    "LATER",
    "RETURNING",
    "SHUTTING_DOWN",
    "HubTurn",
    "HubTurns",
    "error_object",
    "for_role",
    "with_recovery",
]

RESPONSES_KEPT: Final = 16
"""Prompts with a name that are known after they have ended. A copy that is late is seconds behind its first one, and few prompts come in that time."""

RESPONSE_SIZE: Final = 64 * 1024
"""Bytes of a response that is kept for such a copy; they are a few hundred. For a larger one the copy gets an error."""

RETURNING: Final = {"recoverable": True, "action": "reconnect"}
"""The data of an error that is over when the gateway is there again."""

SHUTTING_DOWN: Final = ErrorObject(
    Code.INTERNAL_ERROR, "The gateway is shutting down", {"hint": "connect again in a minute", **RETURNING}
)
_ENDED_BEFORE: Final = ErrorObject(
    Code.INVALID_REQUEST,
    "This prompt was sent before, and its turn has ended",
    {"hint": "load the session to see what came of it", "recoverable": False},
)
_PromptName: TypeAlias = tuple[str, str, str]
"""The identity of a principal, and the name that it gave to a prompt."""

QUEUED_TEXT: Final = 2000
"""Characters of a prompt that clients are shown while it waits."""

LINE: Final = 200
"""Characters of the first line of a prompt that are kept in the row of its session."""

_log = logging.getLogger(__name__)


class HubTurn:
    """A prompt: it waits, then it runs, then it has its response."""

    __slots__ = (
        "agent_id", "answered", "client", "context", "has_failed", "header", "id", "is_cancelled", "is_ended", "is_repeated", "line",
        "link", "messages", "number", "request", "size", "span", "spans", "text", "timer",
    )  # fmt: skip

    def __init__(self, client: "RemoteClient", session_id: str, request: Request, line: bytes) -> None:
        self.id = token_hex(8)
        self.client = client
        """The client that sent it; the last one, if it was sent again."""
        self.request = request
        self.line = line
        self.link: AgentLink | None = None
        self.agent_id = b""
        """Its id at the agent, once it was sent."""
        self.answered = asyncio.Event()
        """Set when the agent has answered, or has ended: it does no more for it."""
        self.context = b""
        """A block with what happened before, for an agent that does not know the session; empty if it does."""
        self.number = 0
        """The number of the last event of its beginning, once that is recorded."""
        self.is_cancelled = False
        self.is_ended = False
        """Whether its end is recorded."""
        self.is_repeated = False
        """Whether it was sent again, so that several requests wait for its response."""
        self.has_failed = False
        """Whether it ended with an error, or was interrupted."""
        self.size = len(line)
        """Bytes that it counts for while it waits; 0 once it was sent."""
        self.text = prompt_text(request.params)[:QUEUED_TEXT]
        self.spans = list(values_of(line, "id"))
        self.header = EventHeader(
            turn=self.id, connection=client.id, sender=client.principal.name, prompt=prompt_name(request.params)
        )
        self.messages = list(user_messages(session_id, request.params, self.header))
        """What the other clients see of it."""
        self.span: HubSpan | None = None
        self.timer: asyncio.TimerHandle | None = None

    @property
    def name(self) -> "_PromptName":
        """What its prompt is known by when it is sent again, if it was given a name."""
        return (*self.client.principal.identity, self.header.prompt)

    def ask_again(self, client: "RemoteClient", request: Request, line: bytes) -> None:
        """Note that its prompt was sent again, on another connection: that one gets the response, too, and may cancel it."""
        self.client.turns[self.id] = self.request.id, self.line[slice(*self.spans[-1])]
        client.turns[self.id] = request.id, line[slice(*list(values_of(line, "id"))[-1])]
        self.client, self.request, self.is_repeated = client, request, True

    @property
    def shown_name(self) -> str:
        """What clients know its prompt by while it waits: the name that its sender gave to it, else one of ours."""
        return self.header.prompt or self.id

    def sent(self) -> None:
        """Forget what the agent has now: nothing of it is needed but its id. A turn may run for hours."""
        written = self.line[slice(*self.spans[-1])]
        self.line, self.spans, self.messages = written, [(0, len(written))], []
        self.request = Request(self.request.id, self.request.method)
        self.client.process.hub.quotas.release(self.client.principal, self.size)
        self.size = 0

    def over(self, frame: bytes, *, interrupted: bool = False) -> None:
        """End what runs with it: its time limit, and its span with what the response says."""
        if self.size:
            self.sent()
        if self.timer is not None:
            self.timer.cancel()
        if self.span is not None:
            outcome, failed = ("interrupted", True) if interrupted else _outcome(frame)
            self.span.end(outcome, failed=failed)
            self.span = None


class HubTurns:
    """The turn that runs in a session, and the prompts that wait."""

    __slots__ = ("_idle", "_queue", "_responses", "_session", "_shown", "running")

    def __init__(self, session: "HubSession") -> None:
        self.running: HubTurn | None = None
        self._session = session
        self._queue: deque[HubTurn] = deque()
        self._shown: list[dict[str, str]] = []
        """The prompts that wait, as clients were sent them last."""
        self._idle: asyncio.Future[None] | None = None
        self._responses: dict[_PromptName, bytes] = {}
        """The responses to the prompts with a name that ended last."""

    @property
    def queued(self) -> int:
        """How many prompts wait."""
        return len(self._queue)

    @property
    def to_begin(self) -> int:
        """How many prompts have not begun: those that wait, and one whose session is being opened again."""
        return len(self._queue) + (self.running is not None and not self.running.number)

    @property
    def names(self) -> list[str]:
        """The names that clients gave to the prompts that run or wait."""
        return [turn.header.prompt for turn in self._turns() if turn.header.prompt]

    @property
    def clients(self) -> "set[RemoteClient]":
        """The clients whose prompts run or wait."""
        return {turn.client for turn in self._turns()}

    def _turns(self) -> list[HubTurn]:
        return [*self._queue, *([self.running] if self.running is not None else ())]

    def is_repeated(self, client: "RemoteClient", request: Request, line: bytes) -> bool:
        """Whether a prompt was sent before, by the name that it was given: it runs once, and both requests get its response.

        Its first copy was late, as on a connection that its client believes to be lost, or it is the late one itself.
        """
        name = (*client.principal.identity, prompt_name(request.params))
        if not name[-1]:
            return False
        turn = next((each for each in self._turns() if each.name == name), None)
        if turn is not None and turn.client is client:
            why = ErrorObject(Code.INVALID_REQUEST, "This connection has sent a prompt with this name already")
            client.put(error_frame(request.id, why), self._session.id, request.id)
        elif turn is not None:
            self._let_follow(client)
            turn.ask_again(client, request, line)
        elif name in self._responses:
            written = line[slice(*list(values_of(line, "id"))[-1])]
            self._session.answer(client, with_id(self._responses[name], written), request.id)
        return turn is not None or name in self._responses

    def _keep_response(self, turn: HubTurn, frame: bytes) -> None:
        if turn.header.prompt:
            self._responses[turn.name] = frame if len(frame) <= RESPONSE_SIZE else error_frame(0, _ENDED_BEFORE)
            while len(self._responses) > RESPONSES_KEPT:
                del self._responses[next(iter(self._responses))]

    def _let_follow(self, client: "RemoteClient") -> None:
        if self._session.id not in client.attachments:
            self._session.attach(client, self._session.last).start()

    @property
    def waiting(self) -> list[dict[str, str]]:
        """The prompts that wait, as clients see them: a name to cancel each by, who sent it, its text."""
        return [{"prompt": turn.shown_name, "from": turn.header.sender, "text": turn.text} for turn in self._queue]

    def _show_waiting(self) -> None:
        """Send the prompts that wait to the clients with numbers, if they are others than before."""
        waiting = [] if self._session.is_over else self.waiting
        if waiting == self._shown:
            return
        self._shown = waiting
        frame = notification("_antiphon/session/queue", {"sessionId": self._session.id, "queue": waiting})
        for attachment in self._session.attachments:
            if attachment.client.offer.numbers:
                attachment.client.put(frame, self._session.id)

    def prompt(self, client: "RemoteClient", request: Request, line: bytes) -> None:
        """Run a prompt when its turn has come."""
        if len(self._queue) >= self._session.hub.limits.queue:
            why = f"{len(self._queue)} prompts wait in this session already"
            error = with_recovery(Code.INVALID_REQUEST, why, LATER)
            client.put(error_frame(request.id, error), self._session.id, request.id)
            return
        if why := self._session.hub.quotas.hold(client.principal, len(line)):
            error = with_recovery(Code.INVALID_REQUEST, why, LATER)
            client.put(error_frame(request.id, error), self._session.id, request.id)
            return
        self._let_follow(client)
        turn = HubTurn(client, self._session.id, request, line)
        if self._session.hub.traces is not None:
            turn.span = self._session.hub.traces.begin("turn", self._attributes(turn), _trace_context(request.params))
        self._queue.append(turn)
        self._next()

    def _attributes(self, turn: HubTurn) -> dict[str, str]:
        return {
            "antiphon.agent": self._session.agent.name,
            "antiphon.session": self._session.id,
            "antiphon.turn": turn.id,
            "antiphon.sender": turn.header.sender,
        }

    def trace(self, name: str, **attributes: str) -> None:
        """Add something that happened to the span of the running turn, if it is traced."""
        if self.running is not None and self.running.span is not None:
            self.running.span.event(name, {f"antiphon.{key}": value for key, value in attributes.items()})

    def _next(self) -> None:
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)
        moves = self._session.hub.moves
        if moves is not None and self.running is None and moves.hand_over_idle([self._session]):
            return
        while self.running is None and self._queue and self._session.hub.is_draining:
            turn = self._queue.popleft()
            self._drop(turn, error_frame(turn.request.id, SHUTTING_DOWN))
        if self.running is None and self._queue and not self._session.is_over:
            self.running = self._queue.popleft()
            self._session.hub.run(self._begin_in_order(self.running))
        self._show_waiting()
        self._session.hub.feed.changed(self._session)

    async def _begin_in_order(self, turn: HubTurn) -> None:
        async with self._session.order:
            await self._begin(turn)

    async def _begin(self, turn: HubTurn) -> None:
        try:
            await self._session.hub.quotas.count_prompt(turn.client.principal)
            link = await self._session.reopen()
            if self._session.settings.needs_context:
                turn.context = await context_block(self._session)
        except AcpError as error:
            if not self._session.is_over:  # else it was answered
                self._drop(turn, error_frame(turn.request.id, error_object(error)))
            return
        if turn.is_cancelled:
            self._drop(turn, cancelled_frame(turn.request.id))
            return
        turn.link = link
        turn.client.turns[turn.id] = turn.request.id, turn.line[slice(*turn.spans[-1])]
        self._session.row = msgspec.structs.replace(
            self._session.row, turn=turn.id, turn_after=self._session.recorded, text=_first_line(turn.text)
        )
        self._session.save()
        messages = (stored_event(PROMPT, turn.header, message) for message in turn.messages)
        begun = stored_event(TURN, turn.header)
        turn.number = self._session.record(begun, *messages, then=lambda: self._send(turn))

    def not_stored(self, error: BaseException) -> None:
        """Refuse the prompt whose beginning cannot be stored. It was not sent; unless more was recorded behind it, then it waits."""
        turn = self.running
        if turn is None or turn.number <= self._session.last or turn.number != self._session.recorded:
            return
        self._session.drop_last(1 + len(turn.messages))
        self._session.row = msgspec.structs.replace(self._session.row, turn="")
        turn.client.turns.pop(turn.id, None)
        problem = error_object(error) if isinstance(error, AcpError) else ErrorObject(Code.INTERNAL_ERROR, str(error))
        frame = error_frame(turn.request.id, problem)
        turn.over(frame)
        # At once: events before it may wait for the disk for long.
        turn.client.put(frame, self._session.id, turn.request.id)
        self.running = None
        self._next()

    def _send(self, turn: HubTurn) -> None:
        """Send the prompt to the agent: it is stored that it runs."""
        if self._session.is_over or turn.link is None or turn.is_ended:
            return  # its end is recorded already, as that of a turn that was interrupted
        if turn.is_cancelled:
            self._end(turn, cancelled_frame(turn.request.id))
            return
        self._session.row = msgspec.structs.replace(self._session.row, updated=time.time())
        self._session.hub.feed.changed(self._session)
        line = self._session.settings.for_agent(turn.line)
        if turn.context:
            line = with_context(line, turn.context)
        spans = turn.spans if line is turn.line else list(values_of(line, "id"))
        turn.agent_id = turn.link.forward(
            lambda id: replaced(line, [(span, id) for span in spans]),
            lambda response, line: self._ended(turn, response, line),
        )
        turn.sent()
        self.trace("sent")
        if (seconds := self._session.hub.limits.turn_timeout) is not None:
            turn.timer = asyncio.get_running_loop().call_later(seconds, self._overdue, turn, seconds)

    def _overdue(self, turn: HubTurn, seconds: float) -> None:
        """Cancel a turn that takes too long. If the agent does not end it, it is reported as interrupted."""
        if self.running is not turn or turn.is_ended or turn.link is None:
            return
        _log.warning("a turn in session `%s` took more than %g seconds: it is cancelled", self._session.id, seconds)
        turn.is_cancelled = True
        turn.link.send(notification("session/cancel", {"sessionId": self._session.agent_id}))
        self._session.requests.cancel_all()
        for attachment in self._session.attachments:
            attachment.tell(
                "The turn was cancelled", f"It took more than {seconds:g} seconds, the time a turn has here"
            )
        why = f"it took more than {seconds:g} seconds, and its agent did not end it"
        turn.timer = asyncio.get_running_loop().call_later(
            self._session.hub.limits.cancel_timeout,
            lambda: self._end(turn, interrupted_frame(why), interrupted=True),
        )

    def _ended(self, turn: HubTurn, response: Response, line: bytes) -> None:
        turn.answered.set()
        if line:
            self._end(turn, line)
        else:
            why = "its agent ended" if turn.link is None else turn.link.end_reason
            self._end(turn, interrupted_frame(why), interrupted=True)

    def _end(self, turn: HubTurn, frame: bytes, *, interrupted: bool = False) -> None:
        """Record the end of a turn. Its client gets the response when it is stored."""
        if self.running is not turn or turn.is_ended:
            return
        turn.is_ended = True
        turn.has_failed = interrupted or _outcome(frame)[1]
        turn.over(frame, interrupted=interrupted)
        self._keep_response(turn, frame)
        self._session.requests.cancel_all()
        header = msgspec.structs.replace(turn.header, interrupted=interrupted)
        self._session.record(stored_event(END, header, frame), then=lambda: self._finish(turn, frame))

    def _finish(self, turn: HubTurn, frame: bytes) -> None:
        """Go on after a turn, when it is stored that it ended: a kill of the gateway before that finds it running."""
        if self._session.is_over:
            return
        attachment = turn.client.attachments.get(self._session.id)
        if attachment is None:  # it has detached, and gets no events
            send_response(turn.client, turn.id, frame, self._session.id)
        else:
            attachment.respond_to_turn(turn.id, frame)
        self._session.row = msgspec.structs.replace(
            self._session.row, turn="", updated=time.time(), failed=turn.has_failed
        )
        if turn.context and not turn.has_failed:  # else the agent may not have stored it
            self._session.settings.needs_context = False
        self._session.save()
        self._session.hub.search.note(self._session.key)
        self.running = None
        self._next()

    def _drop(self, turn: HubTurn, frame: bytes) -> None:
        """Answer a prompt that was never sent. Where its connection is lost the answer is an event: its client knows the prompt by name."""
        turn.over(frame)
        if turn.is_cancelled:
            self._keep_response(turn, frame)
        if turn.is_repeated or (turn.client.closed.is_set() and turn.header.prompt):
            self._session.record(stored_event(END, turn.header, frame))
        else:
            self._session.answer(turn.client, frame, turn.request.id)
        if self.running is turn:
            self.running = None
            self._next()

    def cancel(self, client: "RemoteClient", line: bytes) -> None:
        """Cancel the running turn, and the prompts of this client that wait, those that it sent on a lost connection included."""

        def is_own(turn: HubTurn) -> bool:
            was_lost = turn.client.closed.is_set() and turn.client.principal.identity == client.principal.identity
            return turn.client is client or (was_lost and bool(turn.header.prompt))

        self._remove(is_own, cancelled_frame)
        if self.running is None:
            return
        self.running.is_cancelled = True
        if self.running.agent_id and self.running.link is not None:
            self.running.link.send(self._session.settings.for_agent(line))
        self._session.requests.cancel_all()

    def cancel_prompt(self, client: "RemoteClient", id: RequestId) -> bool:
        """Cancel one prompt by the id of its request. False: there is none."""

        def same(turn: HubTurn) -> bool:
            return turn.client is client and id_key(turn.request.id) == id_key(id)

        error = ErrorObject(Code.REQUEST_CANCELLED, "Request cancelled")
        if self._remove(same, lambda id: error_frame(id, error)):
            return True
        if self.running is not None and same(self.running):
            self.running.is_cancelled = True
            if self.running.agent_id and self.running.link is not None:
                self.running.link.send(cancel_frame(self.running.agent_id))
            return True
        return False

    def remove(self, name: str) -> bool:
        """Cancel one prompt that waits, by its name. False: no such prompt waits."""
        first = next((turn for turn in self._queue if turn.shown_name == name), None)
        return self._remove(lambda turn: turn is first, cancelled_frame)

    def drop_of(self, token_id: str, why: str) -> None:
        """Drop the prompts of a token that have not begun. The turn that runs goes on."""
        error = ErrorObject(Code.REQUEST_CANCELLED, f"Not sent: {why}")

        def is_own(turn: HubTurn) -> bool:
            return turn.client.principal.token_id == token_id

        self._remove(is_own, lambda id: error_frame(id, error))
        if self.running is not None and not self.running.number and is_own(self.running):
            self.running.is_cancelled = True  # its session is being opened again

    def _remove(self, fits: Callable[[HubTurn], bool], frame: Callable[[RequestId], bytes]) -> bool:
        """Cancel the prompts that wait and fit, and show what waits then. False: no prompt fits."""
        found = [turn for turn in self._queue if fits(turn)]
        for turn in found:
            self._queue.remove(turn)
            turn.is_cancelled = True
            self._drop(turn, frame(turn.request.id))
        self._show_waiting()
        return bool(found)

    def interrupt(self, why: str) -> None:
        """End the running turn and the prompts that wait. The agent gets a cancellation."""
        for waiting in (*self._queue,):
            self._queue.remove(waiting)
            error = ErrorObject(Code.REQUEST_CANCELLED, f"Not sent: {why}")
            self._drop(waiting, error_frame(waiting.request.id, error))
        self._show_waiting()
        turn = self.running
        if turn is None:
            return
        if turn.agent_id and turn.link is not None:
            turn.link.send(notification("session/cancel", {"sessionId": self._session.agent_id}))
        if turn.id == self._session.row.turn:
            self._end(turn, interrupted_frame(why), interrupted=True)
        else:
            turn.is_cancelled = True

    def clear_queue(self) -> None:
        """Forget the prompts that wait without an answer: their clients send them again to the next worker."""
        while self._queue:
            self._queue.popleft().over(b"", interrupted=True)

    async def until_idle(self) -> None:
        """Wait until no turn runs and no prompt waits."""
        while self.running is not None and not self._session.is_over:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle

    def end_all(self, error: ErrorObject) -> None:
        """Answer all prompts with an error: the session leaves memory."""
        turns = self._turns()
        self._queue.clear()
        self.running = None
        for turn in turns:
            turn.is_cancelled = True
            turn.client.turns.pop(turn.id, None)
            frame = error_frame(turn.request.id, error)
            turn.over(frame)
            turn.client.put(frame, self._session.id, turn.request.id)
        self._next()


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:LINE]


class _TraceMeta(msgspec.Struct):
    traceparent: str = ""
    tracestate: str = ""


class _TracedParams(msgspec.Struct):
    meta: _TraceMeta = msgspec.field(default_factory=_TraceMeta, name="_meta")


class _PromptResult(msgspec.Struct, rename="camel"):
    stop_reason: str = ""


class _PromptResponse(msgspec.Struct):
    result: _PromptResult | None = None
    error: ErrorObject | None = None


def _trace_context(params: Raw) -> dict[str, str]:
    """The trace that a prompt belongs to, as its `_meta` says."""
    try:
        meta = msgspec.json.decode(params, type=_TracedParams).meta
    except BAD_INPUT:
        return {}
    return {"traceparent": meta.traceparent, "tracestate": meta.tracestate}


def _outcome(frame: bytes) -> tuple[str, bool]:
    """How a turn ended, and whether that is a failure."""
    try:
        response = msgspec.json.decode(frame, type=_PromptResponse)
    except BAD_INPUT:
        return "unreadable", True
    if response.error is not None:
        return f"error {response.error.code}", True
    return (response.result.stop_reason if response.result is not None else "") or "ended", False


def error_object(error: AcpError) -> ErrorObject:
    """Make the error of a response from an error."""
    if isinstance(error, ResponseError):
        return with_recovery(error.code, error.message, error.data)
    known = {"recoverable": error.recoverable, "action": error.action} if error.recoverable else {}
    data = {**({"hint": error.hint} if error.hint else {}), **known}
    return with_recovery(Code.INTERNAL_ERROR, error.sentence.partition("\n")[0], data)


def for_role(role: AccessRole) -> Mapping[str, object]:
    """Return the data of an error about what a token may not do."""
    hint = f"a token with the role {role.name.lower()} may"
    return {"recoverable": False, "action": "use another token", "hint": hint}


def with_recovery(code: int, message: str, data: object = None) -> ErrorObject:
    """Return an error whose data have, beside what is given, whether another try can succeed and what to do before it, where that is known."""
    if data is not None and not isinstance(data, dict):
        return ErrorObject(code, message, data)
    recoverable, action = recovery_from(meaning_of(code, message))
    known = {} if recoverable is None else {"recoverable": recoverable, "action": action} if action else {}
    return ErrorObject(code, message, {**known, **(data or {})} or None)


def cancelled_frame(id: RequestId) -> bytes:
    """Return the response to a prompt that was cancelled."""
    return b'%b{"stopReason":"cancelled"}}' % head_of_answer(id)
