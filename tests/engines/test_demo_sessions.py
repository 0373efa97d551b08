"""The demo's sessions outlive the process: list, load, resume, fork and delete are real."""

import asyncio
import os
import signal
import threading
from pathlib import Path

import pytest

from antiphon.connection.connection import Connection
from antiphon.connection.router import Router
from antiphon.engines.base import Host
from antiphon.engines.demo.engine import Demo
from antiphon.errors import Code, ConnectionClosed, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1
from antiphon.transcript.fork_point import fork_meta
from antiphon.transcript.transcript import fold
from antiphon.transports.memory import memory_pair
from antiphon.transports.process import ProcessTransport
from tests.engines.demo_client import DemoClient, demo


async def listed(client: DemoClient, cwd: str | None = None) -> list[v1.SessionInfo]:
    return (await client.connection.request(m.LIST_SESSIONS, v1.ListSessions(cwd))).sessions


async def loaded(client: DemoClient, session: str) -> tuple[list[v1.Update], v1.LoadSessionResult]:
    """What is replayed, and the answer."""
    asked = v1.LoadSession(session, str(client.workspace), [])
    async with client.connection.stream(m.LOAD_SESSION, asked) as replay:
        updates = [message.update async for message in replay]
    return updates, replay.result


def messages_of(updates: list[v1.Update]) -> list[tuple[str, str]]:
    """Who sent what."""
    return [
        ("user" if isinstance(each, v1.UserMessageChunk) else "agent", each.content.text)
        for each in updates
        if isinstance(each, v1.UserMessageChunk | v1.AgentMessageChunk) and isinstance(each.content, v1.TextBlock)
    ]


async def test_a_session_is_loaded_after_a_restart_with_its_whole_history(workspace: Path) -> None:
    async with demo(workspace) as client:
        session = await client.new()
        reply, _ = await client.prompt(session, "/edit notes.txt")
        await client.prompt(session, "/slow 2")
        await client.prompt(session, "/image")
    async with demo(workspace) as client:
        updates, _ = await loaded(client, session)
        assert messages_of(updates) == [
            ("user", "/edit notes.txt"), ("agent", "`notes.txt` has 1 line now."),
            ("user", "/slow 2"), ("agent", "1 2 done"),
            ("user", "/image"), ("agent", "A picture: "),
        ]  # fmt: skip
        calls = v1.ToolCall | v1.ToolCallUpdate
        assert [each for each in updates if isinstance(each, calls)] == [
            each for each in reply if isinstance(each, calls)
        ]
        assert any(
            isinstance(each, v1.AgentMessageChunk) and isinstance(each.content, v1.ImageBlock) for each in updates
        )


async def test_a_loaded_session_goes_on_and_loading_adds_nothing_to_its_history(workspace: Path) -> None:
    async with demo(workspace) as client:
        session = await client.new()
        await client.prompt(session, "/think once")
        first, _ = await loaded(client, session)
        second, _ = await loaded(client, session)
        assert messages_of(first) == messages_of(second) != []
        await client.prompt(session, "/think twice")
        third, _ = await loaded(client, session)
        assert messages_of(third)[: len(messages_of(first))] == messages_of(first)
        ids = [each.tool_call_id for each in third if isinstance(each, v1.ToolCall)]
        assert len(ids) == len(set(ids)) == 2


async def test_mode_and_settings_are_as_they_were_left(workspace: Path) -> None:
    async with demo(workspace) as client:
        session = await client.new()
        await client.connection.request(m.SET_MODE, v1.SetMode(session, "plan"))
        await client.connection.request(m.SET_CONFIG_OPTION, v1.SetConfigOption(session, "greeting", True))
        await client.prompt(session, "/title Two voices")
    async with demo(workspace) as client:
        asked = v1.ResumeSession(session, str(workspace))
        resumed = await client.connection.request(m.RESUME_SESSION, asked)
        assert resumed.modes is not None and resumed.modes.current_mode_id == "plan"
        options = {
            each.id: each.current_value for each in resumed.config_options or [] if not isinstance(each, v1.Unknown)
        }
        assert (options["mode"], options["greeting"]) == ("plan", True)
        assert [each.title for each in await listed(client)] == ["Two voices"]


async def test_resuming_is_silent(workspace: Path) -> None:
    async with demo(workspace) as client:
        session = await client.new()
        await client.prompt(session, "/echo hello")
    async with demo(workspace) as client:
        await client.connection.request(m.RESUME_SESSION, v1.ResumeSession(session, str(workspace)))
        assert await client.say(session, "/echo again") == "again"
    kinds = [
        frame["params"]["update"]["sessionUpdate"] for frame in client.frames if frame.get("method") == "session/update"
    ]
    assert kinds == ["available_commands_update", "user_message_chunk", "agent_message_chunk"]


async def begun(client: DemoClient) -> str:
    """A session in which something was sent."""
    session = await client.new()
    await client.prompt(session, "/echo hello")
    return session


async def test_sessions_are_listed_newest_first_and_by_directory(workspace: Path, tmp_path: Path) -> None:
    async with demo(workspace) as client:
        first, second = await begun(client), await begun(client)
        await client.new()  # nothing is sent in it, so there is nothing to go on with
        client.workspace = tmp_path
        third = await begun(client)
        await client.prompt(first, "/echo I am the newest now")
        assert [each.session_id for each in await listed(client)] == [first, third, second]
        assert {each.session_id for each in await listed(client, str(workspace))} == {first, second}
        assert [each.session_id for each in await listed(client, str(tmp_path))] == [third]


