"""A fleet as people see it: its broker, its workers and their load, its sessions and who owns them; and the request that drains a worker."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from antiphon.errors import AcpError
from antiphon.fleet.broker import StoredMessage
from antiphon.fleet.control import WorkerControl, WorkerRequest
from antiphon.fleet.membership import LEASE, Members, WorkerState
from antiphon.fleet.nats.broker import NatsBroker, connect_broker
from antiphon.fleet.records.appends import SLOW
from antiphon.fleet.records.formats import ALL_OWNERS, ALL_ROWS, STREAM_SUBJECT, RowRecord, key_of, owner_of
from antiphon.fleet.streams import SESSIONS, StoredSize
from antiphon.store.errors import StoreError

__all__ = ["BrokerLine", "FleetOverview", "OwnedSession", "WorkerLine", "drain_worker", "fleet_overview"]

SHOWN: Final = 100
"""Sessions that are listed, those used last first."""


class BrokerLine(msgspec.Struct, frozen=True):
    """How the broker is."""

    state: str
    servers: int
    messages: int
    bytes: int
    lag: int
    """Messages that the slowest server has not got yet."""


class WorkerLine(msgspec.Struct, frozen=True):
    """How a worker is."""

    name: str
    state: str
    host: str
    version: str
    agents: tuple[str, ...]
    labels: tuple[str, ...]
    roots: tuple[str, ...]
    workspaces: Mapping[str, str]
    slots: int
    used: int
    sessions: int
    turns: int
    problem: str = ""
    """Why it cannot store what happens in its sessions."""
    pid: int = 0
    """The number of its process on its machine; 0: its version does not tell."""


class OwnedSession(msgspec.Struct, frozen=True):
    """A session and the worker that owns it."""

    key: str
    id: str
    agent: str
    title: str
    cwd: str
    running: bool
    owner: str
    """Empty: no worker that lives has it open. The next one that it is needed at claims it."""


class FleetOverview(msgspec.Struct, frozen=True):
    """A fleet at one moment."""

    broker: BrokerLine
    workers: tuple[WorkerLine, ...]
    sessions: tuple[OwnedSession, ...]
    total: int
    """How many sessions there are; those used last are listed."""


@asynccontextmanager
async def _looking(broker_url: str, credentials: Path | None) -> "AsyncIterator[tuple[NatsBroker, Members]]":
    """Give a connection to the broker, and the workers once all that live have sent a beat."""
    broker = await connect_broker(broker_url, name="antiphon fleet", credentials=credentials, streams=(SESSIONS,))
    try:
        members = Members(broker)
        try:
            async with asyncio.timeout(2 * LEASE):
                await members.known()
        except TimeoutError:
            raise AcpError("the broker does not answer", hint="try again in a moment") from None
        try:
            yield broker, members
        finally:
            members.close()
    finally:
        await broker.close()


async def fleet_overview(broker_url: str, credentials: Path | None = None) -> FleetOverview:
    """Look at a fleet.

    Raises:
        AcpError: its broker cannot be reached, or does not let us in.
    """
    async with _looking(broker_url, credentials) as (broker, members):
        asked = broker.clock()
        size = await broker.stored_size(SESSIONS)
        took = broker.clock() - asked
        owners = {key_of(each.subject): _owner(each) for each in await broker.lasts(ALL_OWNERS)}
        born: dict[tuple[str, str], RowRecord] = {}
        damaged = 0
        for message in await broker.lasts(ALL_ROWS):
            if message.subject == STREAM_SUBJECT:
                continue
            try:
                record = RowRecord.of(message)
            except StoreError:
                damaged += 1  # of one session: the others are to be seen
                continue
            id = record.row.agent, record.row.session_id
            if not record.deleted and record.shown and (id not in born or born[id].born < record.born):
                born[id] = record  # an agent that gives an id again archives the session that had it
        rows = sorted((each.row for each in born.values()), key=lambda row: row.updated or row.created, reverse=True)
        sessions = tuple(
            OwnedSession(
                row.key,
                row.session_id,
                row.agent,
                row.title,
                row.cwd,
                bool(row.turn),
                # Not `is_alive`: for the length of a lease it takes a worker that is not known for one that may live.
                owner if (owner := owners.get(row.key, "")) in members.workers else "",
            )
            for row in rows[:SHOWN]
        )
        workers = tuple(_line(each) for each in sorted(members.workers.values(), key=lambda each: each.name))
    problems = [each.problem for each in workers if each.problem]
    if damaged:
        problems.append(f"{damaged} damaged row{'s' if damaged != 1 else ''}, restore the stream from a backup")
    state = _broker_state(size, took, problems)
    return FleetOverview(
        BrokerLine(state, size.servers, size.messages, size.bytes, size.lag), workers, sessions, len(rows)
    )


def _owner(message: StoredMessage) -> str:
    """Return the worker that a record names; empty where it is damaged."""
    try:
        return owner_of(message).worker
    except StoreError:
        return ""


def _broker_state(size: StoredSize, took: float, problems: Sequence[str]) -> str:
    """Return `ok`, or what is wrong with the broker: by its servers, by what workers meet, by how long it took to answer."""
    found = sorted(set(problems))
    if size.away:
        found.insert(0, f"{size.away} of {size.servers} servers are away, or store nothing since their disk was full")
    if took >= SLOW and not found:
        found.append(f"slow: it took {took:.0f} seconds to answer")
    return "; ".join(found) or "ok"


def _line(worker: WorkerState) -> WorkerLine:
    well = "cannot store" if worker.problem else "ok"
    state = "draining" if worker.draining else well if worker.is_compatible else "another version"
    return WorkerLine(
        worker.name,
        state,
        worker.host,
        worker.version,
        worker.agents,
        worker.labels,
        worker.roots,
        worker.workspaces,
        worker.slots,
        worker.used,
        worker.sessions,
        worker.turns,
        worker.problem,
        worker.pid,
    )


async def drain_worker(broker_url: str, credentials: Path | None, name: str) -> Mapping[str, object]:
    """Have a worker take no more sessions, wait for its turns, give its sessions to others and end. Return what it says.

    Raises:
        AcpError: there is no such worker, or it refuses.
    """
    async with _looking(broker_url, credentials) as (broker, members):
        found = [each for each in members.workers if each == name or each.rpartition(".")[0] == name]
        if len(found) != 1:
            known = ", ".join(sorted(members.workers)) or "none"
            what = "no worker" if not found else "more than one worker"
            hint = (
                f"those that live: {known}"
                if not found
                else f"give the whole name of one of: {', '.join(sorted(found))}"
            )
            raise AcpError(f"there is {what} `{name}`", hint=hint)
        return await WorkerControl(broker).ask(found[0], WorkerRequest("drain"))
