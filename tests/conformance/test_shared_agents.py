"""Scenarios that share an agent leave it as they found it."""

from pathlib import Path

import pytest

from antiphon.conformance.agent_check import check_agent
from antiphon.conformance.results import ScenarioRecord
from tests.conformance.memory import OPTIONS, InMemory, under_load


async def test_sessions_that_were_played_in_are_closed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", str(tmp_path))
    records: list[ScenarioRecord] = []
    await check_agent(
        InMemory(), under_load(OPTIONS), only=["session-new", "turn", "turn-beside"], progress=records.append
    )
    trace = records[-1].wires[0].trace
    opened = [one.msg["result"]["sessionId"] for one in trace if "sessionId" in (one.msg.get("result") or {})]
    closed = [one.params["sessionId"] for one in trace if one.method == "session/close"]
    assert len(opened) >= 3 and sorted(opened) == sorted(closed)
