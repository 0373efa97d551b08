"""`antiphon doctor` as a person meets it: what it looks at, what it says, and that it changes nothing."""

from pathlib import Path

import pytest

from antiphon import __version__
from antiphon.catalogue.known import KNOWN
from tests.cli.program import ROOT
from tests.cli.terminal import Terminal
from tests.doctor.machine import CODEX, Machine
from tests.engines.places import comes


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_without_problems_everything_is_fine(machine: Machine) -> None:
    done = machine.visit()
    assert (done.status, done.err) == (0, ""), done.out
    assert "✓ Claude Code: 2.1.325, " in done.out and "✓ Codex login: signed in with a ChatGPT account" in done.out
    assert "No problem." in done.out and "The doctor made no connection" in done.out and "✗" not in done.out


def test_nothing_is_made(machine: Machine) -> None:
    machine.visit()
    assert [*machine.home.iterdir()] == [] and [*machine.work.iterdir()] == []


def test_a_bare_machine_has_notes_and_no_problem(machine: Machine) -> None:
    machine.bare()
    report = machine.report()
    assert report.problems == []
    for name in ("chat", "policy", "claude", "codex"):
        assert report[f"install.{name}"]["status"] == "note"
        assert report[f"install.{name}"]["hint"] == f"pip install 'antiphon[{name}]'"
    for name in ("claude", "codex"):
        status, sentence = report.says(f"engines.{name}.program")
        assert (
            status == "note"
            and "is not installed" in sentence
            and f"antiphon[{name}]" in report[f"engines.{name}.program"]["hint"]
        )
        assert f"engines.{name}.login" not in report.ids  # one problem is reported once


def test_what_is_asked_for_by_name_has_to_be_there(machine: Machine) -> None:
    machine.bare()
    report = machine.report("claude")
    assert report.problems == ["engines.claude.program"] and report.ids == ["install.claude", "engines.claude.program"]
    assert machine.visit("gemini").status == 1


def test_names_choose_what_is_looked_at(machine: Machine) -> None:
    assert machine.report("codex").ids == ["install.codex", "engines.codex.program", "engines.codex.login"]
    assert machine.report("config", "state.directory").ids == [
        "config.user", "config.project", "config.agent", "state.directory",
    ]  # fmt: skip
    assert machine.report("engines.claude").ids == ["engines.claude.program", "engines.claude.login"]
    done = machine.visit("claude", "--json", "codex")
    assert done.status == 0 and '"engines.codex.login"' in done.out and '"state.' not in done.out


def test_every_known_agent_is_listed_with_how_to_get_it(machine: Machine) -> None:
    machine.program("gemini", "#!/bin/sh\necho 0.9.1\n")
    report = machine.report("agents")
    others = [name for name in KNOWN if KNOWN[name].drives is None]
    assert report.ids == ["agents.demo", *(f"agents.{name}" for name in others)]
    assert report.says("agents.gemini") == ("ok", f"0.9.1, {machine.bin / 'gemini'}")
    assert (
        report["agents.opencode"]["status"] == "note" and report["agents.opencode"]["hint"] == KNOWN["opencode"].install
    )
    text = machine.visit().out
    assert "· not installed: opencode, kimi, " in text and KNOWN["kimi"].install not in text
    assert KNOWN["kimi"].install in machine.visit("agents").out


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["xylophone"], "an engine or an agent"),
        (["claud"], "did you mean `claude`?"),
        (["start.demo"], "`--start` looks at that"),
        (["network"], "`--network` looks at that"),
        (["--loud"], "--help"),
        (["--timeout", "soon"], "--help"),
        (["--timeout", "0"], "--help"),
        (["--timeout", "nan"], "--help"),
        (["--js"], "--help"),
    ],
)
def test_words_it_does_not_know_end_in_a_hint(machine: Machine, words: list[str], hint: str) -> None:
    done = machine.visit(*words)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: ") and done.err.splitlines()[-1].startswith("hint: ") and hint in done.err


def installed(machine: Machine, version: str, direct_url: str | None = None) -> None:
    """What an installer leaves."""
    folder = machine.path / "lean" / f"antiphon-{version}.dist-info"
    machine.write(folder / "METADATA", f"Metadata-Version: 2.1\nName: antiphon\nVersion: {version}\n")
    machine.write(folder / "INSTALLER", "pip\n")
    if direct_url is None:
        (machine.path / "lean" / "antiphon").symlink_to(ROOT / "src" / "antiphon")
    else:
        machine.write(folder / "direct_url.json", direct_url)


def test_it_shows_how_we_were_installed(machine: Machine) -> None:
    machine.bare()
    assert machine.report("install")["install.antiphon"]["facts"]["how"] == "source"
    installed(machine, __version__)
    check = machine.report("install")["install.antiphon"]
    assert (check["status"], check["facts"]["how"]) == ("ok", "pip") and "installed by pip in " in check["sentence"]


