"""Any order of prompts, cancels and withdrawals: one answer each, one turn at a time, nothing of a turn after its answer."""

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.agent.turn import AgentTurn
from antiphon.errors import RequestRefused
from tests.agent.editor import Editor, only_prompt, playing

# What the client does, step by step; what a handler does when it is at work, and when it is cancelled.
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("prompt"), st.integers(0, 3), st.sampled_from(["leave", "swallow", "fail", "linger"])),
        st.tuples(st.just("cancel"), st.just(0), st.just("")),
        st.tuples(st.just("withdraw"), st.integers(0, 9), st.just("")),
        st.tuples(st.just("pause"), st.integers(1, 8), st.just("")),
    ),
    max_size=25,
)


class Handler:
    """Says its number as it goes, and never finishes by itself if it is to take more than two steps."""

    def __init__(self) -> None:
        self.at_work = 0
        self.most = 0

    async def prompt(self, turn: AgentTurn) -> None:
        number, length, manner = turn.text.split()
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        try:
            await self.work(turn, number, int(length))
        except asyncio.CancelledError:
            if manner == "linger":
                for _ in range(4):
                    await asyncio.sleep(0)
                    await turn.say(f"{number} cleans")
            if manner == "fail":
                raise KeyError(number) from None
            if manner != "swallow":
                raise
        finally:
            self.at_work -= 1

    async def work(self, turn: AgentTurn, number: str, length: int) -> None:
        async with turn.tool(number):
            for _ in range(length):
                await turn.say(f"{number} works")
                await asyncio.sleep(0)
            if length == 3:
                await asyncio.Event().wait()


async def act(editor: Editor, session: str, steps: list[tuple[str, int, str]]) -> list["asyncio.Task[Any]"]:
    asked: list[asyncio.Task[Any]] = []
    for what, number, manner in steps:
        if what == "prompt":
            asked.append(editor.prompt(session, f"{len(asked)} {number} {manner}"))
        elif what == "cancel":
            editor.cancel(session)
        elif what == "withdraw" and number < len(asked):
            asked[number].cancel()
        else:
            for _ in range(number):
                await asyncio.sleep(0)
    return asked


def check(editor: Editor) -> None:
    """Each turn's updates in one piece, none after its answer, every tool call ended, every question answered once."""
    current, over, calls = "", set[str](), dict[str, str]()
    for message in editor.received:
        if message.get("method") != "session/update":
            continue
        update = message["params"]["update"]
        if update["sessionUpdate"].startswith("tool_call"):
            calls[update["toolCallId"]] = update.get("status", "pending")
        number = update.get("title") or (update["content"]["text"].split()[0] if "content" in update else current)
        if number != current:
            assert number not in over, editor.order
            over.add(current)
            current = number
    assert set(calls.values()) <= {"completed", "failed"}
    answered = [message["id"] for message in editor.received if "method" not in message]
    assert len(answered) == len(set(answered)) == len(editor._asked)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(steps=STEPS)
async def test_every_prompt_is_answered_once_and_turns_do_not_mix(
    steps: list[tuple[str, int, str]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    handler = Handler()
    async with playing(only_prompt(handler.prompt)) as editor:
        session = await editor.open()
        asked = await act(editor, session, steps)
        results: list[Any] = []
        while len(results) < len(asked):  # those that never end by themselves are cancelled until all are through
            editor.cancel(session)
            done, _ = await asyncio.wait(asked, timeout=0.05) if asked else (set(), None)
            results = list(done)
        await editor.until(lambda: len(editor._asked) == sum("method" not in each for each in editor.received))
        for each in asked:
            assert each.cancelled() or each.exception() is None or isinstance(each.exception(), RequestRefused)
            assert not each.cancelled() or each.cancelling()
        check(editor)
    assert handler.most <= 1 and handler.at_work == 0
