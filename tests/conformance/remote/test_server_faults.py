"""The check of servers is checked: for every requirement a fault that breaks it, and nothing but it and its dependants."""

import ssl
from dataclasses import replace

import pytest

from antiphon.conformance.remote.server_check import check_server, suite_of
from antiphon.conformance.requirements import RequirementStatus
from antiphon.conformance.results import ConformanceReport
from antiphon.transports.asgi import AcpEndpoint
from tests.conformance.memory import OPTIONS, under_load
from tests.conformance.remote.broken_server import TOKEN, ServerFault, broken_server
from tests.conformance.remote.server_faults import HTTP_FAULTS, SOCKET_FAULTS
from tests.transports.serving import serve_demo, served
from tests.transports.test_http2 import on_hypercorn
from tests.transports.test_network import CERTIFICATE, TLS

SCHEMES = {"http": HTTP_FAULTS, "ws": SOCKET_FAULTS}
FAULTS = {**HTTP_FAULTS, **SOCKET_FAULTS}
BY_TLS = {"http.http2"}
"""What is shown by a server with TLS, below."""

SHORT = replace(OPTIONS, limit=1.5, silence=0.05)
REMOTE = replace(OPTIONS, remote=True, silence=0.05)


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", f"{tmp_path}/state")


def _broken(report: ConformanceReport) -> dict[str, str]:
    return {one.requirement.id: one.verdict.text for one in report.broken}


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_correct_server_passes_everything(scheme: str) -> None:
    async with broken_server(ServerFault()) as host:
        report = await check_server(f"{scheme}://{host}/acp", under_load(REMOTE), token=TOKEN)
    assert _broken(report) == {}
    unshown = {one.requirement.id for one in report.results if one.verdict.status is not RequirementStatus.PASSED}
    assert unshown <= BY_TLS


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_requirement_of_servers_has_a_fault(scheme: str) -> None:
    assert set(suite_of(f"{scheme}://host/acp").requirements()) - BY_TLS == set(SCHEMES[scheme])


@pytest.mark.slow
@pytest.mark.prove
@pytest.mark.parametrize("id", FAULTS)
async def test_a_fault_of_a_server_fails_its_requirement_and_no_other(id: str) -> None:
    scheme = id.partition(".")[0]
    suite = suite_of(f"{scheme}://host/acp")
    scenario = suite.requirements()[id].scenario
    failed: dict[str, str] = {}
    for options in (SHORT, REMOTE):  # on a busy machine the server itself may be too late for the short limit
        async with broken_server(FAULTS[id]()) as host:
            report = await check_server(f"{scheme}://{host}/acp", under_load(options), token=TOKEN, only=[scenario])
        if failed := _broken(report):
            break
    assert id in failed
    assert {other: text for other, text in failed.items() if other not in {id, *suite.dependants(id)}} == {}


@pytest.mark.slow
async def test_a_server_with_tls_has_to_speak_http2() -> None:
    app, context = AcpEndpoint(serve_demo), ssl.create_default_context(cafile=str(TLS / "authority.pem"))

    async def found(host: str) -> dict[str, str]:
        url = f"https://{host}/acp"
        return _broken(await check_server(url, under_load(SHORT), tls=context, only=["http-version"]))

    async with served(app, **CERTIFICATE) as host:
        assert set(await found(host)) == {"http.http2"}
    async with on_hypercorn(app) as host:
        assert await found(host) == {}
