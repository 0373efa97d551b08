"""The server asks whether files may be changed."""

from typing import Any

import pytest

from antiphon.protocol import v1
from tests.engines.codex.approvals.user import CHANGES, OLD_CHANGES, User, answer, asks

ONE = v1.ToolCallPatch("call_1", title="Edit a.py", kind=v1.ToolKind.EDIT, content=[v1.Diff("/w/a.py", "new", "old")])
TWO = v1.ToolCallPatch("call_1", content=[v1.Diff("/w/a.py", "new"), v1.Diff("/x/b.py", "new")])


@pytest.mark.parametrize(
    ("reply", "decision"),
    [
        (v1.Selected("allow"), "accept"),
        (v1.Selected("allow_session"), "acceptForSession"),
        (v1.Selected("allow_always"), "acceptForSession"),
        (v1.Selected("reject"), "decline"),
        (v1.Selected("reject_and_stop"), "cancel"),
        (v1.Selected("yes"), "decline"),
        (v1.Cancelled(), "cancel"),
    ],
)
async def test_what_the_user_chooses_is_what_is_decided(reply: Any, decision: str) -> None:
    user = User(reply)
    assert await answer(asks(CHANGES), user, call=ONE) == {"decision": decision}
    assert user.names == [
        "Allow once",
        "Always allow changes to `a.py` in this session",
        "Reject",
        "Reject and stop",
    ]


async def test_the_diff_is_that_of_the_call_and_the_reason_stands_below() -> None:
    user = User(v1.Selected("allow"))
    await answer(asks(CHANGES, reason="It is broken"), user, call=ONE)
    diff, reason = user.asked[0].tool_call.content
    assert diff == v1.Diff("/w/a.py", "new", "old")
    assert reason.content.text == "It is broken"


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (TWO, "Always allow changes to these 2 files in this session"),
        (
            v1.ToolCallPatch("call_1", locations=[v1.ToolLocation("/w/a`b")]),
            "Always allow changes to this file in this session",
        ),
    ],
)
async def test_it_is_the_files_that_are_remembered(call: v1.ToolCallPatch, name: str) -> None:
    user = User(v1.Selected("reject"))
    await answer(asks(CHANGES), user, call=call)
    assert user.names[1] == name


async def test_a_directory_that_is_asked_for_is_named() -> None:
    user = User(v1.Selected("allow_session"))
    assert await answer(asks(CHANGES, grantRoot="/data"), user, call=ONE) == {"decision": "acceptForSession"}
    assert user.names[1] == "Always allow changes in `/data` in this session"
    assert "It asks to write anywhere in `/data` for the rest of the session." in user.shown


OLD = asks(
    OLD_CHANGES,
    fileChanges={
        "/w/a.py": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-old\n+new\n"},
        "/w/b.py": {"type": "add", "content": "text\n"},
    },
    reason=None,
)


@pytest.mark.parametrize(
    ("chosen", "decision"),
    [("allow", "approved"), ("allow_session", "approved_for_session"), ("reject_and_stop", "abort")],
)
async def test_the_older_protocol_gets_its_own_words(chosen: str, decision: str) -> None:
    user = User(v1.Selected(chosen))
    assert await answer(OLD, user, call=TWO) == {"decision": decision}
    assert user.names[1] == "Always allow changes to these 2 files in this session"


async def test_an_older_question_that_is_rejected_is_denied() -> None:
    body = await answer(OLD, User(v1.Selected("approved")), call=TWO)
    assert list(body["decision"]) == ["denied"]


@pytest.mark.parametrize("call", [None, v1.ToolCallPatch("call_1", title="Change files")])
@pytest.mark.parametrize("root", [None, "/data"])
async def test_changes_without_an_item_are_never_allowed_for_good(call: Any, root: str | None) -> None:
    user = User(v1.Selected("allow"))
    assert await answer(asks(CHANGES, grantRoot=root), user, call=call) == {"decision": "accept"}
    assert user.ids == ["allow", "reject", "reject_and_stop"]
    assert "Codex does not report which files would be changed" in user.shown and (root is None or root in user.shown)


async def test_changes_without_an_item_are_shown_with_the_question() -> None:
    user = User(v1.Selected("allow"))
    await answer(asks(CHANGES), user, call=None)
    assert user.updates_of("tool_call")[0]["kind"] == "edit"
    assert [each["status"] for each in user.updates_of("tool_call_update")] == ["completed"]
