"""What a CLI asks the user: permission, forms and pages of MCP servers, questions of the model.

An answer that is not understood is never an approval. What a client cannot show is declined.
"""

import asyncio
import enum
import logging
from collections.abc import Callable, Coroutine, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from antiphon.agent.questions import QUESTION, Permission, UserQuestions, end_turn, misfits, why_refused
from antiphon.aio import ignore_result
from antiphon.engines.labels import prose, sentence
from antiphon.errors import AcpError, Code, ResponseError
from antiphon.protocol import v1
from antiphon.protocol.base import JsonObject, encode
from antiphon.protocol.salvage import salvage
from antiphon.protocol.v1 import methods as m

if TYPE_CHECKING:
    from antiphon.agent.questions import PageVisit
    from antiphon.agent.session import AgentSession
    from antiphon.engines.events import UpdateSender
    from antiphon.engines.process import CliProcess

__all__ = [
    "CANCEL",
    "DECLINE",
    "MAX_NOTE",
    "AnswerChoice",
    "CliQuestions",
    "QuestionCancelled",
    "QuestionTasks",
    "RefusedByPolicy",
    "Unanswered",
    "UserAnswer",
    "UserQuestion",
    "as_note",
    "ask_by_form",
    "ask_by_server_form",
    "ask_choice",
    "ask_choice_alone",
    "ask_for_text",
    "ask_in_turn",
    "ask_on_server_page",
    "call_with",
    "details_item",
    "form_of",
    "is_task_cancelled",
    "text_item",
    "why_not_asked",
]

Q = TypeVar("Q")
_log = logging.getLogger(__name__)

# What every question needs on its way to the user and back.

MAX_NOTE: Final = 2000
"""Most characters of a CLI's own text about a question that are shown with it. A reason is a sentence."""

_FIELD_TEXT: Final = "words"
_Kind = v1.PermissionOptionKind


class QuestionCancelled(AcpError):
    """The client cancelled the question, because the turn is being cancelled."""


class RefusedByPolicy(AcpError):
    """A policy refused without asking the user; the text is the reason."""


async def ask_choice(
    user: UserQuestions, call: v1.ToolCallPatch, options: Sequence[v1.PermissionOption], *, question: bool = False
) -> v1.PermissionOption | None:
    """Ask the user to choose an option; None if the answer is not one of them. `question`: not about permission, so only the user may answer.

    Raises:
        QuestionCancelled: there will be no answer.
        RefusedByPolicy: the user was not asked.
    """
    asked = v1.RequestPermission(user.session.id, call, list(options), meta=QUESTION if question else None)
    answer = await user.request(m.REQUEST_PERMISSION, asked)
    if isinstance(answer.outcome, v1.Cancelled):
        raise QuestionCancelled("the question was cancelled")
    permission = Permission(answer.outcome, options)
    if not permission and (why := why_refused(answer)) is not None:
        raise RefusedByPolicy(why)
    return permission.option


async def ask_choice_alone(
    user: UserQuestions, call: v1.ToolCallPatch, options: Sequence[v1.PermissionOption], *, question: bool = False
) -> v1.PermissionOption | None:
    """Ask the user to choose, about a tool call that the client does not know: it begins and ends with the question.

    Raises:
        QuestionCancelled: there will be no answer.
        RefusedByPolicy: the user was not asked.
    """
    id = call.tool_call_id
    named = {name: value for name in ("kind", "name", "content", "locations") if (value := getattr(call, name))}
    await user.update(v1.ToolCall(id, call.title or "A question", raw_input=call.raw_input, **named))
    chosen = None
    try:
        chosen = await ask_choice(user, call, options, question=question)
    finally:
        allowed = chosen is not None and chosen.kind in (_Kind.ALLOW_ONCE, _Kind.ALLOW_ALWAYS)
        status = v1.ToolStatus.COMPLETED if allowed else v1.ToolStatus.FAILED
        with suppress(AcpError):  # the error that kept us from the answer is raised already
            await user.session.update(v1.ToolCallUpdate(id, status=status))
    return chosen


async def ask_for_text(user: UserQuestions, message: str, title: str, about: str) -> str | None:
    """Ask the user for a text, by a form with one field; None if it is empty, or the form failed."""
    try:
        answers = await user.ask(
            message, v1.Form(properties={_FIELD_TEXT: v1.StringProperty(title=title)}), about=about
        )
    except AcpError:  # the decision has been made already; only its text is missing
        return None
    text = (answers or {}).get(_FIELD_TEXT)
    return text.strip() or None if isinstance(text, str) else None


