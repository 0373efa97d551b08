"""What was proved is kept, and written into the page if that was asked for. Works the same whether one process runs the tests or several."""

from collections.abc import Generator

import pytest

from tests.engines.claude import proofs
from tests.engines.claude.bullets import BULLETS

PROVED: list[proofs.Proof] = []
FAILED: list[str] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" and isinstance(item, pytest.Function):
        bullets, _ = proofs.proof_of(item.function)
        version = item.callspec.params["version"] if bullets else ""
        test = item.nodeid.partition("[")[0]
        report.user_properties += [("proved", [bullet, test, version]) for bullet in bullets]
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        FAILED.append(report.nodeid)
    elif report.when == "call" and report.passed:
        PROVED.extend(proofs.Proof(*map(str, found)) for name, found in report.user_properties if name == "proved")  # type: ignore[call-overload]


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not proofs.REWRITE or hasattr(session.config, "workerinput"):
        return
    missing = set(BULLETS) - {proof.bullet for proof in PROVED}
    if FAILED or missing:
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(f"{proofs.PAGE.name} stays as it is: not proved {sorted(missing)}, failed {FAILED}")
        return
    proofs.put(proofs.PAGE, proofs.NAME, proofs.render(PROVED))
