"""Questions of a CLI that wait for the user: side by side, and each can be cancelled."""

import asyncio
import gc
from collections.abc import Hashable

import pytest

from antiphon.engines.questions import QuestionTasks
from tests.waits import idle


class Questions:
    """Questions with an event for the answer of each, and a log of what became of them."""

    def __init__(self) -> None:
        self.pending = QuestionTasks()
        self.answers: dict[Hashable, asyncio.Event] = {}
        self.log: list[str] = []

    def ask(self, key: Hashable, name: str) -> None:
        self.answers[name] = asyncio.Event()
        self.pending.begin(key, self._ask(name))

    async def _ask(self, name: str) -> None:
        try:
            await self.answers[name].wait()
        except asyncio.CancelledError:
            self.log.append(f"{name} withdrawn")
            raise
        self.log.append(f"{name} answered")


@pytest.fixture
async def questions() -> Questions:
    return Questions()


async def test_several_are_open_at_once_and_each_gets_its_own_answer(questions: Questions) -> None:
    for name in "abc":
        questions.ask(name, name)
    await idle()
    assert len(questions.pending) == 3
    for name in "cab":
        questions.answers[name].set()
        await idle()
    assert questions.log == ["c answered", "a answered", "b answered"] and len(questions.pending) == 0


async def test_one_question_is_cancelled_and_the_others_stay(questions: Questions) -> None:
    for name in "ab":
        questions.ask(name, name)
    await idle()
    questions.pending.cancel("a")
    questions.pending.cancel("nobody asked this")
    await idle()
    assert questions.log == ["a withdrawn"] and len(questions.pending) == 1
    questions.answers["b"].set()
    await idle()
    assert questions.log == ["a withdrawn", "b answered"]


async def test_questions_of_one_process_are_cancelled_together_and_then_all(questions: Questions) -> None:
    for key in ((1, "a"), (2, "b"), (1, "c")):
        questions.ask(key, key[1])
    await idle()
    questions.pending.cancel_all(lambda key: isinstance(key, tuple) and key[0] == 1)
    await idle()
    assert questions.log == ["a withdrawn", "c withdrawn"] and len(questions.pending) == 1
    questions.pending.cancel_all()
    await idle()
    assert questions.log[-1] == "b withdrawn" and len(questions.pending) == 0


async def test_a_question_that_is_asked_again_by_the_same_key_can_still_be_cancelled(questions: Questions) -> None:
    questions.ask("key", "first")
    await idle()
    questions.pending.cancel("key")
    questions.ask("key", "second")  # before the first one knows of it
    await idle()
    assert questions.log == ["first withdrawn"] and len(questions.pending) == 1
    questions.pending.cancel("key")
    await idle()
    assert questions.log[-1] == "second withdrawn" and len(questions.pending) == 0


async def test_a_question_that_is_cancelled_before_it_was_asked_never_is(questions: Questions) -> None:
    questions.ask("a", "a")
    questions.pending.cancel("a")
    await idle()
    assert questions.log == [] and len(questions.pending) == 0


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
