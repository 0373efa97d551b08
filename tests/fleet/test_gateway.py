"""A gateway of a fleet over real workers and a simulated broker: sessions, lists, tokens, and what it says when something is away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import AcpError
from antiphon.fleet.gateway.program import FleetAddress, open_fleet_gateway
from antiphon.fleet.membership import Members
from antiphon.fleet.rows import FleetRows
from antiphon.gateway.base import AccessRole, Principal
from antiphon.gateway.data import GatewayData, Retention
from antiphon.gateway.server.admin import Admin, AdminRequest
from antiphon.gateway.server.links import PageLinks
from antiphon.gateway.server.program import OpenGateway, ServeOptions
from tests.fleet.test_router import ATTACH, load, notices
from tests.fleet.workers import INTERVAL, LEASE, PlayedWorker, WorkerFleet, worker_fleet
from tests.gateway.peers import DRIVER, RawClient, ScriptedAgent
from tests.gateway.second import SecondClient
from tests.gateway.test_attachments import numbers
from tests.limits import limit
from tests.waits import idle, until

ADMIN = Principal("root", AccessRole.ADMIN)


class Gateways:
    """Gateways of a fleet, and their clients."""

    def __init__(self, fleet: WorkerFleet, stack: AsyncExitStack) -> None:
        self.fleet = fleet
        self._stack = stack
        self.clients: list[RawClient] = []
        self.opened: list[OpenGateway] = []
        self.brokers: list[Any] = []

    async def gateway(self, name: str = "gateway", **options: Any) -> OpenGateway:
        """Start another gateway."""
        broker = self.fleet.server.connect(name)
        stack = await self._stack.enter_async_context(AsyncExitStack())
        stack.push_async_callback(broker.close)
        address = FleetAddress(("nats://simulated",), lease=LEASE, interval=INTERVAL)
        chosen = ServeOptions(data=self.fleet.directory / "data" / name, **options)
        found = await open_fleet_gateway(broker, address, chosen, stack)
        stack.push_async_callback(found.hub.close)
        self.opened.append(found)
        self.brokers.append(broker)
        return found

    async def client(
        self, gateway: OpenGateway, principal: Principal = DRIVER, *, numbers: bool = False, agent: str = "demo"
    ) -> RawClient:
        hub: Any = gateway.hub
        client = RawClient(hub, principal, agent)
        self.clients.append(client)
        await client.initialize(numbers=numbers, session={"notices": {}})
        return client


def agent_named(name: str) -> ScriptedAgent:
    """An agent whose sessions have ids that no other one gives."""
    agent = ScriptedAgent()
    agent.answers["session/new"] = lambda params: {"sessionId": f"{name}-{len(agent.received('session/new'))}"}
    agent.answers["session/load"] = lambda params: {}
    return agent


@asynccontextmanager
async def gateways(directory: Path) -> AsyncIterator[Gateways]:
    (directory / "data").mkdir()
    async with asyncio.timeout(limit(120)), worker_fleet(directory) as fleet, AsyncExitStack() as stack:
        here = Gateways(fleet, stack)
        try:
            yield here
        finally:
            fleet.server.start()
            for broker in here.brokers:
                fleet.server.mend(broker)
            for client in here.clients:
                await client.leave()


async def one_turn(client: RawClient, worker: PlayedWorker, session: str, text: str, *said: str) -> None:
    asked = client.prompt(session, text)
    count = len(worker.agent.received("session/prompt")) + 1
    request = await worker.agent.got("session/prompt", count)
    worker.agent.say(session, *said)
    worker.agent.result(request["id"], {"stopReason": "end_turn"})
    assert (await client.response(asked))["result"]["stopReason"] == "end_turn"


async def test_a_session_of_one_gateway_is_loaded_and_followed_at_another(tmp_path: Path) -> None:
    async with gateways(tmp_path) as here:
        worker = await here.fleet.start("one", agent=agent_named("one"))
        first, second = await here.gateway("first"), await here.gateway("second")
        client = await here.client(first)
        session = await client.new(tmp_path)
        await one_turn(client, worker, session, "work", "a", "b")
        other = await here.client(second, numbers=True)
        await other.request(ATTACH, {"sessionId": session, "after": 0})
        await until(lambda: other.texts == ["work", "a", "b"])
        await one_turn(other, worker, session, "more", "c")
        await until(lambda: client.texts == ["a", "b", "more", "c"])
        assert numbers(other) == [*range(1, 10)]


async def test_a_client_of_version_2_follows_a_session_from_worker_to_worker(tmp_path: Path) -> None:
    async with gateways(tmp_path) as here:
        one = await here.fleet.start("one", agent=agent_named("one"))
        gateway = await here.gateway()
        hub: Any = gateway.hub
        client, plain = SecondClient(hub, DRIVER), await here.client(gateway)
        here.clients.append(client)
        assert (await client.initialize())["protocolVersion"] == 2
        session = await client.new(tmp_path)
        await plain.request("session/resume", load(session, tmp_path))
        two = await here.fleet.start("two", agent=agent_named("two"))
        asked = client.prompt(session, "work")
        await one.agent.got("session/prompt")
        one.agent.say(session, "a", "b")
        await until(lambda: plain.texts == ["work", "a", "b"])
        here.fleet.server.cut(one.broker)
        await until(lambda: client.ends)
        (ended,) = [each for each in client.updates if each.get("state") == "idle"]
        assert ended["stopReason"] == "error" and "interrupted" in ended["error"]["message"]
        await one_turn(plain, two, session, "more", "c")
        await until(lambda: len(client.ends) == 2)
        assert client.states == ["running", "idle error", "running", "idle end_turn"]
        said = {text: key for key, text in client.transcript.items()}
        assert [*said] == ["work", "ab", "more", "c"], "each message once, whichever worker has sent it"
        assert said["work"] == ("user_message", (await client.response(asked))["result"]["messageId"])
        late = SecondClient(hub, DRIVER)
        here.clients.append(late)
        await late.initialize()
        await late.resume(session, tmp_path, replayFrom={"type": "start"})
        assert late.transcript == client.transcript


async def test_a_worker_that_is_cut_off_loses_its_session_to_another_and_the_client_sees_each_event_once(
    tmp_path: Path,
) -> None:
    async with gateways(tmp_path) as here:
        gateway = await here.gateway()
        one = await here.fleet.start("one", agent=agent_named("one"))
        client = await here.client(gateway, numbers=True)
        plain = await here.client(gateway)
        session = await client.new(tmp_path)
        await plain.request("session/resume", load(session, tmp_path))
        two = await here.fleet.start("two", agent=agent_named("two"))
        asked = client.prompt(session, "work")
        await one.agent.got("session/prompt")
        one.agent.say(session, "half")
        await until(lambda: "half" in client.texts and "half" in plain.texts)
        here.fleet.server.cut(one.broker)
        error = (await client.response(asked))["error"]
        assert error["data"]["antiphon"] == {"interrupted": True}
        await until(lambda: notices(client, "moved"))
        await one_turn(client, two, session, "again", "whole")
        here.fleet.server.mend(one.broker)
        one.agent.say(session, "from the dead")
        await idle()
        await one_turn(plain, two, session, "on", "and on")
        await until(lambda: "and on" in client.texts)
        assert client.texts == ["work", "half", "again", "whole", "on", "and on"]
        assert numbers(client) == [*range(1, numbers(client)[-1] + 1)]
        assert plain.texts == ["work", "half", "again", "whole", "and on"]


async def test_sessions_that_are_opened_at_once_go_to_all_machines_that_have_slots(tmp_path: Path) -> None:
    async with gateways(tmp_path) as here:
        gateway, other = await here.gateway("first"), await here.gateway("second")
        for name in ("one", "two", "three"):
            await here.fleet.start(name, agent=agent_named(name), host=name, slots=2)
        clients = [await here.client(gateway), await here.client(other)]
        params = {"cwd": str(tmp_path), "mcpServers": []}
        asked = [(client, client.begin("session/new", params)) for client in clients * 3]
        found = [(await client.response(id))["result"]["sessionId"] for client, id in asked]
        assert sorted(found) == ["one-1", "one-2", "three-1", "three-2", "two-1", "two-2"]
        refused = (await clients[0].response(clients[0].begin("session/new", params)))["error"]
        assert "all slots are taken" in refused["message"] and refused["data"]["hint"]


async def test_lists_show_what_runs_and_waits_at_all_workers(tmp_path: Path) -> None:
    async with gateways(tmp_path) as here:
        gateway = await here.gateway()
        workers = [await here.fleet.start(name, agent=agent_named(name)) for name in ("one", "two")]
        client = await here.client(gateway)
        follower = await here.client(await here.gateway("second"))
        await follower.request("_antiphon/sessions/follow", {})
        session = await client.new(tmp_path)
        worker = next(each for each in workers if each.session(session) is not None)
        client.prompt(session, "do it")
        request = await worker.agent.got("session/prompt")
        worker.agent.ask(7, session)

        def shown() -> list[tuple[str, int, str]]:
            changed = [each for each in follower.messages if each.get("method") == "_antiphon/sessions/changed"]
            rows = [each["params"]["session"] for each in changed]
            return [(row["state"], row["waiting"], row["text"]) for row in rows if row["sessionId"] == session]

        await until(lambda: ("waiting", 1, "do it") in shown())
        listed = (await follower.request("_antiphon/sessions/list", {}))["sessions"]
        assert [(each["sessionId"], each["state"], each["owner"]) for each in listed] == [(session, "waiting", "alice")]
        client.choose(await client.asked())
        worker.agent.say(session, "a needle in it")
        worker.agent.result(request["id"], {"stopReason": "end_turn"})
        await until(lambda: shown()[-1][0] == "idle")
        await until_found(follower, "needle", session)
        await client.request("session/delete", {"sessionId": session})
        removed = "_antiphon/sessions/removed"
        await until(lambda: any(each.get("method") == removed for each in follower.messages))
        assert (await follower.request("_antiphon/sessions/list", {}))["sessions"] == []


async def until_found(client: RawClient, word: str, session: str) -> None:
    """Search until a word is found: messages are read for it a while after they were stored."""
    while True:
        found = (await client.request("_antiphon/sessions/search", {"query": word}))["matches"]
        if found:
            assert [each["sessionId"] for each in found] == [session]
            return
        await asyncio.sleep(0.05)


async def test_the_page_sees_the_agents_the_roots_and_the_directories_of_all_workers(tmp_path: Path) -> None:
    for name in ("a/x", "b/y"):
        (tmp_path / name).mkdir(parents=True)
    async with gateways(tmp_path) as here:
        gateway = await here.gateway()
        await here.fleet.start("one", agent=agent_named("one"), host="first", roots=(str(tmp_path / "a"),))
        await here.fleet.start("two", agent=agent_named("two"), host="second", roots=(str(tmp_path / "b"),))
        hub: Any = gateway.hub
        await until(lambda: len(hub.files.roots) == 2)
        client = await here.client(gateway)
        info = await client.request("_antiphon/gateway/info", {})
        assert info["roots"] == [str(tmp_path / "a"), str(tmp_path / "b")]
        assert [(each["name"], each["default"], each["state"]) for each in info["agents"]] == [("demo", True, "parked")]
        top = await client.request("_antiphon/gateway/directories", {})
        assert top == {"path": "", "parent": None, "directories": info["roots"]}
        inner = await client.request("_antiphon/gateway/directories", {"path": str(tmp_path / "b")})
        assert inner == {"path": str(tmp_path / "b"), "parent": "", "directories": ["y"]}
        error = await client.refused("_antiphon/gateway/directories", {"path": "/etc"})
        assert "below no root" in error["message"] and str(tmp_path / "a") in error["data"]["hint"]
        sessions = [await client.new(tmp_path / name) for name in ("a/x", "b/y")]
        assert sessions == ["one-1", "two-1"]


async def test_a_gateway_without_its_broker_says_so_and_goes_on_when_it_is_back(tmp_path: Path) -> None:
    async with gateways(tmp_path) as here:
        gateway = await here.gateway()
        worker = await here.fleet.start("one", agent=agent_named("one"))
        client = await here.client(gateway)
        session = await client.new(tmp_path)
        here.fleet.server.cut(here.brokers[0])
        assert gateway.hub.health == "the broker is away"
        listed = await client.request("_antiphon/sessions/list", {})
        assert [each["sessionId"] for each in listed["sessions"]] == [session], "the copy is here"
        asked = client.prompt(session, "work")
        worker.agent.say(session, "meanwhile")
        here.fleet.server.mend(here.brokers[0])
        request = await worker.agent.got("session/prompt")
        worker.agent.result(request["id"], {"stopReason": "end_turn"})
        assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
        assert client.texts == ["meanwhile"]
        await until(lambda: gateway.hub.health == "ok")


async def test_a_token_that_is_revoked_at_one_gateway_drops_its_prompts_at_the_worker(tmp_path: Path) -> None:
    async with gateways(tmp_path) as here:
        gateway = await here.gateway()
        worker = await here.fleet.start("one", agent=agent_named("one"))
        token, _ = await gateway.data.tokens.create("token", "visitor", AccessRole.DRIVE)
        owner = await here.client(gateway)
        session = await owner.new(tmp_path)
        visitor = await here.client(gateway, token.principal)
        await visitor.request("session/load", load(session, tmp_path))
        owner.prompt(session, "first")
        await worker.agent.got("session/prompt")
        waiting = visitor.prompt(session, "second")
        await until(lambda: worker.session(session).turns.queued == 1)
        gateway.data.tokens.revoked = lambda token: gateway.hub.drop_prompts(str(token.id), "the token was revoked")
        await gateway.data.tokens.revoke(token.id)
        assert "the token was revoked" in (await visitor.response(waiting))["error"]["message"]


async def test_an_admin_sees_the_fleet_and_deletes_a_session_with_its_shares(tmp_path: Path) -> None:
    async with gateways(tmp_path) as here:
        gateway, other = await here.gateway("first"), await here.gateway("second")
        admin = Admin(gateway.data, gateway.hub)
        gateway.hub.links = PageLinks(admin, gateway.data.tokens, "https://agents.example.org")
        worker = await here.fleet.start("one", agent=agent_named("one"))
        client = await here.client(gateway, ADMIN)
        session = await client.new(tmp_path)
        await one_turn(client, worker, session, "work", "done")
        status = await admin.answer(AdminRequest("status"), ADMIN)
        assert status["workers"] == 1 and status["health"] == "ok" and status["stored_sessions"] == 1
        assert [each["workers"] for each in status["agents"]] == [[worker.name]]  # type: ignore[attr-defined]
        shared = await client.request("_antiphon/session/share", {"sessionId": session, "role": "watch"})
        assert shared["url"].startswith("https://agents.example.org/#token=")
        assert [token.kind for token in other.data.tokens.list("share")] == ["share"]
        await admin.answer(AdminRequest("delete session", sessions=[session]), ADMIN)
        await until(lambda: worker.session(session) is None)
        await until(lambda: not other.data.tokens.list("share") and not gateway.data.tokens.list("share"))
        assert "no session" in (await client.refused(ATTACH, {"sessionId": session}))["message"]


async def test_old_sessions_are_deleted_for_the_whole_fleet_but_none_that_is_open(tmp_path: Path) -> None:
    async with gateways(tmp_path) as here:
        gateway, other = await here.gateway("first", retention=Retention(session_days=1)), await here.gateway("second")
        worker = await here.fleet.start("one", agent=agent_named("one"))
        client = await here.client(gateway)
        open_one, closed = [await client.new(tmp_path) for _ in range(2)]
        for session in (open_one, closed):
            await one_turn(client, worker, session, "work", "done")
        await client.request("session/close", {"sessionId": closed})
        rows: Any = gateway.hub
        row = await rows.rows.find("demo", closed)
        assert await gateway.prune(row.updated + 3600) == []
        assert await gateway.prune(row.updated + 3 * 24 * 3600) == [row.key]
        page = await here.client(other)
        await until(lambda: page.begin("_antiphon/sessions/list", {}) and [open_one] in lists(page))


def lists(client: RawClient) -> list[list[str]]:
    """The ids in each list of sessions that a client got."""
    results = [each.get("result") or {} for each in client.messages]
    return [[row["sessionId"] for row in each["sessions"]] for each in results if "sessions" in each]


async def test_a_turn_that_ends_while_a_gateway_starts_is_archived_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateways(tmp_path) as here:
        gateway = await here.gateway("first")
        worker = await here.fleet.start("one", agent=agent_named("one"))
        client = await here.client(gateway)
        session = await client.new(tmp_path)
        asked = client.prompt(session, "work")
        request = await worker.agent.got("session/prompt")
        known = Members.known

        async def end_the_turn(members: Members) -> None:
            await known(members)
            worker.agent.result(request["id"], {"stopReason": "end_turn"})
            await client.response(asked)
            row = await worker.worker.rows.find("demo", session)
            assert row is not None
            rows: Any = seen[0]
            await until_row(rows, row.key)

        seen: list[FleetRows] = []
        started = FleetRows.start

        async def start(rows: FleetRows) -> None:
            seen.append(rows)
            await started(rows)

        monkeypatch.setattr(FleetRows, "start", start)
        monkeypatch.setattr(Members, "known", end_the_turn)
        late = await here.gateway("late")
        row = await worker.worker.rows.find("demo", session)
        assert row is not None
        length = await worker.worker.journal.length(row.key)
        async with asyncio.timeout(limit()):
            while await late.data.journal.length(row.key) < length:  # noqa: ASYNC110 - what is copied has no event
                await asyncio.sleep(0.01)


async def until_row(rows: FleetRows, key: str) -> None:
    """Wait until a copy has a row in which no turn runs."""
    async with asyncio.timeout(limit()):
        while (found := await rows.get(key)) is None or found.turn:  # noqa: ASYNC110 - a copy has no event
            await asyncio.sleep(0.01)


async def test_the_directory_of_a_gateway_in_no_fleet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    async with GatewayData.open(tmp_path / "data" / "gateway") as data:
        await data.create("demo", "s1", str(tmp_path))
    (tmp_path / "data").rename(tmp_path / "kept")
    async with gateways(tmp_path) as here:
        (tmp_path / "data").rmdir()
        (tmp_path / "kept").rename(tmp_path / "data")
        with pytest.raises(AcpError, match="in no fleet") as caught:
            await here.gateway()
        assert "--data" in caught.value.hint


async def test_a_turn_at_a_worker_that_is_about_to_end_is_watched_to_its_end(tmp_path: Path) -> None:
    async with gateways(tmp_path) as here:
        gateway = await here.gateway()
        one = await here.fleet.start("one", agent=agent_named("one"))
        client = await here.client(gateway)
        session, idle_one = [await client.new(tmp_path) for _ in range(2)]
        two = await here.fleet.start("two", agent=agent_named("two"))
        asked = client.prompt(session, "work")
        request = await one.agent.got("session/prompt")
        draining = asyncio.ensure_future(one.worker.drain())
        await until(lambda: one.worker.hub.is_draining and one.session(idle_one) is None)
        late = await here.client(gateway)
        await late.request("session/load", load(session, tmp_path))
        one.agent.say(session, "on")
        await until(lambda: late.texts == ["work", "on"])
        await late.request("session/load", load(idle_one, tmp_path))
        assert two.session(idle_one) is not None, "what it has handed over is not taken back"
        one.agent.result(request["id"], {"stopReason": "end_turn"})
        assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
        await draining
        await one_turn(late, two, session, "more", "and on")
        await until(lambda: client.texts[-2:] == ["more", "and on"])


async def test_clients_go_on_at_another_gateway_when_theirs_ends(tmp_path: Path) -> None:
    async with gateways(tmp_path) as here:
        first, second = await here.gateway("first"), await here.gateway("second")
        worker = await here.fleet.start("one", agent=agent_named("one"))
        client = await here.client(first, numbers=True)
        session = await client.new(tmp_path)
        client.prompt(session, "work")
        request = await worker.agent.got("session/prompt")
        worker.agent.say(session, "one")
        await until(lambda: client.texts == ["work", "one"])
        await first.hub.close()
        assert client.is_lost
        worker.agent.say(session, "two")
        worker.agent.result(request["id"], {"stopReason": "end_turn"})
        again = await here.client(second, numbers=True)
        await again.request(ATTACH, {"sessionId": session, "after": 3})
        await until(lambda: notices(again, "turn_ended"))
        assert again.texts == ["two"] and notices(again, "turn_ended")[0]["result"] == {"stopReason": "end_turn"}
