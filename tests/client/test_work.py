"""What an agent does, as its client sees it: states, background work, one cancelled call and ids of prompts, in both versions."""

import asyncio
from typing import Any

import pytest

from antiphon import sync
from antiphon.agent.agent import Agent
from antiphon.agent.turn import AgentTurn
from antiphon.client.agent import ConnectedAgent
from antiphon.client.connect import connect
from antiphon.client.handlers import allow_once
from antiphon.client.session import ClientSession
from antiphon.client.turn import ClientTurn
from antiphon.client.updates import EARLY_REPORT_SIZE, EARLY_REPORTS, STATES_KEPT
from antiphon.connection.router import Router
from antiphon.errors import LocalProtocolError, NotSupported, RequestTimeout
from antiphon.protocol import v1
from antiphon.protocol.extension import MAX_WORK, OpenWork, WorkState
from antiphon.protocol.v1 import methods as m
from tests.agent.test_work import Worker
from tests.client.agents import connected
from tests.client.raw_agent import Json, RawAgent, raw_agent
from tests.limits import limit

SOON = 0.02
LONG = limit()
ALLOW = v1.PermissionOptionKind.ALLOW_ONCE


async def reached(session: ClientSession, state: str) -> None:
    """Wait for a state, by its word."""
    async for each in session.states():
        if each.value == state:
            return
    raise AssertionError(f"it never was {state}")


async def settled(agent: ConnectedAgent) -> None:
    """Wait until all that the agent sent before has been read."""
    await agent.request_extension("_test/ping")


def work_in(session: ClientSession) -> tuple[OpenWork, ...]:
    """The background work, which is reported."""
    assert session.background is not None
    return session.background


def is_unreported(session: "ClientSession | sync.SyncSession") -> bool:
    return session.background is None


def ids(*turns: ClientTurn) -> list[str | None]:
    return [turn.message_id for turn in turns]


# States.


async def test_the_state_is_what_an_agent_of_version_2_reports() -> None:
    async with raw_agent() as (agent, client):
        session = await client.new_session("/")
        assert client.version == 2 and session.state == "idle"
        for state in ("running", "requires_action", "running", "idle"):
            await agent.state(state)
            await settled(client)
            assert session.state == state


async def test_a_state_that_is_not_known_is_neither_idle_nor_the_one_before() -> None:
    async with raw_agent() as (agent, client):
        session = await client.new_session("/")
        await agent.state("dreaming")
        await settled(client)
        assert session.state.value == "dreaming" and not session.state.known
        assert session.state not in tuple(WorkState)
        with pytest.raises(RequestTimeout) as caught:
            await session.wait_idle(timeout=SOON)
        assert caught.value.timeout == SOON
        await agent.state("idle")
        await session.wait_idle(timeout=LONG)


async def test_a_prompt_runs_from_the_moment_it_is_sent_until_it_is_answered() -> None:
    async with raw_agent() as (agent, client):
        session = await client.new_session("/")
        turn = session.prompt("hi")
        assert session.state == "running"  # though the agent has not reported it yet
        waiting = asyncio.ensure_future(session.wait_idle())
        await agent.until("session/prompt")
        await agent.state("running")
        await agent.say("hello")
        await agent.state("idle", stopReason="end_turn")
        assert (await turn).stop_reason is v1.StopReason.END_TURN and session.state == "idle"
        await waiting


async def test_every_state_is_iterated_over_and_the_first_is_the_current_one() -> None:
    async with raw_agent() as (agent, client):
        session = await client.new_session("/")
        seen: list[str] = []

        async def watch() -> None:
            seen.extend([state.value async for state in session.states()])

        watching = asyncio.ensure_future(watch())
        await asyncio.sleep(0)
        for state in ("running", "running", "requires_action", "x", "idle", "idle"):
            await agent.state(state)
        await agent.state("idle", background=[{"type": "terminal", "terminalId": "t"}])
        await settled(client)
        await session.close()
        await watching
        assert seen == ["idle", "running", "requires_action", "x", "idle", "idle", "idle"]  # with work, and without


async def test_a_slow_consumer_of_states_gets_the_latest() -> None:
    async with raw_agent() as (agent, client):
        session = await client.new_session("/")
        states = session.states()
        assert await anext(states) is WorkState.IDLE
        for number in range(3 * STATES_KEPT):
            await agent.state(f"busy {number}")
        await settled(client)
        found = [(await anext(states)).value for _ in range(STATES_KEPT)]
        assert found[-1] == f"busy {3 * STATES_KEPT - 1}"


