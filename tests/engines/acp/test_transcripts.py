"""The demo behind our engine is the demo: for each of its commands the client gets the same, and its sessions are the same."""

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.engines.demo.commands import all_commands
from antiphon.engines.demo.features import ALL_STEPS
from antiphon.errors import ResponseError
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.transcript.transcript import Entry, Transcript, fold
from tests.engines.demo_client import DEMO, EVERYTHING, NOTHING, DemoClient, demo

BEHIND = [sys.executable, "-m", "antiphon", "agent", "--engine", shlex.join(DEMO)]

OTHERS = [
    ("help", ""), ("slow", "0"), ("many", "300"), ("big", "64"), ("stop", "max_tokens"), ("stop", "refusal"), ("fail", ""), ("fail", "-32001"),
    ("all", ""),
]  # fmt: skip
COMMANDS = [*ALL_STEPS, *OTHERS]
AFTER_THEIR_TURN = {"background", "later"}
"""Commands whose updates come after their turn, in whichever turn is next: `tests/cli/test_versions.py` plays them."""


def test_every_command_is_tried() -> None:
    assert {name for name, _ in COMMANDS} | AFTER_THEIR_TURN == set(all_commands())


async def play(client: DemoClient) -> list[Any]:
    """All that the client sees of each command, with the names that are new every time made equal."""
    session = await client.new()
    await client.prompt(session, "hello")  # updates of a new session may come before or in its first turn
    seen: list[Any] = []
    for name, words in COMMANDS:
        try:
            updates, result = await client.prompt(session, f"/{name} {words}".strip())
        except ResponseError as error:
            seen.append((name, str(error)))
            continue
        seen.append((name, result, shown(fold(updates), session)))
    loaded = v1.LoadSession(session, str(client.workspace), [])
    async with client.connection.stream(m.LOAD_SESSION, loaded) as history:
        replayed = [message.update async for message in history]
    seen.append(("load", shown(fold(replayed), session), history.result))
    return seen


def shown(transcript: Transcript, session: str) -> str:
    """All of it as one text."""
    state = {name: value for name, value in vars(transcript).items() if not name.startswith("_") and name != "entries"}
    lines = [repr(_parts(entry)) for entry in transcript.entries] + [repr(state)]
    return re.sub(r"term-[0-9a-f]{24}", "term", "\n".join(lines).replace(session, "SESSION"))


def _parts(entry: Entry) -> dict[str, Any]:
    slots = [name for kind in type(entry).__mro__ for name in getattr(kind, "__slots__", ())]
    parts = {name: getattr(entry, name) for name in slots if name not in ("tail", "_blocks", "note")}
    return parts | {"is": type(entry).__name__, "blocks": getattr(entry, "blocks", None)}


@pytest.mark.slow
@pytest.mark.parametrize("can", [EVERYTHING, NOTHING], ids=["everything", "nothing"])
async def test_the_client_receives_the_same_from_the_demo_and_from_the_demo_behind_the_engine(
    workspace: Path, can: v1.ClientCapabilities
) -> None:
    async with demo(workspace, can) as client:
        itself = await play(client)
    async with demo(workspace, can, BEHIND) as client:
        behind = await play(client)
    for one, other in zip(itself, behind, strict=True):
        # Where the client has no terminals the agent is given ours, and its history reports them when they are long gone.
        assert other == one or (can is NOTHING and one[0] == "load")
