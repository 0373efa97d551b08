"""Permission in a joint session: the policy first, for every engine alike; what it leaves open is asked, and remembered for all."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent.permission import QUESTION, why_refused
from antiphon.duet.guard import Guard
from antiphon.errors import RequestError
from antiphon.protocol import v1
from antiphon.store.audit import AuditStore
from antiphon.store.database import Database
from antiphon.store.schema import open_database
from antiphon.store.trust import TrustStore

Kind = v1.PermissionOptionKind
CLAUDE, CODEX = "Claude Code", "Codex"
IDS = ("antiphon_always_session", "antiphon_always_project")

OPTIONS = [
    v1.PermissionOption("allow", "Allow once", Kind.ALLOW_ONCE),
    v1.PermissionOption("allow_session", "Always allow edits", Kind.ALLOW_ALWAYS),
    v1.PermissionOption("reject", "Reject", Kind.REJECT_ONCE),
    v1.PermissionOption("never", "Always reject", Kind.REJECT_ALWAYS),
    v1.PermissionOption("reject_with_message", "Reject and say why", Kind.REJECT_ONCE),
]


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("ANTIPHON_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("config", "work", "home"):
        (tmp_path / name).mkdir()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


@pytest.fixture
async def database() -> AsyncIterator[Database]:
    async with open_database() as opened:
        yield opened


def configure(tmp_path: Path, text: str) -> None:
    (tmp_path / "config" / "config.toml").write_text(text, encoding="utf-8")


def bash(command: str, session_id: str = "joint", **more: Any) -> v1.RequestPermission:
    call = v1.ToolCallPatch(
        "call-1", title=command, kind=v1.ToolKind.EXECUTE, name="Bash", raw_input={"command": command}, **more
    )
    return v1.RequestPermission(session_id, call, OPTIONS)


def edit(path: Path, **more: Any) -> v1.RequestPermission:
    call = v1.ToolCallPatch(
        "call-2", title="Edit", kind=v1.ToolKind.EDIT, name="Edit", raw_input={"file_path": str(path)},
        content=[v1.Diff(str(path), "la\n")],
    )  # fmt: skip
    return v1.RequestPermission("joint", call, OPTIONS, **more)


def read(path: Path) -> v1.RequestPermission:
    call = v1.ToolCallPatch(
        "call-3", title="Read", kind=v1.ToolKind.READ, name="Read", raw_input={"file_path": str(path)}
    )
    return v1.RequestPermission("joint", call, OPTIONS)


class Editor:
    """Somebody in front of an editor, who answers with these ids in turn."""

    def __init__(self, *answers: str) -> None:
        self.asked: list[v1.RequestPermission] = []
        self._answers = deque(answers)

    async def __call__(self, request: v1.RequestPermission) -> v1.PermissionResult:
        self.asked.append(request)
        answer = self._answers.popleft()
        return v1.PermissionResult(v1.Cancelled() if answer == "cancelled" else v1.Selected(answer))


def chosen(result: v1.PermissionResult) -> str:
    assert isinstance(result.outcome, v1.Selected)
    return result.outcome.option_id


def texts(request: v1.RequestPermission) -> str:
    items = [item.content for item in request.tool_call.content or () if isinstance(item, v1.ContentItem)]
    return "\n".join(item.text for item in items if isinstance(item, v1.TextBlock))


def ids(request: v1.RequestPermission) -> list[str]:
    return [option.option_id for option in request.options]


async def opened(work: Path, database: Database, mode: str = "default") -> Guard:
    guard = await Guard.open(str(work), [], database)
    guard.mode = mode
    return guard


# The policy first.


async def test_what_a_rule_decides_is_told_to_the_engine_with_its_own_once_and_nobody_is_asked(
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


async def test_a_line_that_no_rule_can_say_is_offered_no_always(work: Path, database: Database) -> None:
    guard, editor = await opened(work, database), Editor("reject_with_message")
    answer = await guard.permission(CLAUDE, bash("make $WHAT > log"), editor)
    assert chosen(answer) == "reject_with_message" and why_refused(answer) is None  # it was the user
    assert ids(editor.asked[0]) == ["allow", "reject", "reject_with_message"]


async def test_an_ask_rule_asks_each_time_and_says_that_it_does(tmp_path: Path, work: Path, database: Database) -> None:
    configure(tmp_path, '[policy]\nask = ["Bash(git push *)"]\n')
    guard, editor = await opened(work, database, "bypassPermissions"), Editor("allow")
    await guard.permission(CLAUDE, bash("git push origin"), editor)
    assert ids(editor.asked[0]) == ["allow", "reject", "reject_with_message"]
    assert "The rule `Bash(git push *)` asks about it." in texts(editor.asked[0])


async def test_a_sub_agent_is_named_once(work: Path, database: Database) -> None:
    guard, editor = await opened(work, database), Editor("reject", "reject")
    meta = {"claudeCode": {"agentId": "tenor-1"}}
    said = [v1.ContentItem(v1.TextBlock("A sub-agent asks (`tenor-1`)."))]
    await guard.permission(CLAUDE, bash("make all", meta=meta), editor)
    await guard.permission(CLAUDE, bash("make all", meta=meta, content=said), editor)
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
    assert "not trusted" in guard.notes[0]
    assert chosen(await guard.permission(CLAUDE, bash("rm x"), editor)) == "reject" and editor.asked == []
    await guard.permission(CLAUDE, bash("make all"), editor)
    assert len(editor.asked) == 1
    from antiphon.config.settings import find

    sources = find(work)
    assert sources.project is not None
    await TrustStore(database).trust(str(sources.directory), sources.project.digest)
    trusted = await opened(work, database)
    assert chosen(await trusted.permission(CODEX, bash("make all"), editor)) == "allow" and not trusted.notes


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
    guard.mode = mode  # also for those that have asked before
    for request, expected in ((edit(work / "song"), edits), (bash("make all"), runs)):
        editor = Editor("allow")
        answer = chosen(await guard.permission(CLAUDE, request, editor))
        assert ("asked" if editor.asked else answer) == expected
    assert guard.mode == mode


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
    assert guard.problems and "Bush" in guard.problems[0]
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


async def test_a_mark_of_somebody_who_is_not_trusted_means_nothing(work: Path, database: Database) -> None:
    guard = await opened(work, database, "dontAsk")
    question = edit(work / "song", meta=QUESTION)
    assert chosen(await guard.permission("Gemini", question, Editor(), trusted_marks=False)) == "reject"


# Only looking.


async def test_who_only_looks_may_read_and_nobody_is_asked_about_the_rest(
    tmp_path: Path, work: Path, database: Database
) -> None:
    configure(tmp_path, '[policy]\nallow = ["Bash(make *)", "Edit"]\ndeny = ["Read(secret/**)"]\n')
    guard = await opened(work, database, "bypassPermissions")

    async def look(request: v1.RequestPermission) -> str:
        return chosen(await guard.permission(CODEX, request, Editor(), looking=True))

    assert await look(read(work / "song")) == "allow"
    assert await look(read(work / "secret" / "song")) == "reject"
    assert await look(edit(work / "song")) == "reject" and await look(bash("make all")) == "reject"
    with pytest.raises(RequestError, match="permission denied"):
        await guard.admit(v1.WriteTextFile("joint", str(work / "song"), "la"), Editor(), looking=True)
    await guard.admit(v1.ReadTextFile("joint", str(work / "song")), Editor(), looking=True)


async def test_who_only_looks_stays_in_plan_mode_and_may_still_ask_the_user_something(
    work: Path, database: Database
) -> None:
    guard, editor = await opened(work, database, "plan"), Editor("allow")
    plan = v1.ToolCallPatch("plan", title="Ready?", kind=v1.ToolKind.SWITCH_MODE, name="ExitPlanMode")
    leave = v1.RequestPermission("joint", plan, OPTIONS, meta=QUESTION)
    assert chosen(await guard.permission(CLAUDE, leave, editor, looking=True)) == "reject" and editor.asked == []
    other = v1.RequestPermission("joint", v1.ToolCallPatch("q", title="Which key?"), OPTIONS, meta=QUESTION)
    assert chosen(await guard.permission(CLAUDE, other, editor, looking=True)) == "allow"


# Being called off.


async def test_a_question_that_the_client_calls_off_is_called_off_for_the_engine(
    work: Path, database: Database
) -> None:
    guard, editor = await opened(work, database), Editor("cancelled", "cancelled")
    result = await guard.permission(CLAUDE, bash("make"), editor)
    assert isinstance(result.outcome, v1.Cancelled)
    with pytest.raises(RequestError, match="called off"):
        await guard.admit(v1.WriteTextFile("joint", str(work / "song"), "la"), editor)
    assert [entry.answer for entry in await AuditStore(database).latest(10)] == ["cancelled"]


async def test_engines_ask_at_the_same_time_and_who_is_cancelled_withdraws_the_question(
    work: Path, database: Database
) -> None:
    guard = await opened(work, database)
    open_now: dict[str, asyncio.Future[v1.PermissionResult]] = {}
    both, withdrawn = asyncio.Event(), list[str]()

    def asking(who: str) -> Callable[[v1.RequestPermission], Any]:
        async def ask(_: v1.RequestPermission) -> v1.PermissionResult:
            open_now[who] = asyncio.get_running_loop().create_future()
            if len(open_now) == 2:
                both.set()
            try:
                return await open_now[who]
            except asyncio.CancelledError:
                withdrawn.append(who)
                raise

        return ask

    tasks = {
        who: asyncio.create_task(guard.permission(who, bash(f"make {number}"), asking(who)))
        for number, who in enumerate((CLAUDE, CODEX))
    }
    await both.wait()
    tasks[CLAUDE].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[CLAUDE]
    assert withdrawn == [CLAUDE]
    open_now[CODEX].set_result(v1.PermissionResult(v1.Selected("allow")))
    assert chosen(await tasks[CODEX]) == "allow"


async def test_a_question_that_cannot_be_asked_is_a_rejection(work: Path, database: Database) -> None:
    guard = await opened(work, database)

    async def broken(_: v1.RequestPermission) -> v1.PermissionResult:
        raise RequestError(-32603, "no screen")

    assert chosen(await guard.permission(CLAUDE, bash("make"), broken)) == "reject"


async def test_an_engine_that_offers_always_alone_is_told_it_only_if_the_user_picks_it(
    work: Path, database: Database
) -> None:
    guard, editor = await opened(work, database), Editor("allow_session")
    call = bash("make all").tool_call
    request = v1.RequestPermission("joint", call, [OPTIONS[1], OPTIONS[2]])
    assert chosen(await guard.permission("Gemini", request, editor)) == "allow_session"
    assert ids(editor.asked[0]) == ["allow_session", "reject"]


# What passes through us.


async def test_what_an_engine_does_through_us_is_decided_asked_and_remembered_like_the_rest(
    tmp_path: Path, work: Path, database: Database
) -> None:
    configure(tmp_path, '[policy]\ndeny = ["Edit(secret/**)"]\n')
    guard, editor = await opened(work, database), Editor("antiphon_always_session", "reject")
    song = work / "song"
    song.write_text("do\n", encoding="utf-8")
    write = v1.WriteTextFile("joint", str(song), "la\n")
    await guard.admit(write, editor, "Gemini")
    [asked] = editor.asked
    assert asked.session_id == "joint" and v1.Diff(str(song), "la\n", "do\n") in (asked.tool_call.content or [])
    assert ids(asked) == ["allow", *IDS, "reject"] and texts(asked) == "Gemini asks."
    await guard.admit(write, editor, "Gemini")  # as it was said
    with pytest.raises(RequestError, match="denies it"):
        await guard.admit(v1.WriteTextFile("joint", str(work / "secret" / "x"), "la"), editor)
    with pytest.raises(RequestError, match="permission denied"):
        await guard.admit(v1.CreateTerminal("joint", "make", args=["all"], cwd=str(work)), editor)
    assert editor.asked[1].tool_call.raw_input == {"command": "make all", "cwd": str(work)}
    await guard.admit(v1.ReadTextFile("joint", str(song)), editor)
    assert len(editor.asked) == 2


async def test_what_was_just_allowed_is_not_asked_again_in_that_turn(work: Path, database: Database) -> None:
    guard, editor = await opened(work, database), Editor("allow", "allow", "reject")
    run = v1.CreateTerminal("joint", "make all", cwd=str(work))
    for _ in range(2):
        await guard.permission("Gemini", bash("make all"), editor)
    await guard.admit(run, editor, "Gemini")
    assert len(editor.asked) == 2
    guard.turn_over()
    with pytest.raises(RequestError, match="permission denied"):
        await guard.admit(run, editor, "Gemini")
