"""One config file: what it says, and what is reported about it."""

import re
from pathlib import Path

import pytest

from antiphon.config.reader import KEYS, MAX_PROBLEMS, read
from antiphon.config.shapes import MODES, ON_ASK, REVIEWS
from tests.rows import each_row

PAGE = Path(__file__).parents[2] / "docs" / "config.md"


def problems_of(text: str) -> list[tuple[int, str, bool]]:
    return [(problem.line, problem.sentence, problem.policy) for problem in read(text).problems]


def test_an_empty_file_has_no_values_and_no_problems() -> None:
    assert (dict(read("").values), read("# only a comment\n").problems) == ({}, ())


def test_every_key_is_read() -> None:
    part = read(
        'agent = "gemini"\nmode = "code"\nmodel = "big"\n'
        '[policy]\nmode = "plan"\non_ask = "fail"\nallow = ["Read"]\ndeny = ["Bash"]\nask = ["Edit"]\n'
        '[agents.mine]\ncommand = ["~/bin/mine", "--acp"]\nenv = { A = "1" }\ncwd = "~/x"\ntitle = "Mine"\n'
        '[mcp.issues]\ntype = "http"\nurl = "https://x/mcp"\nheaders = { Authorization = "t" }\n'
        '[mcp.local]\ncommand = ["srv"]\nenv = { B = "2" }\n'
        '[engines.claude]\nexecutable = "~/bin/claude"\n[engines.codex]\nexecutable = "codex"\n'
        '[chat]\ntheme = "dark"\nnotify = "bell"\nkeys = "vi"\nimages = "off"\nundo = false\n'
        '[duet]\nengines = ["codex", "~/bin/mine --acp"]\nroute = "duet"\nprimary = "codex"\nauto_resume = false\n'
        'review = "fix"\nreview_rounds = 3\nmax_turns = 4\nmax_tokens = 5_000\nmax_cost = 2\ntasks = ["~/bin/todo", "--json"]\n'
        "nudge = true\nnudge_cooldown = 0.5\nnudge_max = 6\n"
    )
    assert part.problems == ()
    patterns = {re.sub(r"^(agents|mcp)\.[^.]+", r"\1.NAME", ".".join(path)) for path in part.values}
    assert patterns == set(KEYS)
    assert part.texts("agents", "mine", "command") == (str(Path.home() / "bin/mine"), "--acp")
    assert part.text("agents", "mine", "cwd") == str(Path.home() / "x")
    assert part.names("mcp") == ["issues", "local"]
    assert part.texts("duet", "tasks") == (str(Path.home() / "bin/todo"), "--json")
    assert (part.get("duet", "auto_resume"), part.get("duet", "max_tokens"), part.get("duet", "max_cost")) == (
        False,
        5000,
        2.0,
    )


def test_the_page_documents_every_key_and_no_other() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("## Keys") : text.index("Names consist of letters")]
    assert re.findall(r"^\| `([^`]+)`", table, re.MULTILINE) == list(KEYS)
    for word in (*MODES, *ON_ASK, *REVIEWS):
        assert f"`{word}`" in table


