"""The memory of an agent that is not used."""

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.commands import ROOT
from benchmarks.measure import RunFailed

REST_LIMIT: Final = 60.0
"""Seconds that opening all sessions may take."""


class _Agent:
    """A running agent, asked one thing after the other."""

    def __init__(self, command: Sequence[str], state: str) -> None:
        env = {**os.environ, "ANTIPHON_STATE_DIR": state}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT, env=env
        )
        self._asked = 0

    def ask(self, method: str, params: object) -> None:
        """Ask, and wait for the answer, whatever it is."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self._asked += 1
        question = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        self.process.stdin.write(json.dumps(question).encode() + b"\n")
        self.process.stdin.flush()
        while line := self.process.stdout.readline():
            said = json.loads(line)
            if said.get("id") == self._asked and "method" not in said:
                return
        raise RunFailed(f"no answer to {method}")

    def resident(self) -> int:
        """Bytes in memory now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return next(int(row.split()[1]) for row in status.splitlines() if row.startswith("VmRSS")) * 1024


def at_rest(command: Sequence[str], sessions: int) -> tuple[float, float]:
    """Measure bytes after `initialize`, and bytes more for each session that was opened and left alone.

    Raises:
        RunFailed: it did not answer.
    """
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as state:
        agent = _Agent(command, state)
        guard = threading.Timer(REST_LIMIT, agent.process.kill)
        guard.start()
        try:
            agent.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
            agent.ask(
                "_bench/are_you_up", {}
            )  # an answer to this comes from the whole of it, not from an early handshake
            idle = agent.resident()
            opening = {"cwd": state, "mcpServers": []}
            agent.ask("session/new", opening)  # what the first one loads is not the price of a session
            one = agent.resident()
            for _ in range(sessions):
                agent.ask("session/new", opening)
            return idle, (agent.resident() - one) / sessions
        finally:
            guard.cancel()
            agent.process.kill()
            agent.process.communicate()
