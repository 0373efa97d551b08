"""Where scenarios for clients play: a client that is made to do something, and a stand-in for its agent, under the scenario's direction.

A scenario writes into `script` what the agent is like, starts the client, takes over its turn with `prompted`, and calls `holds` for
each requirement that it shows. Whatever it does not take over the stand-in does correctly, on every connection that the client opens.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Final

from antiphon.conformance.commands import CLIENT_PURPOSES
from antiphon.conformance.directing import ClientWishes, Directing, Meeting, Turn
from antiphon.conformance.standin import Script, Standin
from antiphon.conformance.verdicts import Blocked, Unseen
from antiphon.conformance.visits import ClientPlace, Running, Visit
from antiphon.conformance.wire import Wire
from antiphon.traffic.entries import Direction, Entry

__all__ = ["ClientStage", "ClientWishes", "NotAsked", "Turn"]

LAST_WORDS: Final = 300
"""Letters of what a client printed that are told where it ended too early."""


class NotAsked(Blocked):
    """The client did not ask for what the scenario is about."""


class ClientStage(Directing):
    """One scenario with one client."""

    def __init__(self, place: ClientPlace, cwd: Path, wishes: ClientWishes) -> None:
        super().__init__(wishes)
        self.place = place
        self.cwd = cwd
        self.script = Script()
        self.meetings: list[Meeting] = []
        self._running: Running | None = None
        self._asked: dict[str, asyncio.Queue[Turn]] = {}
        self._held: list[Turn] = []

    # The client.

    async def start(self, purpose: str = "prompt") -> None:
        """Start the client.

        Raises:
            Unseen: nobody said how to make it do this.
        """
        if not self.place.has(purpose):
            wanted = CLIENT_PURPOSES[purpose]
            raise Unseen(f"there is no command for `{purpose}`; one in `--commands FILE` has to {wanted}")
        self._running = await self.place.start(purpose, self.cwd, self._meet)

    def _meet(self, visit: Visit) -> None:
        wire = Wire(visit.transport, Direction.A2C)
        self.meetings.append(Meeting(visit, wire, Standin(wire, self.script, self._hold)))

    def _hold(self, agent: Standin, entry: Entry) -> None:
        meeting = next(one for one in self.meetings if one.agent is agent)
        turn = Turn(meeting, entry)
        self._held.append(turn)
        self._queue(entry.method or "").put_nowait(turn)

    def _queue(self, method: str) -> "asyncio.Queue[Turn]":
        return self._asked.setdefault(method, asyncio.Queue())

    @property
    def running(self) -> Running:
        """The client that was started."""
        if self._running is None:
            raise Blocked("the client was not started")
        return self._running

    async def asked(self, method: str) -> Turn:
        """The next request of this kind, on whichever connection, to be answered here; `script.held` has to name it.

        Raises:
            NotAsked: the client ended without one, or it did not come in time.
        """
        come = asyncio.ensure_future(self._queue(method).get())
        over = asyncio.ensure_future(self.running.ended.wait())
        try:
            await asyncio.wait((come, over), timeout=self.wishes.limit, return_when=asyncio.FIRST_COMPLETED)
            for meeting in self.meetings:  # it may have ended, and what it said may still be on its way
                if not come.done():
                    await meeting.wire.silence(self.wishes.patience)
            if come.done():
                return come.result()
        finally:
            come.cancel()
            over.cancel()
        raise NotAsked(f"the client did not send `{method}`{self._last_words()}")

    def _last_words(self) -> str:
        if not self.running.ended.is_set():
            return f" within {self.wishes.limit:g} s"
        said = self.running.output[-LAST_WORDS:]
        return f" and ended with status {self.running.status}" + (f"; it printed: {said}" if said else "")

    async def prompted(self) -> Turn:
        """Its next prompt, whose turn is then played by the scenario."""
        turn = await self.asked("session/prompt")
        await self.take_over(turn)
        return turn

    async def ended(self) -> int | None:
        """The status with which the client ends, when its user has nothing more to say; None if it does not end in time."""
        self.running.end_input()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.running.ended.wait(), self.wishes.limit)
        return self.running.status

    async def release(self) -> None:
        """The scenario is over: what it held back is answered as usual, so that the client can end by itself."""
        self.script.held.clear()
        for turn in self._held:
            if not turn.is_answered:
                turn.meeting.agent.hear(turn.entry)
