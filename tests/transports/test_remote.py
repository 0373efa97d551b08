"""Both remote profiles over real sockets: our client transports and our server end, with the demo agent behind it."""

from typing import Any

import pytest

import antiphon
from antiphon import v1
from antiphon.transports.asgi import AcpEndpoint
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
