"""Our own agents keep all that an agent has to keep: the demo, each engine with the real program behind it, and both of them together."""

import re
import sys
from pathlib import Path
from typing import Final

import pytest

from antiphon.conformance.agent_check import JOBS, AgentCommand, check_agent
from antiphon.conformance.agent_run import CheckOptions
from antiphon.conformance.requirements import RequirementStatus
from antiphon.conformance.suites.agent import SUITE
from antiphon.conformance.suites.agent_v2 import SUITE_V2
from tests.conformance.own.agents import AGENTS
from tests.limits import limit

pytestmark = pytest.mark.slow

LIMIT: Final = 20.0
"""Seconds that an answer may take on a machine that has little else to do."""

NOT_FOLLOWED: Final[dict[str, dict[str, str]]] = {}
"""Advice that one of them does not follow, and why. What none of us follows is no good advice."""

UNSHOWN: Final = {
    **dict.fromkeys(
        (
            "files.read-path", "files.unsaved", "files.missing", "files.missing-result", "files.missing-next",
            "files.locked", "files.locked-told",
        ),
        "it reads and writes files by itself",
    ),
    **dict.fromkeys(
        (
            "terminal.known", "terminal.released", "terminal.shown", "terminal.failing", "terminal.refused",
            "terminal.refused-next", "cancel.terminals", "session.directory",
        ),
        "it runs commands by itself",
    ),
    "config.switched": "it has no setting that is on or off",
    "content.audio": "its model hears nothing",
    "modest.visit": "it sends nobody to a page",
}  # fmt: skip
"""What cannot be shown of an agent that drives a third-party program, and why."""

OFFERED: Final = {"unoffered.refused": "it offers all that it could be asked for"}
"""What cannot be shown of any of our agents, and why."""

UNSHOWN_OTHERWISE: Final[dict[str, dict[str, str]]] = {
    "claude": {"list.pages": "its list is one page long"},
    "codex": {
        "list.pages": "its list is one page long",
        "modest.form": "Codex asks questions in the mode `plan` only",
        "path.line": "Codex names no lines",
        "session.sse-server": "Codex has no such servers",
    },
}
"""What cannot be shown of one of them, and why."""


MAYBE: Final = {"list.pages"}
"""What is shown or not by how many sessions there were before: a list of few is one page long."""


REAL: Final = ("claude", "codex", "joint")
"""Agents that a real CLI answers for: every scenario takes seconds to start it."""

SOME: Final = (
    "signing-in", "session-mcp", "session-directories", "turn-beside", "permission-refused", "cancel-running", "load", "fork",
    "close-busy", "end-during-a-turn",
)  # fmt: skip
"""Scenarios in which an engine does something that the demo has no CLI for: `make test` plays them with both CLIs behind the joint agent."""

