"""The judge is bash itself: whatever the policy allows is run, and only what the rules permit may start."""

from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from antiphon.policy import Rules, Verdict, decide
from tests.policy.attacks import ATTACKS, HIDDEN, MEANT, Attack
from tests.policy.corpus import lines
from tests.policy.short import line, words
from tests.policy.stub_programs import BASH, Bench

PATTERNS = Rules.parse(
    allow=["Bash(git *)", "Bash(echo *)", "Bash(ls *)", "Bash(cat *)", "Bash(printf *)", "Bash(test *)", "Bash(find *)",
           "Bash(npm run test*)"]
)  # fmt: skip
ALL_BUT_RM = Rules.parse(allow=["Bash"], deny=["Bash(rm *)"])
GENERATED = 1200
PROVED = 1500
"""Lines in `make prove`."""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BASH is None, reason="there is no bash here")]


@cache
def generated(count: int) -> list[str]:
    """Lines from hypothesis: the same for every test, because making them takes longer than running them."""
    found: dict[str, None] = {}

    @settings(
        max_examples=count,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(lines)
    def collect(text: str) -> None:
        found[text] = None

    collect()
    return list(found)


def allowed(rules: Rules, rows: list[Attack], count: int) -> list[str]:
    """Lines from a table and from hypothesis that the rules allow."""
    found = dict.fromkeys([*(row.line for row in rows), *generated(count)])
    return [text for text in found if decide(line(text), rules).verdict is Verdict.ALLOW]


EACH = pytest.mark.parametrize("count", [GENERATED, pytest.param(PROVED, marks=pytest.mark.prove)])


@pytest.mark.timeout(600)
@EACH
def test_only_permitted_programs_start_and_no_file_is_written(tmp_path: Path, count: int) -> None:
    chosen = allowed(PATTERNS, ATTACKS, count)
    assert len(chosen) > count / 20
    bench = Bench(tmp_path)
    for text, started, left in bench.run_all(chosen):
        for argv in started:
            assert decide(words(*argv), PATTERNS).verdict is Verdict.ALLOW, f"{text!r} started {argv}"
        assert left == ["x"], f"{text!r} left {left}"
    assert not list((tmp_path / "home").iterdir())


@pytest.mark.timeout(600)
@EACH
def test_what_is_denied_does_not_start_when_all_else_is_allowed(tmp_path: Path, count: int) -> None:
    chosen = allowed(ALL_BUT_RM, HIDDEN + MEANT, count)
    assert len(chosen) > count / 20
    for text, started, _ in Bench(tmp_path).run_all(chosen):
        assert "rm" not in {argv[0] for argv in started}, f"{text!r} started rm"


def test_the_bench_records_what_starts(tmp_path: Path) -> None:
    [(_, started, left)] = Bench(tmp_path).run_all(["git status 'a b' | rm x >out"])
    assert sorted(started) == [("git", "status", "a b"), ("rm", "x")]
    assert left == ["out", "x"]
