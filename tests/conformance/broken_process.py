"""The demo agent behind a process with one fault, which its only argument names; without one it is correct."""

import os
import signal
import subprocess
import sys
from pathlib import Path


def _end_everybody(*_: object) -> None:
    all_programs = map(int, _running().read_text(encoding="utf-8").split())
    for pid in sorted(all_programs, key=os.getpid().__eq__):  # ourselves last
        os.kill(pid, signal.SIGKILL)


def _running() -> Path:
    return Path(os.environ["ANTIPHON_STATE_DIR"]) / "running"


def _relayed(demo: "subprocess.Popen[bytes]", fault: str) -> str:
    """Hand on what we receive until there is no more; what its end was an end of."""
    assert demo.stdin is not None
    kind = "process.ends"
    with demo, demo.stdin as stdin:
        for line in sys.stdin.buffer:
            if b'"session/new"' in line:
                kind = "process.ends-idle"
            if b'"session/prompt"' in line:
                kind = "process.ends-busy"
                if fault == "process.children":
                    subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stdin.write(line)
            stdin.flush()
    return kind


def main(fault: str = "") -> int:
    if fault == "process.silent":
        print('{"jsonrpc":"2.0","method":"_demo/hello"}', flush=True)
    demo = subprocess.Popen(
        [sys.executable, "-m", "antiphon", "agent", "--engine", "demo"], stdin=subprocess.PIPE
    )  # it needs no explanation
    if fault == "process.terminates":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if fault == "process.beside":
        with _running().open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
        signal.signal(signal.SIGTERM, _end_everybody)
    kind = _relayed(demo, fault)
    if fault == kind:
        signal.pause()
    return 3 if fault == "process.status" else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
