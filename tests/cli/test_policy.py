"""`antiphon policy` as a person meets it: data on stdout, words on stderr."""

import asyncio
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from antiphon.cli.main import main
from antiphon.store.decisions import AuditEntry, AuditStore, DecisionStore, Scope, Verdict
from antiphon.store.schema import FILE_NAME, open_database
from tests.cli.program import Place
from tests.limits import limit
from tests.rows import each_row

Policy = Callable[..., tuple[int, str, str]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory to work in; its parent has state and config."""
    monkeypatch.setenv("ANTIPHON_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("ANTIPHON_CONFIG_DIR", str(tmp_path / "config"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


@pytest.fixture
def policy(home: Path, capsys: pytest.CaptureFixture[str]) -> Policy:
    """Runs a command: its status, its data and its words."""

    def run(*words: str) -> tuple[int, str, str]:
        status = main(["policy", *words])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


def remember(rule: str, verdict: Verdict = "allow", scope: Scope = "everywhere", **about: str) -> None:
    async def write() -> None:
        async with open_database() as database:
            await DecisionStore(database).remember(rule, verdict, scope, **about)

    asyncio.run(write())


def decide(*subjects: str) -> None:
    async def write() -> None:
        async with open_database() as database:
            for subject in subjects:
                entry = AuditEntry("demo", "s", "/w", "Bash", "execute", subject, "deny", "Bash(rm *)", "test", "so")
                AuditStore(database).post(entry)

    asyncio.run(write())


def write_config(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(text, encoding="utf-8")


# explain


@each_row(
    ("words", "verdict"),
    [
        (("--allow", "Bash(git *)", "Bash", "git status"), "allow"),
        (("--allow", "Bash(git *)", "Bash", "git status; rm -rf /"), "ask"),
        (("--allow", "Bash(git *)", "Bash", "git log $(rm x)"), "ask"),
        (("--allow", "Bash(git *)", "Bash", "PATH=. git x"), "ask"),
        (("--allow", "Bash", "--deny", "Bash(rm *)", "Bash", "ls; 'r'm -rf /"), "deny"),
        (("--allow", "Bash", "--ask", "Bash(git push *)", "Bash", "git push origin"), "ask"),
        (("Read", "notes.txt"), "allow"),
        (("Edit", "notes.txt"), "ask"),
        (("--allow", "Edit(src/**)", "Edit", "src/a.py"), "allow"),
        (("--allow", "Edit(src/**)", "Edit", "src/../a.py"), "ask"),
        (("--allow", "Edit(src/**)", "Write", "src/a.py"), "allow"),
        (("--mode", "acceptEdits", "Edit", "a.py"), "allow"),
        (("--mode", "acceptEdits", "Edit", "/etc/hosts"), "ask"),
        (("--mode", "plan", "--allow", "Edit", "Edit", "a.py"), "deny"),
        (("--permission-mode", "dontAsk", "Bash", "ls"), "deny"),
        (("--mode", "bypassPermissions", "--deny", "kind:edit", "kind:edit", "a.py"), "deny"),
        (("mcp__github__create_issue", '{"title": "x"}'), "ask"),
        (("--allow", "mcp__github", "mcp__github__create_issue"), "allow"),
        (("--allow", "WebFetch(domain:example.org)", "WebFetch", "https://example.org/x"), "allow"),
        (("run_shell_command", "ls"), "ask"),
    ],
)
def test_explain_prints_the_verdict_then_the_rule_then_why(
    policy: Policy, words: tuple[str, ...], verdict: str
) -> None:
    status, data, printed = policy("explain", *words)
    lines = data.splitlines()
    assert (status, lines[0], printed) == (0, verdict, "")
    assert len(lines) == 3 and lines[1].startswith("rule: ") and lines[2].startswith("why: ")


def test_explain_names_the_rule_and_where_it_stands(policy: Policy, home: Path) -> None:
    write_config(home.parent / "config", '[policy]\nallow = ["Bash(make *)"]\n')
    _, data, _ = policy("explain", "Bash", "make test")
    file = home.parent / "config" / "config.toml"
    assert data.splitlines()[:2] == ["allow", f"rule: Bash(make *) ({file}, line 2)"]
    status, data, _ = policy("explain", "--json", "--allow", "Read", "Bash", "make test")
    explained = msgspec.json.decode(data)
    assert status == 0 and set(explained) == {"verdict", "rule", "source", "where", "why"}
    assert (explained["verdict"], explained["rule"], explained["source"]) == ("allow", "Bash(make *)", "user config")


def test_explain_counts_what_is_remembered_here(policy: Policy, home: Path) -> None:
    assert policy("explain", "Bash", "git status")[1].startswith("ask\n")
    assert not (home.parent / "state").exists()  # to look is not to make a file
    remember("Bash(git status)", scope="project", project=str(home.resolve()))
    assert policy("explain", "Bash", "git status")[1].startswith("allow\nrule: Bash(git status) (remembered)\n")
    (home / "sub").mkdir()
    assert policy("explain", "--cwd", "sub", "Bash", "git status")[1].startswith("ask\n")


def test_explain_counts_the_directories_of_the_session(policy: Policy, home: Path) -> None:
    beside = home.parent / "beside"
    beside.mkdir()
    words = ("explain", "--mode", "acceptEdits", "Edit", str(beside / "x"))
    assert policy(*words)[1].startswith("ask\n")
    assert policy(*words, "--add-dir", str(beside))[1].startswith("allow\n")


@pytest.mark.parametrize("text", ["[policy", '[policy]\nallow = ["Bash(git"]\n', "[policy]\nallow = 3\n"])
def test_a_corrupt_config_means_ask(policy: Policy, home: Path, text: str) -> None:
    write_config(home.parent / "config", text)
    for words in (("--allow", "Bash", "Bash", "ls"), ("--mode", "bypassPermissions", "Bash", "ls"), ("Read", "x")):
        status, data, printed = policy("explain", *words)
        assert (status, data.splitlines()[0]) == (0, "ask")
        assert "config.toml" in printed


def test_a_store_that_cannot_be_used_means_ask(policy: Policy, home: Path) -> None:
    (home.parent / "state").mkdir()
    (home.parent / "state" / FILE_NAME).write_bytes(b"no database" * 100)
    status, data, _ = policy("explain", "--mode", "bypassPermissions", "Bash", "ls")
    assert (status, data.splitlines()[0]) == (0, "ask")


@each_row(
    "words",
    [
        (),
        ("sing",),
        ("explain",),
        ("explain", "Bash"),
        ("explain", "Bash", "git", "status"),
        ("explain", "--allow", "Bash(git", "Bash", "ls"),
        ("explain", "--mode", "yolo", "Bash", "ls"),
        ("explain", "--cwd", "nowhere", "Bash", "ls"),
        ("explain", "mcp__a__b", "words"),
        ("explain", "kind:song", "x"),
        ("revoke",),
        ("revoke", "1", "--all"),
        ("log", "--limit", "-1"),
        ("trust", "nowhere"),
    ],
)
def test_what_makes_no_sense_is_reported_with_a_hint(policy: Policy, words: tuple[str, ...]) -> None:
    status, data, printed = policy(*words)
    assert (status, data) == (2, "")
    assert printed.startswith("error: ") and "\nhint: " in printed


def test_every_command_has_help(policy: Policy) -> None:
    for command in ("explain", "list", "revoke", "log", "trust", "distrust"):
        assert command in policy("--help")[1]
        status, data, printed = policy(command, "--help")
        assert (status, printed) == (0, "") and f"antiphon policy {command}" in data


# list, revoke, log


def test_what_is_remembered_is_listed_and_revoked(policy: Policy) -> None:
    assert policy("list") == (0, "", "nothing is remembered\n")
    remember("Bash(git status)", scope="project", project="/w", agent="demo")
    remember("Edit(/w/a)", "deny", "session", session_id="s", agent="demo")
    remember("Read", expires_at="2100-01-01T00:00:00Z")
    lines = policy("list")[1].splitlines()
    assert lines[0].split() == ["ID", "VERDICT", "RULE", "HOLDS", "IN", "MADE", "UNTIL"]
    assert "allow" in lines[1] and "Bash(git status)" in lines[1] and "/w" in lines[1]
    assert "session s of demo" in lines[2] and "2100-01-01T00:00:00Z" in lines[3]
    assert policy("revoke", "2") == (0, "", "forgot 1 answer\n")
    assert policy("revoke", "Bash(git status)") == (0, "", "forgot 1 answer\n")
    status, _, printed = policy("revoke", "2")
    assert status == 2 and "`2`" in printed and "hint: " in printed
    assert [msgspec.json.decode(line)["rule"] for line in policy("list", "--json")[1].splitlines()] == ["Read"]
    assert policy("revoke", "--all") == (0, "", "forgot 1 answer\n")
    assert policy("revoke", "--all") == (0, "", "forgot 0 answers\n")


def test_the_log_shows_the_latest_last_and_no_control_codes(policy: Policy) -> None:
    assert policy("log") == (0, "", "nothing was decided yet\n")
    decide("rm one", "rm two", "rm \x1b[31mthree\nfour")
    lines = policy("log", "--limit", "2")[1].splitlines()
    assert len(lines) == 3 and "rm two" in lines[1] and "three four" in lines[2] and "\x1b" not in lines[2]
    assert "deny" in lines[1] and "test: Bash(rm *)" in lines[1]
    entries = [msgspec.json.decode(line) for line in policy("log", "--json")[1].splitlines()]
    assert [entry["subject"] for entry in entries][:2] == ["rm one", "rm two"]
    assert policy("log", "--session", "another")[1] == ""


# trust


def test_a_project_may_loosen_only_while_it_is_trusted_as_it_is(policy: Policy, home: Path) -> None:
    write_config(home / ".antiphon", '[policy]\nallow = ["Bash(make *)"]\ndeny = ["Bash(rm *)"]\n')

    def verdicts() -> list[str]:
        return [policy("explain", "Bash", line)[1].split("\n")[0] for line in ("make", "rm x")]

    assert verdicts() == ["ask", "deny"]
    assert "policy trust" in policy("explain", "Bash", "make")[2]
    status, data, printed = policy("trust")
    assert (status, data) == (0, "") and "config.toml" in printed
    assert verdicts() == ["allow", "deny"]
    assert str(home) in policy("trust", "--list")[1]
    write_config(home / ".antiphon", '[policy]\nallow = ["Bash"]\n')
    assert verdicts() == ["ask", "ask"]
    (home / "sub").mkdir()
    assert policy("trust", "sub")[0] == 0
    assert verdicts() == ["allow", "allow"]
    assert policy("distrust")[0] == 0
    assert verdicts() == ["ask", "ask"]
    assert policy("distrust")[0] == 2


def test_there_has_to_be_something_to_trust_and_it_has_to_make_sense(policy: Policy, home: Path) -> None:
    status, _, printed = policy("trust")
    assert status == 1 and "nothing to trust" in printed and "hint: " in printed
    write_config(home / ".antiphon", "[policy")
    status, _, printed = policy("trust")
    assert status == 1 and "config.toml" in printed
    assert policy("trust", "--list") == (0, "", "no project is trusted\n")


def test_trust_can_be_taken_back_when_the_file_is_gone(policy: Policy, home: Path) -> None:
    write_config(home / ".antiphon", "[policy]\n")
    assert policy("trust")[0] == 0
    (home / ".antiphon" / "config.toml").unlink()
    assert policy("distrust")[0] == 0


def test_it_works_as_a_program_and_in_a_pipe(home: Path) -> None:
    words = [sys.executable, "-m", "antiphon", "policy", "explain", "--allow", "Bash(git *)", "Bash", "git status"]
    done = subprocess.run(words, capture_output=True, encoding="utf-8", timeout=limit(), check=True)
    assert done.stdout.splitlines()[0] == "allow" and done.stderr == ""


def test_the_page_has_every_command_and_its_example_is_true(policy: Policy) -> None:
    page = (Path(__file__).parents[2] / "docs" / "policy.md").read_text(encoding="utf-8")
    for command in ("explain", "list", "revoke", "log", "trust", "distrust"):
        assert f"| `antiphon policy {command} " in page
    shown = page.partition("```console\n$ antiphon policy ")[2].partition("```")[0]
    command, _, output = shown.partition("\n")
    assert policy(*shlex.split(command))[1] == output


rule_names = st.sampled_from(["Bash", "Edit", "Read", "WebFetch", "mcp__a__b", "Deploy", "bash", "kind:edit", ""])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example("Bash", "rm -rf /")
@given(rule_names, st.text(st.characters(exclude_categories=["C", "Z"]), max_size=12))
def test_explain_takes_no_rule_for_the_name_of_a_tool(policy: Policy, name: str, pattern: str) -> None:
    status, data, printed = policy("explain", f"{name}({pattern})")
    assert (status, data) == (2, "") and "is a rule, and what is explained is a call" in printed
    assert "hint: give the tool and its input apart, as in `antiphon policy explain " in printed


def test_explain_shows_how_a_rule_is_asked_about(policy: Policy) -> None:
    _, _, printed = policy("explain", "Bash(rm -rf /)")
    assert "`antiphon policy explain Bash 'rm -rf /'`" in printed
    assert policy("explain", "Bash rm -rf /")[0] == 2


@pytest.mark.parametrize(
    ("name", "meant"), [("Bahs", "Bash"), ("bsh", "Bash"), ("Edti", "Edit"), ("Wirte", "Write"), ("kindedit", "kind:edit"), ("webftech", "WebFetch")]
)  # fmt: skip
def test_explain_suggests_near_names(policy: Policy, name: str, meant: str) -> None:
    status, data, printed = policy("explain", name, "x")
    assert (
        (status, data) == (2, "") and f"there is no tool `{name}`" in printed and f"did you mean `{meant}`?" in printed
    )


def test_explain_notes_when_a_name_is_taken_for_a_tool_of_the_agents_own(policy: Policy) -> None:
    status, data, printed = policy("explain", "Deploy", "{}")
    assert status == 0 and data.startswith("ask") and "a tool of the agent's own" in printed
    assert policy("explain", "Edits", '{"path": "x"}')[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["demo", pytest.param("antiphon", marks=pytest.mark.prove)])
def test_the_log_has_who_decided(tmp_path: Path, agent: str) -> None:
    """Every way in which a decision about one edit comes about, with an agent alone and behind the joint agent. `user` is a person."""
    place = Place(tmp_path)
    place.configure('[duet]\nengines = ["demo"]\n')
    ways = {
        ("--on-ask", "allow"): "on-ask", ("--on-ask", "deny"): "on-ask", ("--on-ask", "fail"): "on-ask", (): "on-ask",
        ("--permission-mode", "acceptEdits"): "mode", ("--permission-mode", "plan"): "mode", ("--allow", "Edit"): "command line: Edit",
        ("--deny", "Edit"): "command line: Edit",
    }  # fmt: skip
    before = 0
    for words, source in ways.items():
        place.run("/edit notes.txt hello", "--agent", agent, *words)
        log = [msgspec.json.decode(row) for row in place.policy("log", "--limit", "1000", "--json").splitlines()]
        edits, before = [row for row in log[before:] if row["tool"] == "Edit"], len(log)
        text = {f"{row['source']}: {row['rule']}" if row["rule"] else row["source"] for row in edits}
        shown = {source, f"client: {source.partition(':')[0]}", *(["cancelled"] if "fail" in words else [])}
        assert text <= shown and source in text, (words, text)
