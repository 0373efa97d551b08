"""All tests, in three parts: the fast ones, and then the slow ones with those beside them that belong together.

Those that belong together fill a table, so one process runs them, and it mostly waits for the programs of others. What
it says is kept and shown when the rest has spoken. A part that fails ends everything after it.

    python tools/all_tests.py JOBS [words for pytest ...]       # 0 jobs: each part in one process
"""

import subprocess
import sys
import tempfile
from collections.abc import Sequence

NOTHING_SELECTED = 5
"""How pytest ends when there was no such test: fine for a part of the selection, not for all of it."""


def command(which: str, words: Sequence[str], jobs: int = 0) -> list[str]:
    """One part. Tests differ much in length, so a process that is through takes over what another still had before it."""
    spread = ["-n", str(jobs), "--dist", "worksteal"] if jobs else []
    return [sys.executable, "-m", "pytest", "-m", which, *spread, *words]


def slow_ones(jobs: int, words: Sequence[str]) -> list[int]:
    """The slow tests, and beside them those that belong together: how each ended."""
    with tempfile.TemporaryFile() as said:
        beside = subprocess.Popen(command("slow and together", words), stdout=said, stderr=subprocess.STDOUT)
        try:
            status = subprocess.run(command("slow and not together", words, jobs)).returncode
            statuses = [status, beside.wait()]
        finally:
            beside.terminate()  # does nothing to one that has ended
            beside.wait()
            said.seek(0)
            sys.stdout.buffer.write(said.read())
            sys.stdout.buffer.flush()
    return statuses


def main(jobs: int, words: Sequence[str]) -> int:
    fast = subprocess.run(command("not slow", words, jobs)).returncode
    statuses = [fast]
    if fast in (0, NOTHING_SELECTED):
        more = jobs and jobs + 1  # than there are processors: these wait for programs too
        statuses += slow_ones(more, words)
    bad = [status for status in statuses if status not in (0, NOTHING_SELECTED)]
    return bad[0] if bad else min(statuses)


if __name__ == "__main__":
    try:
        sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
    except KeyboardInterrupt:  # those who were at work have told what they were at
        sys.exit(130)
