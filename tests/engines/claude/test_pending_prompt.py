"""A prompt ends when all that was sent in it is answered, and no trouble is hidden by what came after it."""

import asyncio
from typing import cast

import pytest

from antiphon.engines.claude.driver import ClaudeProcess, ClaudePrompt
from antiphon.engines.events import TurnEnd, TurnFailure
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1

PLAIN = TurnEnd(stop_reason=v1.StopReason.END_TURN)
REFUSED = TurnEnd(stop_reason=v1.StopReason.REFUSAL)
OVERLOADED = TurnEnd(error=TurnFailure("overloaded", Code.INTERNAL_ERROR, "too many singers"))


def waiting(*added: str) -> ClaudePrompt:
    """For the prompt `a` and what was added to it."""
    made = ClaudePrompt(cast("ClaudeProcess", None), "a")
    for id in added:
        made.add(id)
    return made


async def test_a_prompt_ends_with_its_answer() -> None:
    one = waiting()
    one.answered(["a"], PLAIN)
    assert await one.end is PLAIN


async def test_it_ends_only_when_what_was_added_is_answered_too() -> None:
    one = waiting("b", "c")
    for id in ("b", "a"):
        one.answered([id], PLAIN)
        assert not one.end.done()
    one.answered(["c"], PLAIN)
    assert await one.end is PLAIN


async def test_one_answer_may_be_for_several() -> None:
    one = waiting("b")
    one.answered(["a", "b", "of somebody else"], PLAIN)
    assert await one.end is PLAIN


async def test_an_answer_that_names_no_prompt_is_for_all() -> None:
    one = waiting("b")
    one.answered([], REFUSED)
    assert await one.end is REFUSED


@pytest.mark.parametrize("trouble", [REFUSED, OVERLOADED], ids=["refused", "overloaded"])
@pytest.mark.parametrize("first", [True, False])
async def test_trouble_with_one_of_them_is_the_end_of_all(trouble: TurnEnd, first: bool) -> None:
    one = waiting("b")
    one.answered(["a"], trouble if first else PLAIN)
    one.answered(["b"], PLAIN if first else trouble)
    assert await one.end is trouble


async def test_of_several_troubles_the_first_one_counts() -> None:
    one = waiting("b")
    one.answered(["a"], REFUSED)
    one.answered(["b"], OVERLOADED)
    assert await one.end is REFUSED


async def test_a_prompt_that_was_cancelled_before_it_began_has_no_end() -> None:
    one = waiting()
    one.answered(["a"], None)
    assert await one.end is None


async def test_an_addition_that_is_cancelled_does_not_hide_how_the_prompt_ended() -> None:
    for order in (("a", "b"), ("b", "a")):
        one = waiting("b")
        for id in order:
            one.answered([id], OVERLOADED if id == "a" else None)
        assert await one.end is OVERLOADED


async def test_it_keeps_its_messages_until_they_are_answered() -> None:
    one = waiting("b")
    assert one.owns("a") and one.owns("b") and not one.owns("c")
    one.answered(["b"], PLAIN)
    assert one.owns("a") and not one.owns("b")
    one.answered(["a"], PLAIN)


async def test_a_prompt_ends_once_however_often_the_end_is_reported() -> None:
    error = RequestError(Code.INTERNAL_ERROR, "it died")
    ended, failed = waiting(), waiting()
    ended.answered(["a"], PLAIN)
    ended.fail(error)
    assert await ended.end is PLAIN
    failed.fail(error)
    failed.fail(RequestError(Code.INTERNAL_ERROR, "and again"))
    failed.answered(["a"], PLAIN)
    with pytest.raises(RequestError) as caught:
        await asyncio.shield(failed.end)
    assert caught.value is error
