"""Agents that hang, die, forget or take too long: nothing is stuck, nothing is sent twice, nothing is left behind."""

import asyncio
import logging
import os
from pathlib import Path

import pytest

from antiphon.client.link import Retry
from antiphon.errors import AuthRequired, ConnectionClosed, ProcessDied, RemoteProtocolError, RequestRefused, TurnLost
from antiphon.protocol import v1
from tests.client import deviations as d
from tests.client import troubles as t
from tests.client.agents import Scripted
from tests.client.script import Agent
from tests.limits import limit


async def test_an_agent_that_echoes_another_version_is_refused_with_both_versions_named(tmp_path: Path) -> None:
    with pytest.raises(RemoteProtocolError, match=r"version 99 of ACP; this client asked for version 1"):
        async with Scripted(t.EchoesVersion, tmp_path).connect():
            pass


async def test_an_agent_that_refuses_our_version_is_named(tmp_path: Path) -> None:
    with pytest.raises(RemoteProtocolError, match=r"does not support version 1 of ACP: "):
        async with Scripted(t.RefusesVersion, tmp_path).connect():
            pass


async def test_lines_that_are_not_protocol_are_skipped_and_kept(tmp_path: Path) -> None:
    async with asyncio.timeout(limit()), Scripted(t.Chatters, tmp_path).connect() as agent:
        session = await agent.new_session()
        assert await session.prompt("hi").text() == "hi"
        assert agent.connection.noise[0] == "[INFO] thinking …".encode()


async def test_what_follows_the_response_is_delivered_outside_of_the_turn(tmp_path: Path) -> None:
    received: asyncio.Queue[v1.Update] = asyncio.Queue()
    async with asyncio.timeout(limit()), Scripted(t.TalksOn, tmp_path).connect() as agent:
        session = await agent.new_session(on_update=received.put_nowait)
        assert await session.prompt("hi").text() == "hi"
        assert isinstance(await received.get(), v1.AgentMessageChunk)
        assert await received.get() == v1.CurrentModeUpdate("b")
        assert session.modes is not None and session.modes.current_mode_id == "b"
        assert [line for line in session.transcript.plain().splitlines() if line] == ["> hi", "hi", "by the way"]


# Cancelling.


@pytest.mark.parametrize("ending", ["cancelled", "error", "end_turn"])
async def test_a_cancelled_turn_ends_as_cancelled_however_the_agent_ends_it(tmp_path: Path, ending: str) -> None:
    script = Scripted(t.Cancellable, tmp_path)
    async with asyncio.timeout(limit()), script.connect() as agent:
        session = await agent.new_session()
        turn = session.prompt(ending)
        assert isinstance(await anext(turn), v1.ToolCall)
        assert (await turn.cancel()).stop_reason == v1.StopReason.CANCELLED
        assert turn.result.stop_reason == v1.StopReason.CANCELLED
        # What it sent after that is not lost.
        assert "failed" in session.transcript.plain()
        assert (await turn.cancel()) == turn.result
        second = session.prompt("cancelled")
        await anext(second)
        await session.cancel()
        assert second.result.stop_reason == v1.StopReason.CANCELLED
    assert script.received.count("session/cancel") == 2


async def test_an_agent_that_ignores_a_cancelled_turn_is_ended_and_started_again(tmp_path: Path) -> None:
    script = Scripted(t.IgnoresCancel, tmp_path)
    async with asyncio.timeout(limit()), script.connect(cancel_grace=0.1) as agent:
        session = await agent.new_session()
        turn = session.prompt("hi")
        await anext(turn)
        assert (await turn.cancel()).stop_reason == v1.StopReason.CANCELLED
        assert [update async for update in turn] == []
        assert await session.prompt("again").text() == "again"
    assert (
        script.received.count("started") == 2
        and "session/cancel" in script.received
        and "session/resume" in script.received
    )


async def test_cancelling_the_task_cancels_the_turn(tmp_path: Path) -> None:
    script = Scripted(t.Cancellable, tmp_path)
    async with asyncio.timeout(limit()), script.connect() as agent:
        session = await agent.new_session()
        working = asyncio.Event()

        async def consume() -> None:
            async for _ in session.prompt("hi"):
                working.set()

        task = asyncio.create_task(consume())
        await working.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await session.cancel()
        assert "failed" in session.transcript.plain()
    assert script.received.count("session/cancel") == 1


