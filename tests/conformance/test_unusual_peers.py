"""No agent or client that is correct in its own way is failed by a requirement that must hold: they are made from seeds."""

from dataclasses import replace

import pytest

from antiphon.conformance.agent_check import check_agent
from antiphon.conformance.agent_run import CheckOptions
from antiphon.conformance.client_check import check_client
from antiphon.conformance.client_run import ClientCheckOptions
from antiphon.conformance.results import ConformanceReport
from antiphon.conformance.suites.client import SUITE
from tests.conformance.memory import under_load
from tests.conformance.plain import WORDS, Plainly
from tests.conformance.unusual import Store, Traits, Unusual
from tests.conformance.unusual_client import ClientTraits, Unusually
from tests.rows import proved_from

OPTIONS = CheckOptions(WORDS, auth="key", limit=2.0, silence=0.02, start=5.0)
CLIENT_OPTIONS = ClientCheckOptions(
    limit=20.0, silence=0.01
)  # all scenarios start at once: on a loaded machine the first takes seconds

SEEDS = proved_from(3, 24)
"""Of each kind: a few in `make test`, more in `make prove`."""

pytestmark = [pytest.mark.slow, pytest.mark.prove]


def alarms(report: ConformanceReport) -> dict[str, str]:
    return {one.requirement.id: one.verdict.text for one in report.results if one.is_fatal}


@pytest.mark.parametrize("seed", SEEDS)
async def test_an_unusual_agent_breaks_nothing_that_must_hold(seed: int) -> None:
    traits = Traits.of(seed)
    store: Store = {}
    report = await check_agent(Plainly(lambda transport: Unusual(transport, traits, seed, store)), under_load(OPTIONS))
    assert alarms(report) == {}, traits


@pytest.mark.parametrize("seed", SEEDS)
async def test_an_unusual_client_breaks_nothing_that_must_hold(seed: int) -> None:
    traits = ClientTraits.of(seed)
    report = await check_client(Unusually(traits, seed), CLIENT_OPTIONS, jobs=len(SUITE.scenarios))
    assert alarms(report) == {}, traits


@pytest.mark.parametrize("seed", proved_from(1, 2))
async def test_a_client_that_ignores_unknown_methods_fails_by_that_and_nothing_else(seed: int) -> None:
    traits = replace(ClientTraits.of(seed), leaves_after=(), knows=lambda method: False)
    report = await check_client(
        Unusually(traits, seed), under_load(replace(CLIENT_OPTIONS, limit=2.0)), jobs=len(SUITE.scenarios)
    )
    assert set(alarms(report)) <= {"requests.unknown", "requests.extension", "requests.answered"}
    assert {"requests.unknown", "requests.extension"} <= set(alarms(report))
