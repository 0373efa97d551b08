"""Questions to the user: forms, choices, pages; and what a client cannot show."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from antiphon.agent.questions import is_question
from antiphon.agent.turn import AgentTurn
from antiphon.connection.router import Router
from antiphon.errors import NotSupported, RemoteProtocolError, RequestError, RequestRefused, RequestTimeout
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import FULL, only_prompt, playing
from tests.rows import each_row

Question = v1.FormElicitation | v1.UrlElicitation | v1.Unknown


class User:
    """Answers every question the same way, and remembers what was asked."""

    def __init__(self, answer: "v1.CreateElicitationResult | v1.PermissionOutcome") -> None:
        self.asked: list[Any] = []
        self.completed: list[str] = []
        self.router = Router()
        self.router.on_request(m.CREATE_ELICITATION, lambda asked: self._note(asked, answer))  # type: ignore[arg-type, return-value]
        self.router.on_request(
            m.REQUEST_PERMISSION,
            lambda asked: self._note(asked, v1.PermissionResult(answer)),  # type: ignore[arg-type, return-value]
        )
        self.router.on_notice(
            m.COMPLETE_ELICITATION, lambda notification: self.completed.append(notification.elicitation_id)
        )

    def _note(self, asked: object, answer: object) -> object:
        self.asked.append(asked)
        return answer


async def outcome(
    ask: "Callable[[AgentTurn], Any]", user: User, capabilities: v1.ClientCapabilities | None = FULL
) -> object:
    """What a turn received."""
    received: list[object] = []

    async def prompt(turn: AgentTurn) -> None:
        received.append(await ask(turn))

    async with playing(only_prompt(prompt), capabilities, user.router) as editor:
        await editor.turn()
    return received[0]


@pytest.mark.parametrize(
    ("answer", "received"),
    [
        (v1.Accepted({"name": "x", "age": 3}), {"name": "x", "age": 3}),
        (v1.Accepted({"name": "x"}), {"name": "x"}),
        (v1.Declined(), None),
        (v1.Dismissed(), None),
    ],
)
async def test_a_form_gives_what_was_filled_in_or_nothing(answer: v1.CreateElicitationResult, received: object) -> None:
    user = User(answer)
    fields: dict[str, v1.Property] = {
        "name": v1.StringProperty("Name"),
        "age": v1.IntegerProperty("Age", default=7),
        "sure": v1.BooleanProperty("Sure", default=False),
    }
    assert await outcome(lambda turn: turn.ask("Who?", None, about="call-1", timeout=None, **fields), user) == received
    (asked,) = user.asked
    assert (asked.message, asked.tool_call_id) == ("Who?", "call-1")
    assert asked.requested_schema == v1.Form(properties=fields, required=["name"])


@pytest.mark.parametrize("answer", [v1.Accepted(), v1.Accepted({"name": 5}), v1.Accepted({"name": "x", "age": 3})])
async def test_answers_that_do_not_fit_the_form_are_not_believed(answer: v1.Accepted) -> None:
    async def ask(turn: AgentTurn) -> str:
        with pytest.raises(RemoteProtocolError, match="do not fit the form") as wrong:
            await turn.ask("Who?", name=v1.StringProperty("Name"))
        return str(wrong.value)

    assert "`" in str(await outcome(ask, User(answer)))


async def test_a_form_may_be_given_whole() -> None:
    user = User(v1.Accepted({}))
    form = v1.Form(title="T", properties={"a": v1.NumberProperty()})
    assert await outcome(lambda turn: turn.ask("?", form), user) == {}
    assert user.asked[0].requested_schema == form


NO_FORMS = v1.ClientCapabilities(elicitation=v1.ElicitationCapabilities(url=v1.UrlSupport()))
NO_PAGES = v1.ClientCapabilities(elicitation=v1.ElicitationCapabilities(form=v1.FormSupport()))


@pytest.mark.parametrize(
    ("capabilities", "ask", "says"),
    [
        (None, lambda turn: turn.ask("?", a=v1.StringProperty()), "shows no forms\nhint: .*`choose` works without"),
        (NO_FORMS, lambda turn: turn.ask("?", a=v1.StringProperty()), "shows no forms"),
        (None, lambda turn: turn.visit("?", "https://example.com"), "opens no pages\nhint: "),
        (NO_PAGES, lambda turn: turn.visit("?", "https://example.com"), "opens no pages"),
    ],
)
async def test_a_client_that_cannot_show_it_is_not_asked(
    capabilities: v1.ClientCapabilities | None, ask: "Callable[[AgentTurn], Any]", says: str
) -> None:
    user = User(v1.Accepted({}))

    async def refused(turn: AgentTurn) -> None:
        with pytest.raises(NotSupported, match=says):
            await ask(turn)

    await outcome(refused, user, capabilities)
    assert user.asked == []


CHOICES: "list[Any]" = [["a", "b"], {"a": "The A", "b": "The B"}]


@each_row("choices", CHOICES, ids=["words", "titles"])
@each_row(
    ("answer", "picked"),
    [
        (v1.Accepted({"choice": "b"}), "b"),
        (v1.Accepted({"choice": "c"}), None),
        (v1.Accepted({"choice": 1}), None),
        (v1.Accepted(), None),
        (v1.Declined(), None),
    ],
)
async def test_a_choice_by_form(choices: Any, answer: v1.CreateElicitationResult, picked: str | None) -> None:
    user = User(answer)
    assert await outcome(lambda turn: turn.choose("Which?", choices), user) == picked
    offered = user.asked[0].requested_schema.properties["choice"].one_of
    assert [each.const for each in offered] == ["a", "b"]


@pytest.mark.parametrize(
    ("answer", "picked"),
    [
        (v1.Selected("a"), "a"),
        (v1.Selected("none"), "none"),
        (v1.Selected("_none_of_these"), None),
        (v1.Selected("allow_once"), None),
        (v1.Selected("reject_once"), None),
        (v1.Cancelled(), None),
    ],
)
async def test_a_choice_for_clients_without_forms(answer: v1.PermissionOutcome, picked: str | None) -> None:
    user = User(answer)
    assert await outcome(lambda turn: turn.choose("Which?", ["a", "none"]), user, None) == picked
    (asked,) = user.asked
    assert asked.tool_call.title == "Which?" and is_question(asked)
    assert [option.name for option in asked.options] == ["a", "none", "None of these"]


@pytest.mark.parametrize(("answer", "agreed"), [(v1.Accepted(), True), (v1.Declined(), False)])
async def test_a_page_is_opened_and_completed(answer: v1.CreateElicitationResult, agreed: bool) -> None:
    user = User(answer)

    async def ask(turn: AgentTurn) -> tuple[bool, bool]:
        first = await turn.visit("Sign in", "https://example.com/a", about="call-1")
        second = await turn.visit("Sign in", "https://example.com/b")
        await first.complete()
        return bool(first), bool(second)

    assert await outcome(ask, user) == (agreed, agreed)
    first, second = user.asked
    assert (first.url, first.message, first.tool_call_id) == ("https://example.com/a", "Sign in", "call-1")
    assert first.elicitation_id != second.elicitation_id
    assert user.completed == [first.elicitation_id]


async def test_a_page_may_be_done_after_the_turn() -> None:
    user, kept = User(v1.Accepted()), list[Any]()

    async def prompt(turn: AgentTurn) -> None:
        kept.append(await turn.visit("Sign in", "https://example.com"))

    async with playing(only_prompt(prompt), FULL, user.router) as editor:
        await editor.turn()
        await kept[0].complete()
        await editor.until("elicitation/complete")
    assert len(user.completed) == 1


@each_row("end", ["cancelled", "withdrawn", "refused", "in vain", "unanswered"])
@each_row("verb", ["choose", "permitted"])
async def test_a_call_that_a_question_is_about_ends_however_the_question_ends(verb: str, end: str) -> None:
    asked = asyncio.Event()

    async def prompt(turn: AgentTurn) -> None:
        timeout = 0.01 if end == "unanswered" else None
        with suppress(RequestRefused, RequestTimeout):
            if verb == "choose":
                await turn.choose("Which?", ["a", "b"], timeout=timeout)
            else:
                async with turn.tool("Dangerous") as call:
                    await call.permitted(timeout=timeout)

    async def answer(request: v1.RequestPermission) -> v1.PermissionResult:
        asked.set()
        if end == "refused":
            raise RequestError(-32000, "not now")
        if end != "in vain":
            await asyncio.Event().wait()
        return v1.PermissionResult(v1.Cancelled())

    router = Router()
    router.on_request(m.REQUEST_PERMISSION, answer)
    async with playing(only_prompt(prompt), None, router) as editor:
        session = await editor.open()
        turn = editor.prompt(session)
        await asked.wait()
        if end == "cancelled":
            editor.cancel(session)
        if end == "withdrawn":
            turn.cancel()
        await asyncio.wait([turn])
        await editor.until(lambda: any("prompt" in word for word in editor.order))
        assert editor.updates()[-1].get("status") == "failed", editor.order
