"""Where the connections of a link lead: to the owner of a session, to a worker that can take it, or to its history where none can."""

import asyncio
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import Raw

from antiphon.fleet.owner import Hello, placement_of
from antiphon.gateway.base import GatewaySession, Principal
from antiphon.journal.owner import NoOwner, Placement
from antiphon.protocol.base import BAD_INPUT

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from antiphon.errors import AcpError
    from antiphon.transports.base import Transport

__all__ = ["FleetRoutes", "RouteAddress", "SessionRequest"]


class FleetRoutes(Protocol):
    """What finds workers, and connects a client to them."""

    async def row(self, agent: str, session_id: str) -> GatewaySession | None:
        """Return the row of a session."""

    async def find(self, key: str) -> str | None:
        """Return the living worker that owns a session."""

    async def place(self, placement: Placement) -> str:
        """Choose a worker for a session that has no owner.

        Raises:
            NoOwner: none can take it; the error has the reason.
        """

    def any_worker(self, agent: str) -> str:
        """Choose a worker that has an agent, for requests about no session.

        Raises:
            NoOwner: no worker has it.
        """

    def machines(self, agent: str) -> "Mapping[str, str]":
        """Return the machines that have an agent, each with the worker to ask there."""

    def listed(self, agent: str, host: str, ids: "Collection[str]") -> None:
        """Note on which machine sessions were listed."""

    def listed_at(self, agent: str, session_id: str) -> str | None:
        """Return a living worker of the machine on which a session was listed that nothing is stored of."""

    async def connect(self, worker: str, hello: Hello) -> "Transport":
        """Open a connection to a worker.

        Raises:
            AcpError: it is not reached, or refuses.
        """

    def read(self, address: "RouteAddress", hello: Hello) -> "Transport":
        """Open a connection that has the history of sessions, and can do nothing else with them.

        It is closed when the address may lead to a worker.
        """


class _About(msgspec.Struct):
    labels: list[str] = []


class _Meta(msgspec.Struct):
    antiphon: _About = msgspec.field(default_factory=_About)


class SessionRequest(msgspec.Struct, rename={"additional_directories": "additionalDirectories", "meta": "_meta"}):
    """What a request that opens a session says about where it can be."""

    cwd: str = ""
    additional_directories: list[str] | None = None
    meta: _Meta | None = None

    @classmethod
    def read(cls, params: Raw) -> "SessionRequest":
        """Read the params of a request. Those that make no sense say nothing: the worker refuses them."""
        try:
            return msgspec.json.decode(params, type=cls)
        except BAD_INPUT:
            return cls()

    def placement(self, agent: str) -> Placement:
        """Return what the session needs of a worker."""
        labels = () if self.meta is None else tuple(self.meta.antiphon.labels)
        return Placement(agent, self.cwd, tuple(self.additional_directories or ()), labels)


class RouteAddress:
    """The address of one link. Each time a connection is opened it is looked for anew: sessions move.

    Without a session and without a placement it is any worker with the agent.
    """

    def __init__(
        self,
        routes: FleetRoutes,
        principal: Principal,
        agent: str,
        session_id: str | None = None,
        placement: Placement | None = None,
        gate: asyncio.Semaphore | None = None,
        host: str = "",
    ) -> None:
        """`placement` is for a session that is new, or that only an agent may have. `gate` bounds how many are looked for at once.

        `host` is the machine that requests about no session are for, while it has a worker.
        """
        self.host = host
        self.session_id = session_id
        self.waits: AcpError | None = None
        """Why no worker has the session now, so that it can only be read; None while one has it."""
        self.refusal: NoOwner | None = None
        """Why no worker takes a session that is new, or that only an agent may have."""
        self.is_unknown = False
        """Whether nothing is stored of the session."""
        self._routes = routes
        self._principal = principal
        self._agent = agent
        self._placement = placement
        self._gate = gate or asyncio.Semaphore()
        self.is_new = session_id is None and placement is not None
        """Whether the session is to be opened."""

    @property
    def name(self) -> str:
        """What is not connected, in messages."""
        if self.session_id is not None:
            return f"session `{self.session_id}`"
        return "the new session" if self.is_new else f"agent `{self._agent}`"

    def begin(self, session_id: str) -> None:
        """Lead to a session that was opened over this address."""
        self.session_id, self._placement, self.is_new = session_id, None, False

    async def open(self) -> "Transport":
        """Open a connection.

        Raises:
            AcpError: there is none now. It is final for a new session that no worker can take.
        """
        async with self._gate:
            return await self._open()

    async def _open(self) -> "Transport":
        hello = Hello(self._principal, self._agent, opens=self.is_new)
        try:
            worker, key = await self.worker()
        except NoOwner as error:
            if self._placement is not None and (self.is_new or self.is_unknown):
                self.refusal = error
                raise
            self.waits = error
            return self._routes.read(self, hello)
        self.waits = None
        return await self._routes.connect(worker, msgspec.structs.replace(hello, session=key))

    async def worker(self) -> tuple[str, str]:
        """Find the worker that a connection leads to now, and the key of the session if there is one.

        Raises:
            NoOwner: there is none; the error has the reason.
            AcpError: it cannot be found out now.
        """
        if self.session_id is not None:
            row = await self._routes.row(self._agent, self.session_id)
            self.is_unknown = row is None
            if row is not None:
                return await self._routes.find(row.key) or await self._routes.place(placement_of(row)), row.key
            if (listed := self._routes.listed_at(self._agent, self.session_id)) is not None:
                return listed, ""
        if self.host and (chosen := self._routes.machines(self._agent).get(self.host)) is not None:
            return chosen, ""
        if self._placement is not None:
            return await self._routes.place(self._placement), ""
        return self._routes.any_worker(self._agent), ""  # which refuses a session that is nowhere, too
