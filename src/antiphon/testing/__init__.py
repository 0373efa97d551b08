"""Helpers for tests of agents and clients, without processes: an editor that answers, an agent with a script, and a fixture of pytest.

async def test_the_agent_greets() -> None:
    async with RecordingClient(my_agent) as client:
        result = await client.prompt("hello")
    assert client.text == "hello yourself" and result.stop_reason == "end_turn"

async def test_my_client_shows_the_answer() -> None:
    agent = ScriptedAgent(["Hello ", "you."])
    async with antiphon.connect(agent) as connected:
        assert await my_client(connected) == "Hello you."
    assert agent.prompts == ["hi"]

Files in reading order:

    doubles.py    a client that answers as an editor does and keeps everything that an agent sends, and an agent with a script
    fixtures.py   `acp_client`, the recording client for plain tests: `pytest_plugins = ["antiphon.testing.fixtures"]`
"""

from antiphon.testing.doubles import BlockingClient, RecordingClient, ScriptedAgent

__all__ = ["BlockingClient", "RecordingClient", "ScriptedAgent"]
