"""`antiphon chat` beside toad, and beside `cat`, in one run: how soon there is a prompt, what a long answer costs, how fast a key is on the screen.

    python -m benchmarks.chat --toad "python3.14 -m toad"
    python -m benchmarks.chat --keys      # only the delay of keys, beside `cat`

toad is `batrachian-toad` on PyPI and needs Python 3.14, so its command is given; without it Antiphon is measured alone.

- prompt: from the start of the program until its prompt is on the screen, with an agent that answers at once.
- stream: processor seconds and memory of the client alone while an agent sends 20,000 updates, 2,000 in a second, and until the last word is shown
  (`stream whole` is 0 for a client that has not shown it after two minutes: its numbers are too small).
- key: from the byte that a key sends until the letter comes back, in one tmux: `cat` in one window, the client in another, by turns.

Every program has a pseudo-terminal of 100 by 30 that is read as fast as it writes. Rounds alternate between the programs.
"""

import argparse
import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fcntl import ioctl
from pathlib import Path
from typing import Final, TypedDict

import pyte

HERE: Final = Path(__file__).resolve().parent
AGENT: Final = HERE / "contestants" / "streaming_agent.py"
COLUMNS, ROWS = 100, 30
UPDATES: Final = 20_000
PER_TICK: Final = 40
LIMIT: Final = 120.0
"""Seconds after which something that has to be shown is given up."""
KEYS: Final = 300
PAUSE: Final = 0.05
"""Seconds between two keys: a fast typist's."""

PROMPTS: Final = {"antiphon": "\u203a", "toad": "\u276f"}
"""What stands before the input line."""


class Streamed(TypedDict):
    """What a stream cost."""

    cpu: float
    seconds: float
    is_whole: bool
    """False: it was given up before the last word was shown, and the numbers are too small."""
    memory_before: float
    memory_after: float


class Screen:
    """A program on a pseudo-terminal, and what it shows."""

    def __init__(self, command: list[str], env: dict[str, str], cwd: str) -> None:
        self._fd, other = pty.openpty()
        ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=other, stdout=other, stderr=other, env=env, cwd=cwd, start_new_session=True,
            preexec_fn=lambda: ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(other)
        self.raw = b""
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)

    @property
    def shown(self) -> str:
        """What is on the screen."""
        return "\n".join(self._screen.display)

    def read(self, timeout: float, *, draw: bool = True) -> bytes:
        """Take what the program wrote."""
        if not select.select([self._fd], [], [], timeout)[0]:
            return b""
        try:
            data = os.read(self._fd, 1 << 16)
        except OSError:
            return b""
        self.raw = (self.raw + data)[-(1 << 16) :]
        if draw:
            with suppress(Exception):  # a sequence that pyte does not know
                self._stream.feed(data)
        return data

    def until(self, seen: Callable[[], bool]) -> float:
        """Read until it is true, and return the seconds since the start."""
        end = time.perf_counter() + LIMIT
        while not seen():
            if time.perf_counter() > end or self.process.poll() is not None:
                raise TimeoutError(f"it does not come; the screen is:\n{self.shown}")
            self.read(0.05)
        return time.perf_counter() - self.started

    def drain(self, seconds: float) -> None:
        """Read for so long."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self.read(left)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._fd, text.encode())

    def close(self) -> None:
        """End the program and all it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._fd)


