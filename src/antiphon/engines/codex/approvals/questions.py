"""Questions of the model to the user. An answer is a list of texts by the question's id."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from antiphon.engines.codex import wire
from antiphon.engines.questions import Answer, Body, Choice, Question, Silence, ask_by_form, ask_one_by_one
from antiphon.errors import AcpError, NotSupported
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.asking import Asking

__all__ = ["NO_ANSWERS", "ask_questions"]

NO_ANSWERS: Final[Body] = {"answers": {}}

NOTE: Final = "user_note: "
"""What Codex puts before the words that a user adds to a choice."""


async def ask_questions(asked: wire.UserInputAsked, stage: "Asking", call: v1.ToolCallPatch | None) -> Body:
    """Ask all of them. The model goes on without the answers that it does not get."""
    questions = [_question(each) for each in asked.questions]
    if not questions:
        return dict(NO_ANSWERS)
    # The server may set a time, after which it wants to hear that there is no answer.
    limit = asked.auto_resolution_ms / 1000 if asked.auto_resolution_ms else None
    try:
        async with asyncio.timeout(limit):
            if stage.session.client.shows_forms:
                answers = await ask_by_form(stage, questions, "Codex", None)
            else:
                answers = await _without_forms(asked, stage, questions)
    except TimeoutError:
        return dict(NO_ANSWERS)
    if isinstance(answers, Silence):
        return dict(NO_ANSWERS)
    texts = {each.id: _texts(answer) for each, answer in zip(asked.questions, answers, strict=True)}
    return {"answers": {id: {"answers": found} for id, found in texts.items() if found}}


def _question(asked: wire.Question) -> Question:
    choices = [Choice(each.label, each.description) for each in asked.options or ()]
    return Question(asked.question, choices, asked.header or None, other=asked.is_other, secret=asked.is_secret)


async def _without_forms(
    asked: wire.UserInputAsked, stage: "Asking", questions: Sequence[Question]
) -> list[Answer] | Silence:
    """The server has no item for its questions, so they are a call of their own."""
    if not any(each.choices for each in questions):
        raise NotSupported("the client shows no forms, and these questions have no choices")
    id, title = asked.item_id, "Codex has a question"
    await stage.update(v1.ToolCall(id, title))
    status = v1.ToolStatus.FAILED
    try:
        answers = await ask_one_by_one(stage, questions, v1.ToolCallPatch(id, title=title))
        if not isinstance(answers, Silence):
            status = v1.ToolStatus.COMPLETED
        return answers
    finally:
        with suppress(AcpError):  # whatever kept us from the answer is told already
            await stage.session.update(v1.ToolCallUpdate(id, status=status))


def _texts(answer: Answer) -> list[str]:
    own = [] if answer.own is None else [f"{NOTE}{answer.own}" if answer.picked else answer.own]
    return [*answer.picked, *own]
