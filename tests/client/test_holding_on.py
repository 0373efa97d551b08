"""Agents that number their calls anew, forget sessions in the middle, and keep sending while a turn is cancelled."""

import asyncio
import sys
from pathlib import Path

import pytest

from antiphon import sync
from antiphon.client.connect import connect
from antiphon.client.link import Retry
from antiphon.client.terminals import Terminals
from antiphon.errors import Code, LocalProtocolError, RequestError, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.client.talker import END, Talker, chunk

OPTIONS = [
    v1.PermissionOption("y", "Yes", v1.PermissionOptionKind.ALLOW_ONCE),
    v1.PermissionOption("n", "No", v1.PermissionOptionKind.REJECT_ONCE),
]
CANCELLED = v1.PromptResult(v1.StopReason.CANCELLED)


def asking(session_id: str, call: str = "call_1") -> v1.RequestPermission:
    return v1.RequestPermission(session_id, v1.ToolCallPatch(call), OPTIONS)


async def test_a_question_is_not_answered_with_the_facts_of_an_earlier_call_of_that_id() -> None:
    asked: list[v1.ToolCallPatch] = []
    talker = Talker(v1.ToolCall("call_1", "Read notes.txt", v1.ToolKind.READ, v1.ToolStatus.COMPLETED))

    def permission(request: v1.RequestPermission) -> bool:
        asked.append(request.tool_call)
        return False

    async with asyncio.timeout(10), talker.connect(permission=permission) as agent:
        session = await agent.new_session("/")
        await session.prompt("read")
        assert talker.connection is not None
        await talker.connection.request(m.REQUEST_PERMISSION, asking(session.id))
    assert [(call.title, call.kind, call.status) for call in asked] == [(v1.UNSET, v1.UNSET, v1.ToolStatus.PENDING)]


async def test_a_prompt_is_not_sent_again_once_the_agent_asked_for_anything() -> None:
    talker = Talker()

    async def prompt(request: v1.Prompt) -> v1.PromptResult:
        talker.prompts.append(request.prompt)
        assert talker.connection is not None
        await talker.connection.request(m.REQUEST_PERMISSION, asking(request.session_id))
        raise RequestError(Code.SESSION_EXPIRED, "Session expired")

    talker.router.on_request(m.PROMPT, prompt)
    async with asyncio.timeout(10), talker.connect(retry=Retry((0, 0))) as agent:
        session = await agent.new_session("/")
        with pytest.raises(RequestRefused, match="expired"):
            await session.prompt("once")
    assert len(talker.prompts) == 1


async def test_what_an_agent_sends_after_a_cancel_reaches_a_consumer_that_still_reads() -> None:
    talker, cancelled = Talker(), asyncio.Event()
    talker.router.on_notice(m.CANCEL, lambda _: cancelled.set())

    async def prompt(request: v1.Prompt) -> v1.PromptResult:
        await talker.send(request.session_id, chunk("before"))
        await cancelled.wait()
        for number in range(10):
            await talker.send(request.session_id, chunk(f" {number}"))
            await asyncio.sleep(0)  # each in a turn of the loop of its own
        return CANCELLED

    talker.router.on_request(m.PROMPT, prompt)
    async with asyncio.timeout(10), talker.connect() as agent:
        session = await agent.new_session("/")
        turn, seen, begun = session.prompt("go"), list[v1.Update](), asyncio.Event()

        async def draw() -> None:
            async for update in turn:
                seen.append(update)
                begun.set()

        drawing = asyncio.create_task(draw())
        await begun.wait()
        assert await turn.cancel() == CANCELLED
        await drawing
    assert seen == [chunk("before"), *(chunk(f" {number}") for number in range(10))]


async def test_the_first_question_of_the_next_turn_is_asked_though_the_last_one_was_cancelled() -> None:
    talker, cancelled, second = Talker(), asyncio.Event(), asyncio.Event()
    asked: list[str] = []
    talker.router.on_notice(m.CANCEL, lambda _: cancelled.set())

    async def prompt(request: v1.Prompt) -> v1.PromptResult:
        talker.prompts.append(request.prompt)
        if len(talker.prompts) == 1:
            await talker.send(request.session_id, chunk("one"))
            await cancelled.wait()
            await second.wait()
            return CANCELLED
        second.set()
        assert talker.connection is not None
        # In one breath with the answer of the first turn, which leaves when its handler next runs.
        answer = await talker.connection.request(m.REQUEST_PERMISSION, asking(request.session_id))
        asked.append(str(answer.outcome))
        return END

    talker.router.on_request(m.PROMPT, prompt)
    async with asyncio.timeout(10), talker.connect(permission=lambda _: True) as agent:
        session = await agent.new_session("/")
        async with session.prompt("one") as turn:
            await anext(turn)
            leaving = asyncio.create_task(turn.cancel())
            await cancelled.wait()
            second.set()
            await leaving
        await session.prompt("two")
    assert asked == [str(v1.Selected("y"))]


async def test_terminals_are_not_shared_between_connections() -> None:
    terminals = Terminals()
    async with asyncio.timeout(10), Talker().connect(terminals=terminals):
        with pytest.raises(LocalProtocolError, match="its own"):
            async with Talker().connect(terminals=terminals):
                pass
    async with Talker().connect(terminals=terminals):
        pass


def test_a_handler_of_updates_that_asks_the_agent_is_refused_and_not_stuck(tmp_path: Path) -> None:
    failures: list[Exception] = []
    with sync.connect("demo", env={"ANTIPHON_STATE_DIR": str(tmp_path)}) as agent:

        def on_update(_: v1.Update) -> None:
            try:
                agent.new_session(tmp_path)
            except Exception as error:
                failures.append(error)

        session = agent.new_session(tmp_path, on_update=on_update)
        session.set_mode("plan")  # the settings that change with it are sent after the response
        with session.prompt("/echo hello") as turn:
            assert turn.text() == "hello"
        assert list(agent.list_sessions())
    assert failures and all(isinstance(error, LocalProtocolError) for error in failures)


async def test_the_demo_does_not_run_what_lies_in_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "msgspec.py").write_text("open('ran', 'w').close()\n", encoding="utf-8")
    env = {"ANTIPHON_STATE_DIR": str(tmp_path / "state"), "PATH": str(Path(sys.executable).parent)}
    async with asyncio.timeout(30), connect("demo", cwd=tmp_path, env=env) as agent:
        session = await agent.new_session()
        assert await session.prompt("/echo hello").text() == "hello"
    assert not (tmp_path / "ran").exists()
