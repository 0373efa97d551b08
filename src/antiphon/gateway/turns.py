"""The turns of one session: one at a time, and prompts that wait for it.

A prompt is sent to the agent once, after it was stored that it is sent. A turn whose agent ends is reported as interrupted.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Mapping
from secrets import token_hex
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from antiphon.codes import meaning_of, recovery_from
from antiphon.errors import AcpError, Code, ResponseError
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
    stored_event,
    user_messages,
)
from antiphon.rpc.envelope import ErrorObject, Request, RequestId, Response, error_frame, head_of_answer
from antiphon.rpc.peer import id_key
from antiphon.rpc.spans import replaced, values_of

if TYPE_CHECKING:
    from antiphon.gateway.base import HubSpan
    from antiphon.gateway.client import RemoteClient
    from antiphon.gateway.session import HubSession

__all__ = ["LATER", "HubTurn", "HubTurns", "error_object", "for_role", "interrupted_frame", "with_recovery"]

_log = logging.getLogger(__name__)


class HubTurn:
    """A prompt: it waits, then it runs, then it has its response."""

    __slots__ = (
        "agent_id", "client", "header", "id", "is_cancelled", "is_ended", "line", "link", "messages", "number", "request", "span", "spans",
        "timer",
    )  # fmt: skip

    def __init__(self, client: "RemoteClient", session_id: str, request: Request, line: bytes) -> None:
        self.id = token_hex(8)
        self.client = client
        self.request = request
        self.line = line
        self.link: AgentLink | None = None
        self.agent_id = b""
        """Its id at the agent, once it was sent."""
        self.number = 0
        """The number of the last event of its beginning, once that is recorded."""
        self.is_cancelled = False
        self.is_ended = False
        """Whether its end is recorded."""
        self.spans = list(values_of(line, "id"))
        self.header = EventHeader(
            turn=self.id, connection=client.id, sender=client.principal.name, prompt=prompt_name(request.params)
        )
        self.messages = list(user_messages(session_id, request.params, self.header))
        """What the other clients see of it."""
        self.span: HubSpan | None = None
        self.timer: asyncio.TimerHandle | None = None

    def is_of(self, other: "HubTurn") -> bool:
        """Whether both have the same prompt of the same principal, by the name that it was given."""
        return self.header.prompt == other.header.prompt and self.client.principal == other.client.principal

    def over(self, frame: bytes, *, interrupted: bool = False) -> None:
        """End what runs with it: its time limit, and its span with what the response says."""
        if self.timer is not None:
            self.timer.cancel()
        if self.span is not None:
            outcome, failed = ("interrupted", True) if interrupted else _outcome(frame)
            self.span.end(outcome, failed=failed)
            self.span = None


class HubTurns:
    """The turn that runs in a session, and the prompts that wait."""

    __slots__ = ("_idle", "_queue", "_session", "running")

    def __init__(self, session: "HubSession") -> None:
        self.running: HubTurn | None = None
        self._session = session
        self._queue: deque[HubTurn] = deque()
        self._idle: asyncio.Future[None] | None = None

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
        turns = (*self._queue, *([self.running] if self.running is not None else ()))
        return [turn.header.prompt for turn in turns if turn.header.prompt]

    def prompt(self, client: "RemoteClient", request: Request, line: bytes) -> None:
        """Run a prompt when its turn has come."""
        if len(self._queue) >= self._session.hub.limits.queue:
            why = f"{len(self._queue)} prompts wait in this session already"
            error = with_recovery(Code.INVALID_REQUEST, why, LATER)
            client.put(error_frame(request.id, error), self._session.id, request.id)
            return
        if self._session.id not in client.attachments:
            self._session.attach(client, self._session.last).start()
        turn = HubTurn(client, self._session.id, request, line)
        if (same := self._same(turn)) is not None:
            client.turns[same.id] = request.id, line[slice(*turn.spans[-1])]
            return
        if self._session.hub.traces is not None:
            turn.span = self._session.hub.traces.begin("turn", self._attributes(turn), _trace_context(request.params))
        self._queue.append(turn)
        self._next()

    def _same(self, turn: HubTurn) -> HubTurn | None:
        """Return the turn that runs or waits for a prompt which is sent again: its first copy was late, and is not lost as its client believes."""
        turns = (*self._queue, *([self.running] if self.running is not None else ()))
        return next((each for each in turns if turn.header.prompt and each.is_of(turn)), None)

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
        if self.running is None and self._queue and not self._session.is_over:
            self.running = self._queue.popleft()
            self._session.hub.run(self._begin_in_order(self.running))

    async def _begin_in_order(self, turn: HubTurn) -> None:
        async with self._session.order:
            await self._begin(turn)

    async def _begin(self, turn: HubTurn) -> None:
        try:
            link = await self._session.reopen()
        except AcpError as error:
            if not self._session.is_over:  # else it was answered
                self._drop(turn, error_frame(turn.request.id, error_object(error)))
            return
        if turn.is_cancelled:
            self._drop(turn, cancelled_frame(turn.request.id))
            return
        turn.link = link
        turn.client.turns[turn.id] = turn.request.id, turn.line[slice(*turn.spans[-1])]
        self._session.row = msgspec.structs.replace(self._session.row, turn=turn.id, turn_after=self._session.recorded)
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
        turn.client.put(
            frame, self._session.id, turn.request.id
        )  # at once: events before it may wait for the disk for long
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
        turn.agent_id = turn.link.forward(
            lambda id: replaced(turn.line, [(span, id) for span in turn.spans]),
            lambda response, line: self._ended(turn, response, line),
        )
        self.trace("sent")
        if (seconds := self._session.hub.limits.turn_timeout) is not None:
            turn.timer = asyncio.get_running_loop().call_later(seconds, self._overdue, turn, seconds)

    def _overdue(self, turn: HubTurn, seconds: float) -> None:
        """Cancel a turn that takes too long. If the agent does not end it, it is reported as interrupted."""
        if self.running is not turn or turn.is_ended or turn.link is None:
            return
        _log.warning("a turn in session `%s` took more than %g seconds: it is cancelled", self._session.id, seconds)
        turn.is_cancelled = True
        turn.link.send(notification("session/cancel", {"sessionId": self._session.id}))
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
        turn.over(frame, interrupted=interrupted)
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
        self._session.row = msgspec.structs.replace(self._session.row, turn="", updated=time.time())
        self._session.save()
        self.running = None
        self._next()

    def _drop(self, turn: HubTurn, frame: bytes) -> None:
        """Answer a prompt that was never sent. Where its connection is lost the answer is an event: its client knows the prompt by name."""
        turn.over(frame)
        if turn.client.closed.is_set() and turn.header.prompt:
            self._session.record(stored_event(END, turn.header, frame))
        else:
            self._session.answer(turn.client, frame, turn.request.id)
        if self.running is turn:
            self.running = None
            self._next()

    def cancel(self, client: "RemoteClient", line: bytes) -> None:
        """Cancel the running turn, and the prompts of this client that wait, those that it sent on a lost connection included."""

        def is_own(turn: HubTurn) -> bool:
            was_lost = turn.client.closed.is_set() and turn.client.principal == client.principal
            return turn.client is client or (was_lost and bool(turn.header.prompt))

        for turn in [turn for turn in self._queue if is_own(turn)]:
            self._queue.remove(turn)
            self._drop(turn, cancelled_frame(turn.request.id))
        if self.running is None:
            return
        self.running.is_cancelled = True
        if self.running.agent_id and self.running.link is not None:
            self.running.link.send(line)
        self._session.requests.cancel_all()

    def cancel_prompt(self, client: "RemoteClient", id: RequestId) -> bool:
        """Cancel one prompt by the id of its request. False: there is none."""

        def same(turn: HubTurn) -> bool:
            return turn.client is client and id_key(turn.request.id) == id_key(id)

        for turn in [turn for turn in self._queue if same(turn)]:
            self._queue.remove(turn)
            error = ErrorObject(Code.REQUEST_CANCELLED, "Request cancelled")
            self._drop(turn, error_frame(turn.request.id, error))
            return True
        if self.running is not None and same(self.running):
            self.running.is_cancelled = True
            if self.running.agent_id and self.running.link is not None:
                self.running.link.send(cancel_frame(self.running.agent_id))
            return True
        return False

    def interrupt(self, why: str) -> None:
        """End the running turn and the prompts that wait. The agent gets a cancellation."""
        for waiting in (*self._queue,):
            self._queue.remove(waiting)
            error = ErrorObject(Code.REQUEST_CANCELLED, f"Not sent: {why}")
            self._drop(waiting, error_frame(waiting.request.id, error))
        turn = self.running
        if turn is None:
            return
        if turn.agent_id and turn.link is not None:
            turn.link.send(notification("session/cancel", {"sessionId": self._session.id}))
        if turn.id == self._session.row.turn:
            self._end(turn, interrupted_frame(why), interrupted=True)
        else:
            turn.is_cancelled = True

    async def until_idle(self) -> None:
        """Wait until no turn runs and no prompt waits."""
        while self.running is not None and not self._session.is_over:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle

    def end_all(self, error: ErrorObject) -> None:
        """Answer all prompts with an error: the session leaves memory."""
        turns = [*self._queue, *([self.running] if self.running is not None else [])]
        self._queue.clear()
        self.running = None
        for turn in turns:
            turn.is_cancelled = True
            turn.client.turns.pop(turn.id, None)
            frame = error_frame(turn.request.id, error)
            turn.over(frame)
            turn.client.put(frame, self._session.id, turn.request.id)
        self._next()


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
    except msgspec.DecodeError:
        return {}
    return {"traceparent": meta.traceparent, "tracestate": meta.tracestate}


def _outcome(frame: bytes) -> tuple[str, bool]:
    """How a turn ended, and whether that is a failure."""
    try:
        response = msgspec.json.decode(frame, type=_PromptResponse)
    except msgspec.DecodeError:
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


LATER: Final = {"recoverable": True, "action": "try again later"}
"""The data of an error that passes by itself."""


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


def interrupted_frame(why: str) -> bytes:
    """Return the response to a prompt whose turn was interrupted. Its id is set for each client."""
    error = ErrorObject(
        Code.INTERNAL_ERROR,
        f"The turn was interrupted: {why}. It was not sent again.",
        {
            "hint": "look at what it did, then send another prompt",
            "recoverable": False,
            "action": "send another prompt",
            "antiphon": {"interrupted": True},
        },
    )
    return error_frame(0, error)
