"""`acpx`, a client that others wrote, drives our demo agent through its own commands. It prints the raw traffic."""

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop import scenario, table
from tests.interop.environment import Environment, environment
from tests.interop.programs import all_programs
from tests.interop.test_network import our_gateway

Message = dict[str, Any]


class Acpx:
    """It, in one folder with one home. What stays running between its commands ends with the stage."""

    def __init__(self, on: Environment, agent: list[str]) -> None:
        self.on = on
        on.environment["ACPX_AUTH_DEMO"] = "nothing to type"  # makes it authenticate
        self.poem = on.folder / "poem.txt"
        client = all_programs()["acpx"].client
        self.command = [*client, "--agent", shlex.join(agent), "--cwd", str(on.folder), "--format", "json"]
        self.command += ["--auth-policy", "fail", "--non-interactive-permissions", "deny"]

    def words(self, *words: str, permission: str = "--approve-all") -> list[str]:
        return [*self.command, permission, *words]

    def run(self, *words: str, permission: str = "--approve-all") -> list[Message]:
        done = self.on.run(self.words(*words, permission=permission), 30)
        assert done.returncode == 0, f"{words}: {done.stdout[-2000:]}\n{done.stderr}"
        return [json.loads(line) for line in done.stdout.splitlines()]


def stop_of(messages: list[Message]) -> list[str]:
    return [message["result"]["stopReason"] for message in messages if "stopReason" in (message.get("result") or {})]


def kinds_of(messages: list[Message]) -> set[str]:
    return {each["params"]["update"]["sessionUpdate"] for each in messages if each.get("method") == "session/update"}


def methods_of(messages: list[Message]) -> set[str]:
    return {str(each["method"]) for each in messages if "method" in each}


def exec_hello(acpx: Acpx) -> None:
    messages = acpx.run("exec", "hello")
    assert stop_of(messages) == ["end_turn"] and "agent_message_chunk" in kinds_of(messages)


def exec_all(acpx: Acpx) -> None:
    messages = acpx.run("exec", "/all")
    assert stop_of(messages) == ["end_turn"]
    assert kinds_of(messages) >= scenario.SAID
    assert not scenario.SAID_IF_WANTED & kinds_of(messages), "it did not ask for these"


def exec_allow(acpx: Acpx) -> None:
    messages = acpx.run("exec", f"/edit {acpx.poem} Sung by one.")
    assert {"session/request_permission", "fs/write_text_file"} <= methods_of(messages)
    assert acpx.poem.read_text(encoding="utf-8").strip() == "Sung by one."


def exec_reject(acpx: Acpx) -> None:
    messages = acpx.on.run(acpx.words("exec", f"/edit {acpx.poem} Sung by nobody.", permission="--approve-reads"), 30)
    assert "session/request_permission" in messages.stdout
    assert acpx.poem.read_text(encoding="utf-8").strip() == "Sung by one."


def exec_read(acpx: Acpx) -> None:
    messages = acpx.run("exec", f"/read {acpx.on.folder}/notes.txt")
    assert "fs/read_text_file" in methods_of(messages) and stop_of(messages) == ["end_turn"]


def exec_run(acpx: Acpx) -> None:
    messages = acpx.run("exec", "/run echo sung aloud")
    wanted = {"terminal/create", "terminal/wait_for_exit", "terminal/output", "terminal/release"}
    assert wanted <= methods_of(messages) and "sung aloud" in json.dumps(messages)


def new_session(acpx: Acpx) -> None:
    assert acpx.run("sessions", "new")[-1]["created"] is True


def prompt_in_session(acpx: Acpx) -> None:
    assert stop_of(acpx.run("prompt", "hello again")) == ["end_turn"]


def list_sessions(acpx: Acpx) -> None:
    [answer] = acpx.run("sessions", "list")
    assert answer["source"] == "agent" and answer["sessions"]


def set_mode(acpx: Acpx) -> None:
    assert acpx.run("set-mode", "plan")[-1]["modeId"] == "plan"


def set_option(acpx: Acpx) -> None:
    answer = acpx.run("set", "length", "long")[-1]
    assert {each["id"]: each["currentValue"] for each in answer["configOptions"]}["length"] == "long"


def cancel(acpx: Acpx) -> None:
    with subprocess.Popen(
        acpx.words("prompt", "/slow 60"), cwd=acpx.on.folder, env=acpx.on.environment, encoding="utf-8",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as prompting:  # fmt: skip
        try:
            assert prompting.stdout is not None
            lines = iter(prompting.stdout)
            assert any("agent_message_chunk" in line for line in lines)
            assert acpx.run("cancel")[-1]["cancelled"] is True
            assert stop_of([json.loads(line) for line in lines]) == ["cancelled"]
        finally:
            prompting.kill()


def close_session(acpx: Acpx) -> None:
    assert acpx.run("sessions", "close")[-1]["action"] == "session_closed"


STEPS = {
    "exec: a prompt": exec_hello,
    "exec: every update that it knows": exec_all,
    "exec: permission given, file written": exec_allow,
    "exec: permission refused, file untouched": exec_reject,
    "exec: file read": exec_read,
    "exec: terminal create, wait, output, release": exec_run,
    "sessions new": new_session,
    "prompt in that session": prompt_in_session,
    "sessions list": list_sessions,
    "set-mode": set_mode,
    "set: a setting": set_option,
    "cancel in the middle of a turn": cancel,
    "sessions close": close_session,
}


@pytest.fixture
def on(tmp_path: Path) -> Iterator[Environment]:
    who = all_programs()["acpx"]
    if who.missing:
        pytest.skip(f"{who.name} {who.missing}")
    with environment(tmp_path) as on:
        yield on


@pytest.mark.slow
def test_acpx_drives_our_agent(on: Environment) -> None:
    acpx = Acpx(on, on.tapped(all_programs()["antiphon"].agent))
    results = table.RESULTS["acpx", "antiphon"] = {}
    for title, step in STEPS.items():
        step(acpx)
        results[title] = table.OK
    assert [line for line in on.traffic().splitlines() if line.startswith("!")] == []


@pytest.mark.slow
@pytest.mark.prove
def test_acpx_drives_an_agent_behind_our_gateway_through_a_command(on: Environment) -> None:
    with our_gateway(on) as command:
        acpx = Acpx(on, command)
        for step in STEPS.values():
            step(acpx)
    assert [line for line in on.traffic().splitlines() if line.startswith("!")] == []
