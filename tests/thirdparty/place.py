"""Where one of the agents works: a folder, a home with its settings, a model on loopback. Nothing may be left running there."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from antiphon.transports import tree
from tests.interop.environment import Environment, environment
from tests.thirdparty.agents import Agent, agents
from tests.thirdparty.model import Server, model
from tests.waits import wait_until_gone

GRACE = 10.0
"""Seconds in which everything has to be gone by itself. What is still there then is ended, and the test has failed."""

Step = list[Any]


class Place(NamedTuple):
    """An agent, and what is around it."""

    agent: Agent
    model: Server
    on: Environment

    @property
    def folder(self) -> Path:
        return self.on.folder

    @property
    def environment(self) -> dict[str, str]:
        return self.on.environment

    def read(self, name: str) -> Step:
        """The model wants a file read."""
        return ["call", self.agent.tools.read, {"path": str(self.folder / name)}]

    def write(self, name: str, text: str) -> Step:
        """The model wants a file written."""
        return ["call", self.agent.tools.write, {"path": str(self.folder / name), "content": text}]

    def run(self, command: str) -> Step:
        """The model wants a command run."""
        return ["call", self.agent.tools.run, {"command": command}]

    def ours(self, command: str, *words: str) -> list[str]:
        """One of our commands, with this agent."""
        return [sys.executable, "-m", "antiphon", command, "--agent", shlex.join(self.agent.command), *words]


@contextmanager
def place(name: str, path: Path) -> Iterator[Place]:
    """One of the agents, in a place of its own."""
    agent = agents()[name]
    if agent.missing:
        pytest.skip(f"{agent.name} {agent.missing}")
    with model() as listening, environment(path) as on:
        on.environment |= agent.environment(on.home, listening.address)
        yield Place(agent, listening, on)
        assert wait_until_gone(on.mark, GRACE), f"still running: {tree.processes_with(on.mark)}"