WITHOUT_ENGINE: Final = (
    "ids", "questions-at-once", "unknown-notifications", "unknown-methods", "wrong-params", "unknown-session", "additions",
    "signing-in-by-an-unknown-method", "session-refused", "cancel-idle", "list-pages", "load-unknown", "not-offered", "lines", "junk",
    "nonsense", "blank-lines", "batch", "half-messages", "handshake", "odd-client", "version-of-the-future", "version-2", "version-0",
    "version-in-words", "nothing-is-said",
)  # fmt: skip
"""Scenarios that the agent answers before an engine is asked: `make test` plays them with the demo behind the joint agent. All that are in
neither list `make prove` plays with both CLIs behind it."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.prove if name == "joint" else ())
        for name in AGENTS
        if name not in ("claude", "codex")
    ],
)
async def test_an_agent_of_ours_keeps_everything(name: str, tmp_path: Path) -> None:
    with AGENTS[name](tmp_path) as own:
        options = CheckOptions(own.prompts, auth=own.auth, limit=limit(LIMIT))
        # One after the other: two Codex that start at once in a home that is new to them get in each other's way, and one gives up.
        jobs = 1 if name in REAL else JOBS
        only = [each for each in SUITE.scenarios if each not in (*SOME, *WITHOUT_ENGINE)] if name == "joint" else ()
        report = await check_agent(AgentCommand(own.at.agent, own.at.environment), options, only=only, jobs=jobs)
    found = {one.requirement.id: one.verdict for one in report.results}
    failed = {id: verdict for id, verdict in found.items() if verdict.status is RequirementStatus.FAILED}
    assert failed == {}
    noted = {id: verdict.text for id, verdict in found.items() if verdict.status is RequirementStatus.NOTED}
    assert noted.keys() == NOT_FOLLOWED.get(name, {}).keys(), noted
    unshown = {
        id for id, verdict in found.items() if verdict.status not in (RequirementStatus.PASSED, RequirementStatus.NOTED)
    }
    known = {*OFFERED, *(UNSHOWN if name in REAL else {}), *UNSHOWN_OTHERWISE.get(name, {})}
    assert unshown - MAYBE == (known & found.keys()) - MAYBE
    assert all(own.asked), "a model was not asked at all"


UNSHOWN_V2: Final = {
    "terminal.reused": "it shows no terminal twice",
    "state.error": "its work does not fail",
    "state.background": "nothing of it runs in the background",
    "cancel.background": "nothing of it runs in the background",
}
"""What cannot be shown of our agents in version 2, and why."""


@pytest.mark.parametrize("name", ["demo", "joint-demo"])
async def test_an_agent_of_ours_keeps_everything_of_version_2(name: str, tmp_path: Path) -> None:
    with AGENTS[name](tmp_path) as own:
        options = CheckOptions(own.prompts, auth=own.auth, limit=limit(LIMIT))
        report = await check_agent(AgentCommand(own.at.agent, own.at.environment), options, suite=SUITE_V2)
    assert {one.requirement.id: one.verdict for one in report.broken} == {}
    unshown = {one.requirement.id for one in report.results if one.verdict.status is not RequirementStatus.PASSED}
    assert unshown == UNSHOWN_V2.keys()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "joint" else pytest.mark.prove) for name in REAL]
)
async def test_an_agent_keeps_with_real_programs_what_it_keeps_with_the_demo(name: str, tmp_path: Path) -> None:
    with AGENTS[name](tmp_path) as own:
        options = CheckOptions(own.prompts, auth=own.auth, limit=limit(LIMIT))
        report = await check_agent(AgentCommand(own.at.agent, own.at.environment), options, only=SOME, jobs=1)
    assert {one.requirement.id: one.verdict for one in report.broken} == {}
    unshown = {one.requirement.id for one in report.results if one.verdict.status is not RequirementStatus.PASSED}
    assert unshown <= {*UNSHOWN, *UNSHOWN_OTHERWISE.get(name, {})}
    assert all(own.asked), "a model was not asked at all"


def test_scenarios_that_are_played_apart_exist() -> None:
    assert {*SOME, *WITHOUT_ENGINE} < SUITE.scenarios.keys()


EXAMPLES: Final = Path(__file__).parents[3] / "examples"
AN_AGENT: Final = re.compile(r"\bopen_stdio\(|\(\)\.run\(\)|^ +agent\.run\(\)", re.MULTILINE)
"""What an example that is an agent does."""

WHOLE: Final = ("hello.py", "minimal_agent.py", "quick_agent.py")
"""Examples that play every scenario. The others start as the first of these does, so they play the scenarios that share a process."""


@pytest.mark.parametrize(
    "name", [each.name for each in sorted(EXAMPLES.glob("*.py")) if AN_AGENT.search(each.read_text(encoding="utf-8"))]
)
async def test_an_example_of_the_documentation_earns_no_advice(name: str) -> None:
    only = [each.name for each in SUITE.scenarios.values() if name in WHOLE or not each.alone]
    options = CheckOptions(limit=limit(LIMIT))
    report = await check_agent(AgentCommand([sys.executable, str(EXAMPLES / name)]), options, only=only)
    earned = (RequirementStatus.FAILED, RequirementStatus.NOTED)
    assert {one.requirement.id: one.verdict.text for one in report.results if one.verdict.status in earned} == {}
    assert report.is_correct
