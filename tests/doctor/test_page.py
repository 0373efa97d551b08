"""The page about `antiphon doctor` says what the program says."""

import re
from pathlib import Path

import pytest

from antiphon.cli.doctor import parser
from antiphon.doctor.checks import PARTS, checks_of
from tests.cli.program import ROOT
from tests.doctor.machine import CODEX, Machine
from tests.doctor.test_checks import CONTEXT

PAGE = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")


def example(path: Path) -> Machine:
    """What the example on the page is about: a misspelt key, an editor, and a Codex without a login."""
    machine = Machine(path)
    machine.configure('agent = "claude"\nmodle = "opus"\n')
    machine.program("codex", CODEX.replace('echo "Logged in using ChatGPT"', "echo Not logged in; exit 1"))
    zed = '{"agent_servers": {"Claude Code": {"command": "antiphon", "args": ["agent", "--engine", "claude"]}}}'
    machine.write(machine.home / ".config" / "zed" / "settings.json", zed)
    return machine


def normal(text: str) -> str:
    """On one line, and without what differs between machines."""
    text = " ".join(text.split())
    text = re.sub(r"(?<= Python: )[^✓·✗]+(?= ✓)", "…", text)
    text = re.sub(r"(?<= Antiphon: )[^✓·✗]+(?= ✓)", "…", text)
    return re.sub(r"[\d.]+ [GM]iB are free", "… are free", text)


@pytest.mark.slow  # needs the extras `claude` and `codex`, which the example reports
def test_the_example_is_what_the_program_prints(tmp_path: Path) -> None:
    machine = example(tmp_path)
    done = machine.visit()
    text = done.out
    for place, name in (
        (machine.bin, "/home/ada/.local/bin"),
        (machine.home, "/home/ada"),
        (machine.work, "/home/ada/songs"),
    ):
        text = text.replace(str(place), name)
    (block,) = re.findall(r"```console\n\$ antiphon doctor\n(.*?)```", PAGE, re.DOTALL)
    assert done.status == 1 and normal(block) == normal(text)


def test_every_option_is_on_the_page_and_no_other() -> None:
    options = {name for action in parser()._actions for name in action.option_strings if name.startswith("--")}
    others = {"--engine", "--login", "--agent"}  # of the commands that it names
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", PAGE)) - others == options


def test_every_part_and_every_check_is_on_the_page() -> None:
    shown = set(re.findall(r"^\| `([a-z]+\.[a-z.A-Z]+)` \|", PAGE, re.MULTILINE))
    made = {re.sub(r"^(agents|editors|network|start|install)\.(?!registry|python|(?<=install\.)antiphon|command).+", r"\1.NAME", check.id)
            for check in checks_of(CONTEXT, network=True, start=True)}  # fmt: skip
    made = {re.sub(r"^engines\.\w+\.", "engines.NAME.", id) for id in made}
    assert shown == made
    assert {id.partition(".")[0] for id in shown} == set(PARTS)


def test_every_exit_status_is_on_the_page() -> None:
    assert re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE) == ["0", "1", "2", "130"]
