"""`antiphon worker --files client`: agents use the files of the client, wherever in the fleet they run."""

from pathlib import Path
from typing import Any

from antiphon.cli.serve.worker import _program, parser
from tests.fleet.test_gateway import agent_named, gateways
from tests.gateway.peers import RawClient
from tests.gateway.test_client_files import FILES, response


async def test_an_agent_of_a_fleet_reads_a_file_of_a_client_whose_directory_is_on_no_worker(tmp_path: Path) -> None:
    async with gateways(tmp_path) as here:
        await here.fleet.start("one", host="one", agent=agent_named("one"))
        worker = await here.fleet.start("two", host="two", agent=agent_named("two"))  # both are asked for the directory
        worker.worker.hub.client_files = True
        hub: Any = (await here.gateway()).hub
        client = RawClient(hub)
        here.clients.append(client)
        await client.initialize(fs=FILES)
        session = await client.new(tmp_path / "of-the-client")
        assert session == "two-1"
        worker.agent.request(7, "fs/read_text_file", {"sessionId": session, "path": "/elsewhere/a"})
        asked = await client.asked("fs/read_text_file")
        assert asked["params"]["path"] == "/elsewhere/a"
        client.answer(asked["id"], {"content": "of the client"})
        place: Any = worker
        assert (await response(place, 7))["result"] == {"content": "of the client"}


def test_the_option_of_a_worker_has_the_meaning_that_it_has_at_a_gateway(tmp_path: Path) -> None:
    words = ["--fleet", "nats://127.0.0.1:1", "--root", str(tmp_path)]
    assert not _program(parser().parse_args(words)).client_files
    assert not _program(parser().parse_args([*words, "--files", "worker"])).client_files
    assert _program(parser().parse_args([*words, "--files", "client"])).client_files
