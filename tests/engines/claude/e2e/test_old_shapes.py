"""Shapes of older programs that no version of today says: they still mean what they meant."""

import pytest

from antiphon.errors import AuthRequired
from tests.engines.claude.place import Place
from tests.engines.claude.proofs import STAND_IN, proves
from tests.engines.claude.stand_in_lines import RESULT, assistant, stand_in_plays, stand_in_says
from tests.engines.client import connected


@proves("old.auth-required", on=[STAND_IN])
async def test_auth_required_is_the_error_for_signing_in(at: Place) -> None:
    stand_in_says(at, {"type": "system", "subtype": "auth_required", "content": "Please sign in first"})
    async with connected(at) as client:
        with pytest.raises(AuthRequired) as caught:
            await client.say("sing")
    assert caught.value.methods and "Please sign in first" in f"{caught.value} {caught.value.data}"


@proves("old.hook-response", "turn.notices", on=[STAND_IN])
async def test_a_hooks_response_is_a_notice(at: Place) -> None:
    hook = {"type": "system", "subtype": "hook_response", "hook_name": "SessionStart:startup", "exit_code": 1}
    stand_in_says(at, {**hook, "stdout": "", "stderr": "out of breath"}, RESULT)
    async with connected(at) as client:
        reply = await client.say("sing")
    assert "out of breath" in reply.notices and reply.stop == "end_turn"


@proves("old.tool-result", on=[STAND_IN])
async def test_a_result_inside_an_assistant_line_ends_its_call(at: Place) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "echo la"}}
    stand_in_says(at, assistant(call), assistant({"type": "tool_result", "tool_use_id": "t1", "content": "la"}), RESULT)
    async with connected(at) as client:
        reply = await client.say("sing")
    call = reply.call("Bash")
    assert call["status"] == "completed" and "la" in str(call["content"])


@proves("old.endings", on=[STAND_IN])
async def test_older_results_end_turns_as_they_did(at: Place) -> None:
    endings = {
        "success": "end_turn",
        "cancelled": "cancelled",
        "max_tokens": "max_tokens",
        "error_max_turns": "max_turn_requests",
        "error_max_budget_usd": "max_turn_requests",
    }
    older = {"type": "result", "session_id": "$SESSION"}
    stand_in_plays(at, *[[{**older, "subtype": subtype}] for subtype in endings])
    async with connected(at) as client:
        assert [(await client.say("sing")).stop for _ in endings] == list(endings.values())
