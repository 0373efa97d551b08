"""What a contestant writes down about itself: CPU, wall and peak memory between two marks. Knows no SDK."""

import json
import os
import resource
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

REPORT: Final = "BENCH_REPORT"
"""Environment variable: the file the report goes to, since stdin and stdout carry the protocol."""


@dataclass(frozen=True, slots=True)
class Task:
    """What the harness asks for on the command line: `KIND COUNT SESSIONS SIZE`."""

    kind: str
    count: int
    sessions: int
    size: int


def task_from_argv() -> Task:
    """Read the task this program was started for."""
    kind, count, sessions, size = sys.argv[1:5]
    return Task(kind, int(count), int(sessions), int(size))


def big_text(kind: str, size: int) -> str:
    """Make `size` ASCII characters; the `_lines` kinds hold a newline every 80, which JSON must escape."""
    if kind.endswith("_lines"):
        return (("x" * 79 + "\n") * (size // 80 + 1))[:size]
    return "x" * size


def peak_bytes() -> int:
    """Peak resident memory of this process. Not `ru_maxrss` on Linux: that one is inherited from the parent."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(int(row.split()[1]) * 1024 for row in status.splitlines() if row.startswith("VmHWM"))


@dataclass(slots=True)
class Probe:
    """Two marks and what was counted between them."""

    handled: int = 0
    samples: list[float] = field(default_factory=list)
    _cpu: float | None = None
    _wall: float = 0.0
    _seconds: float | None = None

    def start(self) -> None:
        """Mark the start; later calls (one per session) change nothing."""
        if self._cpu is None:
            self._cpu = time.process_time()
            self._wall = time.perf_counter()

    def lap(self) -> None:
        """Mark the moment the work was done, when the process lives on a little longer."""
        self._seconds = time.perf_counter() - self._wall

    def finish(self) -> None:
        """Mark the end and write the report."""
        cpu, now = time.process_time(), time.perf_counter()
        seconds = now - self._wall if self._seconds is None else self._seconds
        report = {
            "handled": self.handled,
            "cpu": 0.0 if self._cpu is None else cpu - self._cpu,
            "wall": seconds,
            "peak": peak_bytes(),
            "samples": [round(s * 1e6, 2) for s in self.samples],
        }
        Path(os.environ[REPORT]).write_text(json.dumps(report), encoding="utf-8")
