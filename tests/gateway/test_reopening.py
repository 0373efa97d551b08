"""Sessions that are opened again, loaded at once by several clients, or forked: no event is lost, doubled or under a wrong id."""

from pathlib import Path

import msgspec
import pytest

from antiphon.store.errors import StoreError
from tests.gateway.peers import QUICK, RawClient, Stage, stage, stored_stage
from tests.gateway.test_attachments import numbers
from tests.gateway.test_requests import begun
from tests.gateway.test_turns import end
from tests.waits import idle, until


def where(session: str, tmp_path: Path) -> dict[str, object]:
    """The params of requests that open a session."""
    return {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}


async def crashed(place: Stage, tmp_path: Path, client: RawClient) -> str:
    """A session with one message, whose agent has crashed."""
    session = await begun(place, tmp_path, client)
    place.agent.say(session, "one")
    await end(place)
    await until(lambda: client.texts == ["one"])
    await place.agent.crash()
    return session


async def test_an_update_right_behind_the_response_to_load_is_recorded(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await crashed(place, tmp_path, client)
        client.prompt(session, "two")
        opened = await place.agent.got("session/load")
        place.agent.say(session, "one")
        place.agent.result(opened["id"], {})
        place.agent.say(session, "behind")
        await end(place, 2)
        await until(lambda: "behind" in client.texts)
        assert client.texts == ["one", "behind"]


async def test_the_replay_of_a_load_that_takes_too_long_is_not_recorded_either(tmp_path: Path) -> None:
    async with stage(tmp_path, msgspec.structs.replace(QUICK, start_timeout=0.05)) as place:
        client = await place.client()
        session = await crashed(place, tmp_path, client)
        error = (await client.response(client.prompt(session, "two")))["error"]
        assert "in time" in error["message"]
        opened = await place.agent.got("session/load")
        place.agent.say(session, "one")
        place.agent.result(opened["id"], {})
        asked = client.prompt(session, "three")
        await end(place, 2)
        await client.response(asked)
        assert client.texts == ["one"] and len(place.agent.received("session/load")) == 1


async def test_a_fork_has_its_own_id_in_its_history_and_its_client_gets_none_of_it_twice(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.capabilities = {"sessionCapabilities": {"fork": {}}}
        client = await place.client()
        session = await begun(place, tmp_path, client)
        place.agent.say(session, "one")
        await end(place)
        asked = client.begin("session/fork", where(session, tmp_path))
        there = (await place.agent.got("session/fork"))["id"]
        place.agent.say("forked", "early")
        place.agent.result(there, {"sessionId": "forked"})
        await client.response(asked)
        place.agent.say("forked", "late")
        await until(lambda: client.texts[-1] == "late")
        assert client.texts == ["one", "early", "late"]
        other = await place.client()
        await other.request("session/load", where("forked", tmp_path))
        assert other.texts == ["work", "one", "early", "late"]
        updates = [each for each in other.messages if each.get("method") == "session/update"]
        assert {each["params"]["sessionId"] for each in updates} == {"forked"}


async def test_two_clients_that_load_a_session_of_the_agent_at_once_load_it_once(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        one, two = await place.client(), await place.client()
        first, second = (each.begin("session/load", where("old", tmp_path)) for each in (one, two))
        there = (await place.agent.got("session/load"))["id"]
        await idle()
        place.agent.say("old", "a", "b")
        place.agent.result(there, {"modes": {"currentModeId": "x", "availableModes": []}})
        for client, asked in ((one, first), (two, second)):
            assert (await client.response(asked))["result"]["modes"]["currentModeId"] == "x"
            assert client.texts == ["a", "b"]
        assert len(place.agent.received("session/load")) == 1
        two.prompt("old", "more")
        await end(place)
        await until(lambda: one.texts == ["a", "b", "more"])


async def test_a_load_that_the_agent_refuses_is_tried_again_for_the_next_client(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        one, two = await place.client(), await place.client()
        first, second = (each.begin("session/load", where("old", tmp_path)) for each in (one, two))
        for client, asked, count in ((one, first, 1), (two, second, 2)):
            there = (await place.agent.got("session/load", count))["id"]
            place.agent.send(b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32002,"message":"no"}}' % there)
            assert (await client.response(asked))["error"]["message"] == "no"
        await until(lambda: not place.rows.rows)


async def test_a_session_that_cannot_be_read_is_neither_unknown_nor_replaced(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        await end(place)
        await until(lambda: place.journal.events["key0"][-1].startswith(b"E"))
        await client.request("session/close", {"sessionId": session})
        length = place.journal.length

        async def broken(session: str) -> int:
            raise StoreError("the disk cannot be read", hint="look at it")

        place.journal.length = broken  # type: ignore[method-assign]
        other = await place.client()
        for method in ("session/load", "session/resume", "session/prompt"):
            error = await other.refused(method, {**where(session, tmp_path), "prompt": []})
            assert "cannot be read" in error["message"], method
        assert not place.agent.received("session/load") and not place.rows.rows["key0"].archived
        place.journal.length = length  # type: ignore[method-assign]
        await client.request("session/load", where(session, tmp_path))
        assert client.texts == ["work"]


async def test_a_session_that_waits_in_the_store_is_refused_while_too_many_are_open(tmp_path: Path) -> None:
    async with stage(tmp_path, msgspec.structs.replace(QUICK, sessions=1)) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        await end(place)
        await client.request("session/close", {"sessionId": session})
        other = await client.new(tmp_path)
        assert "too many sessions" in (await client.refused("session/load", where(session, tmp_path)))["message"]
        await client.request("session/close", {"sessionId": other})
        await client.request("session/load", where(session, tmp_path))
        assert client.texts == ["work"]


async def test_a_session_beyond_the_limit_is_refused_and_what_arrives_with_it_is_not_lost(tmp_path: Path) -> None:
    async with stage(tmp_path, msgspec.structs.replace(QUICK, sessions=1)) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        asked = client.begin("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        await place.agent.got("session/new", 2)
        place.agent.say(session, "behind")
        error = (await client.response(asked))["error"]
        assert "too many sessions" in error["message"] and error["data"]["hint"]
        await until(lambda: client.texts == ["behind"])


async def test_sessions_without_a_client_make_room_for_others(tmp_path: Path) -> None:
    async with stage(tmp_path, msgspec.structs.replace(QUICK, sessions=2)) as place:
        place.agent.capabilities = {"loadSession": True, "sessionCapabilities": {"close": {}}}
        place.agent.answers["session/close"] = lambda params: {}
        place.agent.answers["session/load"] = lambda params: {}
        client = await place.client()
        for count in (1, 2, 3, 4):
            session = await client.new(tmp_path)
            client.prompt(session, f"in {session}")
            await end(place, count)
            await until(lambda: "result" in client.messages[-1])
            await client.request("_antiphon/session/detach", {"sessionId": session})
        await place.agent.got("session/close", 2)
        assert len(place.hub.agents["demo"].sessions) == 2
        await client.request("session/load", where("s1", tmp_path))
        assert client.texts == ["in s1"]


async def test_directories_are_checked_again_when_a_session_is_opened_again(tmp_path: Path) -> None:
    inside, outside = tmp_path / "root", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "real").mkdir()
    (inside / "link").symlink_to(inside / "real")
    async with stage(inside) as place:
        place.agent.answers["session/load"] = lambda params: {}
        client = await place.client()
        session = await client.new(inside / "link")
        opened = place.agent.received("session/new")[0]["params"]
        assert opened["cwd"] == str(inside / "real"), "the agent gets the directory that was checked"
        client.prompt(session, "work")
        await end(place)
        (inside / "real").rmdir()
        (inside / "real").symlink_to(outside)
        await place.agent.crash()
        error = (await client.response(client.prompt(session, "more")))["error"]
        assert "outside" in error["message"]
        assert not place.agent.received("session/load")


async def test_a_row_is_stored_with_its_events_when_there_is_space_again(tmp_path: Path) -> None:
    async with stored_stage(tmp_path) as place:
        client = await place.client(numbers=True)
        session = await client.new(tmp_path)
        await place.data.journal.flush()
        await place.fill_disk()
        update = {"sessionUpdate": "session_info_update", "title": "named", "_meta": {"x": "x" * 100_000}}
        place.agent.notify("session/update", {"sessionId": session, "update": update})
        here = place.hub.agents["demo"].sessions[session.encode()]
        await until(lambda: here.row.title)
        await place.data.journal.flush()
        assert numbers(client) == [], "nothing is shown that is not stored"
        await place.free_disk()
        await until(lambda: numbers(client) == [1])
        row = await place.data.find("demo", session)
        assert row is not None and row.title == "named"


async def test_a_prompt_that_cannot_be_stored_is_refused_and_not_sent(tmp_path: Path) -> None:
    async with stored_stage(tmp_path) as place:
        client = await place.client(numbers=True)
        session = await client.new(tmp_path)
        await place.data.journal.flush()
        await place.fill_disk()
        for _ in range(2):
            error = (await client.response(client.prompt(session, "work " + "x" * 100_000)))["error"]
            assert "disk is full" in error["message"] and error["data"]["hint"]
        assert numbers(client) == [] and not place.agent.received("session/prompt")
        await place.free_disk()
        asked = client.prompt(session, "more")
        await end(place)
        await client.response(asked)
        assert numbers(client) == [1, 2, 3] and client.texts == ["more"]
        row = await place.data.find("demo", session)
        assert row is not None and not row.turn


async def test_clients_see_that_a_turn_waits_for_the_disk(tmp_path: Path) -> None:
    async with stored_stage(tmp_path) as place:
        client = await place.client(numbers=True)
        session = await client.new(tmp_path)
        asked = client.prompt(session, "work")
        await place.agent.got("session/prompt")
        await place.fill_disk()
        place.agent.say(session, "x" * 100_000)
        await until(lambda: b"cannot store this session" in client.frames[-1])
        await end(place)
        await idle()
        assert numbers(client) == [1, 2]
        await place.free_disk()
        assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
        assert numbers(client) == [1, 2, 3, 4]


async def test_a_session_without_a_prompt_is_in_the_file_of_a_gateway(tmp_path: Path) -> None:
    async with stored_stage(tmp_path) as place:
        client = await place.client()
        first, second = await client.new(tmp_path), await client.new(tmp_path)
        await client.leave()
        assert all(session.row.is_unused for session in place.hub.agents["demo"].sessions.values())
        assert [row.session_id for row in await place.data.list("demo")] == [second, first]


async def test_a_session_is_closed_only_when_its_events_are_stored_and_deleted_at_any_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.gateway.hub.STORE_LIMIT", 0.05)
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        place.journal.gate.clear()
        place.agent.say(session, "x")
        error = await client.refused("session/close", {"sessionId": session})
        assert "stored" in error["message"] and error["data"]["hint"]
        await client.request("session/delete", {"sessionId": session})
        place.journal.gate.set()
        assert not place.rows.rows


async def test_servers_that_cannot_be_read_are_refused_and_the_connection_goes_on(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        params = {"cwd": str(tmp_path), "mcpServers": ["x"]}
        assert (await client.refused("session/new", params))["code"] == -32602
        assert await client.new(tmp_path) == "s1"


async def test_stored_sessions_can_be_read_while_their_agent_does_not_start(tmp_path: Path) -> None:
    async with stored_stage(tmp_path) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        client.prompt(session, "work")
        await place.agent.got("session/prompt")
        place.agent.say(session, "one")
        await end(place)
        await until(lambda: client.texts == ["one"])

    class Broken(type(place.agent)):  # type: ignore[misc]
        async def start(self) -> object:
            raise StoreError("it does not start")

    async with stored_stage(tmp_path, agent=Broken()) as again:
        client = await again.client()
        listed = await client.request("session/list", {})
        assert [each["sessionId"] for each in listed["sessions"]] == [session]
        await client.request("session/load", where(session, tmp_path))
        assert client.texts == ["work", "one"]
        error = (await client.response(client.prompt(session, "more")))["error"]
        assert "does not start" in error["message"] or "crashed" in error["message"]
