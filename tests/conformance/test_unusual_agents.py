"""No agent that is correct in its own way is failed by a requirement that must hold: agents are made from seeds."""

import pytest

from antiphon.conformance.agents import check_agent
from antiphon.conformance.results import Report
from tests.conformance.plain import WORDS, Plainly
from antiphon.conformance.stage import Wishes
from tests.conformance.unusual import Store, Traits, Unusual

WISHES = Wishes(WORDS, auth="key", limit=2.0, patience=0.02, start=5.0)


def alarms(report: Report) -> dict[str, str]:
    return {one.requirement.id: one.verdict.text for one in report.results if one.is_fatal}


@pytest.mark.parametrize("seed", range(40))
async def test_an_unusual_agent_breaks_nothing_that_must_hold(seed: int) -> None:
    traits = Traits.of(seed)
    store: Store = {}
    report = await check_agent(Plainly(lambda transport: Unusual(transport, traits, seed, store)), WISHES)
    assert alarms(report) == {}, traits
