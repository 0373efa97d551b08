"""The CLI asks whether a tool may run: what the user is shown, and what each answer sends the CLI."""

from pathlib import Path
from typing import Any

import pytest

from antiphon.agent.questions import is_question, refusal
from antiphon.engines.claude.questions import CANCELLED_TEXT, NOT_ALLOWED, REJECTED
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1
from tests.agent.editor import FULL
from tests.engines.claude.ask.user import CALL, NO_FORMS, User, answer, answer_to, may, text_of
from tests.rows import each_row

INPUT = {"command": "git init x"}
RULE = {"toolName": "Bash", "ruleContent": "git init *"}
SUGGESTED = [
    {"type": "addRules", "rules": [RULE], "behavior": "allow", "destination": "localSettings"},
    {"type": "addDirectories", "directories": ["/w"], "destination": "session"},
    {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
]


def added(destination: str) -> dict[str, Any]:
    return {"type": "addRules", "rules": [RULE], "behavior": "allow", "destination": destination}


ALWAYS = {"behavior": "allow", "updatedInput": INPUT}


@each_row(
    ("chosen", "sent"),
    [
        ("allow", ALWAYS),
        ("allow_session", {**ALWAYS, "updatedPermissions": [added("session")]}),
        ("allow_project", {**ALWAYS, "updatedPermissions": [added("session")]}),
        ("reject", {"behavior": "deny", "message": REJECTED}),
        ("allow_once", ALWAYS),
        ("allow_always", {"behavior": "deny", "message": NOT_ALLOWED}),
        ("yes", {"behavior": "deny", "message": NOT_ALLOWED}),
        ("", {"behavior": "deny", "message": NOT_ALLOWED}),
    ],
)
async def test_what_the_user_chooses_is_sent_to_the_cli(chosen: str, sent: dict[str, Any]) -> None:
    user = User(v1.Selected(chosen))
    assert await answer(may(permission_suggestions=SUGGESTED), user, NO_FORMS) == sent
    assert user.names == [
        "Allow once",
        "Always allow `git init *` in this session",
        "Always allow `git init *` in this project",
        "Reject",
    ]


async def test_no_answer_changes_the_mode_or_the_directories() -> None:
    for chosen in ("allow", "allow_session", "allow_project"):
        body = await answer(may(permission_suggestions=SUGGESTED), User(v1.Selected(chosen)))
        assert {each["type"] for each in body.get("updatedPermissions", [])} <= {"addRules"}


async def test_a_question_that_is_read_only_in_part_can_be_allowed_once_and_has_the_rejection_first() -> None:
    user = User(v1.Selected("allow"))
    asked = may(permission_suggestions=SUGGESTED, suppress_always_allow_rule="true")
    assert await answer(asked, user, NO_FORMS) == ALWAYS
    assert user.names == ["Reject", "Allow once"]


async def test_without_a_rule_there_is_only_once() -> None:
    user = User(v1.Selected("allow"))
    await answer(may(permission_suggestions=SUGGESTED[1:]), user, NO_FORMS)
    assert user.ids == ["allow", "reject"]


async def test_a_user_of_a_client_with_forms_can_give_a_reason() -> None:
    user = User(v1.Selected("reject_with_message"), v1.Accepted({"words": " use jj instead "}))
    body = await answer(may(), user)
    assert user.ids == ["allow", "reject", "reject_with_message"]
    assert user.asked[0].options[-1].kind is v1.PermissionOptionKind.REJECT_ONCE
    assert user.asked[1].tool_call_id == "toolu_1"
    assert body["behavior"] == "deny"
    assert body["message"].endswith("They said:\nuse jj instead")


@pytest.mark.parametrize(
    "reply",
    [
        v1.Accepted({"words": "  "}),
        v1.Accepted(),
        v1.Accepted({"words": 3}),
        v1.Declined(),
        v1.Dismissed(),
        RequestError(Code.INTERNAL_ERROR, "oh no"),
    ],
)
async def test_a_user_who_gives_no_reason_has_still_rejected_it(reply: Any) -> None:
    body = await answer(may(), User(v1.Selected("reject_with_message"), reply))
    assert body == {"behavior": "deny", "message": REJECTED}


async def test_a_client_without_forms_is_not_offered_to_give_a_reason() -> None:
    user = User(v1.Selected("reject_with_message"))
    body = await answer(may(), user, NO_FORMS)
    assert body == {"behavior": "deny", "message": NOT_ALLOWED}
    assert len(user.asked) == 1


async def test_a_request_that_the_client_cancels_ends_the_turn() -> None:
    body = await answer(may(), User(v1.Cancelled()))
    assert body == {"behavior": "deny", "message": CANCELLED_TEXT, "interrupt": True}


async def test_what_should_not_be_approved_by_accident_has_the_rejection_first() -> None:
    user = User(v1.Selected("reject"))
    await answer(may(permission_suggestions=SUGGESTED, default_to_no=True), user)
    assert user.ids == ["reject", "reject_with_message", "allow", "allow_session", "allow_project"]


@pytest.mark.parametrize(
    ("refusal", "says"),
    [
        (RequestError(Code.METHOD_NOT_FOUND, "Method not found"), "Method not found"),
        (RequestError(Code.INTERNAL_ERROR, "Internal error", {"details": "no window"}), "no window"),
    ],
)
async def test_a_client_that_cannot_ask_allows_nothing(refusal: RequestError, says: str) -> None:
    body = await answer(may(permission_suggestions=SUGGESTED), User(refusal))
    assert body["behavior"] == "deny"
    assert "could not be asked" in body["message"]
    assert says in body["message"]


async def test_an_outcome_of_another_age_allows_nothing() -> None:
    unknown = v1.Unknown("approved", b'{"outcome":"approved","optionId":"allow"}')
    assert await answer(may(), User(unknown)) == {"behavior": "deny", "message": NOT_ALLOWED}


async def test_the_question_shows_the_call_and_the_text_of_the_cli_about_it() -> None:
    diff = v1.Diff("/w/a", "new", "old")
    call = v1.ToolCallPatch(
        "toolu_1", title="Run it", content=[diff], locations=[v1.ToolLocation("/w/a")], raw_input=INPUT
    )
    request = may(
        description="Makes a repository",
        decision_reason="\x1b[1mIt leaves\x1b[0m the directory",
        blocked_path="/elsewhere",
    )
    user = User(v1.Selected("allow"))
    await answer(request, user, call=call)
    asked = user.asked[0].tool_call
    assert (asked.tool_call_id, asked.title, asked.raw_input) == ("toolu_1", "Run it", INPUT)
    assert asked.content[0] == diff
    assert user.shown == "Makes a repository\n\nIt leaves the directory\n\nIt reaches for `/elsewhere`."


async def test_what_the_call_shows_already_is_not_repeated() -> None:
    call = v1.ToolCallPatch("toolu_1", title="Edit a.txt", locations=[v1.ToolLocation("/w/a.txt")])
    request = may(
        "Edit", description="a.txt", blocked_path="/w/a.txt", decision_reason="This command requires approval"
    )
    user = User(v1.Selected("allow"))
    await answer(request, user, call=call)
    assert user.asked[0].tool_call == call


async def test_a_sub_agent_that_asks_is_named() -> None:
    call = v1.ToolCallPatch("toolu_1", title="git init x", meta={"claudeCode": {"toolName": "Bash"}, "x": 1})
    user = User(v1.Selected("allow"))
    await answer(may(agent_id="a17"), user, call=call)
    asked = user.asked[0].tool_call
    assert asked.meta == {"claudeCode": {"toolName": "Bash", "agentId": "a17"}, "x": 1}
    assert text_of(asked) == "A sub-agent asks (`a17`)."


async def test_what_a_policy_refuses_is_not_attributed_to_the_user() -> None:
    user = User(v1.PermissionResult(v1.Selected("reject"), meta=refusal("The rule `Bash` denies it.")))
    body = await answer(may(), user)
    assert body["behavior"] == "deny" and "interrupt" not in body and "user" not in body["message"]
    assert body["message"].endswith("The rule `Bash` denies it.") and not is_question(user.asked[0])
    allowed = User(v1.PermissionResult(v1.Selected("allow"), meta=refusal("a contradiction")))
    assert (await answer(may(), allowed))["behavior"] == "allow"


async def test_rules_too_long_for_a_button_are_listed_above_it() -> None:
    rules = [{"toolName": "Bash", "ruleContent": f"make target-number-{number} *"} for number in range(8)]
    suggested = [{"type": "addRules", "rules": rules, "behavior": "allow", "destination": "session"}]
    user = User(v1.Selected("allow_session"))
    body = await answer(may(permission_suggestions=suggested), user, FULL, CALL)
    assert user.names[1] == "Always allow what is listed above in this session"
    assert all(f"- `{rule['ruleContent']}`" in user.shown for rule in rules)
    assert body["updatedPermissions"][0]["rules"] == rules


async def test_edits_are_allowed_where_the_directory_really_is(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    request = may("Write", input={"file_path": f"{real}/a"}, permission_suggestions=SUGGESTED[2:])
    user = User(v1.Selected("allow_session"))
    body = await answer_to(lambda asker, turn: asker.answer(request, turn, CALL), user, cwd=str(link))
    (update,) = body["updatedPermissions"]
    assert update["rules"] == [{"toolName": "Edit", "ruleContent": f"/{real}/**"}]
    assert user.names[1] == f"Always allow edits in `{real}` in this session"
