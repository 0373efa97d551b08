"""Turns over memory: read, awaited, left, refused, slow."""

import asyncio
import random
from typing import Any

import pytest

from antiphon.connection.router import Then
from antiphon.errors import ConnectionClosed, LocalProtocolError, NotSupported, RequestRefused, TurnLost
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.transcript.transcript import Transcript, fold
from tests.client.talker import END, Talker, chunk

IMAGE = v1.ImageBlock("aGk=", "image/png")
AUDIO = v1.AudioBlock("aGk=", "audio/wav")
RESOURCE = v1.EmbeddedResource(v1.TextResource("text", "file:///a"))
LINK = v1.ResourceLink("a", "file:///a")


async def test_a_turn_is_an_iterator_of_updates_that_ends_with_the_result() -> None:
    updates = (chunk("a"), v1.AgentThoughtChunk(v1.TextBlock("hm")), v1.ToolCall("t", "T"), chunk("b"))
    talker = Talker(*updates)
    async with talker.connect() as agent:
        session = await agent.new_session()
        turn = session.prompt("hi")
        with pytest.raises(LocalProtocolError, match="not over"):
            turn.result  # noqa: B018 - it raises
        assert tuple([update async for update in turn]) == updates
        assert turn.result == END and await turn == END
        assert [update async for update in turn] == []
        assert session.transcript.plain() == fold([v1.UserMessageChunk(v1.TextBlock("hi")), *updates]).plain()


def _seen(transcript: Transcript) -> list[tuple[object, ...]]:
    fields = ("key", "message_id", "blocks", "id", "title", "status")
    return [(type(entry), *(getattr(entry, field, None) for field in fields)) for entry in transcript.entries]


@pytest.mark.parametrize("seed", range(5))
async def test_the_transcript_follows_every_update_as_it_is_read_whatever_the_kinds_and_their_order(seed: int) -> None:
    noted = v1.TextBlock("noted ", annotations=v1.Annotations(priority=1.0))
    kinds: list[v1.Update] = [
        *(chunk("plain "),) * 6, chunk("one ", "1"), chunk("two ", "2"), v1.AgentMessageChunk(noted), v1.AgentMessageChunk(LINK),
        v1.AgentThoughtChunk(v1.TextBlock("hm ")), v1.UserMessageChunk(v1.TextBlock("hi")), v1.ToolCall("t", "T"),
        v1.ToolCallUpdate("t", status=v1.ToolStatus.COMPLETED), v1.CurrentModeUpdate("ask"),
    ]  # fmt: skip
    updates = random.Random(seed).choices(kinds, k=150)
    async with Talker(*updates).connect() as agent:
        session = await agent.new_session()
        alike = Transcript()
        alike.add_prompt([v1.TextBlock("hi")])
        turn = session.prompt("hi")
        async for update in turn:
            alike.apply(update)
            assert _seen(session.transcript) == _seen(alike)
        said = [
            each.content.text
            for each in updates
            if isinstance(each, v1.AgentMessageChunk) and isinstance(each.content, v1.TextBlock)
        ]
        assert sorted("".join(said).split()) == sorted((await turn.text()).split())


async def test_the_text_of_a_turn_is_the_agents_messages_alone() -> None:
    thought = v1.AgentThoughtChunk(v1.TextBlock("hm"))
    talker = Talker(chunk("one ", "1"), thought, chunk("message", "1"), chunk("another", "2"), v1.ToolCall("t", "T"))
    async with talker.connect() as agent:
        session = await agent.new_session()
        assert await session.prompt("hi").text() == "one message\n\nanother"


async def test_a_prompt_is_text_a_block_or_blocks() -> None:
    talker = Talker()
    async with talker.connect() as agent:
        session = await agent.new_session()
        await session.prompt("hi")
        await session.prompt(LINK)
        await session.prompt([v1.TextBlock("see"), LINK])
    assert talker.prompts == [[v1.TextBlock("hi")], [LINK], [v1.TextBlock("see"), LINK]]


@pytest.mark.parametrize(("block", "name"), [(IMAGE, "image"), (AUDIO, "audio"), (RESOURCE, "embeddedContext")])
async def test_content_that_the_agent_did_not_advertise_is_not_sent(block: v1.ContentBlock, name: str) -> None:
    talker = Talker()
    async with talker.connect() as agent:
        session = await agent.new_session()
        with pytest.raises(NotSupported, match=f"promptCapabilities.{name}"):
            await session.prompt([v1.TextBlock("see"), block])
    assert talker.prompts == []


