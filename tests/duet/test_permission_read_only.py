"""Those who only look: what the guard lets them do, whatever is allowed otherwise."""

from pathlib import Path

import pytest

from antiphon.agent.questions import QUESTION, why_refused
from antiphon.errors import RequestError
from antiphon.protocol import v1
from antiphon.store.database import Database
from tests.duet.permission_requests import CLAUDE, CODEX, OPTIONS, Editor, bash, chosen, configure, edit, opened, read


async def test_an_engine_that_only_reads_may_read_and_the_user_is_not_asked_about_the_rest(
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


async def test_an_engine_that_only_reads_stays_in_plan_mode_and_may_still_ask_the_user_something(
    work: Path, database: Database
) -> None:
    guard, editor = await opened(work, database, "plan"), Editor("allow")
    plan = v1.ToolCallPatch("plan", title="Ready?", kind=v1.ToolKind.SWITCH_MODE, name="ExitPlanMode")
    leave = v1.RequestPermission("joint", plan, OPTIONS, meta=QUESTION)
    assert chosen(await guard.permission(CLAUDE, leave, editor, looking=True)) == "reject" and editor.asked == []
    other = v1.RequestPermission("joint", v1.ToolCallPatch("q", title="Which key?"), OPTIONS, meta=QUESTION)
    assert chosen(await guard.permission(CLAUDE, other, editor, looking=True)) == "allow"


@pytest.mark.parametrize(
    "call",
    [
        v1.ToolCallPatch("p", title="Ready?", kind=v1.ToolKind.SWITCH_MODE),
        v1.ToolCallPatch("p", title="Ready?", kind=v1.ToolKind.SWITCH_MODE, name="Read"),
        v1.ToolCallPatch("p", title="Ready?", kind=v1.ToolKind.READ, name="ExitPlanMode"),
        v1.ToolCallPatch("p", title="Ready?"),
    ],
)
@pytest.mark.parametrize("meta", [QUESTION, None])
async def test_an_engine_that_only_reads_stays_in_plan_mode_also_where_no_mark_is_trusted(
    work: Path, database: Database, call: v1.ToolCallPatch, meta: dict[str, object] | None
) -> None:
    guard = await opened(work, database, "bypassPermissions")
    leave = v1.RequestPermission("joint", call, OPTIONS, meta=meta)
    answer = await guard.permission("Gemini", leave, Editor(), looking=True, trusted_marks=False)
    assert chosen(answer) == "reject" and why_refused(answer)


async def test_a_plan_is_also_known_by_how_it_was_announced(work: Path, database: Database) -> None:
    guard = await opened(work, database, "plan")
    shown = v1.ToolCall("plan", "Ready?", v1.ToolKind.SWITCH_MODE)
    leave = v1.RequestPermission("joint", v1.ToolCallPatch("plan"), OPTIONS, meta=QUESTION)
    assert chosen(await guard.permission(CLAUDE, leave, Editor(), looking=True, known=shown)) == "reject"


async def test_an_engine_that_only_reads_writes_and_runs_nothing_through_us(
    tmp_path: Path, work: Path, database: Database
) -> None:
    configure(tmp_path, '[policy]\nallow = ["Bash", "Edit"]\n')
    guard = await opened(work, database, "bypassPermissions")
    passing = (v1.WriteTextFile("joint", str(work / "song"), "la"), v1.CreateTerminal("joint", "touch", ["song"]))
    for engine in (CLAUDE, CODEX, "Gemini"):
        for request in passing:
            await guard.admit(request, Editor(), engine)
            with pytest.raises(RequestError, match="permission denied"):
                await guard.admit(request, Editor(), engine, looking=True)
        await guard.admit(v1.ReadTextFile("joint", str(work / "song")), Editor(), engine, looking=True)
        answer = await guard.permission(engine, read(work / "song"), Editor(), looking=True)
        assert chosen(answer) == "allow" and why_refused(answer) is None  # what was denied before is another matter
