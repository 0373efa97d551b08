"""`antiphon compare`: the same prompt for several agents, each in a worktree of its own."""

import asyncio
import json
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from antiphon.cli.outcome import RUN_STATUSES
from antiphon.cli.run.arguments import run_parser
from antiphon.cli.run.compare import CompareOptions, parser
from antiphon.runs.compared_page import ENDED, page, rows
from antiphon.runs.comparison import ComparedRun, ComparisonError, contestants_of, status_of_comparison
from antiphon.runs.events import VERSION, ResultEvent, RunFailure
from tests import prepared
from tests.cli import agents
from tests.cli.program import ROOT, Done, Place, ended
from tests.cli.test_run_flags import git, repository
from tests.limits import limit
from tests.rows import each_row
from tests.waits import until


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def compare(place: Place, *words: str, line: str | None = None) -> Done:
    data = None if line is None else line.encode()
    done = prepared.run("compare", *words, cwd=place.cwd, env=place.env, input=data, timeout=limit())
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def result(status: int = 0, text: str = "", **more: object) -> ResultEvent:
    fields: dict[str, object] = {"files_changed": [], "denials": [], "seconds": 1.5, **more}
    return ResultEvent(schema_version=VERSION, exit_code=status, text=text, **fields)  # type: ignore[arg-type]


def test_names_mean_agents_models_and_commands_and_each_has_a_label_of_its_own() -> None:
    found = contestants_of(["claude", " codex@gpt-5.5", "claude", "python -m agent@home"])
    assert [(each.label, each.agent, each.model) for each in found] == [
        ("claude", "claude", None),
        ("codex@gpt-5.5", "codex", "gpt-5.5"),
        ("claude (2)", "claude", None),
        ("python -m agent@home", "python -m agent@home", None),
    ]
    with pytest.raises(ComparisonError, match="from 2 to 16 agents, not 1"):
        contestants_of(["claude", ""])
    assert [each.file_name for each in contestants_of(["a b", "a-b", "a b"])] == ["a-b", "a-b-2", "a-b-3"]


def test_the_exit_status_is_that_of_all_runs_or_half_a_failure() -> None:
    def runs(*statuses: int) -> list[ComparedRun]:
        return [ComparedRun("x", result(status)) for status in statuses]

    assert [status_of_comparison(runs(*each), 6) for each in ((0, 0), (0, 1), (7, 7), (7, 8))] == [0, 6, 7, 1]


@each_row(
    "words",
    [
        *(["--allow", "Read"], ["--deny", "Bash(rm *)"], ["--ask", "Edit"], ["--permission-mode", "plan"]),
        *(["--on-ask", "fail"], ["--max-cost", "0.000010000"], ["--max-tokens", "5"], ["--max-turns", "2"]),
        *(["--trust-project"], ["--policy", "/ci.toml"], ["--keep-worktree", "never"], ["--timeout", "90.000000000"]),
    ],
)
def test_an_option_of_a_run_reaches_every_run(words: list[str]) -> None:
    read = [parser().parse_args(given, namespace=CompareOptions()) for given in ([], words)]
    without, given = (options.words() for options in read)
    if words[0] == "--keep-worktree":
        assert without == ["--keep-worktree", "changed"] and given == words
    else:
        assert [each for each in given if each not in without] == words
    run_parser().parse_intermixed_args(given)


def test_every_option_is_on_the_page_of_the_docs() -> None:
    text = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    options = {name for action in parser()._actions for name in action.option_strings} - {"-h", "--help"}
    assert {name for name in options if f"`{name}" not in text} == set()


