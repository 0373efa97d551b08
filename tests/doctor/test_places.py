"""The doctor and files: config files, the state directory and its database, editors, the environment, a registry."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from antiphon.editors.known import EDITORS
from antiphon.store.schema import FILE_NAME, MIGRATIONS
from tests.doctor.machine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


# Configuration.


def test_every_mistake_in_a_config_file_is_reported_with_its_line(machine: Machine) -> None:
    path = machine.configure('model = 7\n\n[policy]\ndeny = ["Bash(("]\n[agents.mine]\ncommand = "x"\n')
    report = machine.report("config")
    shown = report.all("config.user")
    assert [each["facts"]["line"] for each in shown] == ["1", "6", "4"]
    assert all(each["status"] == "problem" and each["hint"] and str(path) in each["sentence"] for each in shown)


@pytest.mark.parametrize("text", ["= 1\n", "[policy\n", "\0"])
def test_a_config_file_that_is_none_is_a_problem(machine: Machine, text: str) -> None:
    machine.configure(text)
    report = machine.report()
    assert report.problems == ["config.user"] and report["agents.demo"]["status"] == "ok"


def test_a_config_file_that_cannot_be_read_is_a_problem(machine: Machine) -> None:
    machine.configure("").unlink()
    (machine.home / ".config" / "antiphon" / "config.toml").mkdir()
    assert machine.report("config").problems == ["config.user"]


@pytest.mark.slow
def test_a_project_that_is_not_trusted_is_reported(machine: Machine) -> None:
    path = machine.project('[policy]\nallow = ["Read"]\n')
    check = machine.report("config")["config.project"]
    assert check["status"] == "note" and "antiphon policy trust" in check["hint"] and str(path) in check["sentence"]
    trust = [sys.executable, "-m", "antiphon", "policy", "trust"]
    subprocess.run(
        trust, cwd=machine.work, env=machine.env, input="y\n", capture_output=True, encoding="utf-8", check=True
    )
    assert machine.report("config").says("config.project") == ("ok", f"{path} is understood; it is trusted")
    path.write_text('[policy]\nallow = ["Bash"]\n', encoding="utf-8")
    assert machine.report("config")["config.project"]["status"] == "note"
    path.write_text('[policy]\ndeny = ["Bash"]\n', encoding="utf-8")
    assert "not trusted, and sets nothing" in machine.report("config")["config.project"]["sentence"]


def test_what_the_config_file_names_has_to_be_there(machine: Machine) -> None:
    machine.configure(
        'agent = "lute"\n[mcp.songs]\ncommand = ["no-such-server"]\n[mcp.far]\nurl = "https://example.org"\n'
    )
    report = machine.report("config")
    assert report.problems == ["config.agent", "config.mcp"]
    assert "there is no agent named `lute`" in report["config.agent"]["sentence"]
    assert (
        "`no-such-server`" in report["config.mcp"]["sentence"] and "mcp.songs.command" in report["config.mcp"]["hint"]
    )


# What is kept.


def database(machine: Machine, version: int = len(MIGRATIONS)) -> Path:
    machine.state.mkdir(parents=True, exist_ok=True)
    path = machine.state / FILE_NAME
    with closing(sqlite3.connect(path)) as connection:
        for statement in (statement for migration in MIGRATIONS[:version] for statement in migration):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {version}")
    return path


def test_a_database_is_opened_and_measured(machine: Machine) -> None:
    path = database(machine)
    before = path.read_bytes(), [*machine.state.iterdir()]
    check = machine.report("state")["state.database"]
    assert check["status"] == "ok" and check["facts"]["version"] == str(len(MIGRATIONS)) and "KiB" in check["sentence"]
    assert (path.read_bytes(), [*machine.state.iterdir()]) == before


def test_an_older_database_is_brought_up_to_date_by_others(machine: Machine) -> None:
    database(machine, 1)
    status, sentence = machine.report("state").says("state.database")
    assert status == "ok" and f"brought to {len(MIGRATIONS)} when it is next used" in sentence
    assert machine.report("state")["state.database"]["facts"]["version"] == "1"


def test_a_database_of_a_newer_antiphon_is_a_problem(machine: Machine) -> None:
    path = database(machine)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    report = machine.report("state")
    assert report.problems == ["state.database"] and "newer Antiphon" in report["state.database"]["sentence"]


def test_a_file_that_is_not_a_database_is_a_problem(machine: Machine) -> None:
    database(machine).write_bytes(b"not a database, but long enough to be looked at as one" * 40)
    report = machine.report("state")
    assert report.problems == ["state.database"] and "is not a database" in report["state.database"]["sentence"]
    assert "move it away" in report["state.database"]["hint"]


@pytest.mark.slow
def test_a_locked_database_is_reported_and_delays_nothing(machine: Machine) -> None:
    path = database(machine)
    machine.project('[policy]\nallow = ["Read"]\n')
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        report = machine.report("state", "config")
    assert report.problems == ["state.database"] and "locked by another program" in report["state.database"]["sentence"]
    assert report["config.project"]["status"] == "note"


def test_a_state_directory_that_cannot_be_is_a_problem(machine: Machine) -> None:
    machine.write(machine.home / ".local", "a file")
    report = machine.report("state")
    assert report.problems == ["state.directory"] and "is not a directory" in report["state.directory"]["sentence"]
    assert "ANTIPHON_STATE_DIR" in report["state.directory"]["hint"]


def test_what_a_crash_left_is_reported(machine: Machine) -> None:
    import os

    stray = machine.write(machine.state / "engines" / ".0123456789abcdef", "{}")
    assert "state.leftovers" not in machine.report("state").ids  # it may be in use
    os.utime(stray, (0, 0))
    assert str(stray) in machine.report("state")["state.leftovers"]["sentence"]


def test_a_damaged_registry_is_a_problem(machine: Machine) -> None:
    machine.write(machine.state / "registry.json", "{")
    report = machine.report("agents")
    assert report.problems == ["agents.registry"] and "--forget" in report["agents.registry"]["hint"]


# Editors.

ZED = """\
// my settings
{
  "theme": "One", /* "antiphon": not this */
  "agent_servers": {
    "Claude": { "command": "COMMAND", "args": ["agent", "--engine", "ENGINE"], "env": {}, },
  },
}
"""


def zed(machine: Machine, command: str, engine: str = "claude") -> Path:
    text = ZED.replace("COMMAND", command).replace("ENGINE", engine)
    return machine.write(machine.home / ".config" / "zed" / "settings.json", text)


def test_an_editor_that_starts_us_is_named(machine: Machine) -> None:
    path = zed(machine, "antiphon")
    assert machine.report("editors").says("editors.zed") == ("ok", f"{path} starts `antiphon` with the engine `claude`")
    assert machine.report("zed").ids == ["editors.zed"]


@pytest.mark.parametrize(
    ("command", "engine", "words"),
    [
        ("/gone/antiphon", "claude", "not a program that can be run"),
        ("antiphon-old", "claude", "not on the PATH"),
        ("antiphon", "lute", "the engine `lute`"),
    ],
)
def test_an_editor_that_starts_what_is_not_there_is_a_problem(
    machine: Machine, command: str, engine: str, words: str
) -> None:
    zed(machine, command, engine)
    report = machine.report("editors")
    assert report.problems == ["editors.zed"] and words in report["editors.zed"]["sentence"]


def test_every_editor_is_looked_at_where_it_keeps_its_settings(machine: Machine) -> None:
    acp = '{"agent_servers": {"A": {"command": "/gone/antiphon", "args": ["agent", "--token", "hunter22"]}}}'
    machine.write(machine.home / ".jetbrains" / "acp.json", acp)
    machine.write(
        machine.home / ".config" / "Code" / "User" / "settings.json", '{"acp.agents": [{"command": ["antiphon"]}]}'
    )
    machine.write(machine.home / ".config" / "nvim" / "lua" / "agents.lua", 'cmd = { "antiphon", "agent" }\n')
    machine.write(machine.home / ".emacs.d" / "init.el", '(setq agent-command \'("/gone/bin/antiphon" "agent"))\n')
    report = machine.report("editors")
    assert report.ids == ["editors.jetbrains", "editors.neovim", "editors.emacs", "editors.vscode"]
    assert report.problems == ["editors.jetbrains", "editors.emacs"] and "hunter22" not in str(report.data)


@pytest.mark.parametrize("editor", EDITORS)
def test_what_setup_writes_is_found_and_well_and_a_problem_when_the_program_is_gone(
    machine: Machine, editor: str
) -> None:
    ours = machine.program("antiphon-of-old", "#!/bin/sh\n").rename(
        machine.write(machine.path / "old" / "antiphon", "")
    )
    code = f"import sys; sys.argv = [{str(ours)!r}]; from antiphon.cli.setup import run; run({[editor, '--yes']!r})"
    subprocess.run([sys.executable, "-c", code], cwd=machine.work, env=machine.env, capture_output=True, check=True)
    report = machine.report("editors")
    assert report.ids == [f"editors.{editor}"] and report.problems == []
    ours.unlink()
    report = machine.report("editors")
    assert (
        report.problems == [f"editors.{editor}"] and f"antiphon setup {editor}" in report[f"editors.{editor}"]["hint"]
    )


def test_the_name_of_a_module_is_not_a_program(machine: Machine) -> None:
    (machine.bin / "antiphon").unlink()
    text = 'require("antiphon").avante; provider = "antiphon"; cmd = { "/usr/bin/python", "-m", "antiphon", "agent" }\n'
    path = machine.write(machine.home / ".config" / "nvim" / "init.lua", text)
    assert machine.report("editors").says("editors.neovim") == ("ok", f"{path} mentions Antiphon")
    load = machine.write(machine.home / ".emacs.d" / "init.el", '(load "/gone/.emacs.d/antiphon")\n')
    assert machine.report("editors").says("editors.emacs") == ("ok", f"{load} mentions Antiphon")
    path.write_text('cmd = { "antiphon", "agent" }\n', encoding="utf-8")
    assert machine.report("editors").problems == ["editors.neovim"]


def test_editors_that_do_not_mention_us_are_left_alone(machine: Machine) -> None:
    machine.write(machine.home / ".config" / "zed" / "settings.json", "{ not even JSON")
    assert machine.report("editors").ids == []
    machine.write(machine.home / ".config" / "zed" / "settings.json", "{ antiphon ")
    assert machine.report("editors")["editors.zed"]["status"] == "note"


# The environment.


def test_a_misspelt_variable_of_ours_is_a_problem(machine: Machine) -> None:
    report = machine.report("environment", ANTIPHON_STATEDIR="/x", ANTIPHON_LUTE="secret")
    assert [each["status"] for each in report.all("environment.variables")] == ["problem", "note"]
    assert "did you mean ANTIPHON_STATE_DIR?" in report.all("environment.variables")[0]["hint"]
    assert "secret" not in str(report.data)


def test_a_variable_that_names_what_is_not_there_is_a_problem(machine: Machine) -> None:
    report = machine.report("environment", CODEX_HOME="/gone", SSL_CERT_FILE="/gone.pem", XDG_STATE_HOME="here")
    assert [each["status"] for each in report.all("environment.paths")] == ["problem", "problem", "note"]


def test_proxies_are_listed_without_their_passwords(machine: Machine) -> None:
    report = machine.report("environment", https_proxy="http://ada:lovelace@proxy.example.org:8080")
    status, sentence = report.says("environment.proxies")
    assert status == "note" and "HTTPS_PROXY is http://proxy.example.org:8080" in sentence
    assert "lovelace" not in str(report.data) and "NO_PROXY" in report["environment.proxies"]["hint"]


def test_open_sessions_are_named_and_locks_without_an_owner_counted(machine: Machine) -> None:
    from antiphon.store.locks import SessionLock

    assert "state.sessions" not in machine.report("state").ids
    with SessionLock.take(machine.state, "s", "Zed"):
        check = machine.report("state")["state.sessions"]
        assert check["status"] == "ok" and check["sentence"].startswith("session `s` is open (process ")
        assert "Zed" in check["sentence"]
    machine.write(machine.state / "locks" / "0123.lock", "{}")
    check = machine.report("state")["state.sessions"]
    assert check["status"] == "note" and "1 lock of sessions" in check["sentence"] and check["facts"]["count"] == "1"
