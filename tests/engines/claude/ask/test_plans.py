"""The plan is shown; the user stays, goes on with questions, or goes on without."""

from typing import Any

import pytest

from antiphon.agent.questions import is_question
from antiphon.engines.claude.questions import STAYS
from antiphon.protocol import v1
from tests.agent.editor import FULL
from tests.engines.claude.ask.user import NO_FORMS, User, answer, may

INPUT = {"plan": "# Plan\n\n1. sing", "planFilePath": "/home/p.md"}
CALL = v1.ToolCallPatch("toolu_1", title="Ready to code?", kind=v1.ToolKind.SWITCH_MODE)
PLAN = may("ExitPlanMode", input=INPUT, requires_user_interaction=True)


def goes_on(mode: str) -> dict[str, Any]:
    update = {"type": "setMode", "mode": mode, "destination": "session"}
    return {"behavior": "allow", "updatedInput": INPUT, "updatedPermissions": [update]}


@pytest.mark.parametrize(
    ("reply", "sent"),
    [
        (v1.Selected("accept_edits"), goes_on("acceptEdits")),
        (v1.Selected("ask_for_edits"), goes_on("default")),
        (v1.Selected("allow_once"), goes_on("default")),
        (v1.Selected("keep_planning"), {"behavior": "deny", "message": STAYS}),
        (v1.Selected("bypassPermissions"), {"behavior": "deny", "message": STAYS}),
    ],
)
async def test_the_answer_sets_the_mode_or_stays(reply: v1.PermissionOutcome, sent: dict[str, Any]) -> None:
    user = User(reply)
    assert await answer(PLAN, user, NO_FORMS, CALL) == sent
    assert user.shown == INPUT["plan"]
    assert user.ids == ["accept_edits", "ask_for_edits", "keep_planning"] and is_question(user.asked[0])


async def test_a_question_that_is_read_only_in_part_offers_nothing_that_lasts() -> None:
    user = User(v1.Selected("accept_edits"))
    asked = may("ExitPlanMode", input=INPUT, requires_user_interaction="yes")
    assert await answer(asked, user, NO_FORMS, CALL) == {"behavior": "deny", "message": STAYS}
    assert user.ids == ["ask_for_edits", "keep_planning"]


async def test_the_user_may_write_what_to_change() -> None:
    user = User(v1.Selected("change_plan"), v1.Accepted({"words": "add tests"}))
    body = await answer(PLAN, user, FULL, CALL)
    assert body["behavior"] == "deny"
    assert body["message"].endswith("They said:\nadd tests")
    assert user.ids[-1] == "change_plan"


async def test_without_an_answer_plan_mode_stays() -> None:
    user = User(v1.Selected("change_plan"), v1.Declined())
    assert await answer(PLAN, user, FULL, CALL) == {"behavior": "deny", "message": STAYS}


async def test_the_question_may_be_cancelled() -> None:
    body = await answer(PLAN, User(v1.Cancelled()), FULL, CALL)
    assert (body["behavior"], body["interrupt"]) == ("deny", True)


@pytest.mark.parametrize("input", [{}, {"plan": "  "}, {"plan": 3}])
async def test_a_plan_that_is_not_there_is_reported_as_missing(input: dict[str, Any]) -> None:
    user = User(v1.Selected("keep_planning"))
    await answer(may("ExitPlanMode", input=input), user, FULL, CALL)
    assert user.shown == "There is no plan yet."
