"""A prompt that waits for the end of its turn, whatever is known first."""

import asyncio
from typing import cast

import pytest

from antiphon.engines.codex.prompt import CodexPrompt
from antiphon.engines.codex.server import CodexServer
from antiphon.engines.events import TurnEnd
from antiphon.errors import ConnectionClosed
from antiphon.protocol import v1

DONE = TurnEnd(v1.StopReason.END_TURN)
OTHER = TurnEnd(v1.StopReason.MAX_TOKENS)


async def test_the_end_of_its_turn_ends_it_and_the_end_of_another_does_not() -> None:
    waiting = CodexPrompt(cast("CodexServer", None))
    waiting.is_turn("ours")
    waiting.ended(["theirs"], OTHER)
    assert not waiting.end.done()
    waiting.ended(["ours"], DONE)
    assert await waiting.end is DONE


async def test_an_end_that_comes_before_the_turn_is_known_counts() -> None:
    waiting = CodexPrompt(cast("CodexServer", None))
    waiting.ended(["ours"], DONE)
    waiting.is_turn("ours")
    assert await waiting.end is DONE


async def test_the_next_turn_is_the_one_that_starts_before_or_after_it_is_expected() -> None:
    for before in (True, False):
        waiting = CodexPrompt(cast("CodexServer", None))
        if before:
            waiting.started("next")
        waiting.is_next_turn()
        waiting.started("next")
        assert await waiting.id() == "next"


async def test_without_a_turn_all_is_done() -> None:
    waiting = CodexPrompt(cast("CodexServer", None))
    waiting.is_turn(None)
    assert await waiting.end == TurnEnd()


async def test_a_caller_that_waits_for_the_turn_of_a_failed_prompt_learns_that_there_is_none() -> None:
    waiting = CodexPrompt(cast("CodexServer", None))
    asking = asyncio.ensure_future(waiting.id())
    waiting.fail(ConnectionClosed("gone"))
    assert await asking is None
    with pytest.raises(ConnectionClosed):
        await waiting.end


async def test_a_second_end_changes_nothing() -> None:
    waiting = CodexPrompt(cast("CodexServer", None))
    waiting.is_turn("ours")
    waiting.ended(["ours"], DONE)
    waiting.ended(["ours"], OTHER)
    waiting.fail(ConnectionClosed("gone"))
    assert await waiting.end is DONE
