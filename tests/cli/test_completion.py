"""Completion: bash with its script really loaded, and the text of the scripts for zsh and fish."""

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.catalogue.known import KNOWN
from antiphon.cli import completion as completion_scripts
from antiphon.cli.agents import parser as agents_parser
from antiphon.cli.completion import SHELLS, Node, Option, tree
from antiphon.cli.main import COMMANDS
from antiphon.cli.run.arguments import run_parser
from tests import prepared
from tests.catalogue.programs import own, place, program
from tests.limits import limit

__all__ = ["place"]

USUAL_PATH = "/usr/local/bin:/usr/bin:/bin"


def script(shell: str) -> str:
    done = prepared.run("completion", shell, timeout=limit())
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


@pytest.fixture
def typed(place: Path) -> "Typed":
    """A bash with completion, in a place where `antiphon` can be started."""
    program(place / "bin", "antiphon", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m antiphon "$@"\n')
    (place / "bash").write_text(script("bash"), encoding="utf-8")
    return Typed(place)


class Typed:
    """What bash offers for the words of a line; the last one is being typed."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def __call__(self, *words: str) -> list[str]:
        lines = [
            f"source {shlex.quote(str(self._place / 'bash'))}",
            f"COMP_WORDS=({shlex.join(('antiphon', *words))})",
            f"COMP_CWORD={len(words)}",
            "_antiphon antiphon",
            '((${#COMPREPLY[@]})) && printf "%s\\n" "${COMPREPLY[@]}"',
            "exit 0",
        ]
        done = subprocess.run(
            ["bash", "--norc", "-u", "-c", "\n".join(lines)],
            capture_output=True,
            check=False,
            encoding="utf-8",
            timeout=limit(),
            cwd=self._place / "work",
            env={**os.environ, "PATH": f"{self._place / 'bin'}:{USUAL_PATH}"},
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout.splitlines()


def test_bash_offers_every_command(typed: Typed) -> None:
    assert typed("") == list(COMMANDS)
    assert typed("ag") == ["agents", "agent"]
    assert typed("--v") == ["--version"]


def test_bash_offers_the_commands_and_options_of_a_command(typed: Typed) -> None:
    assert typed("agents", "") == ["check", "add", "remove", "registry"]
    assert typed("agents", "--json", "ch") == ["check"]
    assert typed("agents", "check", "--t") == ["--timeout"]
    assert typed("completion", "") == list(SHELLS)
    assert typed("doctor", "--n") == ["--network"] and typed("doctor", "cl") == ["claude", "claude-acp"]
    assert typed("doctor", "claude", "ed") == ["editors"]


def test_bash_offers_every_option_that_run_has(typed: Typed) -> None:
    actions = run_parser()._actions
    offered = typed("run", "-")
    assert sorted(offered) == sorted(name for action in actions for name in action.option_strings)


def test_bash_offers_the_words_that_an_option_takes(typed: Typed) -> None:
    assert typed("run", "--on-ask", "") == ["deny", "fail", "allow"]
    assert typed("run", "--on-ask", "=", "f") == ["fail"]
    assert typed("run", "--on-ask", "=") == ["deny", "fail", "allow"]
    assert typed("run", "--permission-mode", "plan", "--on-ask", "a") == ["allow"]


def test_bash_offers_the_agents_there_are(typed: Typed, place: Path) -> None:
    own(place, '[agents.mine]\ncommand = ["x"]\n')
    assert typed("agents", "check", "") == ["demo", "mine", *KNOWN]
    assert typed("run", "--agent", "m") == ["mine"]


def test_bash_offers_directories_for_a_directory(typed: Typed, place: Path) -> None:
    (place / "work" / "a folder").mkdir()
    (place / "work" / "a file").touch()
    assert typed("run", "--cwd", "a") == ["a folder"]


def test_bash_leaves_prompts_and_files_to_itself(typed: Typed) -> None:
    """Nothing offered is what makes it complete files."""
    for words in (["run", "x"], ["run", "--", "-"], ["agents", "registry", "x"], ["run", "--file", ""]):
        assert typed(*words) == []


def test_a_prompt_that_is_named_like_a_command_is_a_prompt(typed: Typed) -> None:
    assert typed("run", "agents", "ch") == []
    assert typed("run", "--agent", "agents", "--on-a") == ["--on-ask"]


def test_nothing_in_a_config_file_is_run(typed: Typed, place: Path) -> None:
    own(place, f'[agents."$(touch {place}/hit)"]\ncommand = ["x"]\n[agents."`touch {place}/hit`"]\ncommand = ["x"]\n')
    assert typed("agents", "check", "") == ["demo", *KNOWN]
    assert not (place / "hit").exists()


def test_every_command_is_in_the_tree_with_what_its_parser_has() -> None:
    root = tree(COMMANDS)
    assert [node.path[-1] for node in root.commands] == list(COMMANDS)
    (agents,) = [node for node in root.commands if node.path[-1] == "agents"]
    (subcommands,) = [a for a in agents_parser()._actions if isinstance(a, argparse._SubParsersAction)]
    assert [node.path[-1] for node in agents.commands] == list(subcommands.choices)
    assert all(node.help for node in root.walk() if node is not root)


# The text of each script, of a small tree.

SMALL = Node(
    ("antiphon",),
    "",
    (Option(("-h", "--help"), "it's help"),),
    commands=(
        Node(
            ("antiphon", "run"),
            "one prompt",
            (
                Option(("-f", "--file"), "a file", "file"),
                Option(("--cwd",), "where", "directory"),
                Option(("--agent",), "who", "agent"),
                Option(("--on-ask",), "what then", ("deny", "fail")),
            ),
            "file",
        ),
    ),
)

FISH = """\
complete -c antiphon -f
complete -c antiphon -n "__antiphon_at 'antiphon'" -a run -d 'one prompt'
complete -c antiphon -n "__antiphon_at 'antiphon'" -l help -s h -d 'it\u2019s help'
complete -c antiphon -n "__antiphon_at 'antiphon run'" -F
complete -c antiphon -n "__antiphon_at 'antiphon run'" -s f -l file -r -F -d 'a file'
complete -c antiphon -n "__antiphon_at 'antiphon run'" -l cwd -r -x -a '(__fish_complete_directories)' -d 'where'
complete -c antiphon -n "__antiphon_at 'antiphon run'" -l agent -r -x -a '(antiphon agents --names 2>/dev/null)' -d 'who'
complete -c antiphon -n "__antiphon_at 'antiphon run'" -l on-ask -r -x -a 'deny fail' -d 'what then'
""".replace("-l help -s h", "-s h -l help")


def test_the_script_for_fish_is_what_it_was() -> None:
    text = completion_scripts.fish(SMALL)
    assert text.endswith(FISH) and "            case 'antiphon run'\n" in text


def test_the_script_for_zsh_is_what_it_was() -> None:
    text = completion_scripts.zsh(SMALL)
    assert text.startswith("#compdef antiphon\n")
    for line in (
        '            "antiphon run")',
        "            \"antiphon\") offers=('-h:it\u2019s help' '--help:it\u2019s help') ;;",
        "            \"antiphon\") offers=('run:one prompt'); _describe command offers ;;",
        "            \"antiphon run\") _antiphon_offer '@file' ;;",
        '        "antiphon run -f" | "antiphon run --file") value=\'@file\' ;;',
        "        \"antiphon run --on-ask\") value='deny fail' ;;",
        "        \"antiphon run --agent\") value='@agent' ;;",
    ):
        assert f"{line}\n" in text, line


def test_no_script_has_a_place_that_was_not_filled() -> None:
    for shell in SHELLS:
        text = script(shell)
        assert not [mark for mark in ("@PATHS@", "@OPTIONS@", "@WORDS@", "@VALUES@") if mark in text]
        assert text.endswith("\n") and "Traceback" not in text


@pytest.mark.parametrize("words", [(), ("tcsh",), ("bash", "zsh")])
def test_words_it_does_not_know_end_in_a_hint(words: tuple[str, ...]) -> None:
    done = prepared.run("completion", *words, timeout=limit())
    assert (done.returncode, done.stdout) == (2, b"") and done.stderr.splitlines()[-1].startswith(b"hint: ")


def test_help_shows_how_each_shell_is_set_up() -> None:
    done = prepared.run("completion", "--help", timeout=limit())
    assert done.returncode == 0 and all(f"antiphon completion {shell}" in done.stdout.decode() for shell in SHELLS)
