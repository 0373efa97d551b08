"""Clients that are real processes, met through the file that stands for their agent."""

import asyncio
import os
import socket
import stat
import sys
from pathlib import Path

import pytest

from antiphon.conformance.client_check import check_client
from antiphon.conformance.client_process import BadCommands, ClientCommands
from antiphon.conformance.client_run import ClientCheckOptions
from antiphon.conformance.requirements import RequirementStatus
from antiphon.conformance.results import ConformanceReport
from antiphon.conformance.shim_socket import ShimSocket
from antiphon.conformance.suites.client import SUITE
from antiphon.conformance.suites.client_v2 import CLIENT_SUITE_V2
from antiphon.local.commands import LocalCommand
from tests.conformance.memory import under_load

SMALL = Path(__file__).parent / "peers" / "small_client.py"

PROCESS_FAULTS = {"stderr.flood": "deaf", "ends.input": "leaky", "ends.no-orphan": "careless"}


def small(*fault: str) -> ClientCommands:
    return ClientCommands.of([sys.executable, str(SMALL), "{agent}", *fault])


def failed(report: ConformanceReport) -> dict[str, str]:
    return {one.requirement.id: one.verdict.text for one in report.broken}


async def test_a_small_client_is_checked_through_the_file_that_stands_for_its_agent() -> None:
    report = await check_client(
        small(), under_load(ClientCheckOptions(limit=10.0)), only=["introduction", "agent-stays"]
    )
    assert failed(report) == {}
    passed = {one.requirement.id for one in report.results if one.verdict.status is RequirementStatus.PASSED}
    assert passed >= {"prompt.comes", "hello.info", "ends.well", *PROCESS_FAULTS}
    assert report.peer == "small-client 1"


@pytest.mark.slow
async def test_a_client_that_imports_nothing_of_ours_passes_everything() -> None:
    report = await check_client(small(), under_load(ClientCheckOptions(limit=10.0, silence=0.05)))
    assert failed(report) == {}
    assert {one.verdict.status for one in report.results} == {
        RequirementStatus.PASSED,
        RequirementStatus.SKIPPED,
        RequirementStatus.UNSEEN,
    }


@pytest.mark.slow
@pytest.mark.parametrize("id", PROCESS_FAULTS)
async def test_a_fault_of_a_process_fails_its_requirement_and_no_other(id: str) -> None:
    report = await check_client(
        small(PROCESS_FAULTS[id]), under_load(ClientCheckOptions(limit=2.0)), only=["agent-stays"]
    )
    assert id in failed(report)
    assert set(failed(report)) - {id} <= SUITE.dependants(id)


async def test_a_client_that_cannot_be_started_is_reported() -> None:
    report = await check_client(ClientCommands.of(["antiphon-no-such-client", "{agent}"]))
    assert list(failed(report)) == ["prompt.comes"]
    assert "no such program" in failed(report)["prompt.comes"]
    assert not report.is_correct


async def test_the_file_that_stands_for_the_agent_is_ours_alone_and_goes_away() -> None:
    door = ShimSocket(lambda agent_start: None)
    folder = door.agent.parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(door.agent.stat().st_mode) == 0o700
    assert not set(str(door.agent)) & set(" \t'\"\\")
    await door.close()
    assert not folder.exists()


async def test_another_program_on_the_socket_is_not_understood_and_blocks_nothing() -> None:
    came = asyncio.Event()
    door = ShimSocket(lambda agent_start: came.set())
    address = str(door.agent.parent / "s")
    others = [socket.socket(socket.AF_UNIX) for _ in range(4)]
    for other, words in zip(others, (b"", b"control\nnonsense\n", b"control\n[]\n", b"data 7\n"), strict=True):
        other.connect(address)
        other.sendall(words)
    command = await LocalCommand.start([door.agent])
    await asyncio.wait_for(came.wait(), 30)
    await command.close()
    await door.close()
    for other in others:
        other.close()


async def test_a_temporary_directory_with_spaces_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "with a space").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "with a space"))
    door = ShimSocket(lambda agent_start: None)
    assert " " not in str(door.agent)
    await door.close()