async def test_many_sessions_come_in_pages(workspace: Path) -> None:
    async with demo(workspace) as client:
        made = {await begun(client) for _ in range(60)}
        page = await client.connection.request(m.LIST_SESSIONS, v1.ListSessions())
        found = [each.session_id for each in page.sessions]
        while page.next_cursor is not None:
            page = await client.connection.request(m.LIST_SESSIONS, v1.ListSessions(cursor=page.next_cursor))
            found += [each.session_id for each in page.sessions]
        assert len(found) == 60 and set(found) == made
        with pytest.raises(RequestRefused) as refused:
            await client.connection.request(m.LIST_SESSIONS, v1.ListSessions(cursor="nonsense"))
        assert refused.value.code == Code.INVALID_PARAMS


async def test_a_fork_may_end_before_a_prompt_of_its_source(workspace: Path) -> None:
    async with demo(workspace) as client:
        source = await client.new()
        for text in ("/echo one", "/echo two", "/echo three"):
            await client.prompt(source, text)
        fork = v1.ForkSession(source, str(workspace), meta=fork_meta(["/echo two", "/echo three"]))
        forked = await client.connection.request(m.FORK_SESSION, fork)
        await client.prompt(forked.session_id, "/echo four")
        copy, _ = await loaded(client, forked.session_id)
    assert [text for speaker, text in messages_of(copy) if text.startswith("/")] == ["/echo one", "/echo four"]


async def test_a_fork_begins_where_its_source_stands_and_goes_its_own_way(workspace: Path) -> None:
    async with demo(workspace) as client:
        source = await client.new()
        await client.prompt(source, "/echo before")
        forked = await client.connection.request(m.FORK_SESSION, v1.ForkSession(source, str(workspace)))
        await client.prompt(forked.session_id, "/echo after")
        original, _ = await loaded(client, source)
        copy, _ = await loaded(client, forked.session_id)
        assert messages_of(copy)[: len(messages_of(original))] == messages_of(original)
        assert ("agent", "after") in messages_of(copy) and ("agent", "after") not in messages_of(original)


async def test_a_deleted_session_is_gone_and_deleting_it_again_is_not_an_error(workspace: Path) -> None:
    async with demo(workspace) as client:
        session = await client.new()
        await client.connection.request(m.DELETE_SESSION, v1.DeleteSession(session))
        await client.connection.request(m.DELETE_SESSION, v1.DeleteSession(session))
        assert await listed(client) == []
        with pytest.raises(RequestRefused) as refused:
            await loaded(client, session)
        assert refused.value.code == Code.RESOURCE_NOT_FOUND


async def test_a_closed_session_takes_no_prompts_until_it_is_opened_again(workspace: Path) -> None:
    async with demo(workspace) as client:
        session = await client.new()
        await client.connection.request(m.CLOSE_SESSION, v1.CloseSession(session))
        with pytest.raises(RequestRefused) as refused:
            await client.prompt(session, "/echo hello")
        assert refused.value.code == Code.RESOURCE_NOT_FOUND
        await loaded(client, session)
        assert await client.say(session, "/echo hello") == "hello"


async def test_messages_before_a_cancel_are_kept(workspace: Path) -> None:
    async with demo(workspace) as client:
        session = await client.new()
        async with client.connection.stream(m.PROMPT, v1.Prompt(session, [v1.TextBlock("/slow 100")])) as turn:
            async for message in turn:
                if isinstance(message.update, v1.AgentMessageChunk):
                    break
        updates, _ = await loaded(client, session)
        assert messages_of(updates)[0] == ("user", "/slow 100") and messages_of(updates)[1][1].startswith("1 ")


async def test_a_call_that_was_cut_off_by_a_crash_has_failed_and_keeps_its_id(workspace: Path) -> None:
    async with demo(workspace) as client:
        session = await client.new()
        async with client.connection.stream(m.PROMPT, v1.Prompt(session, [v1.TextBlock("/run sleep 600")])) as turn:
            async for message in turn:
                if isinstance(message.update, v1.ToolCallUpdate) and message.update.content:
                    break
            listing = await listed(client)  # a round trip later it is on its way to the disk, and this waits for it
            assert listing
            assert isinstance(client.connection.transport, ProcessTransport)
            os.kill(client.connection.transport.pid, signal.SIGKILL)
            with pytest.raises(ConnectionClosed):
                await turn
    async with demo(workspace) as client:
        await loaded(client, session)
        await client.prompt(session, "/think again")
        updates, _ = await loaded(client, session)
    shown = fold(updates)
    assert "[failed] Run `sleep 600`" in shown.plain() and "[completed] Think it over" in shown.plain()


async def test_a_session_that_was_deleted_elsewhere_does_not_cost_another_its_history(workspace: Path) -> None:
    async with demo(workspace) as client, demo(workspace) as other:
        gone, stays = await begun(client), await begun(client)
        assert len(await listed(client)) == 2
        await other.connection.request(m.DELETE_SESSION, v1.DeleteSession(gone))
        await client.prompt(gone, "/echo nobody will know")
        await client.prompt(stays, "/echo this stays")
        updates, _ = await loaded(other, stays)
        assert ("agent", "this stays") in messages_of(updates)


async def test_the_file_is_closed_when_the_last_client_is_gone_and_opened_again_for_the_next(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", str(tmp_path / "state"))
    agent = Host(Demo())
    threads = set(threading.enumerate())
    seen: list[list[v1.SessionInfo]] = []
    for _ in range(2):
        near, far = memory_pair()
        served = asyncio.ensure_future(agent.serve(far))
        async with Connection(near, Router(), version=V1) as connection:
            client = DemoClient(connection, workspace)
            await connection.request(m.INITIALIZE, v1.Initialize(1))
            await client.prompt(await client.new(), "/think once")
            seen.append(await listed(client))
        await served
        assert set(threading.enumerate()) == threads
    assert [len(each) for each in seen] == [1, 2]
