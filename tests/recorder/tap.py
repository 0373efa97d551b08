"""Stands between a client and an agent and writes down what they say: `python -m tests.recorder.tap FILE COMMAND …`."""

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

import msgspec


def main(path: Path, command: list[str]) -> int:
    """Carry lines until the agent ends."""
    start, lock = time.monotonic(), threading.Lock()
    with path.open("wb") as file, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:

        def carry(source: IO[bytes], target: IO[bytes], dir: str) -> None:
            with target:
                for line in source:
                    entry = {"t": time.monotonic() - start, "dir": dir, "msg": msgspec.Raw(line.rstrip(b"\n"))}
                    with lock:
                        file.write(msgspec.json.encode(entry) + b"\n")
                        file.flush()
                    target.write(line)
                    target.flush()

        assert agent.stdin is not None and agent.stdout is not None
        threading.Thread(target=carry, args=(sys.stdin.buffer, agent.stdin, "c2a"), daemon=True).start()
        carry(agent.stdout, sys.stdout.buffer, "a2c")
        return agent.wait()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
