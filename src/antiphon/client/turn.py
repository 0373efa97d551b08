"""One turn as its consumer sees it: updates to iterate over, then a result."""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

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
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m

if TYPE_CHECKING:
    from antiphon.client.session import ClientSession
    from antiphon.connection.connection import Connection
    from antiphon.connection.inbox import Inbox
    from antiphon.connection.stream import Stream
    from antiphon.protocol.v1.updates import Update

__all__ = ["ClientTurn", "Run"]

# --- A turn at work: sent when the session is ready, read in order, called off, answered once
# The consumer holds a `Turn`; this is what remains when it stops caring. Rules:
#
# 1. Updates wait on the connection until somebody takes them, so a slow consumer slows the wire.
# 2. A prompt is sent again only if it was refused before it began: because the session had expired, for the lack of a sign-in (by an
#    error, or by the stop reason `auth_required`), or because the agent has lost a connection; and before any update.
# 3. A turn that is called off ends as `cancelled`: by the agent's answer, or, if there is none in time, with the agent.

_log = logging.getLogger(__name__)

CANCELLED = v1.PromptResult(v1.StopReason.CANCELLED)

AUTH_REQUIRED: Final = "auth_required"
"""A stop reason that is in no schema. It means what the error -32000 means, and is treated as that."""


class Run:
    """One prompt and what comes of it."""

    def __init__(
        self, session: "ClientSession", prompt: Sequence[v1.ContentBlock], timeout: float | None = None
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.result: v1.PromptResult | None = None
        self.error: AcpError | None = None
        self.called_off: asyncio.Task[None] | None = None
        self.forgotten = False
        """Whether nobody holds its `Turn` any more: it is about to be called off."""
        self.notices: deque[v1.Update] = deque()
        """What we have to say in the turn ourselves."""
        self.begun = False
        """Whether anything came of it, so that it must not be sent again."""
        self._late: list[v1.Update] = []
        self._held_back: tuple[Inbox, int] | None = None
        self._left: deque[v1.Update] = deque()  # heard while it was called off, and not given to its consumer yet
        self._session = session
        self._prompt = list(prompt)
        self._stream: Stream[v1.SessionUpdate, v1.PromptResult] | None = None
        self._connection: Connection | None = None
        self._said: list[str] = []
        self._message_id: str | None = None
        self._taken = 0
        self._asked: deque[tuple[int, v1.ToolCallPatch]] = deque()
        self._tries = session.link.tries()
        self._taking = asyncio.Lock()
        self._timeout = timeout
        self._timed_out = False
        self._timer = None if timeout is None else self.loop.call_later(timeout, self._expire)
        if (connection := session.home) is not None:
            self._send(connection)  # at once if the way is clear; else by whoever takes first

    @property
    def over(self) -> bool:
        """Whether it has ended, one way or another."""
        return self.result is not None or self.error is not None

    @property
    def sent(self) -> bool:
        """Whether the agent has the prompt."""
        return self._stream is not None

    @property
    def waiting(self) -> "list[v1.Update]":
        """What the agent has told and nobody has taken yet."""
        return [] if self._stream is None else [news.update for news in self._stream.waiting]

    def ask_later(self, patch: v1.ToolCallPatch, after: int) -> None:
        """A call that permission is asked for: it enters the transcript behind that many updates that still wait."""
        self._asked.append((self._taken + after, patch))

    @property
    def being_cancelled(self) -> bool:
        """Whether it was called off and the agent has not answered yet."""
        return self.called_off is not None and self._stream is not None and not self._stream.answered

    def keep_late(self, update: "v1.Update", weight: int) -> None:
        """What the agent told after the answer, before this turn was read to its end. It weighs on the connection as unread updates do."""
        if self._connection is not None:
            inbox = self._connection.inbox
            held = self._held_back[1] if self._held_back is not None and self._held_back[0] is inbox else 0
            self._held_back = (inbox, held + weight)
            inbox.take(weight)
        self._late.append(update)

    def take_late(self) -> "list[v1.Update]":
        """All of that; the connection is relieved of it."""
        if self._held_back is not None:
            inbox, held = self._held_back
            inbox.release(held)
        late, self._late, self._held_back = self._late, [], None
        return late

    def take_now(self) -> "v1.Update | None":
        """The next update, if it waits already."""
        if self._left:
            return self._left.popleft()
        if self.notices or self._stream is None or (news := self._stream.take_now()) is None:
            return None
        return self._heard(news.update)

    async def take(self) -> "v1.Update | None":
        """The next update, or None when the turn is over. A wait that is cancelled leaves the turn as it is.

        Raises:
            TurnLost: the connection was lost, and the prompt may have been worked on.
            AcpError: it could not be sent, or was refused.
        """
        async with self._taking:  # two may want to: who iterates, and who calls it off
            if self._left:
                return self._left.popleft()
            update = await self._next()
        if update is None and self._left:
            return self._left.popleft()
        if update is None and self.error is not None:
            raise fresh(self.error)
        return update

    async def _next(self) -> "v1.Update | None":
        while not self.over:
            if self.notices:
                return self.notices.popleft()
            try:
                if self._stream is None:
                    async with asyncio.timeout_at(None if self._timer is None else self._timer.when()):
                        connection = await self._session.ready()
                    self._send(connection)
                elif (news := await self._stream.take()) is not None:
                    return self._heard(news.update)
                elif (result := self._stream.result).stop_reason.value == AUTH_REQUIRED and self.called_off is None:
                    await self._failed(RequestRefused(Code.AUTH_REQUIRED, "Authentication required"))
                else:
                    self._finish(result)
            except AcpError as error:
                await self._failed(error)
            except TimeoutError:
                if self._timer is None:
                    raise
                self._expire()  # the timer itself may be a moment late
        return self.notices.popleft() if self.notices else None

    def _send(self, connection: "Connection") -> None:
        if self.over:  # called off while the session was being opened
            return
        try:
            self._stream = connection.stream(m.PROMPT, v1.Prompt(self._session.id, self._prompt))
        except ConnectionClosed:
            self._session.expire()  # gone since we looked: the next try opens it again
            return
        self._connection = connection

    def _heard(self, update: "v1.Update") -> "v1.Update":
        self.begun = True
        self._taken += 1
        if type(update) is v1.AgentMessageChunk and type(update.content) is v1.TextBlock:
            self._say(update.content.text, update.message_id)
        self._session.hearing.follow(update)
        self._enter_asked(self._taken)
        return update

    def _say(self, text: str, message_id: str | None) -> None:
        if message_id is not None and self._message_id is not None and message_id != self._message_id:
            self._said.append("\n\n")
        self._message_id = message_id or self._message_id
        self._said.append(text)

    @property
    def text(self) -> str:
        """What the agent has said so far, as far as it was taken."""
        return "".join(self._said)

    def _enter_asked(self, taken: float) -> None:
        while self._asked and self._asked[0][0] <= taken:
            self._session.transcript.asked(self._asked.popleft()[1])

    async def _failed(self, error: AcpError) -> None:
        """Either there is another try, or the turn is over."""
        if self.over:
            return
        sent, self._stream = self._stream is not None, None
        try:
            if self.called_off is not None:
                self._finish(CANCELLED)  # agents answer a cancelled turn with all sorts of errors
            elif sent and isinstance(error, ConnectionClosed):
                lost = f"the connection was lost in the middle of a turn: {error.sentence}"
                raise TurnLost(lost, hint=error.hint) from error
            elif sent and (self.begun or not _before_it_began(error)):
                raise self._session.link.explained(error)
            else:
                async with asyncio.timeout_at(None if self._timer is None else self._timer.when()):
                    await self._tries.another(error, self._session.expire)
        except AcpError as final:
            self._end(error=final)
        except TimeoutError:
            if self._timer is None:
                raise
            self._expire()
        except asyncio.CancelledError:
            self._end(result=CANCELLED)  # it was refused and not sent again: there is nothing to call off
            raise

    # Its end.

    def _finish(self, result: v1.PromptResult) -> None:
        if self.called_off is not None and result.stop_reason != v1.StopReason.CANCELLED:
            result = msgspec.structs.replace(result, stop_reason=v1.StopReason.CANCELLED)
        self._end(result=result)

    def _end(self, *, result: v1.PromptResult | None = None, error: AcpError | None = None) -> None:
        if not self.over:
            if self._timer is not None:
                self._timer.cancel()
            if self._timed_out and self._timeout is not None:
                result, error = None, RequestTimeout(m.PROMPT.name, self._timeout, peer=self._session.link.name)
            self.result, self.error = result, error
            self._enter_asked(math.inf)
            self._session.hearing.over(self)

    def call_off(self) -> "asyncio.Task[None] | None":
        """Cancel it, if it is not over. Returns what to wait for, if anything: when that is done the turn is over."""
        if self.over or self.called_off is not None:
            return self.called_off
        if self._stream is None or self._connection is None:
            self._end(result=CANCELLED)
            return None
        self.called_off = self._session.link.do(self._read_out(), "call off a turn")
        self._session.questions.release()
        with suppress(ConnectionClosed):  # that ends it too
            self._connection.post(m.CANCEL, v1.Cancel(self._session.id))
        return self.called_off

    def _expire(self) -> None:
        """Cancel the turn because its timeout is over, unless it has ended or is cancelled already."""
        if not self.over and self.called_off is None:
            self._timed_out = True
            self.call_off()

    async def _read_out(self) -> None:
        """Hear the turn to its end, for a while. An agent that does not end it is ended."""
        link = self._session.link
        try:
            async with asyncio.timeout(link.cancel_grace):
                while not self.over:
                    async with self._taking:
                        update = await self._next()
                        if update is not None and not self.forgotten:
                            self._left.append(update)  # for whoever iterates, who misses nothing by it
        except TimeoutError:
            _log.warning("%s ignores a cancelled turn for %g s and is ended", link.name, link.cancel_grace)
            self._end(result=CANCELLED)
            if self._connection is not None:
                await link.end(self._connection)


def _before_it_began(error: AcpError) -> bool:
    """Whether a refusal says that the prompt was not even looked at."""
    if not isinstance(error, RequestRefused):
        return False
    return error.code == Code.SESSION_EXPIRED or error.wants_sign_in or error.says_closed


class ClientTurn:
    """`async for update in turn`, then `turn.result`; or `await turn` for the result alone, or `await turn.text()`.

    Use it with `async with` to have it cancelled and over however you leave it. A timeout or a cancelled task cancels it too; a bare `break`
    only when nobody holds on to it any more. An error that is raised in the loop and kept holds on to it by its traceback.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def result(self) -> v1.PromptResult:
        """Why it ended, once it has: read it to its end, or await it."""
        run = self._run
        if run.error is not None:
            raise fresh(run.error)
        if run.result is None:
            raise LocalProtocolError("the turn is not over: read its updates to the end, or await it")
        return run.result

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> "Update":
        run = self._run
        update = run.take_now()
        if update is not None:
            return update
        try:
            update = await run.take()
        except asyncio.CancelledError:
            run.call_off()
            raise
        if update is None:
            raise StopAsyncIteration
        return update

    def __await__(self) -> Generator[Any, None, v1.PromptResult]:
        return self._rest().__await__()

    async def _rest(self) -> v1.PromptResult:
        async for _ in self:
            pass
        return self.result

    async def text(self) -> str:
        """All that the agent says in the turn, once it is over: its messages alone, as text."""
        await self
        return self._run.text

    async def cancel(self) -> v1.PromptResult:
        """Cancel the turn and wait until it is over. What comes of it meanwhile is in the session's transcript.

        An agent that does not end the turn within the connection's `cancel_grace` is ended, and started again when next needed.
        """
        if (called_off := self._run.call_off()) is not None:
            await asyncio.shield(called_off)
        return self.result

    def cancel_soon(self) -> None:
        """Cancel the turn, and do not wait for its end."""
        self._run.call_off()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if (called_off := self._run.call_off()) is not None:
            await asyncio.shield(called_off)

    def __del__(self) -> None:
        # Left by `break` and forgotten. Its updates would wait for ever, and the connection with them.
        run = self._run
        if not run.over and not run.loop.is_closed():
            # Not at once: the collector may be at work anywhere, also in the middle of a frame.
            run.forgotten = True
            run.loop.call_soon_threadsafe(run.call_off)