async def test_content_that_it_takes_is_sent() -> None:
    talker = Talker()
    takes = v1.PromptCapabilities(image=True, audio=True, embedded_context=True)
    async with talker.connect(v1.AgentCapabilities(prompt_capabilities=takes)) as agent:
        session = await agent.new_session()
        await session.prompt([IMAGE, AUDIO, RESOURCE])
    assert talker.prompts == [[IMAGE, AUDIO, RESOURCE]]


async def test_a_refused_turn_raises_the_refusal_and_the_session_goes_on() -> None:
    talker = Talker(chunk("fine"))
    async with talker.connect() as agent:
        session = await agent.new_session()
        talker.router.on_request(m.PROMPT, lambda _: 1 / 0)  # type: ignore[arg-type, return-value]  # a fault on purpose
        turn = session.prompt("hi")
        with pytest.raises(RequestRefused, match="Internal error"):
            await turn
        with pytest.raises(RequestRefused):
            await turn
        talker.router.on_request(m.PROMPT, talker.prompt)
        assert await session.prompt("hi").text() == "fine"


async def test_the_settings_follow_the_updates_of_a_turn() -> None:
    option = v1.BooleanConfig(id="x", name="X", current_value=True)
    talker = Talker(
        v1.CurrentModeUpdate("plan"),
        v1.ConfigOptionUpdate([option]),
        v1.AvailableCommandsUpdate([v1.Command("go", "Go")]),
        v1.SessionInfoUpdate(title="A talk"),
        v1.SessionInfoUpdate(updated_at="today"),
        v1.CurrentModelUpdate("big"),
    )
    async with talker.connect() as agent:
        session = await agent.new_session()
        assert (session.modes, session.config_options, session.commands, session.title) == (None, None, None, None)
        await session.prompt("hi")
        assert session.modes == v1.ModeState("plan", [])
        assert session.config_options == [option]
        assert session.commands == [v1.Command("go", "Go")]
        assert session.title == "A talk"
        assert session.models == v1.ModelState([], "big")


async def test_updates_after_the_response_are_followed_after_those_before_it() -> None:
    talker = Talker()
    received: list[v1.Update] = []

    async def prompt(asked: v1.Prompt) -> Then[v1.PromptResult]:
        def later() -> None:
            assert talker.connection is not None
            talker.connection.post(m.SESSION_UPDATE, v1.SessionUpdate(asked.session_id, v1.CurrentModeUpdate("late")))

        await talker.send(asked.session_id, v1.CurrentModeUpdate("early"))
        return Then(END, later)

    talker.router.on_request(m.PROMPT, prompt)
    async with talker.connect() as agent:
        session = await agent.new_session(on_update=received.append)
        turn = session.prompt("hi")
        # All of it is here before the turn is read: an answer is never overtaken.
        await agent.connection.request(m.NEW_SESSION, v1.NewSession("/", []))
        assert [update async for update in turn] == [v1.CurrentModeUpdate("early")]
        assert session.modes == v1.ModeState("late", []) and received == [v1.CurrentModeUpdate("late")]


async def test_a_failing_handler_of_updates_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    talker = Talker(chunk("fine"))
    async with talker.connect() as agent:
        session = await agent.new_session(on_update=lambda _: 1 / 0)  # type: ignore[arg-type]  # on purpose
        await talker.send("s", chunk("by the way"))
        await agent.new_session()  # it is here when this is answered
        assert await session.prompt("hi").text() == "fine"
    assert "ZeroDivisionError" in caplog.text


async def test_two_turns_of_one_session_are_each_answered() -> None:
    talker = Talker(chunk("x"))
    async with talker.connect() as agent:
        session = await agent.new_session()
        first, second = session.prompt("1"), session.prompt("2")
        assert [await first, await second] == [END, END]
    assert len(talker.prompts) == 2


async def test_a_slow_consumer_loses_nothing() -> None:
    talker = Talker(*[chunk(str(number)) for number in range(2000)])
    async with talker.connect() as agent:
        session = await agent.new_session()
        texts = []
        async for update in session.prompt("hi"):
            assert isinstance(update, v1.AgentMessageChunk) and isinstance(update.content, v1.TextBlock)
            texts.append(update.content.text)
            if len(texts) % 100 == 0:
                await agent.connection.request(m.NEW_SESSION, v1.NewSession("/", []))
        assert texts == [str(number) for number in range(2000)]


