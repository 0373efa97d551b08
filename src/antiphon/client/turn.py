"""A turn of a client: one prompt, its updates to iterate over, then a result.

Rules:

1. Updates wait on the connection until they are read, so a slow consumer slows the agent down and loses nothing.
2. A prompt is sent again only if it was refused before it began: because the session had expired, for the lack of a sign-in (by an
   error, or by the stop reason `auth_required`), or because the agent has lost a connection; and before any update.
3. A turn that is cancelled ends as `cancelled`: by the agent's response, or, if there is none in time, with the agent.
4. Transcript and settings of the session follow an update when it is read, so they are never ahead of the consumer.
"""

import asyncio
import logging
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import suppress
from enum import Enum
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Self, cast

import msgspec

from antiphon.client.capabilities import spoken_version
from antiphon.client.updates import follow_settings
from antiphon.errors import (
    AcpError,
    Code,
    ConnectionClosed,
    LocalProtocolError,
    RequestRefused,
    RequestTimeout,
    TurnLost,
    fresh,
)
from antiphon.life import Life
from antiphon.protocol import v1
from antiphon.protocol.extension import KEY
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.content import TextBlock
from antiphon.protocol.v1.tools import ToolCallPatch
from antiphon.protocol.v1.updates import AgentMessageChunk
from antiphon.transcript.entries import NO_MESSAGE, Message, Thought

if TYPE_CHECKING:
    from antiphon.client.session import ClientSession
    from antiphon.connection.connection import Connection
    from antiphon.connection.inbox import Inbox
    from antiphon.connection.stream import Backlog
    from antiphon.protocol.base import JsonObject
    from antiphon.protocol.v1.updates import Update
    from antiphon.transcript.entries import Entry

__all__ = ["CLIENT_TURN_LIFE", "ClientTurn", "ClientTurnEvent", "ClientTurnState"]

_log = logging.getLogger(__name__)

_NUMBERS: Final = count(1)

CANCELLED: Final = v1.PromptResult(v1.StopReason.CANCELLED)

AUTH_REQUIRED: Final = "auth_required"
"""A stop reason that is in no schema. It means what the error -32000 means, and is treated as that."""


class ClientTurnState(Enum):
    """How far a turn is."""

    WAITING = "waiting"
    """The prompt is not sent: the session has to be opened first, or the agent refused it before it began."""
    RUNNING = "running"
    CANCELLING = "being cancelled"
    """`session/cancel` is sent, and the agent has not responded to the prompt yet."""
    FINISHED = "finished"
    FAILED = "failed"


class ClientTurnEvent(Enum):
    """What can happen to a turn."""

    SEND = "be sent"
    REFUSE = "be refused before it began"
    CANCEL = "be cancelled"
    FINISH = "finish"
    FAIL = "fail"


_S, _E = ClientTurnState, ClientTurnEvent
CLIENT_TURN_LIFE: Final = Life(
    "turn of a client",
    _S.WAITING,
    {
        _S.WAITING: {_E.SEND: _S.RUNNING, _E.CANCEL: _S.FINISHED, _E.FINISH: _S.FINISHED, _E.FAIL: _S.FAILED},
        _S.RUNNING: {_E.REFUSE: _S.WAITING, _E.CANCEL: _S.CANCELLING, _E.FINISH: _S.FINISHED, _E.FAIL: _S.FAILED},
        _S.CANCELLING: {_E.CANCEL: _S.CANCELLING, _E.FINISH: _S.FINISHED, _E.FAIL: _S.FAILED},
        _S.FINISHED: {_E.CANCEL: _S.FINISHED},
        _S.FAILED: {_E.CANCEL: _S.FAILED},
    },
    "A turn that is cancelled before its prompt was sent finishes at once. One whose timeout is over is cancelled first, and then fails.",
)
_OVER: Final = (_S.FINISHED, _S.FAILED)