def test_it_shows_that_we_are_a_copy_of_the_tree(machine: Machine) -> None:
    machine.bare()
    installed(machine, "0.0.1", f'{{"url": "{ROOT.as_uri()}", "dir_info": {{"editable": true}}}}')
    check = machine.report("install")["install.antiphon"]
    assert (check["status"], check["facts"]["how"]) == ("note", "editable")
    assert f"installed from {ROOT}, which it still uses" in check["sentence"] and "0.0.1" in check["sentence"]


def test_another_antiphon_on_the_path_is_reported(machine: Machine) -> None:
    (machine.bin / "antiphon").unlink()
    assert "there is no `antiphon` on the PATH" in machine.report("install")["install.command"]["sentence"]
    machine.program("antiphon", "#!/bin/sh\n")
    assert str(machine.bin / "antiphon") in machine.report("install")["install.command"]["sentence"]


# How it looks.


def shown(machine: Machine, *words: str, **env: str) -> tuple[int, str, bytes]:
    with Terminal(machine.words(*words), cwd=machine.work, env={**machine.env, **env}) as terminal:
        status, text = terminal.finish()
        return status, text, terminal.raw


def test_there_are_colours_on_a_terminal_and_nowhere_else(machine: Machine) -> None:
    assert b"\x1b[32m" in shown(machine, "install.python")[2]
    assert b"\x1b" not in shown(machine, "install.python", NO_COLOR="1")[2]
    assert b"\x1b" not in shown(machine, "install.python", TERM="dumb")[2]
    assert "\x1b" not in machine.visit("install.python").out


def test_no_line_is_wider_than_a_narrow_terminal(machine: Machine) -> None:
    machine.program("codex", CODEX.replace('echo "Logged in using ChatGPT"', "echo Not logged in; exit 1"))
    _, text, _ = shown(machine, COLUMNS="50")
    # Paths are not broken: they are to be copied.
    wide = [line for line in text.splitlines() if len(line) > 50 and str(machine.path) not in line]
    assert wide == [] and "hint: `antiphon agent --engine codex" in text
    assert max(len(line) for line in machine.visit().out.splitlines()) > 80


def test_problems_stand_at_the_end_with_what_to_do(machine: Machine) -> None:
    machine.program("codex", NOT_SIGNED_IN)
    done = machine.visit("codex")
    body, _, summary = done.out.partition("\n1 problem\n")
    assert done.status == 1 and "✗ Codex login: not signed in" in body
    assert summary.splitlines()[:2] == [
        "✗ Codex login: not signed in",
        "   hint: `antiphon agent --engine codex --login` signs in, in this terminal; or set CODEX_API_KEY",
    ]


NOT_SIGNED_IN = CODEX.replace('echo "Logged in using ChatGPT"', "echo Not logged in; exit 1")


@pytest.mark.parametrize("trouble", [NOT_SIGNED_IN, "#!/bin/sh\necho hello\n", "#!/no/such/interpreter\n"])
def test_one_engine_that_works_is_enough(machine: Machine, trouble: str) -> None:
    machine.program("codex", trouble)
    done = machine.visit()
    assert done.status == 0 and "No problem." in done.out and "· Codex" in done.out


@pytest.mark.parametrize("config", ['agent = "codex"\n', '[duet]\nengines = ["claude", "codex"]\n'])
def test_an_engine_that_the_config_file_names_is_needed(machine: Machine, config: str) -> None:
    machine.program("codex", NOT_SIGNED_IN)
    machine.configure(config)
    assert machine.visit().status == 1


def test_without_any_engine_that_works_each_is_a_problem(machine: Machine) -> None:
    machine.program("codex", NOT_SIGNED_IN)
    machine.program("claude", "#!/bin/sh\necho hello\n")
    done = machine.visit()
    assert done.status == 1 and "2 problems" in done.out


def test_a_screen_that_knows_few_letters_is_harmless(machine: Machine) -> None:
    done = machine.visit("install.python", PYTHONIOENCODING="ascii")
    assert done.status == 0 and "? Python: " in done.out


@pytest.mark.slow
def test_a_user_at_a_terminal_sees_what_is_waited_for(machine: Machine) -> None:
    machine.program("codex", "#!/bin/sh\n/bin/sleep 600\n")
    with Terminal(machine.words("codex", "--timeout", "3"), cwd=machine.work, env=machine.env) as terminal:
        terminal.wait_for("waiting for Codex")
        status, text = terminal.finish()
    assert status == 1 and "waiting for" not in text and "took more than 3 seconds" in text


@pytest.mark.slow
def test_ctrl_c_ends_it_and_what_it_asked(machine: Machine) -> None:
    machine.program("codex", f"#!/bin/sh\necho $$ > {machine.path}/pid\nexec /bin/sleep 600\n")
    with Terminal(machine.words("codex"), cwd=machine.work, env=machine.env) as terminal:
        terminal.wait_for("waiting for Codex")
        terminal.type("\x03")
        status, _ = terminal.finish()
    assert status == 130
    pid = (machine.path / "pid").read_text(encoding="utf-8").strip()
    assert comes(lambda: not Path("/proc", pid).exists())


def test_the_help_has_the_exit_status(machine: Machine) -> None:
    done = machine.visit("--help")
    assert done.status == 0 and "exit status: 0 no problem, 1 a problem" in " ".join(done.out.split())
