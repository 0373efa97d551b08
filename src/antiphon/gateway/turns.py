"""The turns of one session: one at a time, and prompts that wait for it.

A prompt is sent to the agent once, after it was stored that it is sent. A turn whose agent ends is reported as interrupted.
"""

import asyncio
import time
from collections import deque
from secrets import token_hex
from typing import TYPE_CHECKING

import msgspec

from antiphon.errors import AcpError, Code, ResponseError
from antiphon.gateway.agents.link import AgentLink, cancel_frame
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
    from antiphon.gateway.client import RemoteClient
    from antiphon.gateway.session import HubSession

__all__ = ["HubTurn", "HubTurns", "error_object", "interrupted_frame"]


class HubTurn:
    """A prompt: it waits, then it runs, then it has its response."""

    __slots__ = (
        "agent_id", "client", "header", "id", "is_cancelled", "is_ended", "line", "link", "messages", "request", "spans",
    )  # fmt: skip

    def __init__(self, client: "RemoteClient", session_id: str, request: Request, line: bytes) -> None:
        self.id = token_hex(8)
        self.client = client
        self.request = request
        self.line = line
        self.link: AgentLink | None = None
        self.agent_id = b""
        """Its id at the agent, once it was sent."""
        self.is_cancelled = False
        self.is_ended = False
        """Whether its end is recorded."""
        self.spans = list(values_of(line, "id"))
        self.header = EventHeader(
            turn=self.id, connection=client.id, sender=client.principal.name, prompt=prompt_name(request.params)
        )
        self.messages = list(user_messages(session_id, request.params, self.header))
        """What the other clients see of it."""


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
    def names(self) -> list[str]:
        """The names that clients gave to the prompts that run or wait."""
        turns = (*self._queue, *([self.running] if self.running is not None else ()))
        return [turn.header.prompt for turn in turns if turn.header.prompt]

    def prompt(self, client: "RemoteClient", request: Request, line: bytes) -> None:
        """Run a prompt when its turn has come."""
        if len(self._queue) >= self._session.hub.limits.queue:
            error = ErrorObject(Code.INVALID_REQUEST, f"{len(self._queue)} prompts wait in this session already")
            client.put(error_frame(request.id, error), self._session.id, request.id)
            return
        if self._session.id not in client.attachments:
            self._session.attach(client, self._session.last).start()
        self._queue.append(HubTurn(client, self._session.id, request, line))
        self._next()

    def _next(self) -> None:
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)
        if self.running is None and self._queue and not self._session.is_over:
            self.running = self._queue.popleft()
            self._session.hub.run(self._begin(self.running))

    async def _begin(self, turn: HubTurn) -> None:
        try:
            link = await self._session.reopen()
        except AcpError as error:
            self._drop(turn, error_frame(turn.request.id, error_object(error)))
            return
        if self._session.is_over:
            return
        if turn.is_cancelled:
            self._drop(turn, cancelled_frame(turn.request.id))
            return
        turn.link = link
        turn.client.turns[turn.id] = turn.request.id, turn.line[slice(*turn.spans[-1])]
        self._session.row = msgspec.structs.replace(
            self._session.row, turn=turn.id, turn_after=self._session.recorded, updated=time.time()
        )
        self._session.save()
        self._session.record(stored_event(TURN, turn.header))
        for message in turn.messages:
            self._session.record(stored_event(PROMPT, turn.header, message))
        self._session.when_recorded(lambda: self._send(turn))

    def _send(self, turn: HubTurn) -> None:
        """Send the prompt to the agent: it is stored that it runs."""
        if self._session.is_over or turn.link is None:
            return
        if turn.is_cancelled:
            self._end(turn, cancelled_frame(turn.request.id))
            return
        turn.agent_id = turn.link.forward(
            lambda id: replaced(turn.line, [(span, id) for span in turn.spans]),
            lambda response, line: self._ended(turn, response, line),
        )

    def _ended(self, turn: HubTurn, response: Response, line: bytes) -> None:
        if line:
            self._end(turn, line)
        else:
            self._end(turn, interrupted_frame("its agent ended"), interrupted=True)

    def _end(self, turn: HubTurn, frame: bytes, *, interrupted: bool = False) -> None:
        """Record the end of a turn. Its client gets the response when it is stored."""
        if self.running is not turn or turn.is_ended:
            return
        turn.is_ended = True
        self._session.requests.cancel_all()
        header = msgspec.structs.replace(turn.header, interrupted=interrupted)
        self._session.record(stored_event(END, header, frame), self._finish)

    def _finish(self) -> None:
        """Go on after a turn, when it is stored that it ended: a kill of the gateway before that finds it running."""
        if self._session.is_over:
            return
        self._session.row = msgspec.structs.replace(
            self._session.row, turn="", updated=time.time(), state=self._session.settings.stored()
        )
        self._session.save()
        self.running = None
        self._next()

    def _drop(self, turn: HubTurn, frame: bytes) -> None:
        """Answer a prompt that was never sent."""
        self._session.answer(turn.client, frame, turn.request.id)
        if self.running is turn:
            self.running = None
            self._next()

    def cancel(self, client: "RemoteClient", line: bytes) -> None:
        """Cancel the running turn, and the prompts of this client that wait."""
        for turn in [turn for turn in self._queue if turn.client is client]:
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
            turn.client.put(error_frame(turn.request.id, error), self._session.id, turn.request.id)
        self._next()


def error_object(error: AcpError) -> ErrorObject:
    """Make the error of a response from an error."""
    if isinstance(error, ResponseError):
        return ErrorObject(error.code, error.message, error.data)
    return ErrorObject(
        Code.INTERNAL_ERROR, error.sentence.partition("\n")[0], {"hint": error.hint} if error.hint else None
    )


def cancelled_frame(id: RequestId) -> bytes:
    """Return the response to a prompt that was cancelled."""
    return b'%b{"stopReason":"cancelled"}}' % head_of_answer(id)


def interrupted_frame(why: str) -> bytes:
    """Return the response to a prompt whose turn was interrupted. Its id is set for each client."""
    error = ErrorObject(
        Code.INTERNAL_ERROR,
        f"The turn was interrupted: {why}. It was not sent again.",
        {"hint": "look at what it did, then send another prompt", "antiphon": {"interrupted": True}},
    )
    return error_frame(0, error)
