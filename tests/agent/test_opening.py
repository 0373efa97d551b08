"""A session is opened: what is sent meanwhile leaves after the answer, whatever the hook does; a load sends all before it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from antiphon.agent.agent import Agent
from antiphon.agent.session import AgentSession, watch_updates
from antiphon.errors import Code, LocalProtocolError, RequestError, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import FULL, Editor, playing
from tests.rows import each_row

Hook = Callable[[AgentSession], Awaitable[None]]

OPENING: dict[str, Callable[[Editor], Awaitable[Any]]] = {
    "session/new": lambda it: it.connection.request(m.NEW_SESSION, v1.NewSession("/w", [])),
    "session/resume": lambda it: it.connection.request(m.RESUME_SESSION, v1.ResumeSession("old", "/w")),
    "session/fork": lambda it: it.connection.request(m.FORK_SESSION, v1.ForkSession("old", "/w")),
}


def opened_by(hook: Hook) -> Agent:
    """An agent that opens every kind of session the same way."""

    class Opening(Agent):
        async def new_session(self, session: AgentSession) -> None:
            await hook(session)

        async def load_session(self, session: AgentSession) -> None:
            await hook(session)

        async def resume_session(self, session: AgentSession) -> None:
            await hook(session)

        async def fork_session(self, session: AgentSession, source: str) -> None:
            await hook(session)

    return Opening()


async def in_the_hook(session: AgentSession) -> None:
    await session.say("one")
    await session.update(v1.AgentMessageChunk(v1.TextBlock("two")))
    _ = session.say("three")


async def in_a_task_of_the_hook(session: AgentSession) -> None:
    async def speak() -> None:
        for word in ("one", "two", "three"):
            await session.say(word)
            await asyncio.sleep(0)

    session.state = asyncio.create_task(speak())
    await asyncio.sleep(0)


async def in_a_task_that_begins_when_the_hook_is_done(session: AgentSession) -> None:
    async def speak() -> None:
        for word in ("one", "two", "three"):
            await session.say(word)

    session.state = asyncio.create_task(speak())


async def in_callbacks(session: AgentSession) -> None:
    loop = asyncio.get_running_loop()
    loop.call_soon(session.say, "one")
    loop.call_soon(session.say, "two")
    await asyncio.sleep(0)
    loop.call_soon(session.say, "three")


WAYS: dict[str, Hook] = {
    way.__name__: way
    for way in (in_the_hook, in_a_task_of_the_hook, in_a_task_that_begins_when_the_hook_is_done, in_callbacks)
}


@each_row("method", OPENING)
@each_row("way", WAYS)
async def test_no_update_precedes_the_answer_that_opens_a_session(method: str, way: str) -> None:
    async with playing(opened_by(WAYS[way])) as editor:
        await OPENING[method](editor)
        await editor.until("three")
        assert editor.order == ["answer:initialize", f"answer:{method}", "one", "two", "three"]


async def test_a_load_sends_the_history_before_its_response() -> None:
    async with playing(opened_by(in_the_hook)) as editor:
        await editor.connection.request(m.LOAD_SESSION, v1.LoadSession("old", "/w", []))
        assert editor.order == ["answer:initialize", "one", "two", "three", "answer:session/load"]
        assert {message["params"]["sessionId"] for message in editor.received[1:4]} == {"old"}


async def test_a_hundred_sessions_opened_at_once_keep_their_words_to_themselves() -> None:
    async def greet(session: AgentSession) -> None:
        await session.say(session.id)
        await asyncio.sleep(0)
        await session.say(session.id)

    async with playing(opened_by(greet)) as editor:
        ids = await asyncio.gather(*[editor.open() for _ in range(100)])
        await editor.until(lambda: len(editor.updates()) == 200)
    known: set[str] = set()
    for message in editor.received:
        if "result" in message and "sessionId" in message["result"]:
            known.add(message["result"]["sessionId"])
        elif "params" in message:
            assert message["params"]["sessionId"] in known
            assert message["params"]["sessionId"] == message["params"]["update"]["content"]["text"]
    assert known == set(ids)


async def test_an_agent_may_name_a_session_while_it_is_opened_and_not_later() -> None:
    sessions: list[AgentSession] = []

    async def name(session: AgentSession) -> None:
        session.id = "mine"
        await session.say("hello")
        sessions.append(session)

    async with playing(opened_by(name)) as editor:
        assert await editor.open() == "mine"
        await editor.until("hello")
        assert editor.received[-1]["params"]["sessionId"] == "mine"
        with pytest.raises(LocalProtocolError, match="it cannot change"):
            sessions[0].id = "other"


async def test_a_session_knows_its_place_and_the_answer_has_its_choices() -> None:
    seen: list[AgentSession] = []

    async def give(session: AgentSession) -> None:
        session.modes = v1.ModeState("a", [v1.Mode("a", "A")])
        session.config_options = [v1.BooleanConfig(id="b", name="B", current_value=True)]
        session.models = v1.ModelState([v1.SessionModel("m", "M")], "m")
        seen.append(session)

    server = v1.StdioServer("s", "/bin/s", [], [])
    async with playing(opened_by(give), FULL) as editor:
        asked = v1.NewSession("/w", [server], ["/more"])
        answer = await editor.connection.request(m.NEW_SESSION, asked)
        (session,) = seen
        assert (session.id, session.cwd, session.directories) == (answer.session_id, "/w", ("/more",))
        assert session.mcp_servers == (server,)
        assert (answer.modes, answer.config_options, answer.models) == (
            session.modes,
            session.config_options,
            session.models,
        )


@pytest.mark.parametrize("method", [*OPENING, "session/load"])
async def test_a_hook_that_refuses_opens_nothing_and_silences_what_it_left_running(method: str) -> None:
    kept: list[AgentSession] = []

    async def refuse(session: AgentSession) -> None:
        kept.append(session)
        raise RequestError(Code.RESOURCE_NOT_FOUND, "Resource not found", "no such session")

    opening: dict[str, Callable[[Editor], Awaitable[Any]]] = {
        **OPENING,
        "session/load": lambda it: it.connection.request(m.LOAD_SESSION, v1.LoadSession("old", "/w", [])),
    }
    async with playing(opened_by(refuse)) as editor:
        with pytest.raises(RequestRefused, match="no such session"):
            await opening[method](editor)
        with pytest.raises(LocalProtocolError, match="the session is closed"):
            _ = kept[0].say("anybody?")
        with pytest.raises(RequestRefused) as refusal:
            await editor.prompt(kept[0].id)
        assert refusal.value.code == Code.RESOURCE_NOT_FOUND


async def test_an_update_with_no_json_form_costs_itself_and_not_the_others() -> None:
    async def speak(session: AgentSession) -> None:
        await session.say("one")
        await session.update(v1.ToolCall("c", "x", raw_input=object()))
        await session.say("two")

    async with playing(opened_by(speak)) as editor:
        await editor.open()
        await editor.until("two")
        assert editor.order == ["answer:initialize", "answer:session/new", "one", "two"]


async def test_a_cancelled_request_to_open_a_session_opens_nothing() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def for_ever(session: AgentSession) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with playing(opened_by(for_ever)) as editor:
        asking = asyncio.create_task(editor.open())
        await begun.wait()
        asking.cancel()
        await ended.wait()
        await editor.until("error:session/new")
        assert editor.received[-1]["error"]["code"] == Code.REQUEST_CANCELLED


async def test_what_a_session_watches_is_everything_that_leaves() -> None:
    seen: list[v1.Update] = []

    async def watch(session: AgentSession) -> None:
        watch_updates(session, seen.append)
        await session.say("one")
        await session.think("two")

    async with playing(opened_by(watch)) as editor:
        await editor.open()
        await editor.until("agent_thought_chunk")
    assert seen == [v1.AgentMessageChunk(v1.TextBlock("one")), v1.AgentThoughtChunk(v1.TextBlock("two"))]
