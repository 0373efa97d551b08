"""The start of a gateway in a fleet: its copy of what the fleet has stored, its tokens, and its ways to the workers."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from secrets import token_hex
from sqlite3 import Connection
from typing import Final

import msgspec

from antiphon.errors import AcpError
from antiphon.fleet.access.audit import AuditReceiver
from antiphon.fleet.access.tokens import FleetTokens
from antiphon.fleet.archive import FleetArchive
from antiphon.fleet.broker import Broker
from antiphon.fleet.carrier import CarrierDialer
from antiphon.fleet.connection import CarrierLimits
from antiphon.fleet.control import WorkerControl
from antiphon.fleet.gateway.directories import FleetDirectories
from antiphon.fleet.gateway.hub import FleetHub, FleetView
from antiphon.fleet.gateway.reader import SessionReader
from antiphon.fleet.gateway.routes import OwnerRoutes
from antiphon.fleet.journal import FleetJournal
from antiphon.fleet.membership import INTERVAL, LEASE, Members
from antiphon.fleet.nats import connect_broker
from antiphon.fleet.owner import FleetOwner
from antiphon.fleet.rows import FleetRows
from antiphon.fleet.streams import ACCESS, SESSIONS
from antiphon.fleet.worker.summaries import SessionSummaries
from antiphon.gateway.data import DAY, GatewayData
from antiphon.gateway.server.program import GatewaySource, OpenGateway, ServeOptions, note_to
from antiphon.journal.base import JournalEntry
from antiphon.web.assets import page_hash

__all__ = ["FleetAddress", "fleet_gateway", "open_fleet_gateway"]

KNOWN_TIMEOUT: Final = 5.0
"""Seconds for the first round of beats. Workers that come later are found when they come."""

NOT_PRUNED: Final = 100_000
"""Days, and as many gigabytes, after which the copy of this gateway would be pruned by itself: what is old is deleted for the whole fleet."""


class FleetAddress(msgspec.Struct, frozen=True):
    """Where a fleet is, and how its workers are judged."""

    servers: tuple[str, ...]
    """Addresses of the broker, of which any is enough."""
    credentials: Path | None = None
    default: str = ""
    """The agent at `/acp`; empty: the first one by its name."""
    lease: float = LEASE
    interval: float = INTERVAL


def fleet_gateway(address: FleetAddress) -> GatewaySource:
    """Return what starts a gateway of a fleet."""

    async def start(options: ServeOptions, stack: AsyncExitStack) -> OpenGateway:
        brokers = []
        for stream in (SESSIONS, ACCESS):  # the tokens are in an account of the broker that no worker is in
            broker = await connect_broker(
                address.servers, name="gateway", credentials=address.credentials, streams=(stream,)
            )
            stack.push_async_callback(broker.close)
            brokers.append(broker)
        sessions, access = brokers
        return await open_fleet_gateway(sessions, address, options, stack, access=access)

    return start


async def open_fleet_gateway(
    broker: Broker,
    address: FleetAddress,
    options: ServeOptions,
    stack: AsyncExitStack,
    *,
    access: Broker | None = None,
) -> OpenGateway:
    """Start a gateway over a broker. `access` is its connection for tokens, if that is another one.

    Raises:
        AcpError: the broker or its file cannot be used; the hint says why.
    """
    data = await stack.enter_async_context(GatewayData.open(options.data))
    await _check_directory(data)
    tokens = FleetTokens(access or broker, data.directory)
    data.tokens = tokens
    stack.push_async_callback(tokens.close)
    await tokens.load()
    members = Members(broker, address.lease, address.interval)
    stack.callback(members.close)
    journal, archive = _stores(broker, data, members)
    stack.push_async_callback(journal.close)
    rows = FleetRows(broker, journal, data)
    stack.push_async_callback(rows.close)
    await rows.start()
    stack.push_async_callback(archive.close)
    stack.callback(AuditReceiver(broker, data.audit).close)
    dialer = CarrierDialer(broker, limits=CarrierLimits(ping=address.interval, silence=address.lease))
    stack.push_async_callback(dialer.close)
    owner = FleetOwner(broker, members, dialer)
    view = _view(broker, members, owner, rows, journal, options, stack)
    hub = FleetHub(
        view,
        rows,
        journal,
        limits=options.limits,
        audit=partial(note_to, data.audit),
        default=address.default,
        page=page_hash(),
        problem=lambda: tokens.problem or next((each.problem for each in members.workers.values() if each.problem), ""),
        row_changed=archive.note,
        row_deleted=tokens.forget_session,
    )
    try:
        async with asyncio.timeout(KNOWN_TIMEOUT):
            await members.known()
    except TimeoutError:
        pass  # the page says that the broker is away
    await hub.start()
    await archive.start()  # not before the hub, which hands it the turns that end

    async def prune(now: float) -> Sequence[str]:
        return await _prune(data, rows, owner, options, now)

    return OpenGateway(data, hub, lambda: hub.agents, lambda: hub.default, prune, has_turns=False)


def _stores(broker: Broker, data: GatewayData, members: Members) -> tuple[FleetJournal, FleetArchive]:
    """Return the journal of the fleet and the archive of this gateway, each of which reads what only the other has."""

    async def archived(session: str, after: int, limit: int) -> list[JournalEntry]:
        return await archive.read(session, after, limit)

    journal = FleetJournal(broker, f"gateway.{token_hex(3)}", members.is_alive, archive=archived)
    archive = FleetArchive(broker, data, journal.read)
    return journal, archive


def _view(
    broker: Broker,
    members: Members,
    owner: FleetOwner,
    rows: FleetRows,
    journal: FleetJournal,
    options: ServeOptions,
    stack: AsyncExitStack,
) -> FleetView:
    summaries = SessionSummaries(broker, members)
    stack.callback(summaries.close)
    control = WorkerControl(broker)
    reader = SessionReader(rows, journal, options.limits)
    workers = members.workers.values
    return FleetView(
        workers,
        lambda: broker.is_connected,
        OwnerRoutes(owner, workers, rows, reader),
        reader,
        FleetDirectories(control, workers),
        control,
        summaries,
    )


async def _check_directory(data: GatewayData) -> None:
    """Refuse a directory with the sessions of a gateway that is not in a fleet: they would look like sessions of the fleet.

    Raises:
        AcpError: it is one.
    """

    def has_sessions(connection: Connection) -> bool:
        return connection.execute("SELECT 1 FROM session LIMIT 1").fetchone() is not None

    if await data.database.read(has_sessions) and not await data.is_copy():
        raise AcpError(
            f"`{data.directory}` has the sessions of a gateway that is in no fleet",
            hint="choose another directory with --data",
        )


async def _prune(
    data: GatewayData, rows: FleetRows, owner: FleetOwner, options: ServeOptions, now: float
) -> Sequence[str]:
    """Delete the sessions that no client has used for as long as they are kept, at all gateways; and old entries of the audit log here."""
    retention = options.retention
    kept = msgspec.structs.replace(retention, session_days=NOT_PRUNED, total_bytes=NOT_PRUNED * 1024**3)
    await data.prune(kept, now=now)
    deleted: list[str] = []
    for row in await rows.all():
        is_old = max(row.updated, row.created) < now - retention.session_days * DAY
        if is_old and not row.turn and await owner.find(row.key) is None:
            await rows.delete(row.key)
            deleted.append(row.key)
    return deleted
