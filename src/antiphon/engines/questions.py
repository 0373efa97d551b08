"""Questions of a model to the user: as one form where the client shows forms, else one after the other."""

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.engines.inquiry import pick, shown, text
from antiphon.engines.wording import prose, sentence
from antiphon.protocol import v1
from antiphon.protocol.base import JsonObject
from antiphon.protocol.v1 import methods as m

if TYPE_CHECKING:
    from antiphon.agent.asking import Asking

__all__ = ["Answer", "Choice", "Question", "Silence", "ask_by_form", "ask_one_by_one"]

_Kind = v1.PermissionOptionKind
_NONE: Final = v1.PermissionOption("none_of_these", "None of these", _Kind.REJECT_ONCE)
_DONE: Final = v1.PermissionOption("done", "Done", _Kind.ALLOW_ONCE)


class Choice(msgspec.Struct, frozen=True):
    """One of the answers that the model offers."""

    label: str
    description: str | None = None
    preview: str | None = None
    meta: JsonObject | None = None
    """What a form says about it to clients that know more."""


class Question(msgspec.Struct, frozen=True):
    """One of the questions. Without choices the user answers in their own words."""

    text: str
    choices: Sequence[Choice] = ()
    header: str | None = None
    several: bool = False
    other: bool = True
    """Whether the user's own words will do in place of a choice."""
    secret: bool = False


class Answer(msgspec.Struct, frozen=True):
    """What was chosen, and what the user wrote."""

    picked: Sequence[str] = ()
    own: str | None = None


class Silence(enum.Enum):
    """Why there are no answers."""

    DECLINED = "the user would rather not say"
    CLOSED = "the user closed the form"


# By a form.


async def ask_by_form(
    stage: "Asking", questions: Sequence[Question], who: str, about: str | None
) -> list[Answer] | Silence:
    """All at once; one answer for each question. `about` is the id of a call that the client knows."""
    asked = v1.FormElicitation(
        message=questions[0].text if len(questions) == 1 else f"{who} has {len(questions)} questions.",
        requested_schema=v1.Form(properties=dict(_fields(questions))),
        session_id=stage.session.id,
        tool_call_id=about,
    )
    match await stage.request(m.CREATE_ELICITATION, asked):
        case v1.Accepted(content=content):
            return list(_filled_in(questions, content or {}))
        case v1.Declined():
            return Silence.DECLINED
        case _:
            return Silence.CLOSED


def _fields(questions: Sequence[Question]) -> Iterator[tuple[str, v1.Property]]:
    for place, each in enumerate(questions):
        title = each.header or each.text
        # A question alone is the message of the form already.
        description = each.text if len(questions) > 1 and each.header else None
        offered = [v1.EnumOption(one.label, one.label, one.description or None, meta=one.meta) for one in each.choices]
        if not offered:
            yield _field(place), _free(title, description, secret=each.secret)
            continue
        if each.several:
            yield _field(place), v1.MultiSelectProperty(v1.TitledItems(offered), title, description)
            hint = "Your own answer, in addition to what is chosen above"
        else:
            yield _field(place), v1.StringProperty(title, description, one_of=offered)
            hint = "Your own answer, or a note on the one that is chosen above"
        if each.other:
            yield _other(place), _free(f"{title}: other", hint, secret=each.secret)


def _free(title: str, description: str | None, *, secret: bool) -> v1.StringProperty:
    """A field for words. The protocol has no fields that hide what is typed, so a secret is called one."""
    if not secret:
        return v1.StringProperty(title, description)
    return v1.StringProperty(f"{title} (secret)", description, meta={"secret": True})


def _field(place: int) -> str:
    return f"question_{place + 1}"


def _other(place: int) -> str:
    return f"question_{place + 1}_other"


def _filled_in(questions: Sequence[Question], content: Mapping[str, v1.ContentValue]) -> Iterator[Answer]:
    """What is in no list is taken for the user's own words."""
    for place, each in enumerate(questions):
        found, own = _texts(content.get(_field(place))), _texts(content.get(_other(place)))
        if each.choices:
            yield Answer(found, own[0] if own else None)
        else:
            yield Answer(own=found[0] if found else None)


def _texts(value: v1.ContentValue | None) -> list[str]:
    found = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    return [each.strip() for each in found if each.strip()]


# One after the other, each like a question for permission.


async def ask_one_by_one(
    stage: "Asking", questions: Sequence[Question], call: v1.ToolCallPatch
) -> list[Answer] | Silence:
    """One answer for each question. Those without choices cannot be asked like this, and stay unanswered."""
    answers = list[Answer]()
    for each in questions:
        labels = await (_several(each, stage, call) if each.several else _one(each, stage, call))
        answers.append(Answer(labels))
    if isinstance(call.title, str):  # clients may have taken the questions for the title of the call
        await stage.update(v1.ToolCallUpdate(call.tool_call_id, title=call.title))
    return answers if any(answer.picked for answer in answers) else Silence.DECLINED


async def _one(question: Question, stage: "Asking", call: v1.ToolCallPatch) -> list[str]:
    ids = _ids(question.choices)
    if not ids:
        return []
    options = [v1.PermissionOption(id, sentence(choice.label), _Kind.ALLOW_ONCE) for id, choice in ids.items()]
    chosen = await _pick(question, question.choices, stage, call, [*options, _NONE])
    return [ids[chosen].label] if chosen in ids else []


async def _several(question: Question, stage: "Asking", call: v1.ToolCallPatch) -> list[str]:
    """Again and again, until the user is done. None of these takes back what was chosen."""
    left, labels = _ids(question.choices), list[str]()
    while left:
        options = [v1.PermissionOption(id, sentence(choice.label), _Kind.ALLOW_ONCE) for id, choice in left.items()]
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
    parts = [question.text, *(_described(choice) for choice in choices)]
    if labels:
        parts.append(f"Chosen so far: {', '.join(labels)}")
    elif question.several:
        parts.append("You can choose several, one after the other.")
    asked = shown(call, title=sentence(question.text), content=[text(prose("\n\n".join(parts)))])
    chosen = await pick(stage, asked, options, question=True)
    return _NONE.option_id if chosen is None else chosen.option_id


def _described(choice: Choice) -> str:
    about = f"**{choice.label}**: {choice.description}" if choice.description else f"**{choice.label}**"
    return f"{about}\n\n{choice.preview}" if choice.preview else about
