"""Run all scenarios for servers of a remote profile with a server, and report."""

import asyncio
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from antiphon.conformance.agent_run import CheckOptions
from antiphon.conformance.remote.raw_http import HttpAddress
from antiphon.conformance.remote.server_run import ServerRun
from antiphon.conformance.requirements import (
    RequirementStatus,
    RequirementVerdict,
    Scenario,
    ScenarioStopped,
    Suite,
)
from antiphon.conformance.results import ConformanceReport, ScenarioRecord, results_of
from antiphon.conformance.suites.server import HTTP_SUITE, SOCKET_SUITE
from antiphon.traffic.entries import Direction

__all__ = ["check_server", "joined_report", "joined_suite", "suite_of"]

SCENARIO_LIMIT: Final = 6
"""A scenario may take this many times as long as a response may."""

JOBS: Final = 2
"""Scenarios that run at once, by default."""


def suite_of(url: str) -> Suite[ServerRun]:
    """The suite of the profile that an address names."""
    return HTTP_SUITE if urlsplit(url).scheme in ("http", "https") else SOCKET_SUITE


async def check_server(
    url: str,
    options: CheckOptions,
    *,
    token: str | None = None,
    tls: ssl.SSLContext | None = None,
    only: Sequence[str] = (),
    jobs: int = JOBS,
    progress: Callable[[ScenarioRecord], None] | None = None,
) -> ConformanceReport:
    """Check the server at an address by the profile that it names; `only` names the scenarios to run, unless all of them."""
    begun = time.monotonic()
    suite, turns = suite_of(url), asyncio.Semaphore(jobs)
    address = HttpAddress(url, token, options.limit, tls)

    async def played(scenario: Scenario[ServerRun]) -> ScenarioRecord:
        async with turns:
            record = await _play(scenario, address, options)
        if progress is not None:
            progress(record)
        return record

    scenarios = [one for one in suite.scenarios.values() if not only or one.name in only]
    records = await asyncio.gather(*map(played, scenarios))
    results = results_of(suite.requirements(), records, Direction.A2C, some=bool(only))
    return ConformanceReport(suite.side, "", results, time.monotonic() - begun, complete=not only)


@contextmanager
def _workspace(options: CheckOptions) -> Iterator[Path]:
    """A directory of this machine, or the one of another that was named."""
    if options.directory is not None and not options.shared:
        yield options.directory
        return
    with tempfile.TemporaryDirectory(
        prefix="antiphon-check-", dir=options.directory, ignore_cleanup_errors=True
    ) as made:
        yield Path(made).resolve()


async def _play(scenario: Scenario[ServerRun], address: HttpAddress, options: CheckOptions) -> ScenarioRecord:
    record, begun = ScenarioRecord(scenario.name), time.monotonic()
    with _workspace(options) as cwd:
        over_http = urlsplit(address.url).scheme in ("http", "https")
        run = ServerRun(address, options, cwd, over_http=over_http)
        try:
            reason = await _played(scenario, run)
        finally:
            await run.close()
    record.verdicts.update(run.verdicts)
    for one in scenario.shows:
        record.verdicts.setdefault(one.id, reason)
    record.took = time.monotonic() - begun
    return record


async def _played(scenario: Scenario[ServerRun], run: ServerRun) -> RequirementVerdict:
    """Run a scenario; return the verdict for what it does not show. Nothing that a server sends may end the check."""
    longest = SCENARIO_LIMIT * run.options.limit
    try:
        async with asyncio.timeout(longest):
            await scenario.play(run)
    except ScenarioStopped as stopped:
        return RequirementVerdict(stopped.status, str(stopped))
    except TimeoutError:
        text = f"no answer came within {run.options.limit:g} s"
        return RequirementVerdict(RequirementStatus.BLOCKED, text)
    except (OSError, EOFError, ValueError) as error:
        text = f"the connection broke off: {str(error) or type(error).__name__}"
        return RequirementVerdict(RequirementStatus.BLOCKED, text)
    except Exception as error:
        return RequirementVerdict(RequirementStatus.BLOCKED, f"the check itself failed: {error!r}")
    return RequirementVerdict(RequirementStatus.BLOCKED, "the scenario did not come to it")


def joined_suite(agent: Suite[Any], server: Suite[Any]) -> Suite[Any]:
    """The suite for agents and that for servers, for a report about both."""
    scenarios, follows = {**agent.scenarios, **server.scenarios}, {**agent.follows, **server.follows}
    return Suite(agent.side, scenarios, agent.general, follows)


def joined_report(agent: ConformanceReport, server: ConformanceReport) -> ConformanceReport:
    """One report about an agent and the server in front of it."""
    return replace(
        agent,
        results=[*agent.results, *server.results],
        took=agent.took + server.took,
        complete=agent.complete and server.complete,
    )
