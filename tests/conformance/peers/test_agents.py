"""Agents that others wrote, checked. What is found is on the page `docs/evidence/conformance.md`, which the tool writes."""

from pathlib import Path

import pytest

from antiphon.conformance.agent_check import AgentCommand, check_agent
from antiphon.conformance.agent_run import CheckOptions
from antiphon.conformance.report import document_of
from antiphon.conformance.suites.agent import SUITE
from tests.conformance.peers import page
from tests.conformance.peers.subjects import subjects
from tests.limits import limit

pytestmark = [pytest.mark.slow, pytest.mark.together]

LIMIT = 20.0
"""Seconds that an answer of theirs may take on a machine that has little else to do: what is never answered costs as much."""


@pytest.mark.parametrize("name", subjects())
async def test_a_third_party_agent_is_checked(name: str, tmp_path: Path) -> None:
    title, made = subjects()[name]
    with made(tmp_path) as subject:
        program = AgentCommand(subject.command, subject.environment)
        report = await check_agent(program, CheckOptions(subject.prompts, limit=min(limit(LIMIT), 3 * LIMIT)), jobs=2)
    assert report.results
    page.RESULTS["agents"][title] = document_of(report, SUITE)


def test_the_page_has_what_was_found_about_agents() -> None:
    page.compared("agents", [title for title, _ in subjects().values()])
