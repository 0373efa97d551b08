"""Where a turn takes place: updates out, questions to the client, and an end after which there is neither."""

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import UNSET

from antiphon.aio import ignore_result
from antiphon.errors import TurnOver

if TYPE_CHECKING:
    from antiphon.agent.session import Session
    from antiphon.protocol import v1
    from antiphon.protocol.methods import Call
    from antiphon.protocol.timeouts import Timeout

__all__ = ["Stage"]

P = TypeVar("P")
R = TypeVar("R")


class Stage:
    """The part of a turn that all its verbs need."""

    def __init__(self, session: "Session") -> None:
        self.session = session
        self.over = False
        """Whether the turn has been answered."""
        self._asking: set[asyncio.Task[Any]] = set()

    def update(self, update: "v1.Update") -> Awaitable[None]:
        """Tell any update.

        Raises:
            TurnOver: the turn has been answered.
        """
        self._still_on()
        return self.session.update(update)

    async def request(self, call: "Call[P, R]", params: P, *, timeout: "Timeout" = UNSET) -> R:
        """Send a request to the client. It is cancelled when the turn ends.

        `timeout`: the seconds that the response may take, None for no timeout; by default what `protocol.timeouts` has for it.

        Raises:
            RequestTimeout: there was no response in time.
        """
        self._still_on()
        asking = asyncio.get_running_loop().create_task(
            self.session.request(call, params, timeout=timeout), name=call.name
        )
        self._asking.add(asking)
        asking.add_done_callback(self._answered)
        return await asking

    def _answered(self, asking: "asyncio.Task[Any]") -> None:
        self._asking.discard(asking)
        ignore_result(asking)  # the caller may have been cancelled in the same moment

    def next_id(self, what: str) -> str:
        """A name for a part of this turn that no other turn of the session uses."""
        session = self.session
        session.numbers += 1
        return f"{what}-{session.series}{session.numbers}"

    def end(self) -> None:
        """The turn is about to be answered."""
        self.over = True
        for asking in tuple(self._asking):
            asking.cancel()

    def _still_on(self) -> None:
        if self.over:
            raise TurnOver("this turn has been answered", hint="news between turns go through `turn.session`")
