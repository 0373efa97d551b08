"""`antiphon agents` as a user types it."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from antiphon import __version__
from antiphon.catalogue.known import KNOWN
from tests import prepared
from tests.catalogue.programs import own, place, program
from tests.catalogue.test_registry import agent as entry
from tests.catalogue.test_registry import registry
from tests.limits import limit

__all__ = ["place"]


def agents(*words: str) -> "subprocess.CompletedProcess[str]":
    done = prepared.run("agents", *words, timeout=limit())
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def refused(*words: str, status: int = 1) -> str:
    done = agents(*words)
    assert done.returncode == status and (done.stdout == "") == ("--json" not in words)
    lines = done.stderr.splitlines()
    assert lines[0].startswith("error: ") and lines[-1].startswith("hint: ") and "Traceback" not in done.stderr
    return done.stderr


# The list.


def test_the_list_is_a_table_of_all_agents(place: Path) -> None:
    program(place / "bin", "gemini")
    own(place, '[agents.mine]\ncommand = ["nowhere"]\n')
    done = agents()
    assert (done.returncode, done.stderr) == (0, "")
    header, *lines = done.stdout.splitlines()
    assert header.split()[:3] == ["NAME", "STATE", "VERSION"]
    starts = [header.index(word) for word in ("STATE", "VERSION", "COMMAND")]
    for line in lines:
        assert all(line[start - 1] == " " and line[start] != " " for start in starts), line
    rows = {line.split()[0]: line for line in lines}
    assert list(rows) == ["demo", "mine", *KNOWN]
    assert rows["gemini"].split() == ["gemini", "found", "1.2.3-beta", "gemini", "--acp"]
    assert rows["demo"].split()[:3] == ["demo", "found", __version__]
    assert "not found" in rows["opencode"] and KNOWN["opencode"].install in rows["opencode"]
    assert "not found" in rows["mine"] and "`nowhere`" in rows["mine"]


def test_the_list_as_json_has_one_object_per_line(place: Path) -> None:
    path = program(place / "bin", "gemini")
    lines = [json.loads(line) for line in agents("--json").stdout.splitlines()]
    by_name = {line["name"]: line for line in lines}
    assert list(by_name) == ["demo", *KNOWN]
    assert by_name["gemini"] == {
        "name": "gemini",
        "title": "Gemini CLI",
        "origin": "known",
        "state": "found",
        "version": "1.2.3-beta",
        "command": [str(path), "--acp"],
        "hint": None,
    }
    assert by_name["opencode"]["state"] == "not found" and by_name["opencode"]["hint"] == KNOWN["opencode"].install


def test_names_alone_start_nothing(place: Path) -> None:
    program(place / "bin", "gemini", f"#!/bin/sh\necho started > {place}/started\n")
    own(place, '[agents.mine]\ncommand = ["x"]\nnonsense = 1\n')
    done = agents("--names")
    assert (done.stdout.split(), done.stderr) == (["demo", "mine", *KNOWN], "")
    assert not (place / "started").exists()


def test_mistakes_in_the_config_file_are_reported_beside_the_list(place: Path) -> None:
    own(place, 'model = 7\n[agents.mine]\ncommand = "x --acp"\n')
    done = agents()
    assert done.returncode == 0 and "demo" in done.stdout
    assert "warning: " in done.stderr and "config.toml, line 1: `model`" in done.stderr and "hint: " in done.stderr
    assert "config.toml, line 3: `agents.mine.command`" in done.stderr


def test_agents_of_a_project_wait_for_trust(place: Path) -> None:
    folder = place / "work" / ".antiphon"
    folder.mkdir()
    (folder / "config.toml").write_text('[agents.theirs]\ncommand = ["sh"]\n', encoding="utf-8")
    done = agents("--names")
    assert "theirs" not in done.stdout
    assert "antiphon policy trust" in agents().stderr


def test_a_terminal_is_not_written_on_by_a_config_file(place: Path) -> None:
    own(place, '[agents.mine]\ncommand = ["sh", "\\u001b[2Jx"]\n')
    program(place / "bin", "sh", "#!/bin/sh\n")
    assert "\x1b" not in agents().stdout and "mine" in agents().stdout


# The handshake.


def test_check_prints_what_an_agent_can_do(place: Path) -> None:
    done = agents("check", "demo")
    assert (done.returncode, done.stderr) == (0, "")
    sent = dict(line.split("  ", 1) for line in done.stdout.splitlines())
    assert {key.strip(): words.strip() for key, words in sent.items()} == {
        "name": "Antiphon demo",
        "version": __version__,
        "protocol": "version 1",
        "command": f"{os.path.basename(sys.executable)} -P -m antiphon agent --engine demo",
        "prompts": "text, links, images, sound, embedded files",
        "sessions": "new, load, resume, fork, list, close, delete, more directories",
        "MCP servers": "programs, http, sse",
        "account": "sign out",
        "sign-in": "demo (Demo sign-in)",
    }


def test_check_of_a_simple_agent_lists_what_every_agent_can(place: Path) -> None:
    program(place / "bin", "gemini")
    shown = agents("check", "gemini").stdout.splitlines()
    assert shown[0].split() == ["name", "hello"] and shown[1].split() == ["version", "1.0"]
    assert any(line.split() == ["prompts", "text,", "links"] for line in shown)


def test_check_as_json_has_the_capabilities_as_they_came(place: Path) -> None:
    report = json.loads(agents("check", "--json", "demo").stdout)
    assert report == json.loads(agents("--json", "check", "demo").stdout)
    assert (report["agent"], report["name"], report["protocolVersion"]) == ("demo", "Antiphon demo", 1)
    assert report["capabilities"]["loadSession"] is True
    assert report["authMethods"] == [{"id": "demo", "name": "Demo sign-in"}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("#!/bin/sh\necho out of luck >&2; exit 3\n", "out of luck"),
        ("#!/bin/sh\nexec cat >&2\n", "did not answer"),
        ("#!/no/such/interpreter\n", "cannot start"),
    ],
    ids=["dies", "silent", "cannot run"],
)
def test_check_of_what_is_not_an_agent_fails_with_what_to_do(place: Path, script: str, words: str) -> None:
    program(place / "elsewhere", "broken", script.replace("\n", "\nPATH=/usr/bin:/bin\n", 1))
    own(place, f'[agents.broken]\ncommand = ["{place}/elsewhere/broken"]\n')
    assert words in refused("check", "broken", "--timeout", "1")


def test_check_of_a_missing_agent_has_a_hint_how_to_get_it(place: Path) -> None:
    assert KNOWN["goose"].install in refused("check", "goose")
    assert "there are demo, antiphon, claude" in refused("check", "lute", status=2)


# Agents of one's own.


@pytest.mark.slow
def test_an_agent_is_added_used_and_removed(place: Path) -> None:
    path = program(place / "elsewhere", "my-agent")
    own(place, "# mine\n[policy]\ndeny = ['Bash'] # never\n")
    before = (place / "config" / "config.toml").read_bytes()
    done = agents("add", "mine", "--", str(path), "--name", "with space", "--", "-x")
    assert done.returncode == 0 and "agents check mine" in done.stderr and "warning" not in done.stderr
    text = (place / "config" / "config.toml").read_text(encoding="utf-8")
    assert text.startswith(before.decode())
    assert f'command = ["{path}", "--name", "with space", "--", "-x"]' in text
    assert agents("check", "mine").returncode == 0
    assert "already" in refused("add", "mine", "--", "x")
    assert agents("remove", "mine").returncode == 0
    assert (place / "config" / "config.toml").read_bytes() == before
    assert "no agent `mine`" in refused("remove", "mine", status=2)


def test_the_first_agent_makes_the_file(place: Path) -> None:
    (place / "config").rmdir()
    done = agents("add", "mine", "--", "no-such-program")
    assert done.returncode == 0 and "warning: there is no program `no-such-program`" in done.stderr
    assert (place / "config" / "config.toml").read_text(encoding="utf-8").startswith("[agents.mine]\n")


def test_a_program_given_by_a_path_is_found_from_anywhere(place: Path) -> None:
    program(place / "work", "here")
    agents("add", "mine", "--", "./here")
    assert f'command = ["{place}/work/here"]' in (place / "config" / "config.toml").read_text(encoding="utf-8")


def test_a_corrupt_file_is_not_edited(place: Path) -> None:
    own(place, "agents = [\n")
    assert "not TOML" in refused("add", "mine", "--", "x")
    assert "not TOML" in refused("remove", "mine")
    assert (place / "config" / "config.toml").read_text(encoding="utf-8") == "agents = [\n"


def test_a_file_behind_a_link_is_edited_and_the_link_stays(place: Path) -> None:
    (place / "dotfiles.toml").write_text("# kept\n", encoding="utf-8")
    (place / "config" / "config.toml").symlink_to(place / "dotfiles.toml")
    assert agents("add", "mine", "--", "x").returncode == 0
    assert (place / "config" / "config.toml").is_symlink()
    assert "[agents.mine]" in (place / "dotfiles.toml").read_text(encoding="utf-8")


@pytest.mark.slow
def test_agents_added_at_the_same_time_are_all_there(place: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda n: agents("add", f"a{n}", "--", "x"), range(8)))
    assert [each.returncode for each in done] == [0] * 8
    text = (place / "config" / "config.toml").read_text(encoding="utf-8")
    assert sorted(line for line in text.splitlines() if line.startswith("[")) == [f"[agents.a{n}]" for n in range(8)]


# The registry.


@pytest.mark.slow
def test_a_registry_is_read_listed_and_forgotten(place: Path) -> None:
    (place / "work" / "registry.json").write_bytes(registry(entry("lute"), {"id": "bad\x1b"}))
    assert agents("registry").stdout == "none\n"
    done = agents("registry", "registry.json")
    assert done.returncode == 0 and "1 agent;" in done.stderr and "warning: agent 2 " in done.stderr
    assert "\x1b" not in done.stderr
    assert agents("registry").stdout.startswith(f"{place}/work/registry.json, read ")
    row = agents().stdout.splitlines()[-1].split()
    assert row[:3] == ["lute", "not", "found"]
    program(place / "bin", "npx", "#!/bin/sh\nexit 1\n")
    row = agents().stdout.splitlines()[-1].split()
    assert row == ["lute", "on", "demand", "1.2.3", "npx", "--yes", "@x/lute@1.2.3", "--acp"]
    assert agents("registry", "--forget").returncode == 0
    assert "lute" not in agents("--names").stdout


def test_a_registry_that_cannot_be_had_is_reported(place: Path) -> None:
    assert "there is no file" in refused("registry", "nothing.json", status=2)
    assert "not fetched" in refused("registry", "http://example.org/registry.json")


def test_a_damaged_copy_of_a_registry_is_reported_beside_the_list(place: Path) -> None:
    (place / "state" / "registry.json").write_text("{", encoding="utf-8")
    done = agents()
    assert done.returncode == 0 and "demo" in done.stdout and "registry --forget" in done.stderr


# Words.


@pytest.mark.parametrize(
    "words",
    [
        ("sing",), ("--loud",), ("check",), ("check", "a", "b"), ("add",), ("add", "x"), ("add", "x", "--"), ("add", "x", "y"),
        ("remove",), ("check", "x", "--", "y"), ("registry", "x", "--forget"), ("--json", "--names"),
    ],
)  # fmt: skip
def test_words_it_does_not_know_end_in_a_hint(place: Path, words: tuple[str, ...]) -> None:
    refused(*words, status=2)


@pytest.mark.parametrize("command", [(), ("check",), ("add",), ("remove",), ("registry",)])
def test_help_lists_what_there_is(command: tuple[str, ...]) -> None:
    done = agents(*command, "--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: antiphon agents") and done.stderr == ""
