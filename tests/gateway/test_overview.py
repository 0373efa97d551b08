"""The gateway as a page shows it: who the client is, its agents, the list of sessions and how it changes, the search."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from antiphon.errors import AcpError
from antiphon.gateway.base import AccessRole, Principal
from antiphon.gateway.methods import rows, search
from antiphon.transports.base import Transport
from tests.gateway.peers import QUICK, RawClient, StoredStage, stage, stored_stage
from tests.gateway.test_turns import attach, end
from tests.waits import idle, until

ADMIN = Principal("root", AccessRole.ADMIN)
WATCHER = Principal("eve", AccessRole.WATCH)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gather changes and messages no longer than needed."""
    monkeypatch.setattr(rows, "PAUSE", 0.01)
    monkeypatch.setattr(search, "PAUSE", 0.0)


@asynccontextmanager
async def opened(tmp_path: Path) -> AsyncIterator[tuple[StoredStage, RawClient, str]]:
    """A hub with the file of a gateway, a client and its session."""
    async with stored_stage(tmp_path) as place:
        client = await place.client(numbers=True)
        yield place, client, await client.new(tmp_path)


async def turn(place: StoredStage, client: RawClient, session: str, text: str, *answer: str) -> None:
    """Send a prompt, let the agent answer, and wait for the end of the turn."""
    before = len(place.agent.received("session/prompt"))
    asked = client.prompt(session, text)
    await place.agent.got("session/prompt", before + 1)
    place.agent.say(session, *answer)
    await end(place, before + 1)
    await client.response(asked)


async def listed(client: RawClient, **params: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.request("_antiphon/sessions/list", params))["sessions"]
    return found


def share_of(place: StoredStage, session: str, role: AccessRole = AccessRole.WATCH) -> Principal:
    found = place.hub.agents["demo"].session_of(session)
    assert found is not None
    return Principal("guest", role, frozenset({found.key}))


def notified(client: RawClient, method: str) -> list[Any]:
    return [each["params"] for each in client.messages if each.get("method") == method]


# Who and what.


async def test_the_gateway_says_who_the_client_is_and_what_it_may_open(tmp_path: Path) -> None:
    async with opened(tmp_path) as (place, client, session):
        place.agent.answers["session/new"] = lambda params: {"sessionId": "s9", "modes": {"currentModeId": "a"}}
        await client.new(tmp_path)
        await turn(place, client, session, "hello")
        about = await client.request("_antiphon/gateway/info", {})
        (agent,) = about.pop("agents")
        version = about.pop("version")
        assert version[0].isdigit() and about == {
            "page": "", "name": "alice", "role": "drive", "share": False, "roots": [str(tmp_path)], "recent": [str(tmp_path)],
        }  # fmt: skip
        assert (agent["name"], agent["default"], agent["state"], agent["settings"]) == ("demo", True, "running", None)
        await turn(place, client, "s9", "hello")
        (agent,) = (await client.request("_antiphon/gateway/info", {}))["agents"]
        assert agent["settings"] == {"modes": {"currentModeId": "a"}}, "those of the session that was used last"


async def test_an_agent_that_does_not_start_does_not_take_the_list_away(tmp_path: Path) -> None:
    async def broken() -> Transport:
        raise AcpError("it is not installed")

    async with stage(tmp_path, source=broken) as place:
        client = RawClient(place.hub)
        place.clients.append(client)
        early = await client.refused("_antiphon/sessions/list", {})
        assert "initialize" in early["message"]
        assert "not installed" in (await client.refused("initialize", {"protocolVersion": 1}))["message"]
        assert await listed(client) == []
        (agent,) = (await client.request("_antiphon/gateway/info", {}))["agents"]
        assert agent["state"] == "crashed"
        assert "initialize" in (await client.refused("session/list", {}))["message"]


# The list.


