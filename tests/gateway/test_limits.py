"""The limits of agents behind the gateway: memory, processes, how many run, and the time of a turn."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from antiphon.gateway.agents.process import AgentProcessState
from antiphon.gateway.base import HubLimits, Principal
from antiphon.gateway.hub import Hub
from antiphon.transports.base import Transport
from antiphon.transports.process import spawn
from tests.gateway.peers import DRIVER, QUICK, MemoryJournal, MemoryRows, RawClient, ScriptedAgent, Stage, stage
from tests.waits import until

GREEDY = """
import asyncio, subprocess, sys
from antiphon import Agent, AgentTurn

agent = Agent("greedy", "1.0")
kept = []

@agent.on
async def prompt(turn: AgentTurn) -> None:
    if turn.text == "memory":
        code = "x = b'x' * 400_000_000; print(flush=True); input()"
        kept.append(subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
    elif turn.text == "processes":
        kept.extend(subprocess.Popen(["sleep", "600"]) for _ in range(30))
    if kept:
        await asyncio.Event().wait()

agent.run()
"""


@asynccontextmanager
async def greedy(tmp_path: Path, limits: HubLimits) -> AsyncIterator[Stage]:
    """A hub with a real agent that takes what a prompt says."""
    program = tmp_path / "greedy.py"
    program.write_text(GREEDY, encoding="utf-8")

    async def start() -> Transport:
        return await spawn([sys.executable, "-P", str(program)], cwd=tmp_path)

    async with stage(tmp_path, limits, start) as place:
        yield place


@pytest.mark.parametrize(
    ("takes", "said"),
    [("memory", "MiB of memory (the limit is 300 MiB)"), ("processes", "processes (the limit is 20)")],
)
async def test_an_agent_that_takes_too_much_is_ended_and_its_turn_says_why(
    tmp_path: Path, takes: str, said: str
) -> None:
    limits = msgspec.structs.replace(QUICK, agent_memory=300 * 1024 * 1024, agent_processes=20, usage_interval=0.1)
    async with greedy(tmp_path, limits) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        await client.response(client.prompt(session, "nothing"))
        asked = client.prompt(session, takes)
        error = (await client.response(asked))["error"]
        assert said in error["message"] and error["data"]["antiphon"] == {"interrupted": True}
        again = await client.new(tmp_path)  # in another process
        assert "result" in await client.response(client.prompt(again, "nothing"))


async def test_a_turn_that_takes_too_long_is_cancelled(tmp_path: Path) -> None:
    async with stage(tmp_path, msgspec.structs.replace(QUICK, turn_timeout=0.05)) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        asked = client.prompt(session, "work")
        prompt = await place.agent.got("session/prompt")
        await place.agent.got("session/cancel")
        place.agent.result(prompt["id"], {"stopReason": "cancelled"})
        assert (await client.response(asked))["result"] == {"stopReason": "cancelled"}
        (notice,) = [each for each in client.messages if b'"notice"' in msgspec.json.encode(each.get("params"))]
        assert "more than 0.05 seconds" in notice["params"]["update"]["description"]


async def test_a_turn_that_does_not_end_when_its_time_is_over_is_interrupted(tmp_path: Path) -> None:
    limits = msgspec.structs.replace(QUICK, turn_timeout=0.05, cancel_timeout=0.05)
    async with stage(tmp_path, limits) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        asked = client.prompt(session, "work")
        prompt = await place.agent.got("session/prompt")
        error = (await client.response(asked))["error"]
        assert "took more than 0.05 seconds" in error["message"]
        again = client.prompt(session, "more")
        second = await place.agent.got("session/prompt", 2)
        place.agent.result(prompt["id"], {"stopReason": "cancelled"})  # late: it is not the response to the second
        place.agent.result(second["id"], {"stopReason": "end_turn"})
        assert (await client.response(again))["result"] == {"stopReason": "end_turn"}


async def test_an_idle_agent_makes_room_for_another_and_a_busy_one_does_not(tmp_path: Path) -> None:
    journal = MemoryJournal()
    agents = {name: ScriptedAgent() for name in ("one", "two", "three")}
    for agent in agents.values():
        agent.answers["session/load"] = lambda params: {}
    limits = msgspec.structs.replace(QUICK, agents=2)
    sources = {name: agent.start for name, agent in agents.items()}
    async with Hub(sources, MemoryRows(journal), journal, roots=[str(tmp_path)], limits=limits) as hub:
        clients = {name: RawClient(hub, DRIVER, name) for name in agents}
        for name in ("one", "two"):
            await clients[name].initialize()
        session = await clients["two"].new(tmp_path)
        clients["two"].prompt(session, "work")
        await agents["two"].got("session/prompt")
        await clients["three"].initialize()
        states = {name: agent.state for name, agent in hub.agents.items()}
        assert states["one"] is AgentProcessState.PARKED and states["two"] is AgentProcessState.RUNNING
        third = await clients["three"].new(tmp_path)
        clients["three"].prompt(third, "work")
        await agents["three"].got("session/prompt")
        error = await clients["one"].refused("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        assert "2 agents run already" in error["message"] and "--limit agents=" in error["data"]["hint"]
        prompt = agents["two"].received("session/prompt")[-1]
        agents["two"].result(prompt["id"], {"stopReason": "end_turn"})
        await clients["two"].leave()
        await until(lambda: hub.agents["two"].can_park)
        await clients["one"].new(tmp_path)
        assert hub.agents["two"].state is AgentProcessState.PARKED
        for client in clients.values():
            await client.leave()


async def test_one_principal_does_not_keep_others_from_the_extension(tmp_path: Path) -> None:
    async with stage(tmp_path) as place, AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(place.hub.quotas.place(Principal("mallory")))

        async def one_more() -> None:
            async with place.hub.quotas.place(Principal("mallory")):
                pass

        waiting = asyncio.ensure_future(one_more())
        async with place.hub.quotas.place(Principal("alice")):
            assert not waiting.done()
        waiting.cancel()


async def test_what_a_client_has_asked_of_the_extension_is_not_done_once_its_connection_has_ended(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        async with place.hub.quotas.place(DRIVER), place.hub.quotas.place(DRIVER):
            client.begin("_antiphon/session/rename", {"sessionId": session, "title": "evil"})
            await until(lambda: len(place.hub.tasks) > 1)
            await client.leave()
        other = await place.client()
        listed = await other.request("_antiphon/sessions/list", {})
        assert [row["title"] for row in listed["sessions"]] == [""]
