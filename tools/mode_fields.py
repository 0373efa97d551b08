"""Count the fields that hold the mode of a joint session. There is to be one: everything else asks for it.

    python tools/mode_fields.py

A joint session over two engines is opened, its mode is set, and both engines ask for permission in it. Then every object of the joint agent
and of the permission gates that can be reached from the session is looked through for the mode, as a text or as a member of an enum,
also inside of lists, tuples and dictionaries. Messages that were sent, and what the engines keep of their own mode, are other facts.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator
from enum import Enum
from typing import Final

from antiphon.agent.session import AgentSession
from antiphon.agent.turn import AgentTurn
from antiphon.duet.agent import JointAgent
from antiphon.engines.base import Engine, EngineSession
from antiphon.protocol import v1

MODE: Final = "acceptEdits"
"""A mode that the policy knows, too, and that no object holds for another reason."""

LOOKED_THROUGH: Final = ("antiphon.duet.", "antiphon.permission.")


class FakeSession(EngineSession):
    """Offers two modes, and asks for permission in each turn."""

    def __init__(self, session: AgentSession) -> None:
        self.session = session
        session.modes = v1.ModeState("default", [v1.Mode("default", "Default"), v1.Mode(MODE, "Accept edits")])

    async def prompt(self, turn: AgentTurn) -> None:
        await self.session.update(v1.AgentMessageChunk(v1.TextBlock("la")))
        async with turn.tool("make", v1.ToolKind.EXECUTE) as call:
            await call.permitted()

    async def set_mode(self, mode_id: str) -> None:
        """Take every mode."""


class FakeEngine(Engine):
    """An engine without a model."""

    version = "1"

    def __init__(self, name: str) -> None:
        self.name, self.title = name, name.capitalize()

    async def new(self, session: AgentSession) -> FakeSession:
        return FakeSession(session)


def fields_of(root: object) -> list[str]:
    """The fields below an object that hold the mode, as `Class.field`."""
    found: dict[str, None] = {}
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        for name, value in _attributes(each):
            for leaf in _leaves(value):
                if leaf == MODE or (isinstance(leaf, Enum) and leaf.value == MODE):
                    found[f"{type(each).__name__}.{name}"] = None
                elif type(leaf).__module__.startswith(LOOKED_THROUGH):
                    waiting.append(leaf)
    return sorted(found)


def _attributes(each: object) -> Iterator[tuple[str, object]]:
    yield from vars(each).items() if hasattr(each, "__dict__") else ()
    for name in getattr(each, "__struct_fields__", ()):
        yield name, getattr(each, name)


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _leaves(each)
    else:
        yield value


async def count() -> list[str]:
    """The fields of a session that is set to the mode and in which both engines have worked."""
    from antiphon import connect
    from antiphon.transports.memory import memory_pair

    agent = JointAgent({name: FakeEngine(name) for name in ("alto", "bass")})
    sessions: list[AgentSession] = []
    opened = agent.new_session

    async def new_session(session: AgentSession) -> None:
        await opened(session)
        sessions.append(session)

    agent.new_session = new_session  # type: ignore[method-assign]  # to have the session in hand
    here, there = memory_pair()
    serving = asyncio.create_task(agent.serve(there))
    async with connect(here) as client:
        session = await client.new_session(os.getcwd())
        await session.set_mode(MODE)
        await session.prompt("/duet work")
        found = fields_of(sessions[0].state)
    await serving
    return found


def main() -> int:
    """Print the fields, and fail if there is not just one."""
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"ANTIPHON_STATE_DIR": f"{home}/state", "ANTIPHON_CONFIG_DIR": f"{home}/config"}
        found = asyncio.run(count())
    print(f"{len(found)} field{'' if len(found) == 1 else 's'}: {', '.join(found)}")
    return 0 if len(found) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
