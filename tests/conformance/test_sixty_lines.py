"""An agent of sixty lines that imports nothing of ours: the check finds nothing wrong with it, and everything with its broken versions."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from antiphon.conformance.agent_check import AgentCommand, check_agent
from antiphon.conformance.agent_run import CheckOptions
from antiphon.conformance.prompts import Prompts
from antiphon.conformance.requirements import EVERY, RequirementStatus
from antiphon.conformance.results import ConformanceReport
from antiphon.conformance.suites.agent import SUITE
from tests.conformance.memory import under_load
from tests.conformance.sixty.broken import AGENT, BREAKS, Break

pytestmark = pytest.mark.slow

WORDS = {
    "say": "hello",
    "long": "long",
    "many": "hello",
    "ask": "ask",
    "write": "hello",
    "read": "hello",
    "run": "hello",
}
OPTIONS = CheckOptions(
    Prompts({**WORDS, "long_run": "long", "plan": "", "think": ""}), limit=3.0, silence=0.05, start=5.0
)


TRAFFIC = ("handshake", "session-new", "turn", "cancel-streaming", "cancel-asking")
"""Where what is judged on all traffic is looked for: all that the agent can do is in these."""


async def checked(path: Path, only: Sequence[str] = ()) -> ConformanceReport:
    return await check_agent(
        AgentCommand([sys.executable, "-I", "-S", str(path)]), under_load(OPTIONS), only=only, jobs=4
    )


def test_it_has_sixty_lines_and_imports_nothing_of_ours() -> None:
    lines = [
        line for line in AGENT.read_text(encoding="utf-8").splitlines() if line.strip() and not line.startswith("#")
    ]
    assert len(lines) <= 60
    assert "antiphon" not in "".join(lines)


async def test_the_agent_of_sixty_lines_is_correct() -> None:
    report = await checked(AGENT)
    assert {
        one.requirement.id: one.verdict.text for one in report.results if one.verdict.status is RequirementStatus.FAILED
    } == {}
    assert report.is_correct


@pytest.mark.prove
@pytest.mark.parametrize("broken", BREAKS, ids=lambda broken: broken.name)
async def test_what_is_broken_is_found(broken: Break, tmp_path: Path) -> None:
    path = tmp_path / "agent.py"
    path.write_text(broken.source(), encoding="utf-8")
    scenario = SUITE.requirements()[broken.finds].scenario
    report = await checked(path, TRAFFIC if scenario == EVERY else [scenario])
    assert broken.finds in {one.requirement.id for one in report.broken}
