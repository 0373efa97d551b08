"""Permission in a joint session: the policy first, for every engine alike; what it leaves open is asked, and remembered for all."""

from pathlib import Path

import pytest

from antiphon.agent.questions import QUESTION, why_refused
from antiphon.config.settings import find
from antiphon.protocol import v1
from antiphon.store.database import Database
from antiphon.store.decisions import AuditStore, DecisionStore, TrustStore
from tests.duet.permission_requests import (
    CLAUDE,
    CODEX,
    IDS,
    OPTIONS,
    Editor,
    bash,
    chosen,
    configure,
    edit,
    ids,
    opened,
    read,
    texts,
)

# The policy first.


async def test_what_a_rule_decides_reaches_the_engine_as_its_own_once_and_the_user_is_not_asked(
    tmp_path: Path, work: Path, database: Database
) -> None:
    configure(tmp_path, '[policy]\nallow = ["Bash(make *)"]\ndeny = ["Edit(secret/**)"]\n')
    guard, editor = await opened(work, database), Editor()
    for engine in (CLAUDE, CODEX):
        assert chosen(await guard.permission(engine, bash("make all"), editor)) == "allow"
        assert chosen(await guard.permission(engine, edit(work / "secret" / "x"), editor)) == "reject"
    denied = await guard.permission(CLAUDE, edit(work / "secret" / "x"), editor)
    assert why_refused(denied) == "The rule `Edit(secret/**)` denies it."
    assert editor.asked == [] and [rule.text for rule in guard.rules.deny] == ["Edit(secret/**)"]
    entries = await AuditStore(database).latest(10)
    assert {entry.agent for entry in entries} == {"antiphon"} and {entry.session_id for entry in entries} == {"joint"}
    assert [entry.verdict for entry in entries].count("deny") == 3


async def test_what_is_open_is_asked_with_our_own_always_in_place_of_the_engines(
    work: Path, database: Database
) -> None:
    guard, editor = await opened(work, database), Editor("allow")
    assert chosen(await guard.permission(CODEX, bash("make all"), editor)) == "allow"
    [asked] = editor.asked
    assert ids(asked) == ["allow", *IDS, "reject", "reject_with_message"]
    assert [option.name for option in asked.options[1:3]] == [
        "Always allow `Bash(make all)` in this session",
        "Always allow `Bash(make all)` in this project",
    ]
    assert texts(asked) == "Codex asks."


async def test_a_line_that_no_rule_expresses_is_offered_no_always(work: Path, database: Database) -> None:
    guard, editor = await opened(work, database), Editor("reject_with_message")
    answer = await guard.permission(CLAUDE, bash("make $WHAT > log"), editor)
    assert chosen(answer) == "reject_with_message" and why_refused(answer) is None  # it was the user
    assert ids(editor.asked[0]) == ["allow", "reject", "reject_with_message"]


async def test_an_ask_rule_asks_each_time_and_is_named(tmp_path: Path, work: Path, database: Database) -> None:
    configure(tmp_path, '[policy]\nask = ["Bash(git push *)"]\n')
    guard, editor = await opened(work, database, "bypassPermissions"), Editor("allow")
    await guard.permission(CLAUDE, bash("git push origin"), editor)
    assert ids(editor.asked[0]) == ["allow", "reject", "reject_with_message"]
    assert "The rule `Bash(git push *)` asks about it." in texts(editor.asked[0])


async def test_a_sub_agent_is_named_once(work: Path, database: Database) -> None:
    guard, editor = await opened(work, database), Editor("reject", "reject")
    meta = {"claudeCode": {"agentId": "tenor-1"}}
    messages = [v1.ContentItem(v1.TextBlock("A sub-agent asks (`tenor-1`)."))]
    await guard.permission(CLAUDE, bash("make all", meta=meta), editor)
    await guard.permission(CLAUDE, bash("make all", meta=meta, content=messages), editor)
    first, second = editor.asked
    assert texts(first) == "A sub-agent of Claude Code asks (`tenor-1`)."
    assert texts(second) == "A sub-agent asks (`tenor-1`).\nClaude Code asks."


# What is remembered.


