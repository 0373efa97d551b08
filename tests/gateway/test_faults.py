"""Faults of a gateway as people start it, over sockets: whatever breaks, no event is lost or doubled, by its number and by its content."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.faults import MESSAGE, FaultyGateway, ReturningUser, SmallDisk
from tests.gateway.peers import RawClient
from tests.limits import limit
from tests.waits import until

pytestmark = pytest.mark.slow  # each starts a gateway


AFTER_THE_ANSWER = ("_antiphon/session/resolved", "tool_call_update", "agent_message_chunk", "response")
KINDS = (
    "_antiphon/session/turn_started",
    "user_message_chunk",
    "tool_call",
    "session/request_permission",
    *AFTER_THE_ANSWER,
)
"""All kinds of messages of a turn with a permission request."""


def kinds(client: RawClient) -> list[str]:
    """The kinds of messages that a client got."""
    found = []
    for message in client.messages:
        update: dict[str, Any] = (message.get("params") or {}).get("update") or {}
        found.append(update.get("sessionUpdate") or message.get("method") or "response")
    return found


async def same(gateway: FaultyGateway, *users: ReturningUser) -> None:
    """Let the users see all, and compare what they saw with each other and with the stored session."""
    session = users[0].session
    last = await gateway.idle(session)
    history = await gateway.history(session)
    for user in users:
        if user.client is None:
            await user.come()
        await until(lambda user=user: user.numbers[-1:] >= [last])  # type: ignore[misc]
        seen = user.numbers  # with what came after the turn, such as a title
        assert seen == list(range(1, len(seen) + 1))
        assert user.all_texts == history
        await user.leave()


async def cut_at(kind: str, gateway: FaultyGateway) -> None:
    """Cut a connection when the first message of a kind has arrived in a turn, and come back."""
    user = ReturningUser(gateway)
    await user.come()
    before = kinds(user.here).count(kind)
    user.here.prompt(user.session, "/permission")
    if kind in AFTER_THE_ANSWER:
        user.here.choose(await user.here.asked())
    await until(lambda: kinds(user.here).count(kind) > before)
    await user.cut()
    await user.come()
    await same(gateway, user)


async def test_a_connection_that_is_cut_at_any_kind_of_message_loses_nothing(tmp_path: Path) -> None:
    with FaultyGateway(tmp_path) as gateway:
        for kind in KINDS:
            async with asyncio.timeout(limit()):
                await cut_at(kind, gateway)


@pytest.mark.parametrize("prompt", ["/slow 1000", "/permission"])
async def test_an_agent_that_is_killed_in_a_turn_loses_nothing(tmp_path: Path, prompt: str) -> None:
    async with asyncio.timeout(limit()):
        with FaultyGateway(tmp_path) as gateway:
            user = ReturningUser(gateway)
            await user.come()
            await user.here.response(user.here.prompt(user.session, "/many 20"))
            before = len(user.here.texts)
            asked = user.here.prompt(user.session, prompt)
            await until(lambda: user.here.requests() or "3 " in user.here.texts[before:])
            assert gateway.kill_agent()
            error = (await user.here.response(asked))["error"]
            assert error["data"]["antiphon"] == {"interrupted": True}
            done = await user.here.response(user.here.prompt(user.session, "/many 5"))
            assert done["result"]["stopReason"] == "end_turn"
            await same(gateway, user)
            assert user.texts.count(prompt) == 1 and user.texts[-5:] == ["0 ", "1 ", "2 ", "3 ", "4 "]


@pytest.mark.parametrize("prompt", ["/slow 1000", "/permission"])
async def test_a_gateway_that_is_killed_in_a_turn_loses_nothing(tmp_path: Path, prompt: str) -> None:
    async with asyncio.timeout(limit()):
        with FaultyGateway(tmp_path) as gateway:
            user = ReturningUser(gateway)
            await user.come()
            await user.here.response(user.here.prompt(user.session, "/many 20"))
            before = len(user.here.texts)
            user.here.prompt(user.session, prompt)
            await until(lambda: user.here.requests() or "3 " in user.here.texts[before:])
            gateway.kill()
            await user.leave()
            await user.come()
            await until(lambda: "_antiphon/session/turn_ended" in kinds(user.here))
            ended = next(m for m in user.here.messages if m.get("method") == "_antiphon/session/turn_ended")["params"]
            assert ended["interrupted"] is True and not user.here.requests()
            done = await user.here.response(user.here.prompt(user.session, "/many 5"))
            assert done["result"]["stopReason"] == "end_turn"
            await same(gateway, user)
            assert user.texts.count(prompt) == 1


async def test_a_full_disk_is_reported_and_everything_goes_on_when_there_is_space(tmp_path: Path) -> None:
    async with asyncio.timeout(limit()):
        with SmallDisk.mounted(tmp_path / "data") as disk, FaultyGateway(tmp_path, disk=disk) as gateway:
            user, watcher = ReturningUser(gateway), ReturningUser(gateway)
            await user.come()
            watcher.session = user.session
            await watcher.come()
            await user.here.response(user.here.prompt(user.session, "/many 20"))
            before = len(user.here.texts)
            asked = user.here.prompt(user.session, "/slow 12")
            await until(lambda: "2 " in user.here.texts[before:])
            disk.fill()
            await until(lambda: any(b"cannot store this session" in frame for frame in user.here.frames))
            for client in (user.here, watcher.here):  # nothing is shown that is not stored
                assert client.texts[-1].strip() != "done"
            error = await user.here.refused("session/new", {"cwd": str(gateway.root), "mcpServers": []})
            assert "full" in error["message"] or "disk" in error["message"], error
            disk.free()
            assert (await user.here.response(asked))["result"]["stopReason"] == "end_turn"
            disk.fill()
            refused = (await user.here.response(user.here.prompt(user.session, "x" * 100_000)))["error"]
            assert "disk" in refused["message"] and refused["data"]["hint"]
            disk.free()
            done = await user.here.response(user.here.prompt(user.session, "/many 5"))
            assert done["result"]["stopReason"] == "end_turn"
            await same(gateway, user, watcher)


async def test_a_slow_reader_gets_everything_when_it_reads_again(tmp_path: Path) -> None:
    async with asyncio.timeout(limit()):
        with FaultyGateway(tmp_path, "--limit", "unsent=64K") as gateway:
            user, slow = ReturningUser(gateway), ReturningUser(gateway)
            await user.come()
            slow.session = user.session
            await slow.come()
            slow.here.transport.pause()
            for _ in range(3):
                await user.here.response(user.here.prompt(user.session, "/big 4096"))
                await user.here.response(user.here.prompt(user.session, "/many 200"))
            slow.here.transport.resume()
            await same(gateway, user, slow)


@pytest.mark.prove
async def test_a_message_of_64_mib_passes_where_it_may_and_gets_an_error_where_not(tmp_path: Path) -> None:
    async with asyncio.timeout(limit(120)):
        with FaultyGateway(tmp_path, "--limit", "message=64M") as gateway:
            user = ReturningUser(gateway)
            await user.come()
            text = "x" * (MESSAGE - 1000)
            done = await user.here.response(user.here.prompt(user.session, text))
            assert done["result"]["stopReason"] == "end_turn"
            await same(gateway, user)
            assert user.texts[0] == text
        with FaultyGateway(tmp_path) as gateway:
            again = ReturningUser(gateway)
            again.session = user.session
            again.seen, again.texts = user.seen, user.texts
            await again.come()
            lost = again.here
            lost.prompt(user.session, "y" * (17 * 1024 * 1024))
            await until(lambda: lost.is_lost)
            assert "too large" in lost.why, lost.why
            await again.leave()
            await again.come()
            done = await again.here.response(again.here.prompt(user.session, "/many 5"))
            assert done["result"]["stopReason"] == "end_turn"
            await same(gateway, again)


@pytest.mark.parametrize("seconds", [-86_400.0, 400 * 86_400.0])
async def test_a_clock_that_jumps_changes_dates_and_nothing_else(tmp_path: Path, seconds: float) -> None:
    async with asyncio.timeout(limit()):
        with FaultyGateway(tmp_path, without="quick restarts,clock") as gateway:
            user = ReturningUser(gateway)
            await user.come()
            asked = user.here.prompt(user.session, "/permission")
            permission = await user.here.asked()
            gateway.jump(seconds)
            user.here.choose(permission)
            await user.here.response(asked)
            await user.here.response(user.here.prompt(user.session, "/many 20"))
            await user.cut()
            await user.come()
            assert gateway.kill_agent()
            await user.here.response(user.here.prompt(user.session, "/many 5"))
            await same(gateway, user)
            gateway.kill()
            await user.come()
            await user.here.response(user.here.prompt(user.session, "/many 3"))
            listed = await user.here.request("session/list", {})
            assert [each["sessionId"] for each in listed["sessions"]].count(user.session) == 1
            await same(gateway, user)


async def test_no_client_sees_an_event_before_it_is_stored(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with asyncio.timeout(limit()):
        with FaultyGateway(tmp_path, without="quick restarts,gate") as gateway:
            user, watcher = ReturningUser(gateway), ReturningUser(gateway)
            await user.come()
            watcher.session = user.session
            await watcher.come()
            plain = await gateway.client(numbers=False)
            await plain.request("session/resume", {"sessionId": user.session, "cwd": str(gateway.root)})
            os.mkfifo(gate)
            asked = user.here.prompt(user.session, "/many 5")
            with await asyncio.to_thread(gate.open, "wb"):  # a commit has opened it too, and waits
                gate.unlink()  # the next one does not
                for client in (user.here, watcher.here, plain):
                    # When the agent has answered, what was there to be seen is here.
                    await client.refused("_antiphon-test/unknown", {})
                    assert client.texts == []
            await user.here.response(asked)
            await plain.leave()
            await same(gateway, user, watcher)
