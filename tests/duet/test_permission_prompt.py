"""Questions that the guard asks: called off, several at a time, cancelled; and what engines do through us without asking."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import RequestError
from antiphon.protocol import v1
from antiphon.store.database import Database
from antiphon.store.decisions import AuditStore
from tests.duet.permission_requests import (
    CLAUDE,
    CODEX,
    IDS,
    OPTIONS,
    Editor,
    bash,
    chosen,
    configure,
    ids,
    opened,
    texts,
)

# Being called off.


async def test_a_request_that_the_client_cancels_is_cancelled_for_the_engine(work: Path, database: Database) -> None:
    guard, editor = await opened(work, database), Editor("cancelled", "cancelled")
    result = await guard.permission(CLAUDE, bash("make"), editor)
    assert isinstance(result.outcome, v1.Cancelled)
    with pytest.raises(RequestError, match="was cancelled"):
        await guard.admit(v1.WriteTextFile("joint", str(work / "song"), "la"), editor)
    assert [entry.answer for entry in await AuditStore(database).latest(10)] == ["cancelled"]


async def test_engines_ask_at_the_same_time_and_a_cancelled_turn_cancels_its_request(
    work: Path, database: Database
) -> None:
    guard = await opened(work, database)
    open_now: dict[str, asyncio.Future[v1.PermissionResult]] = {}
    both, cancelled = asyncio.Event(), list[str]()

    def asking(who: str) -> Callable[[v1.RequestPermission], Any]:
        async def ask(_: v1.RequestPermission) -> v1.PermissionResult:
            open_now[who] = asyncio.get_running_loop().create_future()
            if len(open_now) == 2:
                both.set()
            try:
                return await open_now[who]
            except asyncio.CancelledError:
                cancelled.append(who)
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
    assert cancelled == [CLAUDE]
    open_now[CODEX].set_result(v1.PermissionResult(v1.Selected("allow")))
    assert chosen(await tasks[CODEX]) == "allow"


async def test_a_question_that_cannot_be_asked_is_a_rejection(work: Path, database: Database) -> None:
    guard = await opened(work, database)

    async def broken(_: v1.RequestPermission) -> v1.PermissionResult:
        raise RequestError(-32603, "no screen")

    assert chosen(await guard.permission(CLAUDE, bash("make"), broken)) == "reject"


async def test_an_engine_that_offers_always_alone_gets_it_only_if_the_user_picks_it(
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
    await guard.admit(write, editor, "Gemini")  # as it was sent
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
