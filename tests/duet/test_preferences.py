"""What the user wants: environment, config files, and what we think best, in this order."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.config.reader import ConfigValues, read
from antiphon.config.settings import merge
from antiphon.config.shapes import REVIEWS, DuetConfig, Settings
from antiphon.duet.preferences import TASKS, DuetPreferences, preferences, start_route
from tests.limits import limit

PAGE = Path(__file__).parents[2] / "docs" / "config.md"
SAID = Settings(duet=DuetConfig(route="codex", primary="codex", auto_resume=False, max_turns=3, nudge=False))


def test_without_a_word_everything_is_as_we_think_best() -> None:
    assert preferences(Settings(), {}) == DuetPreferences()
    best = DuetPreferences()
    assert (best.auto_resume, best.review, best.review_rounds, best.max_turns) == (True, "report", 2, 20)
    assert (best.max_tokens, best.max_cost) == (None, None)
    assert (best.tasks, best.nudge, best.nudge_cooldown, best.nudge_max) == (("dot", "ls", "--json"), True, 30.0, 5)


def test_the_config_file_counts_before_that() -> None:
    assert preferences(SAID, {}) == DuetPreferences(
        route="codex", primary="codex", auto_resume=False, max_turns=3, nudge=False
    )


def test_every_key_of_the_file_reaches_the_preferences() -> None:
    text = (
        '[duet]\nengines = ["codex", "x --acp"]\nroute = "duet"\nprimary = "codex"\nauto_resume = false\nreview = "fix"\n'
        'review_rounds = 3\nmax_turns = 4\nmax_tokens = 5\nmax_cost = 6\ntasks = ["todo"]\nnudge = false\nnudge_cooldown = 7\nnudge_max = 8\n'
    )
    settings = merge(read(text), ConfigValues(), trusted=False, broken=False)
    assert preferences(settings, {"DOT_EXECUTABLE": "/opt/dot"}) == DuetPreferences(
        ("codex", "x --acp"), "duet", "codex", False, "fix", 3, 4, 5, 6.0, ("todo",), False, 7.0, 8
    )


@pytest.mark.parametrize("prefix", ["ANTIPHON", "BANJO"])
def test_the_environment_counts_before_the_file(prefix: str) -> None:
    environ = {f"{prefix}_ROUTE": "review", f"{prefix}_PRIMARY_AGENT": "claude", f"{prefix}_AUTO_RESUME": "true"}
    found = preferences(SAID, environ)
    assert (found.route, found.primary, found.auto_resume, found.max_turns) == ("review", "claude", True, 3)


def test_our_own_names_count_before_banjos() -> None:
    assert preferences(Settings(), {"BANJO_ROUTE": "codex", "ANTIPHON_ROUTE": "claude"}).route == "claude"
    assert preferences(Settings(), {"BANJO_ROUTE": "codex", "ANTIPHON_ROUTE": ""}).route == "codex"


@pytest.mark.parametrize(
    ("word", "on"),
    [("false", False), ("0", False), ("no", False), ("OFF", False), ("true", True), ("1", True), ("", True)],
)
def test_auto_resume_is_switched_off_by_any_word_for_it(word: str, on: bool) -> None:
    assert preferences(Settings(), {"ANTIPHON_AUTO_RESUME": word}).auto_resume is on


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ANTIPHON_ROUTE", "claude codex"),
        ("BANJO_PRIMARY_AGENT", "../x"),
        ("ANTIPHON_AUTO_RESUME", "perhaps"),
        ("DOT_EXECUTABLE", "bin/dot"),
    ],
)
def test_what_makes_no_sense_is_reported_and_left_out(name: str, value: str) -> None:
    found = preferences(SAID, {name: value})
    (problem,) = found.problems
    assert problem.sentence.startswith(f"{name} is ") and problem.hint
    assert (found.route, found.primary, found.auto_resume, found.tasks) == ("codex", "codex", False, TASKS)


def test_another_dot_can_be_named_for_the_usual_command_alone() -> None:
    environ = {"DOT_EXECUTABLE": "~/bin/dot"}
    assert preferences(Settings(), environ).tasks == (str(Path.home() / "bin/dot"), "ls", "--json")
    assert preferences(Settings(duet=DuetConfig(tasks=("todo",))), environ).tasks == ("todo",)


@pytest.mark.parametrize(
    ("route", "primary", "engines", "expected", "words"),
    [
        (None, None, ["codex", "claude"], ("codex", "codex"), []),
        ("duet", "claude", ["codex", "claude"], ("duet", "claude"), []),
        ("claude", None, ["codex", "claude"], ("claude", "codex"), []),
        ("review", None, ["codex"], ("codex", "codex"), ["needs two engines"]),
        ("claude", "claude", ["codex"], ("codex", "codex"), ["no engine `claude`", "no route `claude`"]),
    ],
)
def test_a_session_begins_as_wanted_as_far_as_the_engines_are_there(
    route: str | None, primary: str | None, engines: list[str], expected: tuple[str, str], words: list[str]
) -> None:
    found = start_route(DuetPreferences(route=route, primary=primary), engines)
    assert (found.route, found.primary) == expected
    assert len(found.problems) == len(words)
    for problem, word in zip(found.problems, words, strict=True):
        assert word in problem.sentence and problem.hint


def test_the_page_has_every_variable_and_a_right_example() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in ("ROUTE", "PRIMARY_AGENT", "AUTO_RESUME"):
        assert f"`ANTIPHON_{name}`" in text and f"`BANJO_{name}`" in text
    assert "`DOT_EXECUTABLE`" in text
    examples = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    part = read(next(example for example in examples if "[duet]" in example))
    assert part.problems == () and part.text("duet", "review") in REVIEWS


@pytest.mark.parametrize("page", ["config.md", "duet.md"])
def test_the_example_of_a_page_gives_a_session_that_begins_so(page: str) -> None:
    text = PAGE.with_name(page).read_text(encoding="utf-8")
    (example,) = [each for each in re.findall(r"```toml\n(.*?)```", text, re.DOTALL) if "[duet]" in each]
    part = read(example)
    wanted = preferences(merge(part, ConfigValues(), trusted=False, broken=False), {})
    begins = start_route(wanted, wanted.engines or ("claude", "codex"))
    assert not part.problems and not wanted.problems and not begins.problems
    assert begins.route == "review" and wanted.review == "fix"
    assert (begins.primary, wanted.max_cost) == (("claude", 2.5) if page == "config.md" else ("codex", 1.0))


def test_it_is_known_before_anything_heavy_is_loaded() -> None:
    code = "import sys, antiphon.duet.preferences, antiphon.catalogue.known; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", timeout=limit()
    )
    assert not {"asyncio", "sqlite3", "subprocess", "tomllib", "hashlib", "antiphon.protocol.v1"} & set(
        done.stdout.split()
    )
