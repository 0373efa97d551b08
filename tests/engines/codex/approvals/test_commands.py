"""The server asks whether a command may run: what the user is shown, and what each answer decides."""

from typing import Any

import pytest

from antiphon.agent.questions import is_question, refusal
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1
from tests.agent.editor import FULL
from tests.engines.codex.approvals.user import CALL, COMMAND, NO_FORMS, OLD_COMMAND, User, answer, asks
from tests.rows import each_row

PREFIX = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["touch", "x"]}}
PLAIN = asks(
    COMMAND,
    kind="command",
    reason="May I run this?",
    command="/bin/bash -lc 'touch x'",
    cwd="/w",
    commandActions=[{"type": "unknown", "command": "touch x"}],
    proposedExecpolicyAmendment=["touch", "x"],
    availableDecisions=["accept", PREFIX, "cancel"],
)
NETWORK: dict[str, Any] = {"networkApprovalContext": {"host": "x.example", "protocol": "https"}}
HOST_RULES = [{"host": "x.example", "action": "allow"}, {"host": "x.example", "action": "deny"}]


@each_row(
    ("chosen", "decision"),
    [
        ("allow", "accept"),
        ("allow_session", "acceptForSession"),
        ("allow_always_prefix", PREFIX),
        ("reject", "decline"),
        ("reject_and_stop", "cancel"),
        ("allow_once", "accept"),
        ("allow_always", "decline"),
        ("reject_once", "decline"),
        ("accept", "decline"),
        ("", "decline"),
    ],
)
async def test_what_the_user_chooses_is_what_is_decided(chosen: str, decision: Any) -> None:
    user = User(v1.Selected(chosen))
    assert await answer(PLAIN, user) == {"decision": decision}
    assert user.names == [
        "Allow once",
        "Always allow this command in this session",
        "Always allow commands that begin with `touch x`, in all projects",
        "Reject",
        "Reject and stop",
    ]
    assert user.asked[0].tool_call.tool_call_id == "call_1"


async def test_the_options_are_of_the_kind_that_they_are() -> None:
    user = User(v1.Selected("reject"))
    await answer(PLAIN, user)
    kinds = [option.kind.value for option in user.options]
    assert kinds == ["allow_once", "allow_always", "allow_always", "reject_once", "reject_once"]


async def test_the_reason_is_shown_once_and_what_lasts_is_explained() -> None:
    user = User(v1.Selected("reject"))
    await answer(PLAIN, user)
    assert user.shown.count("May I run this?") == 1
    assert "in all projects is kept among Codex's own rules" in user.shown
    shown = v1.ToolCallPatch("call_1", content=[v1.ContentItem(v1.TextBlock("May I run this?\n"))])
    user = User(v1.Selected("reject"))
    await answer(PLAIN, user, call=shown)
    assert user.shown.count("May I run this?") == 1


async def test_another_directory_is_named() -> None:
    user = User(v1.Selected("reject"))
    await answer(asks(COMMAND, command="ls", cwd="/elsewhere"), user)
    assert "It runs in `/elsewhere`." in user.shown


@pytest.mark.parametrize("words", [[], ["a\nb"], ["`x`"], ["x", 3], "touch", None, ["a" * 20_000]])
async def test_a_rule_that_cannot_be_shown_is_not_offered(words: Any) -> None:
    odd = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": words}}
    user = User(v1.Selected("allow_always_prefix"))
    asked = asks(COMMAND, command="x", availableDecisions=["accept", odd, "later", 7, "cancel"])
    assert await answer(asked, user) == {"decision": "decline"}
    assert user.ids == ["allow", "allow_session", "reject", "reject_and_stop"]


