"""Questions to the user: permission, a choice, a form, a web page."""

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import UNSET

from antiphon.errors import AcpError, NotSupported, RemoteProtocolError, TurnOver
from antiphon.protocol import v1
from antiphon.protocol.timeouts import NO_TIMEOUT
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.elicitation import (
    BooleanProperty,
    ContentValue,
    Form,
    IntegerProperty,
    MultiSelectProperty,
    NumberProperty,
    Property,
    StringItems,
    StringProperty,
    TitledItems,
)
from antiphon.protocol.v1.permission import (
    PermissionOption,
    PermissionOptionKind,
    PermissionOutcome,
    Selected,
)

if TYPE_CHECKING:
    import asyncio

    from antiphon.agent.session import AgentSession
    from antiphon.protocol.base import JsonObject
    from antiphon.protocol.methods import Call
    from antiphon.protocol.timeouts import Timeout
    from antiphon.protocol.v1.permission import PermissionResult, RequestPermission

    Answers = dict[str, v1.ContentValue]

__all__ = [
    "OPTIONS",
    "QUESTION",
    "PageVisit",
    "Permission",
    "UserQuestions",
    "end_turn",
    "is_question",
    "misfits",
    "refusal",
    "why_refused",
]

# The options of a permission request, and what the answer means. An answer that is not understood never allows.

QUESTION: "Final[JsonObject]" = {"antiphon": {"question": True}}
"""The `_meta` of a question that uses the form of a permission request: no policy may answer it for the user."""

OPTIONS: Final = (
    PermissionOption("allow", "Allow", PermissionOptionKind.ALLOW_ONCE),
    PermissionOption("allow_always", "Always allow", PermissionOptionKind.ALLOW_ALWAYS),
    PermissionOption("reject", "Reject", PermissionOptionKind.REJECT_ONCE),
    PermissionOption("reject_always", "Always reject", PermissionOptionKind.REJECT_ALWAYS),
)

_ALLOWING: Final = (PermissionOptionKind.ALLOW_ONCE, PermissionOptionKind.ALLOW_ALWAYS)
_LASTING: Final = (PermissionOptionKind.ALLOW_ALWAYS, PermissionOptionKind.REJECT_ALWAYS)


class Permission:
    """The user's answer; true if it allows. `option` is what was chosen, None if the request was cancelled."""

    def __init__(self, outcome: PermissionOutcome, options: Sequence[PermissionOption]) -> None:
        self.option = _chosen(outcome.option_id, options) if isinstance(outcome, Selected) else None

    def __bool__(self) -> bool:
        return self.option is not None and self.option.kind in _ALLOWING

    @property
    def always(self) -> bool:
        """Whether the answer is meant to last."""
        return self.option is not None and self.option.kind in _LASTING


def _chosen(option_id: str, options: Sequence[PermissionOption]) -> PermissionOption | None:
    """Find the chosen option by its id; older clients respond with the kind instead."""
    for option in options:
        if option.option_id == option_id:
            return option
    meant = [option for option in options if option.kind.known and option.kind.value == option_id]
    return meant[0] if len(meant) == 1 else None


def is_question(request: "RequestPermission") -> bool:
    """Whether a permission request is in fact a question, which no policy may answer."""
    ours = (request.meta or {}).get("antiphon")
    return isinstance(ours, dict) and ours.get("question") is True


def refusal(why: str) -> "JsonObject":
    """Return the `_meta` of a rejection by a policy, so that it is not shown as one by the user."""
    return {"antiphon": {"refused": why}}


def why_refused(result: "PermissionResult") -> str | None:
    """Return why a policy rejected a permission request; None if the answer is not from a policy."""
    ours = (result.meta or {}).get("antiphon")
    why = ours.get("refused") if isinstance(ours, dict) else None
    return why if isinstance(why, str) else None


P = TypeVar("P")
R = TypeVar("R")


_NONE_OF_THESE = v1.PermissionOption("_none_of_these", "None of these", v1.PermissionOptionKind.REJECT_ONCE)


class PageVisit:
    """A web page that the user was asked to open; true if they agreed. Call `complete` when they are done there."""

    def __init__(self, questions: "UserQuestions", id: str, agreed: bool) -> None:
        self._questions = questions
        self._id = id
        self._agreed = agreed

    def __bool__(self) -> bool:
        return self._agreed

    async def complete(self) -> None:
        """Send the client that the user is done on the page."""
        await self._questions.session.notify(m.COMPLETE_ELICITATION, v1.CompleteElicitation(self._id))


