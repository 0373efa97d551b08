"""Handlers of permission and questions: what they may answer, and how it is read."""

import asyncio
from typing import Any

import pytest

from antiphon.client.handlers import Elicitation, allow_always, allow_once, outcome_of, reject
from antiphon.errors import RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.permission import PermissionOptionKind as Kind
from tests.client.talker import END, Talker
from tests.rows import each_row

FORM = v1.FormElicitation(message="Name?", requested_schema=v1.Form(), session_id="s")
PAGE = v1.UrlElicitation(message="Sign in", elicitation_id="e", url="https://example.com", session_id="s")


def question(*options: tuple[str, str]) -> v1.RequestPermission:
    listed = [v1.PermissionOption(id, id, Kind(kind)) for id, kind in options]
    return v1.RequestPermission("s", v1.ToolCallPatch("t"), listed)


ALL = question(("A", "allow_always"), ("N", "reject_always"), ("n", "reject_once"), ("a", "allow_once"))
# An option whose id is the word for another one's kind.
TRAP = question(("reject_once", "allow_once"), ("allow_once", "reject_once"))


@each_row(
    ("answer", "asked", "chosen"),
    [
        (True, ALL, "a"),
        (False, ALL, "n"),
        ("A", ALL, "A"),
        ("allow_once", ALL, "a"),
        (Kind.REJECT_ALWAYS, ALL, "N"),
        (v1.Selected("N"), ALL, "N"),
        (v1.Selected("allow_always"), ALL, "A"),
        ("allow_once", TRAP, "allow_once"),
        (True, TRAP, "reject_once"),
        (v1.Cancelled(), ALL, None),
        ("nobody", ALL, "n"),
        (v1.Selected("nobody"), ALL, "n"),
        (None, ALL, "n"),
        (7, ALL, "n"),
        (v1.Unknown("maybe", b'{"outcome":"maybe"}'), ALL, "n"),
        (True, question(("A", "allow_always"), ("n", "reject_once")), "n"),
        (True, question(("n", "reject_once")), "n"),
        (True, question(), None),
        (False, question(("a", "allow_once")), None),
        (False, question(("x", "allow_forever")), None),
        ("allow_forever", question(("x", "allow_forever"), ("n", "reject_once")), "n"),
        ("x", question(("x", "allow_forever"), ("n", "reject_once")), "x"),
    ],
)
def test_an_answer_is_read_by_id_then_by_kind_and_never_too_generously(
    answer: object, asked: v1.RequestPermission, chosen: str | None
) -> None:
    outcome = outcome_of(answer, asked)
    assert outcome == (v1.Cancelled() if chosen is None else v1.Selected(chosen))


def test_the_ready_made_answers() -> None:
    assert [handler(ALL) for handler in (allow_once, allow_always, reject)] == [
        v1.Selected("a"),
        v1.Selected("A"),
        v1.Selected("n"),
    ]
    only_always = question(("A", "allow_always"), ("N", "reject_always"))
    assert allow_once(only_always) == v1.Selected("N")
    assert allow_always(question(("a", "allow_once"))) == v1.Selected("a")


async def asked_in_a_turn(request: v1.RequestPermission | v1.CreateElicitation, **handlers: Any) -> object:
    """What the agent gets for this question."""
    talker = Talker()
    answers: list[object] = []

    async def prompt(_: v1.Prompt) -> v1.PromptResult:
        assert talker.connection is not None
        if isinstance(request, v1.RequestPermission):
            answers.append((await talker.connection.request(m.REQUEST_PERMISSION, request)).outcome)
        else:
            answer = await talker.connection.request(m.CREATE_ELICITATION, request)
            answers.append(answer)
        return END

    talker.router.on_request(m.PROMPT, prompt)
    async with talker.connect(**handlers) as agent:
        await (await agent.new_session()).prompt("hi")
    return answers[0]


async def test_handlers_may_be_plain_or_async() -> None:
    async def later(_: v1.RequestPermission) -> str:
        await asyncio.sleep(0)
        return "A"

    assert await asked_in_a_turn(ALL, permission=later) == v1.Selected("A")
    assert await asked_in_a_turn(ALL, permission=lambda _: "a") == v1.Selected("a")


