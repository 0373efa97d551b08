"""A client of a gateway in a fleet sees one agent: its sessions are at several workers, move between them, and lose nothing."""

from pathlib import Path
from typing import Any

import pytest

from antiphon.fleet.gateway import router
from antiphon.fleet.owner import Hello
from antiphon.gateway.base import AccessRole, Principal
from antiphon.transports.base import Transport
from tests.fleet.hubs import MemoryFleet, fleet
from tests.gateway.peers import RawClient
from tests.gateway.test_attachments import numbers
from tests.gateway.test_turns import end
from tests.waits import idle, until

ATTACH = "_antiphon/session/attach"
WATCHER = Principal("carol", AccessRole.WATCH)


def load(session: str, cwd: Path) -> dict[str, object]:
    return {"sessionId": session, "cwd": str(cwd), "mcpServers": []}


def worker_of(here: MemoryFleet, session: str) -> Any:
    """The worker that owns a session."""
    return here.workers[here.journal.owners[here.key(session)]]


def notices(client: RawClient, name: str) -> list[dict[str, Any]]:
    return [each["params"] for each in client.messages if each.get("method") == f"_antiphon/session/{name}"]


# One worker, as on one machine.


async def test_a_prompt_reaches_the_agent_of_a_worker_and_its_response_comes_behind_the_updates(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one") as here:
        client = await here.client()
        session = await client.new(tmp_path)
        asked = client.prompt(session, "work")
        agent = here.workers["one"].agent
        await agent.got("session/prompt")
        agent.say(session, "a", "b")
        await end(here.workers["one"])
        assert (await client.response(asked))["result"] == {"stopReason": "end_turn"}
        assert client.texts == ["a", "b"]
        assert not any(b'"antiphon":{"number"' in frame for frame in client.frames)


async def test_the_answer_to_a_greeting_has_what_the_gateway_says_of_the_whole_fleet(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    here = MemoryFleet()
    await here.hub.start()
    async with here.worker("one", tmp_path / "a"), here.worker("two", tmp_path / "b"):
        client = here.raw_client()
        found = await client.initialize(numbers=True)
        about = found["_meta"]["antiphon"]
        assert about["roots"] == [str(tmp_path / "a"), str(tmp_path / "b")]
        assert about["numbers"] is True and about["name"] == "alice"
        plain = here.raw_client()
        assert (await plain.initialize())["_meta"]["antiphon"]["numbers"] is False
        await here.close()


async def test_a_permission_request_is_answered_and_a_turn_is_cancelled(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one") as here:
        client = await here.client()
        session = await client.new(tmp_path)
        asked = client.prompt(session, "work")
        agent = here.workers["one"].agent
        await agent.got("session/prompt")
        agent.ask(5, session)
        client.choose(await client.asked())
        await until(lambda: any(b'"id":5,"result"' in line for line in agent.lines))
        client.notify("session/cancel", {"sessionId": session})
        await agent.got("session/cancel")
        await end(here.workers["one"], reason="cancelled")
        assert (await client.response(asked))["result"]["stopReason"] == "cancelled"


async def test_a_prompt_is_cancelled_by_the_id_of_its_request(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one") as here:
        client = await here.client()
        session = await client.new(tmp_path)
        asked = client.prompt(session, "work")
        agent = here.workers["one"].agent
        id = (await agent.got("session/prompt"))["id"]
        client.notify("$/cancel_request", {"requestId": asked})
        assert (await agent.got("$/cancel_request"))["params"] == {"requestId": id}
        await end(here.workers["one"], reason="cancelled")
        await client.response(asked)


async def test_a_client_without_a_greeting_is_refused_and_a_second_one_too(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one") as here:
        client = here.raw_client()
        assert "initialize" in (await client.refused("session/list", {}))["message"]
        await client.initialize()
        again = await client.refused("initialize", {"protocolVersion": 1})
        assert again["message"] == "this connection has been initialized"


async def test_a_request_about_no_session_is_answered_by_any_worker(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one", "two") as here:
        for worker in here.workers.values():
            worker.agent.answers["_own/thing"] = lambda params: {"found": params["wanted"]}
        client = await here.client()
        assert await client.request("_own/thing", {"wanted": 7}) == {"found": 7}
        assert await client.request("session/list", {}) == {"sessions": []}


async def test_a_worker_checks_what_the_principal_may_do(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one") as here:
        client = await here.client()
        session = await client.new(tmp_path)
        watcher = await here.client(WATCHER)
        await watcher.request("session/load", load(session, tmp_path))
        assert "only watch" in (await watcher.response(watcher.prompt(session, "no")))["error"]["message"]
        assert "open no session" in (await watcher.refused("session/new", {"cwd": str(tmp_path)}))["message"]
        share = Principal("guest", AccessRole.WATCH, frozenset({here.key(session)}))
        guest = await here.client(share)
        await guest.request("session/load", load(session, tmp_path))
        other = await client.new(tmp_path)
        assert "no session" in (await guest.refused("session/load", load(other, tmp_path)))["message"]


async def test_a_session_that_is_nowhere_is_unknown_and_leaves_no_link(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one") as here:
        client = await here.client()
        for method, params in (
            ("session/resume", {"sessionId": "nothing", "cwd": str(tmp_path)}),
            (ATTACH, {"sessionId": "nothing"}),
            ("_antiphon/session/read", {"sessionId": "nothing", "before": 1}),
        ):
            assert "no session `nothing`" in (await client.refused(method, params))["message"]
        await until(lambda: here.hub.counts()["links"] == 1)


async def test_a_page_that_asks_whether_the_connection_lives_gets_an_answer_without_a_link(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one") as here:
        client = await here.client(numbers=True)
        error = await client.refused("_antiphon/session/detach", {"sessionId": ""})
        assert error["code"] == -32002 and here.hub.counts()["links"] == 1


async def test_a_session_that_was_closed_is_loaded_before_it_is_used_again(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one") as here:
        client = await here.client()
        session = await client.new(tmp_path)
        await client.request("session/close", {"sessionId": session})
        error = (await client.response(client.prompt(session, "no")))["error"]
        assert error["message"] == f"session `{session}` is closed"
        await client.request("session/load", load(session, tmp_path))
        asked = client.prompt(session, "yes")
        await end(here.workers["one"])
        assert "result" in await client.response(asked)


async def test_a_fork_has_a_link_of_its_own_and_begins_where_its_source_is(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one", "two") as here:
        client = await here.client()
        session = await client.new(tmp_path)
        worker = worker_of(here, session)
        worker.agent.answers["session/fork"] = lambda params: {"sessionId": "forked"}
        found = await client.request("session/fork", load(session, tmp_path))
        assert found["sessionId"] == "forked" and worker_of(here, "forked") is worker
        worker.agent.say("forked", "in the fork")
        worker.agent.say(session, "in the source")
        await until(lambda: sorted(client.texts) == ["in the fork", "in the source"])
        assert here.hub.counts()["links"] == 3


# Several workers.


async def test_two_sessions_of_a_client_run_at_two_workers_at_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    here = MemoryFleet()
    await here.hub.start()
    async with here.worker("one", tmp_path / "a") as one, here.worker("two", tmp_path / "b") as two:
        client = await here.client()
        sessions = [await client.new(tmp_path / name) for name in ("a", "b")]
        assert [worker_of(here, each) for each in sessions] == [one, two]
        prompts = [client.prompt(each, f"in {each}") for each in sessions]
        for worker, session in zip((one, two), sessions, strict=True):
            await worker.agent.got("session/prompt")
            worker.agent.ask(1, session)
        await until(lambda: len(client.requests()) == 2)
        assert len({each["id"] for each in client.requests()}) == 2
        for request in client.requests():
            client.choose(request)
        for worker in (one, two):
            await until(lambda worker=worker: any(b"allow_once" in line for line in worker.agent.lines))  # type: ignore[misc]
            await end(worker)
        for asked in prompts:
            assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
        await here.close()


async def test_a_session_in_a_directory_that_no_worker_has_is_refused_at_once_with_the_reason(tmp_path: Path) -> None:
    async with fleet(tmp_path / "root", "one") as here:
        client = await here.client()
        error = await client.refused("session/new", {"cwd": str(tmp_path / "other"), "mcpServers": []})
        assert "has a root above" in error["message"] and "--root" in error["data"]["hint"]
        assert error["data"]["recoverable"] is True
        assert here.hub.counts()["links"] == 1


async def test_an_agent_that_no_worker_has_is_refused_with_a_sentence(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one") as here:
        client = here.raw_client(agent="other")
        error = await client.refused("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        assert "has the agent `other`" in error["message"] and error["data"]["hint"]
        info = await client.request("_antiphon/gateway/info", {})
        assert [each["name"] for each in info["agents"]] == ["demo"], "what needs no agent works"


async def test_a_client_at_another_gateway_loads_a_session_where_it_is(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one", "two") as here:
        first = await here.client()
        session = await first.new(tmp_path)
        worker = worker_of(here, session)
        worker.agent.say(session, "before")
        await until(lambda: first.texts == ["before"])
        second = await here.client()
        await second.request("session/load", load(session, tmp_path))
        worker.agent.say(session, "after")
        await until(lambda: second.texts == ["before", "after"] and first.texts == ["before", "after"])
        assert here.hellos[-1][0] == worker.name and here.hellos[-1][1].session == here.key(session)


# Sessions that move.


@pytest.mark.parametrize("wants_numbers", [False, True], ids=["without numbers", "with numbers"])
async def test_a_session_that_moves_while_a_turn_runs_loses_nothing_and_shows_nothing_twice(
    tmp_path: Path, wants_numbers: bool
) -> None:
    async with fleet(tmp_path, "one", "two") as here:
        client = await here.client(numbers=wants_numbers, session={"notices": {}})
        session = await client.new(tmp_path)
        one = worker_of(here, session)
        two = next(each for each in here.workers.values() if each is not one)
        asked = client.prompt(session, "work")
        await one.agent.got("session/prompt")
        one.agent.say(session, "one", "two")
        one.agent.ask(3, session)
        request = await client.asked()
        await here.move(here.key(session), two.name)
        error = (await client.response(asked))["error"]
        assert "interrupted" in error["message"] and error["data"]["antiphon"] == {"interrupted": True}
        await until(lambda: any(each.get("method") == "$/cancel_request" for each in client.messages))
        cancelled = [each["params"] for each in client.messages if each.get("method") == "$/cancel_request"]
        assert cancelled == [{"requestId": request["id"]}]
        next_one = client.prompt(session, "again")
        await two.agent.got("session/prompt")
        two.agent.say(session, "three")
        await end(two)
        assert (await client.response(next_one))["result"]["stopReason"] == "end_turn"
        own = ["work", "one", "two", "again", "three"] if wants_numbers else ["one", "two", "three"]
        assert client.texts == own
        assert len(two.agent.received("session/prompt")) == 1
        if wants_numbers:
            assert numbers(client) == [*range(1, numbers(client)[-1] + 1)]
            assert len(notices(client, "moved")) == 1


async def test_a_prompt_that_waited_at_a_worker_that_is_gone_is_sent_to_the_next_one(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one", "two") as here:
        client = await here.client(numbers=True)
        session = await client.new(tmp_path)
        one = worker_of(here, session)
        two = next(each for each in here.workers.values() if each is not one)
        first, second = client.prompt(session, "first"), client.prompt(session, "second")
        await one.agent.got("session/prompt")
        await until(lambda: notices(client, "queue") and notices(client, "queue")[-1]["queue"])
        await here.move(here.key(session), two.name)
        assert "interrupted" in (await client.response(first))["error"]["message"]
        await end(two)
        assert (await client.response(second))["result"]["stopReason"] == "end_turn"
        assert two.agent.received("session/prompt")[0]["params"]["prompt"][-1]["text"] == "second"
        assert notices(client, "queue")[-1]["queue"] == []


async def test_a_worker_that_comes_back_writes_nothing_and_its_clients_are_gone(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one", "two") as here:
        client = await here.client(numbers=True)
        session = await client.new(tmp_path)
        one = worker_of(here, session)
        two = next(each for each in here.workers.values() if each is not one)
        client.prompt(session, "work")
        await one.agent.got("session/prompt")
        await here.move(here.key(session), two.name)
        await until(lambda: notices(client, "moved"))
        stored = len(here.journal.events[here.key(session)])
        one.is_alive = True
        one.agent.say(session, "from the dead")
        await idle()
        assert len(here.journal.events[here.key(session)]) == stored
        assert "from the dead" not in client.texts


async def test_a_session_whose_worker_ends_in_order_goes_on_at_another(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one", "two") as here:
        client = await here.client()
        session = await client.new(tmp_path)
        one = worker_of(here, session)
        two = next(each for each in here.workers.values() if each is not one)
        one.agent.say(session, "one")
        await until(lambda: client.texts == ["one"])
        await one.hub.drain(0)
        asked = client.prompt(session, "work")
        await two.agent.got("session/prompt")
        two.agent.say(session, "two")
        await end(two)
        assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
        assert client.texts == ["one", "two"]


async def test_a_connection_to_a_worker_that_is_cut_is_opened_again_and_nothing_is_lost(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one") as here:
        client = await here.client()
        session = await client.new(tmp_path)
        one = here.workers["one"]
        asked = client.prompt(session, "work")
        await one.agent.got("session/prompt")
        for text in "abc":
            one.agent.say(session, text)
            await one.cut()
        await end(one)
        assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
        assert client.texts == ["a", "b", "c"]
        assert len(one.agent.received("session/prompt")) == 1


async def test_a_greeting_is_answered_once_though_its_worker_changes(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one", "two") as here:
        client = await here.client()
        home = here.workers[here.hellos[0][0]]
        other = next(each for each in here.workers.values() if each is not home)
        home.freeze()
        assert await client.request("session/list", {}) == {"sessions": []}
        assert here.hellos[-1][0] == other.name
        assert [each["id"] for each in client.messages] == [1, 2]


# Bounds.


async def test_a_prompt_waits_for_a_worker_that_is_not_reached(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one") as here:
        client = await here.client()
        session = await client.new(tmp_path)
        here.unreached.add("one")
        await here.workers["one"].cut()
        asked = client.prompt(session, "work")
        client.notify("session/cancel", {"sessionId": session})
        assert (await client.response(asked))["result"]["stopReason"] == "cancelled"
        again = client.prompt(session, "more")
        here.unreached.clear()
        await end(here.workers["one"])
        assert (await client.response(again))["result"]["stopReason"] == "end_turn"
        assert len(here.workers["one"].agent.received("session/prompt")) == 1


async def test_what_waits_for_workers_is_bounded_for_each_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "HELD", 1000)
    async with fleet(tmp_path, "one") as here:
        client = await here.client()
        session = await client.new(tmp_path)
        here.unreached.add("one")
        await here.workers["one"].cut()
        client.prompt(session, "x" * 2000)  # one waits however large it is
        error = (await client.response(client.prompt(session, "y")))["error"]
        assert "waits for workers" in error["message"] and error["data"]["recoverable"] is True
        here.unreached.clear()
        await here.workers["one"].agent.got("session/prompt")


async def test_a_client_has_a_limited_number_of_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router, "MAX_LINKS", 2)
    async with fleet(tmp_path, "one") as here:
        client = await here.client()
        first, _ = [await client.new(tmp_path) for _ in range(2)]
        error = await client.refused("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        assert "2 sessions open" in error["message"]
        await client.request("session/close", {"sessionId": first})
        await until(lambda: here.hub.counts()["links"] == 2)
        await client.new(tmp_path)


async def test_a_client_that_asks_for_many_sessions_at_once_connects_to_a_few_workers_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "OPENED_AT_ONCE", 2)
    async with fleet(tmp_path, "one") as here:
        client = await here.client()
        connect, under_way, most = here.hub.routes.connect, 0, 0

        async def counted(worker: str, hello: Hello) -> Transport:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            try:
                return await connect(worker, hello)
            finally:
                under_way -= 1

        monkeypatch.setattr(here.hub.routes, "connect", counted)
        asked = [client.begin(ATTACH, {"sessionId": f"nothing-{number}"}) for number in range(20)]
        for id in asked:
            assert "no session" in (await client.response(id))["error"]["message"]
        assert most == 2


async def test_a_client_that_does_not_read_stops_its_links(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one") as here:
        client = await here.client()
        session = await client.new(tmp_path)
        worker = here.workers["one"]
        client.transport.pause()
        texts = [f"{each:06}" + "x" * 5000 for each in range(2000)]
        at_worker = worker.hub.agents["demo"].sessions[session.encode()]
        for begin in range(0, len(texts), 20):  # each commit is one block of lines
            worker.agent.say(session, *texts[begin : begin + 20])
            await until(lambda begin=begin: at_worker.last == begin + 20)  # type: ignore[misc]
        routed = next(iter(here.hub._clients))
        await until(lambda: routed.transport.unsent > router.PAUSE)
        await idle()
        assert routed.transport.unsent < 3_000_000
        client.transport.resume()
        await until(lambda: len(client.texts) == len(texts))
        assert client.texts == texts


async def test_a_client_that_leaves_closes_its_links_and_its_prompt_goes_on(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one") as here:
        client = await here.client()
        session = await client.new(tmp_path)
        client.prompt(session, "work")
        worker = here.workers["one"]
        await worker.agent.got("session/prompt")
        await client.leave()
        await until(lambda: worker.hub.counts()["clients"] == 0)
        assert worker.hub.counts()["turns"] == 1 and here.hub.counts()["clients"] == 0
        worker.agent.say(session, "on")
        await end(worker)
        again = await here.client()
        await again.request("session/load", load(session, tmp_path))
        assert again.texts == ["work", "on"]


# The words of another page.


async def test_a_client_that_knows_the_other_page_alone_is_understood(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one") as here:
        client = here.raw_client()
        capabilities = {"prompt": {"image": False}, "mcp": {"transport": {"http": True}}}
        about = {"protocolVersion": 1, "clientInfo": {"name": "page"}, "clientCapabilities": capabilities}
        assert isinstance((await client.request("initialize", about)).get("authMethods", []), list)
        session = await client.new(tmp_path)
        content = [{"type": "text", "text": "work"}]
        asked = client.begin("session/prompt", {"sessionId": session, "content": content})
        agent = here.workers["one"].agent
        assert (await agent.got("session/prompt"))["params"]["prompt"] == content
        agent.say(session, "a", "b")
        agent.ask(1, session)
        request = (await client.asked())["params"]
        assert request["permissionId"] and request["title"] == "Do it" and request["kind"] == "other"
        client.answer((await client.asked())["id"], {"decision": "once"})
        await until(lambda: any(b'"optionId":"allow_once"' in line for line in agent.lines))
        await end(here.workers["one"])
        await client.response(asked)
        chunks = [
            each["params"].get("contentChunk") for each in client.messages if each.get("method") == "session/update"
        ]
        assert [(each["index"], each["delta"]) for each in chunks] == [(0, "a"), (1, "b")]


async def test_a_greeting_that_a_worker_refuses_because_it_ends_is_answered_by_another(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one", "two") as here:
        here.unreached.add("two")
        await here.workers["one"].hub.agents["demo"].close()
        client = here.raw_client()
        asked = client.begin("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        await until(lambda: any(name == "one" for name, _ in here.hellos))
        here.unreached.clear()
        assert "result" in await client.response(asked)
        assert here.hellos[-1][0] == "two"