class Tags(HTMLParser):
    """Collects the tags and addresses of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses += [value for name, value in attrs if name in ("href", "src")]


def test_the_page_shows_answers_diffs_and_errors_and_nothing_of_an_agent_becomes_a_tag(tmp_path: Path) -> None:
    patch = tmp_path / "a.patch"
    patch.write_text(
        "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-old <script>\n+new\n", encoding="utf-8"
    )
    failed = RunFailure(kind="auth_required", message="sign <in>", hint="do", retryable=False)
    runs = [
        ComparedRun("claude", result(text="**bold** <script>alert(1)</script>"), str(patch), 1, 1),
        ComparedRun("codex", result(7, error=failed)),
    ]
    html = page("fix <b>it</b>", runs)
    tags = Tags()
    tags.feed(html)
    assert "script" not in tags.tags and "b" not in tags.tags and tags.addresses == []
    assert "<strong>bold</strong>" in html and "sign &lt;in&gt;" in html and "old &lt;script&gt;" in html
    assert [row[:2] for row in rows(runs)] == [("claude", "✓ done"), ("codex", "✗ not signed in")]
    assert set(ENDED) | {0, 10} == set(RUN_STATUSES)  # a comparison has no `--output-schema`


@pytest.mark.slow
def test_agents_work_side_by_side_and_the_directory_of_the_user_is_not_touched(place: Place, tmp_path: Path) -> None:
    repository(place)
    out = tmp_path / "out"
    works = place.agent(agents.TakesTextOnly)
    words = ("/edit new.txt hello", "--agents", "demo", "--agents", works, "--allow", "Edit", "--out", str(out))
    done = compare(place, *words, "--json")
    assert done.status == 0, done.err
    first, second = map(json.loads, done.out.splitlines())
    assert (first["agent"], first["added"], first["result"]["patch"]["files"]) == ("demo", 1, ["new.txt"])
    assert second["result"]["text"] == "text" and "added" not in second
    assert first["result"]["worktree"]["kept"] and not second["result"]["worktree"]["kept"]
    assert git(place, "status", "--porcelain") == "" and first["result"]["worktree"]["branch"] in git(place, "branch")
    assert (out / "results.jsonl").read_text(encoding="utf-8") == done.out
    assert "new.txt" in (out / "page.html").read_text(encoding="utf-8")
    denied = compare(place, *words[:5], "--out", str(out))
    assert denied.status == 6 and "✗ denied" in denied.out and "+0 -0" in denied.out


@pytest.mark.slow
def test_the_prompt_comes_from_stdin_and_data_goes_along_with_a_prompt(place: Place, tmp_path: Path) -> None:
    repository(place)
    (place.cwd / "answers.jsonl").write_text('"text"\n' * 4, encoding="utf-8")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "answers")
    agent = place.agent(agents.Answers)
    both = ("--agents", agent, "--agents", agent)
    long = "x" * 200_000  # longer than an argument can be
    unlimited = compare(place, *both, "--max-cost", "0.00001", line=long)
    assert unlimited.status == 0 and unlimited.err.count("warning: the agent reports no cost") == 2
    assert compare(place, "look at", *both, line="a @missing line").status == 0
    asked = [json.loads(line)[1] for line in place.received if line.startswith('["asked"')]
    assert asked == [long, long, "a @missing line", "a @missing line"]  # the last part of each prompt


@pytest.mark.slow
def test_a_patch_of_an_earlier_comparison_is_no_result_of_this_one(place: Place, tmp_path: Path) -> None:
    repository(place)
    words = ("--out", str(tmp_path / "out"), "--agents", "demo,demo", "--diff")
    first = compare(place, "/edit new.txt hello", *words, "--allow", "Edit")
    assert first.status == 0 and first.out.count("+hello") == 2
    second = compare(place, "look at @missing.txt", *words)
    assert second.status == 2 and second.out.count("No file changed.") == 2 and "+0 -0" in second.out
    assert second.err.count("hint: ") == 2


@pytest.mark.slow
def test_an_agent_that_is_not_there_does_not_stop_the_others(place: Place) -> None:
    repository(place)
    done = compare(place, "hi", "--agents", "demo,nosuch", "--json")
    demo, missing = map(json.loads, done.out.splitlines())
    assert (done.status, demo["result"]["exitCode"], missing["result"]["exitCode"]) == (6, 0, 2)
    assert missing["result"]["error"]["kind"] == "unknown_agent"


def test_what_makes_no_sense_is_refused(place: Place) -> None:
    for words, problem in (
        (("hi", "--agents", "demo"), "from 2 to 16 agents"),
        (("--agents", "demo,demo"), "there is no prompt"),
        (("-f", "missing.md", "--agents", "demo,demo"), "cannot read"),
        (("hi", "--agents", "demo,demo", "--cwd", "missing"), "there is no directory `missing`"),
    ):
        done = compare(place, *words)
        assert done.status == 2 and problem in done.err


@pytest.mark.slow
async def test_ctrl_c_cancels_every_run(place: Place) -> None:
    repository(place)
    agent = place.agent(agents.Waits)
    words = [sys.executable, "-m", "antiphon", "compare", "go", "--agents", agent, "--agents", agent, "--json"]
    program = subprocess.Popen(  # noqa: ASYNC220 - it is started once, and waited for in a thread
        words, cwd=place.cwd, env=place.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    await until(lambda: place.log.exists() and place.received.count("session/prompt") == 2)
    os.kill(program.pid, 2)
    done = await asyncio.to_thread(ended, program)
    assert done.status == 130 and place.received.count("session/cancel") == 2
    assert [json.loads(line)["result"]["stopReason"] for line in done.out.splitlines()] == ["cancelled", "cancelled"]


def test_without_a_repository_there_is_one_error_and_nothing_starts(place: Place) -> None:
    done = compare(place, "hi", "--agents", "demo,demo")
    assert done.status == 2 and done.out == "" and "error: " in done.err and "is in no git repository" in done.err
    assert "git init" in done.err and not (place.state / "comparisons").exists()
