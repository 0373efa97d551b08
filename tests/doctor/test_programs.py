"""The doctor and programs of every kind: missing, too old, silent, hanging, talking nonsense; and none keeps it from the others."""

import time
from pathlib import Path

import pytest

from tests.doctor.machine import CLAUDE, CODEX, Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_it_shows_where_a_program_was_found(machine: Machine) -> None:
    def source(**env: str) -> tuple[str, str]:
        facts = machine.report("claude", **env)["engines.claude.program"]["facts"]
        return facts["source"], facts["path"]

    other = machine.write(machine.path / "other" / "claude", CLAUDE)
    other.chmod(0o755)
    assert source() == ("path", str(machine.bin / "claude"))
    machine.configure(f'[engines.claude]\nexecutable = "{other}"\n')
    assert source() == ("config", str(other))
    assert source(CLAUDE_CODE_EXECUTABLE=str(machine.bin / "claude"))[0] == "variable"


@pytest.mark.parametrize("variable", ["CLAUDE_CODE_EXECUTABLE", "CODEX_EXECUTABLE"])
def test_a_variable_that_points_nowhere_is_a_problem(machine: Machine, variable: str) -> None:
    report = machine.report(**{variable: "/nowhere/at/all"})
    (id,) = report.problems
    assert variable in report[id]["sentence"] and "/nowhere/at/all" in report[id]["sentence"]
    assert "correct it" in report[id]["hint"]


def test_a_config_file_that_names_no_program_is_a_problem(machine: Machine) -> None:
    machine.configure('[engines.codex]\nexecutable = "/nowhere/codex"\n')
    assert machine.report().problems == ["engines.codex.program"]


def test_a_program_that_is_too_old_is_a_problem_and_is_not_asked_more(machine: Machine) -> None:
    machine.program("claude", CLAUDE.replace("2.1.325", "2.1.3"))
    report = machine.report("claude")
    status, sentence = report.says("engines.claude.program")
    assert (
        status == "problem"
        and "Claude Code 2.1.3 is too old" in sentence
        and "update it" in report["engines.claude.program"]["hint"]
    )
    assert "engines.claude.login" not in report.ids


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#!/bin/sh\necho hello there\n", "does not report its version; it prints: hello there"),
        ("#!/bin/sh\nexit 3\n", "prints: nothing, and ended with 3"),
        ("#!/bin/sh\necho 'sk-ant-0123456789abcdef is wrong' >&2; exit 1\n", "prints: sk-*** is wrong"),
        ("#!/no/such/interpreter\n", "does not work"),
        ("\0\1\2", "does not work"),
        ("#!/bin/sh\nprintf '\\033[2J\\377\\n'; exit 1\n", "prints: "),
    ],
    ids=["no version", "silent", "secret", "no interpreter", "no program", "control codes"],
)
def test_a_program_that_prints_nonsense_is_a_problem(machine: Machine, text: str, words: str) -> None:
    machine.program("codex", text)
    report = machine.report("codex", "claude")
    assert report.problems == ["engines.codex.program"]
    sentence = report["engines.codex.program"]["sentence"]
    assert words in sentence and "\x1b" not in sentence and "sk-ant" not in sentence
    assert report["engines.claude.login"]["status"] == "ok"  # the others are looked at all the same


@pytest.mark.slow
def test_programs_that_hang_delay_the_report_by_no_more_than_the_limit(machine: Machine) -> None:
    for name in ("claude", "codex", "gemini", "goose"):
        machine.program(name, "#!/bin/sh\ntrap '' TERM\nwhile :; do /bin/sleep 600; done\n")
    began = time.monotonic()
    report = machine.report("--timeout", "1")
    assert time.monotonic() - began < 20
    assert report.problems == ["engines.claude.program", "engines.codex.program"]
    assert "`claude --version` took more than 1 seconds" in report["engines.claude.program"]["sentence"]
    assert "does not report its version" in report["agents.gemini"]["sentence"]


@pytest.mark.slow
def test_a_login_that_is_not_answered_in_time_is_a_problem(machine: Machine) -> None:
    machine.program("claude", CLAUDE.replace("echo '{", "/bin/sleep 600; echo '{"))
    report = machine.report("claude", "--timeout", "1")
    assert report.problems == ["engines.claude.login"]
    assert "`claude auth status --json` took more than 1 seconds" in report["engines.claude.login"]["sentence"]


