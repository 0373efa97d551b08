"""The built-in agent through the client: the whole way, as a user of both has it."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import sync
from antiphon.client.connect import connect
from antiphon.client.files import Files
from antiphon.client.handlers import allow_once
from antiphon.client.terminals import Terminals
from antiphon.errors import RequestRefused
from antiphon.protocol import v1
from antiphon.transcript.transcript import CallEntry
from antiphon.transports.process import ProcessTransport
from tests.client.agents import AT_ONCE, ROOT
from tests.limits import limit


@pytest.fixture
def demo(tmp_path: Path) -> dict[str, Any]:
    """How to start one with a memory of its own."""
    return {"env": {**os.environ, "ANTIPHON_STATE_DIR": str(tmp_path / "state")}, "retry": AT_ONCE}


async def test_it_writes_and_runs_through_the_client_after_permission(tmp_path: Path, demo: dict[str, Any]) -> None:
    handlers: dict[str, Any] = {"permission": allow_once, "files": Files(write=True), "terminals": Terminals()}
    async with asyncio.timeout(limit()), connect("demo", **demo, **handlers) as agent:
        session = await agent.new_session(tmp_path)
        await session.prompt(f"/edit {tmp_path}/note words")
        result = await session.prompt("/run cat note")
        assert result.stop_reason == v1.StopReason.END_TURN
        calls = [entry for entry in session.transcript.entries if isinstance(entry, CallEntry)]
        assert {call.status for call in calls} == {v1.ToolStatus.COMPLETED}
    assert "words" in (tmp_path / "note").read_text(encoding="utf-8")


async def test_a_slow_turn_is_cancelled_and_the_session_goes_on(demo: dict[str, Any]) -> None:
    async with asyncio.timeout(limit()), connect("demo", **demo) as agent:
        session = await agent.new_session()
        turn = session.prompt("/slow 1000")
        await anext(turn)
        assert (await turn.cancel()).stop_reason == v1.StopReason.CANCELLED
        with pytest.raises(RequestRefused):
            await session.prompt("/fail")
        assert await session.prompt("hello").text()


async def test_a_session_survives_the_death_of_its_agent(demo: dict[str, Any]) -> None:
    async with asyncio.timeout(limit()), connect("demo", **demo) as agent:
        session = await agent.new_session()
        await session.set_mode("plan")
        await session.prompt("/title A talk")
        id, transport = session.id, agent.connection.transport
        assert isinstance(transport, ProcessTransport)
        os.kill(transport.pid, 9)
        await agent.connection.wait_closed()
        updates = [update async for update in session.prompt("hello")]
        assert isinstance(updates[0], v1.NoticeUpdate) and updates[0].title == "The session was resumed"
        assert (session.id, session.title) == (id, "A talk")
        assert session.modes is not None and session.modes.current_mode_id == "plan"
        assert [info.title async for info in agent.list_sessions()] == ["A talk"]
        again = await agent.load_session(id)
        assert "> hello" in again.transcript.plain()


def test_it_can_be_had_without_async(demo: dict[str, Any]) -> None:
    with sync.connect("demo", **demo) as agent:
        session = agent.new_session()
        assert "demo" in session.prompt("hello").text()
        assert session.commands
        session.close()


def test_the_example_asks_and_prints(demo: dict[str, Any]) -> None:
    done = subprocess.run(
        [sys.executable, "examples/ask.py", "/echo", "hello"],
        cwd=ROOT, env=demo["env"], capture_output=True, encoding="utf-8", timeout=limit(), check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "") and done.stdout
    assert len((ROOT / "examples" / "ask.py").read_text(encoding="utf-8").splitlines()) <= 20
