"""Questions of a program that wait for the user: side by side, and each can be withdrawn."""

import asyncio
import gc
from collections.abc import Hashable

import pytest

from antiphon.engines.questions import QuestionTasks
from tests.waits import idle


class Desk:
    """Where the user answers, and what became of each question."""

    def __init__(self) -> None:
        self.pending = QuestionTasks()
        self.answers: dict[Hashable, asyncio.Event] = {}
        self.book: list[str] = []

    def ask(self, key: Hashable, name: str) -> None:
        self.answers[name] = asyncio.Event()
        self.pending.begin(key, self._ask(name))

    async def _ask(self, name: str) -> None:
        try:
            await self.answers[name].wait()
        except asyncio.CancelledError:
            self.book.append(f"{name} withdrawn")
            raise
        self.book.append(f"{name} answered")


@pytest.fixture
async def desk() -> Desk:
    return Desk()


async def test_several_are_open_at_once_and_each_gets_its_own_answer(desk: Desk) -> None:
    for name in "abc":
        desk.ask(name, name)
    await idle()
    assert len(desk.pending) == 3
    for name in "cab":
        desk.answers[name].set()
        await idle()
    assert desk.book == ["c answered", "a answered", "b answered"] and len(desk.pending) == 0


async def test_one_is_withdrawn_and_the_others_stay(desk: Desk) -> None:
    for name in "ab":
        desk.ask(name, name)
    await idle()
    desk.pending.withdraw("a")
    desk.pending.withdraw("nobody asked this")
    await idle()
    assert desk.book == ["a withdrawn"] and len(desk.pending) == 1
    desk.answers["b"].set()
    await idle()
    assert desk.book == ["a withdrawn", "b answered"]


async def test_those_of_one_process_are_withdrawn_together_and_then_all(desk: Desk) -> None:
    for key in ((1, "a"), (2, "b"), (1, "c")):
        desk.ask(key, key[1])
    await idle()
    desk.pending.withdraw_all(lambda key: isinstance(key, tuple) and key[0] == 1)
    await idle()
    assert desk.book == ["a withdrawn", "c withdrawn"] and len(desk.pending) == 1
    desk.pending.withdraw_all()
    await idle()
    assert desk.book[-1] == "b withdrawn" and len(desk.pending) == 0


async def test_one_that_is_asked_again_by_the_same_key_can_still_be_withdrawn(desk: Desk) -> None:
    desk.ask("key", "first")
    await idle()
    desk.pending.withdraw("key")
    desk.ask("key", "second")  # before the first one has heard of it
    await idle()
    assert desk.book == ["first withdrawn"] and len(desk.pending) == 1
    desk.pending.withdraw("key")
    await idle()
    assert desk.book[-1] == "second withdrawn" and len(desk.pending) == 0


async def test_one_that_is_withdrawn_before_it_was_asked_never_is(desk: Desk) -> None:
    desk.ask("a", "a")
    desk.pending.withdraw("a")
    await idle()
    assert desk.book == [] and len(desk.pending) == 0


async def test_a_question_that_fails_is_over_and_disturbs_no_other() -> None:
    troubles: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, trouble: troubles.append(trouble))

    async def wrong() -> None:
        raise KeyError("no such user")

    pending = QuestionTasks()
    pending.begin("a", wrong())
    await idle()
    gc.collect()
    assert len(pending) == 0 and troubles == []
