"""`antiphon check` as it is typed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from antiphon.catalogue.agents import start_of
from antiphon.catalogue.known import KNOWN
from antiphon.cli.debug.check_run import agent_command
from antiphon.cli.main import main
from tests.rows import each_row

ROOT = Path(__file__).parents[2]

PROGRAMS = (
    "gemini",
    "opencode",
    "kimi",
    "qwen",
    "copilot",
    "vibe-acp",
    "vibe",
    "goose",
    "claude-agent-acp",
    "codex-acp",
    "fast-agent-acp",
    "claude",
    "codex",
)
"""What the agents that we know are called, so that each of them is found."""


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", str(tmp_path / "state"))


@pytest.mark.slow
def test_a_check_of_the_demo_by_its_name_writes_every_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    junit, badge, folder = tmp_path / "report.xml", tmp_path / "badge.svg", tmp_path / "said"
    files = ["--junit", str(junit), "--badge", str(badge), "--record", str(folder)]
    assert main(["check", "demo", "--json", *files]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["correct"] and found["complete"] and found["side"] == "agent" and found["command"] == ["demo"]
    assert {one["id"]: one["status"] for one in found["results"]}["init.version"] == "passed"
    assert ElementTree.fromstring(junit.read_text(encoding="utf-8")).tag == "testsuites"
    assert "passed" in badge.read_text(encoding="utf-8")
    first = json.loads((folder / "handshake.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert first["dir"] == "c2a" and first["msg"]["method"] == "initialize"


@pytest.mark.parametrize("name", ["demo", "antiphon", *KNOWN])
def test_a_name_is_the_known_agent_whatever_program_of_that_name_is_on_the_path(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in (name, *PROGRAMS):
        path = tmp_path / program
        path.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert list(agent_command([name], named=True).command) == list(start_of(name).command)
    assert list(agent_command([name], named=False).command) == [name], "after `--` it is a program"


def test_a_check_by_name_does_not_start_the_program_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "demo").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n", encoding="utf-8")
    (tmp_path / "demo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert main(["check", "demo", "--only", "handshake"]) == 0
    assert "nothing that must hold was broken" in capsys.readouterr().out
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("script", ["/nowhere/agent.py", "-c", "--nonsense"])
def test_a_command_that_starts_no_agent_is_reported_with_a_hint(
    script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--only", "turn", "--", sys.executable, script]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "fix: Check the command: it has to start an agent" in printed
    assert "Catch errors" not in printed and "could not be checked" in printed


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "there is no agent to check"),
        (["demo", "--only", "handshak"], "did you mean `handshake`?"),
        (["demo", "--timeout", "0"], "`0` is not a time"),
        (["demo", "--jobs", "0"], "`0` is not a number from 1 on"),
        (["demo", "--oops"], "come after `--`"),
        (["demo", "--badge", "badge.svg", "--only", "handshake"], "for the whole check"),
        (["demo", "--junit", "/nowhere/report.xml"], "no such directory"),
        (["--", "no-such-program-anywhere"], "no-such-program-anywhere"),
        (["no-such-agent-anywhere"], "no-such-agent-anywhere"),
        (["demo", "--prompts", "/nowhere/prompts.toml"], "--show-prompts"),
    ],
    ids=[
        "no agent",
        "a slip",
        "no time",
        "no job",
        "no option",
        "a badge for less",
        "no directory",
        "no program",
        "no name",
        "no prompts",
    ],
)
def test_what_cannot_be_done_is_reported_with_a_hint(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *arguments]) == 2
    printed = capsys.readouterr().err
    assert sentence in printed and "\nhint: " in printed


def test_the_prompts_that_are_printed_can_be_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from antiphon.conformance.prompts import PURPOSES, Prompts

    assert main(["check", "--show-prompts"]) == 0
    path = tmp_path / "prompts.toml"
    path.write_text(capsys.readouterr().out, encoding="utf-8")
    assert dict(Prompts.read(path).words) == {name: words for name, (_, words) in PURPOSES.items()}


LISTED = {
    ("check",): 240,
    ("check", "--protocol", "2"): 118,
    ("check-client",): 152,
    ("check-client", "--protocol", "2"): 152,
}
"""Commands that list their requirements, and how many there are."""


@each_row("words", LISTED)
def test_all_requirements_can_be_listed(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--list", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for line in lines:
        assert {"id", "level", "text", "link", "fix", "needs", "scenario"} == set(json.loads(line))
    assert len(lines) == LISTED[words]


def test_the_pages_name_the_number_of_requirements() -> None:
    conformance = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    numbers = list(LISTED.values())
    assert f"| agent | {numbers[0]} | {numbers[1]} |\n| client | {numbers[2]} | {numbers[3]} |" in conformance
    for page in ("README.md", "docs/index.md", "docs/understanding/comparison.md"):
        assert f"{numbers[0]} requirements" in (ROOT / page).read_text(encoding="utf-8")


def test_the_commands_of_a_client_of_version_2_have_purposes_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-client", "--show-commands", "--protocol", "2"]) == 0
    printed = capsys.readouterr().out
    assert "# cancel_call = " in printed and "# two_at_once = " in printed and "set_mode" not in printed


@pytest.mark.parametrize("more", [["--list", "--remote"], ["--", "client", "{url}"]])
def test_clients_on_a_network_are_checked_in_version_1(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-client", "--protocol", "2", *more]) == 2
    assert "`--protocol 2` is for clients that start {agent}" in capsys.readouterr().err


def test_a_check_that_is_terminated_leaves_nothing_behind(tmp_path: Path) -> None:
    started, places = tmp_path / "started", tmp_path / "places"
    os.mkfifo(started)
    places.mkdir()
    agent = f"import signal; open({str(started)!r}, 'w').write('x'); signal.pause()"
    words = [sys.executable, "-m", "antiphon", "check", "--only", "handshake", "--", sys.executable, "-c", agent]
    environment = {**os.environ, "TMPDIR": str(places)}
    with subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as check:
        assert started.read_text(encoding="utf-8") == "x"
        assert list(places.iterdir()), "it works in a directory of its own"
        check.send_signal(signal.SIGTERM)
        assert check.wait(30) == 130
    assert list(places.iterdir()) == []
