"""Run all scenarios for agents with an agent, and report. How the agent is started is up to the `AgentSource`."""

import asyncio
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from antiphon.config.environment import with_new_sessions
from antiphon.conformance.agent_run import FENCE, PROBE_LIMIT, AgentRun, AgentTraits, CheckOptions
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
from antiphon.conformance.standin_client import StandinClient
from antiphon.conformance.suites.agent import SUITE
from antiphon.conformance.wire import PeerClosed, PeerResponse, PeerWire
from antiphon.errors import AcpError
from antiphon.text import one_line
from antiphon.traffic.entries import Direction, Entry
from antiphon.traffic.state import is_malformed
from antiphon.transports.base import Transport
from antiphon.transports.process import spawn
from antiphon.transports.remote import ConnectionRefused

__all__ = ["AgentCommand", "AgentSource", "Waits", "check_agent"]

SCENARIO_LIMIT: Final = 4
"""A scenario may take this many times as long as a response may."""

CLOSE_LIMIT: Final = 5.0
"""Seconds that are waited for a session to be closed between two scenarios."""

NO_AGENT: Final = "Check the command: it has to start an agent that serves ACP on stdin and stdout; many need an option for it, such as `--acp`."
"""What to change where the first request of all has no response: most likely there is no agent at all."""

DIRECTORY: Final = "name a directory where the agent runs, and that it may use, with `--cwd DIR`"
"""What to do where an agent on a network refuses to work."""

LATER: Final = "let the server take more prompts, as `antiphon serve --limit prompts-per-minute=1000` does"
"""What to do where a server limits how many prompts it takes."""

VERSION: Final = "check it by the version that it speaks: `--protocol` names it"
"""What to do where an agent speaks another version of the protocol."""

STUMBLED: Final = "the check itself failed on something that the agent sent"

SLOW: Final = 15.0
"""Seconds after which one more agent is started to share what is left to run, as often as there are jobs."""

JOBS: Final = 4
"""Agents that run at once, by default."""

WAITS_EVERY: Final = 1.0
WAITS_FROM: Final = 3.0
"""Seconds between two reports of what is waited for, and seconds from which on a wait is reported."""

Progress = Callable[[ScenarioRecord], None]
Waits = Callable[[Sequence[tuple[str, str, float]]], None]
"""Called with the scenarios that wait, each with the method that is not answered and the seconds since it was sent."""


class AgentSource(Protocol):
    """A source of agents: a command, or memory in tests; sockets can be added."""

    @property
    def is_process(self) -> bool:
        """Whether an agent is a process here, with an exit and children."""

    async def start(self) -> Transport:
        """A new agent."""


@dataclass(slots=True)
class AgentLane:
    """Scenarios that are run one after the other with one agent, for as long as that stays."""

    waiting: deque[Scenario[AgentRun]]
    shared: tuple[PeerWire, StandinClient, PeerResponse, Path] | None = None
    done_with: set[str] = field(default_factory=set)
    """Sessions of the shared agent that scenarios have used."""


