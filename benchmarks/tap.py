"""What `antiphon record` costs: CPU of the tap beside a bare read/write loop, and how much later an agent answers its first question.

`python -m benchmarks.tap`. An agent writes 10,000 updates of some 200 bytes in a second, in 100 bursts; once with one write for each burst
and once with one for each update. Linux only: the CPU of a process is read from the kernel's clock for it, without its children.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

BURSTS: Final = 100
"""A second."""

MESSAGES: Final = 100
"""A burst."""

TARGET: Final = 5.0
"""Percent of one core; or else twice the bare loop."""

AGENT: Final = """
import os, sys, time
seconds, apart, bursts, messages = float(sys.argv[1]), sys.argv[2] == "apart", int(sys.argv[3]), int(sys.argv[4])
message = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789abcdef","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a few words of usual length, and more"}}}}\\n'
os.read(0, 100)
began = time.monotonic()
for burst in range(int(seconds * bursts)):
    time.sleep(max(began + burst / bursts - time.monotonic(), 0))
    for block in [message] * messages if apart else [message * messages]:
        while block:
            block = block[os.write(1, block):]
os.write(1, b'"over"\\n')
os.read(0, 100)
"""

BARE: Final = """
import os, subprocess, sys, threading
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def carry(source, sink):
    while block := os.read(source, 65536):
        os.write(sink, block)
    os.close(sink)
threading.Thread(target=carry, args=(0, child.stdin.fileno()), daemon=True).start()
carry(child.stdout.fileno(), 1)
"""

ECHO: Final = "import os\nwhile block := os.read(0, 65536): os.write(1, block)"
RECORD: Final = [str(Path(sys.executable).with_name("antiphon")), "record", "--quiet"]


def contestants(folder: str) -> dict[str, list[str]]:
    """Who is measured: name → the words before those of the agent."""
    return {
        "bare loop": [sys.executable, "-I", "-S", "-c", BARE],
        "record": [*RECORD, "-o", f"{folder}/plain.jsonl", "--"],
        "record --redact all": [*RECORD, "--redact", "all", "-o", f"{folder}/redacted.jsonl", "--"],
    }


def cpu_of(before: Sequence[str], seconds: float, way: str) -> float:
    """Percent of one core that the process takes while the bursts pass."""
    agent = [sys.executable, "-I", "-S", "-c", AGENT, str(seconds), way, str(BURSTS), str(MESSAGES)]
    with subprocess.Popen([*before, *agent], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        clock = (~process.pid << 3) | 2
        time.sleep(0.5)  # what it loads while the agent starts is not what it costs to pass on
        used, began = time.clock_gettime(clock), time.monotonic()
        process.stdin.write(b"go\n")
        process.stdin.flush()
        size, end = 0, b""
        source = process.stdout.fileno()
        while not end.endswith(b'"over"\n'):
            block = os.read(source, 1 << 20)
            size += len(block)
            end = (end + block)[-7:]
        used, passed = time.clock_gettime(clock) - used, time.monotonic() - began
        process.stdin.close()
    assert size > seconds * BURSTS * MESSAGES * 190, "not everything was passed on"
    return 100 * used / passed


def first_answer(before: Sequence[str]) -> float:
    """Milliseconds from the start to the first answer of an agent that only repeats what it receives."""
    began = time.monotonic()
    command = [*before, sys.executable, "-I", "-S", "-c", ECHO]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"{}\n")
        process.stdin.flush()
        process.stdout.readline()
        passed = time.monotonic() - began
        process.stdin.close()
    return passed * 1000


def main() -> int:
    """Measure and print; the exit status says whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    met = True
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as folder:
        taps = contestants(folder)
        for way in ("together", "apart"):
            rounds = [
                {name: cpu_of(words, options.seconds, way) for name, words in taps.items()}
                for _ in range(options.rounds)
            ]
            for name in taps:
                cpu = median(round[name] for round in rounds)
                ratio = median(round[name] / round["bare loop"] for round in rounds)
                print(f"{way:<10}{name:<22}{cpu:6.2f} % of a core   {ratio:5.2f} times the bare loop")
                met &= name != "record" or cpu < TARGET or ratio <= 2
        starts = {"the agent alone": [], **taps}
        times = {name: [first_answer(words) for _ in range(4 * options.rounds)] for name, words in starts.items()}
        for name, taken in times.items():
            print(f"{'start':<10}{name:<22}{median(taken):6.1f} ms to the first answer")
    print(
        "the target is met"
        if met
        else f"the target is missed: under {TARGET} % of a core, or at most twice the bare loop"
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
