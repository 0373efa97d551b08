"""Judges the records against the goals and prints them. Knows no processes."""

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from benchmarks.commands import CONTESTANTS, OURS
from benchmarks.rounds import Record
from benchmarks.workloads import BARE_IMPORT, UNITS, Goal, Workload


@dataclass(frozen=True, slots=True)
class Verdict:
    """One goal, judged. `value` is None where one side has no number."""

    workload: str
    measure: str
    against: str | None
    sense: str
    bound: float
    value: float | None
    met: bool | None
    note: str = ""

    def row(self) -> str:
        """Write it as a line of the table."""
        what = f"vs {self.against}" if self.against else "ours alone"
        value = "-" if self.value is None else f"{self.value:.2f}"
        word = {True: "met", False: "NOT MET", None: "not judged"}[self.met]
        target = f"{self.sense} {self.bound:g}"
        return (
            f"{self.workload:<24} {self.measure:<11} {what:<18} {value:>8}   {target:<8} {word}  {self.note}".rstrip()
        )


def judge(workload: Workload, record: Record) -> Iterator[Verdict]:
    """Judge every goal of one workload by the median of per-round ratios."""
    for goal in workload.goals:
        values, sense = _values(goal, record)
        value = statistics.median(values) if values else None
        met = None if value is None else (value >= goal.bound if sense == "≥" else value <= goal.bound)
        note = _note(goal, record, value)
        yield Verdict(workload.name, goal.measure, goal.against, sense, goal.bound, value, met, note)


def _values(goal: Goal, record: Record) -> tuple[list[float], str]:
    if goal.against is None:
        return record.values.get(OURS, {}).get(goal.measure, []), "≤"
    if goal.against == BARE_IMPORT:
        return record.ratios(OURS, goal.against, goal.measure), "≤"
    return record.ratios(goal.against, OURS, goal.measure), "≥"


def _note(goal: Goal, record: Record, value: float | None) -> str:
    """Say what we would need where we have no number yet."""
    if value is not None or goal.against is None:
        return ""
    theirs = record.median(goal.against, goal.measure)
    if theirs is None:
        return "no number of theirs"
    needed = theirs * goal.bound if goal.against == BARE_IMPORT else theirs / goal.bound
    return f"needs {needed:.3g} {UNITS[goal.measure]}"


def medians(workload: Workload, record: Record) -> Iterator[str]:
    """Write one line per measure with the median of each contestant."""
    for measure in workload.measures:
        cells = []
        for name in (OURS, *(n for n in CONTESTANTS if n != OURS), BARE_IMPORT):
            median = record.median(name, measure)
            if median is not None:
                cells.append(f"{name} {median:.4g}")
            elif name in record.failures:
                cells.append(f"{name} failed")
        yield f"{workload.name:<24} {UNITS[measure]:<26} {'   '.join(cells)}"


def as_json(versions: Mapping[str, str], played: Mapping[str, tuple[Workload, Record]]) -> dict[str, object]:
    """Make the file that keeps every raw number."""
    return {
        "versions": dict(versions),
        "workloads": {
            name: {
                "title": workload.title,
                "facing": workload.facing,
                "count": workload.count,
                "sessions": workload.sessions,
                "size": workload.size,
                "values": {
                    who: {m: [round(v, 4) for v in vs] for m, vs in by.items()} for who, by in record.values.items()
                },
                "failures": record.failures,
                "verdicts": [asdict(v) for v in judge(workload, record)],
            }
            for name, (workload, record) in played.items()
        },
    }