async def test_an_always_for_one_engine_holds_for_the_other(work: Path, database: Database) -> None:
    guard, editor = await opened(work, database), Editor("antiphon_always_session", "reject")
    assert chosen(await guard.permission(CLAUDE, bash("make all"), editor)) == "allow"
    assert chosen(await guard.permission(CODEX, bash("make all"), editor)) == "allow"
    assert len(editor.asked) == 1
    again = await opened(work, database)
    assert chosen(await again.permission(CODEX, bash("make all"), editor)) == "allow"
    assert chosen(await again.permission(CODEX, bash("make all", "another"), editor)) == "reject"


async def test_an_always_for_the_project_holds_in_every_session_of_it(work: Path, database: Database) -> None:
    guard, editor = await opened(work, database), Editor("antiphon_always_project", "reject")
    await guard.permission(CLAUDE, bash("make all"), editor)
    again = await opened(work, database)
    assert chosen(await again.permission(CODEX, bash("make all", "another"), editor)) == "allow"
    elsewhere = work / "below"
    elsewhere.mkdir()
    other = await opened(elsewhere, database)
    assert chosen(await other.permission(CODEX, bash("make all"), editor)) == "reject"
    assert len(editor.asked) == 2


async def test_a_projects_rules_deny_at_once_and_allow_only_when_it_is_trusted(work: Path, database: Database) -> None:
    file = work / ".antiphon" / "config.toml"
    file.parent.mkdir()
    file.write_text('[policy]\nallow = ["Bash(make *)"]\ndeny = ["Bash(rm *)"]\n', encoding="utf-8")
    guard, editor = await opened(work, database), Editor("reject")
    assert "not trusted" in guard.notes[0].sentence
    assert chosen(await guard.permission(CLAUDE, bash("rm x"), editor)) == "reject" and editor.asked == []
    await guard.permission(CLAUDE, bash("make all"), editor)
    assert len(editor.asked) == 1
    sources = find(work)
    assert sources.project is not None
    await TrustStore(database).trust(str(sources.directory), sources.project.digest)
    trusted = await opened(work, database)
    assert chosen(await trusted.permission(CODEX, bash("make all"), editor)) == "allow" and not trusted.notes


async def test_an_always_of_a_session_is_forgotten_with_it_and_one_of_the_project_is_not(
    work: Path, database: Database
) -> None:
    guard, editor = await opened(work, database), Editor("antiphon_always_session", "antiphon_always_project", "reject")
    await guard.permission(CLAUDE, bash("make one"), editor)
    await guard.permission(CLAUDE, bash("make two"), editor)
    await guard.forget_session("another")
    assert chosen(await guard.permission(CODEX, bash("make one"), editor)) == "allow" and len(editor.asked) == 2
    await guard.forget_session("joint")
    assert chosen(await guard.permission(CODEX, bash("make two"), editor)) == "allow"
    assert chosen(await guard.permission(CODEX, bash("make one"), editor)) == "reject" and len(editor.asked) == 3


@pytest.mark.parametrize("id", IDS)
async def test_what_an_engine_offers_under_an_id_of_ours_is_not_taken_for_ours(
    work: Path, database: Database, id: str
) -> None:
    guard = await opened(work, database)
    forged = v1.PermissionOption(id, "Allow once", v1.PermissionOptionKind.ALLOW_ONCE)
    request = v1.RequestPermission("joint", bash("make $WHAT").tool_call, [forged, *OPTIONS])
    editor = Editor("allow")
    assert chosen(await guard.permission("Gemini", request, editor, trusted_marks=False)) == "allow"
    assert id not in ids(editor.asked[0])  # there is no rule for this line, so there is no always either
    plain = v1.RequestPermission("joint", bash("make all").tool_call, [forged, *OPTIONS])
    editor = Editor("allow")
    await guard.permission("Gemini", plain, editor, trusted_marks=False)
    [shown] = [option for option in editor.asked[0].options if option.option_id == id]
    assert shown.kind == v1.PermissionOptionKind.ALLOW_ALWAYS and "`Bash(make all)`" in shown.name
    only = v1.RequestPermission("joint", bash("make all").tool_call, [forged, OPTIONS[2]])
    editor = Editor(id)
    assert chosen(await guard.permission("Gemini", only, editor, trusted_marks=False)) == "reject"
    assert await DecisionStore(database).all() == []


