"""`antiphon check` on both roads across a bridge: nothing that must hold is broken by us.

What breaks is the agent's own: it is listed here, with what the agent does. The same agents are checked without a bridge elsewhere
(`tests/conformance/peers`), or answer the same without one.
"""

from pathlib import Path
from typing import Final

import pytest

from antiphon.conformance.agent_check import AgentCommand, check_agent
from antiphon.conformance.agent_run import AgentRun, CheckOptions
from antiphon.conformance.prompts import Prompts
from antiphon.conformance.requirements import RequirementStatus, Suite
from antiphon.conformance.results import ConformanceReport
from antiphon.conformance.suites.agent import SUITE
from antiphon.conformance.suites.agent_v2 import SUITE_V2
from tests.conformance.own import words
from tests.conformance.peers.subjects import scripted
from tests.engines.claude.model.__main__ import played
from tests.interop.table import REWRITE
from tests.limits import limit
from tests.thirdparty.adapters import adapter
from tests.thirdparty.agents import BRIDGE
from tests.thirdparty.place import place

pytestmark = [pytest.mark.slow, pytest.mark.prove, pytest.mark.timeout(300)]

LIMIT: Final = 20.0
"""Seconds that an answer may take on a machine that has little else to do."""

OLD_ROAD: Final = (
    "handshake", "session-new", "turn", "permission-refused", "cancel-asking", "cancel-streaming", "load", "resume", "close-busy",
)  # fmt: skip
"""Scenarios of version 1 that `make prove` plays: a session, its turns, permission, cancel, replay. `make evidence` plays all."""

NEW_ROAD: Final = (
    "version-later", "version-none", *(name for name, scenario in SUITE_V2.scenarios.items() if not scenario.alone)
)  # fmt: skip
"""Scenarios of version 2: all but most of those for which the agent is started anew, which takes kimi-code two seconds."""

FAULTS_OF_CLAUDE: Final = {
    "content.embedded-bytes": "it refuses files as bytes in version 2",
    "init.unknown-capability": "it leaves after a request that came before `initialize`, so the next one fails",
}
FAULTS_OF_KIMI: Final = {
    "options.refused": "it answers an unknown option with -32603",
}


async def checked(
    command: list[str], env: dict[str, str], prompts: Prompts, suite: Suite[AgentRun], only: tuple[str, ...]
) -> ConformanceReport:
    options = CheckOptions(prompts, limit=min(limit(LIMIT), 3 * LIMIT))
    return await check_agent(AgentCommand(command, env), options, suite=suite, only=() if REWRITE else only, jobs=2)


def broken(report: ConformanceReport) -> dict[str, str]:
    """What must hold and does not."""
    assert any(one.verdict.status is RequirementStatus.PASSED for one in report.results)
    return {one.requirement.id: one.verdict.text for one in report.results if one.is_fatal}


async def test_an_agent_of_version_2_behind_a_bridge_is_a_correct_agent_of_version_1(tmp_path: Path) -> None:
    with adapter("claude-agent-acp", tmp_path) as on:
        on.at.model.choose = lambda asked: played(asked, words.marked("claude"))
        report = await checked(list(on.at.agent), on.at.environment, words.CLAUDE, SUITE, OLD_ROAD)
    assert {id: text for id, text in broken(report).items() if id not in FAULTS_OF_CLAUDE} == {}


async def test_an_agent_of_version_1_behind_a_bridge_is_a_correct_agent_of_version_2(tmp_path: Path) -> None:
    with place("kimi-code", tmp_path) as at:
        prompts = Prompts(scripted(at.agent.tools.read, at.agent.tools.write, at.agent.tools.run))
        report = await checked([*BRIDGE, *at.agent.command], at.environment, prompts, SUITE_V2, NEW_ROAD)
    assert {id: text for id, text in broken(report).items() if id not in FAULTS_OF_KIMI} == {}