async def test_the_list_has_each_session_with_its_state(tmp_path: Path) -> None:
    async with opened(tmp_path) as (place, client, first):
        second = await client.new(tmp_path)
        client.prompt(second, "\n  fix the tests\nplease")
        asked = (await place.agent.got("session/prompt"))["id"]
        place.agent.notify(
            "session/update", {"sessionId": first, "update": {"sessionUpdate": "session_info_update", "title": "First"}}
        )
        await until(lambda: place.hub.agents["demo"].sessions[b"s1"].last == 1)
        rows = await listed(client)
        assert [(row["sessionId"], row["title"], row["text"], row["state"]) for row in rows] == [
            (second, "", "fix the tests", "running"),
            (first, "First", "", "idle"),
        ]
        assert rows[0]["agent"] == "demo" and rows[0]["cwd"] == str(tmp_path) and rows[0]["owner"] == "alice"
        assert rows[0]["mayDelete"] is True and rows[1]["number"] == 1 and rows[0]["updated"] >= rows[0]["created"] > 0
        place.agent.ask(7, second)
        await client.asked()
        row, _ = await listed(client)
        assert (row["state"], row["waiting"]) == ("waiting", 1)
        place.agent.send(b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"no"}}' % asked)
        await until(lambda: place.hub.agents["demo"].sessions[b"s2"].turns.running is None)
        assert [row["state"] for row in await listed(client)] == ["failed", "idle"]


async def test_the_list_comes_in_pages_and_by_words(tmp_path: Path) -> None:
    async with opened(tmp_path) as (place, client, first):
        names = [first, *[await client.new(tmp_path) for _ in range(4)]]
        page = await client.request("_antiphon/sessions/list", {"limit": 3})
        rest = await client.request("_antiphon/sessions/list", {"limit": 3, "cursor": page["nextCursor"]})
        assert [row["sessionId"] for row in (*page["sessions"], *rest["sessions"])] == names[::-1]
        assert "nextCursor" not in rest
        await turn(place, client, names[1], "Fix 100% of it")
        assert [row["sessionId"] for row in await listed(client, query="fix 100%")] == [names[1]]
        assert await listed(client, query="fix 10_%") == [] and len(await listed(client, query="DEMO")) == 5
        assert "cursor" in (await client.refused("_antiphon/sessions/list", {"cursor": "?"}))["message"]


async def test_the_list_survives_the_gateway(tmp_path: Path) -> None:
    async with opened(tmp_path) as (place, client, session):
        await turn(place, client, session, "hello", "world")
        before = await listed(client)
    async with stored_stage(tmp_path, agent=place.agent) as place:
        assert await listed(await place.client()) == before


async def test_a_client_that_follows_the_list_sees_what_changes_and_what_goes(tmp_path: Path) -> None:
    async with opened(tmp_path) as (place, client, _):
        page = await place.client(ADMIN)
        await page.request("_antiphon/sessions/follow", {})
        session = await client.new(tmp_path)

        def states() -> list[tuple[str, str]]:
            changed = notified(page, "_antiphon/sessions/changed")
            return [(row["session"]["sessionId"], row["session"]["state"]) for row in changed]

        await until(lambda: (session, "idle") in states())
        client.prompt(session, "go")
        await place.agent.got("session/prompt")
        await until(lambda: states()[-1] == (session, "running"))
        place.agent.ask(7, session)
        request = await client.asked()
        await until(lambda: states()[-1] == (session, "waiting"))
        client.choose(request)
        await until(lambda: states()[-1] == (session, "running"))
        await end(place)
        await until(lambda: states()[-1] == (session, "idle"))
        await client.request("session/delete", {"sessionId": session})
        await until(lambda: notified(page, "_antiphon/sessions/removed"))
        assert notified(page, "_antiphon/sessions/removed") == [{"agent": "demo", "sessionId": session}]
        assert not notified(client, "_antiphon/sessions/changed"), "it does not follow the list"


