"""How turns end."""

from datetime import UTC, datetime
from typing import Any

import pytest

from antiphon.engines.events import TurnEnded, TurnFailure
from antiphon.errors import Code
from antiphon.protocol import v1
from tests.engines.codex.translate.harness import VERSIONS, TranslatedThread, failure
from tests.rows import each_row

NAMES = {
    "contextWindowExceeded": "prompt_too_long", "usageLimitExceeded": "usage_limit", "rateLimitExceeded": "rate_limit",
    "flexUnavailable": "overloaded", "serverOverloaded": "overloaded", "modelNotFound": "model_not_found",
    "policyCapacityUnavailable": "overloaded", "tooManyDenials": "denied", "internalServerError": "server_error",
    "unauthorized": "auth", "badRequest": "invalid_request", "threadRollbackFailed": "rollback", "sandboxError": "sandbox",
    "other": "api", "somethingNew": "api",
}  # fmt: skip
STATUSES = {None: "connection", 400: "invalid_request", 401: "auth", 402: "billing", 403: "access", 413: "too_large", 429: "rate_limit", 500: "server_error", 503: "overloaded"}  # fmt: skip
HTTP = (
    "httpConnectionFailed",
    "responseStreamConnectionFailed",
    "responseStreamDisconnected",
    "responseTooManyFailedAttempts",
)


def end_of(thread: TranslatedThread) -> TurnEnded:
    [end] = [each for each in thread.events if isinstance(each, TurnEnded)]
    return end


def error_in(info: Any, message: str = "It went wrong") -> TurnFailure:
    thread = TranslatedThread()
    thread.begin()
    thread.over("failed", failure(message, info))
    error = end_of(thread).end.error
    assert error is not None
    return error


@each_row(("name", "kind"), NAMES.items())
def test_each_name_of_an_error_is_a_kind_with_a_hint(name: str, kind: str) -> None:
    error = error_in(name)
    assert (error.kind, error.message) == (kind, "It went wrong") and error.hint
    assert error.code == (Code.AUTH_REQUIRED if kind == "auth" else Code.INTERNAL_ERROR)


@each_row("name", HTTP)
@each_row(("status", "kind"), STATUSES.items())
def test_a_status_gives_the_kind(name: str, status: int | None, kind: str) -> None:
    error = error_in({name: {"httpStatusCode": status}})
    assert (error.kind, error.status) == (kind, status)


def test_a_turn_that_takes_nothing_in_is_busy() -> None:
    assert error_in({"activeTurnNotSteerable": {"turnKind": "review"}}).kind == "busy"


@pytest.mark.parametrize("info", [None, 5, [], {}, {"x": 5}, {"x": None}])
def test_an_error_of_any_shape_is_an_error(info: Any) -> None:
    assert error_in(info).kind == "api"


@pytest.mark.parametrize(("message", "kind"), [
    ("unexpected status 404 Not Found: no such model, url: http://x", "model_not_found"),
    ('{"error":{"message":"m","code":"insufficient_quota"}}', "billing"),
    ('{"detail":"You have hit your usage limit"}', "usage_limit"),
    ("error sending request for url", "connection"),
    ("Not logged in", "auth"),
])  # fmt: skip
def test_the_text_decides_where_the_name_does_not(message: str, kind: str) -> None:
    assert error_in("other", message).kind == kind


@pytest.mark.parametrize(("name", "reason"), [
    ("cyberPolicy", v1.StopReason.REFUSAL), ("misalignmentPolicyViolation", v1.StopReason.REFUSAL),
    ("sessionBudgetExceeded", v1.StopReason.MAX_TURN_REQUESTS),
])  # fmt: skip
def test_what_the_protocol_has_a_word_for_is_not_an_error_but_is_explained(name: str, reason: v1.StopReason) -> None:
    thread = TranslatedThread()
    thread.begin()
    thread.over("failed", failure("Because.", name))
    assert end_of(thread).end.stop_reason == reason
    assert thread.outline[0].endswith("| Because.")


def test_a_used_up_limit_names_when_it_ends() -> None:
    thread = TranslatedThread()
    thread.begin()
    windows = {
        "primary": {"usedPercent": 100, "resetsAt": 1_900_000_000},
        "secondary": {"usedPercent": 40, "resetsAt": 2_000_000_000},
    }
    thread.notify("account/rateLimits/updated", rateLimits={**windows, "rateLimitReachedType": "rate_limit_reached"})
    thread.notify("account/rateLimits/updated", rateLimits={"primary": None, "secondary": None})
    thread.over("failed", failure("limit", "usageLimitExceeded"))
    error = end_of(thread).end.error
    assert error is not None and error.resets_at == 1_900_000_000
    assert datetime.fromtimestamp(1_900_000_000, UTC).isoformat() in error.hint


@pytest.mark.parametrize("spoken", VERSIONS)
def test_a_turn_ends_once(spoken: str) -> None:
    thread = TranslatedThread(spoken)
    thread.begin()
    thread.over()
    thread.over()
    assert thread.outline == ["end u1 end_turn"]


def test_a_failure_without_a_reason_has_the_one_that_came_before() -> None:
    thread = TranslatedThread()
    thread.begin()
    thread.error("no sandbox", "sandboxError")
    thread.over("failed")
    assert thread.outline == ["end u1 error sandbox -32603 no sandbox"]


def test_an_error_of_an_earlier_turn_is_not_that_of_this_one() -> None:
    thread = TranslatedThread()
    thread.begin()
    thread.error("no sandbox", "sandboxError")
    thread.over("failed")
    thread.begin()
    thread.over()
    assert thread.outline[-1] == "end u2 end_turn"


def test_the_end_has_the_tokens_of_the_whole_thread() -> None:
    thread = TranslatedThread()
    thread.begin()
    thread.answered(700, 70)
    thread.over()
    usage = end_of(thread).end.usage
    assert usage is not None and usage.total_tokens == 700
    assert thread.outline[0] == "usage 70/9000"


def test_a_compaction_that_is_broken_off_is_closed() -> None:
    thread = TranslatedThread()
    thread.begin()
    thread.started("contextCompaction", "k")
    thread.over("interrupted")
    assert thread.outline == ["compaction k [in_progress]", "compaction k [cancelled]", "end u1 cancelled"]


def test_older_servers_report_only_the_end_of_a_compaction() -> None:
    thread = TranslatedThread()
    thread.begin()
    thread.notify("thread/compacted")
    thread.notify("thread/compacted")
    assert thread.outline == ["compaction u1 [completed]"]
