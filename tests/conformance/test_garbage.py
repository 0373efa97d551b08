"""Whatever an agent says, the check ends with a report, and stumbles over none of it."""

import asyncio
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from antiphon.conformance.agent_check import STUMBLED, check_agent
from antiphon.conformance.results import ConformanceReport
from antiphon.conformance.standin_client import StandinClient
from antiphon.conformance.wire import PeerRefusal, PeerWire
from antiphon.traffic.entries import Direction
from antiphon.transports.memory import memory_pair
from tests.conformance.faults.wire_faults import change_answer, change_message
from tests.conformance.memory import OPTIONS, Fault, InMemory, Message

LIMITED = replace(OPTIONS, limit=0.3, start=1.0)

GARBAGE: tuple[Any, ...] = (None, 7, "x", [], ["x", None, 7, {}], {}, {"x": 1}, True)


def proved(values: Iterable[Any]) -> list[Any]:
    """Return the rows of a table: `make test` plays the first of them, `make prove` the others. Each plays all scenarios."""
    return [pytest.param(value, marks=pytest.mark.prove if row else ()) for row, value in enumerate(values)]


KEPT = {"sessionId", "stopReason", "sessionUpdate", "method", "protocolVersion", "toolCallId", "terminalId", "id"}
"""Without these there is not much of a session."""


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", f"{tmp_path}/state")


def stumbles(report: ConformanceReport) -> dict[str, str]:
    return {one.requirement.id: one.verdict.text for one in report.results if STUMBLED in one.verdict.text}


async def assert_reported(fault: Callable[[], Fault], only: Iterable[str] = ()) -> None:
    report = await check_agent(InMemory(fault), LIMITED, only=list(only))
    assert report.results
    assert stumbles(report) == {}


def changed(method: str, change: Callable[[Message], Any]) -> Callable[[], Fault]:
    return change_message(lambda message: message["method"] == method, lambda message: (change(message), None)[1])


PERMISSION = "session/request_permission"


async def test_options_that_are_not_objects() -> None:
    change = changed(PERMISSION, lambda message: message["params"].update(options=["x"]))
    await assert_reported(change, ["permission-refused", "cancel-asking", "additions-to-answers"])


async def test_updates_without_an_update() -> None:
    change = changed("session/update", lambda message: message["params"].pop("update"))
    await assert_reported(change, ["files-write", "files-locked", "terminal-run", "plan", "commands", "turn-beside"])


async def test_a_permission_that_is_not_a_question() -> None:
    await assert_reported(changed(PERMISSION, lambda message: message.pop("id")), ["permission-refused"])


async def test_a_question_that_cannot_be_answered_properly_gets_an_error() -> None:
    """A path with a null in it is refused by the system itself, as something else than a file that is not there."""
    records: list[Any] = []
    place = InMemory(changed("fs/read_text_file", lambda message: message["params"].update(path="/\0", line=[])))
    report = await check_agent(place, LIMITED, only=["files-missing"], progress=records.append)
    assert stumbles(report) == {}
    asked = [one for one in records[0].wires[0].trace if one.method == "fs/read_text_file"]
    answered = {str(one.msg["id"]) for one in records[0].wires[0].trace if one.is_response and one.dir is Direction.C2A}
    assert asked and {str(one.msg["id"]) for one in asked} <= answered


def garbled(value: Any, garbage: Iterator[Any], kept: Collection[str], depth: int = 0) -> Any:
    """The same with garbage for everything that is not kept."""
    if not isinstance(value, dict) or depth > 2:
        return next(garbage)
    return {key: one if key in kept else garbled(one, garbage, kept, depth + 1) for key, one in value.items()}


def garbles(fields: Collection[str], kept: Collection[str], *garbage: Any) -> Callable[[], Fault]:
    """All that the agent says, or answers, has garbage in it, of several kinds in turn."""
    turn = cycle(garbage)

    def fault(direction: Direction, message: Any) -> Iterable[Any]:
        if direction is Direction.A2C and isinstance(message, dict):
            message = {key: garbled(one, turn, kept) if key in fields else one for key, one in message.items()}
        return [message]

    return lambda: fault


@pytest.mark.slow  # all scenarios for each kind of garbage
@pytest.mark.parametrize("garbage", proved(GARBAGE), ids=str)
async def test_garbage_inside_of_what_an_agent_sends(garbage: Any) -> None:
    await assert_reported(garbles(["params"], KEPT, garbage))


@pytest.mark.slow
@pytest.mark.parametrize("garbage", proved(GARBAGE), ids=str)
async def test_garbage_for_all_that_an_agent_sends_in_its_sessions(garbage: Any) -> None:
    await assert_reported(garbles(["params"], ["sessionId"], garbage, {"toolCallId": [], "sessionUpdate": {}}))


@pytest.mark.slow
@pytest.mark.parametrize("first", proved(range(0, len(GARBAGE), 2)))
async def test_garbage_inside_of_answers(first: int) -> None:
    await assert_reported(garbles(["result", "error"], KEPT, *GARBAGE[first:], *GARBAGE[:first]))


ANSWERED = ("initialize", "session/new", "session/prompt", "session/list", "session/load", "session/set_config_option")


@pytest.mark.slow
@pytest.mark.parametrize("method", proved(ANSWERED))
async def test_garbage_for_an_answer(method: str) -> None:
    turn = cycle(GARBAGE)

    def garble(answer: Message) -> None:
        answer["result"] = next(turn)

    await assert_reported(change_answer(method, garble))


@pytest.mark.parametrize("place", ["rule", "listener"])
async def test_a_fault_of_ours_while_listening_is_raised_at_once_and_not_blamed_on_the_peer(place: str) -> None:
    near, far = memory_pair()
    wire = PeerWire(near, Direction.C2A)

    def fails(_: object) -> None:
        raise KeyError("a rule that is wrong")

    if place == "rule":
        wire.checker.check = fails  # type: ignore[method-assign, assignment]
    else:
        wire.listener = fails
    async with asyncio.timeout(30):
        waiting = asyncio.create_task(wire.wait_for(lambda _: False, limit=3600))
        await far.send(b'{"jsonrpc":"2.0","method":"x"}')
        with pytest.raises(KeyError, match="a rule that is wrong"):
            await waiting
        with pytest.raises(KeyError, match="a rule that is wrong"):  # and for a later wait too
            await wire.wait_for(lambda _: False, limit=3600)
        await wire.close()
        await far.close()


async def test_the_client_of_the_check_writes_no_file_outside_of_the_workspace(tmp_path: Path) -> None:
    (workspace := tmp_path / "workspace").mkdir()
    (workspace / "link").symlink_to(tmp_path)
    near, far = memory_pair()
    wire = PeerWire(near, Direction.C2A)
    client = StandinClient(wire, workspace)
    for path in (tmp_path / "file", workspace / ".." / "file", workspace / "link" / "file"):
        with pytest.raises(PeerRefusal, match="outside of the workspace"):
            await client.result_for("fs/write_text_file", {"path": str(path), "content": "x"})
    assert (
        await client.result_for("fs/write_text_file", {"path": str(workspace / "new" / "file"), "content": "x"}) == {}
    )
    assert os.listdir(tmp_path) == ["workspace"]
    await client.close()
    await wire.close()
    await far.close()
