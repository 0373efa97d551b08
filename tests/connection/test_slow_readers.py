"""Slow readers: bounded memory, no loss, no deadlock."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from antiphon.connection.connection import Connection
from antiphon.connection.outbox import ANSWERS_LIMIT
from antiphon.connection.router import Router
from antiphon.connection.updates import SessionSender
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.content import TextBlock
from antiphon.protocol.v1.session import (
    Cancel,
    ListSessions,
    ListSessionsResult,
    LoadSession,
    Prompt,
    PromptResult,
    SessionUpdate,
    StopReason,
)
from antiphon.protocol.v1.updates import AgentMessageChunk
from antiphon.protocol.v1.version import V1
from antiphon.transports.base import OUTPUT_HIGH
from antiphon.transports.memory import memory_pair
from antiphon.transports.pipes import PipeTransport
from tests.connection.ends import END_TURN, against_raw, answer, chunk, text_of
from tests.limits import limit
from tests.waits import idle, until

LIMIT = 20_000


@asynccontextmanager
async def agent_and_client(*, over_pipes: bool = False) -> AsyncIterator[tuple[Connection, Connection]]:
    if over_pipes:
        (near_read, far_write), (far_read, near_write) = os.pipe(), os.pipe()
        near, far = PipeTransport(near_read, near_write), PipeTransport(far_read, far_write)
    else:
        near, far = memory_pair()  # type: ignore[assignment]
    agent = Connection(far, Router(), version=V1)
    async with agent, Connection(near, tolerant=True, inbox_limit=LIMIT, version=V1) as client:
        yield agent, client


def add_numbers_prompt(agent: Connection, count: int) -> None:
    """Give the agent a prompt handler that says `count` numbers."""

    async def prompt(asked: Prompt) -> PromptResult:
        for n in range(count):
            await agent.notify(
                m.SESSION_UPDATE, SessionUpdate(asked.session_id, AgentMessageChunk(TextBlock(f"{n} " * 20)))
            )
        return PromptResult(StopReason.END_TURN)

    agent.router.on_request(m.PROMPT, prompt)


async def paused(connection: Connection) -> None:
    """Wait until a connection has stopped reading."""
    await until(lambda: connection.inbox.paused)


@pytest.mark.parametrize("over_pipes", [False, True], ids=["memory", "pipes"])
async def test_a_slow_consumer_slows_the_wire_and_loses_nothing(over_pipes: bool) -> None:
    async with asyncio.timeout(limit()), agent_and_client(over_pipes=over_pipes) as (agent, client):
        add_numbers_prompt(agent, 5000)
        turn = client.stream(m.PROMPT, Prompt("s", []), "s")
        seen = 0
        highest = 0
        async for update in turn:
            assert text_of(update).startswith(f"{seen} ")
            seen += 1
            highest = max(highest, client.inbox.buffered)
            if seen % 500 == 0 and seen < 4500:  # there is more to come than the inbox takes
                await paused(client)
        assert seen == 5000 and turn.result.stop_reason == StopReason.END_TURN
        assert LIMIT < highest < LIMIT + 4 * OUTPUT_HIGH  # it was full, and bounded
        assert client.inbox.buffered == 0


@pytest.mark.parametrize("over_pipes", [False, True], ids=["memory", "pipes"])
async def test_a_consumer_may_ask_the_agent_from_its_own_loop_with_its_buffer_full(over_pipes: bool) -> None:
    async with asyncio.timeout(limit()), agent_and_client(over_pipes=over_pipes) as (agent, client):
        add_numbers_prompt(agent, 3000)
        agent.router.on_request(m.LIST_SESSIONS, lambda _: ListSessionsResult([]))
        turn = client.stream(m.PROMPT, Prompt("s", []), "s")
        seen = 0
        async for _ in turn:
            seen += 1
            if seen in (1, 500):
                await paused(client)
                assert (await client.request(m.LIST_SESSIONS, ListSessions())).sessions == []
        assert seen == 3000


async def test_one_slow_session_does_not_starve_another_up_to_the_limit() -> None:
    async with asyncio.timeout(limit()), against_raw(inbox_limit=LIMIT) as (client, agent):
        slow = client.stream(m.PROMPT, Prompt("slow", []), "slow")
        quick = client.stream(m.PROMPT, Prompt("quick", []), "quick")
        ids = {(message := await agent.receive())["params"]["sessionId"]: message["id"] for _ in range(2)}
        for n in range(50):  # the slow one is not read
            await agent.send(chunk(f"{n}", "slow"), chunk(f"{n}", "quick"))
            assert text_of(await anext(quick)) == f"{n}"
        await agent.send(answer(ids["quick"], END_TURN), answer(ids["slow"], END_TURN))
        assert (await quick).stop_reason == StopReason.END_TURN
        assert [text_of(update) async for update in slow] == [f"{n}" for n in range(50)]


async def test_awaiting_the_answer_alone_never_deadlocks() -> None:
    async with asyncio.timeout(limit()), agent_and_client() as (agent, client):
        add_numbers_prompt(agent, 3000)
        received: list[SessionUpdate] = []
        client.router.on_notice(m.SESSION_UPDATE, received.append)
        assert (await client.request(m.PROMPT, Prompt("s", []))).stop_reason == StopReason.END_TURN
        assert len(received) == 3000
        assert (await client.stream(m.PROMPT, Prompt("s", []), "s")).stop_reason == StopReason.END_TURN


async def test_leaving_a_turn_early_cancels_it_and_frees_its_buffer() -> None:
    async with asyncio.timeout(limit()), against_raw(inbox_limit=LIMIT) as (client, agent):

        async def leave() -> None:
            async with client.stream(m.PROMPT, Prompt("s", [])) as turn:
                async for _ in turn:
                    break

        leaving = asyncio.create_task(leave())
        id = (await agent.receive())["id"]
        await agent.send(*(chunk(f"{n}" * 50) for n in range(500)))
        assert await agent.receive() == {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}}
        assert not leaving.done()  # it waits for the answer, so that nothing of this turn gets into the next
        await agent.send(chunk("late"), answer(id, '{"stopReason":"cancelled"}'))
        await leaving
        assert client.inbox.buffered == 0 and not client.inbox.paused


@pytest.mark.parametrize("read", [1, 2, 3])
async def test_a_turn_that_is_answered_and_forgotten_before_its_end_is_read_frees_its_buffer(read: int) -> None:
    async with asyncio.timeout(limit()), against_raw(inbox_limit=LIMIT) as (client, agent):
        turn = client.stream(m.PROMPT, Prompt("s", []))
        id = (await agent.receive())["id"]
        await agent.send(*(chunk(f"{n}") for n in range(3)), answer(id, END_TURN))
        assert [text_of(await anext(turn)) for _ in range(read)] == ["0", "1", "2"][:read]
        assert turn.answered and [text_of(each) for each in turn.waiting] == ["0", "1", "2"][read:]
        assert client.inbox.buffered
        del turn
        await until(lambda: client.inbox.buffered == 0)


@pytest.mark.parametrize("how", ["break", "timeout", "forgotten"])
async def test_a_turn_left_in_any_way_neither_leaks_into_the_next_nor_holds_up_the_wire(how: str) -> None:
    async with asyncio.timeout(limit()), against_raw(inbox_limit=LIMIT) as (client, agent):
        turn = client.stream(m.PROMPT, Prompt("s", []))
        id = (await agent.receive())["id"]
        await agent.send(chunk("first"))
        if how == "timeout":
            with suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    async for _ in turn:
                        pass
        elif how == "break":
            async for _ in turn:
                break
        del turn
        assert (await agent.receive())["method"] == "session/cancel"
        following = client.stream(m.PROMPT, Prompt("s", []))
        next_id = (await agent.receive())["id"]
        await agent.send(*(chunk("x" * 1000) for _ in range(100)), answer(id, '{"stopReason":"cancelled"}'))
        await agent.send(chunk("second"), answer(next_id, END_TURN))
        assert [text_of(update) async for update in following] == ["second"]
        assert client.inbox.buffered == 0


async def test_an_agent_that_ignores_the_cancel_does_not_keep_the_session_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("antiphon.connection.connection.CANCEL_GRACE", 0.05)
    async with asyncio.timeout(limit()), against_raw() as (client, agent):
        turn = client.stream(m.PROMPT, Prompt("s", []))
        id = (await agent.receive())["id"]
        await turn.close()
        assert (await agent.receive())["method"] == "session/cancel"
        assert (await agent.receive())["params"] == {"requestId": id}
        following = client.stream(m.PROMPT, Prompt("s", []))
        next_id = (await agent.receive())["id"]
        await agent.send(chunk("heard"), answer(next_id, END_TURN))
        assert [text_of(update) async for update in following] == ["heard"]


async def test_leaving_before_the_first_step_cancels_all_the_same() -> None:
    async with asyncio.timeout(limit()), against_raw() as (client, agent):
        stream = client.stream(m.LOAD_SESSION, LoadSession("s", "/", []))
        await stream.close()
        id = (await agent.receive())["id"]
        assert (await agent.receive())["params"] == {"requestId": id}
        assert not client.inbox.streams


async def test_a_consumer_may_send_the_agent_much_from_its_own_loop_with_its_buffer_full() -> None:
    async with asyncio.timeout(limit()), agent_and_client(over_pipes=True) as (agent, client):
        add_numbers_prompt(agent, 3000)
        agent.router.on_notice(m.CANCEL, lambda _: None)
        turn = client.stream(m.PROMPT, Prompt("s", []))
        seen = 0
        async for _ in turn:
            seen += 1
            if seen == 2:
                for _ in range(3000):
                    await client.notify(m.CANCEL, Cancel("x" * 100))
        assert seen == 3000


async def test_a_peer_that_asks_and_does_not_read_the_answers_is_not_listened_to() -> None:
    router = Router()
    router.on_request(m.LIST_SESSIONS, lambda _: ListSessionsResult([], "c" * 100_000))
    async with asyncio.timeout(limit()), against_raw(router) as (connection, peer):
        for n in range(50):
            await peer.send(*(b'{"id":"%d/%d","method":"session/list"}' % (n, each) for each in range(10)))
        await paused(connection)
        await idle()
        assert connection.inbox.paused and connection.transport.unsent < 2 * ANSWERS_LIMIT
        assert len({(await peer.receive())["id"] for _ in range(500)}) == 500


async def test_two_turns_of_one_session_queue_up() -> None:
    async with asyncio.timeout(limit()), against_raw() as (client, agent):
        first = client.stream(m.PROMPT, Prompt("s", []), "s")
        second = client.stream(m.PROMPT, Prompt("s", []), "s")
        one, two = (await agent.receive())["id"], (await agent.receive())["id"]
        await agent.send(chunk("a"), answer(one, END_TURN))
        assert [text_of(update) async for update in first] == ["a"]
        await agent.send(chunk("b"), answer(two, END_TURN))
        assert [text_of(update) async for update in second] == ["b"]


async def test_a_sender_that_never_waits_receives_a_cancellation() -> None:
    """The loop turns every 64 KiB of output, so a peer's word gets in."""
    async with asyncio.timeout(limit()), agent_and_client(over_pipes=True) as (agent, client):
        begun, cancelled = asyncio.Event(), asyncio.Event()
        agent.router.on_notice(m.CANCEL, lambda _: cancelled.set())

        async def prompt(asked: Prompt) -> PromptResult:
            begun.set()
            update = SessionUpdate(asked.session_id, AgentMessageChunk(TextBlock("x" * 100)))
            while not cancelled.is_set():
                await agent.notify(m.SESSION_UPDATE, update)
            return PromptResult(StopReason.CANCELLED)

        agent.router.on_request(m.PROMPT, prompt)
        client.router.on_notice(m.SESSION_UPDATE, lambda _: None)
        asking = asyncio.create_task(client.request(m.PROMPT, Prompt("s", [])))
        await begun.wait()
        client.post(m.CANCEL, m.CANCEL.decode_params(b'{"sessionId":"s"}'))
        assert (await asking).stop_reason == StopReason.CANCELLED


