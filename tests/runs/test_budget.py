"""When a run has to stop: what the agent reports, and what the next request would use."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.protocol import v1
from antiphon.runs.budget import RunBudget, RunLimits

USD = "USD"


def used(tokens: int, cost: float | None = None, engine: str = "") -> v1.UsageUpdate:
    meta: dict[str, Any] | None = {"antiphon": {"engine": engine}} if engine else None
    return v1.UsageUpdate(used=tokens, size=200_000, cost=None if cost is None else v1.Cost(cost, USD), meta=meta)


def call(id: str, status: str, engine: str = "", **more: object) -> v1.ToolCallUpdate:
    ours = {**({"engine": engine} if engine else {}), **more}
    return v1.ToolCallUpdate(id, status=v1.ToolStatus(status), meta={"antiphon": ours} if ours else None)


def stops(budget: RunBudget, *updates: v1.Update) -> int | None:
    """The place of the update after which the run has to stop; None if it may go on."""
    return next((place for place, update in enumerate(updates) if budget.update(update) is not None), None)


def test_calls_of_one_request_that_run_together_are_one_round() -> None:
    budget = RunBudget(RunLimits(turns=2))
    together = (call("a", "in_progress"), call("b", "in_progress"), call("a", "completed"), call("b", "failed"))
    assert stops(budget, *together) is None and budget.turns == 2
    assert stops(budget, call("c", "in_progress"), call("c", "completed")) == 1


def test_an_update_of_a_call_that_has_ended_is_no_further_request() -> None:
    budget = RunBudget(RunLimits(turns=2))
    again = v1.ToolCallUpdate("a", title="A")
    assert stops(budget, call("a", "in_progress"), call("a", "completed"), call("a", "completed"), again) is None


def test_the_last_request_that_a_limit_allows_is_not_cancelled() -> None:
    budget = RunBudget(RunLimits(cost=1.0, tokens=2500, turns=2))
    final = (
        used(1000, 0.4),
        call("a", "in_progress"),
        call("a", "completed"),
        used(1200, 0.9),
        v1.AgentMessageChunk(v1.TextBlock("x")),
    )
    assert stops(budget, *final) is None
    assert budget.turn_ended(v1.Usage(total_tokens=2200, input_tokens=2000, output_tokens=200)) is None


def test_tokens_that_are_reported_only_at_the_end_are_compared_then() -> None:
    budget = RunBudget(RunLimits(tokens=2500))
    budget.update(v1.AgentMessageChunk(v1.TextBlock("x")))
    passed = budget.turn_ended(v1.Usage(total_tokens=2600, input_tokens=2600, output_tokens=0))
    assert passed is not None and passed.sentence == "the run took 2,600 tokens, and 2,500 is the limit"


def test_what_an_earlier_session_cost_is_not_the_cost_of_this_run() -> None:
    working = (used(10, 5.2), call("a", "in_progress"), call("a", "completed"))
    assert stops(RunBudget(RunLimits(cost=1.0), before=used(9, 5.0), new=False), *working) is None
    assert stops(RunBudget(RunLimits(cost=1.0)), *working) is not None


def test_the_engines_of_a_duet_share_one_limit() -> None:
    limits = RunLimits(tokens=5000)
    one = (used(2000, engine="claude"), call("a", "in_progress", "claude"), call("a", "completed", "claude"))
    other = (used(2000, engine="codex"), call("a", "in_progress", "codex"), call("a", "completed", "codex"))
    budget = RunBudget(limits)
    assert stops(budget, *one) is None and stops(budget, *other) == 2


def test_tokens_that_come_with_a_call_count_once() -> None:
    budget = RunBudget(RunLimits(tokens=5000))
    calls = [call("a", "in_progress"), call("b", "in_progress"), call("a", "completed", usedTokens=2000)]
    assert stops(budget, *calls, call("b", "completed", usedTokens=2000), used(2000, 0.1)) is None
    assert stops(budget, call("c", "in_progress"), call("c", "completed", usedTokens=2100)) == 1


@given(st.sets(st.integers(1, 1000), min_size=1, max_size=20), st.integers(1, 8000))
def test_a_run_stops_at_the_first_request_that_is_known_to_pass_the_limit(sizes: set[int], most: int) -> None:
    budget, spent = RunBudget(RunLimits(tokens=most)), 0
    for size in sorted(sizes):  # a context only grows
        spent += size
        stopped = stops(budget, used(size), call(f"{size}", "in_progress"), call(f"{size}", "completed")) is not None
        assert stopped == (spent + size > most)
        if stopped:
            return


@pytest.mark.parametrize("limits", [RunLimits(), RunLimits(turns=100)])
def test_without_a_limit_that_is_reached_nothing_stops(limits: RunLimits) -> None:
    assert bool(limits) is (limits.turns is not None)
    updates: list[v1.Update] = [used(10**6, 100.0), call("a", "in_progress"), call("a", "completed")]
    assert stops(RunBudget(limits), *updates * 3) is None


def test_a_report_right_after_the_call_stops_the_run_before_the_next_request_is_answered() -> None:
    """Codex reports what a request used once its calls have ended."""
    budget = RunBudget(RunLimits(tokens=5000))
    first = (call("a", "in_progress"), call("a", "completed"), used(1005))
    second = (call("b", "in_progress"), call("b", "completed"), used(2005))
    assert stops(budget, *first, *second) == 5  # 3,010 are used, and the next request has 2,005 or more
    enough = RunBudget(RunLimits(tokens=5100))
    assert stops(enough, *first, *second, v1.AgentMessageChunk(v1.TextBlock("x")), used(2050)) is None