async def test_a_permission_request_is_judged_with_how_the_call_was_announced(
    tmp_path: Path, work: Path, database: Database
) -> None:
    configure(tmp_path, '[policy]\nallow = ["Bash(make *)"]\ndeny = ["Edit(secret/**)"]\n')
    guard = await opened(work, database, "acceptEdits")
    bare = v1.RequestPermission("joint", v1.ToolCallPatch("call-1"), OPTIONS)
    path = str(work / "secret" / "x")
    shown = v1.ToolCall("call-1", "Edit", v1.ToolKind.EDIT, raw_input={"file_path": path})
    older = v1.ToolCallPatch("call-1", tool_kind=v1.ToolKind.EXECUTE, input={"command": "make all"})
    assert chosen(await guard.permission("Gemini", bare, Editor(), known=shown)) == "reject"
    assert chosen(await guard.permission("Gemini", bare, Editor(), known=older)) == "allow"
    editor = Editor("reject")
    assert chosen(await guard.permission("Gemini", bare, editor)) == "reject" and len(editor.asked) == 1
    # What the question says itself is newer.
    newer = v1.ToolCallPatch("call-1", raw_input={"command": "touch song"})
    editor = Editor("reject")
    await guard.permission("Gemini", v1.RequestPermission("joint", newer, OPTIONS), editor, known=older)
    [asked] = editor.asked
    assert asked.tool_call.raw_input == {"command": "touch song"} and asked.tool_call.tool_kind == v1.ToolKind.EXECUTE


# Modes.


@pytest.mark.parametrize(
    ("mode", "edits", "runs"),
    [
        ("default", "asked", "asked"),
        ("auto", "asked", "asked"),
        ("acceptEdits", "allow", "asked"),
        ("plan", "reject", "reject"),
        ("dontAsk", "reject", "reject"),
        ("bypassPermissions", "allow", "allow"),
    ],
)
async def test_the_mode_decides_what_no_rule_does(
    work: Path, database: Database, mode: str, edits: str, runs: str
) -> None:
    guard = await opened(work, database)
    await guard.permission(CLAUDE, bash("make"), Editor("allow"))
    guard.use_mode(lambda: mode)  # also for engines that have asked before
    for request, expected in ((edit(work / "song"), edits), (bash("make all"), runs)):
        editor = Editor("allow")
        answer = chosen(await guard.permission(CLAUDE, request, editor))
        assert ("asked" if editor.asked else answer) == expected


async def test_a_deny_holds_in_every_mode(tmp_path: Path, work: Path, database: Database) -> None:
    configure(tmp_path, '[policy]\ndeny = ["Edit(secret/**)", "Bash(rm *)"]\n')
    for mode in ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"):
        guard = await opened(work, database, mode)
        assert chosen(await guard.permission(CODEX, edit(work / "secret" / "x"), Editor())) == "reject"
        assert chosen(await guard.permission(CODEX, bash("true && /bin/rm x"), Editor())) == "reject"


async def test_a_broken_policy_asks_about_everything_and_remembers_nothing(
    tmp_path: Path, work: Path, database: Database
) -> None:
    configure(tmp_path, '[policy]\nallow = ["Bash(make *)", "Bush(x)("]\n')
    guard, editor = await opened(work, database, "bypassPermissions"), Editor("allow", "reject")
    assert guard.problems and "Bush" in guard.problems[0].sentence
    await guard.permission(CLAUDE, bash("make all"), editor)
    await guard.permission(CODEX, read(work / "song"), editor)
    assert len(editor.asked) == 2 and not set(IDS) & set(ids(editor.asked[0]))
    assert "could not be read" in texts(editor.asked[0])


# Questions that are none for permission.


async def test_a_marked_question_reaches_the_user_as_it_is_in_every_mode(work: Path, database: Database) -> None:
    for mode in ("plan", "dontAsk", "bypassPermissions"):
        guard, editor = await opened(work, database, mode), Editor("allow_session")
        question = edit(work / "song", meta=QUESTION)
        assert chosen(await guard.permission(CLAUDE, question, editor)) == "allow_session"
        assert editor.asked == [question]


async def test_a_mark_of_an_agent_that_is_not_trusted_means_nothing(work: Path, database: Database) -> None:
    guard = await opened(work, database, "dontAsk")
    question = edit(work / "song", meta=QUESTION)
    assert chosen(await guard.permission("Gemini", question, Editor(), trusted_marks=False)) == "reject"
