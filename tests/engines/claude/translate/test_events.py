"""How a turn ended: a stop reason, or an error that says what to do."""

from typing import Any

import pytest

from antiphon.engines.claude.translate.events import TurnEnd, end_of, reset_in, reset_moment
from antiphon.engines.claude.wire import (
    Assistant,
    ClaudeMessage,
    ClaudeTextBlock,
    ClaudeUsage,
    ModelUsage,
    RateLimitInfo,
    ResultLine,
)
from antiphon.errors import Code
from antiphon.protocol import v1
from tests.rows import each_row

NOON = 1_760_011_200.0  # 2025-10-09 12:00 UTC
LIMIT = "You've hit your 5-hour limit · resets 5:07am (UTC)"


def result(subtype: str = "success", **fields: Any) -> ResultLine:
    return ResultLine(subtype=subtype, **fields)


def api_error(text: str, **fields: Any) -> ResultLine:
    return result(is_error=True, result=text, terminal_reason="api_error", stop_reason="stop_sequence", **fields)


def assistant_message(text: str = "", *, model: str = "<synthetic>", **fields: Any) -> Assistant:
    return Assistant(message=ClaudeMessage(model=model, content=[ClaudeTextBlock(text=text)]), **fields)


REASONS = [
    ("success", result(stop_reason="end_turn", terminal_reason="completed"), "end_turn"),
    ("the third seed's success", result(result="Final response text"), "end_turn"),
    ("cancelled", result("cancelled"), "cancelled"),
    ("max_tokens", result("max_tokens"), "max_tokens"),
    ("error_max_turns", result("error_max_turns", is_error=True), "max_turn_requests"),
    ("error_max_budget_usd", result("error_max_budget_usd", is_error=True), "max_turn_requests"),
    ("max turns", result("error_max_turns", is_error=True, terminal_reason="max_turns", stop_reason="tool_use"), "max_turn_requests"),
    ("budget", result("error_during_execution", is_error=True, terminal_reason="budget_exhausted"), "max_turn_requests"),
    ("interrupted while it spoke", result("error_during_execution", is_error=True, terminal_reason="aborted_streaming"), "cancelled"),
    ("interrupted while it worked",
     result("error_during_execution", is_error=True, terminal_reason="aborted_tools", stop_reason="tool_use"), "cancelled"),
    ("interrupted, by an older CLI",
     result("error_during_execution", is_error=True, errors=["Error: Request was aborted."]), "cancelled"),
    ("refused", result(is_error=True, stop_reason="refusal", terminal_reason="api_error"), "refusal"),
    ("too much to say", api_error("exceeded the maximum", api_error="max_output_tokens"), "max_tokens"),
    ("too much to say, and it says so", result(stop_reason="max_tokens"), "max_tokens"),
    ("stopped by a hook", result(terminal_reason="stop_hook_prevented"), "end_turn"),
    ("a local command", result(result="", stop_reason=None), "end_turn"),
    ("a subtype of tomorrow", result("success_with_flowers"), "end_turn"),
]  # fmt: skip


@each_row(("case", "line", "reason"), REASONS, ids=[case for case, *_ in REASONS])
def test_a_turn_ends_with_a_reason_of_the_protocol(case: str, line: ResultLine, reason: str) -> None:
    end = end_of(line)
    assert end.stop_reason == v1.StopReason(reason) and end.error is None