class ClientTurn:
    """One turn: `async for update in turn`, then `turn.result`; or `await turn` for the result alone, or `await turn.text()`.

    Use it with `async with` to have it cancelled and over however you leave it. A timeout or a cancelled task cancels it too; a bare
    `break` only when nothing refers to it any more. An error that is raised in the loop and kept refers to it by its traceback.
    """

    _state = ClientTurnState.FAILED  # of one that could not even be made, for `__del__`

    def __init__(
        self,
        session: "ClientSession",
        prompt: Sequence[v1.ContentBlock],
        timeout: float | None = None,
        meta: "JsonObject | None" = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._session = session
        self._prompt = list(prompt)
        self._meta = meta
        self._number = next(_NUMBERS)
        """What a translator names it by."""
        self._message_id: str | None = None
        self._state = CLIENT_TURN_LIFE.start
        self._result: v1.PromptResult | None = None
        self._error: AcpError | None = None
        self._begun = False
        """Whether anything came of it, so that it must not be sent again."""
        self._forgotten = False
        """Whether nothing refers to it any more: it is about to be cancelled."""
        self._cancelling: asyncio.Task[None] | None = None
        self._tries = session._link.tries()
        # Where the updates come from.
        self._connection: Connection | None = None
        self._backlog: Backlog[v1.SessionUpdate] | None = None
        self._response: asyncio.Task[v1.PromptResult] | None = None
        self._reading = asyncio.Lock()
        self._ahead: deque[Update] = deque()
        """What the consumer gets first: notices of our own, and updates that were read while the turn was cancelled."""
        self._late: list[Update] = []
        self._held_back: tuple[Inbox, int] | None = None
        # What came of them.
        self._entry: Message | Thought = NO_MESSAGE
        """The last message of the transcript that an update of this turn was added to: the next piece of it needs nothing else."""
        self._starts: dict[Message, int] = {}
        """The messages of the agent, and where in their text this turn begins."""
        self._ends: dict[Message, int] = {}
        """Where it ends in those that a later turn may go on with, once it is over."""
        self._timeout = timeout
        self._timed_out = False
        self._timer = None if timeout is None else self._loop.call_later(timeout, _expire, weakref.ref(self))
        if (connection := session._connection) is not None:
            self._send(connection)  # at once if the session is open; else by the first that reads

    # For the consumer.

    @property
    def result(self) -> v1.PromptResult:
        """The result of the turn, with its stop reason. Read the turn to its end first, or await it."""
        if self._error is not None:
            raise fresh(self._error)
        if self._result is None:
            raise LocalProtocolError("the turn is not over: read its updates to the end, or await it")
        return self._result

    @property
    def message_id(self) -> str | None:
        """The id of the prompt as a message of the session, once the agent has taken it. None before, and always in version 1."""
        return self._message_id

    def __aiter__(self) -> "AsyncGenerator[Update, None]":
        return self._updates()

    async def _updates(self) -> "AsyncGenerator[Update, None]":
        # A generator, and most of it in one place: this is what a client does for each of a hundred thousand updates.
        ahead, transcript, more = self._ahead, self._session.transcript, True
        entry = self._entry
        while more:
            while ahead:
                yield ahead.popleft()
            backlog = self._backlog
            if backlog is not None and backlog.ready():
                for received in backlog.head:
                    update = received.update
                    # The next piece of plain text is added here, as `Transcript.apply` does it: a call would be a tenth of all.
                    if (
                        type(update) is entry.open_to
                        and type(content := update.content) is TextBlock
                        and content.annotations is entry.note
                        and (update.message_id is None or update.message_id == entry.message_id)
                    ):
                        entry.tail.append(content.text)
                        yield update
                    elif self._follow(transcript.apply(update), update):
                        entry = self._entry
                        yield update
                    if ahead:
                        break
            elif backlog is not None and not backlog.over:
                try:
                    await backlog.arrival()
                except asyncio.CancelledError:
                    self._cancel()
                    raise
            else:
                more = await self._more()

    async def __anext__(self) -> "Update":
        while True:
            if self._ahead:
                return self._ahead.popleft()
            if (backlog := self._backlog) is not None and backlog.ready():
                if (update := self._take(backlog)) is not None:
                    return update
            elif not await self._more():
                raise StopAsyncIteration

    def __await__(self) -> Generator[Any, None, v1.PromptResult]:
        return self._rest().__await__()

    async def _rest(self) -> v1.PromptResult:
        async for _ in self:
            pass
        return self.result

    async def text(self) -> str:
        """Wait for the end of the turn, and return all text of the agent's messages in it."""
        await self
        pieces: list[str] = []
        before: str | None = None
        for message, start in self._starts.items():
            if message.message_id is not None and before is not None and message.message_id != before:
                pieces.append("\n\n")
            before = message.message_id or before
            pieces.append(message.text[start : self._ends.get(message)])
        return "".join(pieces)

    async def cancel(self) -> v1.PromptResult:
        """Cancel the turn and wait until it is over. What comes of it meanwhile is in the session's transcript.

        An agent that does not end the turn within the connection's `cancel_grace` is killed, and started again when next needed.
        """
        if (cancelling := self._cancel()) is not None:
            await asyncio.shield(cancelling)
        return self.result

    def cancel_soon(self) -> None:
        """Cancel the turn, and do not wait for its end."""
        self._cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if (cancelling := self._cancel()) is not None:
            await asyncio.shield(cancelling)

    def __del__(self) -> None:
        # Left by `break`, without a reference. Its updates would wait for ever, and the connection with them.
        if not self._over and not self._loop.is_closed():
            # Not at once: the collector may be at work anywhere, also in the middle of a frame.
            self._forgotten = True
            self._session._inbox.hold(self)
            self._loop.call_soon_threadsafe(self._cancel)

    # For the session.

    @property
    def _over(self) -> bool:
        return self._state in _OVER

    @property
    def _sent(self) -> bool:
        return self._backlog is not None

    @property
    def _being_cancelled(self) -> bool:
        """Whether it was cancelled and the agent has not responded yet."""
        return self._cancelling is not None and self._backlog is not None and not self._backlog.over

    @property
    def _waiting(self) -> "list[Update]":
        """The updates that have come and are not read yet."""
        return [] if self._backlog is None else [each.update for each in self._backlog.waiting]

    def _enter_behind(self, patch: v1.ToolCallPatch) -> None:
        """Enter a call that permission is asked for into the transcript behind the updates that still wait."""
        if self._backlog is not None:
            # No update, but it stands in their order; `_follow` takes it out again.
            self._backlog.push([v1.SessionUpdate(self._session.id, cast("Update", patch))], 0)

    def _notify(self, notice: v1.NoticeUpdate) -> None:
        """Give the consumer a notice of our own."""
        self._ahead.append(notice)

    def _keep_late(self, update: "Update", weight: int) -> None:
        """Keep an update that came after the response, before this turn was read to its end. It weighs on the connection as unread
        updates do."""
        if self._connection is not None:
            inbox = self._connection.inbox
            held = self._held_back[1] if self._held_back is not None and self._held_back[0] is inbox else 0
            self._held_back = (inbox, held + weight)
            inbox.take(weight)
        self._late.append(update)

    def _take_late(self) -> "list[Update]":
        """Return all of those; they weigh on the connection no longer."""
        if self._held_back is not None:
            inbox, held = self._held_back
            inbox.release(held)
        late, self._late, self._held_back = self._late, [], None
        return late

    # Reading.

    def _take(self, backlog: "Backlog[v1.SessionUpdate]") -> "Update | None":
        """Read the next update that waits. None: it was the mark of a permission request."""
        update: Update = next(backlog.head).update
        return update if self._follow(self._session.transcript.apply(update), update) else None

    def _follow(self, entry: "Entry | None", update: "Update") -> bool:
        """Keep up with an update that the transcript has taken. False: it is not an update."""
        self._begun = True
        if entry is self._entry:
            return True
        if type(entry) is Message or type(entry) is Thought:
            self._entry = entry
            if type(update) is AgentMessageChunk and type(entry) is Message and entry not in self._starts:
                piece = len(update.content.text) if isinstance(update.content, TextBlock) else 0
                self._starts[entry] = len(entry.text) - piece
        elif entry is None:
            follow_settings(self._session, update)
        return type(update) is not ToolCallPatch  # the mark of a permission request, which stands among the updates

    async def _more(self) -> bool:
        """Wait until there is something to read. False: the turn is over.

        Raises:
            TurnLost: the connection was lost, and the prompt may have been worked on.
            AcpError: it could not be sent, or was refused.
        """
        try:
            async with self._reading:  # two may want to: the consumer, and the task that cancels
                if self._ahead or await self._wait():
                    return True
        except asyncio.CancelledError:
            self._cancel()
            raise
        if self._ahead:
            return True
        if self._error is not None:
            raise fresh(self._error)
        return False

    async def _wait(self) -> bool:
        """Wait until an update waits, or a notice. False: the turn is over. A wait that is cancelled leaves the turn as it is."""
        while not self._over:
            backlog, response = self._backlog, self._response
            try:
                if backlog is None or response is None:
                    async with self._in_time():
                        connection = await self._session._ready()
                    self._send(connection)
                    if self._ahead:
                        return True
                elif backlog.ready():
                    return True
                elif not backlog.over:
                    await backlog.more()
                else:
                    await self._respond(await asyncio.shield(response))  # raises what the request raised
            except AcpError as error:
                await self._fail(error)
            except TimeoutError:
                if self._timer is None:
                    raise
                self._expire()  # the timer itself may be a moment late
        return False

    def _in_time(self) -> asyncio.Timeout:
        return asyncio.timeout_at(None if self._timer is None else self._timer.when())

    # Its life.

    def _does(self, event: ClientTurnEvent) -> None:
        self._state = CLIENT_TURN_LIFE.next(self._state, event)

    def _send(self, connection: "Connection") -> None:
        if self._over:  # cancelled while the session was being opened
            return
        meta = self._meta
        if spoken_version(connection) > 1:
            meta = {**(meta or {}), KEY: {"prompt": self._number}}
        try:
            self._backlog, self._response = connection.begin(
                m.PROMPT, v1.Prompt(self._session.id, self._prompt, meta=meta), self._session.id
            )
        except ConnectionClosed:
            self._session._expire()  # gone since we looked: the next try opens it again
            return
        self._does(_E.SEND)
        self._connection = connection
        self._session._activity.prompted(self._response)

    async def _respond(self, result: v1.PromptResult) -> None:
        """Take the agent's response."""
        if result.stop_reason.value == AUTH_REQUIRED and self._cancelling is None:
            await self._fail(RequestRefused(Code.AUTH_REQUIRED, "Authentication required"))
            return
        if self._cancelling is not None and result.stop_reason != v1.StopReason.CANCELLED:
            result = msgspec.structs.replace(result, stop_reason=v1.StopReason.CANCELLED)
        self._end(result=result)

    async def _fail(self, error: AcpError) -> None:
        """Try again where that helps; else the turn is over."""
        if self._over:
            return
        sent, self._backlog, self._response = self._sent, None, None
        try:
            if self._cancelling is not None:
                self._end(result=CANCELLED)  # agents respond to a cancelled turn with all sorts of errors
            elif sent and isinstance(error, ConnectionClosed):
                lost = f"the connection was lost in the middle of a turn: {error.sentence}"
                raise TurnLost(lost, hint=error.hint) from error
            elif sent and (self._begun or not _before_it_began(error)):
                raise self._session._link.explained(error)
            else:
                if sent:
                    self._does(_E.REFUSE)
                async with self._in_time():
                    await self._tries.another(error, self._session._expire)
        except AcpError as final:
            self._end(error=final)
        except TimeoutError:
            if self._timer is None:
                raise
            self._expire()
        except asyncio.CancelledError:
            self._end(result=CANCELLED)  # it was refused and not sent again: there is nothing to cancel
            raise

    def _end(self, *, result: v1.PromptResult | None = None, error: AcpError | None = None) -> None:
        if self._over:
            return
        if self._timer is not None:
            self._timer.cancel()
        if self._timed_out and self._timeout is not None:
            result, error = None, RequestTimeout(m.PROMPT.name, self._timeout, peer=self._session._link.name)
        self._does(_E.FINISH if error is None else _E.FAIL)
        self._result, self._error = result, error
        self._ends = {message: len(message.text) for message in self._starts if message.message_id is not None}
        self._session._inbox.over(self)

    def _cancel(self) -> "asyncio.Task[None] | None":
        """Cancel it, if it is not over. Returns the task to wait for, if any: when that is done the turn is over."""
        if self._over or self._cancelling is not None:
            return self._cancelling
        if self._backlog is None or self._connection is None:
            self._end(result=CANCELLED)
            return None
        self._does(_E.CANCEL)
        self._cancelling = self._session._link.run(self._read_out(), "cancel a turn")
        self._session._questions.release()
        with suppress(ConnectionClosed):  # that ends it too
            self._connection.post(m.CANCEL, v1.Cancel(self._session.id))
        return self._cancelling

    def _expire(self) -> None:
        """Cancel the turn because its timeout is over, unless it has ended or is cancelled already."""
        if not self._over and self._cancelling is None:
            self._timed_out = True
            self._cancel()

    async def _read_out(self) -> None:
        """Read a cancelled turn to its end. An agent that does not end it within the grace period is killed."""
        link = self._session._link
        try:
            async with asyncio.timeout(link.cancel_grace):
                while not self._over:
                    async with self._reading:
                        if not await self._wait() or (backlog := self._backlog) is None or not backlog.ready():
                            continue
                        update = self._take(backlog)
                        if update is not None and not self._forgotten:
                            self._ahead.append(update)  # for the consumer, which misses no update
        except TimeoutError:
            _log.warning("%s ignores a cancelled turn for %g s and is killed", link.name, link.cancel_grace)
            self._end(result=CANCELLED)
            if self._connection is not None:
                await link.kill(self._connection)


def _expire(turn: "weakref.ref[ClientTurn]") -> None:
    """Cancel a turn whose timeout is over. By a weak reference: a timer must not keep a turn that its consumer has forgotten."""
    if (found := turn()) is not None:
        found._expire()


def _before_it_began(error: AcpError) -> bool:
    """Whether a prompt was refused before the agent began to work on it."""
    if not isinstance(error, RequestRefused):
        return False
    return error.code == Code.SESSION_EXPIRED or error.wants_sign_in or error.reports_closed