class AgentCheck:
    """One run of the agent suite."""

    def __init__(
        self,
        place: AgentSource,
        options: CheckOptions,
        progress: Progress | None,
        jobs: int,
        run_of: type[AgentRun] = AgentRun,
    ) -> None:
        self.place = place
        self._run_of = run_of
        self.options = options
        self._progress = progress
        self._jobs = jobs
        self._turns = asyncio.Semaphore(jobs)
        self.other_version = ""
        """Why there is nothing to judge: the agent speaks another version of the protocol."""
        self._hopeless = ""
        """Why there is no agent to share: one that does not come up is not started for each scenario anew."""
        self._records: list[ScenarioRecord] = []
        self.initialized: PeerResponse | None = None
        self._traits = AgentTraits()
        self._known = asyncio.Event()
        """Set when the first agent has started. Scenarios with an agent of their own wait for it: if none starts, they need not try."""
        self._ends = AsyncExitStack()
        self._begun = time.monotonic()
        self._lanes = 1
        self._playing: dict[str, AgentRun] = {}

    async def run(self, scenarios: Sequence[Scenario[AgentRun]]) -> list[ScenarioRecord]:
        """Run them all. Those that share an agent are run one after the other: the correct ones with one, those that provoke with
        another, so that no agent is held to have left a correct client because of what a scenario before it was sent."""
        correct = deque(one for one in scenarios if not one.alone and not one.provokes)
        provoking = deque(one for one in scenarios if not one.alone and one.provokes)
        first, second = (correct, provoking) if correct else (provoking, correct)
        try:
            async with self._ends, asyncio.TaskGroup() as tasks:
                tasks.create_task(self._play_together(AgentLane(first), tasks))
                tasks.create_task(self._play_later(AgentLane(second), tasks))
                for one in scenarios:
                    if one.alone:
                        tasks.create_task(self._play_alone(one))
        except BaseExceptionGroup as several:  # the program cannot be started: one sentence about it is enough
            raise several.exceptions[0] from None
        mark_late(self._records)
        order = [one.name for one in scenarios]
        return sorted(self._records, key=lambda record: order.index(record.name))

    async def report_waits(self, report: Waits) -> None:
        """Report again and again what is waited for: an agent may take long, and the user has to see that it does."""
        while True:
            await asyncio.sleep(WAITS_EVERY)
            found = [(name, *wait) for name, run in self._playing.items() for wait in run.wire.waits]
            report([one for one in found if one[2] >= WAITS_FROM])

    async def _play_together(self, lane: AgentLane, tasks: asyncio.TaskGroup) -> None:
        async with self._turns:
            while lane.waiting:
                self._widen(lane, tasks)
                await self._play(lane.waiting.popleft(), lane)
                self._known.set()
            self._known.set()

    def _widen(self, lane: AgentLane, tasks: asyncio.TaskGroup) -> None:
        """Share what waits among more agents where one after the other takes too long: a slow agent has others beside it."""
        if self._lanes < self._jobs and time.monotonic() - self._begun > SLOW * self._lanes and len(lane.waiting) > 1:
            self._lanes += 1
            tasks.create_task(self._play_together(AgentLane(lane.waiting), tasks))

    async def _play_later(self, lane: AgentLane, tasks: asyncio.TaskGroup) -> None:
        await self._known.wait()
        if lane.waiting:
            await self._play_together(lane, tasks)

    async def _play_alone(self, scenario: Scenario[AgentRun]) -> None:
        await self._known.wait()
        async with self._turns:
            await self._play(scenario, AgentLane(deque()))

    async def _play(self, scenario: Scenario[AgentRun], lane: AgentLane) -> None:
        begun = time.monotonic()
        record, again = await self._attempt(scenario, lane)
        if again:
            record, _ = await self._attempt(scenario, lane)
        record.took = time.monotonic() - begun
        self._records.append(record)
        if self._progress is not None:
            self._progress(record)

    async def _attempt(self, scenario: Scenario[AgentRun], lane: AgentLane) -> tuple[ScenarioRecord, bool]:
        """Play a scenario: what came of it, and whether the agent left because of what an earlier scenario had sent, so that it has to
        be run again."""
        record = ScenarioRecord(scenario.name)
        run: AgentRun | None = None
        again = False
        try:
            run = self._playing[scenario.name] = await self._prepared(scenario, record, lane)
            reason = await self._played(scenario, run)
        except NoResponse as stopped:
            again = stopped.left and run is not None and run.inherited
            reason = await self._blamed(stopped, run, record)
        except ScenarioStopped as stopped:
            reason = RequirementVerdict(stopped.status, str(stopped))
        if run is not None:
            record.verdicts.update(run.verdicts)
        for one in scenario.shows:
            record.verdicts.setdefault(one.id, reason)
        for general in ("rpc.answered", "process.stays"):
            if run is not None:
                record.verdicts.setdefault(general, RequirementVerdict(RequirementStatus.PASSED))
        self._playing.pop(scenario.name, None)
        await self._clear(scenario, record, lane)
        return record, again

    async def _blamed(self, stopped: NoResponse, run: AgentRun | None, record: ScenarioRecord) -> RequirementVerdict:
        """Record what a missing response shows about the agent, in `record`; return why the scenario went no further."""
        provoked = run.wire.provocation if run is not None else None
        if stopped.left:
            general = "process.stays" if provoked is None else "rpc.answered"
            excused = provoked is not None and (provoked is not stopped.request or is_malformed(provoked))
        else:
            general = "rpc.answered"
            excused = run is not None and run.odd
            if run is not None and not excused:
                await run.wait_longer(stopped)
        if not excused:
            fix = NO_AGENT if run is None else ""
            record.verdicts[general] = RequirementVerdict(
                RequirementStatus.FAILED, str(stopped), (stopped.request,), stopped.request, fix
            )
        return RequirementVerdict(RequirementStatus.BLOCKED, str(stopped), awaited=stopped.request)

    async def _prepared(self, scenario: Scenario[AgentRun], record: ScenarioRecord, lane: AgentLane) -> AgentRun:
        """A run of it.

        Raises:
            Blocked: there is no agent.
        """
        if scenario.process and not self.place.is_process:
            raise Blocked("there is no process to look at")
        if self._hopeless:
            raise Blocked(self._hopeless)
        return await (self._open(record) if scenario.alone else self._together(record, lane))

    async def _played(self, scenario: Scenario[AgentRun], run: AgentRun) -> RequirementVerdict:
        """Run a scenario; return the verdict for what it does not show. No message of an agent may end the check."""
        longest = SCENARIO_LIMIT * self.options.limit
        try:
            async with asyncio.timeout(longest):
                await scenario.play(run)
        except ScenarioStopped:
            raise
        except TimeoutError:
            return RequirementVerdict(
                RequirementStatus.BLOCKED, f"the scenario took over {longest:g} s: `--timeout` gives it longer"
            )
        except Exception as error:
            return RequirementVerdict(RequirementStatus.BLOCKED, f"{STUMBLED}: {error!r}")
        return RequirementVerdict(RequirementStatus.BLOCKED, "the scenario did not come to it")

    async def _clear(self, scenario: Scenario[AgentRun], record: ScenarioRecord, lane: AgentLane) -> None:
        """What a scenario that shares an agent leaves to the next one is a client that handles requests again, and no turn that runs."""
        if scenario.alone:
            for wire in record.wires:
                await wire.close()
        elif lane.shared is not None:
            wire, client = lane.shared[:2]
            for asked in wire.checker.state.pairs.open:
                if asked.dir is wire.own_direction and asked.method == "session/prompt":
                    params = {"sessionId": asked.params.get("sessionId")}
                    await wire.send({"jsonrpc": "2.0", "method": "session/cancel", "params": params})
            client.held.clear()
            client.allows = "allow_once"
            client.unsaved.clear()
            for asked in client.waiting:
                await client.refuse(asked, -32603, "the scenario is over")
            client.waiting.clear()
            await self._close_sessions(wire, lane)

    async def _close_sessions(self, wire: PeerWire, lane: AgentLane) -> None:
        """Sessions that are not needed any more are closed where that can be: for some agents each is a process of its own."""
        if self.initialized is None or self.initialized.get(*self._run_of.closes) is None:
            return
        for id in wire.checker.state.sessions.keys() - lane.done_with:
            lane.done_with.add(id)
            number = wire.new_id()
            asked = {"jsonrpc": "2.0", "id": number, "method": "session/close", "params": {"sessionId": id}}
            request_sent = await wire.send(asked)
            try:
                await wire.wait_for(_is_answer(number), after=request_sent.number, limit=CLOSE_LIMIT)
            except (TimeoutError, PeerClosed):  # whether it is answered is the subject of another scenario
                return

    async def _open(self, record: ScenarioRecord) -> AgentRun:
        """A run with an agent of its own, which is not initialized yet."""
        wire = PeerWire(await self.place.start(), Direction.C2A)
        record.wires.append(wire)
        workspace = self._workspace()
        client = StandinClient(wire, workspace, confined=self.options.remote)
        self._ends.push_async_callback(client.close)
        run = self._run(wire, client, self._scenario_directory(workspace, record))
        run.another = lambda: self._open(record)
        run.renewed = run.another
        return run

    def _run(self, wire: PeerWire, client: StandinClient, cwd: Path) -> AgentRun:
        run = self._run_of(wire, client, cwd, self.options)
        run.traits = self._traits
        return run

    def _workspace(self) -> Path:
        inside = self.options.directory if self.options.shared else None
        try:
            made = tempfile.TemporaryDirectory(prefix="antiphon-check-", dir=inside, ignore_cleanup_errors=True)
        except OSError as error:
            raise AcpError(f"`{inside}` cannot be used: {error.strerror}", hint=DIRECTORY) from error
        return Path(self._ends.enter_context(made)).resolve()

    def _scenario_directory(self, workspace: Path, record: ScenarioRecord) -> Path:
        """A directory of the scenario's own: neither the files nor the sessions of one are found by another. On another machine there
        is only the one that was named."""
        if self.options.directory is not None and not self.options.shared:
            return self.options.directory
        directory = workspace / record.name
        directory.mkdir(exist_ok=True)
        return directory

    async def _together(self, record: ScenarioRecord, lane: AgentLane) -> AgentRun:
        """Run a scenario on the shared agent, or on a new one if that has exited."""
        if lane.shared is None or lane.shared[0].closed:
            run = await self._open(record)
            self._ends.push_async_callback(run.wire.close)
            try:
                initialized = await run.initialize()
            except NoResponse as missing:
                if self.initialized is None and isinstance(run.wire.transport.lost, ConnectionRefused):
                    raise run.wire.transport.lost from None
                self._hopeless = str(missing) if self.initialized is None else ""
                raise
            first = self.initialized is None
            settled = initialized.get("protocolVersion")
            if run.version != 1 and settled != run.version and initialized.error is None:
                self.initialized = self.initialized or initialized
                self._hopeless = f"the agent does not speak version {run.version}: it settles on version {settled}"
                self.other_version = self._hopeless
                raise OtherVersion(self._hopeless)
            lane.shared = run.wire, run.client, initialized, run.cwd.parent
            self.initialized = self.initialized or initialized
            self._sign_in_by_name(initialized)
            await self._learn_traits(run, record)
            if first and self.options.remote and initialized.error is None:
                await _try_directory(run)
        wire, client, initialized, cwd = lane.shared
        if wire not in record.wires:
            record.wires.append(wire)
        run = self._run(wire, client, self._scenario_directory(cwd, record))
        run.initialized = initialized
        run.renewed = lambda: self._together(record, lane)
        if initialized.error is not None:
            raise Blocked("`initialize` was answered with an error")
        return run

    def _sign_in_by_name(self, initialized: PeerResponse) -> None:
        """A way to sign in that the agent does not have is a slip of the user, not a fault of the agent's."""
        offered = initialized.get("authMethods")
        names = (
            [str(one.get("methodId", one.get("id"))) for one in offered if isinstance(one, dict)]
            if isinstance(offered, list)
            else []
        )
        if self.options.named and initialized.error is None and self.options.auth not in names:
            listed = ", ".join(names) or "none"
            raise AcpError(f"the agent has no way to sign in called `{self.options.auth}`", hint=f"it has {listed}.")

    async def _learn_traits(self, run: AgentRun, record: ScenarioRecord) -> None:
        """Learn whether it answers unknown methods: most scenarios send one to see that all before it was read."""
        if self._traits.known or run.initialized is None or run.initialized.error is not None:
            return
        self._traits.known = True
        try:
            await run.request(FENCE, {}, limit=min(self.options.limit, PROBE_LIMIT))
        except NoResponse as missing:
            if missing.left:
                return  # the scenario finds that out by itself
            self._traits.silent = True
            record.verdicts["rpc.answered"] = RequirementVerdict(
                RequirementStatus.FAILED, str(missing), (missing.request,)
            )


