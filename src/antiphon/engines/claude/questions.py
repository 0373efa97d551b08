"""Questions of the model to the user, as the CLI has them: a call of a tool whose input gets the answers.

An answer is a text by the question's own words: the label that was chosen, several of them joined, or what the user wrote instead.
"""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.engines.claude.inquiry import allow, deny
from antiphon.engines.inquiry import Body
from antiphon.engines.questions import Answer, Choice, Question, Silence, ask_by_form, ask_one_by_one
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.asking import Asking
    from antiphon.engines.claude import wire

__all__ = ["ask_questions"]

DECLINED: Final = (
    "The user declined to answer. Do not ask the same again: go on without an answer, or ask in your own words."
)
CLOSED: Final = "The user closed the questions without an answer. Wait for what they say next."
UNREADABLE: Final = "There was no question in this that could be shown to the user."


class _Choice(msgspec.Struct, frozen=True):
    label: str
    description: str | None = None
    preview: str | None = None


class _Question(msgspec.Struct, frozen=True, rename="camel"):
    question: str
    options: list[_Choice]
    header: str | None = None
    multi_select: bool = False


class _Asked(msgspec.Struct, frozen=True):
    questions: list[_Question]


async def ask_questions(request: "wire.CanUseTool", stage: "Asking", call: v1.ToolCallPatch) -> Body:
    """Ask all of them."""
    try:
        asked = msgspec.convert(request.input, _Asked).questions
    except msgspec.ValidationError:
        asked = []
    if not asked:
        return deny(UNREADABLE)
    questions = [_question(each) for each in asked]
    if stage.session.client.shows_forms:
        answers = await ask_by_form(stage, questions, "Claude", call.tool_call_id)
    else:
        answers = await ask_one_by_one(stage, questions, call)
    match answers:
        case Silence.DECLINED:
            return deny(DECLINED)
        case Silence.CLOSED:
            return deny(CLOSED)
        case _:
            return _answered(request, questions, answers)


def _question(asked: _Question) -> Question:
    choices = [_choice(each) for each in asked.options]
    return Question(asked.question, choices, asked.header, several=asked.multi_select)


def _choice(offered: _Choice) -> Choice:
    meta = None if offered.preview is None else {"claudeCode": {"preview": offered.preview}}
    return Choice(offered.label, offered.description, offered.preview, meta)


def _answered(request: "wire.CanUseTool", questions: Sequence[Question], answers: Sequence[Answer]) -> Body:
    texts, notes = dict[str, str](), dict[str, dict[str, str]]()
    for question, answer in zip(questions, answers, strict=True):
        own = [answer.own] if answer.own is not None else []
        if question.several:
            found = [*answer.picked, *own]
        else:
            found = list(answer.picked or own)[:1]
            if answer.picked and own:
                notes[question.text] = {"notes": own[0]}
        if found:
            texts[question.text] = _joined(found) if question.several else found[0]
    return allow({**request.input, "answers": texts, **({"annotations": notes} if notes else {})})


def _joined(answers: Iterable[str]) -> str:
    """As the CLI writes it: what holds the separator is quoted."""
    return ", ".join(json.dumps(each, ensure_ascii=False) if ", " in each or '"' in each else each for each in answers)