async def test_a_peer_that_floods_us_with_questions_is_slowed() -> None:
    gate = asyncio.Event()

    async def wait(asked: ListSessions) -> ListSessionsResult:
        await gate.wait()
        return ListSessionsResult([])

    router = Router()
    router.on_request(m.LIST_SESSIONS, wait)
    async with asyncio.timeout(limit()), against_raw(router) as (connection, peer):
        for n in range(5):
            await peer.send(*(b'{"id":"%d/%d","method":"session/list"}' % (n, each) for each in range(500)))
        await paused(connection)
        gate.set()
        assert len({(await peer.receive())["id"] for _ in range(2500)}) == 2500


async def test_many_senders_at_a_full_pipe_all_get_their_turn() -> None:
    async with asyncio.timeout(limit()), agent_and_client(over_pipes=True) as (agent, client):
        received: list[str] = []
        client.router.on_notice(m.SESSION_UPDATE, lambda update: received.append(text_of(update)))

        async def talk(n: int) -> None:
            sender = agent.sender(f"s{n}")
            for each in range(50):
                await sender.say(f"{n}/{each} " + "x" * 500)

        await asyncio.gather(*(talk(n) for n in range(50)))
        agent.router.on_request(m.LIST_SESSIONS, lambda _: ListSessionsResult([]))
        await client.request(m.LIST_SESSIONS, ListSessions())  # behind everything that was sent
        assert len(received) == 2500
        for n in range(50):
            mine = [text.split()[0] for text in received if text.startswith(f"{n}/")]
            assert mine == [f"{n}/{each}" for each in range(50)]


