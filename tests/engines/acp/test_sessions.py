"""Sessions of an agent behind our engine: what it sends and can do is what the client gets and can do."""

import asyncio
import json
from pathlib import Path

import pytest

from antiphon.client.agent import ConnectedAgent
from antiphon.errors import AuthRequired, Code, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.base import Unknown
from antiphon.protocol.methods import Call
from tests.engines.acp import stand_in as s
from tests.engines.acp.place import StandIn, demo_engine, through
from tests.engines.acp.stand_in import Plain


async def test_one_process_serves_all_sessions_and_is_gone_with_the_client(tmp_path: Path, workspace: Path) -> None:
    behind = StandIn(s.OneAtATime, tmp_path)
    async with through(behind.engine) as agent:
        one, other = await agent.new_session(workspace), await agent.new_session(workspace)
        first, second = await asyncio.gather(one.prompt("first").text(), other.prompt("second").text())
        assert (first, second) == ("begin firstfirst", "begin secondsecond")
    assert behind.received.count("started") == 1


async def test_unknown_messages_are_forwarded_as_they_came_and_in_order(tmp_path: Path, workspace: Path) -> None:
    between: asyncio.Queue[v1.Update] = asyncio.Queue()
    async with through(StandIn(s.SpeaksFreely, tmp_path).engine) as agent:
        session = await agent.new_session(workspace, on_update=between.put_nowait)
        early = await between.get()
        assert isinstance(early, Unknown)
        assert json.loads(early.raw) == {"sessionUpdate": "weather_update", "sky": "grey", "_meta": {"of": "today"}}
        turn = session.prompt("speak")
        updates = [update async for update in turn]
        if len(updates) < 4:  # what follows the answer may come with it, or after it
            updates.append(await between.get())
        kinds = [type(each).__name__ for each in updates]
        assert kinds == ["AgentMessageChunk", "Unknown", "AgentMessageChunk", "AgentMessageChunk"]
        assert isinstance(updates[1], Unknown) and json.loads(updates[1].raw)["degrees"] == [1, 2.5, None]
        assert turn.result.meta == {"took": 3}
        assert "onetwo" in (text := session.transcript.plain().replace("\n", "")) and text.endswith("three")


async def test_modes_models_and_settings_are_the_agents_and_change_with_it(workspace: Path) -> None:
    async with through(demo_engine()) as agent:
        session = await agent.new_session(workspace)
        assert session.modes is not None and [mode.id for mode in session.modes.available_modes] == ["default", "plan"]
        await session.set_mode("plan")
        assert "only look" in await session.prompt("/edit a.txt").text()
        await session.prompt("/mode default")
        assert session.modes.current_mode_id == "default"
        await session.set_config_option("thinking", "on")
        again = await agent.load_session(session.id, workspace)
        assert again.modes is not None and again.modes.current_mode_id == "default"
        values = {each.id: each.current_value for each in again.config_options or () if not isinstance(each, Unknown)}
        assert values["thinking"] == "on" and values["mode"] == "default"
        with pytest.raises(RequestRefused, match="there is no mode `loud`"):
            await again.set_mode("loud")


async def test_sessions_are_listed_loaded_forked_and_deleted_by_the_agent(workspace: Path) -> None:
    async with through(demo_engine()) as agent:
        session = await agent.new_session(workspace)
        await session.prompt("/echo sung once")
        loaded = await agent.load_session(session.id, workspace)
        assert "sung once" in loaded.transcript.plain()
        resumed = await agent.resume_session(session.id, workspace)
        assert resumed.transcript.plain() == ""
        forked = await agent.fork_session(session.id, workspace)
        assert forked.id != session.id
        assert {each.session_id async for each in agent.list_sessions(workspace)} == {session.id, forked.id}
        await agent.delete_session(forked.id)
        assert [each.session_id async for each in agent.list_sessions()] == [session.id]


async def test_a_session_of_an_earlier_process_is_loaded(workspace: Path) -> None:
    async with through(demo_engine()) as agent:
        session = await agent.new_session(workspace)
        await session.prompt("/think twice")
    async with through(demo_engine()) as agent:
        loaded = await agent.load_session(session.id, workspace)
        assert "Let me think about twice" in loaded.transcript.plain()
        assert await loaded.prompt("/title Sung").text() == "This session is called “Sung” now."


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda agent, place: agent.load_session("s1", place), "does not answer `session/load`.*loadSession"),
        (lambda agent, place: agent.resume_session("s1", place), "does not answer `session/load`.*loadSession"),
        (lambda agent, place: agent.fork_session("s1", place), "does not answer `session/fork`"),
        (lambda agent, _: agent.delete_session("s1"), "does not answer `session/delete`"),
        (lambda agent, _: agent.logout(), "does not answer `logout`"),
    ],
    ids=["load", "resume", "fork", "delete", "logout"],
)
async def test_what_the_agent_cannot_do_is_refused_with_the_reason(
    tmp_path: Path, workspace: Path, ask: "object", why: str
) -> None:
    async with through(StandIn(Plain, tmp_path).engine) as agent:
        with pytest.raises(RequestRefused, match=f"Method not found: Plain {why}"):
            await ask(agent, workspace)  # type: ignore[operator]


