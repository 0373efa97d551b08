"""`session/list` in a fleet: stored sessions once, then those that only the agents of each machine have."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from antiphon.gateway.base import AccessRole, Principal
from tests.fleet.test_gateway import agent_named, gateways
from tests.gateway.peers import RawClient, ScriptedAgent
from tests.waits import until


def listing_agent(name: str, directory: Path, *pages: Sequence[str]) -> ScriptedAgent:
    """An agent that lists sessions of its own, page by page, and can load them."""
    agent = agent_named(name)
    agent.capabilities = {"loadSession": True, "sessionCapabilities": {"list": {}}}

    def listed(params: dict[str, Any]) -> object:
        at = int(params.get("cursor", 0))
        found = {"sessions": [{"sessionId": each, "cwd": str(directory)} for each in pages[at]]}
        return found if at + 1 == len(pages) else {**found, "nextCursor": str(at + 1)}

    agent.answers["session/list"] = listed
    return agent


async def all_pages(client: RawClient) -> list[list[str]]:
    """Return the ids on each page of the list."""
    found: list[list[str]] = []
    params: dict[str, Any] = {}
    while True:
        page = await client.request("session/list", params)
        assert "_meta" not in page
        found.append([each["sessionId"] for each in page["sessions"]])
        if "nextCursor" not in page:
            return found
        params = {"cursor": page["nextCursor"]}


async def test_sessions_that_only_agents_have_are_listed_from_every_machine_each_once(tmp_path: Path) -> None:
    async with gateways(tmp_path) as here:
        ids = {"a": [["x1", "x2"], ["x3", "both"]], "b": [["y1", "both"]]}
        for name, host in (("one", "a"), ("two", "a"), ("three", "b")):
            agent = listing_agent(name, tmp_path, *ids[host])
            await here.fleet.start(name, host=host, agent=agent, roots=(str(tmp_path),))
        gateway = await here.gateway()
        client = await here.client(gateway)
        session = await client.new(tmp_path)
        assert await all_pages(client) == [[session, "x1", "x2"], ["x3", "both"], ["y1"]]
        assert await all_pages(client) == [[session, "x1", "x2"], ["x3", "both"], ["y1"]]
        watcher = await here.client(gateway, Principal("eve", AccessRole.WATCH))
        assert await all_pages(watcher) == [[session]]  # what agents have is for those who may open it
        refused = await client.refused("session/list", {"cursor": "odd"})
        assert refused["code"] == -32602 and "nextCursor" in refused["data"]["hint"]


async def test_a_session_is_loaded_on_the_machine_that_listed_it(tmp_path: Path) -> None:
    async with gateways(tmp_path) as here:
        agents = {}
        for name in ("a", "b"):
            agents[name] = listing_agent(name, tmp_path, [f"of-{name}"])
            await here.fleet.start(name, host=name, agent=agents[name])
        gateway = await here.gateway()
        assert await all_pages(await here.client(gateway)) == [["of-a"], ["of-b"]]
        client = await here.client(gateway)
        for name in ("b", "a"):
            load = {"sessionId": f"of-{name}", "cwd": str(tmp_path), "mcpServers": []}
            await client.request("session/load", load)
            assert [each["params"]["sessionId"] for each in agents[name].received("session/load")] == [f"of-{name}"]
        assert sorted((await all_pages(client))[0]) == ["of-a", "of-b"]  # both are stored now


async def test_a_list_goes_on_behind_a_machine_that_is_gone(tmp_path: Path) -> None:
    async with gateways(tmp_path) as here:
        await here.fleet.start("a", host="a", agent=listing_agent("a", tmp_path, ["of-a"]))
        await here.fleet.start("c", host="c", agent=listing_agent("c", tmp_path, ["of-c"]))
        async with here.fleet.running("b", host="b", agent=listing_agent("b", tmp_path, ["of-b1"], ["of-b2"])):
            client = await here.client(await here.gateway())
            first = await client.request("session/list", {})
            second = await client.request("session/list", {"cursor": first["nextCursor"]})
            assert [each["sessionId"] for each in second["sessions"]] == ["of-b1"]
        hub: Any = here.opened[0].hub
        await until(lambda: "b" not in hub.routes.machines("demo"))
        third = await client.request("session/list", {"cursor": second["nextCursor"]})
        assert [each["sessionId"] for each in third["sessions"]] == ["of-c"] and "nextCursor" not in third