async def test_a_long_rule_is_shown_above_the_options() -> None:
    words = ["touch", "x" * 200]
    user = User(v1.Selected("allow_always_prefix"))
    body = await answer(asks(COMMAND, command="touch", proposedExecpolicyAmendment=words), user)
    assert body == {"decision": {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": words}}}
    assert user.names[2] == "Always allow commands that begin with what is shown above, in all projects"
    assert f"`touch {'x' * 200}`" in user.shown


async def test_a_rule_that_the_server_does_not_offer_is_not_offered() -> None:
    more = {"network": {"enabled": True}, "fileSystem": {"write": ["/data"], "read": None}}
    asked = asks(
        COMMAND,
        command="x",
        additionalPermissions=more,
        proposedExecpolicyAmendment=["x"],
        availableDecisions=["accept", "cancel"],
    )
    user = User(v1.Selected("allow"))
    assert await answer(asked, user) == {"decision": "accept"}
    assert user.ids == ["allow", "reject", "reject_and_stop"]
    assert "- Use the network\n- Read and write `/data`" in user.shown


async def test_permissions_can_be_given_for_the_session_where_the_server_offers_it() -> None:
    more = {"network": {"enabled": True}}
    asked = asks(
        COMMAND, command="x", additionalPermissions=more, availableDecisions=["accept", "acceptForSession", "cancel"]
    )
    user = User(v1.Selected("allow_session"))
    assert await answer(asked, user) == {"decision": "acceptForSession"}
    assert user.names[1] == "Always allow this command with these permissions in this session"


@pytest.mark.parametrize(
    ("chosen", "decision"),
    [
        ("allow", "accept"),
        ("allow_session", "acceptForSession"),
        ("allow_always_host", {"applyNetworkPolicyAmendment": {"network_policy_amendment": HOST_RULES[0]}}),
        ("reject_always_host", {"applyNetworkPolicyAmendment": {"network_policy_amendment": HOST_RULES[1]}}),
        ("reject", "decline"),
        ("reject_always", {"applyNetworkPolicyAmendment": {"network_policy_amendment": HOST_RULES[1]}}),
    ],
)
async def test_a_host_can_be_allowed_and_blocked(chosen: str, decision: Any) -> None:
    user = User(v1.Selected(chosen))
    asked = asks(COMMAND, **NETWORK, proposedNetworkPolicyAmendments=HOST_RULES, proposedExecpolicyAmendment=["curl"])
    assert await answer(asked, user) == {"decision": decision}
    assert user.names[1:4] == [
        "Always allow `x.example` in this session",
        "Always allow `x.example`, in all projects",
        "Always block `x.example`, in all projects",
    ]
    assert "It wants to reach `x.example` (https)." in user.shown


async def test_of_the_rules_for_a_host_only_those_are_offered_that_the_server_offers() -> None:
    rule = {"applyNetworkPolicyAmendment": {"network_policy_amendment": HOST_RULES[0]}}
    user = User(v1.Selected("allow_always_host"))
    asked = asks(
        COMMAND,
        **NETWORK,
        proposedNetworkPolicyAmendments=HOST_RULES,
        availableDecisions=["accept", rule, {"applyNetworkPolicyAmendment": 3}, "cancel"],
    )
    assert await answer(asked, user) == {"decision": rule}
    assert user.ids == ["allow", "allow_always_host", "reject", "reject_and_stop"]


INPUT = asks(
    COMMAND,
    kind="writeStdin",
    approvalId="call_2",
    reason="Send input to an existing terminal.",
    command="write_stdin --session-id 7 'rm x\n'",
    cwd="/w",
    availableDecisions=["accept", "cancel"],
)


async def test_input_for_a_running_command_is_a_question_of_its_own() -> None:
    user = User(v1.Selected("allow"))
    assert await answer(INPUT, user) == {"decision": "accept"}
    assert user.ids == ["allow", "reject", "reject_and_stop"]
    shown = user.asked[0].tool_call
    assert (shown.tool_call_id, shown.title) == ("call_2", "Send input to a running command")
    assert shown.raw_input["command"] == "write_stdin --session-id 7 'rm x\n'"
    assert "rm x" in user.shown
    assert [each["toolCallId"] for each in user.updates_of("tool_call")] == ["call_2"]
    assert [each["status"] for each in user.updates_of("tool_call_update")] == ["completed"]


@pytest.mark.parametrize(
    ("reply", "decision"),
    [(v1.Selected("reject"), "decline"), (v1.Selected("?"), "decline"), (v1.Cancelled(), "cancel")],
)
async def test_a_question_of_its_own_ends_with_its_answer(reply: Any, decision: str) -> None:
    user = User(reply)
    body = await answer(INPUT, user)
    assert body["decision"] == decision
    assert [each["status"] for each in user.updates_of("tool_call_update")] == ["failed"]


async def test_a_call_without_an_item_is_shown_with_the_question() -> None:
    user = User(v1.Selected("allow"))
    assert await answer(PLAIN, user, call=None) == {"decision": "accept"}
    shown = user.asked[0].tool_call
    assert (shown.tool_call_id, shown.title) == ("call_1", "touch x")
    assert shown.raw_input == {"command": "touch x", "cwd": "/w"}
    assert user.updates_of("tool_call")[0]["title"] == "touch x"


async def test_a_request_that_the_client_cancels_stops_the_turn() -> None:
    assert await answer(PLAIN, User(v1.Cancelled())) == {"decision": "cancel"}


@pytest.mark.parametrize("capabilities", [FULL, NO_FORMS], ids=["notices", "text"])
async def test_a_client_that_cannot_ask_allows_nothing_and_reports_it(capabilities: v1.ClientCapabilities) -> None:
    user = User(RequestError(Code.METHOD_NOT_FOUND, "Method not found"))
    assert await answer(PLAIN, user, capabilities) == {"decision": "decline"}
    text = str(user.updates_of("notice") if capabilities is FULL else user.updates_of("agent_message_chunk"))
    assert "so it was declined" in text
    assert "Method not found" in text


# The older protocol.

OLD = asks(OLD_COMMAND, command=["bash", "-lc", "touch x"], cwd="/w", reason="Because", parsedCmd=[], approvalId=None)


@pytest.mark.parametrize(
    ("reply", "decision"),
    [
        (v1.Selected("allow"), "approved"),
        (v1.Selected("allow_session"), "approved_for_session"),
        (v1.Selected("reject_and_stop"), "abort"),
        (v1.Cancelled(), "abort"),
    ],
)
async def test_the_older_protocol_gets_its_own_words(reply: Any, decision: str) -> None:
    user = User(reply)
    assert await answer(OLD, user) == {"decision": decision}
    assert user.ids == ["allow", "allow_session", "reject", "reject_and_stop"]
    assert "Because" in user.shown


@pytest.mark.parametrize("reply", [v1.Selected("reject"), v1.Selected("approved"), RequestError(-1, "no window")])
async def test_in_the_older_protocol_the_model_gets_the_rejection(reply: Any) -> None:
    body = await answer(OLD, User(reply))
    assert list(body["decision"]) == ["denied"]
    assert "did not happen" in body["decision"]["denied"]["rejection"]


async def test_an_older_question_is_shown_without_its_shell() -> None:
    user = User(v1.Selected("allow"))
    await answer(OLD, user, call=None)
    assert user.asked[0].tool_call.title == "touch x"


async def test_what_a_policy_refuses_is_declined_without_a_word_to_the_user() -> None:
    user = User(v1.PermissionResult(v1.Selected("reject_and_stop"), meta=refusal("The rule `Bash` denies it.")))
    assert await answer(PLAIN, user) == {"decision": "decline"}
    assert user.updates_of("notice") == [] and not is_question(user.asked[0])


async def test_the_call_itself_is_not_changed_by_the_question() -> None:
    user = User(v1.Selected("allow"))
    await answer(PLAIN, user)
    shown = user.asked[0].tool_call
    assert (shown.title, shown.raw_input) == (CALL.title, CALL.raw_input)
    assert user.updates_of("tool_call") == user.updates_of("tool_call_update") == []