ERRORS = [
    ("not signed in", api_error("Not logged in · Please run /login"), assistant_message(error="authentication_failed"), "auth"),
    ("bad key", api_error("Invalid API key · Fix external API key", api_error_status=401), None, "auth"),
    ("revoked", api_error("OAuth token revoked", api_error_status=403, api_error_type="permission_error"),
     assistant_message(error="authentication_failed", is_api_error_message=True), "auth"),
    ("overloaded", api_error("API Error: Repeated 529", api_error_status=529, api_error_type="overloaded_error"), assistant_message(error="server_error"), "overloaded"),
    ("overloaded, an older CLI", api_error("API Error: Repeated 529 Overloaded errors"), None, "overloaded"),
    ("rate limit", api_error("Request rejected (429)", api_error_status=429, api_error_type="rate_limit_error"), assistant_message(error="rate_limit"), "rate_limit"),
    ("usage limit", api_error(LIMIT, api_error="usage_limit_reached", api_error_status=429), assistant_message(error="rate_limit"), "usage_limit"),
    ("usage limit, an older CLI", result(is_error=True, result="You've hit your session limit", terminal_reason="completed"), assistant_message(error="rate_limit"), "usage_limit"),
    ("usage limit, the first CLIs", result(result="Claude AI usage limit reached|1760000000"), None, "usage_limit"),
    ("out of credits", api_error("You're out of usage credits"), None, "usage_limit"),
    ("billing", api_error("Credit balance is too low", api_error_status=400, api_error_type="invalid_request_error"), assistant_message(error="billing_error"), "billing"),
    ("payment", api_error("API Error: 402 Payment required", api_error_status=402), None, "billing"),
    ("model", api_error("There's an issue with the model", api_error_status=404), assistant_message(error="model_not_found"), "model_not_found"),
    ("too long", result(is_error=True, result="Prompt is too long", terminal_reason="prompt_too_long"), assistant_message(error="invalid_request"), "prompt_too_long"),
    ("too long, an older CLI", api_error("Prompt is too long"), None, "prompt_too_long"),
    ("too large", result(is_error=True, result="Image was too large", terminal_reason="image_error", api_error_status=400), None, "too_large"),
    ("no connection", api_error("API Error: Connection refused", api_error="connection_failed"), assistant_message(error="server_error"), "connection"),
    ("no connection, an older CLI", api_error("API Error: Unable to connect to API (ECONNREFUSED)"), None, "connection"),
    ("bad request", api_error("API Error: 400 bad thing", api_error_status=400), assistant_message(error="unknown"), "invalid_request"),
    ("server", api_error("API Error: 500 boom", api_error_status=500), assistant_message(error="server_error"), "server_error"),
    ("server, without its name", api_error("API Error: 504", api_error_status=504), None, "server_error"),
    ("verification", api_error("Verify first", api_error_status=403), assistant_message(error="verification_required"), "access"),
    ("no such session", result("error_during_execution", is_error=True, errors=["No conversation found with session ID: x"]), None, "session_not_found"),
    ("crashed", result("error_during_execution", is_error=True, errors=["[ede_diagnostic] result_type=user"]), None, "execution"),
    ("nothing known", result(is_error=True), None, "api"),
    ("an error in a success", result(result="Whatever"), assistant_message("Whatever", is_api_error_message=True), "api"),
    ("a model error", result(terminal_reason="model_error"), None, "api"),
    ("did not start", result("error_during_execution", is_error=True, startup_failure_reason="bad_settings"), None, "startup"),
]  # fmt: skip


@each_row(("case", "line", "last", "kind"), ERRORS, ids=[case for case, *_ in ERRORS])
def test_an_error_has_a_kind_and_a_hint(case: str, line: ResultLine, last: Assistant | None, kind: str) -> None:
    end = end_of(line, last)
    assert end.stop_reason is None and end.error is not None
    assert end.error.kind == kind and end.error.message and end.error.hint
    refusal = end.error.refusal()
    assert (refusal.message, refusal.hint) == (end.error.message, end.error.hint)
    assert refusal.data["kind"] == kind  # type: ignore[index]


def failed(line: ResultLine, last: Assistant | None = None, limit: RateLimitInfo | None = None, **more: Any) -> Any:
    end: TurnEnd = end_of(line, last, limit, **more)
    assert end.error is not None
    return end.error


def test_a_missing_login_has_the_error_code_of_the_protocol() -> None:
    assert failed(api_error("Not logged in · Please run /login")).code == Code.AUTH_REQUIRED
    assert failed(result("error_during_execution", errors=["No conversation found"])).code == Code.RESOURCE_NOT_FOUND
    assert failed(api_error("API Error: 500 boom", api_error_status=500)).code == Code.INTERNAL_ERROR


def test_the_message_is_that_of_the_cli_without_parts_for_its_developers() -> None:
    assert failed(api_error("API Error: 500 boom")).message == "500 boom"
    line = result("error_during_execution", is_error=True, errors=["[ede_diagnostic] x", "It broke"])
    assert failed(line).message == "It broke"
    assert (
        failed(result(is_error=True), assistant_message("From the message", error="unknown")).message
        == "From the message"
    )
    assert failed(result(result="Claude AI usage limit reached|1760000000")).message == "Claude AI usage limit reached"


