"""Stand between a client and an agent, pass every line on unchanged, and write it down: `tap.py LOG COMMAND…`.

One line of the log is `> ` (client to agent) or `< ` (agent to client) or `! ` (the agent's stderr) and the line as it
was. It reads no message.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from typing import IO

Log = IO[bytes]


def pass_on(source: IO[bytes], target: IO[bytes] | None, mark: bytes, log: Log, lock: threading.Lock) -> None:
    """Until the source ends; then the target ends too."""
    for line in source:
        with lock:
            log.write(mark + line if line.endswith(b"\n") else mark + line + b"\n")
            log.flush()
        try:
            if target is not None:
                target.write(line)
                target.flush()
        except BrokenPipeError:
            break
    if target is not None:
        with contextlib.suppress(BrokenPipeError):
            target.close()


def main(path: str, command: list[str]) -> int:
    lock = threading.Lock()
    with open(path, "ab") as log:
        agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, frame: agent.send_signal(number))
        assert agent.stdin and agent.stdout and agent.stderr
        # Not awaited at the end: when the agent leaves by itself, our own stdin may stay open for ever.
        into = (sys.stdin.buffer, agent.stdin, b"> ", log, lock)
        threading.Thread(target=pass_on, args=into, daemon=True).start()
        beside = threading.Thread(target=pass_on, args=(agent.stderr, None, b"! ", log, lock), daemon=True)
        beside.start()
        pass_on(agent.stdout, sys.stdout.buffer, b"< ", log, lock)
        status = agent.wait()
        beside.join(timeout=5)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    # A thread may still hold the lock of stdin, which an ordinary exit would trip over.
    os._exit(main(sys.argv[1], sys.argv[2:]))