async def test_a_sender_that_is_cancelled_while_it_waits_does_not_hold_up_the_others() -> None:
    (near_read, far_write), (far_read, near_write) = os.pipe(), os.pipe()
    agent = Connection(PipeTransport(far_read, far_write), version=V1)
    reader = PipeTransport(near_read, near_write)
    async with asyncio.timeout(limit()), agent:
        sender = agent.sender("s")
        senders = [asyncio.create_task(_talk_until_full(sender)) for _ in range(5)]
        await idle()
        assert not any(sender.done() for sender in senders)  # nothing reads
        senders[0].cancel()
        while not all(sender.done() for sender in senders):
            assert await reader.receive() is not None
        assert [sender.cancelled() for sender in senders] == [True, False, False, False, False]
    await reader.close()


async def _talk_until_full(sender: SessionSender) -> None:
    for _ in range(300):
        await sender.say("x" * 1000)


async def test_a_sender_sends_what_notify_would_send() -> None:
    async with asyncio.timeout(limit()), against_raw() as (agent, client):
        update = SessionUpdate('odd "id"', AgentMessageChunk(TextBlock('say "hi"\n é')))
        await agent.notify(m.SESSION_UPDATE, update)
        first = await client.receive()
        sender = agent.sender('odd "id"')
        await sender.say('say "hi"\n é')
        assert await client.receive() == first
        await sender.update(update.update)
        assert await client.receive() == first
        await sender.think("hm")
        assert (await client.receive())["params"]["update"]["sessionUpdate"] == "agent_thought_chunk"