async def check_agent(
    place: AgentSource,
    options: CheckOptions | None = None,
    *,
    suite: Suite[AgentRun] = SUITE,
    only: Sequence[str] = (),
    left_out: Mapping[str, str] | None = None,
    jobs: int = JOBS,
    progress: Progress | None = None,
    waits: Waits | None = None,
) -> ConformanceReport:
    """Check an agent; `only` names the scenarios to run, unless all of them, and `left_out` those that cannot be run, with the reason.
    `waits` is called with what is waited for."""
    begun = time.monotonic()
    checking = AgentCheck(place, options or CheckOptions(), progress, jobs, _run_type(suite.version))
    wanted = [one for one in suite.scenarios.values() if not only or one.name in only]
    left = {one.name: left_out[one.name] for one in wanted if one.name in left_out} if left_out else {}
    scenarios = [one for one in wanted if one.name not in left]
    reporter = asyncio.create_task(checking.report_waits(waits)) if waits is not None else None
    try:
        records = await checking.run(scenarios)
    finally:
        if reporter is not None:
            reporter.cancel()
    if checking.other_version:
        raise AcpError(checking.other_version, hint=VERSION)
    _check_limits(records)
    asked = {id: one for id, one in suite.requirements().items() if one.scenario not in left}
    results = results_of(asked, records, Direction.A2C, some=bool(only), version=suite.version)
    name, took = _name(checking.initialized), time.monotonic() - begun
    return ConformanceReport(suite.side, name, results, took, complete=not only, left_out=left)


