"""What one prompt may take, by what engines really send."""

import pytest

from antiphon.duet.limits import Budget, Spent, UsageTotals
from antiphon.protocol import v1


def result(total: int) -> v1.PromptResult:
    return v1.PromptResult(v1.StopReason.END_TURN, v1.Usage(total, total, 0))


def gauge(used: int, cost: float | None = None, currency: str = "USD") -> v1.UsageUpdate:
    return v1.UsageUpdate(used, 200_000, None if cost is None else v1.Cost(cost, currency))


def new(*engines: str) -> UsageTotals:
    """The ledger of a session whose engines begin."""
    totals = UsageTotals()
    for engine in engines:
        totals.begins(engine)
    return totals


def test_the_last_turn_may_run_to_its_end_and_none_begins_after_it() -> None:
    budget = Budget(2)
    budget.turn_begins("claude")
    assert budget.exceeded() is None
    budget.turn_begins("codex")
    assert budget.overrun() is None
    budget.turn_ended("codex")
    exceeded = budget.exceeded()
    assert exceeded is not None and exceeded.stop_reason == v1.StopReason.MAX_TURN_REQUESTS
    assert "2 turns" in exceeded.why.sentence and exceeded.why.hint


def test_tokens_are_what_the_engine_sessions_grew_by() -> None:
    totals = new("claude", "codex")
    first = Budget(None, totals=totals)
    for engine, total in (("claude", 1000), ("codex", 300), ("claude", 1500)):
        first.turn_begins(engine)
        first.turn_ended(engine, result(total))
    assert first.spent == Spent(3, 1800)
    second = Budget(None, totals=totals)
    second.turn_begins("claude")
    second.turn_ended("claude", result(1700).usage)
    assert second.spent == Spent(1, 200)


def test_while_a_turn_runs_its_requests_count_and_then_the_exact_number_in_their_place() -> None:
    budget = Budget(None, 1000, totals=new("codex"))
    budget.turn_begins("codex")
    budget.used("codex", gauge(400))
    budget.used("codex", gauge(500))
    assert budget.spent.tokens == 900 and budget.overrun() is None
    budget.used("codex", gauge(600))
    exceeded = budget.overrun()
    assert (
        exceeded is not None and exceeded.stop_reason == v1.StopReason.MAX_TOKENS and "1,500" in exceeded.why.sentence
    )
    budget.turn_ended("codex", result(990))
    assert budget.spent.tokens == 990 and budget.exceeded() is None


def test_a_turn_that_fails_counts_by_its_requests() -> None:
    budget = Budget(None, totals=new("codex"))
    budget.turn_begins("codex")
    budget.used("codex", gauge(400))
    budget.turn_ended("codex")
    assert budget.spent.tokens == 400


def test_the_same_request_reported_again_with_its_price_counts_once() -> None:
    budget = Budget(None, cost=1.0, totals=new("claude"))
    budget.turn_begins("claude")
    budget.used("claude", gauge(400))
    budget.used("claude", gauge(400, 0.25))
    assert budget.spent == Spent(1, 400, 0.25)


def test_tokens_that_an_engine_uses_between_turns_count_for_no_turn() -> None:
    budget = Budget(None, totals=new("claude"))
    budget.used("claude", gauge(400))
    assert budget.spent.tokens == 0


def test_an_engine_session_from_elsewhere_is_not_charged_for_what_it_took_before() -> None:
    budget = Budget(None, 10_000, 1.0)
    budget.turn_begins("claude")
    budget.used("claude", gauge(700))
    budget.used("claude", gauge(700, 40.0))
    budget.turn_ended("claude", result(5_000_000))
    assert budget.spent == Spent(1, 700, 0.0)
    budget.turn_begins("claude")
    budget.used("claude", gauge(800, 40.5))
    budget.turn_ended("claude", result(5_001_000))
    assert budget.spent == Spent(2, 1700, 0.5)


def test_an_engine_that_reports_each_turn_alone_or_counts_anew_is_not_counted_backwards() -> None:
    budget = Budget(None, totals=new("gemini"))
    for total, cost in ((500, 0.5), (300, 0.3)):
        budget.turn_begins("gemini")
        budget.used("gemini", gauge(1, cost))
        budget.turn_ended("gemini", result(total))
    assert budget.spent == Spent(2, 800, 0.8)


def test_money_ends_a_prompt_per_engine_and_in_dollars() -> None:
    budget = Budget(20, cost=1.0, totals=new("a", "b"))
    for engine in ("a", "b"):
        budget.turn_begins(engine)
        budget.used(engine, gauge(1, 0.4))
    budget.used("b", gauge(1, 90.0, "JPY"))
    assert budget.exceeded() is None
    budget.used("b", gauge(1, 0.75))
    exceeded = budget.overrun()
    assert exceeded is not None and exceeded.stop_reason == v1.StopReason.MAX_TURN_REQUESTS
    assert "$1.15" in exceeded.why.sentence and "$1.00" in exceeded.why.sentence


@pytest.mark.parametrize("engine", ["claude", "codex"])
def test_an_engine_session_that_is_left_is_not_known_any_more(engine: str) -> None:
    totals = new("claude", "codex")
    totals.unknown(engine)
    assert engine not in totals.tokens and engine not in totals.cost and len(totals.tokens) == 1
