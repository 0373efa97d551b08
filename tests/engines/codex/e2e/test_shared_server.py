"""One server and many sessions: no session waits for another, and each gets what concerns it."""

import asyncio
import os
import select
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from antiphon import v1
from antiphon.errors import RequestRefused
from antiphon.protocol.methods import Call
from antiphon.protocol.v1 import methods
from tests.engines.codex.bullets import proves
from tests.engines.codex.client import Can, Client, connected
from tests.engines.codex.model.steps import command
from tests.engines.codex.place import KEY, Place
from tests.engines.codex.stand_in_lines import notification, stand_in_says
from tests.engines.codex.versions import BOTH
from tests.engines.model.steps import Gate, Text, Wait, wait_limit
from tests.engines.places import is_gone
from tests.engines.proofs import STAND_IN

STEER: Call[Any, Any] = Call("_session/steering", dict, dict, side="agent")
SLOW = v1.StdioServer("slow", sys.executable, ["-c", "import sys; sys.stdin.read()"], [])
CHILD = "01900000-0000-7000-8000-0000000000cc"


def addition(client: Client) -> Awaitable[Any]:
    added = {"sessionId": client.session.id, "prompt": [{"type": "text", "text": "in a higher voice"}]}
    return client.agent.connection.request(STEER, added)


def stop(pid: int) -> None:
    """Stop a process, all its threads, before it is asked anything: one of them could still take the question."""
    os.kill(pid, signal.SIGSTOP)
    while any(
        task.read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "TtZX"
        for task in Path(f"/proc/{pid}/task").glob("*/stat")
    ):
        os.sched_yield()


def until_asked(pid: int) -> None:
    """Wait until something waits to be read by a process that is stopped."""
    with open(f"/proc/{pid}/fd/0", "rb") as pipe:
        assert select.select([pipe], [], [], wait_limit())[0]


@proves("sessions.twice", on=BOTH)
async def test_a_session_that_is_loaded_twice_at_once_still_gets_updates(at: Place) -> None:
    async with connected(at) as client:
        session = await client.open()
        await client.say("remember the river")
        await session.close()
        loads = [client.agent.load_session(session.id, at.folder) for _ in range(2)]
        *_, last = await asyncio.gather(*loads)
        assert (await client.say("go on", last)).text == "echo: go on"


@proves("server.apart")
async def test_a_command_without_a_turn_is_cancelled_and_the_others_work_on(at: Place) -> None:
    gate = Gate()
    at.model.answers(Text("la "), Wait(gate), Text("la"))
    async with connected(at) as client:
        singing = asyncio.create_task(client.say("sing", await client.open()))
        await gate.is_reached()
        before = at.processes()
        other = await client.agent.new_session(at.folder, mcp_servers=[SLOW])
        turn = other.prompt("/mcp")
        await client.until(lambda: [each for each in client.sent if "/mcp" in str(each)])
        assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
        gate.open()
        assert (await singing).text == "la la" and at.processes() == before


@proves("auth.again", on=BOTH)
async def test_signing_in_again_disturbs_no_session_that_works(at: Place) -> None:
    at.wants_login()
    at.environment["OPENAI_API_KEY"] = KEY
    gate = Gate()
    at.model.answers(Text("la "), Wait(gate), Text("la"))
    async with connected(at, Can(terminal_login=True)) as client:
        await client.agent.authenticate("api-key")
        singing = asyncio.create_task(client.say("sing"))
        await gate.is_reached()
        [terminal, *_] = [each.id for each in client.agent.auth_methods if isinstance(each, v1.TerminalAuth)]
        await client.agent.authenticate(terminal)
        gate.open()
        assert (await singing).text == "la la"


async def _listed(client: Client) -> Any:
    return [each async for each in client.agent.list_sessions()]


WHAT: dict[str, Callable[[Client], Awaitable[Any]]] = {
    "list": _listed,
    "delete": lambda client: client.agent.delete_session("01900000-0000-7000-8000-00000000ffff"),
    "logout": lambda client: client.agent.logout(),
    "status": lambda client: client.say("/status"),
}