async def test_a_turn_left_by_break_is_cancelled(tmp_path: Path) -> None:
    script = Scripted(t.Cancellable, tmp_path)
    async with asyncio.timeout(limit()), script.connect() as agent:
        session = await agent.new_session()
        async for _ in session.prompt("hi"):
            break
        async with session.prompt("hi") as turn:
            await anext(turn)
        assert turn.result.stop_reason == v1.StopReason.CANCELLED
    assert script.received.count("session/cancel") == 2


async def test_open_questions_are_released_when_the_turn_is_cancelled_and_later_ones_not_asked(tmp_path: Path) -> None:
    script = Scripted(t.AsksForever, tmp_path)
    asked, stopped = asyncio.Event(), asyncio.Event()

    async def think(_: v1.RequestPermission) -> bool:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return True

    async with asyncio.timeout(limit()), script.connect(permission=think) as agent:
        session = await agent.new_session()
        turn = session.prompt("hi")
        await asked.wait()
        asked.clear()
        assert (await turn.cancel()).stop_reason == v1.StopReason.CANCELLED
        await stopped.wait()
        assert not asked.is_set()
    assert [line for line in script.received if line.startswith("outcome")] == ["outcome cancelled"] * 2


# Dying.


async def test_a_turn_whose_agent_dies_is_lost_and_the_session_goes_on(tmp_path: Path) -> None:
    script = Scripted(t.Dies, tmp_path)
    async with asyncio.timeout(limit()), script.connect() as agent:
        session = await agent.new_session()
        turn = session.prompt("hi")
        assert isinstance(await anext(turn), v1.AgentMessageChunk)
        with pytest.raises(TurnLost, match="out of luck"):
            await turn
        with pytest.raises(TurnLost):
            turn.result  # noqa: B018 - it raises
        [notice, said] = [update async for update in session.prompt("again")]
        assert isinstance(notice, v1.NoticeUpdate) and notice.title == "The session was loaded again"
        assert isinstance(said, v1.AgentMessageChunk)
        # What the agent replayed is not shown twice, but the settings follow.
        assert session.transcript.plain().count("> again") == 1
        assert session.modes is not None and session.modes.current_mode_id == "plan"
    assert script.received.count("session/prompt") == 2 and script.received.count("started") == 2


async def test_a_request_is_asked_again_when_the_agent_died_of_it(tmp_path: Path) -> None:
    script = Scripted(t.DiesOnNew, tmp_path)
    async with asyncio.timeout(limit()), script.connect(env={**os.environ, "DEATHS": "2"}) as agent:
        assert (await agent.new_session()).id == "s3.1"
    assert script.received.count("started") == 3


async def test_five_tries_are_enough(tmp_path: Path) -> None:
    script = Scripted(t.DiesOnNew, tmp_path)
    async with asyncio.timeout(limit()), script.connect(env={**os.environ, "DEATHS": "9"}) as agent:
        with pytest.raises(ProcessDied, match="not today"):
            await agent.new_session()
    assert script.received.count("session/new") == 5


async def test_without_retries_nothing_is_sent_again(tmp_path: Path) -> None:
    script = Scripted(t.DiesOnNew, tmp_path)
    async with asyncio.timeout(limit()), script.connect(retry=Retry(())) as agent:
        with pytest.raises(ProcessDied):
            await agent.new_session()
        assert (await agent.new_session()).id  # but the agent is started again when it is next needed
    assert script.received.count("session/new") == 2


def test_the_delays_are_one_two_four_and_eight_seconds() -> None:
    assert Retry().delays == (1, 2, 4, 8)


async def test_an_agent_that_dies_at_once_is_not_started_again(tmp_path: Path) -> None:
    script = Scripted(Agent, tmp_path)  # its module runs nothing, so it exits
    with pytest.raises(ConnectionClosed):
        async with script.connect():
            pass


# Forgetting, and taking too long.