class Contest:
    """The programs that are measured, each with a home of its own."""

    def __init__(self, toad: str | None, home: Path) -> None:
        self.home = home
        self.names = ["antiphon", *(["toad"] if toad else [])]
        self._toad = shlex.split(toad or "")
        self.work = home / "work"
        self.work.mkdir()

    def command(self, name: str, updates: int = UPDATES) -> list[str]:
        """Return the command of a client with the streaming agent."""
        agent = f"env -u PYTHONHOME -u PYTHONPATH {shlex.quote(sys.executable)} {shlex.quote(str(AGENT))} {updates} {PER_TICK}"
        if name == "toad":
            return [*self._toad, "acp", agent, str(self.work)]
        return [sys.executable, "-m", "antiphon", "chat", "--agent", agent]

    @property
    def env(self) -> dict[str, str]:
        """Return the environment of a client: its own home, and no key of the user."""
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "PYTHONPATH", "LC_ALL")}
        return {
            **kept, "HOME": str(self.home), "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8",
            "ANTIPHON_STATE_DIR": str(self.home / "state"), "ANTIPHON_CONFIG_DIR": str(self.home / "config"),
        }  # fmt: skip

    @contextmanager
    def started(self, name: str) -> Iterator[tuple[Screen, float]]:
        """Start a client, wait for its prompt, and return how long that took."""
        screen = Screen(self.command(name), self.env, str(self.work))
        try:
            yield screen, screen.until(lambda: PROMPTS[name] in screen.shown)
        finally:
            screen.close()

    def prompt(self, name: str) -> float:
        """Return the seconds until the prompt is shown."""
        with self.started(name) as (_, seconds):
            return seconds

    def stream(self, name: str) -> Streamed:
        """Return what 20,000 updates cost."""
        with self.started(name) as (screen, _):
            screen.drain(3.0)
            screen.type("go")
            screen.drain(1.0)
            pid = screen.process.pid
            before, memory = cpu_of(pid), memory_of(pid)
            begun = time.perf_counter()
            screen.type("\r")
            try:
                screen.until(lambda: "ALLDONE" in screen.shown)
                is_whole = True
            except TimeoutError:
                is_whole = False
            seconds = time.perf_counter() - begun
            screen.drain(1.0)
            return Streamed(
                cpu=cpu_of(pid) - before,
                seconds=seconds,
                is_whole=is_whole,
                memory_before=memory,
                memory_after=memory_of(pid),
            )


