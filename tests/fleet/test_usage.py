"""Limits of a token hold for all workers of a fleet together, whichever gateways its clients come to."""

from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from antiphon.fleet.worker.usage import ALL_USES
from antiphon.gateway.base import AccessRole, Principal
from tests.fleet.test_gateway import Gateways, agent_named, gateways
from tests.fleet.workers import PlayedWorker
from tests.gateway.peers import QUICK, RawClient, ScriptedAgent
from tests.waits import until

ANN: Final = Principal("ann", AccessRole.DRIVE, token_id="a1", root_id="a1")
PAGE: Final = Principal("ann", AccessRole.DRIVE, token_id="page", root_id="a1")
"""A browser that signed in with the same token."""

BOB: Final = Principal("bob", AccessRole.DRIVE, token_id="b1", root_id="b1")


def quick_agent(name: str) -> ScriptedAgent:
    """An agent that ends every turn at once."""
    agent = agent_named(name)
    agent.answers["session/prompt"] = lambda params: {"stopReason": "end_turn"}
    return agent


async def two_workers(here: Gateways, **limits: Any) -> list[PlayedWorker]:
    chosen = msgspec.structs.replace(QUICK, **limits)
    return [
        await here.fleet.start(name, agent=quick_agent(name), limits=chosen, labels=(name,)) for name in ("one", "two")
    ]


def at_worker(worker: PlayedWorker, directory: Path) -> dict[str, Any]:
    """Return the params of a new session at a worker, which its label chooses."""
    label = worker.name.partition(".")[0]
    return {"cwd": str(directory), "mcpServers": [], "_meta": {"antiphon": {"labels": [label]}}}


async def opened(client: RawClient, directory: Path, worker: PlayedWorker) -> str:
    """Open a session at a worker."""
    return str((await client.request("session/new", at_worker(worker, directory)))["sessionId"])


async def test_prompts_at_two_workers_over_two_gateways_are_one_number(tmp_path: Path) -> None:
    async with gateways(tmp_path) as here:
        one, two = await two_workers(here, prompts_per_minute=5)
        clients = [await here.client(await here.gateway(name), who) for name, who in (("g1", ANN), ("g2", PAGE))]
        sessions = [
            (client, await opened(client, tmp_path, worker)) for client in clients for worker in (one, two, one, two)
        ]
        asked = [(client, client.prompt(session, "go")) for client, session in sessions]  # all at the same moment
        found = [await client.response(id) for client, id in asked]
        refused = [each["error"] for each in found if "error" in each]
        assert len(found) - len(refused) == 5
        assert len(one.agent.received("session/prompt")) + len(two.agent.received("session/prompt")) == 5
        assert all("may send 5 in a minute" in each["message"] and each["data"]["recoverable"] for each in refused)
        other = await here.client(here.opened[0], BOB)  # another token has prompts of its own
        asked_by_other = other.prompt(await opened(other, tmp_path, one), "go")
        assert (await other.response(asked_by_other))["result"]["stopReason"] == "end_turn"


async def test_prompts_count_at_a_worker_that_starts_later_and_no_longer_than_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateways(tmp_path) as here:
        one, two = await two_workers(here, prompts_per_minute=2)
        assert await one.worker.usage.refuse_prompt(ANN) == "" == await two.worker.usage.refuse_prompt(ANN)
        limits = msgspec.structs.replace(QUICK, prompts_per_minute=2)
        three = await here.fleet.start("three", limits=limits)
        assert "2 in a minute" in await three.worker.usage.refuse_prompt(ANN)
        now = three.broker.clock
        monkeypatch.setattr(three.broker, "clock", lambda: now() + 60)
        assert await three.worker.usage.refuse_prompt(ANN) == ""
        assert await one.worker.usage.refuse_prompt(ANN) == ""  # the record of three has no older ones
        assert "2 in a minute" in await two.worker.usage.refuse_prompt(ANN)


async def test_open_sessions_of_all_living_workers_are_one_number(tmp_path: Path) -> None:
    async with gateways(tmp_path) as here:
        one, two = await two_workers(here, token_sessions=3)
        clients = [await here.client(await here.gateway(name), ANN) for name in ("g1", "g2")]
        for client, worker in zip(clients, (one, two), strict=True):
            await opened(client, tmp_path, worker)
        last = await opened(clients[0], tmp_path, two)
        for client, worker in zip(clients, (one, two), strict=True):
            refused = await client.refused("session/new", at_worker(worker, tmp_path))
            assert "3 sessions open in the fleet" in refused["message"]
        assert len(await here.fleet.broker.lasts(ALL_USES)) == 1
        await clients[0].request("session/close", {"sessionId": last})
        await until(lambda: sum(one.worker.usage.sessions_of("a1").values()) == 2)
        await opened(clients[1], tmp_path, one)


async def test_sessions_of_a_worker_that_is_gone_count_no_more(tmp_path: Path) -> None:
    async with gateways(tmp_path) as here:
        one, two = await two_workers(here, token_sessions=2)
        client = await here.client(await here.gateway("g1"), ANN)
        assert await opened(client, tmp_path, one) and await opened(client, tmp_path, one)
        assert await two.worker.usage.refuse_session("a1", 1)
        here.fleet.server.cut(one.broker)
        await until(lambda: not two.worker.members.is_alive(one.name))
        assert not await two.worker.usage.refuse_session("a1", 1)


async def test_sessions_that_are_not_used_make_room_at_other_workers(tmp_path: Path) -> None:
    async with gateways(tmp_path) as here:
        one, two = await two_workers(here, token_sessions=2)
        first, second = [await here.client(await here.gateway(name), ANN) for name in ("g1", "g2")]
        for _ in range(2):
            session = await opened(first, tmp_path, one)
            await first.response(first.prompt(session, "go"))
        await first.leave()
        await until(lambda: not any(each.in_use for each in one.worker.hub.agents["demo"].sessions.values()))
        assert await two.worker.usage.refuse_session("a1", 1)
        await until(lambda: len(one.worker.hub.agents["demo"].sessions) == 1)
        await until(lambda: sum(two.worker.usage.sessions_of("a1").values()) == 1)
        assert await opened(second, tmp_path, two)


async def test_without_the_broker_nothing_is_refused_and_a_revoked_token_leaves_no_record(tmp_path: Path) -> None:
    async with gateways(tmp_path) as here:
        one, _ = await two_workers(here, prompts_per_minute=1)
        gateway = await here.gateway("g1")
        assert await one.worker.usage.refuse_prompt(ANN) == ""
        assert await one.worker.usage.refuse_prompt(ANN)
        gateway.hub.drop_prompts("a1", "its token was revoked")
        await until(lambda: not here.fleet.server._lasts(ALL_USES))
        here.fleet.server.cut(one.broker)
        assert await one.worker.usage.refuse_prompt(BOB) == ""
