"""Agents behind our engine that die or hang: the client is informed, the session goes on, and nothing is left running."""

import asyncio
import os
from pathlib import Path

import pytest

from antiphon.client.terminals import Terminals
from antiphon.engines.acp import session as at_work
from antiphon.engines.acp.engine import AcpEngine
from antiphon.errors import RequestRefused
from antiphon.protocol import v1
from tests.engines.acp import stand_in as s
from tests.engines.acp.place import StandIn, through


class Watched(Terminals):
    """Says when all of them were given back."""

    def __init__(self) -> None:
        super().__init__()
        self.empty = asyncio.Event()

    async def release(self, request: v1.ReleaseTerminal) -> v1.ReleaseTerminalResult:
        answer = await super().release(request)
        if not len(self):
            self.empty.set()
        return answer


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("kind", [s.DiesAndResumes, s.DiesAndLoads])
async def test_a_session_of_an_agent_that_died_goes_on_in_silence_with_what_was_chosen(
    tmp_path: Path, workspace: Path, kind: type[s.Dies]
) -> None:
    behind, terminals = StandIn(kind, tmp_path), Watched()
    async with through(behind.engine, terminals=terminals) as agent:
        session = await agent.new_session(workspace)
        await session.set_mode("look")
        with pytest.raises(RequestRefused) as refused:
            await session.prompt("work")
        assert refused.value.message == "The stand-in ended unexpectedly"
        assert "out of luck" in refused.value.reason and refused.value.hint.startswith("try again")
        await terminals.empty.wait()  # what it left is given back
        call = session.transcript.call("t1")
        assert call is not None and call.status == v1.ToolStatus.FAILED
        before = len(session.transcript.entries)
        assert await session.prompt("again").text() == "again"
        assert [getattr(entry, "text", "") for entry in session.transcript.entries[before:]] == ["again", "again"]
        assert session.modes is not None and session.modes.current_mode_id == "look"
    assert behind.noted("mode") == ["look", "look"]
    assert behind.noted("resumed") + behind.noted("loaded") == ["s1.1"]


async def test_an_agent_that_remembers_nothing_begins_anew_with_a_notice(tmp_path: Path, workspace: Path) -> None:
    behind = StandIn(s.Dies, tmp_path)
    async with through(behind.engine, terminals=Terminals()) as agent:
        session = await agent.new_session(workspace)
        with pytest.raises(RequestRefused):
            await session.prompt("work")
        assert await session.prompt("again").text() == "again"
        assert "A new session was begun" in session.transcript.plain()
        assert await session.prompt("and again").text() == "and again"
    assert behind.received.count("session/new") == 2 and behind.received.count("started") == 2


async def test_commands_on_this_machine_end_with_the_agent_that_started_them(tmp_path: Path, workspace: Path) -> None:
    async with through(StandIn(s.Dies, tmp_path).engine) as agent:
        session = await agent.new_session(workspace)
        with pytest.raises(RequestRefused):
            await session.prompt("work")
        assert await session.prompt("again").text() == "again"  # nothing of before is in its way


async def test_an_agent_that_ignores_a_cancellation_is_ended_and_started_again(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(at_work, "CANCEL_LIMIT", 0.2)
    behind = StandIn(s.Hangs, tmp_path)
    async with through(behind.engine) as agent:
        session = await agent.new_session(workspace)
        turn = session.prompt("work")
        await anext(turn)
        assert (await turn.cancel()).stop_reason == v1.StopReason.CANCELLED
        assert await session.prompt("again").text() == "again"
        [pid] = map(int, behind.noted("pid"))
        assert is_gone(pid)
    assert behind.noted("resumed") == ["s1.1"]


async def test_nothing_is_left_when_the_client_goes_in_the_middle_of_a_turn(tmp_path: Path, workspace: Path) -> None:
    behind = StandIn(s.Hangs, tmp_path)
    async with through(behind.engine) as agent:
        session = await agent.new_session(workspace)
        turn = session.prompt("work")
        await anext(turn)
        [pid] = map(int, behind.noted("pid"))
        await agent.close()
    assert is_gone(pid)


async def test_a_program_that_is_not_there_or_no_agent_is_a_clear_error(workspace: Path) -> None:
    async with through(AcpEngine("x", "Nobody", ["/nowhere/lute"])) as agent:
        with pytest.raises(RequestRefused, match=r"Nobody cannot be started: cannot start `/nowhere/lute`"):
            await agent.new_session(workspace)
    async with through(AcpEngine("x", "Talker", ["/bin/echo", "good morning"])) as agent:
        with pytest.raises(RequestRefused, match=r"good morning(.|\n)*hint: this is not the Agent Client Protocol"):
            await agent.new_session(workspace)
