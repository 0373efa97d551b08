"""What an "always" would allow: rules alone, named in full, or nothing."""

from typing import Any

import pytest

from antiphon.engines.claude.grants import grants
from tests.engines.claude.ask.user import may
from tests.rows import each_row

ROOTS = ("/w", "/also here")


def names(*suggestions: dict[str, Any], tool: str = "Bash", **fields: Any) -> list[str]:
    request = may(tool, permission_suggestions=list(suggestions), **fields)
    return [grant.option.name.removeprefix("Always allow ") for grant in grants(request, ROOTS)]


def rules(*contents: str | None, tool: str = "Bash", to: str = "localSettings", **changes: Any) -> dict[str, Any]:
    each = [{"toolName": tool, **({} if content is None else {"ruleContent": content})} for content in contents]
    return {"type": "addRules", "rules": each, "behavior": "allow", "destination": to, **changes}


def test_all_rules_are_named() -> None:
    suggested = rules("a *", "b"), rules(None, tool="mcp__s__t"), rules("domain:x.org", tool="WebFetch")
    every = "`a *`, `b`, `mcp__s__t` and `WebFetch(domain:x.org)`"
    assert names(*suggested) == [f"{every} in this session", f"{every} in this project"]


def test_what_the_cli_would_forget_with_the_session_is_not_kept_for_longer() -> None:
    assert names(rules("//etc/**", tool="Read", to="session")) == ["`Read(//etc/**)` in this session"]
    request = may(permission_suggestions=[rules("ls /etc"), rules("//etc/**", tool="Read", to="session")])
    session, project = grants(request, ROOTS)
    assert session.option.name == "Always allow `ls /etc` and `Read(//etc/**)` in this session"
    assert project.option.name == "Always allow `ls /etc` in this project, and `Read(//etc/**)` in this session"
    (passing,) = project.updates
    assert project.kept == ("Bash(ls /etc)",) and session.kept == ()
    assert (passing["destination"], passing["rules"]) == ("session", session.updates[0]["rules"])


@pytest.mark.parametrize(
    "fields",
    [
        {"decision_reason_type": "rule"},
        {"suppress_always_allow_rule": True},
        {"requires_user_interaction": True},
        {"matched_ask_rule": {"source": "userSettings", "tool_name": "Bash"}},
        {"_mended": True},
    ],
)
def test_nothing_is_allowed_for_longer_where_the_user_wants_to_be_asked_each_time(fields: dict[str, Any]) -> None:
    assert names(rules("a *"), **fields) == []
    assert names(rules("a *")) != []


@each_row(
    "suggestion",
    [
        rules("a *", behavior="deny"),
        rules("a *", type="replaceRules"),
        rules(),
        rules("a *", rules=None),
        rules("a *", rules=["Bash(a *)", {"toolName": ""}, {"toolName": 3}, {"ruleContent": "a"}]),
        rules("a *", rules=[{"toolName": "Bash", "ruleContent": 3}]),
        {"type": "setMode", "mode": "bypassPermissions", "destination": "session"},
        {},
    ],
)
def test_what_is_not_a_rule_that_allows_is_not_offered(suggestion: dict[str, Any]) -> None:
    assert names(suggestion) == []


@pytest.mark.parametrize("content", ["a\nrm b", "a\u202eb", "a\x1b[2K", "echo `id`"])
def test_a_rule_that_does_not_show_what_it_is_is_not_offered(content: str) -> None:
    assert names(rules("a *"), rules(content)) == []


ACCEPT_EDITS = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}


def edit(path: str, tool: str = "Edit", key: str = "file_path", **fields: Any) -> list[str]:
    return names(ACCEPT_EDITS, tool=tool, input={key: path}, **fields)


def test_edits_are_allowed_where_the_session_works_by_a_rule_and_not_by_the_mode() -> None:
    assert edit("/w/src/a.py") == ["edits in `/w` in this session"]
    assert edit("/w/a.py", "Write") == edit("/w/a.py", "MultiEdit") == ["edits in `/w` in this session"]
    assert edit("/w/a.ipynb", "NotebookEdit", "notebook_path") == ["edits in `/w` in this session"]
    assert edit("/also here/a") == ["edits in `/also here` in this session"]
    request = may("Edit", permission_suggestions=[ACCEPT_EDITS], input={"file_path": "/w/a"})
    (grant,) = grants(request, ROOTS)
    rule = {"toolName": "Edit", "ruleContent": "//w/**"}
    assert grant.updates == ({"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "session"},)


def test_elsewhere_only_the_one_file_is_allowed() -> None:
    assert edit("/etc/hosts", decision_reason_type="workingDir") == ["edits to `/etc/hosts` in this session"]
    assert edit("/w/../etc/hosts", decision_reason_type="workingDir") == ["edits to `/etc/hosts` in this session"]
    # It looks as if it were inside: a link that leads out.
    assert edit("/w/link/hosts", decision_reason_type="workingDir") == []


def test_no_rule_is_offered_that_would_not_hold_or_hold_for_more() -> None:
    assert edit("/w/.git/config", decision_reason_type="safetyCheck") == []
    assert edit("/w/a", decision_reason_type="mode") == []
    assert edit("/wide/a") == edit("a") == edit("/w") == []
    assert edit("/tmp/a*", decision_reason_type="workingDir") == []
    assert names(tool="Edit", input={"file_path": "/w/a"}) == []
    assert names(ACCEPT_EDITS, tool="Bash", input={"file_path": "/w/a"}) == []
    assert names(ACCEPT_EDITS, tool="Edit", input={"file_path": 3}) == []
    at = may("Edit", permission_suggestions=[ACCEPT_EDITS], input={"file_path": "/w [1]/a"})
    assert grants(at, ["/w [1]"]) == []
    root = may("Edit", permission_suggestions=[ACCEPT_EDITS], input={"file_path": "/a"})
    assert grants(root, ["/"]) == []


@pytest.mark.parametrize("blank", ["", " ", "\t", "\u00a0"])
def test_a_rule_with_nothing_in_it_is_never_offered(blank: str) -> None:
    assert names(rules(blank)) == names(rules("a *", blank)) == []