def text_item(markdown: str) -> v1.ContentItem:
    """Return text as content of a question."""
    return v1.ContentItem(v1.TextBlock(markdown))


def details_item(markdown: str) -> v1.ContentItem:
    """Return text about a question that is no part of the call itself: a client of ours does not show it once it is answered."""
    return v1.ContentItem(v1.TextBlock(markdown), meta={"antiphon": {"question": "details"}})


def call_with(call: v1.ToolCallPatch, **changes: object) -> v1.ToolCallPatch:
    """Return a copy of the call with these changes, as a question shows it."""
    return msgspec.structs.replace(call, **changes)


def as_note(text: str | None) -> str:
    """Return a CLI's own text about a question as it can be shown."""
    return prose(text or "").strip()[:MAX_NOTE]


def is_task_cancelled() -> bool:
    """Whether a cancellation is meant for the task that asks, and not only for its request: the CLI cancelled the question."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def why_not_asked(error: AcpError) -> str:
    """Return in a few words why the user could not be asked."""
    text = error.reason if isinstance(error, ResponseError) else str(error).partition("\n")[0]
    return text or "no reason was given"


# Forms and pages of MCP servers.

DECLINE: Final = {"action": "decline"}
CANCEL: Final = {"action": "cancel"}
_PAGES: Final = ("https://", "http://")


async def ask_by_server_form(user: UserQuestions, message: str, schema: JsonObject | None) -> JsonObject:
    """Ask the user to fill in the form of an MCP server, and return the result for the server."""
    form = form_of(schema)
    if form is None or not user.session.client.shows_forms:
        return dict(DECLINE)
    asked = v1.FormElicitation(message=message, requested_schema=form, session_id=user.session.id)
    match await user.request(m.CREATE_ELICITATION, asked):
        case v1.Accepted(content=content) if not list(misfits(content or {}, form)):
            return {"action": "accept", "content": content or {}}
        case v1.Accepted() | v1.Declined():
            return dict(DECLINE)
        case _:
            return dict(CANCEL)


async def ask_on_server_page(
    user: UserQuestions, message: str, url: str | None
) -> "tuple[JsonObject, PageVisit | None]":
    """Ask the user to open the page of an MCP server. When the server reports that they are done there, complete the visit."""
    if not user.session.client.opens_pages:
        return dict(DECLINE), None
    if url is None or not url.lower().startswith(_PAGES):  # a server may not have the user run something
        return dict(DECLINE), None
    visit = await user.visit(message, url)
    return ({"action": "accept"}, visit) if visit else (dict(DECLINE), None)


def form_of(schema: JsonObject | None) -> v1.Form | None:
    """Return the form of an MCP server as the client takes it; None if it is not a form."""
    properties = (schema or {}).get("properties", {})
    if not isinstance(properties, dict):
        return None
    named = {name: _with_titles(each) for name, each in properties.items()}
    try:
        return salvage(encode({**(schema or {}), "properties": named}), v1.Form)
    except msgspec.ValidationError:
        return None


def _with_titles(field: object) -> object:
    """Rewrite MCP's older way to give the values of a choice names."""
    if not isinstance(field, dict) or "enumNames" not in field:
        return field
    rest = {key: value for key, value in field.items() if key not in ("enum", "enumNames")}
    values, names = field.get("enum"), field["enumNames"]
    if not isinstance(values, list) or not isinstance(names, list) or len(values) != len(names):
        return {**rest, "enum": values}
    return {**rest, "oneOf": [{"const": value, "title": name} for value, name in zip(values, names, strict=True)]}


_NONE: Final = v1.PermissionOption("none_of_these", "None of these", _Kind.REJECT_ONCE)
_DONE: Final = v1.PermissionOption("done", "Done", _Kind.ALLOW_ONCE)


class AnswerChoice(msgspec.Struct, frozen=True):
    """One of the answers that the model offers to a question."""

    label: str
    description: str | None = None
    preview: str | None = None
    meta: JsonObject | None = None
    """Further facts for clients that know them."""


class UserQuestion(msgspec.Struct, frozen=True):
    """A question of the model. Without choices the user answers in their own words."""

    text: str
    choices: Sequence[AnswerChoice] = ()
    header: str | None = None
    several: bool = False
    other: bool = True
    """Whether the user may answer in words instead of choosing."""
    secret: bool = False


class UserAnswer(msgspec.Struct, frozen=True):
    """The choices of the user, and what they wrote."""

    picked: Sequence[str] = ()
    own: str | None = None