class UserQuestions:
    """Requests to the client that wait for the user, in a turn or in a session. They are cancelled when that ends."""

    def __init__(self, session: "AgentSession") -> None:
        self.session = session
        self._over = False
        self._requests: set[asyncio.Task[Any]] = set()

    def update(self, update: "v1.Update") -> Awaitable[None]:
        """Send any update.

        Raises:
            TurnOver: the turn has been answered.
        """
        self._check_running()
        return self.session.update(update)

    async def request(self, call: "Call[P, R]", params: P, *, timeout: "Timeout" = UNSET) -> R:
        """Send a request to the client. It is cancelled when the turn ends.

        `timeout`: the seconds that the response may take, None for no timeout; by default what `protocol.timeouts` has for it.

        Raises:
            RequestTimeout: there was no response in time.
        """
        self._check_running()
        import asyncio  # here: an agent imports its turns before it answers `initialize`

        request = asyncio.get_running_loop().create_task(
            self.session.request(call, params, timeout=timeout), name=call.name
        )
        self._requests.add(request)
        request.add_done_callback(self._answered)
        return await request

    def _answered(self, request: "asyncio.Task[Any]") -> None:
        from antiphon.aio import ignore_result

        self._requests.discard(request)
        ignore_result(request)  # the caller may have been cancelled in the same moment

    def next_id(self, what: str) -> str:
        """Make an id for a tool call or another part of this turn, unique in the session."""
        host = self.session.host
        host.id_count += 1
        return f"{what}-{host.id_prefix}{host.id_count}"

    @property
    def over(self) -> bool:
        """Whether the turn has been answered."""
        return self._over

    def _check_running(self) -> None:
        if self._over:
            raise TurnOver("this turn has been answered", hint="updates between turns go through `turn.session`")

    async def ask_permission(
        self,
        call: v1.ToolCallPatch,
        options: Sequence[v1.PermissionOption] = OPTIONS,
        *,
        timeout: "Timeout" = NO_TIMEOUT,
    ) -> Permission:
        """Ask the user whether a tool call may run. `call.permitted()` does it for a call that is shown.

        Raises:
            RequestTimeout: there was no answer within `timeout` seconds; by default it is waited for without a limit.
        """
        request = v1.RequestPermission(self.session.id, call, list(options))
        answer = await self.request(m.REQUEST_PERMISSION, request, timeout=timeout)
        return Permission(answer.outcome, options)

    async def ask(
        self,
        message: str,
        form: v1.Form | None = None,
        *,
        about: str | None = None,
        timeout: "Timeout" = NO_TIMEOUT,
        **fields: v1.Property,
    ) -> "Answers | None":
        """Ask the user to fill in a form; None if they would rather not. `about` is the id of a tool call.

        A field without a default has to be filled in; give a `form` for anything finer.

        Raises:
            NotSupported: the client shows no forms.
            RequestTimeout: there was no answer within `timeout` seconds; by default it is waited for without a limit.
            RemoteProtocolError: its answers do not fit the form.
        """
        if not self.session.client.shows_forms:
            raise NotSupported(
                "the client shows no forms", hint="look at `session.client.shows_forms`; `choose` works without"
            )
        if form is None:
            required = [name for name, field in fields.items() if getattr(field, "default", None) is None]
            form = v1.Form(properties=fields, required=required or None)
        question = v1.FormElicitation(
            message=message, requested_schema=form, session_id=self.session.id, tool_call_id=about
        )
        answer = await self.request(m.CREATE_ELICITATION, question, timeout=timeout)
        if not isinstance(answer, v1.Accepted):
            return None
        answers = answer.content or {}
        if wrong := list(misfits(answers, form)):
            raise RemoteProtocolError(f"the client's answers do not fit the form: {', '.join(wrong)}")
        return answers

    async def choose(
        self, message: str, choices: "Mapping[str, str] | Sequence[str]", *, timeout: "Timeout" = NO_TIMEOUT
    ) -> str | None:
        """Ask the user to pick one; None if they would rather not. A client without forms gets it as a permission request."""
        titles = choices if isinstance(choices, Mapping) else {choice: choice for choice in choices}
        if self.session.client.shows_forms:
            field = v1.StringProperty(
                title=message, one_of=[v1.EnumOption(key, title) for key, title in titles.items()]
            )
            try:
                answers = await self.ask(message, timeout=timeout, choice=field)
            except RemoteProtocolError:  # the answer is not one of the choices
                answers = None
            picked = None if answers is None else answers.get("choice")
        else:
            picked = await self._choose_by_permission(message, titles, timeout)
        return picked if isinstance(picked, str) and picked in titles else None

    async def _choose_by_permission(self, message: str, titles: Mapping[str, str], timeout: "Timeout") -> str | None:
        once = v1.PermissionOptionKind.ALLOW_ONCE
        options = [v1.PermissionOption(key, title, once) for key, title in titles.items()]
        id = self.next_id("question")
        status = v1.ToolStatus.FAILED
        call = v1.ToolCallPatch(id, title=message, kind=v1.ToolKind.OTHER)
        question = v1.RequestPermission(self.session.id, call, [*options, _NONE_OF_THESE], meta=QUESTION)
        try:
            await self.update(v1.ToolCall(id, message))
            answer = (await self.request(m.REQUEST_PERMISSION, question, timeout=timeout)).outcome
            # By its id alone: all choices are of one kind, so a client that responds with the kind has chosen none of them.
            picked = answer.option_id if isinstance(answer, v1.Selected) and answer.option_id in titles else None
            if picked is not None:
                status = v1.ToolStatus.COMPLETED
        finally:
            with suppress(AcpError):  # the turn may be over, or the client gone
                # Not awaited: this may be a cancelled task, and a slow client must not hold it up.
                _ = self.update(v1.ToolCallUpdate(id, status=status))
        return picked

    async def visit(
        self, message: str, url: str, *, about: str | None = None, timeout: "Timeout" = NO_TIMEOUT
    ) -> PageVisit:
        """Ask the user to open a web page. The agent finds out by itself what they do there, and then calls `complete`.

        Raises:
            NotSupported: the client opens no pages.
        """
        if not self.session.client.opens_pages:
            raise NotSupported(
                "the client opens no pages", hint="look at `session.client.opens_pages`, or send the address as text"
            )
        id = f"{self.session.id}-{self.next_id('page')}"
        question = v1.UrlElicitation(
            message=message, url=url, elicitation_id=id, session_id=self.session.id, tool_call_id=about
        )
        answer = await self.request(m.CREATE_ELICITATION, question, timeout=timeout)
        return PageVisit(self, id, isinstance(answer, v1.Accepted))