async def test_one_who_follows_the_list_and_does_not_read_costs_no_memory_and_sees_the_end(tmp_path: Path) -> None:
    limits = msgspec.structs.replace(QUICK, unsent=100_000)
    async with stored_stage(tmp_path, limits) as place:
        client, slow = await place.client(), await place.client(ADMIN)
        await slow.request("_antiphon/sessions/follow", {})
        sessions = [await client.new(tmp_path) for _ in range(20)]
        await until(
            lambda: len({each["session"]["sessionId"] for each in notified(slow, "_antiphon/sessions/changed")}) == 20
        )
        slow.transport.pause()
        theirs = next(each for each in place.hub._clients if each.principal == ADMIN)
        for number in range(60):
            for session in sessions:
                title = f"{number} " + "x" * 1000
                update = {"sessionUpdate": "session_info_update", "title": title}
                place.agent.notify("session/update", {"sessionId": session, "update": update})
            await idle()
            await until(lambda title=title: all(each.row.title == title for each in place.hub._sessions()))  # type: ignore[misc]
            place.hub.feed._send()
        assert theirs.transport.unsent < 300_000
        slow.transport.resume()

        def titles() -> dict[str, str]:
            changed = [each["session"] for each in notified(slow, "_antiphon/sessions/changed")]
            return {row["sessionId"]: row["title"] for row in changed}

        await until(
            lambda: {title.split()[0] for title in titles().values() if title} == {"59"} and len(titles()) == 20
        )


async def test_a_share_sees_its_sessions_and_nothing_of_others(tmp_path: Path) -> None:
    async with opened(tmp_path) as (place, client, shared):
        other = await client.new(tmp_path)
        await turn(place, client, other, "secret plan", "secret answer")
        await turn(place, client, shared, "open words", "open answer")
        guest = await place.client(share_of(place, shared, AccessRole.DRIVE), numbers=True)
        await guest.request("_antiphon/sessions/follow", {})
        assert [row["sessionId"] for row in await listed(guest)] == [shared]
        assert not (await listed(guest))[0]["mayDelete"]
        about = await guest.request("_antiphon/gateway/info", {})
        assert about["share"] and about["roots"] == about["recent"] == [] and about["agents"][0]["settings"] is None
        await until(lambda: place.hub.search._waiting == {})
        assert (await guest.request("_antiphon/sessions/search", {"query": "secret"}))["matches"] == []
        read = {"sessionId": other, "before": 10}
        assert "no session" in (await guest.refused("_antiphon/session/read", read))["message"]
        await turn(place, client, other, "more secrets")
        await turn(place, client, shared, "more words")
        await until(lambda: notified(guest, "_antiphon/sessions/changed"))
        assert b"secret" not in b"".join(guest.frames)
        (row,) = {each["session"]["sessionId"] for each in notified(guest, "_antiphon/sessions/changed")}
        assert row == shared


# History in pieces.


async def events(client: RawClient, session: str, before: int, limit: int) -> tuple[int, list[Any]]:
    found = await client.request("_antiphon/session/read", {"sessionId": session, "before": before, "limit": limit})
    return found["after"], found["events"]


def number_of(event: dict[str, Any]) -> int:
    params = event["params"]
    number: int = params.get("number") or params["_meta"]["antiphon"]["number"]
    return number


async def test_a_client_attaches_before_the_last_turns_and_reads_the_rest_backwards(tmp_path: Path) -> None:
    async with opened(tmp_path) as (place, client, session):
        for each in range(6):
            await turn(place, client, session, f"prompt {each}", "a", "b")  # T P a b E
        other = await place.client(numbers=True)
        state = await other.request("_antiphon/session/attach", {"sessionId": session, "last": 7})
        assert (state["number"], state["after"], state["queue"]) == (30, 20, [])
        await until(lambda: len(other.messages) == 12)
        assert [number_of(each) for each in other.messages[2:]] == list(range(21, 31))
        after, found = await events(other, session, 21, 7)
        assert after == 10 and [number_of(each) for each in found] == [11, 12, 14, 15, 16, 17, 19, 20], "merged"
        assert found[2]["params"]["update"]["content"]["text"] == "ab"
        after, found = await events(other, session, 11, 100)
        assert after == 0 and number_of(found[0]) == 1 and await events(other, session, 1, 100) == (0, [])
        assert [each["method"] for each in found[:2]] == ["_antiphon/session/turn_started", "session/update"]
        assert found[-1]["method"] == "_antiphon/session/turn_ended" and found[-1]["params"]["from"] == "alice"