class Unanswered(enum.Enum):
    """Why a question has no answer."""

    DECLINED = "the user would rather not say"
    CLOSED = "the user closed the form"


# Questions of the model, by a form.

WHOLE_CALL: Final[JsonObject] = {"antiphon": {"wholeCall": True}}
"""Marks a form that is all that its call does: a client that has shown the form need not show the call."""


async def ask_by_form(
    user: UserQuestions, questions: Sequence[UserQuestion], asker: str, about: str | None
) -> list[UserAnswer] | Unanswered:
    """Ask all questions by one form; return one answer for each. `about` is the id of a tool call that the client knows."""
    asked = v1.FormElicitation(
        message=questions[0].text if len(questions) == 1 else f"{asker} has {len(questions)} questions.",
        requested_schema=v1.Form(properties=dict(_fields(questions))),
        session_id=user.session.id,
        tool_call_id=about,
        meta=WHOLE_CALL,
    )
    match await user.request(m.CREATE_ELICITATION, asked):
        case v1.Accepted(content=content):
            return list(_filled_in(questions, content or {}))
        case v1.Declined():
            return Unanswered.DECLINED
        case _:
            return Unanswered.CLOSED


def _fields(questions: Sequence[UserQuestion]) -> Iterator[tuple[str, v1.Property]]:
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
            yield _other(place), _free(f"{title}: other", hint, secret=each.secret, beside=_field(place))


def _free(title: str, description: str | None, *, secret: bool, beside: str = "") -> v1.StringProperty:
    """Return a field for text. The protocol has no fields that hide what is typed, so a secret is called one.

    `beside` is the field whose choices it adds to: a client may ask for both in one step.
    """
    meta: JsonObject = {"antiphon": {"other": beside}} if beside else {}
    if secret:
        return v1.StringProperty(f"{title} (secret)", description, meta={"secret": True, **meta})
    return v1.StringProperty(title, description, meta=meta or None)


def _field(place: int) -> str:
    return f"question_{place + 1}"


def _other(place: int) -> str:
    return f"question_{place + 1}_other"


def _filled_in(questions: Sequence[UserQuestion], content: Mapping[str, v1.ContentValue]) -> Iterator[UserAnswer]:
    """Read the answers. A value that is not on offer is taken for the user's own words."""
    for place, each in enumerate(questions):
        found, own = _texts(content.get(_field(place))), _texts(content.get(_other(place)))
        if each.choices:
            yield UserAnswer(found, own[0] if own else None)
        else:
            yield UserAnswer(own=found[0] if found else None)


def _texts(value: v1.ContentValue | None) -> list[str]:
    found = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    return [each.strip() for each in found if each.strip()]


# Questions of the model, one after the other, each like a permission request.


async def ask_in_turn(
    user: UserQuestions, questions: Sequence[UserQuestion], call: v1.ToolCallPatch
) -> list[UserAnswer] | Unanswered:
    """Ask one question after the other; return one answer for each. Those without choices stay unanswered."""
    answers = list[UserAnswer]()
    for each in questions:
        labels = await (_several(each, user, call) if each.several else _one(each, user, call))
        answers.append(UserAnswer(labels))
    if isinstance(call.title, str):  # clients may have taken the questions for the title of the call
        await user.update(v1.ToolCallUpdate(call.tool_call_id, title=call.title))
    return answers if any(answer.picked for answer in answers) else Unanswered.DECLINED


async def _one(question: UserQuestion, user: UserQuestions, call: v1.ToolCallPatch) -> list[str]:
    ids = _ids(question.choices)
    if not ids:
        return []
    options = [v1.PermissionOption(id, sentence(choice.label), _Kind.ALLOW_ONCE) for id, choice in ids.items()]
    chosen = await _pick(question, question.choices, user, call, [*options, _NONE])
    return [ids[chosen].label] if chosen in ids else []


async def _several(question: UserQuestion, user: UserQuestions, call: v1.ToolCallPatch) -> list[str]:
    """Ask again and again, until the user is done. The option for none of these drops what was chosen."""
    left, labels = _ids(question.choices), list[str]()
    while left:
        options = [v1.PermissionOption(id, sentence(choice.label), _Kind.ALLOW_ONCE) for id, choice in left.items()]
        chosen = await _pick(
            question, left.values(), user, call, [*options, *([_DONE] if labels else []), _NONE], labels
        )
        if chosen == _DONE.option_id:
            break
        if chosen not in left:
            return []
        labels.append(left.pop(chosen).label)
    return labels


