"""Our own client in this process, over memory, driven as a user would, and faults between it and the check.

Each client is a real one; only the process is missing. Faults are on the wire, or in how the client is driven.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import msgspec

import antiphon
from antiphon import v1
from antiphon.client.agent import ConnectedAgent
from antiphon.client.files import Files
from antiphon.client.handlers import Elicitation, allow_once, reject
from antiphon.client.link import Retry
from antiphon.client.terminals import Terminals
from antiphon.conformance.client_process import CLIENT_PURPOSES
from antiphon.conformance.client_run import ClientCheckOptions
from antiphon.conformance.shim_socket import AgentStart, OnAgentStart
from antiphon.errors import AcpError
from antiphon.traffic.entries import Direction
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair

OPTIONS = ClientCheckOptions(limit=5.0, silence=0.005)
SHORT = ClientCheckOptions(limit=1.0, silence=0.005)
"""For faults that show by nothing happening."""


class HangUp:
    """In place of a message: the client leaves."""


HANG_UP = HangUp()


@dataclass(frozen=True)
class Back:
    """A message for the one who spoke."""

    message: Any


class Fault:
    """What happens on the way between the check and the client. One is made for every connection: it may remember."""

    status: int | None = None
    """With which the client ends, whatever it thinks of it."""
    stays_open = False
    """Whether the client does not see that the agent has left."""

    def __call__(self, direction: Direction, message: Any) -> Iterable[Any]:
        """What goes on in place of a message (or of bytes that are none): itself, others, nothing, `HANG_UP`, or something `Back`."""
        yield message


@dataclass
class Broken:
    """What is wrong with a client: on its wire, or in what it offers."""

    wire: Callable[[], Fault] | None = None
    able: bool = True
    """Whether it offers anything."""
    options: ClientCheckOptions = OPTIONS


async def never(request: v1.RequestPermission) -> bool:
    """A user who looks at the question and does something else."""
    await asyncio.Event().wait()
    return False


class Drives(Protocol):
    """A client with one connection, driven as a user would."""

    purposes: ClassVar[Collection[str]]
    """What it can do."""

    def __init__(self, transport: Transport, cwd: Path, broken: Broken) -> None: ...

    async def use(self, purpose: str) -> None:
        """Do what a purpose names."""


class Driver:
    """A user of our library, with one connection."""

    purposes: ClassVar[Collection[str]] = CLIENT_PURPOSES
    versions: ClassVar[tuple[int, ...]] = (1, 2)

    def __init__(self, transport: Transport, cwd: Path, broken: Broken) -> None:
        self.transport = transport
        self.cwd = cwd
        self.broken = broken

    async def use(self, purpose: str) -> None:
        """Do what a purpose names."""
        able = self.broken.able
        connecting = antiphon.connect(
            self.transport,
            permission={"refuse": reject, "cancel": never}.get(purpose, allow_once),
            elicitation=Elicitation(lambda form: v1.Declined(), lambda url: v1.Dismissed()) if able else None,
            authenticate=lambda methods: methods[0].id,  # type: ignore[union-attr]  # those of the stand-in have one
            files=Files(write=True) if able else None,
            terminals=Terminals() if able else None,
            retry=Retry(()),
            versions=self.versions,
        )
        async with connecting as agent:
            match purpose:
                case "list":
                    [_ async for _ in agent.list_sessions()]
                case "delete":
                    await agent.delete_session("stand-in-earlier")
                case _:
                    await self.converse(agent, purpose)

    async def converse(self, agent: ConnectedAgent, purpose: str) -> None:
        match purpose:
            case "load":
                session = await agent.load_session("stand-in-earlier", self.cwd)
            case "resume":
                session = await agent.resume_session("stand-in-earlier", self.cwd)
            case _:
                session = await agent.new_session(self.cwd)
        if purpose == "set_mode":
            await session.set_mode("plan")
        if purpose == "set_option":
            await session.set_config_option("length", "long")
        turn = session.prompt("hello")
        if purpose == "cancel":
            async for _ in turn:
                await turn.cancel()
        else:
            await turn
        if purpose == "two_prompts":
            await session.prompt("hello again")
        if purpose == "close":
            await session.close()


class Client:
    """A driver that runs."""

    def __init__(self, doing: Coroutine[Any, Any, None], fault: Fault, ends: list[asyncio.Task[None]]) -> None:
        self.ended = asyncio.Event()
        self.status: int | None = None
        self.output = ""
        self._fault = fault
        self._ends = ends
        self._task = asyncio.create_task(self._run(doing))

    async def _run(self, doing: Coroutine[Any, Any, None]) -> None:
        status = 0
        try:
            await doing
        except AcpError as error:
            self.output, status = str(error), 1
        self.status = status if self._fault.status is None else self._fault.status
        self.ended.set()

    def end_input(self) -> None:
        """There is none."""

    def interrupt(self) -> bool:
        return False

    async def close(self) -> None:
        for task in (self._task, *self._ends):
            task.cancel()
        await asyncio.gather(self._task, *self._ends, return_exceptions=True)


class InMemory:
    """A place where clients are tasks of this process."""

    is_process = False

    def __init__(self, broken: Broken | None = None, driver: type[Drives] = Driver) -> None:
        self.broken = broken or Broken()
        self.driver = driver

    def has(self, purpose: str) -> bool:
        return purpose in self.driver.purposes

    async def start(self, purpose: str, cwd: Path, on_start: OnAgentStart) -> Client:
        near, far = memory_pair()
        ends: list[asyncio.Task[None]] = []
        fault = Fault()
        if self.broken.wire is None:
            on_start(AgentStart(near))
        else:
            outer, inner = memory_pair()
            fault = self.broken.wire()
            relay = Relay(fault, outer, near)
            ends = [asyncio.create_task(relay.carry(one)) for one in Direction]
            on_start(AgentStart(inner))
        driver = self.driver(far, cwd, self.broken)
        return Client(driver.use(purpose), fault, ends)


@dataclass
class Relay:
    """Between the check and the client, with the fault in between."""

    fault: Fault
    check: Transport
    client: Transport

    async def carry(self, direction: Direction) -> None:
        source, target = (self.client, self.check) if direction is Direction.C2A else (self.check, self.client)
        with suppress(antiphon.ConnectionClosed):
            while (frame := await source.receive()) is not None:
                for one in self.fault(direction, _decoded(bytes(frame))):  # type: ignore[arg-type]  # none is over the limit
                    if one is HANG_UP:
                        await self.check.close()
                        await self.client.close()
                        return
                    back = isinstance(one, Back)
                    text = one.message if back else one
                    await (source if back else target).send(
                        text if isinstance(text, bytes) else msgspec.json.encode(text)
                    )
        if direction is Direction.C2A or not self.fault.stays_open:
            await target.close()


def _decoded(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        return line
