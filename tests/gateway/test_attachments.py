"""Clients that come, leave and come back see each event once, in order, without a gap."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.gateway.peers import QUICK, RawClient, Stage, chunk, stage
from tests.gateway.test_turns import attach, end
from tests.waits import idle, until


def numbers(client: RawClient) -> list[int]:
    """The numbers of the events that a client was given."""
    found: list[int] = []
    for each in client.messages:
        for part in (each.get("params"), each.get("result")):
            if isinstance(part, dict):
                meta: Any = (part.get("_meta") or {}).get("antiphon", {})
                if "number" in meta or ("number" in part and "method" in each):
                    found.append(meta.get("number", part.get("number")))
    return found


@pytest.mark.parametrize("cut", range(12))
async def test_a_client_that_comes_back_sees_each_event_once_whatever_it_had_seen(tmp_path: Path, cut: int) -> None:
    """The whole turn has eleven events; the connection is cut after each of them."""
    async with stage(tmp_path) as place:
        client = await place.client(numbers=True)
        session = await client.new(tmp_path)
        client.prompt(session, "work")
        id = (await place.agent.got("session/prompt"))["id"]
        sent = 2
        seen: list[int] = []
        for step in range(9):
            if sent >= cut and not client.is_lost:
                await until(lambda sent=sent: numbers(client)[-1:] == [sent])  # type: ignore[misc]
                seen = numbers(client)
                await client.leave()
            if step == 3:
                place.agent.ask(9, session)
            elif step == 5:
                place.agent.request(10, "$/x", {"sessionId": session})
                place.agent.say(session, "x")
            elif step == 8:
                place.agent.result(id, {"stopReason": "end_turn"})
            else:
                place.agent.say(session, f"{step}")
            sent += 1
            await until(lambda sent=sent: place.hub.agents["demo"].sessions[b"s1"].last >= sent)  # type: ignore[misc]
        if not client.is_lost:
            seen = numbers(client)
            await client.leave()
        again = await place.client(numbers=True)
        await attach(again, session, seen[-1] if seen else 0)
        last = len(place.journal.events["key0"])
        await until(lambda: (seen + numbers(again))[-1:] == [last])
        assert seen + numbers(again) == list(range(1, last + 1))


async def test_events_that_were_read_before_their_writer_knew_them_stored_are_not_sent_twice(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        first, second = await place.client(numbers=True), await place.client(numbers=True)
        session = await first.new(tmp_path)
        place.agent.say(session, "1", "2")
        await until(lambda: numbers(first) == [1, 2])
        place.journal.acknowledged.clear()
        place.agent.say(session, "3", "4")
        await until(lambda: len(place.journal.events["key0"]) == 4)
        await attach(second, session, 1)
        await until(lambda: numbers(second) == [2, 3, 4])
        place.journal.acknowledged.set()
        place.agent.say(session, "5")
        await until(lambda: numbers(first) == [1, 2, 3, 4, 5] and len(second.texts) >= 4)
        assert numbers(second) == [2, 3, 4, 5]


async def test_load_replays_the_whole_session_and_then_goes_on(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        client.prompt(session, "hello")
        await place.agent.got("session/prompt")
        place.agent.say(session, "one", "two")
        other = await place.client()
        await until(lambda: client.texts == ["one", "two"])
        loaded = other.begin("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        await other.response(loaded)
        assert other.texts == ["hello", "one", "two"], "the response comes after the replay"
        place.agent.say(session, "three")
        await end(place)
        await until(lambda: other.texts[-1] == "three" and client.texts[-1] == "three")
        assert other.frames[2:4] == [chunk(session, "one"), chunk(session, "two")]


async def test_a_session_in_which_nothing_was_sent_can_be_loaded_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        await client.leave()
        again = await place.client()
        await again.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        again.prompt(session, "hello")
        await end(place)
        assert not place.agent.received("session/load")


async def test_load_of_a_session_that_only_the_agent_has_is_recorded(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        asked = client.begin("session/load", {"sessionId": "old", "cwd": str(tmp_path), "mcpServers": []})
        there = (await place.agent.got("session/load"))["id"]
        place.agent.say("old", "a", "b")
        await until(lambda: client.texts == ["a", "b"])
        assert not await place.rows.list("demo")  # nothing finds it before the agent has confirmed it
        place.agent.result(there, {})
        await client.response(asked)
        assert client.texts == ["a", "b"]
        other = await place.client()
        await other.request("session/load", {"sessionId": "old", "cwd": str(tmp_path), "mcpServers": []})
        assert other.texts == ["a", "b"] and len(place.agent.received("session/load")) == 1


async def test_a_load_that_the_agent_refuses_leaves_nothing_behind(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        asked = client.begin("session/load", {"sessionId": "old", "cwd": str(tmp_path), "mcpServers": []})
        there = (await place.agent.got("session/load"))["id"]
        place.agent.send(b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32002,"message":"no","x":1}}' % there)
        assert (await client.response(asked))["error"] == {"code": -32002, "message": "no", "x": 1}
        await until(lambda: not place.rows.rows)
        assert not place.hub.agents["demo"].sessions


async def test_the_list_has_the_sessions_of_the_gateway_and_of_the_agent_once_each(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.capabilities = {"loadSession": True, "sessionCapabilities": {"list": {}}}
        cwd = str(tmp_path)
        pages = {
            None: {"sessions": [{"sessionId": "s1", "cwd": cwd}, {"sessionId": "x", "cwd": cwd, "y": 1}], "nextCursor": "2"},
            "2": {"sessions": [{"sessionId": "z", "cwd": cwd}, {"sessionId": "s2", "cwd": cwd}, {"sessionId": "out", "cwd": "/"}]},
        }  # fmt: skip
        place.agent.answers["session/list"] = lambda params: pages[params.get("cursor")]
        client = await place.client()
        await client.new(tmp_path)
        await client.new(tmp_path)
        first = await client.request("session/list", {})
        second = await client.request("session/list", {"cursor": first["nextCursor"]})
        assert sorted(each["sessionId"] for each in first["sessions"]) == ["s1", "s2", "x"]
        assert {"sessionId": "x", "cwd": cwd, "y": 1} in first["sessions"]
        assert [each["sessionId"] for each in second["sessions"]] == ["z"] and "nextCursor" not in second


async def test_a_fork_has_the_history_of_its_source(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.capabilities = {"sessionCapabilities": {"fork": {}}}
        place.agent.answers["session/fork"] = lambda params: {"sessionId": "forked"}
        client = await place.client()
        session = await client.new(tmp_path)
        client.prompt(session, "hello")
        await place.agent.got("session/prompt")
        place.agent.say(session, "one")
        await end(place)
        await client.request("session/fork", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        other = await place.client()
        await other.request("session/load", {"sessionId": "forked", "cwd": str(tmp_path), "mcpServers": []})
        assert other.texts == ["hello", "one"]


async def test_a_fork_that_ends_before_a_prompt_is_neither_offered_nor_made(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.capabilities = {"sessionCapabilities": {"fork": {"_meta": {"antiphon": {"dropped": True}}}}}
        client = await place.client()
        offered = next(each for each in client.messages if "agentCapabilities" in each.get("result", {}))
        assert offered["result"]["agentCapabilities"]["sessionCapabilities"]["fork"] == {}
        session = await client.new(tmp_path)
        fork = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
        error = await client.refused("session/fork", fork | {"_meta": {"antiphon": {"dropped": ["hello"]}}})
        assert error["code"] == -32602 and "forks whole sessions" in error["message"]
        assert not place.agent.received("session/fork")


@pytest.mark.parametrize("renamed", [False, True])
async def test_a_fork_is_called_like_its_source(tmp_path: Path, renamed: bool) -> None:
    async with stage(tmp_path) as place:
        place.agent.capabilities = {"sessionCapabilities": {"fork": {}}}
        place.agent.answers["session/fork"] = lambda params: {"sessionId": "forked"}
        client = await place.client()
        session = await client.new(tmp_path)
        client.prompt(session, "hello")
        await place.agent.got("session/prompt")
        place.agent.notify("session/update", {"sessionId": session, "update": titled("Theirs")})
        await end(place)
        if renamed:
            await client.request("_antiphon/session/rename", {"sessionId": session, "title": "Mine"})
        await client.request("session/fork", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        forked = place.hub.agents["demo"].sessions[b"forked"]
        name = "Mine (fork)" if renamed else "Theirs (fork)"
        assert (forked.row.title, forked.row.text) == (name, "hello")
        other = await place.client()
        await other.request("session/load", {"sessionId": "forked", "cwd": str(tmp_path), "mcpServers": []})
        updates = [each["params"]["update"] for each in other.messages if each.get("method") == "session/update"]
        assert [each["title"] for each in updates if "title" in each][-1] == name
        place.agent.notify("session/update", {"sessionId": "forked", "update": titled("Later")})
        await until(lambda: forked.row.agent_title == "Later")
        assert forked.row.title == (name if renamed else "Later")


def titled(title: str) -> dict[str, str]:
    return {"sessionUpdate": "session_info_update", "title": title}


async def test_a_slow_reader_costs_no_memory_and_loses_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path, msgspec.structs.replace(QUICK, unsent=100_000)) as place:
        fast, slow = await place.client(), await place.client()
        session = await fast.new(tmp_path)
        await slow.request("session/resume", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        slow.transport.pause()
        for number in range(1000):
            place.agent.say(session, f"{number} " + "x" * 1000)
            if number % 50 == 0:
                await until(lambda number=number: len(fast.frames) > number)  # type: ignore[misc]
        await until(lambda: len(fast.texts) == 1000)
        await idle()
        theirs = next(each for each in place.hub._clients if each.transport.unsent)
        assert theirs.transport.unsent < 300_000
        slow.transport.resume()
        await until(lambda: len(slow.texts) == 1000)
        assert slow.texts == fast.texts


async def test_attach_after_a_number_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client(numbers=True)
        session = await client.new(tmp_path)
        for after in (-1, 1):
            error = await client.refused("_antiphon/session/attach", {"sessionId": session, "after": after})
            assert error["code"] == -32602 and error["data"]["hint"]


async def test_a_session_that_is_deleted_is_gone_for_all(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        first, second = await place.client(), await place.client()
        session = await first.new(tmp_path)
        await second.request("session/resume", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        await first.request("session/delete", {"sessionId": session})
        assert (await second.refused("session/prompt", {"sessionId": session, "prompt": []}))["code"] == -32002
        assert not place.rows.rows and not place.journal.events.get("key0")


async def test_a_session_that_is_closed_can_be_loaded_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.answers["session/load"] = lambda params: {}
        client = await place.client()
        session = await client.new(tmp_path)
        client.prompt(session, "hello")
        await end(place)
        await client.request("session/close", {"sessionId": session})
        assert not place.hub.agents["demo"].sessions
        other = await place.client()
        await other.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        assert other.texts == ["hello"]


async def test_an_id_that_the_agent_uses_twice_leaves_the_older_session_stored(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        place.agent.say(session, "old")
        await until(lambda: client.texts == ["old"])
        place.agent.sessions = 0
        assert await client.new(tmp_path) == session
        place.agent.say(session, "new")
        await until(lambda: client.texts == ["old", "new"])
        assert [row.archived for row in place.rows.rows.values()] == [True, False]
        other = await place.client()
        await other.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        assert other.texts == ["new"]


async def test_directories_outside_of_the_roots_and_programs_of_clients_are_left_out(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        error = await client.refused("session/new", {"cwd": "/etc", "mcpServers": []})
        assert error["code"] == -32602 and "/etc" in error["message"]
        (tmp_path / "link").symlink_to("/etc")
        assert (await client.refused("session/new", {"cwd": str(tmp_path / "link"), "mcpServers": []}))[
            "code"
        ] == -32602
        servers = [
            {"name": "evil", "command": "/bin/sh", "args": []},
            {"type": "http", "name": "good", "url": "https://x"},
        ]
        await client.request("session/new", {"cwd": str(tmp_path), "mcpServers": servers})
        await until(lambda: b"evil" in client.frames[-1])
        assert b'"mcpServers":[{"type":"http","name":"good","url":"https://x"}]' in place.agent.lines[-1]


async def test_a_directory_that_does_not_exist_is_refused_before_the_agent_is_asked(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        (tmp_path / "file").write_text("", encoding="utf-8")
        for gone in (tmp_path / "gone", tmp_path / "file"):
            params = {"cwd": str(gone), "mcpServers": []}
            for method, about in (
                ("session/new", {}),
                ("session/load", {"sessionId": "old"}),
                ("session/fork", {"sessionId": session}),
            ):
                error = await client.refused(method, {**params, **about})
                assert error["code"] == -32602 and f"there is no directory `{gone}`" in error["message"]
                assert "give another one" in error["data"]["hint"]
        assert len(place.agent.received("session/new")) == 1
        assert not place.agent.received("session/load") and not place.agent.received("session/fork")
        stored = {"sessionId": session, "cwd": str(tmp_path / "gone"), "mcpServers": []}
        await client.request("session/load", stored)  # one that is here is read, whatever became of its directory
        place.hub.client_files = True
        client.begin("session/new", {"cwd": str(tmp_path / "theirs"), "mcpServers": []})
        await until(lambda: len(place.agent.received("session/new")) == 2)


def thought(session: str, text: str) -> bytes:
    return chunk(session, text).replace(b"agent_message_chunk", b"agent_thought_chunk")


async def session_with_pieces(place: Stage, tmp_path: Path) -> str:
    """A session with a history of pieces, of which some have fields that the schema does not know."""
    client = await place.client()
    session = await client.new(tmp_path)
    place.agent.say(session, *(f"{number} " for number in range(600)))
    place.agent.send(
        *(thought(session, text) for text in "abc"),
        chunk(session, "odd").replace(b'"update":', b'"future":1,"update":'),
        *(chunk(session, text).replace(b'"content":', b'"messageId":"m","content":') for text in "de"),
        *(chunk(session, text).replace(b'"content":', b'"messageId":"n","content":') for text in "fg"),
    )
    await until(lambda: len(client.texts) == 608)
    await client.leave()
    return session


@pytest.mark.parametrize("when", ["initialize", "load", "attach"])
async def test_history_is_merged_for_a_client_that_asks_for_it(tmp_path: Path, when: str) -> None:
    async with stage(tmp_path) as place:
        session = await session_with_pieces(place, tmp_path)
        client = RawClient(place.hub)
        place.clients.append(client)
        wish = {"_meta": {"antiphon": {"merged": True, "numbers": True}}}
        first = await client.request(
            "initialize",
            {"protocolVersion": 1, **(wish if when == "initialize" else {"_meta": {"antiphon": {"numbers": True}}})},
        )
        assert first["_meta"]["antiphon"]["merged"] is (when == "initialize")
        params: dict[str, object] = {"sessionId": session, **(wish if when != "initialize" else {})}
        if when == "attach":
            await client.request("_antiphon/session/attach", {**params, "after": 0})
        else:
            await client.request("session/load", {**params, "cwd": str(tmp_path), "mcpServers": []})
        await until(lambda: "".join(client.texts).endswith("fg"))
        assert len(client.texts) < 20 and client.texts[-4:] == ["abc", "odd", "de", "fg"]
        assert "".join(client.texts[:-4]) == "".join(f"{number} " for number in range(600))
        updates = [each["params"] for each in client.messages if each.get("method") == "session/update"]
        numbers = [params["_meta"]["antiphon"]["number"] for params in updates]
        assert numbers[-4:] == [603, 604, 606, 608] and numbers == sorted(set(numbers))
        assert updates[-3]["future"] == 1 and updates[-1]["update"]["messageId"] == "n"
        place.agent.say(session, "x", "y")
        await until(lambda: client.texts[-2:] == ["x", "y"])


async def test_others_get_the_history_in_the_bytes_of_the_agent(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        session = await session_with_pieces(place, tmp_path)
        client = await place.client()
        await client.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        assert [frame for frame in client.frames if b"session/update" in frame] == place.journal.events["key0"]
