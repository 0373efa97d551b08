"""What clients receive are the bytes that the agent sent; ids of both sides are kept apart; numbers are for those who ask."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from tests.gateway.peers import QUICK, RawClient, chunk, stage
from tests.waits import idle, until

ODD = [
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"later_kind","x":1.50,"x":2}}}',
    b'{ "method":"session/update", "params" : {"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\\u0061"}},"sessionId":"s1","_meta":{"a":[]}},"jsonrpc":"2.0", "extra": null }',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"with \\"id\\" and \\"sessionId\\":\\"s2\\""}}}}',
    b'{"jsonrpc":"2.0","method":"_vendor/thing","params":{"sessionId":"s1","id":"1","deep":{"id":7}}}',
    '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"plan","entries":[],"ü":"😀"}}}'.encode(),
]


async def test_updates_reach_a_client_in_the_bytes_of_the_agent(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        assert await client.new(tmp_path) == "s1"
        seen = len(client.frames)
        place.agent.send(*ODD)
        await until(lambda: len(client.frames) >= seen + len(ODD))
        assert client.frames[seen:] == ODD
        assert place.journal.events["key0"] == ODD


async def test_updates_of_two_sessions_in_one_block_reach_their_own_clients(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        first, second = await place.client(), await place.client()
        one, two = await first.new(tmp_path), await second.new(tmp_path)
        place.agent.send(chunk(one, "a"), chunk(two, "b"), chunk(two, "c"), chunk(one, "d"), chunk("nowhere", "e"))
        await until(lambda: len(first.texts) == 2 and len(second.texts) == 2)
        assert (first.texts, second.texts) == (["a", "d"], ["b", "c"])


async def test_a_line_that_is_not_text_is_not_recorded(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        place.agent.send(
            chunk(session, "before"), chunk(session, "x").replace(b'"x"', b'"\xff"'), chunk(session, "after")
        )
        await until(lambda: client.texts[-1:] == ["after"])
        assert client.texts == ["before", "after"]


@pytest.mark.parametrize("id", [b"41", b'"1"', b"-7", b'"a\\u0062"', b"1.0"])
async def test_a_response_has_the_id_of_its_request_as_it_was_written(tmp_path: Path, id: bytes) -> None:
    async with stage(tmp_path) as place:
        place.agent.answers["_vendor/ask"] = lambda params: {"asked": params}
        client = await place.client()
        client.send(b'{"jsonrpc":"2.0","id":%b,"method":"_vendor/ask","params":{"n":1.50}}' % id)
        await until(lambda: client.frames[-1].startswith(b'{"jsonrpc":"2.0","id":%b,"result":' % id))
        assert b'"params":{"n":1.50}' in place.agent.lines[-1]


async def test_the_same_id_as_a_number_and_as_a_string_are_two_requests_of_two_clients_too(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        first, second = await place.client(), await place.client()
        for client, id in ((first, b"5"), (first, b'"5"'), (second, b"5")):
            client.send(b'{"jsonrpc":"2.0","id":%b,"method":"_vendor/ask","params":{"by":%b}}' % (id, id))
        await place.agent.got("_vendor/ask", 3)
        asked = place.agent.received("_vendor/ask")
        assert len({each["id"] for each in asked}) == 3
        for each in reversed(asked):
            place.agent.result(each["id"], each["params"]["by"])
        await until(lambda: len(first.frames) == 3 and len(second.frames) == 2)
        answers = [(each["id"], each["result"]) for each in first.messages[1:]]
        assert sorted(answers, key=repr) == [("5", "5"), (5, 5)]
        assert second.messages[-1]["result"] == 5


async def test_only_clients_that_ask_for_numbers_get_them(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        plain, counting = await place.client(), await place.client(numbers=True)
        session = await plain.new(tmp_path)
        await counting.request("_antiphon/session/attach", {"sessionId": session})
        place.agent.say(session, "a", "b")
        await until(lambda: len(plain.texts) == 2 and len(counting.texts) == 2)
        assert plain.frames[-2:] == [chunk(session, "a"), chunk(session, "b")]
        numbers = [each["params"]["_meta"]["antiphon"]["number"] for each in counting.messages[-2:]]
        assert numbers == [1, 2]


async def test_initialize_has_the_extension_and_what_the_agent_answered(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.capabilities = {"promptCapabilities": {"image": True}, "_meta": {"x": 1}}
        client = await place.client()
        result = client.messages[0]["result"]
        offers = result["agentCapabilities"]
        assert offers["promptCapabilities"] == {"image": True} and offers["_meta"] == {"x": 1}
        assert offers["loadSession"] is True
        assert set(offers["sessionCapabilities"]) == {"list", "resume", "close", "delete"}
        assert result["_meta"]["antiphon"]["extension"] == 1


async def test_requests_before_initialize_and_a_second_initialize_are_refused(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = RawClient(place.hub)
        place.clients.append(client)
        assert (await client.refused("session/list", {}))["code"] == -32600
        await client.initialize()
        assert (await client.refused("initialize", {"protocolVersion": 1}))["code"] == -32600


async def test_bad_lines_get_errors_and_the_connection_goes_on(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        client.send(b"not json")
        client.send(b'{"jsonrpc":"2.0","id":3}')
        client.send(b'[{"jsonrpc":"2.0","id":4,"method":"x"}]')
        await until(lambda: len(client.frames) == 4)
        assert [each["error"]["code"] for each in client.messages[1:]] == [-32700, -32600, -32600]
        await client.new(tmp_path)


async def test_what_is_not_stored_is_not_shown(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        clients = [await place.client(), await place.client(numbers=True)]
        session = await clients[0].new(tmp_path)
        await clients[1].request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        place.journal.gate.clear()
        seen = [len(client.frames) for client in clients]
        asked = clients[0].prompt(session, "hello")
        place.agent.say(session, "early")
        place.agent.ask(1, session)
        await idle()
        assert [len(client.frames) for client in clients] == seen
        assert not place.agent.received("session/prompt"), "a prompt is sent after it was stored"
        place.journal.gate.set()
        place.agent.result((await place.agent.got("session/prompt"))["id"], {"stopReason": "end_turn"})
        assert (await clients[0].response(asked))["result"] == {"stopReason": "end_turn"}
        await until(lambda: "early" in clients[1].texts)


async def test_events_that_cannot_be_stored_are_stored_later_and_none_is_lost(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        place.journal.broken = OSError(28, "No space left on device")
        place.agent.say(session, "a", "b")
        await until(lambda: place.hub.agents["demo"].uncommitted > 0)
        await idle()
        assert client.texts == []
        place.journal.broken = None
        place.agent.say(session, "c")
        await until(lambda: client.texts == ["a", "b", "c"])


async def test_an_agent_is_not_read_while_too_much_waits_for_the_disk(tmp_path: Path) -> None:
    limits = msgspec.structs.replace(QUICK, uncommitted=10_000)
    async with stage(tmp_path, limits) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        place.journal.gate.clear()
        for number in range(100):
            place.agent.say(session, f"{number}" * 500)
            await asyncio.sleep(0)
        await idle()
        assert place.hub.agents["demo"].uncommitted < 40_000
        place.journal.gate.set()
        await until(lambda: len(client.texts) == 100)
        assert client.texts == [f"{number}" * 500 for number in range(100)]
        assert place.hub.agents["demo"].uncommitted == 0


@pytest.mark.parametrize("line", [b'{"jsonrpc":"2.0","id":%d,"method":"session/list","params":{}}', b"not JSON %d"])
async def test_a_client_that_does_not_read_its_responses_is_not_read_on(tmp_path: Path, line: bytes) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        for _ in range(100):
            await client.new(tmp_path)
        before = len(client.frames)
        theirs = next(iter(place.hub._clients))
        client.transport.pause()
        for part in range(50):
            client.send(b"\n".join(line % number for number in range(1000 + 100 * part, 1100 + 100 * part)))
            await idle()
        assert theirs.transport.unsent < 200_000
        client.transport.resume()
        await until(lambda: len(client.frames) - before == 5000)


async def test_a_client_that_reads_no_events_can_still_cancel(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        client.prompt(session, "work")
        await place.agent.got("session/prompt")
        client.transport.pause()
        for number in range(300):
            place.agent.say(session, f"{number} " + "x" * 1000)
        await idle()
        client.notify("session/cancel", {"sessionId": session})
        await place.agent.got("session/cancel")
