"""What the model of a test sends, whatever its interface: the answer to one request is a row of steps."""

import asyncio
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

__all__ = ["Calls", "Cut", "Gate", "Header", "Json", "Stop", "Text", "Think", "Used", "Wait", "pieces", "wait_limit"]

Json: TypeAlias = dict[str, Any]

USUAL_LIMIT: Final = 40.0
"""Seconds that a test waits for something on a machine with nothing else to do: longer than any test needs."""
MOST: Final = 3.0
"""A wait grows with the load up to this many times, which is shorter than the limit of a test."""


def wait_limit() -> float:
    """Return the seconds after which a test gives up waiting. They grow with the number of processes that want each processor."""
    waiting = os.getloadavg()[0] / (os.cpu_count() or 1)
    return USUAL_LIMIT * min(max(waiting, 1.0), MOST)


class Gate:
    """Where the model stops until the test lets it go on. The test may also wait until it is there, or until it was left there."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()
        self.left = threading.Event()
        """The program hung up while the model waited."""

    def open(self) -> None:
        """Let the model go on, now and whenever it comes by."""
        self.opened.set()

    async def is_reached(self) -> None:
        """Wait until the model is here: all that comes before has been sent."""
        await _soon(self.reached, "the model was not asked for this")

    async def is_left(self) -> None:
        """Wait until the program hangs up on the model that waits here."""
        await _soon(self.left, "the program still listens to the model")


async def _soon(event: threading.Event, otherwise: str) -> None:
    assert await asyncio.to_thread(event.wait, wait_limit()), otherwise


@dataclass(frozen=True, slots=True)
class Text:
    """Words, in deltas of so many characters."""

    text: str
    size: int = 8


@dataclass(frozen=True, slots=True)
class Think:
    """A thought, in deltas of so many characters."""

    text: str
    size: int = 8


@dataclass(frozen=True, slots=True)
class Wait:
    """Hold here."""

    gate: Gate


@dataclass(frozen=True, slots=True)
class Header:
    """A header of the answer."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Cut:
    """The line goes dead."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why the answer ends, where it is not the usual reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Used:
    """The tokens of this answer."""

    input: int = 10
    output: int = 5
    cache_read: int = 0
    cache_made: int = 0


def pieces(text: str, size: int) -> list[str]:
    """A text in parts of so many characters."""
    return [text[start : start + size] for start in range(0, len(text), size)]


class Calls(Protocol):
    """What a model asks its CLI to do, in the words of that CLI's own tools."""

    def command(self, line: str) -> Any:
        """Run a command line, in a mode in which that is not asked about."""

    def asked_command(self, line: str) -> Any:
        """Run a command line that the user is asked about in the mode `default`."""

    def add_file(self, path: Path, text: str) -> Any:
        """Write a file that is not there yet."""

    def edit_file(self, path: Path, old: str, new: str) -> Any:
        """Replace a line of a file."""

    def mcp_tool(self, server: str, tool: str, **given: Any) -> Any:
        """Use a tool of an MCP server."""
