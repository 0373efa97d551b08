"""The turn of a client's in which a scenario speaks for the agent: it tells, asks, and sees whether the client bears it."""

from dataclasses import dataclass
from typing import Any, Final

from antiphon.conformance.asking import Answer, Asking
from antiphon.conformance.standin import Standin
from antiphon.conformance.verdicts import Blocked, NoAnswer, NotOffered
from antiphon.conformance.visits import Visit
from antiphon.conformance.wire import Wire
from antiphon.traffic.entries import Direction, Entry

__all__ = ["ClientWishes", "Directing", "Meeting", "Turn"]

FENCE: Final = "_antiphon/fence"
"""A request that no client knows: its answer shows that all before it has been read."""


@dataclass(frozen=True, slots=True)
class ClientWishes:
    """How long to wait: for an answer or an end, and for what may still come."""

    limit: float = 20.0
    patience: float = 0.25


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


class Directing(Asking):
    """A scenario that speaks for the agent in a turn. `turn` is the one that it has taken over."""

    def __init__(self, wishes: ClientWishes) -> None:
        super().__init__()
        self.wishes = wishes
        self._turn: Turn | None = None
        self._fences = True
        """Whether the client answers what it does not know, so that fences show something."""

    async def take_over(self, turn: Turn) -> None:
        """Play this turn from now on."""
        self._turn = turn
        self._fences = True
        self._fences = not await self._fence()

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
        return self.wire.judge.ledger.offers("agent", ".".join(path))

    def need(self, *path: str) -> None:
        """Go on only if the client says that it can do something.

        Raises:
            NotOffered: it does not.
        """
        if not self.offers(*path):
            raise NotOffered(f"the client does not offer `{'.'.join(path)}`")

    def line(self) -> tuple[Wire, float]:
        return self.wire, self.wishes.limit

    async def update(self, update: dict[str, Any], session: str | None = None) -> Entry:
        """Tell something of the session of the turn, or of another one."""
        return await self.turn.meeting.agent.update(session or self.session, update)

    async def say(self, text: str) -> Entry:
        """A piece of the agent's message."""
        return await self.update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})

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