async def test_a_state_that_comes_before_the_session_is_known_is_kept() -> None:
    async with raw_agent() as (agent, client):
        agent.early = [{"kind": "state_update", "state": "running", "background": []}]
        session = await client.new_session("/")
        assert session.state == "running" and work_in(session) == ()


async def test_an_agent_that_is_lost_does_nothing() -> None:
    async with raw_agent() as (agent, client):
        session = await client.new_session("/")
        await agent.state("running")
        await reached(session, "running")
        waiting = asyncio.ensure_future(session.wait_idle())
        await asyncio.sleep(0)
        await agent.transport.close()
        await waiting
        assert session.state == "idle"
        assert [state async for state in session.states()] == [WorkState.RUNNING]


async def test_what_the_agent_does_by_itself_is_cancelled_and_waited_for() -> None:
    async with raw_agent() as (agent, client):
        session = await client.new_session("/")
        await agent.state("running")
        await reached(session, "running")
        cancelling = asyncio.ensure_future(session.cancel())
        await agent.until("session/cancel")
        assert not cancelling.done()
        await agent.state("idle", stopReason="cancelled")
        await cancelling
        assert session.state == "idle"


# Background work, and what can be cancelled alone.


async def test_background_work_is_the_list_that_was_reported_last() -> None:
    async with raw_agent() as (agent, client):
        session = await client.new_session("/")
        assert is_unreported(session)
        items = [
            {"type": "tool_call", "toolCallId": "c"},
            {"type": "terminal", "terminalId": "t"},
            {"type": "_mine", "name": "n"},
        ]
        await agent.state("idle", background=items)
        await settled(client)
        assert work_in(session) == (OpenWork("tool_call", "c"), OpenWork("terminal", "t"), OpenWork("_mine", ""))
        await agent.state("idle", background=[])
        await settled(client)
        assert work_in(session) == ()


async def test_one_tool_call_is_cancelled_where_it_offers_that() -> None:
    async with raw_agent() as (agent, client):
        session = await client.new_session("/")
        await agent.update("tool_call_update", toolCallId="c", title="Build", capabilities={"cancel": {}})
        await agent.update("tool_call_update", toolCallId="d", title="Test")
        await settled(client)
        assert list(session.cancellable) == [OpenWork("tool_call", "c")]
        with pytest.raises(NotSupported, match="does not offer to cancel the tool call `d`") as caught:
            await session.cancel_tool_call("d")
        assert "session.cancellable" in str(caught.value)
        await session.cancel_tool_call("c")
        sent = await agent.until("tool_call/cancel")
        assert sent["params"] == {"sessionId": "s", "toolCallId": "c"}
        await agent.update("tool_call_update", toolCallId="c", status="cancelled")
        await settled(client)
        assert list(session.cancellable) == []
        with pytest.raises(NotSupported):
            await session.cancel_tool_call("c")
        assert len([each for each in agent.received if each.get("method") == "tool_call/cancel"]) == 1


@pytest.mark.parametrize("withdrawal", [{"capabilities": {}}, {"capabilities": None}, {"status": "completed"}], ids=str)
async def test_an_offer_ends_when_the_agent_takes_it_back_or_the_call_is_over(withdrawal: dict[str, Any]) -> None:
    async with raw_agent() as (agent, client):
        session = await client.new_session("/")
        await agent.update("tool_call_update", toolCallId="c", title="Build", capabilities={"cancel": {}})
        await agent.update("tool_call_update", toolCallId="c", title="Still building")
        await settled(client)
        assert session.cancellable
        await agent.update("tool_call_update", toolCallId="c", **withdrawal)
        await settled(client)
        assert not session.cancellable


async def test_a_terminal_is_cancelled_in_the_same_way() -> None:
    async with raw_agent() as (agent, client):
        session = await client.new_session("/")
        await agent.update("terminal_update", terminalId="t", command="make", capabilities={"cancel": {}})
        await settled(client)
        assert list(session.cancellable) == [OpenWork("terminal", "t")]
        await session.cancel_terminal("t")
        assert (await agent.until("terminal/cancel"))["params"]["terminalId"] == "t"
        await agent.update("terminal_update", terminalId="t", exitStatus={})
        await settled(client)
        assert not session.cancellable


