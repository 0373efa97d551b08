"""`antiphon fleet` as a person uses it: a fleet on this machine that is looked at, drained, killed in parts, and ended as a whole."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from antiphon.transports.tree import descendants
from tests.cli.terminal import Terminal
from tests.fleet.programs import eventually, is_running
from tests.gateway.processes import call
from tests.limits import limit

pytestmark = [pytest.mark.slow, pytest.mark.prove]

PROGRAM = (sys.executable, "-m", "antiphon", "fleet")


class LocalFleetProgram:
    """`antiphon fleet up` that runs."""

    def __init__(self, process: "subprocess.Popen[str]", directory: Path, env: dict[str, str]) -> None:
        self.process = process
        self.directory = directory
        self.env = env
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        assert line, process.stderr.read()
        self.about: dict[str, Any] = json.loads(line)
        self.said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with suppress(ValueError):  # closed
            self.said += self.process.stderr

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run another command of the fleet."""
        return run(*words, directory=self.directory, env=self.env)

    @property
    def status(self) -> Any:
        done = self.run("status", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def owner(self, session: str) -> str:
        """Return the worker that has a session; empty: none has it."""
        return next((str(each["owner"]) for each in self.status["sessions"] if each["id"] == session), "")

    @property
    def workers(self) -> dict[str, str]:
        """The workers that live: the whole name by the name."""
        return {each["name"].rpartition(".")[0]: each["name"] for each in self.status["workers"]}

    def pid(self, name: str) -> int:
        """Return the process of a worker, or of the gateway or the broker."""
        part = {"broker": "broker.conf", "gateway": "/fleet/gateway "}.get(name, f"--name {name} ")
        [found] = [pid for pid in descendants(self.process.pid) if part in command_of(pid)]
        return found

    @contextmanager
    def client(self) -> Iterator[ClientConnection]:
        token = Path(self.about["token_file"]).read_text(encoding="utf-8").strip()
        url = f"{self.about['url'].replace('http', 'ws', 1)}/acp"
        with connect(url, additional_headers={"Authorization": f"Bearer {token}"}, proxy=None) as opened:
            call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
            yield opened

    def everything(self) -> list[int]:
        return [self.process.pid, *descendants(self.process.pid)]


def command_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


def run(*words: str, directory: Path, env: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*PROGRAM, *words], cwd=directory, env=env, capture_output=True, encoding="utf-8", timeout=limit(), check=False
    )


def environment(directory: Path) -> dict[str, str]:
    own = {"ANTIPHON_STATE_DIR": str(directory / "state"), "ANTIPHON_CONFIG_DIR": str(directory / "config")}
    return {**os.environ, **own, "HOME": str(directory)}


UP = ("up", "--port", "0", "--agents", "demo", "--root", ".")


@contextmanager
def started(directory: Path, *more: str) -> Iterator[LocalFleetProgram]:
    """Run a fleet, and end it in order."""
    env = environment(directory)
    process = subprocess.Popen(
        [*PROGRAM, *UP, "--json", *more],
        cwd=directory, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip
    try:
        yield LocalFleetProgram(process, directory, env)
        process.send_signal(signal.SIGINT)
        assert process.wait(limit()) in (0, -signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def opened(client: ClientConnection, directory: Path) -> str:
    answer = call(client, 1, "session/new", cwd=str(directory), mcpServers=[])
    return str(answer["result"]["sessionId"])


def prompt(client: ClientConnection, session: str, text: str, number: int = 2) -> Any:
    return call(client, number, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])


def test_one_command_starts_a_fleet_and_ctrl_c_ends_all_of_it(tmp_path: Path) -> None:
    env = environment(tmp_path)
    with Terminal([*PROGRAM, *UP, "--workers", "2"], cwd=tmp_path, env=env) as terminal:
        shown = terminal.wait_for("Ctrl-C ends all of it")
        processes = descendants(terminal.process.pid)
        assert re.search(r"^page +http://127\.0\.0\.1:\d+/#code=", shown, re.MULTILINE)
        assert re.search(r"^agent +ws://127\.0\.0\.1:\d+/acp$", shown, re.MULTILINE)
        assert re.search(r"^workers worker-1, worker-2$", shown, re.MULTILINE)
        status = run("status", directory=tmp_path, env=env)
        assert re.match(r"broker   ok, 1 server, \d+ messages, \d+ \w?B\n\nworker ", status.stdout), status
        assert [line.split()[1:5] for line in status.stdout.splitlines()[3:5]] == [["ok", "0", "0", "100"]] * 2
        terminal.type("\x03")
        code, shown = terminal.finish()
    assert code == 0 and "ending the fleet" in shown
    assert len(processes) > 3 and not [pid for pid in processes if is_running(pid)]
    assert run("status", directory=tmp_path, env=env).stderr.splitlines() == [
        "error: no fleet runs here",
        "hint: start one with `antiphon fleet up`, or name its broker with --fleet",
    ]


def test_a_worker_that_is_drained_gives_its_sessions_away_and_stays_away(tmp_path: Path) -> None:
    with started(tmp_path, "--workers", "2") as fleet, fleet.client() as client:
        session = opened(client, tmp_path)
        assert prompt(client, session, "hello")["result"]["stopReason"] == "end_turn"
        before = fleet.owner(session)
        assert before in fleet.workers.values()
        name = before.rpartition(".")[0]
        done = fleet.run("drain", name)
        expected = f"{name} takes no more sessions and ends when its turns have ended (0 now)\n"
        assert (done.returncode, done.stdout) == (0, expected), done.stderr
        eventually(lambda: name not in fleet.workers)
        assert prompt(client, session, "again", 3)["result"]["stopReason"] == "end_turn"
        assert fleet.owner(session) in fleet.workers.values()
        eventually(lambda: f"{name} was drained, and is away until the fleet is started again\n" in fleet.said)
        assert fleet.run("drain", "nowhere").stderr.startswith("error: there is no worker `nowhere`\nhint: those that")


def test_a_worker_that_is_killed_is_started_again_when_another_has_its_session(tmp_path: Path) -> None:
    with started(tmp_path, "--workers", "2") as fleet, fleet.client() as client:
        session = opened(client, tmp_path)
        client.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": {
            "sessionId": session, "prompt": [{"type": "text", "text": "/slow 1000"}]}}))  # fmt: skip
        before = eventually(lambda: fleet.owner(session))
        name = before.rpartition(".")[0]
        shown = {each["name"]: each["pid"] for each in fleet.status["workers"]}
        assert shown[before] == fleet.pid(name)
        os.kill(shown[before], signal.SIGKILL)
        while "method" in (message := json.loads(client.recv(timeout=limit()))) or message["id"] != 2:
            pass
        assert "error" in message, "the turn was interrupted, and the prompt is not sent again"
        assert prompt(client, session, "hello", 3)["result"]["stopReason"] == "end_turn"
        after = fleet.owner(session)
        assert after and after.rpartition(".")[0] != name
        eventually(lambda: fleet.workers.get(name, before) != before)
        assert f"{name} ended (SIGKILL): it is started again in 5 seconds\n" in fleet.said
        assert fleet.owner(session) == after, "it stays where it is"