async def test_a_client_that_attaches_before_the_last_turns_knows_what_earlier_ones_have_set(tmp_path: Path) -> None:
    steps = [{"content": "look", "priority": "high", "status": "pending"}]
    command = {"name": "help", "description": "what there is"}
    usage = {"sessionUpdate": "usage_update", "used": 1, "size": 2}
    async with opened(tmp_path) as (place, client, session):
        state = await client.request("_antiphon/session/attach", {"sessionId": session, "last": 1})
        assert [state[name] for name in ("commands", "plan", "usage", "title")] == [None, None, None, None]
        for update in (
            {"sessionUpdate": "available_commands_update", "availableCommands": [command]},
            {"sessionUpdate": "plan", "entries": [{**steps[0], "content": "x" * 100_000}]},
            {"sessionUpdate": "plan", "entries": steps},
            usage,
            {"sessionUpdate": "session_info_update", "title": "A title"},
        ):
            place.agent.notify("session/update", {"sessionId": session, "update": update})
        for each in range(3):
            await turn(place, client, session, f"prompt {each}", "a")
        other = await place.client(numbers=True)
        state = await other.request("_antiphon/session/attach", {"sessionId": session, "last": 1})
        assert state["after"] > 5
        assert [state[name] for name in ("commands", "plan", "usage", "title")] == [[command], steps, usage, "A title"]
        place.agent.notify(
            "session/update",
            {
                "sessionId": session,
                "update": {"sessionUpdate": "plan", "entries": [{**steps[0], "content": "x" * 100_000}]},
            },
        )
        await turn(place, client, session, "more", "a")
        state = await other.request("_antiphon/session/attach", {"sessionId": session, "last": 1})
        assert state["plan"] is None, "too long to be kept beside the events"


async def test_methods_of_the_extension_need_not_wait_until_the_agent_has_started(tmp_path: Path) -> None:
    async with opened(tmp_path) as (place, client, session):
        other = RawClient(place.hub)
        place.clients.append(other)
        params = {"protocolVersion": 1, "clientCapabilities": {}, "_meta": {"antiphon": {"numbers": True}}}
        first = other.begin("initialize", params)
        attached = other.begin("_antiphon/session/attach", {"sessionId": session, "after": 0})
        state = await other.response(attached)
        assert state["result"]["number"] == 0
        await other.response(first)
        await turn(place, client, session, "hello", "a")
        await until(lambda: len(other.messages) > 5)
        assert [number_of(each) for each in other.messages if "method" in each][:3] == [1, 2, 3], "numbers are on"


async def test_a_turn_that_is_longer_than_what_is_asked_for_is_cut(tmp_path: Path) -> None:
    async with opened(tmp_path) as (place, client, session):
        await turn(place, client, session, "go", *map(str, range(100)))
        after, found = await events(client, session, 1000, 10)
        assert after == 93 and number_of(found[0]) == 102