async def test_a_cancellation_that_is_not_answered_fails_in_time() -> None:
    async with raw_agent() as (agent, client):
        agent.silent |= {"tool_call/cancel", "terminal/cancel"}
        session = await client.new_session("/")
        await agent.update("tool_call_update", toolCallId="c", title="Build", capabilities={"cancel": {}})
        await agent.update("terminal_update", terminalId="t", capabilities={"cancel": {}})
        await settled(client)
        with pytest.raises(RequestTimeout):
            await session.cancel_tool_call("c", timeout=SOON)
        with pytest.raises(RequestTimeout):
            await session.cancel_terminal("t", timeout=SOON)


async def test_a_closed_session_cancels_nothing() -> None:
    async with raw_agent() as (agent, client):
        session = await client.new_session("/")
        await agent.update("tool_call_update", toolCallId="c", title="Build", capabilities={"cancel": {}})
        await settled(client)
        await session.close()
        assert not session.cancellable and is_unreported(session)
        with pytest.raises(LocalProtocolError, match="closed"):
            await session.cancel_tool_call("c")


async def test_an_offer_is_known_when_the_update_with_it_is_read() -> None:
    async with raw_agent() as (agent, client):
        seen: list[tuple[type, bool]] = []

        def note(update: v1.Update) -> None:
            seen.append((type(update), bool(session.cancellable)))

        session = await client.new_session("/", on_update=note)
        await agent.update("tool_call_update", toolCallId="c", title="Build")
        await agent.update("tool_call_update", toolCallId="c", capabilities={"cancel": {}})
        await settled(client)
        assert seen == [(v1.ToolCall, False), (v1.ToolCallUpdate, True)]


# Ids of prompts.


async def test_a_prompt_has_the_id_of_its_message_once_it_is_inserted() -> None:
    async with raw_agent() as (agent, client):
        session = await client.new_session("/")
        first, second = session.prompt("one", meta={"mine": 1}), session.prompt("two")
        assert ids(first, second) == [None, None]
        sent = await agent.until("session/prompt")
        assert sent["params"]["_meta"] == {"mine": 1}  # and nothing of ours
        await settled(client)
        assert ids(first, second) == ["prompt 1", "prompt 2"]
        await agent.state("running")
        await agent.state("idle", stopReason="end_turn")
        await first
        await second
        assert "_meta" not in agent.received[-1]["params"] or agent.received[-1]["method"] != "session/prompt"


# Hostile agents.


async def test_hostile_reports_are_bounded_and_break_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with raw_agent() as (agent, client):
        session = await client.new_session("/")
        many = [{"type": "tool_call", "toolCallId": f"c{number}"} for number in range(3 * MAX_WORK)]
        await agent.state("idle", background=many)
        await settled(client)
        assert len(work_in(session)) == MAX_WORK
        for number in range(MAX_WORK + 10):
            await agent.update("tool_call_update", toolCallId=f"c{number}", title="x", capabilities={"cancel": {}})
        await settled(client)
        assert len(session.cancellable) == MAX_WORK
        odd: list[Json] = [{"state": 7}, {"state": None}, {}, {"state": "idle", "background": "all"}]
        odd += [{"background": [1]}, {"kind": "tool_call_update", "toolCallId": 7}]
        odd.append({"kind": "tool_call_update", "toolCallId": "q", "title": "x", "capabilities": [1]})
        for fields in odd:
            await agent.update(**{"kind": "state_update", **fields})
        await settled(client)
        assert session.state == "idle" and "q" not in [work.id for work in session.cancellable]
        for name in ("state_update", "tool_call_update", "user_message", "x"):  # the extension itself, from outside
            update: Json = {"sessionUpdate": name, "state": ["x"], "capabilities": {"cancel": {}}}
            params = {"sessionId": "s", "update": update}
            await agent.send(method="_antiphon/v2/session/update", params=params)
        inserted = {"sessionId": "other", "prompt": 1, "messageId": "m"}
        await agent.send(method="_antiphon/v2/session/prompt", params=inserted)
        await settled(client)
        assert session.state == "idle"
        agent.silent.add("session/new")
        opening = asyncio.ensure_future(client.new_session("/"))
        asked = await agent.until("session/new", 2)
        update = {"sessionUpdate": "state_update", "state": "x"}
        for number in range(3 * EARLY_REPORTS):
            early = {"sessionId": f"s{number}", "update": update}
            await agent.send(method="_antiphon/v2/session/update", params=early)
        large = {"sessionId": "large", "update": {**update, "_meta": "x" * EARLY_REPORT_SIZE}}
        await agent.send(method="_antiphon/v2/session/update", params=large)
        await settled(client)
        kept, last = client._sessions._early_reports, f"s{3 * EARLY_REPORTS - 1}"
        assert len(kept) == EARLY_REPORTS and kept[-1].session_id == last
        await agent.send(id=asked["id"], result={"sessionId": last})
        assert (await opening).state.value == "x" and not kept


