"""Sessions: who may open what, opened twice, listed, closed, deleted, and what is freed when."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.agent.agent import Agent
from antiphon.agent.session import AgentSession
from antiphon.agent.turn import AgentTurn
from antiphon.errors import Code, LocalProtocolError, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.methods import Notice
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import Editor, playing
from tests.rows import each_row


class KeepingAgent(Agent):
    """An agent with every session hook, that writes down what happens."""

    def __init__(self, **how: Any) -> None:
        super().__init__("keeper", **how)
        self.log: list[str] = []
        self.gate: asyncio.Event | None = None

    async def pass_gate(self) -> None:
        if self.gate is not None:
            await self.gate.wait()

    async def prompt(self, turn: AgentTurn) -> None:
        await turn.say("begun")
        try:
            await asyncio.Event().wait()
        finally:
            self.log.append("turn ended")

    async def load_session(self, session: AgentSession) -> None:
        self.log.append(f"load {session.id}")
        await session.say("history")
        await self.pass_gate()

    def resume_session(self, session: AgentSession) -> None:
        self.log.append(f"resume {session.id}")

    async def fork_session(self, session: AgentSession, source: str) -> None:
        self.log.append(f"fork {source}")

    def list_sessions(self, query: v1.ListSessions) -> v1.ListSessionsResult:
        return v1.ListSessionsResult([v1.SessionInfo("a", query.cwd or "/", title="A")], query.cursor)

    async def close_session(self, session: AgentSession) -> None:
        await asyncio.sleep(0)
        self.log.append(f"close {session.id}")

    async def delete_session(self, session_id: str) -> None:
        self.log.append(f"delete {session_id}")


ASKING: dict[str, Callable[[Editor], Awaitable[Any]]] = {
    "new": lambda it: it.open(),
    "load": lambda it: it.connection.request(m.LOAD_SESSION, v1.LoadSession("s", "/w", [])),
    "resume": lambda it: it.connection.request(m.RESUME_SESSION, v1.ResumeSession("s", "/w")),
    "fork": lambda it: it.connection.request(m.FORK_SESSION, v1.ForkSession("s", "/w")),
    "prompt": lambda it: it.prompt("s"),
    "list": lambda it: it.connection.request(m.LIST_SESSIONS, v1.ListSessions()),
    "close": lambda it: it.connection.request(m.CLOSE_SESSION, v1.CloseSession("s")),
    "delete": lambda it: it.connection.request(m.DELETE_SESSION, v1.DeleteSession("s")),
    "set_mode": lambda it: it.connection.request(m.SET_MODE, v1.SetMode("s", "m")),
    "set_model": lambda it: it.connection.request(m.SET_MODEL, v1.SetModel("s", "m")),
    "set_config_option": lambda it: it.connection.request(m.SET_CONFIG_OPTION, v1.SetConfigOption("s", "c", "v")),
}


@each_row("method", ASKING)
async def test_nothing_of_sessions_works_before_initialize(method: str) -> None:
    agent = KeepingAgent()
    async with playing(agent, introduced=False) as editor:
        with pytest.raises(RequestRefused, match="send `initialize` first") as refusal:
            await ASKING[method](editor)
        assert refusal.value.code == Code.INVALID_REQUEST
    assert agent.log == []


@pytest.mark.parametrize("method", ["prompt", "close", "set_mode", "set_model", "set_config_option"])
async def test_a_session_that_is_not_open_is_not_found(method: str) -> None:
    async with playing(KeepingAgent()) as editor:
        with pytest.raises(RequestRefused, match="there is no open session `s`: open it first") as refusal:
            await ASKING[method](editor)
        assert refusal.value.code == Code.RESOURCE_NOT_FOUND


@pytest.mark.parametrize("cwd", ["", "w", "./w", "~/w"])
async def test_a_relative_directory_is_refused(cwd: str) -> None:
    async with playing(KeepingAgent()) as editor:
        questions: list[tuple[Any, Any]] = [
            (m.NEW_SESSION, v1.NewSession(cwd, [])),
            (m.NEW_SESSION, v1.NewSession("/w", [], [cwd])),
            (m.LOAD_SESSION, v1.LoadSession("s", cwd, [])),
            (m.RESUME_SESSION, v1.ResumeSession("s", cwd)),
            (m.FORK_SESSION, v1.ForkSession("s", cwd)),
        ]
        for call, asked in questions:
            with pytest.raises(RequestRefused, match="must be an absolute path") as refusal:
                await editor.connection.request(call, asked)
            assert refusal.value.code == Code.INVALID_PARAMS


CONTENT: dict[str, v1.ContentBlock] = {
    "image": v1.ImageBlock("aGk=", "image/png"),
    "audio": v1.AudioBlock("aGk=", "audio/wav"),
    "resource": v1.EmbeddedResource(v1.TextResource("hi", "file:///f")),
}


@pytest.mark.parametrize("kind", CONTENT)
async def test_content_that_was_not_advertised_is_refused_with_a_sentence(kind: str) -> None:
    class Taking(Agent):
        def prompt(self, turn: AgentTurn) -> None: ...

    async with playing(Taking()) as editor:
        session = await editor.open()
        with pytest.raises(RequestRefused, match=f"takes no `{kind}` content in a prompt: send text") as refusal:
            await editor.prompt(session, "look", CONTENT[kind])
        assert refusal.value.code == Code.INVALID_PARAMS
        link = v1.ResourceLink("f", "file:///f")
        assert (await editor.prompt(session, "look", link)).stop_reason == v1.StopReason.END_TURN
    async with playing(Taking(takes=(kind,))) as editor:
        await editor.prompt(await editor.open(), CONTENT[kind])


SERVERS: dict[str, v1.McpServer] = {
    "http": v1.HttpServer("h", "https://example.com", []),
    "sse": v1.SseServer("s", "https://example.com", []),
}


@pytest.mark.parametrize("kind", SERVERS)
async def test_an_mcp_server_that_was_not_advertised_is_refused_with_a_sentence(kind: str) -> None:
    asked = v1.NewSession("/w", [v1.StdioServer("s", "/bin/s", [], []), SERVERS[kind]])
    async with playing(KeepingAgent()) as editor:
        with pytest.raises(RequestRefused, match=f"no MCP servers of type `{kind}`, only stdio") as refusal:
            await editor.connection.request(m.NEW_SESSION, asked)
        assert refusal.value.code == Code.INVALID_PARAMS
    async with playing(KeepingAgent(mcp=(kind,))) as editor:
        await editor.connection.request(m.NEW_SESSION, asked)


@pytest.mark.parametrize("way", ["load", "resume"])
async def test_a_session_that_is_opened_again_closes_the_first_and_its_turn(way: str) -> None:
    agent = KeepingAgent()
    async with playing(agent) as editor:
        await ASKING[way](editor)
        running = editor.prompt("s")
        await editor.until("begun")
        await ASKING[way](editor)
        assert (await running).stop_reason == v1.StopReason.CANCELLED
        assert agent.log == [f"{way} s", "turn ended", "close s", f"{way} s"]
        again = editor.prompt("s")
        await editor.until(lambda: editor.order.count("begun") == 2)
        editor.cancel("s")
        await again


async def test_two_loads_at_once_leave_one_session_and_close_the_other() -> None:
    agent = KeepingAgent()
    agent.gate = asyncio.Event()
    async with playing(agent) as editor:
        loads = [asyncio.ensure_future(ASKING["load"](editor)) for _ in range(3)]
        await editor.until(lambda: editor.order.count("history") == 3)
        agent.gate.set()
        await asyncio.gather(*loads)
        assert agent.log == ["load s"] * 3 + ["close s"] * 2
    assert agent.log[5:] == ["close s"]


async def test_a_closed_session_is_freed_once_and_cannot_be_used() -> None:
    agent = KeepingAgent()
    async with playing(agent) as editor:
        session = await editor.open()
        closing = v1.CloseSession(session)
        asked = [editor.connection.request(m.CLOSE_SESSION, closing) for _ in range(2)]
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(each) for each in results] == [v1.CloseSessionResult, RequestRefused]
        with pytest.raises(RequestRefused):
            await editor.prompt(session)
    assert agent.log == [f"close {session}"]


async def test_deleting_closes_first_and_what_does_not_exist_may_be_deleted() -> None:
    agent = KeepingAgent()
    async with playing(agent) as editor:
        await ASKING["load"](editor)
        await ASKING["delete"](editor)
        await ASKING["delete"](editor)
        assert agent.log == ["load s", "close s", "delete s", "delete s"]


async def test_a_fork_is_a_session_of_its_own() -> None:
    agent = KeepingAgent()
    async with playing(agent) as editor:
        source = await editor.open()
        forked = await editor.connection.request(m.FORK_SESSION, v1.ForkSession(source, "/w"))
        assert forked.session_id != source
        assert agent.log == [f"fork {source}"]
    assert sorted(agent.log[1:]) == sorted([f"close {source}", f"close {forked.session_id}"])


async def test_a_list_is_a_page_or_everything() -> None:
    agent = KeepingAgent()
    async with playing(agent) as editor:
        page = await editor.connection.request(m.LIST_SESSIONS, v1.ListSessions("/w", "next"))
        assert page == v1.ListSessionsResult([v1.SessionInfo("a", "/w", title="A")], "next")
        agent.list_sessions = lambda _: (v1.SessionInfo(each, "/") for each in "ab")  # type: ignore[method-assign, assignment, return-value]
        everything = await editor.connection.request(m.LIST_SESSIONS, v1.ListSessions())
        assert [each.session_id for each in everything.sessions] == ["a", "b"]


@settings(max_examples=20)
@given(st.lists(st.sampled_from(["/a", "/b", "/b/c"])), st.sampled_from([None, "/a", "/b", "/nowhere"]))
async def test_of_all_sessions_those_of_the_directory_are_sent(places: list[str], cwd: str | None) -> None:
    agent = KeepingAgent()
    agent.list_sessions = lambda _: [v1.SessionInfo(str(at), where) for at, where in enumerate(places)]  # type: ignore[method-assign, assignment, return-value]
    async with playing(agent) as editor:
        found = await editor.connection.request(m.LIST_SESSIONS, v1.ListSessions(cwd))
        assert [each.cwd for each in found.sessions] == [each for each in places if cwd in (None, each)]
        with pytest.raises(RequestRefused, match="there is no page `next`"):
            await editor.connection.request(m.LIST_SESSIONS, v1.ListSessions(cwd, "next"))


async def test_a_client_that_leaves_in_the_middle_of_a_turn_leaves_nothing_behind() -> None:
    agent = KeepingAgent()
    async with playing(agent) as editor:
        session = await editor.open()
        running = [editor.prompt(session) for _ in range(2)]
        await editor.until("begun")
    assert agent.log == ["turn ended", f"close {session}"]
    assert all(isinstance(each, Exception) for each in await asyncio.gather(*running, return_exceptions=True))


async def test_an_agent_that_is_stopped_ends_its_turns_and_closes_its_sessions() -> None:
    """Ctrl-C: the client is still there, so its turns are answered."""
    from antiphon.transports.memory import memory_pair

    agent, (near, far) = KeepingAgent(), memory_pair()
    async with asyncio.timeout(20):
        serving = asyncio.create_task(agent.serve(far))
        editor = Editor(near)
        async with editor.connection:
            await editor.introduce()
            session = await editor.open()
            running = editor.prompt(session)
            await editor.until("begun")
            serving.cancel()
            assert (await running).stop_reason == v1.StopReason.CANCELLED
            with pytest.raises(asyncio.CancelledError):
                await serving
    assert agent.log == ["turn ended", f"close {session}"]


async def test_a_close_that_has_begun_is_finished_though_its_request_was_cancelled() -> None:
    agent = KeepingAgent()
    begun, gate, finished = asyncio.Event(), asyncio.Event(), list[str]()

    async def close_session(session: AgentSession) -> None:
        begun.set()
        await gate.wait()
        finished.append(session.id)

    agent.on(close_session)
    async with playing(agent) as editor:
        session = await editor.open()
        closing = asyncio.ensure_future(editor.connection.request(m.CLOSE_SESSION, v1.CloseSession(session)))
        await begun.wait()
        closing.cancel()
        await editor.until("error:session/close")
        gate.set()
    assert finished == [session]


async def test_a_session_that_cannot_be_closed_does_not_keep_the_others_open(caplog: pytest.LogCaptureFixture) -> None:
    closed: list[str] = []

    class Failing(Agent):
        def close_session(self, session: AgentSession) -> None:
            closed.append(session.id)
            raise KeyError("no")

    async with playing(Failing()) as editor:
        sessions = [await editor.open() for _ in range(3)]
    assert closed == sessions
    assert caplog.text.count("closing a session failed") == 3


async def test_a_session_that_never_closes_does_not_keep_the_agent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("antiphon.agent.sessions.CLOSE_GRACE", 0.01)
    caplog.set_level(logging.ERROR)

    class Endless(Agent):
        async def close_session(self, session: AgentSession) -> None:
            await asyncio.Event().wait()

    async with playing(Endless(), leaves=1) as editor:
        await editor.open()
    assert "closing a session takes too long (1 times)" in caplog.text


# What sessions share.


async def test_what_sessions_share_is_freed_when_the_last_client_is_gone() -> None:
    agent = KeepingAgent()

    async def close() -> None:
        agent.log.append("close all")

    agent.on(close)
    async with playing(agent):
        async with playing(agent) as editor:
            session = await editor.open()
        assert agent.log == [f"close {session}"]
    assert agent.log == [f"close {session}", "close all"]
    async with playing(agent):  # another one may come
        pass
    assert agent.log[2:] == ["close all"]


async def test_what_sessions_share_does_not_keep_the_agent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("antiphon.agent.sessions.CLOSE_GRACE", 0.01)
    agent = Agent("x")

    async def close() -> None:
        await asyncio.Event().wait()

    agent.on(close)
    async with playing(agent, leaves=1):
        pass
    assert "closing what sessions share takes too long" in caplog.text


async def test_a_close_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent("x")

    def close() -> None:
        raise KeyError("no")

    agent.on(close)
    async with playing(agent):
        pass
    assert "closing what sessions share failed" in caplog.text


async def test_notifications_besides_updates_wait_for_their_session_and_keep_their_order() -> None:
    tune: Notice[Any] = Notice("_keeper/tune", dict)

    class Tuner(KeepingAgent):
        async def new_session(self, session: AgentSession) -> None:
            self.session = session
            await session.say("one")
            await session.notify(tune, {"sessionId": session.id})
            await session.say("two")

    agent = Tuner()
    async with playing(agent) as editor:
        session = await editor.open()
        await editor.until("two")
        assert editor.order[1:] == ["answer:session/new", "one", "_keeper/tune", "two"]
        assert editor.received[-2]["params"] == {"sessionId": session}
        await editor.connection.request(m.CLOSE_SESSION, v1.CloseSession(session))
        with pytest.raises(LocalProtocolError, match="closed"):
            await agent.session.notify(tune, {})
