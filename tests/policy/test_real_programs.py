"""The judge is the machine itself: what the policy allows is run with real programs among traps, and nothing may start `canary`.

`ANTIPHON_TRAP_LINES` says how many lines each generator makes; a few hundred are a check, tens of thousands are a search.
"""

import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from antiphon.policy import Rules, Verdict, decide
from tests.policy import traps
from tests.policy.real_programs import BASH, GIT, Effects, Yard

LINES = int(os.environ.get("ANTIPHON_TRAP_LINES", "100"))
PROVED = 120
"""Lines of each generator in `make prove`."""
SEED = int(os.environ.get("ANTIPHON_TRAP_SEED", "14"))
KNOWN = Rules.parse(
    allow=[
        f"Bash({name} *)"
        for name in (
            *traps.programs_here(),
            "git",
            "cd",
            "cp",
            "ln",
            "mv",
            "mkdir",
            "git clone",
            "git archive",
            "git config",
            "git worktree",
            "git format-patch",
        )
    ]
)
ALL_BUT_CANARY = Rules.parse(allow=["Bash"], deny=["Bash(canary *)"])

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BASH is None or GIT is None, reason="there is no bash or no git here"),
    pytest.mark.timeout(600 + LINES),
]
Generator = Callable[[Random, Path], Iterator[str]]


@pytest.fixture(params=[LINES, pytest.param(PROVED, marks=pytest.mark.prove)])
def count(request: pytest.FixtureRequest) -> int:
    """How many lines a generator makes."""
    return int(request.param)


@pytest.fixture
def yard() -> Iterator[Yard]:
    memory = "/dev/shm"
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as directory:
        yield Yard(Path(directory))


def allowed(yard: Yard, rules: Rules, lines: Generator, count: int) -> list[str]:
    """Of so many lines those that the rules allow."""
    made = dict.fromkeys(islice(lines(Random(SEED), yard.work), count))
    return [line for line in made if decide(yard.action(line), rules).verdict is Verdict.ALLOW]


def is_reader(line: str) -> bool:
    return line.split()[0] not in traps.WRITERS


def reported(effects: list[Effects]) -> str:
    return "\n".join(str(effect) for effect in effects)


def test_no_option_of_a_known_program_starts_another_or_writes(yard: Yard, count: int) -> None:
    chosen = allowed(yard, KNOWN, traps.option_lines, count * 3)
    assert len(chosen) > count / 10
    effects = yard.suspects(chosen)
    bad = [effect for effect in effects if effect.ran or (is_reader(effect.line) and (effect.inside or effect.outside))]
    assert not bad, reported(bad)


def test_no_git_command_runs_a_file_of_the_work_tree_or_leaves_the_repository(yard: Yard, count: int) -> None:
    chosen = allowed(yard, KNOWN, traps.git_lines, count * 3)
    assert len(chosen) > count / 10
    bad = [effect for effect in yard.suspects(chosen, together=4) if effect.ran or effect.outside or effect.revealed]
    assert not bad, reported(bad)


def test_no_sed_script_runs_or_writes_anything(yard: Yard, count: int) -> None:
    chosen = allowed(yard, KNOWN, traps.sed_lines, count * 3)
    assert len(chosen) > count / 10
    bad = yard.suspects(chosen)
    assert not bad, reported(bad)


@pytest.mark.parametrize("lines", [traps.hidden_lines, traps.program_lines])
def test_what_is_denied_does_not_run_behind_anything(yard: Yard, lines: Generator, count: int) -> None:
    chosen = allowed(yard, ALL_BUT_CANARY, lines, count * 3)
    bad = [effect for effect in yard.suspects(chosen) if effect.ran]
    assert not bad, reported(bad)


def test_the_traps_work(yard: Yard) -> None:
    lines = [
        "canary", "git push -q ./evil.git HEAD:z", "git push -q evil HEAD:z", "cd docs && git status", "git cherry-pick --strategy=x/y side", "sed '1e canary' a",
        "awk -f x.awk", "git checkout -q trap && cd t && git status", "ln -s docs q && cd q && git status", "cd out && git status", "sed 's/[/]X/g;s/e;/x/p' a",
    ]  # fmt: skip
    assert [effect.line for effect in yard.run_all(lines) if not effect.ran] == []
    [read] = yard.run_all(["git diff --no-index out/secret a"])
    [wrote] = yard.run_all(["echo x > ../outside/new; echo y > z"])
    assert read.revealed and wrote.outside and len(wrote.inside) == 1
