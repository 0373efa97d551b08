"""A client that runs, and its visits: the starts of an agent, in whose place it meets the check.

A place says how clients come about: commands, or tasks of this process in tests. Other transports can join as places of their own.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from antiphon.transports.base import Transport

__all__ = ["ClientPlace", "Running", "Visit", "Visited"]


class Visit:
    """One start of the agent by the client, in memory: nothing but a connection."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def leave(self) -> None:
        """As an agent that dies: nothing more is heard or said."""
        await self.transport.close()


Visited = Callable[[Visit], None]


class Running(Protocol):
    """A client that was started."""

    @property
    def ended(self) -> asyncio.Event:
        """Set when it has ended."""

    @property
    def status(self) -> int | None:
        """How it ended: 0 is well; None while it runs."""

    @property
    def output(self) -> str:
        """The last of what it printed."""

    def end_input(self) -> None:
        """The user has nothing more to say."""

    def interrupt(self) -> bool:
        """Do what makes it cancel a turn, where that has to come from outside: whether there is such a thing."""

    async def close(self) -> None:
        """End it, by all means there are."""


class ClientPlace(Protocol):
    """Where clients come from."""

    @property
    def is_process(self) -> bool:
        """Whether the agent that a client starts is a process here, with stderr, signals and an end."""

    def has(self, purpose: str) -> bool:
        """Whether a client can be made to do this."""

    async def start(self, purpose: str, cwd: Path, visited: Visited) -> Running:
        """A client that does what the purpose names, in a workspace; `visited` is told of every agent that it starts."""
