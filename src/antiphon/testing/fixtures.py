"""Fixtures for pytest: `pytest_plugins = ["antiphon.testing.fixtures"]` in a `conftest.py` brings them.

def test_the_agent_greets(acp_client: ConnectClient) -> None:
    client = acp_client(my_agent)
    client.prompt("hello")
    assert client.text == "hello yourself"
"""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

import pytest

from antiphon.testing.doubles import BlockingClient, RecordingClient

if TYPE_CHECKING:
    from typing import Unpack

    from antiphon.client.link import Target
    from antiphon.testing.doubles import EditorOptions

__all__ = ["ConnectClient", "acp_client"]


class ConnectClient(Protocol):
    """What the fixture `acp_client` is: a function that connects a client to an agent."""

    def __call__(self, agent: "Target", **options: "Unpack[EditorOptions]") -> BlockingClient:
        """Connect to an agent, as `RecordingClient` does, and open a session."""


@pytest.fixture
def acp_client() -> Iterator[ConnectClient]:
    """Connect recording clients to agents, in tests without `async`. All of them are closed when the test is over."""
    with asyncio.Runner() as runner, ExitStack() as opened:

        def connect(agent: "Target", **options: "Unpack[EditorOptions]") -> BlockingClient:
            client = RecordingClient(agent, **options)
            runner.run(client.__aenter__())
            opened.callback(lambda: runner.run(client.__aexit__()))
            return BlockingClient(client, runner)

        yield connect
