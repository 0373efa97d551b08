"""Questions of the model: a form with all of them, or one after the other for clients without forms."""

from typing import Any

import pytest

from antiphon.agent.questions import is_question
from antiphon.agent.session import watch_updates
from antiphon.engines.claude.questions import CLOSED, DECLINED, UNREADABLE
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1
from tests.agent.editor import FULL
from tests.engines.claude.ask.user import NO_FORMS, User, answer, answer_to, may, text_of
from tests.rows import each_row

COLOUR = {
    "question": "Which colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [{"label": "Red", "description": "like wine"}, {"label": "Blue", "description": "", "preview": "~~~"}],
}
PARTS = {
    "question": "Which parts?",
    "header": "Parts",
    "multiSelect": True,
    "options": [{"label": "Call, the first"}, {"label": "Response"}, {"label": 'The "end"'}],
}
INPUT = {"questions": [COLOUR, PARTS]}
CALL = v1.ToolCallPatch("toolu_1", title="Questions", name="AskUserQuestion")
BOTH = may("AskUserQuestion", input=INPUT, requires_user_interaction=True)
ONE = may("AskUserQuestion", input={"questions": [COLOUR]})


def answers(body: dict[str, Any]) -> dict[str, str]:
    """What was answered; everything else of the input is as it was."""
    assert body["behavior"] == "allow"
    given: dict[str, str] = body["updatedInput"].pop("answers")
    assert body["updatedInput"] == INPUT
    return given


async def test_one_form_asks_everything() -> None:
    user = User(v1.Accepted({"question_1": "Red", "question_2": ["Response"]}))
    assert answers(await answer(BOTH, user, FULL, CALL)) == {"Which colour?": "Red", "Which parts?": "Response"}
    (asked,) = user.asked
    assert asked.tool_call_id == "toolu_1"
    fields = asked.requested_schema.properties
    assert list(fields) == ["question_1", "question_1_other", "question_2", "question_2_other"]
    assert (fields["question_1"].title, fields["question_1"].description) == ("Colour", "Which colour?")
    red, blue = fields["question_1"].one_of
    assert (red.const, red.title, red.description) == ("Red", "Red", "like wine")
    assert blue.meta == {"claudeCode": {"preview": "~~~"}}
    assert [each.const for each in fields["question_2"].items.any_of] == ["Call, the first", "Response", 'The "end"']
    assert asked.requested_schema.required is None


async def test_a_question_alone_is_the_message_of_the_form() -> None:
    user = User(v1.Accepted({"question_1": "Red"}))
    await answer(ONE, user, FULL, CALL)
    asked = user.asked[0]
    assert asked.message == "Which colour?"
    assert asked.requested_schema.properties["question_1"].description is None


@each_row(
    ("content", "given"),
    [
        ({"question_1": "Blue"}, {"Which colour?": "Blue"}),
        ({"question_1_other": " none, really "}, {"Which colour?": "none, really"}),
        ({"question_1": "", "question_1_other": "green"}, {"Which colour?": "green"}),
        ({"question_2": ["Call, the first", "Response"]}, {"Which parts?": '"Call, the first", Response'}),
        ({"question_2": ['The "end"'], "question_2_other": "more"}, {"Which parts?": '"The \\"end\\"", more'}),
        ({"question_2": [], "question_2_other": "ü, ö"}, {"Which parts?": '"ü, ö"'}),
        ({}, {}),
        ({"question_1": 3, "question_2": "Response"}, {"Which parts?": "Response"}),
        ({"somethingElse": "x"}, {}),
    ],
)
async def test_answers_are_labels_or_the_users_own_words(content: dict[str, Any], given: dict[str, str]) -> None:
    assert answers(await answer(BOTH, User(v1.Accepted(content)), FULL, CALL)) == given


async def test_words_beside_a_choice_are_a_note_on_it() -> None:
    user = User(v1.Accepted({"question_1": "Red", "question_1_other": "darkish"}))
    body = await answer(BOTH, user, FULL, CALL)
    assert body["updatedInput"].pop("annotations") == {"Which colour?": {"notes": "darkish"}}
    assert answers(body) == {"Which colour?": "Red"}


