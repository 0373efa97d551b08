"""Rules of the policy as Claude Code has them, and what it is sent before a tool runs."""

import json
from pathlib import Path
from typing import Any

from antiphon.agent.session import AgentSession
from antiphon.engines.claude.rules import before_tool, settings_for
from antiphon.policy import Rules
from tests.rows import each_row


def session(cwd: str, *, deny: list[str] | None = None, ask: list[str] | None = None, also: str | None = None) -> Any:
    made = AgentSession("s", cwd, None, [also] if also else [])  # type: ignore[arg-type]  # no user is asked here
    made.host.rules = Rules.parse(deny=deny or [], ask=ask or [])
    return made


def written(rule: str, cwd: str = "/nowhere/w", also: str | None = None) -> list[str]:
    shown = settings_for(session(cwd, deny=[rule], also=also))
    found: list[str] = [] if shown is None else json.loads(shown)["permissions"]["deny"]
    return found


@each_row(
    ("ours", "theirs"),
    [
        ("Bash", ["Bash"]),
        ("Bash(rm *)", ["Bash(rm)", "Bash(rm:*)"]),
        ("Bash(git push:*)", ["Bash(git push)", "Bash(git push:*)"]),
        ("Bash(npm test)", ["Bash(npm test)"]),
        ("Edit(secret/**)", ["Edit(//nowhere/w/secret/**)"]),
        ("Edit(.env)", ["Edit(//nowhere/w/.env)", "Edit(//nowhere/w/.env/**)"]),
        ("Edit(build/)", ["Edit(//nowhere/w/build/**)"]),
        ("Read(~/.ssh/**)", ["Read(~/.ssh/**)"]),
        ("Read(/etc/passwd)", ["Read(//etc/passwd)", "Read(//etc/passwd/**)"]),
        ("Edit", ["Edit", "MultiEdit", "NotebookEdit", "Write"]),
        ("kind:edit", ["Edit", "MultiEdit", "NotebookEdit", "Write"]),
        ("kind:execute", ["Bash"]),
        ("WebFetch(domain:example.org)", ["WebFetch(domain:example.org)"]),
        ("mcp__songs__sing", ["mcp__songs__sing"]),
        ("mcp__songs", ["mcp__songs"]),
        ("Deploy", ["Deploy"]),
    ],
)
def test_a_rule_is_given_as_the_same_or_a_stricter_one(ours: str, theirs: list[str]) -> None:
    assert written(ours) == theirs


@each_row(
    "rule",
    [
        "Bash(npm run test*)", "Bash(* --force)", "Bash('a b' c)", "Edit(a[b]/**)", "Edit(a\\*b)", "Write(a)", "Delete(a)", "Delete",
        "kind:delete", "WebFetch(domain:*.example.org)",
    ],
)  # fmt: skip
def test_a_rule_that_would_mean_less_is_left_to_the_hook(rule: str) -> None:
    assert written(rule) == []


def test_relative_paths_are_those_of_every_folder_of_the_session(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    found = [rule for rule in written("Edit(a)", str(link), "/nowhere/also") if not rule.endswith("/**)")]
    assert found == [f"Edit(/{link}/a)", "Edit(//nowhere/also/a)", f"Edit(/{real}/a)"]


def test_without_rules_there_are_no_settings() -> None:
    without = session("/w")
    assert settings_for(without) is None
    without.host.rules = None
    assert settings_for(without) is None and before_tool(without, {"input": {"tool_name": "Bash"}}) == {}


def decision_of(here: Any, name: Any, **given: Any) -> tuple[str, str] | None:
    body = before_tool(here, {"input": {"hook_event_name": "PreToolUse", "tool_name": name, "tool_input": given}})
    if not body:
        return None
    decided = body["hookSpecificOutput"]
    return decided["permissionDecision"], decided["permissionDecisionReason"]


def test_the_hook_reads_calls_as_the_policy_does(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    here = session(
        str(tmp_path),
        deny=["Edit(secret/**)", "Bash(rm *)", "WebFetch(domain:*.example.org)"],
        ask=["Bash(git push *)"],
    )
    denied = ("deny", "The rule `Edit(secret/**)` denies it. It did not run, and nothing was changed.")
    assert decision_of(here, "Write", file_path=str(tmp_path / "secret" / "x"), content="la") == denied
    assert decision_of(here, "Edit", file_path=str(tmp_path / "link" / "x"), old_string="a", new_string="b") == denied
    assert decision_of(here, "NotebookEdit", notebook_path=str(tmp_path / "secret" / "x"), new_source="a") == denied
    assert decision_of(here, "Write", file_path=str(tmp_path / "free"), content="la") is None
    assert decision_of(here, "Read", file_path=str(tmp_path / "secret" / "x")) is None
    for line in ("rm x", "sudo rm x", "true; /bin/rm x", "sh -c 'rm x'"):
        assert (decision_of(here, "Bash", command=line) or ("",))[0] == "deny"
    assert decision_of(here, "Bash", command="git push") == ("ask", "The rule `Bash(git push *)` asks about it.")
    assert decision_of(here, "Bash", command="ls") is None
    assert (decision_of(here, "WebFetch", url="https://a.example.org/x", prompt="?") or ("",))[0] == "deny"


def test_what_cannot_be_judged_is_asked() -> None:
    here = session("/nowhere/w", deny=["Edit(secret/**)"])
    assert (decision_of(here, None) or ("",))[0] == "ask"
    assert (decision_of(here, "Write", content="la") or ("",))[0] == "ask"


def test_while_it_is_only_to_look_the_hook_lets_nothing_pass_but_reading(tmp_path: Path) -> None:
    here = session(str(tmp_path), deny=["Read(secret/**)"])
    here.host.rules = here.host.rules.merged(Rules.parse(allow=["Bash", "Edit"]))
    here.host.read_only = True
    changing = {
        "Bash": {"command": "touch x"},
        "Write": {"file_path": str(tmp_path / "x"), "content": "la"},
        "NotebookEdit": {"notebook_path": str(tmp_path / "x"), "new_source": "la"},
        "mcp__songs__sing": {},
        "ExitPlanMode": {"plan": "Sing."},
        "Skill": {"skill": "sing"},
        "Monitor": {"command": "touch x"},
    }
    for name, given in changing.items():
        assert (decision_of(here, name, **given) or ("",))[0] == "deny", name
    assert (decision_of(here, "Read", file_path=str(tmp_path / "secret" / "x")) or ("",))[0] == "deny"
    assert (decision_of(here, None) or ("",))[0] == "deny"
    looking: dict[str, Any] = {"Agent": {"prompt": "Listen."}, "AskUserQuestion": {"questions": []}}
    looking |= {"Read": {"file_path": str(tmp_path / "x")}, "Grep": {"pattern": "la"}, "Glob": {"pattern": "*"}}
    # A sub-agent is asked about each of its own calls; a question is the user's.
    for name, given in looking.items():
        assert decision_of(here, name, **given) is None, name
    here.host.read_only = False
    assert decision_of(here, "Bash", command="touch x") is None


def test_a_read_only_session_is_held_to_it_also_without_rules(tmp_path: Path) -> None:
    here = session(str(tmp_path))
    here.host.read_only = True
    why = "A reviewer may only read and search, and this is `execute`. It did not run, and nothing was changed."
    assert decision_of(here, "Bash", command="touch x") == ("deny", why)