async def test_a_timeout_around_a_turn_cancels_it() -> None:
    talker = Talker()
    cancelled = asyncio.Event()
    talker.router.on_notice(m.CANCEL, lambda _: cancelled.set())

    async def prompt(_: v1.Prompt) -> v1.PromptResult:
        await cancelled.wait()
        return v1.PromptResult(v1.StopReason.CANCELLED)

    talker.router.on_request(m.PROMPT, prompt)
    async with talker.connect() as agent:
        session = await agent.new_session()
        turn = session.prompt("hi")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await turn
        assert (await turn.cancel()).stop_reason == v1.StopReason.CANCELLED
    assert cancelled.is_set()


async def test_someone_else_may_cancel_a_turn_that_is_being_read() -> None:
    talker = Talker()
    cancelled = asyncio.Event()
    talker.router.on_notice(m.CANCEL, lambda _: cancelled.set())

    async def prompt(asked: v1.Prompt) -> v1.PromptResult:
        await talker.send(asked.session_id, chunk("working"))
        await cancelled.wait()
        await talker.send(asked.session_id, chunk(" stopped"))
        return v1.PromptResult(v1.StopReason.CANCELLED)

    talker.router.on_request(m.PROMPT, prompt)
    async with talker.connect() as agent:
        session = await agent.new_session()
        turn = session.prompt("hi")
        working = asyncio.Event()

        async def read() -> None:
            async for _ in turn:
                working.set()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(read())
            await working.wait()
            result = await turn.cancel()
        assert result.stop_reason == v1.StopReason.CANCELLED
        assert session.transcript.plain() == "> hi\nworking stopped"


async def test_a_given_transport_that_is_lost_loses_the_turn_and_is_not_made_again() -> None:
    talker = Talker(chunk("so far"))

    async def prompt(_: v1.Prompt) -> v1.PromptResult:
        assert talker.connection is not None
        await talker.connection.transport.close()
        return END

    talker.router.on_request(m.PROMPT, prompt)
    async with talker.connect() as agent:
        session = await agent.new_session()
        with pytest.raises(TurnLost):
            await session.prompt("hi")
        with pytest.raises(ConnectionClosed, match="connect anew"):
            await session.prompt("hi")
        with pytest.raises(ConnectionClosed):
            await agent.new_session()


async def test_leaving_the_connection_ends_its_turns() -> None:
    talker = Talker()

    async def prompt(_: v1.Prompt) -> v1.PromptResult:
        await asyncio.Event().wait()
        return END

    talker.router.on_request(m.PROMPT, prompt)
    async with talker.connect() as agent:
        session = await agent.new_session()
        turn = session.prompt("hi")
    with pytest.raises(TurnLost):
        await turn
    with pytest.raises(ConnectionClosed):
        await agent.new_session()


async def test_an_agent_over_a_transport_that_ignores_a_cancelled_turn_is_left() -> None:
    talker = Talker()
    begun = asyncio.Event()

    async def prompt(_: v1.Prompt) -> v1.PromptResult:
        begun.set()
        await asyncio.Event().wait()
        return END

    talker.router.on_request(m.PROMPT, prompt)
    async with talker.connect(cancel_grace=0.01) as agent:
        session = await agent.new_session()
        turn = session.prompt("hi")
        await begun.wait()
        assert (await turn.cancel()).stop_reason == v1.StopReason.CANCELLED
        assert agent.connection.closed


async def test_the_text_of_a_turn_is_there_however_it_was_read() -> None:
    talker = Talker(chunk("call "), chunk("and "), chunk("response"))
    async with asyncio.timeout(10), talker.connect() as agent:
        session = await agent.new_session("/")
        for read in (0, 1, 3):
            turn = session.prompt("go")
            for _ in range(read):
                await anext(turn)
            assert await turn.text() == await turn.text() == "call and response"


@pytest.mark.parametrize("said", [5, None, {"type": "text", "text": "x"}, [5], [{"type": "text"}]])
async def test_a_prompt_that_is_none_is_refused_with_a_hint(said: Any) -> None:
    async with asyncio.timeout(10), Talker().connect() as agent:
        session = await agent.new_session("/")
        with pytest.raises(LocalProtocolError, match="hint: "):
            await session.prompt(said)
        assert (await session.prompt(["two", v1.TextBlock("parts")])) == END
