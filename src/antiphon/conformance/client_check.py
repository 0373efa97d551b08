"""Run all scenarios for clients with a client, and report. How the client is started is up to the `ClientSource`."""

import asyncio
import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from antiphon.conformance.client_process import ClientSource
from antiphon.conformance.client_run import ClientCheckOptions, ClientRun, ClientTraits
from antiphon.conformance.requirements import (
    Blocked,
    NoResponse,
    OtherVersion,
    RequirementStatus,
    RequirementVerdict,
    Scenario,
    ScenarioStopped,
    Suite,
)
from antiphon.conformance.results import ConformanceReport, ScenarioRecord, mark_late, results_of
from antiphon.conformance.suites.client import SUITE
from antiphon.errors import AcpError
from antiphon.traffic.entries import Direction
from antiphon.traffic.state import is_malformed

__all__ = ["check_client"]

_log = logging.getLogger(__name__)

SCENARIO_LIMIT: Final = 5
"""A scenario may take this many times as long as a response may."""

LEAVE_GRACE: Final = 3.0
"""Seconds that a client has to end by itself when its scenario is over; then it is ended."""

JOBS: Final = 4
"""Clients that run at once, by default."""

FIRST: Final = "introduction"
ENTRY: Final = "prompt.comes"
"""The scenario that is run before the others, and what has to hold in it for them to make sense."""

VERSION: Final = "check it by the version that it speaks, or make it ask for this one: `--protocol` names the version"
"""What to do where a client speaks another version of the protocol."""

GENERAL: Final = ("requests.answered", "turn.stays")


class ClientCheck:
    """One run of the client suite."""

    def __init__(
        self,
        place: ClientSource,
        options: ClientCheckOptions,
        progress: Callable[[ScenarioRecord], None] | None,
        jobs: int,
        run_type: type[ClientRun] = ClientRun,
    ) -> None:
        self.place = place
        self.options = options
        self._run_type = run_type
        self.peer = ""
        self.other_version = ""
        """Why there is nothing to judge: the client speaks another version of the protocol."""
        self._hopeless = ""
        self._progress = progress
        self._turns = asyncio.Semaphore(jobs)
        self._traits = ClientTraits()

    async def run(self, scenarios: Sequence[Scenario[ClientRun]]) -> list[ScenarioRecord]:
        """Run them all, each with a client of its own; first the one without which the others can only wait in vain."""
        records = [await self._play(one) for one in scenarios if one.name == FIRST]
        found = records[0].verdicts[ENTRY] if records else None
        if found is not None and found.status in (RequirementStatus.FAILED, RequirementStatus.BLOCKED):
            why = "" if found.status is RequirementStatus.FAILED else f": {found.text}"
            self._hopeless = f"the client got nowhere in the scenario `{FIRST}`{why}"
        async with asyncio.TaskGroup() as tasks:
            played = [tasks.create_task(self._play(one)) for one in scenarios if one.name != FIRST]
        return records + [one.result() for one in played]

    async def _play(self, scenario: Scenario[ClientRun]) -> ScenarioRecord:
        async with self._turns:
            with _workspace() as folder:
                record = await self._play_in(scenario, folder)
        if self._progress is not None:
            self._progress(record)
        return record

    async def _play_in(self, scenario: Scenario[ClientRun], cwd: Path) -> ScenarioRecord:
        record = ScenarioRecord(scenario.name)
        begun = time.monotonic()
        run = self._run_type(self.place, cwd, self.options)
        run.traits = self._traits
        try:
            reason = await self._reason(scenario, run, record)
        finally:
            await self._leave(run)
        record.wires += [one.wire for one in run.connections]
        record.verdicts.update(run.verdicts)
        for one in scenario.shows:
            record.verdicts.setdefault(one.id, reason)
        if any(wire.checker.state.initialize is not None for wire in record.wires):
            for general in GENERAL:
                record.verdicts.setdefault(general, RequirementVerdict(RequirementStatus.PASSED))
        self.peer = self.peer or _name(record)
        record.took = time.monotonic() - begun
        return record

    async def _reason(
        self, scenario: Scenario[ClientRun], run: ClientRun, record: ScenarioRecord
    ) -> RequirementVerdict:
        """Play it; why there is no verdict where it came to none."""
        try:
            if self._hopeless:
                raise Blocked(self._hopeless)
            if scenario.process and not self.place.is_process:
                raise Blocked("there is no process to look at")
            async with asyncio.timeout(SCENARIO_LIMIT * self.options.limit):
                await scenario.play(run)
        except NoResponse as stopped:
            if not _is_excused(stopped, run):
                general = GENERAL[stopped.left]
                record.verdicts[general] = RequirementVerdict(
                    RequirementStatus.FAILED, str(stopped), (stopped.request,), stopped.request
                )
            return RequirementVerdict(RequirementStatus.BLOCKED, str(stopped), awaited=stopped.request)
        except ScenarioStopped as stopped:
            self.other_version = str(stopped) if isinstance(stopped, OtherVersion) else self.other_version
            return RequirementVerdict(stopped.status, str(stopped))
        except TimeoutError:
            return RequirementVerdict(
                RequirementStatus.BLOCKED, f"the scenario took over {SCENARIO_LIMIT * self.options.limit:g} s"
            )
        except Exception as error:  # a peer may send anything: a scenario that fails on it must not end the report
            _log.warning("the scenario %s failed", scenario.name, exc_info=True)
            return RequirementVerdict(
                RequirementStatus.BLOCKED, f"the check could not make sense of what it received: {error!r:.200}"
            )
        return RequirementVerdict(RequirementStatus.BLOCKED, "the scenario did not come to it")

    async def _leave(self, run: ClientRun) -> None:
        """Let the client end by itself, and if it does not, end it: it may be one that stays until its user leaves."""
        with suppress(Blocked):
            await run.release()
            run.running.end_input()
            with suppress(TimeoutError):
                await asyncio.wait_for(run.running.ended.wait(), min(LEAVE_GRACE, self.options.limit))
            await run.running.close()
        for one in run.connections:
            await one.agent.close()
            await one.wire.close()


