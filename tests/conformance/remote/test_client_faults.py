"""The check of remote clients is checked: for every requirement a fault that breaks it, and nothing but it and its dependants."""

import sys

import pytest

from antiphon.cli.main import main
from antiphon.conformance.client_run import ClientCheckOptions
from antiphon.conformance.remote.client_check import check_remote_client
from antiphon.conformance.requirements import RequirementStatus
from antiphon.conformance.results import ConformanceReport
from antiphon.conformance.suites.remote_client import REMOTE_CLIENT_SUITE as SUITE
from tests.conformance.memory import under_load
from tests.conformance.remote.broken_client import DrivenClients
from tests.conformance.remote.client_faults import HTTP_FAULTS, SOCKET_FAULTS

FAULTS = {**HTTP_FAULTS, **SOCKET_FAULTS}
OPTIONS = ClientCheckOptions(limit=10.0, silence=0.05)
SHORT = ClientCheckOptions(limit=2.0, silence=0.05)
SLOW = {"http.stream-again", "http.last-event-id", "http.load-stream", "ws.close"}
"""Where the client itself waits a while."""


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", f"{tmp_path}/state")


def _broken(report: ConformanceReport) -> dict[str, str]:
    return {one.requirement.id: one.verdict.text for one in report.broken}


@pytest.mark.slow
async def test_a_correct_client_passes_everything() -> None:
    report = await check_remote_client(DrivenClients(), under_load(OPTIONS))
    assert _broken(report) == {}
    assert {one.requirement.id for one in report.results if one.verdict.status is not RequirementStatus.PASSED} == set()


def test_every_requirement_of_remote_clients_has_a_fault() -> None:
    assert set(SUITE.requirements()) == set(FAULTS)


@pytest.mark.slow
@pytest.mark.prove
@pytest.mark.parametrize("id", FAULTS)
async def test_a_fault_of_a_remote_client_fails_its_requirement_and_no_other(id: str) -> None:
    scenario = SUITE.requirements()[id].scenario
    options = under_load(OPTIONS if id in SLOW else SHORT)
    report = await check_remote_client(DrivenClients(FAULTS[id]()), options, only=[scenario])
    failed = _broken(report)
    assert id in failed
    assert {other: text for other, text in failed.items() if other not in {id, *SUITE.dependants(id)}} == {}


@pytest.mark.slow
def test_a_client_with_an_address_is_checked_by_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    client = ["env", "ANTIPHON_TOKEN={token}", sys.executable, "-m", "antiphon", "run", "--agent", "{url}"]
    assert (
        main(
            [
                "check-client",
                "--only",
                "http-redirect",
                "--only",
                "ws-turn",
                "--",
                *client,
                "--on-ask",
                "allow",
                "hello",
            ]
        )
        == 0
    )
    assert "nothing that must hold was broken" in capsys.readouterr().out
