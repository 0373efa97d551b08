"""Prompts of one session: one at a time, in order, each answered once, and nothing sent in a turn after its answer."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from antiphon.agent import prompts as turns_module
from antiphon.agent.agent import Agent
from antiphon.agent.turn import AgentTurn
from antiphon.errors import Code, RequestError, RequestRefused, TurnOver
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import FULL, only_prompt, playing
from tests.rows import each_row

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome


@each_row(
    ("returned", "expected"),
    [
        (None, v1.PromptResult(v1.StopReason.END_TURN)),
        (v1.StopReason.REFUSAL, v1.PromptResult(v1.StopReason.REFUSAL)),
        (v1.StopReason.MAX_TOKENS, v1.PromptResult(v1.StopReason.MAX_TOKENS)),
        (v1.PromptResult(v1.StopReason.MAX_TURN_REQUESTS), v1.PromptResult(v1.StopReason.MAX_TURN_REQUESTS)),
    ],
)
@each_row("form", ["def", "async def"])
async def test_what_the_handler_returns_is_why_the_turn_ended(returned: "Outcome", expected: object, form: str) -> None:
    async def later(_: AgentTurn) -> "Outcome":
        return returned

    async with playing(only_prompt(later if form == "async def" else lambda _: returned)) as editor:
        assert await editor.turn() == expected


async def test_a_handler_that_returns_something_else_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    async with playing(only_prompt(lambda _: "done")) as editor:
        with pytest.raises(RequestRefused) as refusal:
            await editor.turn()
        assert refusal.value.code == Code.INTERNAL_ERROR
    assert "`prompt` returned str, not a StopReason" in caplog.text


async def test_a_handler_that_fails_is_an_error_and_the_session_lives_on(caplog: pytest.LogCaptureFixture) -> None:
    async def prompt(turn: AgentTurn) -> None:
        if turn.text == "fail":
            raise KeyError("secret")
        if turn.text == "refuse":
            raise RequestError(-32050, "No", "not today")

    async with playing(only_prompt(prompt)) as editor:
        session = await editor.open()
        with pytest.raises(RequestRefused) as failure:
            await editor.prompt(session, "fail")
        assert (failure.value.code, failure.value.data) == (Code.INTERNAL_ERROR, None)
        with pytest.raises(RequestRefused) as refusal:
            await editor.prompt(session, "refuse")
        assert (refusal.value.code, refusal.value.data) == (-32050, "not today")
        assert (await editor.prompt(session, "go")).stop_reason == v1.StopReason.END_TURN


async def test_an_agent_without_a_prompt_hook_is_an_error() -> None:
    async with playing(Agent("bare")) as editor:
        with pytest.raises(RequestRefused) as refusal:
            await editor.turn()
        assert refusal.value.code == Code.METHOD_NOT_FOUND


async def test_a_second_prompt_waits_for_the_first_and_answers_come_in_order() -> None:
    gates = {word: asyncio.Event() for word in "abc"}
    running: list[str] = []

    async def prompt(turn: AgentTurn) -> None:
        running.append(turn.text)
        await turn.say(f"{turn.text} begins")
        await gates[turn.text].wait()
        await turn.say(f"{turn.text} ends")

    async with playing(only_prompt(prompt)) as editor:
        session = await editor.open()
        asked = [editor.prompt(session, word) for word in "abc"]
        await editor.until("a begins")
        gates["c"].set()
        gates["b"].set()
        for _ in range(20):
            await asyncio.sleep(0)
        assert running == ["a"]
        gates["a"].set()
        await asyncio.gather(*asked)
        steps = ("{} begins", "{} ends", "answer:session/prompt")
        assert editor.order[2:] == [step.format(word) for word in "abc" for step in steps]


async def test_sessions_do_not_wait_for_each_other() -> None:
    gate = asyncio.Event()

    async def prompt(turn: AgentTurn) -> None:
        if turn.text == "slow":
            await turn.say("slow begins")
            await gate.wait()

    async with playing(only_prompt(prompt)) as editor:
        first, second = await editor.open(), await editor.open()
        slow = editor.prompt(first, "slow")
        await editor.until("slow begins")
        await editor.prompt(second, "quick")
        assert not slow.done()
        gate.set()
        await slow


async def test_a_failure_lets_the_next_one_begin() -> None:
    async def prompt(turn: AgentTurn) -> None:
        await asyncio.sleep(0)
        if turn.text == "a":
            raise RequestError(-32050, "No")

    async with playing(only_prompt(prompt)) as editor:
        session = await editor.open()
        results = await asyncio.gather(*[editor.prompt(session, word) for word in "ab"], return_exceptions=True)
        assert isinstance(results[0], RequestRefused) and isinstance(results[1], v1.PromptResult)


async def test_a_line_that_is_too_long_is_refused_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_module, "MAX_WAITING", 2)

    async def prompt(turn: AgentTurn) -> None:
        await asyncio.Event().wait()

    async with playing(only_prompt(prompt)) as editor:
        session = await editor.open()
        asked = [editor.prompt(session) for _ in range(3)]
        with pytest.raises(RequestRefused, match="2 prompts wait in this session already") as refusal:
            await editor.prompt(session)
        assert refusal.value.code == Code.INVALID_REQUEST
        editor.cancel(session)
        assert {(await each).stop_reason for each in asked} == {v1.StopReason.CANCELLED}


VERBS: dict[str, Callable[[AgentTurn], Any]] = {
    "say": lambda turn: turn.say("x"),
    "say content": lambda turn: turn.say(v1.TextBlock("x")),
    "think": lambda turn: turn.think("x"),
    "think content": lambda turn: turn.think(v1.TextBlock("x")),
    "plan": lambda turn: turn.plan("x"),
    "usage": lambda turn: turn.usage(1, 2),
    "update": lambda turn: turn.update(v1.Plan([])),
    "tool": lambda turn: turn.tool("x").__aenter__(),
    "ask_permission": lambda turn: turn.ask_permission(v1.ToolCallPatch("c")),
    "ask": lambda turn: turn.ask("x", name=v1.StringProperty()),
    "choose": lambda turn: turn.choose("x", ["a"]),
    "visit": lambda turn: turn.visit("x", "https://example.com"),
    "read": lambda turn: turn.read("x"),
    "write": lambda turn: turn.write("x", ""),
    "run": lambda turn: turn.run(["x"]).__aenter__(),
    "request": lambda turn: turn.request(m.READ_TEXT_FILE, v1.ReadTextFile("s", "/x")),
}


@each_row("verb", VERBS)
@each_row("capable", [True, False], ids=["able", "plain"])
async def test_no_verb_works_after_the_answer(verb: str, capable: bool) -> None:
    if not capable and verb in ("ask", "visit"):
        capable = True  # without the capability they say so first
    kept: list[AgentTurn] = []
    async with playing(only_prompt(kept.append), FULL if capable else None) as editor:
        await editor.turn()
        received = len(editor.received)
        with pytest.raises(TurnOver, match="this turn has been answered\nhint: updates between turns go through"):
            await VERBS[verb](kept[0])
        await editor.open()
        assert len(editor.received) == received + 1


async def test_a_tool_call_that_outlives_its_turn_cannot_be_shown_on() -> None:
    kept: list[Any] = []

    async def prompt(turn: AgentTurn) -> None:
        kept.append(await turn.tool("x").__aenter__())

    async with playing(only_prompt(prompt)) as editor:
        await editor.turn()
        call = kept[0]
        for say in (call.start, call.permitted, *(partial(verb, "x") for verb in (call.show, call.at, call.rename))):
            with pytest.raises(TurnOver):
                await say()
        await kept[0].__aexit__(ValueError, ValueError("x"), None)  # quietly: the error on its way says more


async def test_updates_between_turns_go_through_the_session() -> None:
    kept: list[AgentTurn] = []
    async with playing(only_prompt(kept.append)) as editor:
        await editor.turn()
        await kept[0].session.say("by the way")
        await kept[0].session.entitle("Title")
        await editor.until("session_info_update")
        assert editor.order[-3:] == ["answer:session/prompt", "by the way", "session_info_update"]


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/run ls -l", ("run", "ls -l")),
        ("  /help  ", ("help", "")),
        ("/a\nb c", ("a", "b c")),
        ("hello /run", None),
        ("/ run", None),
        ("/", None),
        ("", None),
    ],
)
async def test_a_slash_command_is_the_first_word(text: str, command: tuple[str, str] | None) -> None:
    kept: list[AgentTurn] = []
    async with playing(only_prompt(kept.append)) as editor:
        await editor.prompt(await editor.open(), text, v1.ResourceLink("n", "file:///f"))
    assert kept[0].command == command
    assert kept[0].text == text and len(kept[0].prompt) == 2


async def test_a_prompt_that_has_to_wait_is_reported_with_the_number_before_it() -> None:
    class Saying(Agent):
        async def prompt(self, turn: AgentTurn) -> None:
            if turn.text == "first":
                await two_wait.wait()

        async def waits(self, turn: AgentTurn, before: int) -> None:
            expected.append((turn.text, before))
            if len(expected) == 2:
                two_wait.set()

    expected: list[tuple[str, int]] = []
    two_wait = asyncio.Event()
    async with playing(Saying()) as editor:
        session = await editor.open()
        await asyncio.gather(*(editor.prompt(session, text) for text in ("first", "second", "third")))
    assert expected == [("second", 1), ("third", 2)]
