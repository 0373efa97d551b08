"""Agents that others wrote, checked. What is found is on the page `docs/evidence/conformance.md`, which the tool writes."""

from pathlib import Path

import pytest

from antiphon.conformance.agent_check import AgentCommand, check_agent
from antiphon.conformance.agent_run import CheckOptions
from antiphon.conformance.report import document_of
from antiphon.conformance.suites.agent import SUITE
from tests.conformance.peers import page
from tests.conformance.peers.subjects import subjects
from tests.interop.table import REWRITE
from tests.limits import limit

pytestmark = pytest.mark.slow

LIMIT = 20.0
"""Seconds that an answer of theirs may take on a machine that has little else to do: what is never answered costs as much."""


SLOW_STARTS = ("kimi-code", "fast-agent")
"""Agents that take two and four seconds of processor time to start."""

STARTED_ANEW = (
    "bare-client", "odd-client", "version-2", "version-0", "version-in-words", "files-read-only", "nothing-is-said", "two-agents",
    "nonsense", "blank-lines", "batch", "half-messages",
)  # fmt: skip
"""Scenarios that need an agent for themselves or after which it may have left. With those that start slowly only `make evidence` plays them, which
runs whenever a version is changed; all other agents play them in `make prove` too."""


def wanted(name: str) -> list[str]:
    """Return the scenarios to be played with an agent; an empty list is all of them."""
    return [each for each in SUITE.scenarios if each not in STARTED_ANEW] if name in SLOW_STARTS and not REWRITE else []


@pytest.mark.parametrize("name", sorted(subjects(), key=lambda name: name not in SLOW_STARTS))  # the longest first
async def test_a_third_party_agent_is_checked(name: str, tmp_path: Path) -> None:
    title, made = subjects()[name]
    with made(tmp_path) as subject:
        program = AgentCommand(subject.command, subject.environment)
        options = CheckOptions(subject.prompts, limit=min(limit(LIMIT), 3 * LIMIT))
        report = await check_agent(program, options, only=wanted(name), jobs=2)
    assert report.results
    page.check("agents", title, document_of(report, SUITE))


def test_scenarios_that_are_left_to_make_evidence_exist() -> None:
    assert set(STARTED_ANEW) < SUITE.scenarios.keys()


def test_the_page_has_all_agents() -> None:
    page.complete("agents", [title for title, _ in subjects().values()])