async def test_an_agent_that_lists_nothing_has_an_empty_list(tmp_path: Path) -> None:
    async with through(StandIn(Plain, tmp_path).engine) as agent:
        assert [each async for each in agent.list_sessions()] == []


async def test_an_agent_that_only_resumes_is_loaded_without_its_history_with_a_notice(
    tmp_path: Path, workspace: Path
) -> None:
    async with through(StandIn(s.Answers, tmp_path).engine) as agent:
        session = await agent.load_session("s1.1", workspace)
        assert "The earlier history cannot be shown" in session.transcript.plain()
        assert await session.prompt("still here?").text() == "still here?"


async def test_mcp_servers_and_directories_reach_the_agent_as_far_as_it_can(tmp_path: Path, workspace: Path) -> None:
    behind = StandIn(Plain, tmp_path)
    async with through(behind.engine) as agent:
        with pytest.raises(RequestRefused, match="does not reach MCP servers over HTTP"):
            await agent.new_session(workspace, mcp_servers=[v1.HttpServer("tunes", "https://tunes.example", [])])
        local = v1.StdioServer("tunes", "/bin/tunes", [], [])
        session = await agent.new_session(workspace, mcp_servers=[local], additional_directories=[tmp_path])
        assert "The session has one directory only" in session.transcript.plain()
    place = json.loads(behind.noted("place")[0])
    assert place["mcpServers"][0]["command"] == "/bin/tunes" and "additionalDirectories" not in place


async def test_a_user_who_is_not_signed_in_gets_the_methods_and_can_use_them(tmp_path: Path, workspace: Path) -> None:
    behind = StandIn(s.Locked, tmp_path)
    async with through(behind.engine) as agent:
        with pytest.raises(RequestRefused) as refused:
            await agent.new_session(workspace)
        assert refused.value.code == Code.AUTH_REQUIRED and isinstance(refused.value, AuthRequired)
        assert "sign in to The stand-in first" in refused.value.message
        assert "`browser` (Log in with a browser)" in refused.value.hint
        assert " login` in a terminal (Log in by hand)" in refused.value.hint
        await _authenticate(agent, "browser")
        session = await agent.new_session(workspace)
        assert await session.prompt("hi").text() == "hi"
        await agent.logout()
        with pytest.raises(AuthRequired):
            await agent.new_session(workspace)
    assert behind.noted("way") == ["browser"]
    async with through(StandIn(s.Locked, tmp_path).engine) as agent:  # known from the last time
        assert [getattr(each, "id", "") for each in agent.auth_methods] == ["browser"]
        await agent.authenticate("browser")
        await agent.new_session(workspace)


async def _authenticate(agent: ConnectedAgent, way: str) -> None:
    """As a client does that read the error: it knew of no method at first."""
    await agent.connection.request(Call("authenticate", v1.Authenticate, v1.AuthenticateResult), v1.Authenticate(way))


async def test_a_prompt_while_a_turn_runs_is_added_to_it_where_the_agent_can(tmp_path: Path, workspace: Path) -> None:
    steering = Call("_session/steering", v1.Prompt, dict)
    async with through(StandIn(s.Steered, tmp_path).engine) as agent:
        session = await agent.new_session(workspace)
        turn = session.prompt("begin")
        await anext(turn)
        added = v1.Prompt(session.id, [v1.TextBlock("faster")])
        assert await agent.connection.request(steering, added) == {"outcome": "injected"}
        assert await turn.text() == "go onfaster"


async def test_what_cannot_be_added_is_left_to_the_client(tmp_path: Path, workspace: Path) -> None:
    steering = Call("_session/steering", v1.Prompt, dict)
    async with through(StandIn(s.AsksAndIsCancelled, tmp_path).engine, permission=_never) as agent:
        session = await agent.new_session(workspace)
        turn = session.prompt("begin")
        await anext(turn)
        wish = {"steering": {"idleBehavior": "promptRequired"}}
        added = v1.Prompt(session.id, [v1.TextBlock("faster")], meta=wish)
        assert (await agent.connection.request(steering, added))["outcome"] == "promptRequired"
        await turn.cancel()


async def _never(_: v1.RequestPermission) -> str:
    await asyncio.Event().wait()
    return "yes"
