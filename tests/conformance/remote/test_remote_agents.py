"""Agents on a network are checked by the scenarios of all agents, and get nothing of this machine."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.agent import Agent
from antiphon.agent.session import AgentSession
from antiphon.agent.turn import AgentTurn
from antiphon.cli.main import main
from antiphon.conformance.agent_check import check_agent
from antiphon.conformance.remote.agents import HANDSHAKES, RemoteAgents, RemoteDirectory, left_out
from antiphon.conformance.requirements import RequirementStatus
from antiphon.conformance.standin_client import StandinClient
from antiphon.conformance.suites.agent import SUITE
from antiphon.conformance.suites.agent_v2 import SUITE_V2
from antiphon.conformance.wire import PeerRefusal, PeerWire
from antiphon.errors import AcpError, RequestError
from antiphon.traffic.entries import Direction
from antiphon.transports.asgi import AcpEndpoint
from antiphon.transports.memory import memory_pair
from antiphon.transports.remote import ConnectionRefused
from tests.conformance.memory import OPTIONS, under_load
from tests.transports.serving import serve_demo, served

PROFILES = ("ws", "http")
REMOTE = replace(OPTIONS, remote=True)


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", str(tmp_path / "state"))


@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_correct_agent_on_a_network_passes_every_scenario_that_makes_sense(profile: str) -> None:
    async with served(AcpEndpoint(serve_demo)) as host:
        url = f"{profile}://{host}/acp"
        without = left_out(SUITE, url, shared=True)
        report = await check_agent(RemoteAgents(url), under_load(REMOTE), left_out=without)
    assert {one.requirement.id: one.verdict.text for one in report.broken} == {}
    assert report.left_out == without
    assert not {one.requirement.scenario for one in report.results} & set(without)


@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES)
async def test_an_agent_of_version_2_on_a_network_passes_every_scenario_that_makes_sense(profile: str) -> None:
    async with served(AcpEndpoint(serve_demo)) as host:
        url = f"{profile}://{host}/acp"
        without = left_out(SUITE_V2, url, shared=True)
        report = await check_agent(RemoteAgents(url), under_load(REMOTE), suite=SUITE_V2, left_out=without)
    assert {one.requirement.id: one.verdict.text for one in report.broken} == {}
    assert report.count(RequirementStatus.PASSED) > 100 and report.left_out == without


@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_session_that_was_closed_is_loaded_without_a_message_twice(profile: str) -> None:
    async with served(AcpEndpoint(serve_demo)) as host:
        report = await check_agent(
            RemoteAgents(f"{profile}://{host}/acp"), under_load(REMOTE), only=["load", "resume", "delete"]
        )
    assert {one.requirement.id: one.verdict.text for one in report.broken} == {}


def test_scenarios_that_need_a_process_or_a_disk_of_both_are_left_out_with_the_reason() -> None:
    near, far = left_out(SUITE, "wss://host/acp", shared=True), left_out(SUITE, "https://host/acp", shared=False)
    assert "process" in near["two-agents"] and "lines" in near["junk"]
    assert "files-read" not in near and "another machine" in far["files-read"]
    assert set(HANDSHAKES) <= SUITE.scenarios.keys() | SUITE_V2.scenarios.keys()
    for suite in (SUITE, SUITE_V2):
        mine = set(HANDSHAKES) & suite.scenarios.keys()
        over_http = left_out(suite, "https://host/acp", shared=True)
        assert mine <= over_http.keys() <= suite.scenarios.keys()
        assert not mine & left_out(suite, "wss://host/acp", shared=True).keys()


class OnlyHere(Agent):
    """An agent that works in one directory."""

    async def new_session(self, session: AgentSession) -> None:
        raise RequestError.invalid_params("only in /srv/work")


async def test_a_directory_that_the_agent_does_not_have_ends_the_check_with_a_hint(tmp_path: Path) -> None:
    async with served(OnlyHere().serve_asgi()) as host:
        with pytest.raises(AcpError, match=r"opens no session in .*only in /srv/work") as refused:
            await check_agent(RemoteAgents(f"ws://{host}/acp"), under_load(REMOTE), only=["handshake", "load"])
    assert "--cwd" in refused.value.hint


class Limited(Agent):
    """An agent that takes one prompt in a minute."""

    taken = 0

    async def prompt(self, turn: AgentTurn) -> None:
        Limited.taken += 1
        if Limited.taken > 1:
            raise RequestError(-32600, "too many prompts", {"recoverable": True, "action": "try again later"})


async def test_an_agent_whose_server_limits_prompts_gets_a_hint_and_no_verdict() -> None:
    async with served(Limited().serve_asgi()) as host:
        with pytest.raises(AcpError, match="takes no more requests for now: too many prompts") as refused:
            await check_agent(RemoteAgents(f"ws://{host}/acp"), under_load(REMOTE), only=["turn", "load"])
    assert "--limit prompts-per-minute" in refused.value.hint


@pytest.mark.parametrize("profile", PROFILES)
async def test_an_address_that_is_not_reached_ends_the_check_with_its_reason(profile: str) -> None:
    with pytest.raises(ConnectionRefused, match="was not reached"):
        await check_agent(RemoteAgents(f"{profile}://127.0.0.1:1/acp"), under_load(REMOTE), only=["load"])


def test_agents_on_this_machine_work_in_directories_of_it_and_others_where_the_user_says(tmp_path: Path) -> None:
    assert RemoteDirectory("ws://127.0.0.1:8137/acp", None).shared
    inside = RemoteDirectory("http://[::1]:8137/acp", str(tmp_path))
    assert inside.shared and inside.path == tmp_path.resolve()
    tunnel = RemoteDirectory("ws://localhost:8137/acp", "/not/on/this/machine")
    assert not tunnel.shared and tunnel.path == Path("/not/on/this/machine")
    elsewhere = RemoteDirectory("wss://example.org/acp", str(tmp_path))
    assert not elsewhere.shared
    for url, named in (("wss://example.org/acp", None), ("wss://example.org/acp", "work")):
        with pytest.raises(AcpError) as refused:
            RemoteDirectory(url, named)
        assert "--cwd" in refused.value.hint


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("fs/read_text_file", {"path": "/etc/hostname"}),
        ("fs/write_text_file", {"path": "/tmp/antiphon-check-escape", "content": "x"}),
        ("terminal/create", {"command": "touch", "args": ["x"], "cwd": "{cwd}"}),
        ("terminal/create", {"command": "echo modest; touch x", "cwd": "{cwd}"}),
        ("terminal/create", {"command": "pwd", "cwd": "/"}),
        ("terminal/create", {"command": "pwd"}),
    ],
)
async def test_an_agent_on_a_network_gets_no_file_and_no_command_that_the_check_did_not_name(
    method: str, params: Mapping[str, object], tmp_path: Path
) -> None:
    near, far = memory_pair()
    wire = PeerWire(near, Direction.C2A)
    client = StandinClient(wire, tmp_path, confined=True)
    try:
        sent = {name: str(tmp_path) if value == "{cwd}" else value for name, value in params.items()}
        with pytest.raises(PeerRefusal):
            await client.result_for(method, sent)
        made = await client.result_for("terminal/create", {"command": "pwd", "cwd": str(tmp_path)})
        assert isinstance(made, dict) and made["terminalId"] in client.terminals
    finally:
        await client.close()
        await wire.close()
        await far.close()


@pytest.mark.parametrize(
    "words",
    [
        ["--token-file", "x", "demo"],
        ["--cwd", "/tmp", "--", "my-agent"],
        ["--url", "ws://localhost/acp", "demo"],
        ["--url", "ftp://localhost/acp"],
        ["--url", "wss://example.org/acp"],
    ],
)
def test_arguments_about_an_address_that_make_no_sense_are_reported(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *words]) in (1, 2)
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith("error: ")
