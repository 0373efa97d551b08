"""The demo agent in this process, over memory, and wire faults between it and the check.

Each agent is a real one, served as over stdio; only the process is missing, so that hundreds of checks cost seconds.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from antiphon.conformance.agent_run import CheckOptions
from antiphon.conformance.client_run import ClientCheckOptions
from antiphon.conformance.prompts import DEMO
from antiphon.engines.base import Host
from antiphon.engines.demo.engine import Demo
from antiphon.traffic.entries import Direction
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair
from tests.limits import limit

OPTIONS = CheckOptions(DEMO, auth="demo", limit=5.0, silence=0.02, start=5.0)

Message = dict[str, Any]
Fault = Callable[[Direction, Any], Iterable[Any]]
"""From a message (or bytes that are none) to what goes on instead of it: the same, another, several, none."""


W = TypeVar("W", CheckOptions, ClientCheckOptions)


def under_load(options: W) -> W:
    """Return what a check is sent, with a limit that grows once there is more load than the test processes make themselves.

    A fault that shows by silence is waited for to the end of that limit, so it is no longer than it has to be.
    """
    return replace(options, limit=max(options.limit, limit(options.limit / 4)))


class Leaves(Exception):
    """A fault raises it: the agent is gone at once."""


class InMemory:
    """A place where agents are tasks of this process."""

    is_process = False

    def __init__(
        self, fault: Callable[[], Fault] | None = None, serve: Callable[[Transport], Any] | None = None
    ) -> None:
        """`serve` makes an agent of one end of a connection; the demo, if it is not given."""
        self._fault = fault
        self._serve = serve
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> Transport:
        near, far = memory_pair()
        self._keep(Host(Demo()).serve(far) if self._serve is None else self._serve(far))
        if self._fault is None:
            return near
        outer, inner = memory_pair()
        fault = self._fault()  # one for each agent: it may remember
        self._keep(_pass_on(Direction.C2A, inner, near, fault))
        self._keep(_pass_on(Direction.A2C, near, inner, fault))
        return outer

    def _keep(self, doing: Any) -> None:
        task = asyncio.create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _pass_on(direction: Direction, source: Transport, target: Transport, fault: Fault) -> None:
    try:
        while (frame := await source.receive()) is not None:
            line = bytes(frame)  # type: ignore[arg-type]  # nothing here is over the limit
            try:
                message = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                message = line
            for one in fault(direction, message):
                await target.send(one if isinstance(one, bytes) else msgspec.json.encode(one))
    except Leaves:
        await source.close()
    finally:  # a fault that is itself broken ends the connection too, so that nothing waits for it
        await target.close()