async def test_events_have_the_same_time_live_and_from_the_journal(tmp_path: Path) -> None:
    async with opened(tmp_path) as (place, client, session):
        asked = client.prompt(session, "hello")
        await place.agent.got("session/prompt")
        update = {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "…"}, "time": 5}
        ours = {"antiphon": {"time": 7, "mine": 1}}
        place.agent.notify("session/update", {"sessionId": session, "update": update, "_meta": ours})
        place.agent.say(session, "world")
        await end(place)
        ended = await client.response(asked)
        other = await place.client(numbers=True)
        await attach(other, session)
        await until(lambda: len(other.messages) == 7)

        def times(found: RawClient) -> dict[int, float]:
            parts = [each.get("params") or each.get("result") for each in found.messages]
            marks = [part if "number" in part else part.get("_meta", {}).get("antiphon", {}) for part in parts if part]
            return {mark["number"]: mark["time"] for mark in marks if "time" in mark}

        assert times(client) == times(other) and [*times(client)] == [1, 2, 3, 4, 5]
        assert ended["result"]["_meta"]["antiphon"]["time"] == times(other)[5] > 1_600_000_000
        assert b'"mine":1' in b"".join(other.frames) and b'"time":7' not in b"".join(other.frames)
        _, found = await events(other, session, 6, 10)
        assert [each["params"].get("time") or each["params"]["_meta"]["antiphon"]["time"] for each in found] == [
            *times(other).values()
        ]


# Prompts that wait.


async def test_clients_see_the_prompts_that_wait(tmp_path: Path) -> None:
    async with opened(tmp_path) as (place, client, session):
        other = await place.client(numbers=True)
        await attach(other, session)
        client.prompt(session, "one")
        await place.agent.got("session/prompt")
        meta = {"antiphon": {"prompt": "p2"}}
        second = {"sessionId": session, "prompt": [{"type": "text", "text": "two"}], "_meta": meta}
        client.begin("session/prompt", second)
        other.prompt(session, "three")
        await until(lambda: len((notified(other, "_antiphon/session/queue") or [{"queue": []}])[-1]["queue"]) == 2)
        queue = notified(client, "_antiphon/session/queue")[-1]["queue"]
        assert queue[0] == {"prompt": "p2", "from": "alice", "text": "two"} and queue[1]["text"] == "three"
        assert (await attach(await place.client(numbers=True), session))["queue"] == queue
        for count in (1, 2, 3):
            await end(place, count)
        await until(lambda: notified(other, "_antiphon/session/queue")[-1]["queue"] == [])
        assert len(notified(other, "_antiphon/session/queue")) == 4, "one for each change"


# The search.


async def matches(client: RawClient, query: str) -> list[Any]:
    found: list[Any] = (await client.request("_antiphon/sessions/search", {"query": query}))["matches"]
    return found


async def test_messages_are_found_by_their_words(tmp_path: Path) -> None:
    async with opened(tmp_path) as (place, client, session):
        long = "x " * 300
        await turn(place, client, session, "Where is the Straße?", long, "It is behind ", "the old mill. ", long)
        client.frames.clear()
        client._decoded.clear()
        while not (found := await matches(client, "OLD mill")):
            await idle()
        (match,) = found
        assert (match["sessionId"], match["from"], match["agent"], match["number"]) == (session, "agent", "demo", 3)
        assert "behind the old mill" in match["text"] and match["text"][0] == match["text"][-1] == "…"
        assert len(match["text"]) < 300
        (match,) = await matches(client, "straße where")
        assert (match["from"], match["text"], match["number"]) == ("user", "Where is the Straße?", 2)
        assert await matches(client, "old street") == await matches(client, "  ") == []


async def test_what_an_earlier_gateway_stored_is_found_and_is_gone_with_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "PAUSE", 3600.0)
    async with opened(tmp_path) as (place, client, session):
        await turn(place, client, session, "hello", "a needle in the hay")
        assert await matches(client, "needle") == []
    async with stored_stage(tmp_path, agent=place.agent) as place:
        client = await place.client()
        while not await matches(client, "needle"):
            await idle()
        await client.request("session/delete", {"sessionId": session})
        assert await matches(client, "needle") == []
        await place.data.database.flush()
        left = b"".join(path.read_bytes() for path in (tmp_path / "data").iterdir())
        assert b"needle" not in left
