"""The agent asks for more than its sandbox allows."""

from typing import Any

import pytest

from antiphon.engines.codex.approvals.asker import described
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1
from tests.engines.codex.approvals.user import PERMISSIONS, User, answer, asks

WANTED: dict[str, Any] = {
    "network": {"enabled": True},
    "fileSystem": {
        "read": ["/etc"],
        "write": ["/out"],
        "entries": [
            {"path": {"type": "path", "path": "/etc"}, "access": "read"},
            {"path": {"type": "path", "path": "/out"}, "access": "write"},
        ],
    },
}
ASKED = asks(PERMISSIONS, cwd="/w", reason="To fetch it", permissions=WANTED)
NOTHING = {"permissions": {}, "scope": "turn"}


@pytest.mark.parametrize(
    ("reply", "body"),
    [
        (v1.Selected("allow_turn"), {"permissions": WANTED, "scope": "turn"}),
        (v1.Selected("allow_session"), {"permissions": WANTED, "scope": "session"}),
        (v1.Selected("reject"), NOTHING),
        (v1.Selected("allow"), NOTHING),
        (v1.Cancelled(), NOTHING),
        (RequestError(Code.METHOD_NOT_FOUND, "Method not found"), NOTHING),
    ],
)
async def test_what_was_shown_is_granted_or_nothing(reply: Any, body: dict[str, Any]) -> None:
    user = User(reply)
    assert await answer(ASKED, user, call=None) == body
    assert user.names == ["Allow in this turn", "Allow in this session", "Reject"]
    assert user.shown == "- Use the network\n- Read `/etc`\n- Read and write `/out`\nTo fetch it"


async def test_the_question_is_a_call_of_its_own_that_ends() -> None:
    user = User(v1.Selected("allow_turn"))
    await answer(ASKED, user, call=None)
    assert [each["toolCallId"] for each in user.updates_of("tool_call")] == ["call_1"]
    assert [each["status"] for each in user.updates_of("tool_call_update")] == ["completed"]


@pytest.mark.parametrize("permissions", [{}, {"network": None, "fileSystem": None}, {"network": {"enabled": False}}])
async def test_a_request_for_nothing_is_granted_without_asking(permissions: dict[str, Any]) -> None:
    user = User()
    assert await answer(asks(PERMISSIONS, cwd="/w", permissions=permissions), user, call=None) == NOTHING
    assert user.asked == []


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ({"type": "glob_pattern", "pattern": "/w/*.py"}, "Read `/w/*.py`"),
        ({"type": "special", "value": {"kind": "root"}}, "Read all files of this machine"),
        ({"type": "special", "value": {"kind": "project_roots", "subpath": "src"}}, "Read `src` in the project"),
        ({"type": "special", "value": {"kind": "slash_tmp"}}, "Read `/tmp`"),
    ],
)
def test_every_place_has_words(path: dict[str, Any], line: str) -> None:
    assert described({"fileSystem": {"entries": [{"path": path, "access": "read"}]}}) == [line]


@pytest.mark.parametrize(
    "permissions",
    [
        {"camera": {"front": True}},
        {"network": {"enabled": True, "front": True}},
        {"fileSystem": {"front": True}},
        {"fileSystem": {"entries": [{"access": "front", "path": {"type": "path", "path": "/"}}]}},
        {"fileSystem": {"entries": [{"access": "read", "path": {"type": "special", "value": {"kind": "front"}}}]}},
        {"fileSystem": {"entries": ["front"]}},
    ],
)
def test_what_there_are_no_words_for_is_shown_as_it_is(permissions: dict[str, Any]) -> None:
    (line,) = described(permissions)
    assert "```json" in line
    assert "front" in line