def _is_excused(stopped: NoResponse, run: ClientRun) -> bool:
    """Whether the client left after something that no correct agent sends; what that was has to be answered first all the same."""
    wire = next(
        (one.wire for one in run.connections if any(entry is stopped.request for entry in one.wire.trace)), None
    )
    wrong = wire.provocation if wire is not None else None
    if not stopped.left or wrong is None or wrong.number > stopped.request.number:
        return False
    return wrong is not stopped.request or is_malformed(wrong)


@contextmanager
def _workspace() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="antiphon-check-", ignore_cleanup_errors=True) as folder:
        yield Path(folder).resolve()


async def check_client(
    place: ClientSource,
    options: ClientCheckOptions | None = None,
    *,
    suite: Suite[ClientRun] = SUITE,
    only: Sequence[str] = (),
    jobs: int = JOBS,
    progress: Callable[[ScenarioRecord], None] | None = None,
) -> ConformanceReport:
    """Check a client; `only` names the scenarios to run, unless all of them."""
    begun = time.monotonic()
    checking = ClientCheck(place, options or ClientCheckOptions(), progress, jobs, _run_type(suite.version))
    records = await checking.run([one for one in suite.scenarios.values() if not only or one.name in only])
    if checking.other_version:
        raise AcpError(checking.other_version, hint=VERSION)
    mark_late(records)
    results = results_of(suite.requirements(), records, Direction.C2A, some=bool(only), version=suite.version)
    return ConformanceReport(suite.side, checking.peer, results, time.monotonic() - begun, complete=not only)


def _run_type(version: int) -> type[ClientRun]:
    if version == 1:
        return ClientRun
    from antiphon.conformance.v2.client_run import ClientRunV2

    return ClientRunV2


def _name(record: ScenarioRecord) -> str:
    for wire in record.wires:
        hello = wire.checker.state.initialize
        info = (hello.params.get("clientInfo") or hello.params.get("info")) if hello is not None else None
        if isinstance(info, dict):
            return " ".join(str(info[key]) for key in ("name", "version") if isinstance(info.get(key), str))
    return ""
