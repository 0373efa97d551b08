"""Questions of the model: a form with all of them, or one after the other for clients without forms."""

from typing import Any

import pytest

from antiphon.agent.questions import is_question
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1
from tests.agent.editor import FULL
from tests.engines.codex.approvals.user import NO_FORMS, QUESTIONS, User, answer, asks

COLOUR = {
    "id": "colour", "header": "Colour", "question": "Which colour?", "isOther": True, "isSecret": False,
    "options": [{"label": "Red", "description": "like wine"}, {"label": "Blue", "description": ""}],
}  # fmt: skip
SIZE = {
    "id": "size", "header": "Size", "question": "How big?",
    "options": [{"label": "S", "description": "small"}, {"label": "L", "description": "large"}],
}  # fmt: skip
TOKEN = {"id": "token", "header": "Token", "question": "Which token?", "isSecret": True, "options": None}
ALL = asks(QUESTIONS, questions=[COLOUR, SIZE, TOKEN], isBlocking=True)


async def test_one_form_asks_everything() -> None:
    user = User(v1.Accepted({"question_1": "Red", "question_2": "S", "question_3": "hush"}))
    assert await answer(ALL, user, call=None) == {
        "answers": {"colour": {"answers": ["Red"]}, "size": {"answers": ["S"]}, "token": {"answers": ["hush"]}}
    }
    (asked,) = user.asked
    assert asked.message == "Codex has 3 questions."
    fields = asked.requested_schema.properties
    assert list(fields) == ["question_1", "question_1_other", "question_2", "question_3"]
    assert (fields["question_1"].title, fields["question_1"].description) == ("Colour", "Which colour?")
    assert [(each.const, each.description) for each in fields["question_1"].one_of] == [
        ("Red", "like wine"),
        ("Blue", None),
    ]
    assert (fields["question_3"].title, fields["question_3"].meta) == ("Token (secret)", {"secret": True})
    assert asked.requested_schema.required is None


@pytest.mark.parametrize(
    ("content", "answers"),
    [
        ({"question_1_other": " green "}, {"colour": {"answers": ["green"]}}),
        ({"question_1": "Red", "question_1_other": "darkish"}, {"colour": {"answers": ["Red", "user_note: darkish"]}}),
        ({"question_2_other": "XXL"}, {"size": {"answers": ["XXL"]}}),
        ({"question_3": " "}, {}),
        ({}, {}),
        ({"question_1": 7, "other": "x"}, {}),
    ],
)
async def test_answers_are_labels_or_the_users_own_words(content: dict[str, Any], answers: dict[str, Any]) -> None:
    assert await answer(ALL, User(v1.Accepted(content)), call=None) == {"answers": answers}


@pytest.mark.parametrize("reply", [v1.Declined(), v1.Dismissed(), RequestError(Code.INTERNAL_ERROR, "no window")])
async def test_a_user_who_does_not_answer_gives_no_answers(reply: Any) -> None:
    assert await answer(ALL, User(reply), call=None) == {"answers": {}}


async def test_without_forms_every_question_with_choices_is_asked_in_order() -> None:
    user = User(v1.Selected("option_2"), v1.Selected("none_of_these"))
    assert await answer(ALL, user, NO_FORMS, None) == {"answers": {"colour": {"answers": ["Blue"]}}}
    assert [each.tool_call.title for each in user.asked] == ["Which colour?", "How big?"]
    assert user.names == ["Red", "Blue", "None of these"] and all(map(is_question, user.asked))
    assert "**Red**: like wine" in user.shown
    assert [each["toolCallId"] for each in user.updates_of("tool_call")] == ["call_1"]
    assert user.updates_of("tool_call_update")[-1]["status"] == "completed"


@pytest.mark.parametrize("chosen", ["none_of_these", "Red", "allow_once"])
async def test_without_an_answer_the_call_of_the_questions_fails(chosen: str) -> None:
    user = User(v1.Selected(chosen), v1.Selected(chosen))
    assert await answer(ALL, user, NO_FORMS, None) == {"answers": {}}
    assert user.updates_of("tool_call_update")[-1]["status"] == "failed"


async def test_a_client_without_forms_is_shown_what_could_not_be_asked() -> None:
    user = User()
    assert await answer(asks(QUESTIONS, questions=[TOKEN]), user, NO_FORMS, None) == {"answers": {}}
    assert user.asked == []
    assert "no choices" in str(user.updates_of("agent_message_chunk"))


async def test_no_questions_have_no_answers() -> None:
    assert await answer(asks(QUESTIONS, questions=[]), User(), FULL, None) == {"answers": {}}