def _run_type(version: int) -> type[AgentRun]:
    if version == 1:
        return AgentRun
    from antiphon.conformance.v2.agent_run import AgentRunV2

    return AgentRunV2


async def _try_directory(run: AgentRun) -> None:
    """Open a session in the directory of an agent on a network. One that it does not have would block most scenarios.

    Raises:
        AcpError: the agent refuses it.
    """
    with suppress(ScenarioStopped):  # what else can go wrong is the subject of scenarios
        response = await run.new_session()
        if response.error is not None:
            texts = [response.error.get(key) for key in ("message", "data")]
            why = one_line(": ".join(text for text in texts if isinstance(text, str)))
            raise AcpError(f"the agent opens no session in `{run.cwd}`: {why}", hint=DIRECTORY)


def _check_limits(records: Sequence[ScenarioRecord]) -> None:
    """Give no verdict on an agent behind a server that took only some of our prompts: it would be one on the server's limits.

    Raises:
        AcpError: that is how it is.
    """
    for wire in {id(wire): wire for record in records for wire in record.wires}.values():
        for entry in wire.received:
            error = entry.msg.get("error") if entry.is_response else None
            if not isinstance(error, dict):
                continue
            data = error.get("data")
            if isinstance(data, dict) and data.get("recoverable") is True and data.get("action") == "try again later":
                raise AcpError(
                    f"the agent takes no more requests for now: {one_line(str(error['message']))}", hint=LATER
                )


def _is_answer(id: int) -> Callable[[Entry], bool]:
    return lambda one: one.is_response and one.msg.get("id") == id


def _name(initialized: PeerResponse | None) -> str:
    info = (initialized.get("agentInfo") or initialized.get("info")) if initialized is not None else None
    if not isinstance(info, dict):
        return ""
    return " ".join(str(info[key]) for key in ("name", "version") if isinstance(info.get(key), str))


# --- agents that are commands


class AgentCommand:
    """A command, started where we were started: words in it may be paths. The agent learns the workspace by `session/new`."""

    is_process = True

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self.command = list(command)
        self._env = with_new_sessions() if env is None else env

    async def start(self) -> Transport:
        return await spawn(self.command, env=self._env)
