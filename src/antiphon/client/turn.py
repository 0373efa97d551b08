"""One turn as its consumer sees it: updates to iterate over, then a result."""

import asyncio
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Self

from antiphon.client.run import Run
from antiphon.errors import LocalProtocolError, fresh
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.protocol.v1.updates import Update

__all__ = ["Turn"]


class Turn:
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
