"""Both remote profiles over real sockets: our client transports and our server end, with the demo agent behind it."""

from pathlib import Path
from typing import Any

import pytest

import antiphon
from antiphon import v1
from antiphon.transports.asgi import AcpEndpoint
from antiphon.transports.remote import RemoteAddress
from tests.gateway.second import SecondClient
from tests.transports.serving import serve_demo, served

PROFILES = ("http", "ws")


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", f"{tmp_path}/state")


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_prompt_a_permission_a_cancel_and_a_load_go_over_the_network(profile: str, tmp_path: Any) -> None:
    asked: list[v1.RequestPermission] = []

    def permit(request: v1.RequestPermission) -> str:
        asked.append(request)
        return "allow_once"

    async with served(AcpEndpoint(serve_demo)) as host:
        url = f"{profile}://{host}/acp"
        async with antiphon.connect(url, permission=permit) as agent:
            session = await agent.new_session(tmp_path)
            other = await agent.new_session(tmp_path)
            result = await session.prompt("/run echo la")
            assert asked and result.stop_reason is v1.StopReason.END_TURN
            turn = other.prompt("/slow 1000")
            async for _ in turn:
                await other.cancel()
            assert (await turn).stop_reason is v1.StopReason.CANCELLED
            id, before = session.id, len(session.transcript.entries)
        async with antiphon.connect(url) as agent:
            loaded = await agent.load_session(id, tmp_path)
            assert len(loaded.transcript.entries) == before


async def test_an_agent_of_the_sdk_is_served_as_an_asgi_application(tmp_path: Any) -> None:
    class Echo(antiphon.Agent):
        async def prompt(self, turn: antiphon.AgentTurn) -> None:
            await turn.say(f"you wrote: {turn.text}")

    async with served(Echo().serve_asgi()) as host, antiphon.connect(f"ws://{host}/") as agent:
        session = await agent.new_session(tmp_path)
        assert await session.prompt("hello").text() == "you wrote: hello"


@pytest.mark.parametrize("scheme", ["ws", "http"])
async def test_an_agent_is_served_to_a_client_of_version_2(tmp_path: Path, scheme: str) -> None:
    class Echo(antiphon.Agent):
        async def prompt(self, turn: antiphon.AgentTurn) -> None:
            await turn.say(f"you wrote: {turn.text}")

    async with served(Echo().serve_asgi()) as host:
        client = SecondClient(None, transport=await RemoteAddress(f"{scheme}://{host}/").open())
        assert (await client.initialize())["protocolVersion"] == 2
        session = await client.new(tmp_path)
        asked = await client.turn(session, "hello")
        assert client.states == ["running", "idle end_turn"]
        assert client.transcript == {("user_message", asked): "hello", ("agent_message", "agent-1"): "you wrote: hello"}
        await client.leave()


@pytest.mark.parametrize("url", ["wss://user:secret@host/acp", "ftp://host/acp", "https:///acp"])
async def test_an_address_that_makes_no_sense_or_holds_a_secret_is_refused_without_it(url: str) -> None:
    with pytest.raises(antiphon.LocalProtocolError) as raised:
        await antiphon.connect(url)
    assert raised.value.hint and "secret" not in f"{raised.value} {raised.value.hint}"


async def test_a_token_is_for_addresses_alone() -> None:
    with pytest.raises(antiphon.LocalProtocolError, match="address of a remote agent"):
        await antiphon.connect("demo", token="x")
