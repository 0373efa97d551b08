"""The turn of a client's in which a scenario speaks for the agent: it tells, asks, and sees whether the client bears it."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from antiphon.conformance.asking import Answer, Asking
from antiphon.conformance.standin import Standin
from antiphon.conformance.verdicts import Blocked, NoAnswer, NotOffered
from antiphon.conformance.visits import Visit
from antiphon.conformance.wire import Wire
from antiphon.traffic.entries import Direction, Entry

__all__ = ["OPTIONS", "ClientManners", "ClientWishes", "Directing", "Meeting", "Turn"]

PERMISSION: Final = "session/request_permission"
OPTIONS: Final = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]
"""What a user may answer to a question for permission."""

FENCE: Final = "_antiphon/fence"
"""A request that no client knows: its answer shows that all before it has been read."""


@dataclass(frozen=True, slots=True)
class ClientWishes:
    """How long to wait: for an answer or an end, and for what may still come."""

    limit: float = 20.0
    patience: float = 0.25


@dataclass(slots=True)
class ClientManners:
    """What is known of a client's ways in all scenarios: whether it answers methods that it does not know, and questions for permission.

    A client that leaves unknown methods without an answer is wrong, and is told so once, where that is looked at. Whether it reads
    lines and bears updates is another question, which has to be put in a way that it answers.
    """

    fences: bool = True
    permissions: bool = True
    known: bool = False


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
        self.manners = ClientManners()
        self._turn: Turn | None = None

    async def take_over(self, turn: Turn) -> None:
        """Play this turn from now on."""
        self._turn = turn
        if not self.manners.known:
            await self._learn_manners()

    async def _learn_manners(self) -> None:
        self.manners.known = True
        self.manners.fences = await self._is_answered(FENCE, {})
        if not self.manners.fences:
            self.manners.permissions = await self._is_answered(PERMISSION, self._permission())

    async def _is_answered(self, method: str, params: object) -> bool:
        try:
            await self.ask(method, params)
        except NoAnswer as silence:
            return silence.left  # the scenario finds that out by itself
        return True

    def _permission(self) -> dict[str, Any]:
        call = {"toolCallId": "antiphon-check", "title": "Look at the time", "kind": "other"}
        return {"sessionId": self.session, "toolCall": call, "options": OPTIONS}

    def question(self, id: object, text: str = "") -> dict[str, Any]:
        """A request that the client answers, with a text in it: one that it cannot know, or one for permission.

        Raises:
            Blocked: it answers neither.
        """
        if self.manners.fences:
            return {"jsonrpc": "2.0", "id": id, "method": FENCE, "params": {"text": text}}
        if not self.manners.permissions:
            raise Blocked("the client answers no request here, so it cannot be told what it has read")
        params = self._permission()
        params["toolCall"]["title"] = text or "Look at the time"
        return {"jsonrpc": "2.0", "id": id, "method": PERMISSION, "params": params}

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
        if self.manners.fences:
            try:
                await self._fenced()
            except NoAnswer as problem:
                return "the client left" if self.wire.closed else f"the client answered nothing more: {problem.reason}"
        await self.wire.silence(self.wishes.patience)
        if self.wire.closed:
            return "the client left"
        cancelled = any(one.method == "session/cancel" for one in self.wire.heard)
        return "the client cancelled the turn" if cancelled else ""

    async def _fenced(self) -> None:
        """Late is something else than never: the answer has the same time once more."""
        pending = await self.begin(FENCE, {})
        with suppress(NoAnswer):
            await pending.answer()
            return
        await pending.answer()

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
