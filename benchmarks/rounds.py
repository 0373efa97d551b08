"""Plays workloads, contestants in turn within each round, and keeps every number. Knows no targets."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.bridges.playing import play_bridge
from benchmarks.commands import CONTESTANTS, Role, neutral_command
from benchmarks.measure import Run, RunFailed, Side, bare_import, converse, start_up
from benchmarks.rest import at_rest
from benchmarks.updates import encode
from benchmarks.workloads import BARE_IMPORT, Measure, Workload

Values = dict[Measure, float]
Say = Callable[[str], None]

_HELLO = encode(
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}}
)


_STARTED: Final[dict[str, Role]] = {"start": "minimal", "start_agent": "echo", "start_file": "file"}
"""The workloads that measure a start → what is started."""


@dataclass(slots=True)
class Record:
    """All rounds of one workload: for each contestant and measure one value per round."""

    values: dict[str, dict[Measure, list[float]]] = field(default_factory=dict)
    failures: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, values: Values) -> None:
        """Keep one round's values."""
        for measure, value in values.items():
            self.values.setdefault(name, {}).setdefault(measure, []).append(value)

    def median(self, name: str, measure: Measure) -> float | None:
        """Take the median over rounds, if there were any."""
        found = self.values.get(name, {}).get(measure)
        return statistics.median(found) if found else None

    def ratios(self, above: str, below: str, measure: Measure) -> list[float]:
        """Divide round by round, so that a slow minute hurts both sides alike."""
        upper = self.values.get(above, {}).get(measure, [])
        lower = self.values.get(below, {}).get(measure, [])
        return [a / b for a, b in zip(upper, lower, strict=False) if b > 0]


def play(workload: Workload, names: Sequence[str], rounds: int, say: Say) -> Record:
    """Play one workload: A B C, A B C, …; a contestant that fails is recorded and not asked again."""
    record = Record()
    names = [name for name in names if name in workload.among]
    if workload.kind in _STARTED:
        names = [BARE_IMPORT, *names]
    for number in range(rounds * workload.repeat):
        for name in names:
            if name in record.failures:
                continue
            try:
                values = _once(workload, name)
            except RunFailed as error:
                record.failures[name] = [str(error)]
                say(f"  {name}: {error}")
                continue
            record.add(name, values)
            shown = "  ".join(f"{measure} {value:.4g}" for measure, value in values.items())
            say(f"  round {number + 1}  {name:<15} {shown}")
    return record


def _once(workload: Workload, name: str) -> Values:
    if name == BARE_IMPORT:
        return {"start": bare_import("asyncio, msgspec") * 1e3}
    if (role := _STARTED.get(workload.kind)) is not None:
        command = CONTESTANTS[name].command(role)
        return {"start": start_up(command, _HELLO) * 1e3}
    if workload.kind == "idle":
        alone, each = at_rest(CONTESTANTS[name].command("echo"), workload.sessions)
        return {"idle": alone / 1e6, "session": each / 1e3}
    if workload.engine is not None:
        return play_bridge(CONTESTANTS[name].command(workload.engine), workload.engine, workload.count)
    run = _converse(workload, name)
    needs_idle = {"cpu_rusage", "memory"} & set(workload.measures)
    idle = _converse(workload.idle(), name) if needs_idle else run
    return {measure: _value(measure, workload, run, idle) for measure in workload.measures}


def _converse(workload: Workload, name: str) -> Run:
    contestant, arguments = CONTESTANTS[name], workload.arguments()
    client, agent = contestant.command("client", *arguments), contestant.command("agent", *arguments)
    if workload.facing == "neutral agent":
        agent = neutral_command("agent", *arguments)
    elif workload.facing == "neutral client":
        client = neutral_command("client", *arguments)
    elif workload.facing == "both neutral":
        client, agent = neutral_command("client", *arguments), contestant.command("relay", *arguments)
    run = converse(client, agent)
    _check(workload, run)
    return run


def _check(workload: Workload, run: Run) -> None:
    if run.client.handled != workload.count:
        raise RunFailed(f"the client handled {run.client.handled} of {workload.count} messages")


def _measured(workload: Workload, run: Run) -> Side:
    return run.agent if workload.facing in ("neutral client", "both neutral") else run.client


def _value(measure: Measure, workload: Workload, run: Run, idle: Run) -> float:
    side, still = _measured(workload, run), _measured(workload, idle)
    match measure:
        case "cpu":
            return side.cpu / workload.count * 1e6
        case "cpu_rusage":
            return (side.cpu_total - still.cpu_total) / workload.count * 1e6
        case "wall":
            return run.client.wall / workload.count * 1e6
        case "wall_total":
            return run.client.wall * 1e3
        case "p50":
            return _quantile(run.agent.samples, 0.50)
        case "p99":
            return _quantile(run.agent.samples, 0.99)
        case "memory":
            sides = [(side.peak, still.peak)]
            if workload.facing == "itself":
                sides = [(run.client.peak, idle.client.peak), (run.agent.peak, idle.agent.peak)]
            return max(peak - before for peak, before in sides) / workload.size
        case _:
            raise AssertionError(f"{measure} is measured by the harness")


def _quantile(samples: list[float], part: float) -> float:
    ordered = sorted(samples)
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)]