@pytest.mark.parametrize("answer", ["", "[]", '{"loggedIn": "maybe"}', "{", "\\377"])
def test_a_login_in_an_unknown_form_is_a_problem(machine: Machine, answer: str) -> None:
    machine.program("claude", f"#!/bin/sh\n[ $1 = --version ] && echo 2.1.325 && exit\nprintf '{answer}'\n")
    report = machine.report("claude")
    assert (
        report.problems == ["engines.claude.login"]
        and "does not report whether" in report["engines.claude.login"]["sentence"]
    )


def test_a_warning_before_the_answer_does_no_harm(machine: Machine) -> None:
    warn = "#!/bin/sh\necho 'warning: node 18.0.0 is old' >&2\n"
    machine.program("claude", CLAUDE.replace("#!/bin/sh\n", warn))
    machine.program("codex", CODEX.replace("#!/bin/sh\n", warn))
    report = machine.report("engines")
    assert report.problems == []
    assert report["engines.claude.program"]["facts"]["version"] == "2.1.325"
    assert report["engines.codex.program"]["facts"]["version"] == "0.163.0"


def test_nothing_of_the_account_is_shown(machine: Machine) -> None:
    machine.program("codex", CODEX.replace("Logged in using ChatGPT", "Logged in using an API key - sk-proj-***12345"))
    report = machine.report("engines")
    assert report.says("engines.codex.login") == ("ok", "signed in with an API key")
    assert "12345" not in str(report.data) and "ada@example.org" not in str(report.data)
    assert report["engines.claude.login"]["facts"] == {"method": "claude.ai", "provider": "firstParty"}


def not_signed_in(machine: Machine) -> None:
    machine.program("codex", CODEX.replace('echo "Logged in using ChatGPT"', "echo Not logged in >&2; exit 1"))


def test_a_codex_that_needs_no_login_is_not_a_problem(machine: Machine) -> None:
    not_signed_in(machine)
    assert machine.report("codex").problems == ["engines.codex.login"]
    assert "OPENAI_API_KEY is set" in machine.report("codex", OPENAI_API_KEY="sk-x")["engines.codex.login"]["sentence"]
    machine.write(machine.home / ".codex" / "config.toml", 'model_provider = "choir"\n')
    assert machine.report("codex").says("engines.codex.login") == (
        "note",
        "not signed in; its configuration names the model provider `choir`, which may need no login",
    )


def test_an_agent_of_ones_own_whose_program_is_gone_is_a_problem(machine: Machine) -> None:
    machine.configure('agent = "goose"\n[agents.mine]\ncommand = ["nowhere"]\n[agents."my.own"]\ncommand = ["sh"]\n')
    machine.program("sh", "#!/bin/sh\n")
    report = machine.report()
    assert report.problems == ["agents.mine", "agents.goose"]
    assert "agents.mine.command" in report["agents.mine"]["hint"]
    assert "`run` and `chat` start it" in report["agents.goose"]["sentence"]
    assert machine.report("my.own").ids == ["agents.my.own"]


# Really started.


@pytest.mark.slow
def test_start_opens_a_session_with_every_engine_and_prints_how_long_it_took(machine: Machine) -> None:
    (machine.bin / "claude").unlink()
    (machine.bin / "codex").unlink()
    report = machine.report("demo", "--start")
    assert report.ids == ["agents.demo", "start.demo"] and report.problems == []
    facts = report["start.demo"]["facts"]
    assert 0 < float(facts["initialize"]) <= float(facts["session"]) <= float(facts["end"])
    assert report.data["start"] is True and report.data["network"] is False


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#!/bin/sh\necho out of luck >&2; exit 3\n", "out of luck"),
        ("#!/bin/sh\nwhile read line; do :; done\n", "was not done within 2 seconds"),
        ("#!/bin/sh\necho nonsense; exec /bin/sleep 600\n", "was not done within 2 seconds"),
    ],
    ids=["dies", "silent", "nonsense"],
)
def test_an_agent_that_does_not_start_is_a_problem(machine: Machine, text: str, words: str) -> None:
    machine.program("gemini", text)
    report = machine.report("gemini", "--start", "--timeout", "2")
    assert "start.gemini" in report.problems and words in report["start.gemini"]["sentence"]


def test_an_agent_that_wants_a_login_has_a_hint(machine: Machine) -> None:
    import shlex
    import sys

    from tests.cli.program import ROOT

    command = shlex.join([sys.executable, "-m", "tests.cli.agents", "WantsLogin", str(machine.path / "log")])
    machine.program("gemini", f"#!/bin/sh\n[ $1 = --version ] && echo 1.0 && exit\ncd {ROOT} && exec {command}\n")
    report = machine.report("gemini", "--start")
    assert report.problems == ["start.gemini"] and "sign in" in report["start.gemini"]["sentence"]
    assert "GEMINI_API_KEY" in report["start.gemini"]["hint"]
