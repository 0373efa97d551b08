"""How the scenarios of a remote suite are played, and what becomes of the requirements that one did not come to."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from antiphon.conformance.requirements import (
    RequirementStatus,
    RequirementVerdict,
    Scenario,
    ScenarioStopped,
    Suite,
)
from antiphon.conformance.results import ConformanceReport, ScenarioRecord, results_of
from antiphon.traffic.entries import Direction

__all__ = ["play_scenario", "play_suite"]


class _ScenarioRun(Protocol):
    """One scenario with one peer."""

    verdicts: dict[str, RequirementVerdict]

    async def close(self) -> None:
        """End what it has started."""


R = TypeVar("R", bound=_ScenarioRun)


async def play_scenario(scenario: Scenario[R], run: R, seconds: float, late: str) -> ScenarioRecord:
    """Play a scenario and end it; nothing that a peer sends may end the check. `late` is the reason where it takes longer."""
    record, begun = ScenarioRecord(scenario.name), time.monotonic()
    try:
        reason = await _reason(scenario, run, seconds, late)
    finally:
        await run.close()
    record.verdicts.update(run.verdicts)
    for one in scenario.shows:
        record.verdicts.setdefault(one.id, RequirementVerdict(*reason))
    record.took = time.monotonic() - begun
    return record


async def _reason(scenario: Scenario[R], run: R, seconds: float, late: str) -> tuple[RequirementStatus, str]:
    """Why the scenario shows nothing about what it did not come to."""
    blocked = RequirementStatus.BLOCKED
    try:
        async with asyncio.timeout(seconds):
            await scenario.play(run)
    except ScenarioStopped as stopped:
        return stopped.status, str(stopped)
    except TimeoutError:
        return blocked, late
    except (OSError, EOFError, ValueError) as error:
        return blocked, f"the connection broke off: {str(error) or type(error).__name__}"
    except Exception as error:
        return blocked, f"the check itself failed: {error!r:.200}"
    return blocked, "the scenario did not come to it"


async def play_suite(
    suite: Suite[R],
    play: Callable[[Scenario[R]], Awaitable[ScenarioRecord]],
    direction: Direction,
    *,
    only: Sequence[str],
    jobs: int,
    progress: Callable[[ScenarioRecord], None] | None,
) -> ConformanceReport:
    """Play the scenarios of a suite, so many at once, and report; `only` names those to play, unless all of them."""
    begun, turns = time.monotonic(), asyncio.Semaphore(jobs)

    async def played(scenario: Scenario[R]) -> ScenarioRecord:
        async with turns:
            record = await play(scenario)
        if progress is not None:
            progress(record)
        return record

    scenarios = [one for one in suite.scenarios.values() if not only or one.name in only]
    records = await asyncio.gather(*map(played, scenarios))
    results = results_of(suite.requirements(), records, direction, some=bool(only))
    return ConformanceReport(suite.side, "", results, time.monotonic() - begun, complete=not only)