def test_commands_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "commands.toml"
    file.write_text(
        'cancel = "client --slow {agent}"\nload = ["client {agent}", "client --load {agent}"]\n'
        '[stdin]\nprompt = "hello\\n"\n[signal]\ncancel = "INT"\n',
        encoding="utf-8",
    )
    found = ClientCommands.of(["client", "{agent}"], file)
    assert found.words["cancel"] == [["client", "--slow", "{agent}"]]
    assert found.words["load"] == [["client", "{agent}"], ["client", "--load", "{agent}"]]
    assert found.stdin == {"prompt": "hello\n"} and found.signals == {"cancel": "INT"}
    assert found.has("load") and not found.has("delete")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('cancel = "client"', "there is no {agent} in the command for `cancel`"),
        ('sing = "client {agent}"', "`sing` is no purpose"),
        ("cancel = 7", "`cancel` is no purpose with a command"),
        ('[stdin]\nsing = "x"', "`[stdin]` is a table"),
        ('[signal]\ncancel = "LOUD"', "`LOUD` is no signal"),
        ("cancel =", "cannot be read"),
    ],
)
def test_a_file_of_commands_that_is_wrong_is_reported(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "commands.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadCommands) as error:
        ClientCommands.of(["client", "{agent}"], file)
    assert problem in str(error.value) and "hint: " in str(error.value)


def test_a_path_that_leads_from_here_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "client").touch()
    monkeypatch.chdir(tmp_path)
    [[program, agent, text]] = ClientCommands.of(["bin/client", "{agent}", "a/b"]).words["prompt"]
    assert (program, agent, text) == (os.path.abspath("bin/client"), "{agent}", "a/b")


RUN = [sys.executable, "-m", "antiphon", "run", "--agent", "{agent}"]
OURS = {
    "prompt": [[*RUN, "--on-ask", "allow", "--", "hello"]],
    "refuse": [[*RUN, "--on-ask", "deny", "--", "hello"]],
    "cancel": [[*RUN, "--", "hello"]],
    "set_mode": [[*RUN, "--mode", "plan", "--", "hello"]],
    "set_option": [[*RUN, "--set", "length=long", "--", "hello"]],
    "load": [[*RUN, "--session", "song", "--", "hello"], [*RUN, "--session", "song", "--", "again"]],
    "resume": [[*RUN, "--session", "song", "--", "hello"], [*RUN, "--session", "song", "--", "again"]],
}
"""`antiphon run`, as far as it has commands for it."""


SEVERAL_V2 = (
    "introduction", "early-state", "idle-of-others", "failing-work", "refused-prompt", "strange-updates", "cancellation", "settings",
    "agent-stays",
)  # fmt: skip
"""Scenarios of version 2 in which a command can differ from the library, or a process from a task."""


@pytest.mark.slow
async def test_antiphon_run_keeps_everything_of_version_2(tmp_path: Path) -> None:
    env = {**os.environ, "ANTIPHON_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)}
    client = ClientCommands(OURS, signals={"cancel": "INT"}, env=env)
    options = under_load(ClientCheckOptions(limit=30.0, silence=0.05))
    report = await check_client(client, options, suite=CLIENT_SUITE_V2, only=SEVERAL_V2, jobs=3)
    assert failed(report) == {}
    shown = {one.requirement.id for one in report.results if one.verdict.status is RequirementStatus.PASSED}
    assert shown >= {"turn.idle-of-others", "errors.turn-status", "cancel.waits", "sessions.option", *PROCESS_FAULTS}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
async def test_antiphon_run_passes_everything(part: int, tmp_path: Path) -> None:
    env = {**os.environ, "ANTIPHON_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)}
    client = ClientCommands(OURS, signals={"cancel": "INT"}, env=env)
    options = ClientCheckOptions(limit=30.0, silence=0.05)
    report = await check_client(client, under_load(options), only=list(SUITE.scenarios)[part::3], jobs=3)
    assert set(failed(report)) == set()
    blocked = {
        one.requirement.id: one.verdict.text
        for one in report.results
        if one.verdict.status is RequirementStatus.BLOCKED
    }
    assert blocked == {}
    assert report.peer.startswith("antiphon-run ") and report.is_correct
