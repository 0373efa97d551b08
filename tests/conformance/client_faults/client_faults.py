"""How faults of clients are made: small changes to what a client says or receives, each aimed at one requirement."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from antiphon.traffic.entries import Direction
from tests.conformance.client_memory import HANG_UP, SHORT, Broken, Fault

Message = dict[str, Any]
Wanted = Callable[[Message], bool]
Change = Callable[[Message], None]
Faults = dict[str, Broken]
"""Requirement → a client that breaks it."""


def key(message: Message) -> bytes:
    return msgspec.json.encode(message.get("id"))


class Dies(Fault):
    """The client leaves when it receives something."""

    def __init__(self, wanted: Callable[[Any], bool]) -> None:
        self.wanted = wanted

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        yield HANG_UP if direction is Direction.A2C and self.wanted(message) else message


class ChangedOutput(Fault):
    """What the client asks or sends is changed."""

    def __init__(self, method: str, change: Change) -> None:
        self.method = method
        self.change = change

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        if direction is Direction.C2A and isinstance(message, dict) and message.get("method") == self.method:
            self.change(message)
        yield message


class ChangedInput(Fault):
    """What the client is asked is changed before it receives it; None keeps it from receiving it."""

    def __init__(self, wanted: Wanted, change: Change | None = None) -> None:
        self.wanted = wanted
        self.change = change

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        if direction is Direction.A2C and isinstance(message, dict) and self.wanted(message):
            if self.change is None:
                return
            self.change(message)
        yield message


class Answers(Fault):
    """The client's answers to certain questions are changed; None keeps them back."""

    def __init__(self, wanted: Wanted, change: Change | None = None) -> None:
        self.wanted = wanted
        self.change = change
        self.asked: set[bytes] = set()

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        if isinstance(message, dict):
            if direction is Direction.A2C and "method" in message and "id" in message and self.wanted(message):
                self.asked.add(key(message))
            elif direction is Direction.C2A and "method" not in message and key(message) in self.asked:
                self.asked.discard(key(message))
                if self.change is None:
                    return
                self.change(message)
        yield message


class EndsWith(Fault):
    """The client ends with this status if it has received something."""

    def __init__(self, wanted: Wanted, status: int) -> None:
        self.wanted = wanted
        self.then = status

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        if direction is Direction.A2C and isinstance(message, dict) and self.wanted(message):
            self.status = self.then
        yield message


def dies(wanted: Callable[[Any], bool]) -> Broken:
    return Broken(lambda: Dies(wanted))


def sends(method: str, change: Change) -> Broken:
    return Broken(lambda: ChangedOutput(method, change))


def received(wanted: Wanted, change: Change) -> Broken:
    return Broken(lambda: ChangedInput(wanted, change))


def misses(wanted: Wanted) -> Broken:
    """Never receives it, and waits."""
    return Broken(lambda: ChangedInput(wanted), options=SHORT)


def answers(wanted: Wanted, change: Change) -> Broken:
    return Broken(lambda: Answers(wanted, change))


def keeps_silent(wanted: Wanted) -> Broken:
    """Never answers it."""
    return Broken(lambda: Answers(wanted), options=SHORT)


def ends_with(wanted: Wanted, status: int) -> Broken:
    return Broken(lambda: EndsWith(wanted, status))


# What is wanted.


def asks(method: str, **params: object) -> Wanted:
    """A question or notification of the agent's with these params."""

    def wanted(message: Any) -> bool:
        if not isinstance(message, dict) or message.get("method") != method:
            return False
        text = message.get("params") or {}
        return all(text.get(name) == value for name, value in params.items())

    return wanted


def updates(**fields: object) -> Wanted:
    """An update with these fields."""

    def wanted(message: Any) -> bool:
        if not isinstance(message, dict) or message.get("method") != "session/update":
            return False
        update = message["params"]["update"]
        return all(update.get(name) == value for name, value in fields.items())

    return wanted


def fails_with(text: str) -> Wanted:
    """An error of the agent's."""
    return lambda message: isinstance(message.get("error"), dict) and message["error"].get("message") == text


# What is changed.


def as_result(result: object) -> Change:
    """A result in place of an error."""

    def change(message: Message) -> None:
        message.pop("error", None)
        message["result"] = result

    return change


def as_error(message: Message) -> None:
    """An error in place of a result."""
    message.pop("result", None)
    message["error"] = {"code": -32603, "message": "Not today"}


def with_result(**fields: object) -> Change:
    """Fields of a result changed."""

    def change(message: Message) -> None:
        if isinstance(message.get("result"), dict):
            message["result"].update(fields)

    return change


def with_params(**fields: object) -> Change:
    """Fields of params changed."""

    def change(message: Message) -> None:
        message["params"].update(fields)

    return change