async def test_a_permission_handler_that_fails_grants_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RequestRefused):
        await asked_in_a_turn(ALL, permission=lambda _: 1 / 0)
    assert "ZeroDivisionError" in caplog.text


async def test_questions_to_the_user_are_declined_without_a_handler() -> None:
    def form(asked: v1.FormElicitation) -> v1.Accepted:
        return v1.Accepted({"name": asked.message})

    async def both(asked: v1.FormElicitation | v1.UrlElicitation) -> v1.Accepted | v1.Dismissed:
        return v1.Accepted() if isinstance(asked, v1.UrlElicitation) else v1.Dismissed()

    assert await asked_in_a_turn(FORM) == v1.Declined()
    assert await asked_in_a_turn(FORM, elicitation=Elicitation(form=form)) == v1.Accepted({"name": "Name?"})
    assert await asked_in_a_turn(PAGE, elicitation=Elicitation(form=form)) == v1.Declined()
    assert await asked_in_a_turn(PAGE, elicitation=both) == v1.Accepted()
    assert await asked_in_a_turn(FORM, elicitation=both) == v1.Dismissed()
    with pytest.raises(RequestRefused):
        await asked_in_a_turn(FORM, elicitation=lambda _: "yes")


async def test_the_end_of_a_page_reaches_its_handler() -> None:
    talker = Talker()
    done: asyncio.Queue[str] = asyncio.Queue()
    asking = Elicitation(url=lambda _: v1.Accepted(), completed=done.put_nowait)
    async with talker.connect(elicitation=asking):
        assert talker.connection is not None
        await talker.connection.notify(m.COMPLETE_ELICITATION, v1.CompleteElicitation("e"))
        assert await done.get() == "e"


async def test_a_question_that_ignores_its_release_does_not_hold_up_the_answer() -> None:
    talker = Talker()
    asked, let_go = asyncio.Event(), asyncio.Event()
    outcomes: list[object] = []

    async def stubborn(_: v1.RequestPermission) -> bool:
        asked.set()
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        return True

    async def prompt(_: v1.Prompt) -> v1.PromptResult:
        assert talker.connection is not None
        outcomes.append((await talker.connection.request(m.REQUEST_PERMISSION, ALL)).outcome)
        return v1.PromptResult(v1.StopReason.CANCELLED)

    talker.router.on_request(m.PROMPT, prompt)
    async with talker.connect(permission=stubborn) as agent:
        session = await agent.new_session()
        turn = session.prompt("hi")
        await asked.wait()
        assert (await turn.cancel()).stop_reason == v1.StopReason.CANCELLED
        assert outcomes == [v1.Cancelled()]
        let_go.set()


async def test_a_handler_gets_all_that_is_known_of_the_call_and_the_transcript_keeps_the_order() -> None:
    """Also when the announcement still waits to be read, as everything does that comes right before the question."""
    asked: list[v1.ToolCallPatch] = []
    place = v1.ToolLocation("/a.txt", 3)
    announced = v1.ToolCall("t", "Edit a.txt", v1.ToolKind.EDIT, locations=[place], raw_input={"path": "/a.txt"})
    agent_side = Talker(v1.AgentMessageChunk(v1.TextBlock("I begin.")), announced)

    def permission(request: v1.RequestPermission) -> bool:
        asked.append(request.tool_call)
        return True

    async def prompt(request: v1.Prompt) -> v1.PromptResult:
        assert agent_side.connection is not None
        await agent_side.send(request.session_id, *agent_side.updates)
        question = v1.RequestPermission(request.session_id, v1.ToolCallPatch("t"), ALL.options)
        await agent_side.connection.request(m.REQUEST_PERMISSION, question)
        return END

    agent_side.router.on_request(m.PROMPT, prompt)
    async with asyncio.timeout(10), agent_side.connect(permission=permission) as agent:
        session = await agent.new_session("/")
        await session.prompt("go")
        assert session.transcript.plain().splitlines() == ["> go", "I begin.", "[pending] Edit a.txt"]
    (call,) = asked
    assert (call.kind, call.title, call.locations) == (v1.ToolKind.EDIT, "Edit a.txt", [place])
    assert call.raw_input == {"path": "/a.txt"}