def test_a_gateway_and_a_broker_that_are_killed_are_there_again_at_the_same_ports(tmp_path: Path) -> None:
    with started(tmp_path, "--workers", "1") as fleet:
        with fleet.client() as client:
            session = opened(client, tmp_path)
            assert "result" in prompt(client, session, "hello")
        for name in ("gateway", "broker"):
            os.kill(fleet.pid(name), signal.SIGKILL)
        eventually(lambda: fleet.run("status").returncode == 0 and fleet.workers)

        def loaded() -> bool:
            with suppress(OSError), fleet.client() as client:
                answer = call(client, 1, "session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
                return "result" in answer and "result" in prompt(client, session, "again")
            return False

        eventually(loaded)


def test_nothing_is_left_of_a_fleet_that_was_killed_and_it_can_be_started_again(tmp_path: Path) -> None:
    with started(tmp_path, "--workers", "2") as fleet:
        with fleet.client() as client:
            session = opened(client, tmp_path)
            assert "result" in prompt(client, session, "hello")
        processes = fleet.everything()
        assert len(processes) > 5
        fleet.process.kill()
        fleet.process.wait()
        eventually(lambda: not [pid for pid in processes if is_running(pid)])
        assert fleet.run("status").stderr.startswith("error: no fleet runs here\n"), (
            "its file is left, and says nothing"
        )
    with started(tmp_path, "--workers", "2") as fleet, fleet.client() as client:
        assert [each["id"] for each in fleet.status["sessions"]] == [session]
        answer = call(client, 1, "session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        assert "result" in answer and "result" in prompt(client, session, "again")


def test_a_second_fleet_in_the_same_directory_is_refused(tmp_path: Path) -> None:
    with started(tmp_path, "--workers", "1") as fleet:
        done = fleet.run(*UP)
        assert done.returncode == 1 and not done.stdout
        assert re.fullmatch(
            r"error: a fleet runs in `.+` already\nhint: `antiphon fleet status` shows it; .+\n", done.stderr
        )
        assert fleet.workers


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("up", "--workers", "0"), "error: a fleet needs a worker\nhint: --workers 1, or more\n"),
        (
            ("up", "--root", "nosuch"),
            r"error: worker-\d did not start: `nosuch` is not a directory\nhint: --root takes",
        ),
        (("up", "--agents", "nosuch"), r"error: worker-\d did not start: there is no agent named `nosuch`\n"),
        (
            ("status", "--fleet", "nats://127.0.0.1:1"),
            "error: no broker answers at nats://127.0.0.1:1: Connection refused\n",
        ),
        (
            ("status", "--fleet", "nats://localhost:1"),
            "error: no broker answers at nats://localhost:1: Connection refused\n",
        ),
    ],
    ids=["no worker", "no such root", "no such agent", "no broker", "no broker at a name"],
)
def test_a_fleet_that_cannot_be_reports_why_and_leaves_nothing(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = run(*words, directory=tmp_path, env=environment(tmp_path))
    assert done.returncode in (1, 2) and not done.stdout
    assert re.match(said, done.stderr) and "\nhint: " in done.stderr, done.stderr
