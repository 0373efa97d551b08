"""Questions of ours to a peer, its answers to them, and the verdicts that come of it. Both kinds of stage are made of this."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from antiphon.conformance.verdicts import NoAnswer, Status, Verdict
from antiphon.conformance.wire import Closed, Wire
from antiphon.traffic.entries import Entry

__all__ = ["Answer", "Asking", "Judged", "Pending"]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its question."""

    asked: Entry
    entry: Entry

    @property
    def result(self) -> Any:
        """What was answered; None where it is an error."""
        return self.entry.msg.get("result")

    @property
    def error(self) -> dict[str, Any] | None:
        found = self.entry.msg.get("error")
        return found if isinstance(found, dict) else None

    @property
    def code(self) -> object:
        return self.error.get("code") if self.error else None

    def get(self, *path: str) -> Any:
        """Something inside the result, None where it is not there."""
        found = self.result
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found


class Pending:
    """A question that was asked and not waited for."""

    def __init__(self, stage: "Asking", asked: Entry) -> None:
        self._stage = stage
        self._wire = stage.line()[0]
        self._limit = stage.limit_for(asked)
        self.asked = asked

    def _is_answer(self, entry: Entry) -> bool:
        return entry.is_answer and entry.msg.get("id") == self.asked.msg["id"]

    def peek(self) -> Answer | None:
        """Its answer, if it has come."""
        found = next((one for one in self._wire.heard if one.number > self.asked.number and self._is_answer(one)), None)
        return None if found is None else Answer(self.asked, found)

    async def answer(self, limit: float | None = None) -> Answer:
        """Wait for its answer; for as long as an answer may take, unless a limit is named.

        Raises:
            NoAnswer: it did not come in time, or the peer left.
        """
        seconds = self._limit if limit is None else limit
        try:
            entry = await self._wire.hear(self._is_answer, after=self.asked.number, limit=seconds)
        except TimeoutError:
            if limit is None:
                await self._stage.overdue(self)
            raise NoAnswer(self.asked, f"nothing came within {seconds:g} s") from None
        except Closed:
            raise self.lost() from None
        return Answer(self.asked, entry)

    def lost(self) -> NoAnswer:
        """What there is to say if the peer left before it answered."""
        return NoAnswer(self.asked, f"the peer had left{self._wire.how_it_left}", left=True)


class Judged:
    """Whoever finds out about requirements."""

    def __init__(self) -> None:
        self.verdicts: dict[str, Verdict] = {}

    def holds(
        self,
        requirement: str,
        held: bool,
        otherwise: str,
        *evidence: Entry | Answer | None,
        awaited: Entry | None = None,
    ) -> bool:
        """Say whether a requirement held; `otherwise` says what was wrong. A failure is not taken back by a later success, but by the
        answer to the question that was `awaited`, if it comes after all."""
        entries = tuple(
            entry
            for one in evidence
            if one is not None
            for entry in ((one.asked, one.entry) if isinstance(one, Answer) else (one,))
        )
        before = self.verdicts.get(requirement)
        if before is None or before.status is not Status.FAILED:
            status = Status.PASSED if held else Status.FAILED
            text, late = ("", None) if held else (otherwise, awaited)
            self.verdicts[requirement] = Verdict(status, text, entries, late)
        return held


class Asking(Judged, ABC):
    """Who asks a peer to find out."""

    @abstractmethod
    def line(self) -> tuple[Wire, float]:
        """The wire to speak on, and the seconds that an answer may take."""

    def limit_for(self, asked: Entry) -> float:
        """Seconds that the answer to a question may take."""
        return self.line()[1]

    async def begin(self, method: str, params: object = None, *, id: object = None, **more: object) -> Pending:
        """Ask, and do not wait. `more` goes into the message beside its params."""
        wire, _ = self.line()
        message = {"jsonrpc": "2.0", "id": wire.new_id() if id is None else id, "method": method, **more}
        if params is not None:
            message["params"] = params
        return Pending(self, await wire.say(message))

    async def ask(self, method: str, params: object = None, *, id: object = None, limit: float | None = None) -> Answer:
        """Ask, and wait for the answer."""
        return await (await self.begin(method, params, id=id)).answer(limit)

    async def tell(self, method: str, params: object) -> Entry:
        """A notification."""
        return await self.line()[0].say({"jsonrpc": "2.0", "method": method, "params": params})

    async def overdue(self, pending: Pending) -> None:  # most questions are simply not answered
        """Say why a question may go without an answer for so long, by raising it."""
