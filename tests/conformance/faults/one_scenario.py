"""Faults that happen in one scenario only: a scenario is known by its directory, which is named after it.

So a fault can be as coarse as it likes within its scenario (every second prompt fails) and touches nothing that another scenario shows.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Final

import msgspec

from antiphon.traffic.entries import Direction
from tests.conformance.faults.wire_faults import Change, Message
from tests.conformance.memory import Fault, Leaves

Made = Callable[[], Fault]

PROMPT: Final = "session/prompt"
UPDATE: Final = "session/update"
OPENING: Final = ("session/new", "session/load", "session/resume", "session/fork")


@dataclass
class SessionNotes:
    """What a fault remembers of a session."""

    record: str = ""
    asked: dict[tuple[Direction, bytes], tuple[Message, int]] = field(default_factory=dict)
    """The open requests of both sides, each with its number among those of its kind in its scenario, from 1."""
    seen: Counter[object] = field(default_factory=Counter)
    notes: dict[str, Any] = field(default_factory=dict)
    """Whatever a fault wants to remember."""

    def add(self, direction: Direction, message: Message) -> "MessageOnItsWay":
        """Take note of a message."""
        method, id = message.get("method"), msgspec.json.encode(message.get("id"))
        if method is None:
            asked, number = self.asked.pop((direction.other, id), (None, 0))
            return MessageOnItsWay(direction, message, asked, number)
        if method in OPENING and (record := _scenario_of(message)) not in ("", self.record):
            self.record, self.seen = record, Counter()
        self.seen[method] += 1
        self.asked[direction, id] = message, self.seen[method]
        return MessageOnItsWay(direction, message, None, 0)


def _scenario_of(message: Message) -> str:
    """The scenario that a session is opened for, as its directory says; empty where the request is odd and names none."""
    params = message.get("params")
    cwd = params.get("cwd") if isinstance(params, dict) else None
    return PurePath(cwd).name if isinstance(cwd, str) else ""


@dataclass(frozen=True)
class MessageOnItsWay:
    """One message on its way, with what it answers."""

    direction: Direction
    message: Message
    asked: Message | None
    number: int
    """Which of its kind the request is in this scenario, from 1; 0 where this is not a response."""

    def answers(self, method: str, number: int | None = None) -> bool:
        """Whether it answers a method of the client's."""
        right = self.direction is Direction.A2C and self.asked is not None and self.asked.get("method") == method
        return right and number in (None, self.number)

    def has_method(self, method: str) -> bool:
        """Whether it is the agent's own, of that method."""
        return self.direction is Direction.A2C and self.message.get("method") == method

    def is_reply(self, method: str) -> bool:
        """Whether it is the client's answer to a method of the agent's."""
        return self.direction is Direction.C2A and self.asked is not None and self.asked.get("method") == method


Meddle = Callable[[MessageOnItsWay, SessionNotes], Iterable[Any]]


class InScenario:
    """Makes faults that are at work in one scenario, and pass on as they are all messages of the others."""

    def __init__(self, record: str, meddle: Meddle) -> None:
        self.record = record
        self._meddle = meddle

    def __call__(self) -> Fault:
        exchange = SessionNotes()

        def fault(direction: Direction, message: Any) -> Iterable[Any]:
            if not isinstance(message, dict):
                return [message]
            shown = exchange.add(direction, message)
            return self._meddle(shown, exchange) if exchange.record == self.record else [message]

        return fault


in_scene = InScenario  # as it reads in the tables


def answer(record: str, method: str, change: Change, number: int | None = None) -> Made:
    """Change the answers to a method, or only that with a number."""

    def meddle(reply: MessageOnItsWay, exchange: SessionNotes) -> Iterable[Any]:
        if reply.answers(method, number):
            change(reply.message)
        yield reply.message

    return in_scene(record, meddle)


def prompt(record: str, change: Change, number: int = 1) -> Made:
    """Change how a turn of a scenario ends."""
    return answer(record, PROMPT, change, number)


def spoil(record: str, method: str, number: int = 1) -> Made:
    """Let a session be asked for in a directory that cannot be, so that the agent refuses it by itself."""

    def meddle(reply: MessageOnItsWay, exchange: SessionNotes) -> Iterable[Any]:
        if (
            reply.direction is Direction.C2A
            and reply.message.get("method") == method
            and exchange.seen[method] == number
        ):
            reply.message["params"]["cwd"] = "nowhere"
        yield reply.message

    return in_scene(record, meddle)


def change_sent(record: str, method: str, change: Change) -> Made:
    """Change what the agent says by itself."""

    def meddle(reply: MessageOnItsWay, exchange: SessionNotes) -> Iterable[Any]:
        if reply.has_method(method):
            change(reply.message)
        yield reply.message

    return in_scene(record, meddle)


def leaves(record: str, number: int = 1) -> Made:
    """The agent is gone instead of ending a turn."""

    def meddle(reply: MessageOnItsWay, exchange: SessionNotes) -> Iterable[Any]:
        if reply.answers(PROMPT, number):
            raise Leaves
        yield reply.message

    return in_scene(record, meddle)


# Changes.


def refuse(message: Message) -> None:
    """An error instead of a result."""
    message.pop("result", None)
    message["error"] = {"code": -32602, "message": "Not today"}


def accept(result: Any) -> Change:
    """A result instead of an error."""

    def change(message: Message) -> None:
        message.pop("error", None)
        message["result"] = result

    return change


def stop(reason: str) -> Change:
    """Another stop reason."""
    return accept({"stopReason": reason})
