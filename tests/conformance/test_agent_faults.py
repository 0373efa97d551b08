"""The check itself is checked: for every requirement a fault on the wire that breaks it, and nothing but it and its dependants."""

import asyncio
from dataclasses import replace
from functools import cache

import msgspec
import pytest

from antiphon.conformance.agent_check import check_agent
from antiphon.conformance.requirements import EVERY
from antiphon.conformance.results import ScenarioRecord
from antiphon.conformance.suites.agent import SUITE
from antiphon.engines.base import Host
from antiphon.engines.demo.engine import Demo
from antiphon.traffic.entries import NO_JSON, Direction, Entry
from antiphon.transports.base import Transport
from tests.conformance.faults import actions, handshake, messages, robustness, rules, sessions, turns
from tests.conformance.faults.one_message import asks, lose_reply
from tests.conformance.faults.one_scenario import InScenario
from tests.conformance.memory import OPTIONS, InMemory, Leaves, under_load

TABLES = (handshake, messages, robustness, sessions, turns, actions, rules)
FAULTS = {id: fault for table in TABLES for id, fault in table.FAULTS.items()}

AIMED = {
    "init.speaks-after": ("bare-client",),
    "init.no-echo": ("version-of-the-future",),
    "auth.ids": ("bare-client",),
    "capability.terminal-auth": ("bare-client",),
    "session.refused": ("unknown-session",),
    "session.unique": ("session-http", "session-sse"),
}
"""Where faults of what is judged in all scenarios are at work, if not in one scenario only: the others run in the slow test below."""


BY_SILENCE = ("id.", "line.", "rpc.in-flight", "rpc.extra-member")
"""Faults that show by an answer that never comes: it is waited for to the end."""


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", f"{tmp_path}/state")


async def test_a_correct_agent_passes_everything() -> None:
    report = await check_agent(InMemory(), under_load(OPTIONS))
    assert {one.requirement.id: one.verdict.text for one in report.broken} == {}


def test_every_requirement_has_a_fault() -> None:
    of_processes = {one.id for record in SUITE.scenarios.values() if record.process for one in record.shows}
    assert set(SUITE.requirements()) - set(FAULTS) - of_processes == {
        "rpc.answered"
    }  # which has a test of its own below
    assert set(FAULTS) - set(SUITE.requirements()) == set()


@pytest.mark.parametrize("id", FAULTS)
async def test_a_fault_fails_its_requirement_and_no_other(id: str) -> None:
    await _fails(id, _played(id))


@pytest.mark.slow  # many scenarios for each fault
@pytest.mark.prove
@pytest.mark.parametrize("id", [id for id, fault in FAULTS.items() if not isinstance(fault, InScenario)])
async def test_a_fault_in_one_scenario_fails_nothing_in_another(id: str) -> None:
    """Those that are at work in one scenario only have run above: the next test is why they cannot do anything elsewhere. The others run
    in every scenario whose messages they change."""
    own = {SUITE.requirements()[one].scenario for one in (id, *SUITE.dependants(id))} - {EVERY}
    changed = await asyncio.to_thread(_changed, id)
    await _fails(id, tuple(sorted(own | changed | set(_played(id)))))


@cache
def _healthy() -> list[list[tuple[str, Entry]]]:
    """What a correct agent and the check say, connection by connection, each message with its scenario."""
    wires: dict[int, list[tuple[str, Entry]]] = {}
    records: list[ScenarioRecord] = []  # kept, so that no wire has the number of another

    def note(record: ScenarioRecord) -> None:
        records.append(record)
        for wire in record.wires:
            texts = wires.setdefault(id(wire), [])
            texts += [(record.name, entry) for entry in wire.trace[len(texts) :]]

    asyncio.run(check_agent(InMemory(serve=_of_version_1), under_load(OPTIONS), progress=note))
    return list(wires.values())


def _changed(id: str) -> set[str]:
    """The scenarios in which a fault changes something."""
    found: set[str] = set()
    for trace in _healthy():
        fault = FAULTS[id]()
        for name, entry in trace:
            message = entry.raw if entry.msg is NO_JSON else msgspec.json.decode(entry.raw)
            try:
                same = list(fault(entry.dir, message)) == [entry.raw if entry.msg is NO_JSON else entry.msg]
            except Leaves:
                found.add(name)
                break
            if not same:
                found.add(name)
    return found


def test_a_fault_of_one_scenario_leaves_the_messages_of_others_alone() -> None:
    fault = InScenario("mine", lambda shown, talk: [])()

    def passed(direction: Direction, message: object) -> bool:
        return list(fault(direction, message)) == [message]

    def opens(record: str) -> dict[str, object]:
        return {"id": 1, "method": "session/new", "params": {"cwd": f"/songs/{record}"}}

    others = [
        (Direction.A2C, {"id": 1, "result": {"sessionId": "one"}}),
        (Direction.C2A, {"id": 2, "method": "session/prompt", "params": {"sessionId": "one"}}),
        (Direction.A2C, {"method": "session/update", "params": {"sessionId": "one"}}),
        (Direction.A2C, {"id": 2, "result": {"stopReason": "end_turn"}}),
        (Direction.C2A, {"id": 3, "method": "session/new", "params": []}),
        (Direction.C2A, b"not JSON"),
    ]
    for record in ("before", "mine", "after"):
        assert passed(Direction.C2A, opens(record)) is (record != "mine")
        for direction, message in others:
            assert passed(direction, message) is (record != "mine" or isinstance(message, bytes))


def _played(id: str) -> tuple[str, ...]:
    """The scenario that shows a requirement; for a rule of all traffic that in which its fault is at work, or all."""
    scenario, fault = SUITE.requirements()[id].scenario, FAULTS[id]
    if id in AIMED:
        return AIMED[id]
    if scenario == EVERY and isinstance(fault, InScenario):
        scenario = fault.record
    return () if scenario == EVERY else (scenario,)


async def _of_version_1(far: Transport) -> None:
    """Serve an agent of version 1 alone: a fault changes a field, and not the answer to that of another version."""
    host = Host(Demo())
    host.versions = (1,)
    await host.serve(far)


async def _fails(id: str, only: tuple[str, ...]) -> None:
    options = replace(OPTIONS, limit=1.0) if id.startswith(BY_SILENCE) else OPTIONS
    report = await check_agent(InMemory(FAULTS[id], _of_version_1), under_load(options), only=only)
    failed = {one.requirement.id: one.verdict.text for one in report.broken}
    assert id in failed
    assert {other: text for other, text in failed.items() if other not in {id, *SUITE.dependants(id)}} == {}


async def test_a_question_that_is_never_answered_is_found() -> None:
    fault = lose_reply(asks("session/antiphon_check"))
    options = replace(OPTIONS, limit=0.5)
    report = await check_agent(InMemory(fault), under_load(options), only=["unknown-methods"])
    assert [one.requirement.id for one in report.broken if one.is_fatal] == ["rpc.answered"]
