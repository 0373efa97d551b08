"""What an agent behind our engine asks: the client is asked, and what it cannot do is done on this machine."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent.session import SessionHost
from antiphon.client.files import Files
from antiphon.client.handlers import Elicitation
from antiphon.client.terminals import Terminals
from antiphon.connection.router import Router
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1
from tests.engines.acp import stand_in as s
from tests.engines.acp.place import StandIn, through


async def test_files_and_terminals_are_the_clients_where_it_has_them(tmp_path: Path, workspace: Path) -> None:
    files, terminals = Files(write=True, unsaved=lambda _: "not saved yet"), Terminals()
    async with through(StandIn(s.AsksForFiles, tmp_path).engine, files=files, terminals=terminals) as agent:
        session = await agent.new_session(workspace)
        assert await session.prompt("read README.md").text() == "not saved yet"
        await session.prompt("write new.txt hello")
        assert (workspace / "new.txt").read_text(encoding="utf-8") == "hello"
        turn = session.prompt("run echo sung; exit 3")
        updates = [update async for update in turn]
        [call] = [each for each in updates if isinstance(each, v1.ToolCall)]
        assert isinstance(call.content[0], v1.TerminalItem) and not len(terminals)
        assert isinstance(updates[-1], v1.AgentMessageChunk) and updates[-1].content == v1.TextBlock("3 sung\n")


async def test_what_the_client_cannot_do_is_done_here(tmp_path: Path, workspace: Path) -> None:
    behind = StandIn(s.AsksForFiles, tmp_path)
    async with through(behind.engine, files=None, terminals=None) as agent:
        session = await agent.new_session(workspace)
        assert "A place to sing" in await session.prompt("read README.md").text()
        assert "written" in await session.prompt("write new.txt hello").text()
        assert (workspace / "new.txt").read_text(encoding="utf-8") == "hello"
        assert "outside" in await session.prompt("write ../beyond.txt hello").text()
        assert not (tmp_path / "beyond.txt").exists()
        turn = session.prompt("run echo sung; exit 3")
        updates = [update async for update in turn]
        assert isinstance(updates[-1], v1.AgentMessageChunk) and updates[-1].content == v1.TextBlock("3 sung\n")
        shown = session.transcript.call("t1")
        assert shown is not None and shown.content == [v1.ContentItem(v1.TextBlock("sung\n"))]
        assert shown.status == v1.ToolStatus.COMPLETED


async def test_an_agent_that_reads_before_its_session_is_known_is_answered(tmp_path: Path, workspace: Path) -> None:
    behind = StandIn(s.AsksForFiles, tmp_path)
    async with through(behind.engine, files=Files(unsaved=lambda _: "never")) as agent:
        await agent.new_session(workspace)
    assert behind.noted("early") == ["# A place to sing"]


async def test_rules_for_this_machine_come_before_what_is_done_here(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def admit(self: SessionHost, call: Any, params: Any) -> None:
        asked.append(call.name)
        if call.name != "fs/read_text_file":
            raise RequestError(Code.INVALID_REQUEST, "your rules forbid it")

    monkeypatch.setattr(SessionHost, "admit", admit)
    async with through(StandIn(s.AsksForFiles, tmp_path).engine, files=None) as agent:
        session = await agent.new_session(workspace)
        assert "your rules forbid it" in await session.prompt("write new.txt hello").text()
        assert "your rules forbid it" in await session.prompt("run touch ran").text()
    assert sorted(os.listdir(workspace)) == ["README.md"]
    assert asked == ["fs/read_text_file", "fs/write_text_file", "terminal/create"]


async def test_the_agent_gets_the_capabilities_of_the_client_and_files_and_terminals_always(
    tmp_path: Path, workspace: Path
) -> None:
    behind = StandIn(s.Plain, tmp_path)
    async with through(behind.engine, files=None, elicitation=Elicitation(form=lambda _: v1.Declined())) as agent:
        await agent.new_session(workspace)
    offered = json.loads(behind.noted("client")[0])
    assert offered["fs"] == {"readTextFile": True, "writeTextFile": True} and offered["terminal"] is True
    assert offered["elicitation"] == {"form": {}} and set(offered["session"]) == {
        "compaction", "configOptions", "notices"
    }  # fmt: skip


async def test_a_form_is_shown_where_it_belongs_to_a_session_and_the_client_shows_forms(
    tmp_path: Path, workspace: Path
) -> None:
    forms: list[v1.FormElicitation] = []

    def fill_in(form: v1.FormElicitation) -> v1.Accepted:
        forms.append(form)
        return v1.Accepted({"name": "Ada"})

    async with through(StandIn(s.AsksForms, tmp_path).engine, elicitation=Elicitation(form=fill_in)) as agent:
        session = await agent.new_session(workspace)
        reply = await session.prompt("ask").text()
    assert json.loads(reply) == [{"action": "accept", "content": {"name": "Ada"}}, {"action": "decline"}]
    assert [form.session_id for form in forms] == [session.id]
    async with through(StandIn(s.AsksForms, tmp_path).engine) as agent:
        reply = await (await agent.new_session(workspace)).prompt("ask").text()
    assert json.loads(reply) == [{"action": "decline"}, {"action": "decline"}]


async def test_a_request_comes_after_the_updates_before_it_and_ends_with_the_turn(
    tmp_path: Path, workspace: Path
) -> None:
    behind = StandIn(s.AsksAndIsCancelled, tmp_path)
    begun: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
    cancelled = asyncio.Event()

    async def permission(asked: v1.RequestPermission) -> str:
        begun.set_result([getattr(entry, "title", "") for entry in session.transcript.entries])
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "yes"

    async with through(behind.engine, permission=permission) as agent:
        session = await agent.new_session(workspace)
        turn = session.prompt("sing")
        reading = asyncio.ensure_future(turn.text())
        assert "Sing" in await begun
        await session.cancel()
        assert await reading == "stopped"
        assert turn.result.stop_reason == v1.StopReason.CANCELLED and cancelled.is_set()
    assert behind.noted("outcome") == ['{"outcome": "cancelled"}']


async def test_methods_of_its_own_reach_the_client(tmp_path: Path, workspace: Path) -> None:
    async with through(StandIn(s.Extends, tmp_path).engine) as agent:
        session = await agent.new_session(workspace)
        router: Router = agent.connection.router
        sent: list[bytes] = []

        async def answer(method: str, params: Any) -> dict[str, Any]:
            return {"method": method, "params": json.loads(bytes(params))}

        assert "-32601" in await session.prompt("refused").text()
        router.other_request = answer
        router.other_notice = lambda method, params: sent.append(bytes(params))
        message = json.loads(await session.prompt("answered").text())
    assert message == {"method": "_stand_in/asked", "params": {"sessionId": session.id, "n": 2}}
    assert [json.loads(each) for each in sent] == [{"sessionId": session.id, "n": 1}]
