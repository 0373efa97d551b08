"""The joint agent as a process that the system gives little: few descriptors, a full disk."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import NO_ENGINES, Place

pytestmark = pytest.mark.slow

DESCRIPTORS = 128


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.configure('[duet]\nengines = ["demo"]\n')
    return made


class Agent:
    """`antiphon agent` as an editor has it, and every update that it sent."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None and process.stdout is not None
        self.process = process
        self._to, self._from = process.stdin, process.stdout
        self._ids = 0
        self.updates: list[dict[str, Any]] = []

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The response to a request, with its error if it has one."""
        self._ids += 1
        request = {"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params}
        self._to.write(json.dumps(request).encode() + b"\n")
        self._to.flush()
        for line in self._from:
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == self._ids and "method" not in message:
                return message
            if message.get("method") == "session/update":
                self.updates.append(message["params"]["update"])
        raise AssertionError("the agent ended")

    def new(self, cwd: Path) -> str:
        """A new session's id."""
        return str(self.ask("session/new", cwd=str(cwd), mcpServers=[])["result"]["sessionId"])

    def prompt(self, session: str, text: str) -> dict[str, Any]:
        """The response to a prompt."""
        return self.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    @property
    def texts(self) -> str:
        """All messages."""
        chunks = [each for each in self.updates if each["sessionUpdate"] == "agent_message_chunk"]
        return "".join(each["content"].get("text", "") for each in chunks)


@contextmanager
def agent(place: Place, limit: tuple[int, int], **more: Any) -> Iterator[Agent]:
    """One under a limit of the system: which one, and how much of it."""
    with subprocess.Popen(
        [sys.executable, "-m", "antiphon", "agent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        cwd=place.cwd, env={**NO_ENGINES, **place.env, "ANTIPHON_AUTO_RESUME": "false"},
        preexec_fn=lambda: resource.setrlimit(limit[0], (limit[1], limit[1])),
    ) as process:  # fmt: skip
        try:
            made = Agent(process)
            made.ask("initialize", protocolVersion=1, **more)
            yield made
        finally:
            assert process.stdin is not None
            process.stdin.close()


def test_hundreds_of_sessions_are_open_at_once_with_few_descriptors(place: Place) -> None:
    with agent(place, (resource.RLIMIT_NOFILE, DESCRIPTORS)) as one:
        sessions = [one.new(place.cwd) for _ in range(3 * DESCRIPTORS)]
        assert len(set(sessions)) == 3 * DESCRIPTORS
        if sys.platform == "linux":
            assert len(os.listdir(f"/proc/{one.process.pid}/fd")) < 40
        for session in (sessions[0], sessions[-1]):
            assert one.prompt(session, "hi")["result"]["stopReason"] == "end_turn"
        assert "result" in one.ask("session/list")
        with agent(place, (resource.RLIMIT_NOFILE, DESCRIPTORS)) as other:  # it sees who has them
            refused = other.ask("session/load", sessionId=sessions[0], cwd=str(place.cwd), mcpServers=[])["error"]
            assert f"process {one.process.pid}" in str(refused)
        one.process.kill()
        one.process.wait()
        with agent(place, (resource.RLIMIT_NOFILE, DESCRIPTORS)) as other:
            assert "result" in other.ask("session/load", sessionId=sessions[0], cwd=str(place.cwd), mcpServers=[])
