"""Run all scenarios for servers of a remote profile with a server, and report."""

import ssl
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from antiphon.conformance.agent_run import CheckOptions
from antiphon.conformance.remote.play import play_scenario, play_suite
from antiphon.conformance.remote.raw_http import HttpAddress
from antiphon.conformance.remote.server_run import ServerRun
from antiphon.conformance.requirements import Scenario, Suite
from antiphon.conformance.results import ConformanceReport, ScenarioRecord
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
    address = HttpAddress(url, token, options.limit, tls)
    late = f"no answer came within {options.limit:g} s"

    async def play(scenario: Scenario[ServerRun]) -> ScenarioRecord:
        with _workspace(options) as cwd:
            run = ServerRun(address, options, cwd, over_http=urlsplit(url).scheme in ("http", "https"))
            return await play_scenario(scenario, run, SCENARIO_LIMIT * options.limit, late)

    return await play_suite(suite_of(url), play, Direction.A2C, only=only, jobs=jobs, progress=progress)


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
