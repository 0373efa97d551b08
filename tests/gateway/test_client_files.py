"""Files and terminals of an agent behind the gateway: those of the client, where it offers them and the gateway is to use them."""

from pathlib import Path
from typing import Any

import msgspec

from antiphon.gateway.base import AccessRole, Principal
from tests.gateway.peers import RawClient, Stage, stage
from tests.gateway.test_turns import BOB
from tests.waits import until

FILES = {"readTextFile": True, "writeTextFile": True}


async def served(place: Stage, id: int, method: str, **params: object) -> dict[str, Any]:
    """Have the agent request something, and return the response that it gets."""
    place.agent.request(id, method, {"sessionId": "s1", **params})
    return await response(place, id)


async def response(place: Stage, id: int) -> dict[str, Any]:
    await until(lambda: any(b'"id":%d,' % id in line and b'"method"' not in line for line in place.agent.lines))
    return next(
        each for each in map(msgspec.json.decode, place.agent.lines) if each.get("id") == id and "method" not in each
    )


async def test_files_are_those_of_the_client_that_offers_them(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.hub.client_files = True
        client = await place.client(fs=FILES, terminal=True)
        await client.new(tmp_path)
        place.agent.request(7, "fs/read_text_file", {"sessionId": "s1", "path": "/elsewhere/a", "later": 1.0})
        request = await client.asked("fs/read_text_file")
        assert request["params"] == {"sessionId": "s1", "path": "/elsewhere/a", "later": 1.0}
        client.answer(request["id"], {"content": "of the client"})
        assert (await response(place, 7))["result"] == {"content": "of the client"}
        place.agent.request(8, "fs/write_text_file", {"sessionId": "s1", "path": "/elsewhere/a", "content": "x"})
        refused = (await client.asked("fs/write_text_file"))["id"]
        client.send(b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32000,"message":"no"}}' % refused)
        assert (await response(place, 8))["error"] == {"code": -32000, "message": "no"}


async def test_without_the_offer_or_the_setting_files_are_those_of_the_gateway(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("of the gateway", encoding="utf-8")
    for setting, offer in ((True, {"readTextFile": False}), (False, FILES), (True, ["odd"])):
        async with stage(tmp_path) as place:
            place.hub.client_files = setting
            client = await place.client(fs=offer)
            await client.new(tmp_path)
            found = await served(place, 7, "fs/read_text_file", path=str(tmp_path / "a"))
            assert found["result"]["content"] == "of the gateway" and not client.requests("fs/read_text_file")


async def test_the_client_whose_prompt_runs_serves_and_one_that_only_watches_does_not(tmp_path: Path) -> None:
    from antiphon.gateway.base import AccessRole, Principal

    async with stage(tmp_path) as place:
        place.hub.client_files = True
        watcher = await place.client(Principal("eve", AccessRole.WATCH), fs=FILES)
        first, second = await place.client(fs=FILES), await place.client(BOB, fs=FILES)
        session = await first.new(tmp_path)
        load = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
        await watcher.request("session/load", load)
        await second.request("session/load", load)
        second.prompt(session, "work")
        await place.agent.got("session/prompt")
        place.agent.request(7, "fs/read_text_file", {"sessionId": session, "path": "/a"})
        second.answer((await second.asked("fs/read_text_file"))["id"], {"content": "second"})
        assert (await response(place, 7))["result"]["content"] == "second"
        assert not first.requests("fs/read_text_file") and not watcher.requests("fs/read_text_file")


async def test_a_terminal_stays_with_the_client_that_has_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.hub.client_files = True
        client = await place.client(terminal=True)
        session = await client.new(tmp_path)
        other = await place.client(BOB, terminal=True)
        await other.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        place.agent.request(7, "terminal/create", {"sessionId": session, "command": "true"})
        client.answer((await client.asked("terminal/create"))["id"], {"terminalId": "t1"})
        await response(place, 7)
        other.prompt(session, "work")
        await place.agent.got("session/prompt")
        place.agent.request(8, "terminal/output", {"sessionId": session, "terminalId": "t1"})
        client.answer((await client.asked("terminal/output"))["id"], {"output": "x", "truncated": False})
        assert (await response(place, 8))["result"]["output"] == "x"
        assert "error" in await served(place, 9, "terminal/output", terminalId="of no client")
        await client.leave()
        again = await place.client(terminal=True)  # the same client, on another connection
        await again.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        place.agent.request(10, "terminal/release", {"sessionId": session, "terminalId": "t1"})
        again.answer((await again.asked("terminal/release"))["id"], {})
        assert (await response(place, 10))["result"] == {}
        assert not other.requests("terminal/output")


async def test_a_terminal_that_is_made_while_the_turn_is_cancelled_can_be_released(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.hub.client_files = True
        client = await place.client(terminal=True)
        session = await client.new(tmp_path)
        client.prompt(session, "work")
        id = (await place.agent.got("session/prompt"))["id"]
        place.agent.request(7, "terminal/create", {"sessionId": session, "command": "true"})
        request = await client.asked("terminal/create")
        client.notify("session/cancel", {"sessionId": session})
        await place.agent.got("session/cancel")
        client.answer(request["id"], {"terminalId": "t1"})
        assert (await response(place, 7))["result"] == {"terminalId": "t1"}
        place.agent.result(id, {"stopReason": "cancelled"})
        place.agent.request(8, "terminal/release", {"sessionId": session, "terminalId": "t1"})
        client.answer((await client.asked("terminal/release"))["id"], {})
        assert (await response(place, 8))["result"] == {}


async def test_a_request_whose_client_leaves_or_that_the_agent_cancels_is_over(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.hub.client_files = True
        client = await place.client(fs=FILES)
        session = await client.new(tmp_path)
        place.agent.request(7, "fs/read_text_file", {"sessionId": session, "path": "/a"})
        request = await client.asked("fs/read_text_file")
        place.agent.send(b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}')
        assert (await response(place, 7))["error"]["code"] == -32800
        await until(lambda: _cancelled(client) == [request["id"]])
        place.agent.request(8, "fs/read_text_file", {"sessionId": session, "path": "/a"})
        await until(lambda: len(client.requests("fs/read_text_file")) == 2)
        await client.leave()
        assert (await response(place, 8))["error"]["code"] == -32800


def _cancelled(client: RawClient) -> list[object]:
    return [each["params"]["requestId"] for each in client.messages if each.get("method") == "$/cancel_request"]


async def test_a_guest_neither_serves_files_nor_gets_them_from_the_owner(tmp_path: Path) -> None:
    """A share may prompt, but the commands of its turns are not for the owner's machine, and its own is not trusted."""
    async with stage(tmp_path) as place:
        place.hub.client_files = True
        owner = await place.client(fs={"readTextFile": True}, terminal=True)
        session = await owner.new(tmp_path)
        key = place.hub.agents["demo"].sessions[session.encode()].key
        guest = await place.client(Principal("guest", AccessRole.DRIVE, frozenset({key})), terminal=True)
        await guest.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        guest.prompt(session, "go")
        await place.agent.got("session/prompt")
        place.agent.request(5, "terminal/create", {"sessionId": session, "command": "true", "cwd": str(tmp_path)})
        await owner.asked()  # the gateway asks before it runs it itself
        assert not owner.requests("terminal/create") and not guest.requests("terminal/create")