def cpu_of(pid: int) -> float:
    """Return the processor seconds of a process, all of its threads, without what it started."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


# --- keys in tmux -----------------------------------------------------------------------------------------------------

LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


class Tmux:
    """A tmux of our own in a pseudo-terminal, with a window for each program."""

    def __init__(self, contest: Contest) -> None:
        self._socket = str(contest.home / "tmux")
        self._env = contest.env
        self._cwd = str(contest.work)
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), "-n", "cat", "cat")
        self._tmux("set", "-g", "status", "off")
        self._tmux("set", "-sg", "escape-time", "0")
        for name in contest.names:
            self._tmux("new-window", "-d", "-n", name, shlex.join(contest.command(name, 1)))
        self.screen = Screen(["tmux", "-S", self._socket, "attach"], self._env, self._cwd)

    def _tmux(self, *words: str) -> None:
        subprocess.run(["tmux", "-S", self._socket, *words], check=True, env=self._env, cwd=self._cwd)

    def select(self, name: str) -> None:
        """Bring a window to the front."""
        self._tmux("select-window", "-t", f":{name}")
        self.screen.drain(0.3)

    def keys(self, count: int) -> list[float]:
        """Press keys one after the other, and return how long each took to be shown, in milliseconds."""
        found = []
        for number in range(count):
            letter = LETTERS[number % len(LETTERS)].encode()
            while self.screen.read(PAUSE, draw=False):  # until it is quiet
                pass
            begun = time.perf_counter()
            self.screen.type(letter.decode())
            data, end = b"", begun + 5.0
            while letter not in _without_codes(data) and time.perf_counter() < end:
                data += self.screen.read(0.5, draw=False)
            found.append((time.perf_counter() - begun) * 1000)
        self.screen.type("\x15")  # Ctrl-U clears the line
        self.screen.drain(0.2)
        return found

    def close(self) -> None:
        """End tmux and all in it."""
        with suppress(subprocess.CalledProcessError):
            self._tmux("kill-server")
        self.screen.close()


def _without_codes(data: bytes) -> bytes:
    """Return what is written without escape sequences: their letters are no letters of the line."""
    return re.sub(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()][A-B0]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.", b"", data)


def measure_keys(contest: Contest, rounds: int) -> dict[str, list[float]]:
    """Return the delays of keys in `cat` and in each client, measured by turns in one tmux."""
    tmux = Tmux(contest)
    found: dict[str, list[float]] = {name: [] for name in ("cat", *contest.names)}
    try:
        for name in contest.names:
            tmux.select(name)
            tmux.screen.until(lambda name=name: PROMPTS[name] in tmux.screen.shown)  # type: ignore[misc]  # a default
            tmux.screen.drain(3.0)
        for _ in range(rounds):
            for name, delays in found.items():
                tmux.select(name)
                delays += tmux.keys(KEYS // rounds)
    finally:
        tmux.close()
    return found


# --- the run ----------------------------------------------------------------------------------------------------------


def percentile(values: list[float], share: float) -> float:
    """Return the value below which this share of all is."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def measure(contest: Contest, rounds: int, *, keys_alone: bool = False) -> dict[str, dict[str, float]]:
    """Measure everything, or only keys, the programs by turns."""
    if keys_alone:
        return {name: _key_numbers(delays) for name, delays in measure_keys(contest, rounds).items()}
    prompts: dict[str, list[float]] = {name: [] for name in contest.names}
    streams: dict[str, list[Streamed]] = {name: [] for name in contest.names}
    for name in contest.names:
        contest.prompt(name)  # compiles what is not compiled yet
    for _ in range(rounds):
        for name in contest.names:
            prompts[name].append(contest.prompt(name))
            _progress(f"{name}: prompt after {prompts[name][-1]:.2f} s")
    for _ in range(max(rounds // 2, 1)):
        for name in contest.names:
            streams[name].append(contest.stream(name))
            _progress(f"{name}: stream {streams[name][-1]}")
    keys = measure_keys(contest, rounds) if shutil.which("tmux") else {}
    found: dict[str, dict[str, float]] = {}
    for name in contest.names:
        found[name] = {
            "prompt s": statistics.median(prompts[name]),
            "stream whole": float(all(each["is_whole"] for each in streams[name])),
            "stream CPU s": statistics.median(each["cpu"] for each in streams[name]),
            "stream s": statistics.median(each["seconds"] for each in streams[name]),
            "memory before MiB": statistics.median(each["memory_before"] for each in streams[name]),
            "memory after MiB": statistics.median(each["memory_after"] for each in streams[name]),
        }
    for name, delays in keys.items():
        found.setdefault(name, {}).update(_key_numbers(delays))
    return found


def _key_numbers(delays: list[float]) -> dict[str, float]:
    return {"key p50 ms": statistics.median(delays), "key p99 ms": percentile(delays, 0.99), "key max ms": max(delays)}


TARGETS: Final = (
    ("prompt s", "toad", 0.6),
    ("stream CPU s", "toad", 0.2),
    ("key p99 ms", "cat", 2.0),
)
"""A number of Antiphon is at most so much of the same number of another program."""


def report(found: dict[str, dict[str, float]]) -> bool:
    """Print the numbers and the targets, and return whether all are met that could be measured."""
    names = list(dict.fromkeys(key for numbers in found.values() for key in numbers))
    width = max(map(len, names))
    print(f"{'':<{width}}", *(f"{name:>10}" for name in found))
    for key in names:
        print(
            f"{key:<{width}}",
            *(f"{numbers[key]:>10.2f}" if key in numbers else f"{'-':>10}" for numbers in found.values()),
        )
    is_met = True
    for key, other, share in TARGETS:
        if key in found.get(other, {}) and key in found["antiphon"]:
            ratio = found["antiphon"][key] / found[other][key]
            is_met &= ratio <= share
            print(f"{key}: {ratio:.2f} of {other}, target {share}: {'met' if ratio <= share else 'MISSED'}")
        else:
            print(f"{key}: {other} was not measured")
    return is_met


def main() -> int:
    """Measure and report."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--toad", help="the command that starts toad; without it Antiphon is measured alone")
    options.add_argument("--rounds", type=int, default=6)
    options.add_argument("--keys", action="store_true", help="measure only the delay of keys")
    options.add_argument("--json", type=Path, help="write the numbers to this file")
    options.add_argument("--strict", action="store_true", help="exit with 1 if a target is not met")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="chat-bench-") as home:
        found = measure(Contest(chosen.toad, Path(home)), chosen.rounds, keys_alone=chosen.keys)
    is_met = report(found)
    if chosen.json is not None:
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0 if is_met or not chosen.strict else 1


if __name__ == "__main__":
    sys.exit(main())
