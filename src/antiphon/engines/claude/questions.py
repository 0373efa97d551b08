"""Questions of the model to the user: as one form where the client shows forms, else one after the other.

An answer is a text by the question's own words: the label that was chosen, several of them joined, or what the user wrote instead.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from antiphon.engines.claude.inquiry import Body, allow, deny, pick, shown, text
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m

if TYPE_CHECKING:
    from antiphon.agent.asking import Asking
    from antiphon.engines.claude import wire

__all__ = ["ask_questions"]

DECLINED: Final = (
    "The user declined to answer. Do not ask the same again: go on without an answer, or ask in your own words."
)
CLOSED: Final = "The user closed the questions without an answer. Wait for what they say next."
UNREADABLE: Final = "There was no question in this that could be shown to the user."

_Kind = v1.PermissionOptionKind
_NONE: Final = v1.PermissionOption("none_of_these", "None of these", _Kind.REJECT_ONCE)
_DONE: Final = v1.PermissionOption("done", "Done", _Kind.ALLOW_ONCE)


class Choice(msgspec.Struct, frozen=True):
    """One of the answers that the model offers."""

    label: str
    description: str | None = None
    preview: str | None = None


class Question(msgspec.Struct, frozen=True, rename="camel"):
    """One of the questions."""

    question: str
    options: list[Choice]
    header: str | None = None
    multi_select: bool = False


class _Asked(msgspec.Struct, frozen=True):
    questions: list[Question]


async def ask_questions(request: "wire.CanUseTool", stage: "Asking", call: v1.ToolCallPatch) -> Body:
    """Ask all of them."""
    try:
        questions = msgspec.convert(request.input, _Asked).questions
    except msgspec.ValidationError:
        questions = []
    if not questions:
        return deny(UNREADABLE)
    if not stage.session.client.shows_forms:
        return await _one_by_one(request, stage, call, questions)
    asked = v1.FormElicitation(
        message=_message(questions),
        requested_schema=v1.Form(properties=dict(_fields(questions))),
        session_id=stage.session.id,
        tool_call_id=call.tool_call_id,
    )
    match await stage.request(m.CREATE_ELICITATION, asked):
        case v1.Accepted(content=content):
            return _filled_in(request.input, questions, content or {})
        case v1.Declined():
            return deny(DECLINED)
        case _:
            return deny(CLOSED)


# By a form.


def _message(questions: Sequence[Question]) -> str:
    return questions[0].question if len(questions) == 1 else f"Claude has {len(questions)} questions."


def _fields(questions: Sequence[Question]) -> Iterable[tuple[str, v1.Property]]:
    for place, each in enumerate(questions):
        title = each.header or each.question
        # A question alone is the message of the form already.
        description = each.question if len(questions) > 1 and each.header else None
        offered = [_offered(choice) for choice in each.options]
        if each.multi_select:
            yield _field(place), v1.MultiSelectProperty(v1.TitledItems(offered), title, description)
            other = "Your own answer, in addition to what is chosen above"
        else:
            yield _field(place), v1.StringProperty(title, description, one_of=offered)
            other = "Your own answer, or a note on the one that is chosen above"
        yield _other(place), v1.StringProperty(f"{title}: other", other)


def _offered(choice: Choice) -> v1.EnumOption:
    meta = None if choice.preview is None else {"claudeCode": {"preview": choice.preview}}
    return v1.EnumOption(choice.label, choice.label, choice.description or None, meta=meta)


def _field(place: int) -> str:
    return f"question_{place + 1}"


def _other(place: int) -> str:
    return f"question_{place + 1}_other"


def _filled_in(input: Mapping[str, Any], questions: Sequence[Question], content: Mapping[str, v1.ContentValue]) -> Body:
    """What is in no list is taken for the user's own words, which any question may be answered with."""
    answers, notes = dict[str, str](), dict[str, dict[str, str]]()
    for place, each in enumerate(questions):
        picked, own = _texts(content.get(_field(place))), _texts(content.get(_other(place)))
        if each.multi_select:
            picked, own = picked + own, []
        if picked and own:
            notes[each.question] = {"notes": own[0]}
        if found := picked or own:
            answers[each.question] = _joined(found) if each.multi_select else found[0]
    return _answered(input, answers, notes)


def _texts(value: v1.ContentValue | None) -> list[str]:
    found = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    return [each.strip() for each in found if each.strip()]


def _joined(answers: Iterable[str]) -> str:
    """As the CLI writes it: what holds the separator is quoted."""
    return ", ".join(json.dumps(each, ensure_ascii=False) if ", " in each or '"' in each else each for each in answers)


def _answered(
    input: Mapping[str, Any], answers: Mapping[str, str], notes: Mapping[str, Mapping[str, str]] | None = None
) -> Body:
    return allow({**input, "answers": answers, **({"annotations": notes} if notes else {})})


# One after the other, each like a question for permission.


async def _one_by_one(
    request: "wire.CanUseTool", stage: "Asking", call: v1.ToolCallPatch, questions: Sequence[Question]
) -> Body:
    answers = dict[str, str]()
    for each in questions:
        labels = await (_several(each, stage, call) if each.multi_select else _one(each, stage, call))
        if labels:
            answers[each.question] = _joined(labels) if each.multi_select else labels[0]
    if isinstance(call.title, str):  # clients may have taken the questions for the title of the call
        await stage.update(v1.ToolCallUpdate(call.tool_call_id, title=call.title))
    return _answered(request.input, answers) if answers else deny(DECLINED)


async def _one(question: Question, stage: "Asking", call: v1.ToolCallPatch) -> list[str]:
    ids = _ids(question.options)
    options = [v1.PermissionOption(id, choice.label, _Kind.ALLOW_ONCE) for id, choice in ids.items()]
    chosen = await _pick(question, question.options, stage, call, [*options, _NONE])
    return [ids[chosen].label] if chosen in ids else []


async def _several(question: Question, stage: "Asking", call: v1.ToolCallPatch) -> list[str]:
    """Again and again, until the user is done. None of these takes back what was chosen."""
    left, labels = _ids(question.options), list[str]()
    while left:
        options = [v1.PermissionOption(id, choice.label, _Kind.ALLOW_ONCE) for id, choice in left.items()]
        chosen = await _pick(
            question, left.values(), stage, call, [*options, *([_DONE] if labels else []), _NONE], labels
        )
        if chosen == _DONE.option_id:
            break
        if chosen not in left:
            return []
        labels.append(left.pop(chosen).label)
    return labels


def _ids(choices: Iterable[Choice]) -> dict[str, Choice]:
    return {f"option_{place + 1}": choice for place, choice in enumerate(choices)}


async def _pick(
    question: Question,
    choices: Iterable[Choice],
    stage: "Asking",
    call: v1.ToolCallPatch,
    options: Sequence[v1.PermissionOption],
    labels: Sequence[str] = (),
) -> str:
    parts = [question.question, *(_described(choice) for choice in choices)]
    if labels:
        parts.append(f"Chosen so far: {', '.join(labels)}")
    elif question.multi_select:
        parts.append("You can choose several, one after the other.")
    chosen = await pick(stage, shown(call, title=question.question, content=[text("\n\n".join(parts))]), options)
    return _NONE.option_id if chosen is None else chosen.option_id


def _described(choice: Choice) -> str:
    about = f"**{choice.label}**: {choice.description}" if choice.description else f"**{choice.label}**"
    return f"{about}\n\n{choice.preview}" if choice.preview else about