# Agents of version 1.


async def test_with_an_agent_of_version_1_the_state_follows_our_requests() -> None:
    router, go = Router(), asyncio.Event()
    ask = v1.RequestPermission("s", v1.ToolCallPatch("c", title="Build"), [v1.PermissionOption("y", "Yes", ALLOW)])
    async with connected(router, permission=allow_once) as (agent, there):

        async def prompt(_: v1.Prompt) -> v1.PromptResult:
            await go.wait()
            await there.request(m.REQUEST_PERMISSION, ask)
            return v1.PromptResult(v1.StopReason.END_TURN)

        router.on_request(m.PROMPT, prompt)
        session = await agent.new_session("/")
        assert agent.version == 1 and session.state == "idle" and is_unreported(session)
        seen: list[str] = []

        async def watch() -> None:
            seen.extend([state.value async for state in session.states()])

        watching = asyncio.ensure_future(watch())
        await asyncio.sleep(0)
        turn = session.prompt("hi")
        with pytest.raises(NotSupported, match="speaks version 1 of ACP") as caught:
            await session.cancel_tool_call("c")
        assert "hint: `await turn.cancel()`" in str(caught.value)
        go.set()
        await session.wait_idle(timeout=LONG)
        await turn
        await session.close()
        await watching
        assert seen == ["idle", "running", "requires_action", "running", "idle"] and turn.message_id is None


async def test_nothing_of_the_extension_reaches_an_agent_of_version_1() -> None:
    frames: list[str] = []
    async with connected(Router()) as (agent, there):
        there.tap(lambda _, __, frame: frames.append(bytes(frame).decode()))
        there.router.on_request(m.PROMPT, lambda _: v1.PromptResult(v1.StopReason.END_TURN))
        session = await agent.new_session("/")
        await session.prompt("hi")
        await session.wait_idle()
    assert frames and not [frame for frame in frames if "version2" in frame or "_antiphon" in frame]


# Both SDKs together, in either version.


@pytest.mark.parametrize("versions", [(1,), (2,)], ids=str)
async def test_an_agent_and_a_client_that_are_written_once_speak_both_versions(versions: tuple[int, ...]) -> None:
    agent = Worker(versions=versions)
    async with asyncio.timeout(LONG), connect(agent, versions=versions) as connected_agent:
        session = await connected_agent.new_session("/")
        turn = session.prompt("call")
        async for update in turn:
            if isinstance(update, v1.AgentMessageChunk) and not agent.go.is_set():
                if session.cancellable:
                    await session.cancel_tool_call(session.cancellable[0].id)
                agent.go.set()
        assert turn.result.stop_reason is v1.StopReason.END_TURN
        assert (await turn.text()).split() == ["working", "and", "on"]
        (call,) = [entry for entry in session.transcript.entries if hasattr(entry, "status")]
        assert call.status is (v1.ToolStatus.COMPLETED if versions == (1,) else v1.ToolStatus.FAILED)
        assert (turn.message_id is None) == (versions == (1,))


def test_the_client_without_async_has_the_same() -> None:
    agent = Agent("counter")

    @agent.on
    async def prompt(turn: AgentTurn) -> None:
        async with turn.tool("Count") as call, call.cancellable():
            await turn.say("counting")
            await asyncio.Event().wait()

    with sync.connect(agent, versions=(2,)) as connected_agent:
        assert connected_agent.version == 2
        session = connected_agent.new_session("/")
        assert session.state == "idle" and is_unreported(session) and not session.cancellable
        turn = session.prompt("go")
        for update in turn:
            if isinstance(update, v1.AgentMessageChunk):
                assert session.state == "running"
                session.cancel_tool_call(session.cancellable[0].id)
        assert turn.message_id == "user-1"
        session.wait_idle(timeout=LONG)
        with pytest.raises(NotSupported):
            session.cancel_terminal("t")


async def test_an_agent_that_inserts_nothing_leaves_the_prompt_without_an_id() -> None:
    async with raw_agent() as (agent, client):
        agent.silent.add("session/prompt")
        session = await client.new_session("/")
        turn = session.prompt("hi")
        await agent.until("session/prompt")
        assert turn.message_id is None and isinstance(agent, RawAgent)
        request = agent.received[-1]["id"]
        await agent.send(id=request, error={"code": -32800, "message": "Request cancelled"})
        assert (await turn).stop_reason is v1.StopReason.CANCELLED
