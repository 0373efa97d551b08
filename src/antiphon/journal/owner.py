"""The owner of a session: find its worker, place a session at one, connect to it, and watch the workers.

A worker runs agents and is the only process that appends to the sessions that it owns. With one process there is one worker, which owns
everything: `LocalOwner`. The fleet has many: `fleet.owner.FleetOwner`. What stands above asks for an owner and knows neither; one
test-suite checks both.

The first words of a connection (whose it is, for which agent) are of a type that those above choose: nothing here looks into them.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from antiphon.codes import FIND_OWNER
from antiphon.errors import AcpError
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair

__all__ = [
    "LOCAL",
    "LocalOwner",
    "NoOwner",
    "OwnedElsewhere",
    "Owner",
    "Placement",
    "SessionHome",
    "SessionWorker",
    "worker_title",
]

LOCAL: Final = "local"
"""The name of the one worker of a single process."""

_START: Final = re.compile(r"\.[0-9a-f]{6}$")
"""What a worker of a fleet puts behind its name, another word with each start."""

HelloT = TypeVar("HelloT")
HelloT_contra = TypeVar("HelloT_contra", contravariant=True)


def worker_title(name: str) -> str:
    """Return the name of a worker for people: the one that it was given, without the word of its start."""
    return _START.sub("", name)


class SessionHome(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a session was last, which says where else it can be."""

    worker: str = ""
    host: str = ""
    """The machine of that worker. Directories that are not shared are nowhere else."""
    workspaces: dict[str, str] = {}
    """The shared workspaces that its directories are in: their names, and where they are on that machine."""


class Placement(msgspec.Struct, frozen=True):
    """What a session needs of a worker."""

    agent: str
    cwd: str
    directories: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    """Words that the worker has to have, such as `gpu`."""
    key: str = ""
    """The key of a session that there is already; empty for a new one."""
    home: SessionHome | None = None
    """Where it was last; None for a new one."""


class SessionWorker(msgspec.Struct, frozen=True):
    """A process that runs agents, and how it stands."""

    name: str
    """One for each start of a process: no two have the same."""
    alive: bool = True
    sessions: int = 0


class NoOwner(AcpError):
    """No worker has the session, or none can take it. It may pass: workers come back."""

    @property
    def recoverable(self) -> bool | None:
        return True

    @property
    def action(self) -> str:
        return "try again later"


class OwnedElsewhere(NoOwner):
    """This worker does not own the session and cannot take it: another one has it, or can. Nothing was done."""

    @property
    def action(self) -> str:
        return FIND_OWNER


class Owner(Protocol[HelloT_contra]):
    """Finds workers for sessions, and connects to them."""

    async def find(self, key: str) -> str | None:
        """Return the name of the living worker that owns a session; None: none does, and it may be placed."""

    async def place(self, placement: Placement) -> SessionWorker:
        """Choose the worker of a session that has no owner.

        Raises:
            NoOwner: no worker can take it; the error has the reason.
        """

    async def connect(self, worker: str, hello: HelloT_contra) -> Transport:
        """Open a connection to a worker: what is sent there is what a client sends to a gateway.

        Raises:
            NoOwner: there is no such worker, or it does not answer.
        """

    def watch(self) -> AsyncIterator[SessionWorker]:
        """Yield the workers as they are now, and then each one whose state changes."""


class LocalOwner(Generic[HelloT]):
    """The owner of every session of one process."""

    def __init__(
        self,
        serve: Callable[[Transport, HelloT], Coroutine[object, object, None]],
        agents: Collection[str],
        sessions: Callable[[], int] = lambda: 0,
    ) -> None:
        """`serve` serves one connection until it ends; `sessions` counts those that are open."""
        self._serve = serve
        self._agents = agents
        self._sessions = sessions
        self._tasks: set[asyncio.Task[None]] = set()

    async def find(self, key: str) -> str | None:
        return LOCAL

    async def place(self, placement: Placement) -> SessionWorker:
        if placement.agent not in self._agents:
            hint = f"the agents here are: {', '.join(sorted(self._agents)) or 'none'}"
            raise NoOwner(f"there is no agent `{placement.agent}` here", hint=hint)
        return self._worker()

    async def connect(self, worker: str, hello: HelloT) -> Transport:
        if worker != LOCAL:
            raise NoOwner(f"there is no worker `{worker}` here", hint=f"the one worker of this process is `{LOCAL}`")
        ours, theirs = memory_pair()
        task = asyncio.get_running_loop().create_task(self._serve(theirs, hello))
        self._tasks.add(task)
        task.add_done_callback(self._served)
        return ours

    def _served(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # a connection that is refused is closed, which its other end sees

    async def watch(self) -> AsyncIterator[SessionWorker]:
        yield self._worker()
        await asyncio.Event().wait()  # this process is the worker: while anything waits here, it lives

    def _worker(self) -> SessionWorker:
        return SessionWorker(LOCAL, sessions=self._sessions())
