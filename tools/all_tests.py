"""All tests, in three parts: the fast ones, and then the slow ones with those beside them that belong together.

Those that belong together fill a table, so one process runs them, and it mostly waits for the programs of others. What
it says is kept and shown when the rest has spoken. A part that fails ends everything after it.

    python tools/all_tests.py JOBS [words for pytest ...]       # 0 jobs: each part in one process
"""

import argparse
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final, NoReturn, Self

FAST: Final = "not slow"
SLOW: Final = "slow and not together"
TOGETHER: Final = "slow and together"

NOTHING_SELECTED: Final = 5
"""How pytest ends when there was no such test: fine for a part of the selection, not for all of it."""

GRACE: Final = 20.0
"""Seconds in which a part that was interrupted may end what its tests have started. pytest-xdist takes ten of them."""

Part = subprocess.Popen[bytes]


def command(which: str, words: Sequence[str], jobs: int = 0) -> list[str]:
    """One part. Tests differ much in length, so a process that is through takes over what another still had before it."""
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("-m", default="")
    wish, others = finder.parse_known_args(words)  # pytest heeds only the last -m
    spread = ["-n", str(jobs), "--dist", "worksteal"] if jobs else []
    marks = f"({which}) and ({wish.m})" if wish.m else which
    return [sys.executable, "-m", "pytest", "-m", marks, *spread, *others]


class Parts:
    """Those that run. None is left behind, and each has the time to clear up after itself, however the block is left."""

    def __init__(self) -> None:
        self._running: list[Part] = []
        self.ended: dict[str, int] = {}

    def start(self, which: str, words: Sequence[str], jobs: int = 0, said: IO[bytes] | None = None) -> Part:
        """`said` keeps what it says, else that is shown."""
        part = subprocess.Popen(command(which, words, jobs), stdout=said, stderr=said and subprocess.STDOUT)
        self._running.append(part)
        return part

    def wait(self, which: str, part: Part) -> None:
        """Until it has ended, and how it did."""
        status = part.wait()
        self._running.remove(part)
        self.ended[which] = status if status >= 0 else 128 - status  # as a shell has it

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not KeyboardInterrupt:  # else the terminal told them too, and who is told twice does not clear up
            self._tell(signal.SIGINT)
        self._see_off()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            self._tell(number)
            self._see_off()

    def _tell(self, number: int) -> None:
        for part in self._running:
            part.send_signal(number)

    def _see_off(self) -> None:
        self._running = [part for part in self._running if not _has_ended(part)]


def _has_ended(part: Part) -> bool:
    try:
        part.wait(GRACE)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):  # who interrupts again has no patience left
        return False
    return True


@contextmanager
def shown_afterwards() -> Iterator[IO[bytes]]:
    """A place for what is said meanwhile."""
    with tempfile.TemporaryFile() as said:
        try:
            yield said
        finally:
            said.seek(0)
            sys.stdout.buffer.write(said.read())
            sys.stdout.buffer.flush()


def run(jobs: int, words: Sequence[str]) -> dict[str, int]:
    """How each part ended."""
    with shown_afterwards() as said, Parts() as parts:
        head(FAST)
        parts.wait(FAST, parts.start(FAST, words, jobs))
        if parts.ended[FAST] in (0, NOTHING_SELECTED):
            beside = parts.start(TOGETHER, words, said=said)
            head(SLOW)
            more = jobs and jobs + 1  # than there are processors: these wait for programs too
            parts.wait(SLOW, parts.start(SLOW, words, more))
            head(TOGETHER)
            parts.wait(TOGETHER, beside)
        return parts.ended


def head(words: str) -> None:
    print(f"\n>>> {words}", flush=True)


def main(jobs: int, words: Sequence[str]) -> int:
    statuses = run(jobs, words)
    head("; ".join(f"{which}: {_said(status)}" for which, status in statuses.items()))
    bad = [status for status in statuses.values() if status not in (0, NOTHING_SELECTED)]
    return bad[0] if bad else min(statuses.values())


def _said(status: int) -> str:
    return {0: "passed", 1: "FAILED", NOTHING_SELECTED: "none selected"}.get(status, f"ended with {status}")


def _terminated(number: int, _: Any) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # we are at it
    sys.exit(128 + number)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not sys.argv[1].isdecimal():
        sys.exit("error: how many processes is not said\nhint: python tools/all_tests.py 2 -k framing")
    signal.signal(signal.SIGTERM, _terminated)
    try:
        sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
    except KeyboardInterrupt:  # those who were at work have told what they were at
        sys.exit(130)
