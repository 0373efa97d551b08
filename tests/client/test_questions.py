"""Questions to the user that are open when a turn is cancelled."""

import asyncio
import logging

import pytest

from antiphon.client.updates import OpenQuestions


async def asked() -> tuple[OpenQuestions, "asyncio.Future[str]", "asyncio.Task[str]"]:
    questions, answer = OpenQuestions(), asyncio.get_running_loop().create_future()
    asking = asyncio.create_task(questions.wait_for(answer, "cancelled"))
    await asyncio.sleep(0)  # it is asked
    return questions, answer, asking


async def test_a_question_is_answered_by_the_user() -> None:
    _, answer, asking = await asked()
    answer.set_result("yes")
    assert await asking == "yes"


async def test_an_answer_that_comes_with_the_cancellation_is_too_late() -> None:
    questions, answer, asking = await asked()
    answer.set_result("yes")
    questions.release()
    assert await asking == "cancelled"


async def test_a_handler_that_fails_with_the_cancellation_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    questions, answer, asking = await asked()
    answer.set_exception(ValueError("the screen is gone"))
    with caplog.at_level(logging.ERROR):
        questions.release()
        assert await asking == "cancelled"
        await asyncio.sleep(0)  # the log is written
    assert "a handler failed after its question was released" in caplog.text
