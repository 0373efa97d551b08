"""What real agents do beside the schema is taken in stride: one test for each way that was seen."""

import asyncio
import os
from pathlib import Path

import pytest

from antiphon.client.files import Files
from antiphon.client.handlers import allow_always, allow_once, reject
from antiphon.client.terminals import Terminals
from antiphon.errors import AuthRequired, NotSupported, RequestRefused
from antiphon.protocol import v1
from antiphon.transcript.transcript import CallEntry
from antiphon.transports.process import ProcessTransport
from tests.client import deviations as d
from tests.client.agents import Scripted
from tests.client.script import Agent
from tests.limits import limit
from tests.transports.children import alive


async def test_the_model_can_be_set_by_the_method_that_no_schema_has_any_more(tmp_path: Path) -> None:
    script = Scripted(d.Models, tmp_path)
    async with asyncio.timeout(limit()), script.connect() as agent:
        session = await agent.new_session()
        assert session.models is not None and session.models.current_model_id == "small"
        await session.set_model("big")
        assert session.models.current_model_id == "big"
    assert "model big" in script.received


async def test_what_only_the_unstable_schema_has_is_understood(tmp_path: Path) -> None:
    async with asyncio.timeout(limit()), Scripted(d.Unstable, tmp_path).connect() as agent:
        assert agent.capabilities.session_capabilities.fork is not None and agent.capabilities.mcp_capabilities.acp
        session = await agent.new_session(mcp_servers=[v1.AcpServer("mine", "id")])
        result = await session.prompt("hi")
        assert result.usage is not None and result.usage.total_tokens == 3


async def test_fields_that_no_schema_has_do_no_harm(tmp_path: Path) -> None:
    async with asyncio.timeout(limit()), Scripted(d.OddFields, tmp_path).connect() as agent:
        assert [method.id for method in agent.auth_methods if isinstance(method, v1.EnvVarAuth)] == ["key"]
        loaded = await agent.load_session("old")
        assert (loaded.id, loaded.transcript.plain()) == ("old", "old")
        resumed = await agent.resume_session("older")
        assert resumed.id == "older"


async def test_unknown_requests_are_refused_and_unknown_notifications_passed_over(tmp_path: Path) -> None:
    async with asyncio.timeout(limit()), Scripted(d.VendorMethods, tmp_path).connect() as agent:
        session = await agent.new_session()
        assert await session.prompt("hi").text() == "-32601"
        assert agent.connection.counts["Unhandled"] == 2


async def test_updates_before_the_session_is_known_reach_it_in_order(tmp_path: Path) -> None:
    received: list[v1.Update] = []
    async with asyncio.timeout(limit()), Scripted(d.EarlyUpdates, tmp_path).connect() as agent:
        session = await agent.new_session(on_update=received.append)
        assert [type(update) for update in received] == [v1.AvailableCommandsUpdate, v1.UsageUpdate]
        assert session.commands is not None and [command.name for command in session.commands] == ["x"]
        fork = await agent.fork_session(session.id)
        assert fork.transcript.plain() == "> hi\nhello"


@pytest.mark.parametrize(
    ("handler", "chosen"),
    [(allow_once, "yes"), (allow_always, "always"), (reject, "no"), (None, "no"), (lambda _: "session", "session")],
    ids=["once", "always", "reject", "default", "by id"],
)
async def test_permission_may_be_asked_for_a_call_that_was_never_announced(
    tmp_path: Path, handler: object, chosen: str
) -> None:
    async with asyncio.timeout(limit()), Scripted(d.AsksFirst, tmp_path).connect(permission=handler) as agent:
        session = await agent.new_session()
        assert await session.prompt("hi").text() == chosen
        [call] = [entry for entry in session.transcript.entries if isinstance(entry, CallEntry)]
        assert (call.title, call.status) == ("Run", v1.ToolStatus.COMPLETED)


@pytest.mark.parametrize(
    ("handler", "chosen"),
    [(reject, "cancelled"), (lambda _: False, "cancelled"), (lambda _: "nonsense", "cancelled"), (allow_once, "yes")],
    ids=["reject", "false", "nonsense", "once"],
)
async def test_an_option_of_an_unknown_kind_is_never_chosen_for_its_kind(
    tmp_path: Path, handler: object, chosen: str
) -> None:
    async with asyncio.timeout(limit()), Scripted(d.AsksStrangely, tmp_path).connect(permission=handler) as agent:
        session = await agent.new_session()
        assert await session.prompt("hi").text() == chosen


async def test_a_call_that_is_announced_twice_is_one_call(tmp_path: Path) -> None:
    async with asyncio.timeout(limit()), Scripted(d.AnnouncesTwice, tmp_path).connect() as agent:
        session = await agent.new_session()
        await session.prompt("hi")
        [call] = [entry for entry in session.transcript.entries if isinstance(entry, CallEntry)]
        assert (call.title, call.status) == ("ls -l", v1.ToolStatus.COMPLETED)


async def test_a_terminal_that_was_not_created_is_shown_and_not_found(tmp_path: Path) -> None:
    agent_here = Scripted(d.StrangeTerminals, tmp_path).connect(terminals=Terminals())
    async with asyncio.timeout(limit()), agent_here as agent:
        session = await agent.new_session()
        assert await session.prompt("hi").text() == "-32002"
        [call] = [entry for entry in session.transcript.entries if isinstance(entry, CallEntry)]
        assert call.content == [v1.TerminalItem("call_77")]


async def test_a_write_that_we_did_not_offer_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "file"
    async with asyncio.timeout(limit()), Scripted(d.WritesUnasked, tmp_path).connect(files=Files()) as agent:
        session = await agent.new_session(tmp_path)
        assert await session.prompt(str(target)).text() == "-32601"
    assert not target.exists()