def end_turn(turn: UserQuestions) -> None:
    """Let nothing more be sent in a turn, and cancel its requests: it is about to be answered. For code that makes turns."""
    turn._over = True
    for request in tuple(turn._requests):
        request.cancel()


# Whether answers fit their form. What a client sends is not trusted.


def misfits(answers: Mapping[str, ContentValue], form: Form) -> Iterator[str]:
    """Yield what is wrong with the answers, a sentence each. Answers to fields that the form has not are wrong too."""
    for name in form.required or ():
        if name not in answers:
            yield f"`{name}` is missing"
    for name, value in answers.items():
        field = form.properties.get(name)
        if field is None:
            yield f"`{name}` was not asked for"
        elif (wrong := _wrong(value, field)) is not None:
            yield f"`{name}` {wrong}"


def _wrong(value: ContentValue, field: Property) -> str | None:
    match field:
        case StringProperty():
            return _wrong_text(value, field)
        case BooleanProperty():
            return None if isinstance(value, bool) else "is neither true nor false"
        case IntegerProperty():
            whole = isinstance(value, int) and not isinstance(value, bool)
            return _out_of_range(value, field) if whole else "is not a whole number"
        case NumberProperty():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return _out_of_range(value, field) if number else "is not a number"
        case MultiSelectProperty():
            return _wrong_choices(value, field)
        case _:
            return None  # a kind that this version does not know: the caller has to check it


def _wrong_text(value: ContentValue, field: StringProperty) -> str | None:
    if not isinstance(value, str):
        return "is not text"
    offered = field.enum if field.enum is not None else [each.const for each in field.one_of or ()]
    if offered and value not in offered:
        return "is none of the choices"
    if len(value) < (field.min_length or 0):
        return "is too short"
    if field.max_length is not None and len(value) > field.max_length:
        return "is too long"
    return None


def _out_of_range(value: object, field: IntegerProperty | NumberProperty) -> str | None:
    assert isinstance(value, int | float)  # noqa: S101 - both callers looked
    if field.minimum is not None and value < field.minimum:
        return f"is below {field.minimum:g}"
    if field.maximum is not None and value > field.maximum:
        return f"is above {field.maximum:g}"
    return None


def _wrong_choices(value: ContentValue, field: MultiSelectProperty) -> str | None:
    if not isinstance(value, list):
        return "is not a list"
    match field.items:
        case StringItems(enum=offered):
            known = set(offered)
        case TitledItems(any_of=titled):
            known = {each.const for each in titled}
        case _:
            return None
    if not known.issuperset(value):
        return "has a choice that is not on offer"
    few, many = field.min_items or 0, field.max_items if field.max_items is not None else len(value)
    return None if few <= len(value) <= many else "has the wrong number of choices"