@pytest.mark.parametrize(
    ("reply", "message"),
    [(v1.Declined(), DECLINED), (v1.Dismissed(), CLOSED), (v1.Unknown("later", b'{"action":"later"}'), CLOSED)],
)
async def test_a_user_that_does_not_answer_denies_and_the_model_learns_it(reply: Any, message: str) -> None:
    assert await answer(BOTH, User(reply), FULL, CALL) == {"behavior": "deny", "message": message}


async def test_a_client_whose_form_fails_denies() -> None:
    body = await answer(BOTH, User(RequestError(Code.INTERNAL_ERROR, "no window")), FULL, CALL)
    assert body["behavior"] == "deny"
    assert "no window" in body["message"]


@pytest.mark.parametrize("input", [{}, {"questions": []}, {"questions": "?"}, {"questions": [{"question": "?"}]}])
async def test_what_holds_no_question_is_not_asked(input: dict[str, Any]) -> None:
    user = User()
    body = await answer(may("AskUserQuestion", input=input), user, FULL, CALL)
    assert body == {"behavior": "deny", "message": UNREADABLE}
    assert user.asked == []


# Without forms.


def chosen(*ids: str) -> User:
    return User(*(v1.Selected(id) for id in ids))


async def test_without_forms_every_question_is_asked_in_order() -> None:
    user = chosen("option_2", "option_3", "option_1", "done")
    given = answers(await answer(BOTH, user, NO_FORMS, CALL))
    assert given == {"Which colour?": "Blue", "Which parts?": '"The \\"end\\"", "Call, the first"'}
    titles = [each.tool_call.title for each in user.asked]
    assert titles == ["Which colour?", "Which parts?", "Which parts?", "Which parts?"]
    assert {each.tool_call.tool_call_id for each in user.asked} == {"toolu_1"} and all(map(is_question, user.asked))
    assert "**Red**: like wine" in user.shown
    offered = [[option.name for option in each.options] for each in user.asked]
    assert offered == [
        ["Red", "Blue", "None of these"],
        ["Call, the first", "Response", 'The "end"', "None of these"],
        ["Call, the first", "Response", "Done", "None of these"],
        ["Response", "Done", "None of these"],
    ]
    assert text_of(user.asked[2].tool_call).endswith('Chosen so far: The "end"')


async def test_when_everything_is_chosen_there_is_nothing_left_to_ask() -> None:
    user = chosen("none_of_these", "option_1", "option_2", "option_3")
    given = answers(await answer(BOTH, user, NO_FORMS, CALL))
    assert given == {"Which parts?": '"Call, the first", Response, "The \\"end\\""'}


async def test_a_question_may_be_left_out() -> None:
    user = chosen("none_of_these", "option_2", "none_of_these")
    assert await answer(BOTH, user, NO_FORMS, CALL) == {"behavior": "deny", "message": DECLINED}
    user = chosen("option_1", "none_of_these")
    assert answers(await answer(BOTH, user, NO_FORMS, CALL)) == {"Which colour?": "Red"}


async def test_an_answer_that_was_not_on_offer_is_none() -> None:
    for odd in ("Red", "allow_once", "option_9"):
        body = await answer(ONE, chosen(odd), NO_FORMS, CALL)
        assert body == {"behavior": "deny", "message": DECLINED}


async def test_cancelling_one_question_cancels_all() -> None:
    user = User(v1.Cancelled())
    body = await answer(BOTH, user, NO_FORMS, CALL)
    assert (body["behavior"], body["interrupt"], len(user.asked)) == ("deny", True, 1)


async def test_afterwards_the_call_has_its_own_title_again() -> None:
    sent: list[Any] = []

    async def ask(asker: Any, turn: Any) -> Any:
        watch_updates(turn.session, sent.append)
        return await asker.answer(ONE, turn, CALL)

    await answer_to(ask, chosen("option_1"), NO_FORMS)
    assert sent == [v1.ToolCallUpdate("toolu_1", title="Questions")]