def _ids(choices: Iterable[AnswerChoice]) -> dict[str, AnswerChoice]:
    return {f"option_{place + 1}": choice for place, choice in enumerate(choices)}


async def _pick(
    question: UserQuestion,
    choices: Iterable[AnswerChoice],
    user: UserQuestions,
    call: v1.ToolCallPatch,
    options: Sequence[v1.PermissionOption],
    labels: Sequence[str] = (),
) -> str:
    parts = [question.text, *(_described(choice) for choice in choices)]
    if labels:
        parts.append(f"Chosen so far: {', '.join(labels)}")
    elif question.several:
        parts.append("You can choose several, one after the other.")
    asked = call_with(call, title=sentence(question.text), content=[text_item(prose("\n\n".join(parts)))])
    chosen = await ask_choice(user, asked, options, question=True)
    return _NONE.option_id if chosen is None else chosen.option_id


def _described(choice: AnswerChoice) -> str:
    about = f"**{choice.label}**: {choice.description}" if choice.description else f"**{choice.label}**"
    return f"{about}\n\n{choice.preview}" if choice.preview else about


# The questions of a CLI that wait for the user.


class QuestionTasks:
    """The open questions of one session, by the key that the CLI knows them by. Each is a task, and any of them may be cancelled."""

    def __init__(self) -> None:
        self._open: dict[Hashable, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, key: Hashable, asking: Coroutine[object, object, None]) -> None:
        """Begin to ask, beside everything else."""
        task = asyncio.get_running_loop().create_task(asking, name=f"ask {key}")
        self._open[key] = task
        task.add_done_callback(ignore_result)
        task.add_done_callback(partial(self._over, key))

    def _over(self, key: Hashable, task: "asyncio.Task[None]") -> None:
        if self._open.get(key) is task:  # the CLI may have asked again by the same key
            del self._open[key]

    def cancel(self, key: Hashable) -> None:
        """Cancel a question that the CLI needs no answer to any more; the client need not ask it either."""
        if (asking := self._open.get(key)) is not None:
            asking.cancel()

    def cancel_all(self, which: Callable[[Hashable], bool] = lambda _: True) -> None:
        """Cancel all questions, or those with such a key."""
        for key, asking in list(self._open.items()):
            if which(key):
                asking.cancel()


class CliQuestions(Generic[Q]):
    """What a CLI asks in one session: permission, forms of MCP servers, questions of the model. Each request gets a response.

    Questions belong to the session and not to a turn, because sub-agents ask between turns too.
    """

    def __init__(self, session: "AgentSession", updates: "UpdateSender") -> None:
        self._session = session
        self._user = UserQuestions(session)
        self._updates = updates
        self._open = QuestionTasks()

    # What a subclass fills in.

    def _id_of(self, request: Q) -> Hashable:
        """The id of a request of the CLI."""
        raise NotImplementedError

    async def _result_of(self, request: Q) -> JsonObject | None:
        """Ask the user, and return the result for the CLI. None: requests of this kind are not supported."""
        raise NotImplementedError

    # For the driver.

    def ask(self, process: "CliProcess[Any]", request: Q) -> None:
        """Begin to ask the user, and respond to the CLI when there is an answer."""
        self._open.begin((process.pid, self._id_of(request)), self._respond(process, request))

    async def _respond(self, process: "CliProcess[Any]", request: Q) -> None:
        id = self._id_of(request)
        try:
            result = await self._result_of(request)
        except Exception as error:  # the CLI must get a response, even if the question cannot be asked
            _log.exception("a question of %s could not be asked", process.title)
            process.refuse(id, f"the question could not be asked: {type(error).__name__}")
            return
        if result is None:
            process.refuse(id, "not supported here", Code.METHOD_NOT_FOUND)
        else:
            process.answer(id, result)

    async def _send_allowed(self, events: Iterable[object]) -> None:
        """Send what follows for the client from an answer that lets a tool call run."""
        for each in events:
            await self._updates.send(each)

    def cancel(self, process: "CliProcess[Any]", id: Hashable) -> None:
        """Cancel a question that the CLI needs no answer to any more."""
        self._open.cancel((process.pid, id))

    def cancel_all(self, process: "CliProcess[Any] | None" = None) -> None:
        """Cancel all questions, or those of one process."""
        if process is None:
            self._open.cancel_all()
        else:
            self._open.cancel_all(lambda key: isinstance(key, tuple) and key[0] == process.pid)

    def close(self) -> None:
        """Cancel all questions: the session is closed."""
        self._open.cancel_all()
        end_turn(self._user)
