"""Where scenarios for clients play: a client that is made to do something, and a stand-in for its agent, under the scenario's direction.

A scenario writes into `script` what the agent is like, starts the client, takes over its turn with `prompted`, and calls `holds` for
each requirement that it shows. Whatever it does not take over the stand-in does correctly, on every connection that the client opens.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from antiphon.conformance.asking import Answer, Judged, Pending
from antiphon.conformance.commands import CLIENT_PURPOSES
from antiphon.conformance.standin import Script, Standin
from antiphon.conformance.verdicts import Blocked, NoAnswer, NotOffered, Unseen
from antiphon.conformance.visits import ClientPlace, Running, Visit
from antiphon.conformance.wire import Wire
from antiphon.traffic.entries import Direction, Entry

__all__ = ["ClientStage", "ClientWishes", "Meeting", "NotAsked", "Turn"]

FENCE: Final = "_antiphon/fence"
"""A request that no client knows: its answer shows that all before it has been read."""

LAST_WORDS: Final = 300
"""Letters of what a client printed that are told where it ended too early."""


@dataclass(frozen=True, slots=True)
class ClientWishes:
    """How long to wait: for an answer or an end, and for what may still come."""

    limit: float = 20.0
    patience: float = 0.25


class NotAsked(Blocked):
    """The client did not ask for what the scenario is about."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """One connection of the client's."""

    visit: Visit
    wire: Wire
    agent: Standin


@dataclass(frozen=True, slots=True)
class Turn:
    """A request of the client's that the scenario answers; mostly a prompt."""

    meeting: Meeting
    entry: Entry

    @property
    def session(self) -> str:
        return str(self.entry.params.get("sessionId"))

    @property
    def is_answered(self) -> bool:
        said = self.meeting.wire.trace[self.entry.number :]
        return any(
            one.dir is Direction.A2C and one.is_answer and one.msg.get("id") == self.entry.msg["id"] for one in said
        )

    async def end(self, reason: str = "end_turn", **more: object) -> Entry:
        """Answer a prompt."""
        return await self.meeting.agent.answer(self.entry, {"stopReason": reason, **more})


class ClientStage(Judged):
    """One scenario with one client."""

    def __init__(self, place: ClientPlace, cwd: Path, wishes: ClientWishes) -> None:
        super().__init__()
        self.place = place
        self.cwd = cwd
        self.wishes = wishes
        self.script = Script()
        self.meetings: list[Meeting] = []
        self._running: Running | None = None
        self._asked: dict[str, asyncio.Queue[Turn]] = {}
        self._held: list[Turn] = []
        self._turn: Turn | None = None
        self._fences = True
        """Whether the client answers what it does not know, so that fences show something."""

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
        self._turn = await self.asked("session/prompt")
        self._fences = True
        self._fences = not await self._fence()
        return self._turn

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

    # The turn.

    @property
    def turn(self) -> Turn:
        if self._turn is None:
            raise Blocked("there is no turn")
        return self._turn

    @property
    def wire(self) -> Wire:
        """The connection of the turn."""
        return self.turn.meeting.wire

    @property
    def session(self) -> str:
        return self.turn.session

    def offers(self, *path: str) -> bool:
        """Whether the client says that it can do something: `terminal`, or `fs`, `readTextFile`."""
        found: Any = self.wire.judge.ledger.client
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found is not None and found is not False

    def need(self, *path: str) -> None:
        """Go on only if the client says that it can do something.

        Raises:
            NotOffered: it does not.
        """
        if not self.offers(*path):
            raise NotOffered(f"the client does not offer `{'.'.join(path)}`")

    async def update(self, update: dict[str, Any], session: str | None = None) -> Entry:
        """Tell something of the session of the turn, or of another one."""
        return await self.turn.meeting.agent.update(session or self.session, update)

    async def say(self, text: str) -> Entry:
        """A piece of the agent's message."""
        return await self.update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})

    async def begin(self, method: str, params: object = None, *, id: object = None) -> Pending:
        """Ask the client, and do not wait."""
        message = {"jsonrpc": "2.0", "id": self.wire.new_id() if id is None else id, "method": method, "params": params}
        return Pending(self.wire, await self.wire.say(message), self.wishes.limit)

    async def ask(self, method: str, params: object = None, *, id: object = None, limit: float | None = None) -> Answer:
        """Ask the client something, and wait for the answer."""
        return await (await self.begin(method, params, id=id)).answer(limit)

    async def here(self, method: str, **params: object) -> Answer:
        """Ask the client something about the session of the turn."""
        return await self.ask(method, {"sessionId": self.session, **params})

    # Whether it is well.

    async def _fence(self) -> str:
        """Wait until all that was said has been read; what is wrong with the client, if anything is."""
        if self._fences:
            try:
                await self.ask(FENCE, {})
            except NoAnswer as problem:
                return "the client left" if self.wire.closed else f"the client answered nothing more: {problem.reason}"
        await self.wire.silence(self.wishes.patience)
        if self.wire.closed:
            return "the client left"
        cancelled = any(one.method == "session/cancel" for one in self.wire.heard)
        return "the client cancelled the turn" if cancelled else ""

    async def survives(self, requirement: str, what: str, *evidence: Entry | Answer | None) -> None:
        """The requirement is that the client goes on after `what` was said.

        Raises:
            Blocked: it did not, so nothing more can be shown.
        """
        problem = await self._fence()
        if not self.holds(requirement, not problem, f"after {what} {problem}", *evidence):
            raise Blocked(f"after {what} {problem}")

    async def settle(self) -> None:
        """Until all that was on its way has come.

        Raises:
            Blocked: the client is gone.
        """
        if problem := await self._fence():
            raise Blocked(problem)
