"""How wire faults are made: small changes to what an agent says, each aimed at one requirement."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from antiphon.traffic.entries import Direction
from tests.conformance.memory import Fault

Message = dict[str, Any]
Faults = dict[str, Callable[[], Fault]]
"""Requirement → what makes a fresh fault for it."""

Change = Callable[[Message], None]


def change_answer(method: str, change: Change) -> Callable[[], Fault]:
    """Change the results that answer a method."""

    def made() -> Fault:
        asked: set[bytes] = set()

        def fault(direction: Direction, message: Any) -> Iterable[Any]:
            if isinstance(message, dict):
                id = msgspec.json.encode(message.get("id"))
                if direction is Direction.C2A and message.get("method") == method:
                    asked.add(id)
                elif direction is Direction.A2C and "result" in message and id in asked:
                    asked.discard(id)
                    change(message)
            yield message

        return fault

    return made


def change_message(wanted: Callable[[Message], bool], change: Change) -> Callable[[], Fault]:
    """Change the agent's own messages (updates, requests) that are wanted."""

    def made() -> Fault:
        def fault(direction: Direction, message: Any) -> Iterable[Any]:
            if direction is Direction.A2C and isinstance(message, dict) and "method" in message and wanted(message):
                change(message)
            yield message

        return fault

    return made