async def test_an_agent_may_read_its_instructions_before_it_answers_session_new(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("be kind", encoding="utf-8")
    script = Scripted(d.ReadsEarly, tmp_path)
    async with asyncio.timeout(limit()), script.connect() as agent:
        await agent.new_session(tmp_path)
    assert "read be kind" in script.received


async def test_ways_to_sign_in_that_we_did_not_ask_for_are_offered_all_the_same(tmp_path: Path) -> None:
    script = Scripted(d.TerminalLogin, tmp_path)
    async with asyncio.timeout(limit()), script.connect() as agent:
        assert [getattr(method, "id", None) for method in agent.auth_methods] == ["tty", "key", None]
        with pytest.raises(AuthRequired, match="`tty`, `key`") as caught:
            await agent.new_session()
        assert len(caught.value.methods) == 3
        with pytest.raises(NotSupported, match="`tty`, `key`"):
            await agent.authenticate("magic")
        with pytest.raises(RequestRefused, match="no terminal here"):
            await agent.authenticate("tty")
        await agent.authenticate("key")
        assert (await agent.new_session()).id
    assert script.received.count("session/new") == 2


async def test_a_change_of_mode_that_is_sent_as_text_between_turns_is_followed(tmp_path: Path) -> None:
    received: list[v1.Update] = []
    async with asyncio.timeout(limit()), Scripted(d.ModeAsText, tmp_path).connect() as agent:
        session = await agent.new_session(on_update=received.append)
        await session.set_mode("plan")
        assert session.modes is not None and session.modes.current_mode_id == "plan"
        assert session.transcript.plain() == "[MODE_UPDATE] plan" and len(received) == 1


async def test_odd_codes_and_data_are_errors_with_their_text(tmp_path: Path) -> None:
    async with asyncio.timeout(limit()), Scripted(d.OddCodes, tmp_path).connect() as agent:
        session = await agent.new_session()
        for said, code, data in (
            ("400", 400, None),
            ("list", -32602, ["cwd", 1]),
            ("text", -32603, "the cause"),
            ("object", -32603, {"details": "the cause"}),
        ):
            with pytest.raises(RequestRefused) as caught:
                await session.prompt(said)
            assert (caught.value.code, caught.value.data) == (code, data)
        turn = session.prompt("nothing at all")
        assert await turn.text() == "" and turn.result.stop_reason == v1.StopReason.END_TURN


async def test_whatever_code_an_unknown_session_has_a_new_one_takes_its_place(tmp_path: Path) -> None:
    script = Scripted(d.ForgetsOpenly, tmp_path)
    async with asyncio.timeout(limit()), script.connect() as agent:
        session = await agent.new_session()
        before = session.id
        [notice, said] = [update async for update in session.prompt("hi")]
        assert isinstance(notice, v1.NoticeUpdate) and notice.severity == v1.NoticeSeverity.WARNING
        assert isinstance(said, v1.AgentMessageChunk) and session.id != before
    ways = [line for line in script.received if line.startswith("session/")]
    assert ways == [
        "session/new", "session/prompt", "session/resume", "session/load", "session/new", "session/prompt",
    ]  # fmt: skip


async def test_a_live_session_that_cannot_be_loaded_again_lives_on(tmp_path: Path) -> None:
    async with asyncio.timeout(limit()), Scripted(d.LoadedAlready, tmp_path).connect() as agent:
        received: list[v1.Update] = []
        session = await agent.new_session(on_update=received.append)
        with pytest.raises(RequestRefused, match="already loaded"):
            await agent.load_session(session.id)
        assert await session.prompt("still here").text() == "still here"


@pytest.mark.slow
@pytest.mark.parametrize("kind", [d.IgnoresEof, d.IgnoresEverything])
async def test_an_agent_that_ignores_the_end_of_its_input_is_ended(tmp_path: Path, kind: type[Agent]) -> None:
    async with asyncio.timeout(limit()):
        async with Scripted(kind, tmp_path).connect() as agent:
            transport = agent.connection.transport
            assert isinstance(transport, ProcessTransport)
            pid = transport.pid
            assert alive(pid)
        assert not alive(pid) and pid != os.getpid()


async def test_a_rejection_may_end_the_turn_as_cancelled(tmp_path: Path) -> None:
    async with asyncio.timeout(limit()), Scripted(d.CancelsOnRejection, tmp_path).connect() as agent:
        session = await agent.new_session()
        assert (await session.prompt("hi")).stop_reason == v1.StopReason.CANCELLED


async def test_errors_that_answer_nothing_are_passed_over(tmp_path: Path) -> None:
    async with asyncio.timeout(limit()), Scripted(d.IdlessErrors, tmp_path).connect() as agent:
        session = await agent.new_session()
        assert await session.prompt("hi").text() == "hi"
        assert agent.connection.counts["Stray"] == 2


async def test_null_for_an_answer_is_an_empty_result(tmp_path: Path) -> None:
    async with asyncio.timeout(limit()), Scripted(d.Nulls, tmp_path).connect() as agent:
        assert [info async for info in agent.list_sessions()] == []
        resumed = await agent.resume_session("old")
        assert (resumed.id, resumed.modes, resumed.config_options) == ("old", None, None)
        await resumed.close()
        await agent.delete_session("old")


async def test_a_setting_follows_although_the_agent_does_not_send_its_value(tmp_path: Path) -> None:
    async with asyncio.timeout(limit()), Scripted(d.Nulls, tmp_path).connect() as agent:
        session = await agent.new_session()
        await session.set_config_option("speed", "fast")
        await session.set_config_option("loud", True)
        options = session.config_options or []
        values = {option.id: option.current_value for option in options if not isinstance(option, v1.Unknown)}
        assert values == {"speed": "fast", "loud": True}
