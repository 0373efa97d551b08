"""`python -m benchmarks.run`: play the workloads, print the table, keep the raw numbers."""

import argparse
import json
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.commands import CONTESTANTS, HERE, OURS, versions
from benchmarks.rounds import Record, play
from benchmarks.table import as_json, judge, medians
from benchmarks.workloads import Workload, workloads

ROUNDS: Final = 5


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two rounds of smaller workloads")
    parser.add_argument("--only", metavar="NAME", action="append", help="workloads whose name starts with NAME")
    parser.add_argument("--contestant", metavar="NAME", action="append", choices=list(CONTESTANTS))
    parser.add_argument("--rounds", type=int, metavar="N", help=f"default {ROUNDS}, or 2 with --quick")
    parser.add_argument("--json", type=Path, metavar="FILE", help="default benchmarks/results/<time>.json")
    parser.add_argument("--strict", action="store_true", help="exit 1 if a target is not met")
    parser.add_argument("--list", action="store_true", help="name the workloads and stop")
    return parser.parse_args(argv)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _chosen(options: argparse.Namespace) -> list[Workload]:
    every = workloads(quick=options.quick)
    if not options.only:
        return list(every)
    return [w for w in every if any(w.name.startswith(prefix) for prefix in options.only)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run and return the exit code."""
    options = _options(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that running children are killed on the way out
    chosen = _chosen(options)
    if options.list or not chosen:
        print("\n".join(f"{w.name:<24} {w.title}" for w in workloads(quick=options.quick)))
        return 0 if options.list else 2
    found = versions()
    print("  ".join(f"{name} {version}" for name, version in found.items()), flush=True)
    wanted = options.contestant or list(CONTESTANTS)
    names = [name for name in wanted if CONTESTANTS[name].available()]
    for name in sorted(set(wanted) - set(names)):
        _say(f"note: {name} is not installed and takes no part")
    rounds = options.rounds or (2 if options.quick else ROUNDS)

    played: dict[str, tuple[Workload, Record]] = {}
    for workload in chosen:
        _say(f"{workload.name}: {workload.title}")
        played[workload.name] = workload, play(workload, names, rounds, _say)
    return _report(options, found, played)


def _report(options: argparse.Namespace, found: dict[str, str], played: dict[str, tuple[Workload, Record]]) -> int:
    print("\nmedians")
    for workload, record in played.values():
        print("\n".join(medians(workload, record)))
        for name, reasons in record.failures.items():
            print(f"{workload.name:<24} {name} failed: {reasons[0]}")
    print(f"\ntargets (median of per-round ratios; rival ÷ {OURS} where it says ≥)")
    verdicts = [verdict for workload, record in played.values() for verdict in judge(workload, record)]
    print("\n".join(verdict.row() for verdict in verdicts))

    path = options.json or HERE / "results" / time.strftime("%Y%m%d-%H%M%S.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(as_json(found, played), indent=1) + "\n", encoding="utf-8")
    _say(f"raw numbers: {path}")
    return 1 if options.strict and any(v.met is not True for v in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