async def test_an_expired_session_is_resumed_and_the_prompt_sent_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = Scripted(t.Expires, tmp_path)
    async with asyncio.timeout(limit()), script.connect() as agent:
        session = await agent.new_session()
        with caplog.at_level(logging.WARNING):
            [notice, said] = [update async for update in session.prompt("hi")]
        assert isinstance(notice, v1.NoticeUpdate) and notice.title == "The session was resumed"
        assert isinstance(said, v1.AgentMessageChunk)
        assert "The session was resumed" in caplog.text
        assert session.transcript.plain().count("> hi") == 1
    assert script.received.count("session/prompt") == 2


async def test_what_is_asked_of_an_expired_session_is_asked_again(tmp_path: Path) -> None:
    received: list[v1.Update] = []
    async with asyncio.timeout(limit()), Scripted(t.Expires, tmp_path).connect() as agent:
        session = await agent.new_session(on_update=received.append)
        await session.set_mode("b")
        assert session.modes is not None and session.modes.current_mode_id == "b"
        assert [type(update) for update in received] == [v1.NoticeUpdate]


async def test_a_prompt_that_has_begun_is_never_sent_again(tmp_path: Path) -> None:
    script = Scripted(t.ExpiresLate, tmp_path)
    async with asyncio.timeout(limit()), script.connect() as agent:
        session = await agent.new_session()
        with pytest.raises(RequestRefused, match="-32003"):
            await session.prompt("hi")
    assert script.received.count("session/prompt") == 1


async def test_a_request_that_timed_out_is_asked_again_but_a_prompt_is_not(tmp_path: Path) -> None:
    script = Scripted(t.TimesOut, tmp_path)
    async with asyncio.timeout(limit()), script.connect() as agent:
        session = await agent.new_session()
        with pytest.raises(RequestRefused, match="-32001"):
            await session.prompt("hi")
    assert script.received.count("session/new") == 3 and script.received.count("session/prompt") == 1


async def test_a_request_that_always_times_out_fails_after_five_tries(tmp_path: Path) -> None:
    script = Scripted(t.TimesOutForever, tmp_path)
    async with asyncio.timeout(limit()), script.connect() as agent:
        with pytest.raises(RequestRefused, match="-32001"):
            await agent.new_session()
    assert script.received.count("session/new") == 5


# Signing in.


async def test_a_request_that_needs_a_sign_in_is_not_asked_again_without_one(tmp_path: Path) -> None:
    script = Scripted(d.TerminalLogin, tmp_path)
    for no_handler in (None, lambda _: None):
        script.log.write_text("", encoding="utf-8")
        async with asyncio.timeout(limit()), script.connect(authenticate=no_handler) as agent:
            with pytest.raises(AuthRequired):
                await agent.new_session()
        assert script.received.count("session/new") == 1


@pytest.mark.parametrize("kind", [d.TerminalLogin, d.LateLogin])
async def test_after_a_sign_in_the_request_is_asked_once_more(tmp_path: Path, kind: type[Agent]) -> None:
    offered: list[int] = []

    async def choose(methods: list[v1.AuthMethod]) -> str:
        offered.append(len(methods))
        return "key"

    script = Scripted(kind, tmp_path)
    async with asyncio.timeout(limit()), script.connect(authenticate=choose) as agent:
        session = await agent.new_session()
        assert await session.prompt("hi").text() == "hi"
    assert offered == [3] and script.received.count("authenticate key") == 1


async def test_two_requests_that_need_a_sign_in_ask_the_user_once(tmp_path: Path) -> None:
    asked: list[int] = []

    def choose(methods: list[v1.AuthMethod]) -> str:
        asked.append(1)
        return "key"

    async with asyncio.timeout(limit()), Scripted(d.TerminalLogin, tmp_path).connect(authenticate=choose) as agent:
        await asyncio.gather(agent.new_session(), agent.new_session())
    assert len(asked) == 1


async def test_a_sign_in_that_fails_or_does_not_help_ends_the_request(tmp_path: Path) -> None:
    for kind, method, words in ((d.TerminalLogin, "tty", "no terminal here"), (d.NeverSignedIn, "key", "required")):
        script = Scripted(kind, tmp_path)
        script.log.write_text("", encoding="utf-8")
        async with asyncio.timeout(limit()), script.connect(authenticate=lambda _, id=method: id) as agent:
            with pytest.raises(AuthRequired, match=words):
                await agent.new_session()
        assert script.received.count("session/new") <= 2