def test_the_example_of_the_page_is_right() -> None:
    example = re.search(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    assert read(example[1]).problems == () and read(example[1]).text("agent") == "gemini"


@each_row(
    ("text", "line", "words"),
    [
        ("agent = 'x'\n\nagnet = 'y'\n", 3, "`agnet`"),
        ("[policy]\nalow = []\n", 2, "`policy.alow`"),
        ("[policy]\nallow = 'Read'\n", 2, "list of strings"),
        ("[policy]\nallow = ['Read', 7]\n", 2, "list of strings"),
        ("[policy]\nmode = 'yolo'\n", 2, "one of default, acceptEdits"),
        ("policy = 3\n", 1, "must be a table"),
        ("agent = 'a b'\n", 1, "name of an agent"),
        ("[agents.x]\ncommand = 'x --acp'\n", 2, "list of words"),
        ("[agents.x]\ncommand = []\n", 2, "list of words"),
        ("[agents.x]\ncommand = ['bin/x']\n", 2, "whole path"),
        ("[agents.x]\ntitle = 'X'\n", 1, "has no command"),
        ("\n[agents.x]\n", 2, "has no command"),
        ("[agents.demo]\ncommand = ['x']\n", 1, "built in"),
        ("[agents.'$(rm)']\ncommand = ['x']\n", 1, "is no name"),
        ("[agents.x]\ncommand = ['x']\nenv = { A = 1 }\n", 3, "table of strings"),
        ("[agents.x]\ncommand = ['x']\ncwd = 'there'\n", 3, "whole path"),
        ("[agents.x]\ncommand = ['x']\nshell = true\n", 3, "`agents.x.shell`"),
        ("[mcp.x]\ntype = 'sse'\n", 1, "has no url"),
        ("[mcp.x]\nurl = 'ftp://x'\n", 2, "http"),
        ("[engines.claude]\nexecutable = 'bin/claude'\n", 2, "whole path"),
        ("[engines.claude]\nexecutable = ['claude']\n", 2, "program's name"),
        ("[engines.lute]\nexecutable = 'lute'\n", 1, "`engines.lute`"),
        ("[duet]\nengines = 'claude'\n", 2, "list of engines"),
        ("[duet]\nengines = []\n", 2, "list of engines"),
        ("[duet]\n\nengines = ['claude', 'codex', 'claude']\n", 3, "twice"),
        ("[duet]\nengines = ['bin/agent --acp']\n", 2, "whole path"),
        ("[duet]\nengines = ['agent \"--acp']\n", 2, "does not end"),
        ("[duet]\nroute = 'a b'\n", 2, "name of a route"),
        ("[duet]\nprimary = 7\n", 2, "name of an engine"),
        ("[duet]\nauto_resume = 'no'\n", 2, "true or false"),
        ("[duet]\nreview = 'mend'\n", 2, "one of report, fix"),
        ("[duet]\nreview_rounds = 0\n", 2, "whole number from 1 on"),
        ("[duet]\nmax_turns = true\n", 2, "whole number"),
        ("[duet]\nmax_tokens = 1.5\n", 2, "whole number"),
        ("[duet]\nmax_cost = 0\n", 2, "number above 0"),
        ("[duet]\nmax_cost = inf\n", 2, "number above 0"),
        (f"[duet]\nmax_cost = 1{'0' * 400}\n", 2, "number above 0"),
        ("[duet]\ntasks = 'dot ls'\n", 2, "list of words"),
        ("[duet]\nnudge_cooldown = -1\n", 2, "from 0 on"),
        ("[duet]\nnudge_cooldown = nan\n", 2, "from 0 on"),
        ("[duet]\nnudge = 1\n", 2, "true or false"),
        ("[duet]\nnugde = true\n", 2, "`duet.nugde`"),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(text: str, line: int, words: str) -> None:
    problems = problems_of(text)
    assert [where for where, _, _ in problems] == [line] and words in problems[0][1]


def test_a_misspelt_key_gets_the_right_one_as_a_hint() -> None:
    assert read("[policy]\ndney = []\n").problems[0].hint == "did you mean `policy.deny`?"
    assert read("[polic]\ndeny = []\n").problems[0].hint == "did you mean `policy`?"


@each_row(
    ("text", "broken"),
    [
        ("[policy]\ndney = ['Bash']\n", True),
        ("[polcy]\ndeny = ['Bash']\n", True),
        ("deny = ['Bash']\n", True),
        ("[policy]\nmode = 'plam'\n", True),
        ("[agents.x]\nshell = true\n", False),
        ("model = 7\n", False),
        ("[engines.claude]\nexecutable = 7\n", False),
        ("[duet]\nroute = 7\n", False),
    ],
)
def test_a_policy_that_may_be_another_than_was_meant_is_broken(text: str, broken: bool) -> None:
    assert any(policy for _, _, policy in problems_of(text)) is broken


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\nb = [\n", 2),
        ("a = 1\na = 2\n", 2),
        ("ok = 1\n= 2\n", 2),
        ("a = " + "[" * 20_000, 1),
        ("a = " + "9" * 5_000, 1),
        ("\ufeffa = 1\n", 1),
    ],
    ids=["open list", "twice", "no key", "deep", "long number", "byte order mark"],
)
def test_what_is_not_toml_is_one_problem_that_breaks_the_policy(text: str, line: int) -> None:
    part = read(text)
    assert [(problem.line, problem.policy) for problem in part.problems] == [(line, True)]
    assert "not TOML" in part.problems[0].sentence and dict(part.values) == {}


def test_control_characters_of_a_file_do_not_reach_the_screen() -> None:
    (problem,) = read('"\\u001b[2J" = 1\n').problems
    assert problem.shown("f").sentence.isprintable() and problem.shown("f").hint.isprintable()


def test_a_flood_of_problems_is_cut_and_the_policy_still_broken() -> None:
    text = "".join(f"[agents.a{n}]\nx = 1\n" for n in range(100)) + "[polcy]\n"
    problems = read(text).problems
    assert len(problems) == MAX_PROBLEMS and any(problem.policy for problem in problems)


def test_every_rule_knows_its_line() -> None:
    part = read('[policy]\nallow = [\n  "Read",\n  "Edit(src/**)",\n]\ndeny = ["Bash"]\n')
    assert {text: line for (_, text), line in part.lines.items()} == {"Read": 3, "Edit(src/**)": 4, "Bash": 6}