def test_a_limit_names_when_it_ends() -> None:
    known = failed(api_error(LIMIT), None, RateLimitInfo(status="rejected", resets_at=1_760_000_000))
    assert known.resets_at == 1_760_000_000
    assert "2025-10-09 08:53 UTC" in known.hint
    assert known.refusal().data["resetsAt"] == "2025-10-09T08:53:20+00:00"
    assert failed(result(result="Claude AI usage limit reached|1760000000")).resets_at == 1_760_000_000
    in_words = failed(
        api_error(LIMIT), assistant_message(LIMIT, error="rate_limit", timestamp="2025-10-09T12:00:00.000Z")
    )
    assert in_words.resets_at == NOON + 17 * 3600 + 7 * 60
    assert failed(api_error(LIMIT), now=NOON).resets_at == in_words.resets_at
    assert failed(api_error(LIMIT)).resets_at is None


def test_too_many_requests_under_a_used_up_subscription_are_its_limit() -> None:
    line = api_error("Request rejected (429)", api_error_status=429)
    assert failed(line, None, RateLimitInfo(status="rejected", resets_at=NOON)).kind == "usage_limit"
    assert failed(line, None, RateLimitInfo(status="allowed", resets_at=NOON)).kind == "rate_limit"


def test_an_answer_about_limits_is_an_answer() -> None:
    words = "You've hit your 5-hour limit, it said."
    end = end_of(result(result=words, stop_reason="end_turn"), assistant_message(words, model="claude-opus"))
    assert end.stop_reason == v1.StopReason.END_TURN


def test_the_trouble_of_a_sub_agent_is_not_that_of_the_turn() -> None:
    end = end_of(
        result(result="Done"),
        assistant_message("no", error="server_error", is_api_error_message=True, parent_tool_use_id="t"),
    )
    assert end.stop_reason == v1.StopReason.END_TURN


@each_row(
    ("text", "seconds"),
    [
        ("limit reached|1760000000", 1_760_000_000),
        ("limit reached|1760000000000", 1_760_000_000),
        ("resets 3pm (UTC)", NOON + 3 * 3600),
        ("resets at 15:30 (UTC)", NOON + 3.5 * 3600),
        ("resets 12pm (UTC)", NOON + 24 * 3600),
        ("resets 12am (UTC)", NOON + 12 * 3600),
        ("resets Oct 12, 4:20am (UTC)", NOON + 3 * 86400 - 7 * 3600 - 40 * 60),
        ("resets Oct 12 at 4am (Europe/Berlin)", NOON + 3 * 86400 - 10 * 3600),
        ("resets Jan 2, 2026, 12pm (UTC)", NOON + 85 * 86400),
        ("resets Jan 2, 12pm (UTC)", NOON + 85 * 86400),
        ("resets Feb 31, 3pm (UTC)", None),
        ("resets 99pm (UTC)", None),
        ("resets 25:10 (UTC)", None),
        ("resets 3 times", None),
        ("never", None),
    ],
)
def test_the_end_of_a_limit_is_read_from_words(text: str, seconds: float | None) -> None:
    assert reset_in(text, NOON) == seconds


@pytest.mark.parametrize("zone", ["", " (Nowhere/Atall)"])
def test_an_hour_without_a_zone_that_we_know_is_one_of_this_machine(zone: str) -> None:
    found = reset_in(f"resets 3pm{zone}", NOON)
    assert found is not None and NOON < found <= NOON + 86400


def test_moments_in_milliseconds_are_moments_too() -> None:
    assert (reset_moment(1_760_000_000_000), reset_moment(1_760_000_000), reset_moment(0), reset_moment(None)) == (
        1_760_000_000,
        1_760_000_000,
        None,
        None,
    )


def test_tokens_and_cost_are_those_of_the_session() -> None:
    models = {
        "a": ModelUsage(
            input_tokens=1, output_tokens=2, cache_read_input_tokens=3, cache_creation_input_tokens=4, thinking_tokens=1
        ),
        "b": ModelUsage(input_tokens=10, output_tokens=20),
    }
    end = end_of(result(model_usage=models, usage=ClaudeUsage(input_tokens=7), total_cost_usd=0.5))
    assert end.usage == v1.Usage(
        total_tokens=40,
        input_tokens=11,
        output_tokens=22,
        thought_tokens=1,
        cached_read_tokens=3,
        cached_write_tokens=4,
    )
    assert end.cost == v1.Cost(amount=0.5, currency="USD")


def test_without_the_sum_the_tokens_are_those_of_the_turn() -> None:
    end = end_of(result(usage=ClaudeUsage(input_tokens=7, output_tokens=2)))
    assert end.usage is not None and end.usage.total_tokens == 9
    assert end_of(result(usage=ClaudeUsage(input_tokens=0))).usage is None and end_of(result()).cost is None