@proves("robust.crash")
async def test_a_server_that_dies_while_it_is_asked_is_the_same_clear_error_everywhere(at: Place) -> None:
    async with connected(at) as client:
        await client.say("hello")
        for what, ask in WHAT.items():
            [pid] = at.processes()
            await asyncio.to_thread(stop, pid)
            asking = asyncio.ensure_future(ask(client))
            await asyncio.to_thread(until_asked, pid)
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(RequestRefused) as caught:
                await asking
            text = str(caught.value)
            assert caught.value.message == "Codex ended unexpectedly" and "hint: " in text, (what, text)
            assert "\x1b" not in text
            await is_gone(pid)
            assert (await client.say("go on")).text == "echo: go on"


@proves("sessions.usage", on=BOTH)
async def test_a_session_that_is_resumed_or_forked_shows_how_full_the_context_is(at: Place) -> None:
    async with connected(at) as client:
        await client.say("hello")
        id = client.session.id
    async with connected(at) as client:
        await client.resume(id)
        await client.until(lambda: len(client.updates_of("usage_update")) == 1)
        await client.fork(id)
        await client.until(lambda: len(client.updates_of("usage_update")) == 2)


@proves("server.early", "turn.notices")
async def test_warnings_of_the_server_at_its_start_are_sent_to_every_session_once(at: Place) -> None:
    (at.codex_home / "rules").mkdir()
    (at.codex_home / "rules" / "default.rules").write_text("this is (no rule\n", encoding="utf-8")
    async with connected(at) as client:
        first, second = await client.open(), await client.open()
        await client.say("hello", first)
        [pid] = at.processes()
        os.kill(pid, signal.SIGKILL)
        await is_gone(pid)
        await client.say("again", first)
        await client.say("hello", second)
        notices = [
            (each["params"]["sessionId"], each["params"]["update"]["title"])
            for each in client.frames
            if each.get("method") == "session/update" and each["params"]["update"]["sessionUpdate"] == "notice"
        ]
    assert {session for session, title in notices if "rules" in title} == {first.id, second.id}
    assert len(notices) == len(set(notices)), notices


@proves("approval.sub-agent", "approval.elsewhere", on=[STAND_IN])
async def test_a_question_of_a_sub_agent_has_its_diff_and_is_cancelled(at: Place) -> None:
    pipe = at.pipe()
    change = {"path": str(at.folder / "song.txt"), "kind": {"type": "add"}, "diff": "la\n"}
    item = {"type": "fileChange", "id": "f1", "status": "inProgress", "changes": [change]}
    asks = notification("item/fileChange/requestApproval", threadId=CHILD, itemId="f1")
    stand_in_says(
        at,
        {"method": "thread/started", "params": {"thread": {"id": CHILD, "parentThreadId": "$THREAD", "turns": []}}},
        notification("item/started", threadId=CHILD, item=item),
        notification("item/agentMessage/delta", threadId=CHILD, itemId="m1", delta="not for you"),
        notification(
            "item/completed", threadId=CHILD, item={"type": "agentMessage", "id": "m1", "text": "not for you"}
        ),
        {"id": 0, **asks},
        {"id": 1, "nowait": True, **asks},
        {"pipe": str(pipe)},
        notification("serverRequest/resolved", threadId=CHILD, requestId=1),
    )
    async with connected(at) as client:
        client.decisions.extend(["allow_once", lambda _: asyncio.Event().wait()])
        turn = asyncio.create_task(client.say("write"))
        await client.until(lambda: len(client.asked) == 2)
        await asyncio.to_thread(pipe.write_text, "settled", encoding="utf-8")
        await client.until(lambda: [each for each in client.frames if each.get("method") == "$/cancel_request"])
        await turn
    first = client.asked[0].tool_call.content
    assert isinstance(first, list) and [each.new_text for each in first if isinstance(each, v1.Diff)] == ["la\n"]
    assert "not for you" not in str(client.frames)


@proves("cancel.background", on=BOTH)
async def test_a_command_that_was_left_running_is_stopped_also_when_no_turn_runs(at: Place) -> None:
    pipe = at.pipe()
    at.model.answers(command(f"echo $$ > {pipe}; exec tail -f /dev/null", yield_time_ms=250))
    async with connected(at) as client:
        await client.open()
        await client.session.set_mode("bypassPermissions")
        turn = asyncio.create_task(client.say("run"))
        pid = int(await asyncio.to_thread(pipe.read_text, encoding="utf-8"))
        await turn
        await client.agent.connection.notify(methods.CANCEL, v1.Cancel(client.session.id))
        await is_gone(pid)
