"""Faults that are aimed at one question or one line: its answer is changed or lost, something is sent after it, or the agent leaves."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from antiphon.traffic.entries import Direction
from tests.conformance.faults.wire_faults import Change, Message
from tests.conformance.memory import Fault, Leaves

Wanted = Callable[[Any], bool]
Maker = Callable[[], Fault]

UNKNOWN_USER: Message = {"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": "Who was that?"}}


def asks(method: str, wanted: Callable[[Message], bool] = lambda params: True) -> Wanted:
    """Whether a line is a request with that method, and params that are wanted."""

    def is_it(line: Any) -> bool:
        if not isinstance(line, dict) or line.get("method") != method or "id" not in line:
            return False
        params = line.get("params")
        return wanted(params if isinstance(params, dict) else {})

    return is_it


def change_reply(wanted: Wanted, change: Change | None, instead: str | None = None) -> Maker:
    """Change the answers, results and errors, to the requests that are wanted; None: they never come. `instead` is asked for in their place."""

    def made() -> Fault:
        asked: set[bytes] = set()

        def fault(direction: Direction, message: Any) -> Iterable[Any]:
            if direction is Direction.C2A and isinstance(message, dict) and wanted(message):
                asked.add(_key(message))
                message = {**message, "method": instead or message["method"]}
            elif direction is Direction.A2C and _is_answer(message) and _key(message) in asked:
                asked.discard(_key(message))
                if change is None:
                    return
                change(message)
            yield message

        return fault

    return made


def _is_answer(message: Any) -> bool:
    return isinstance(message, dict) and "method" not in message


def _key(message: Message) -> bytes:
    return msgspec.json.encode(message.get("id"))


def lose_reply(wanted: Wanted) -> Maker:
    return change_reply(wanted, None)


def refuse(wanted: Wanted, code: int = -32603, message: str = "Not today") -> Maker:
    """Answer those requests with an error. The agent is asked for something that it refuses, so that it does nothing either."""

    def change(answer: Message) -> None:
        answer["error"] = {"code": code, "message": message}

    return change_reply(wanted, change, instead="_antiphon/refused")


def accept(wanted: Wanted, result: object) -> Maker:
    """Answer those requests with a result."""

    def change(answer: Message) -> None:
        answer.pop("error", None)
        answer["result"] = result

    return change_reply(wanted, change)


def leave(wanted: Wanted) -> Maker:
    """The agent is gone when it receives such a line."""

    def made() -> Fault:
        def fault(direction: Direction, message: Any) -> Iterable[Any]:
            if direction is Direction.C2A and wanted(message):
                raise Leaves
            yield message

        return fault

    return made


def leave_after(wanted: Wanted) -> Maker:
    """The agent answers such a request, and is gone."""

    def made() -> Fault:
        asked: set[bytes] = set()

        def fault(direction: Direction, message: Any) -> Iterable[Any]:
            if direction is Direction.C2A and wanted(message):
                asked.add(_key(message))
            yield message
            if direction is Direction.A2C and _is_answer(message) and _key(message) in asked:
                raise Leaves

        return fault

    return made


def say_after(wanted: Wanted, text: Message = UNKNOWN_USER) -> Maker:
    """The agent says something of its own, once, after it received such a line."""

    def made() -> Fault:
        due: list[Message] = []

        def fault(direction: Direction, message: Any) -> Iterable[Any]:
            if direction is Direction.C2A and wanted(message):
                due.append(text)
            elif direction is Direction.A2C and due:
                yield due.pop()
            yield message

        return fault

    return made


def be_silent_after(wanted: Wanted, lost: Callable[[Any], bool]) -> Maker:
    """Of what the agent says after such a line, the next that is to be lost never comes."""

    def made() -> Fault:
        due: list[bool] = []

        def fault(direction: Direction, message: Any) -> Iterable[Any]:
            if direction is Direction.C2A and wanted(message):
                due.append(True)
            elif direction is Direction.A2C and due and lost(message):
                due.pop()
                return
            yield message

        return fault

    return made


def do_not_receive(wanted: Wanted) -> Maker:
    """Such a line never reaches the agent."""

    def made() -> Fault:
        def fault(direction: Direction, message: Any) -> Iterable[Any]:
            if direction is Direction.A2C or not wanted(message):
                yield message

        return fault

    return made


def when(make: Callable[[Wanted], Maker], aim: Callable[[], Wanted]) -> Maker:
    """A fault whose aim remembers what it has seen: each agent gets a fresh one."""
    return lambda: make(aim())()


def after(begins: Wanted, wanted: Wanted, *, times: int = 1000) -> Callable[[], Wanted]:
    """What is wanted, but only after another line and only so often."""

    def fresh() -> Wanted:
        left = -1  # not begun

        def is_it(line: Any) -> bool:
            nonlocal left
            found = left > 0 and wanted(line)
            if found:
                left -= 1
            elif left < 0 and begins(line):
                left = times
            return found

        return is_it

    return fresh


def before(ends: Wanted, wanted: Wanted) -> Callable[[], Wanted]:
    """What is wanted, but only before another line."""

    def fresh() -> Wanted:
        over = False

        def is_it(line: Any) -> bool:
            nonlocal over
            over = over or ends(line)
            return not over and wanted(line)

        return is_it

    return fresh
