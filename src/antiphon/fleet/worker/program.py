"""The worker as a program: its data, the policy of its user, the broker, and the signals that end it."""

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import msgspec

from antiphon.client.launch import user_database
from antiphon.config.directories import config_dir, state_dir
from antiphon.fleet.access.audit import AuditSender
from antiphon.fleet.nats import connect_broker
from antiphon.fleet.streams import SESSIONS
from antiphon.fleet.worker.worker import FleetWorker, WorkerOptions
from antiphon.gateway.access.messages import ClientRules
from antiphon.gateway.agents.host import GatewayRoots, UserPolicy
from antiphon.gateway.base import AgentSource
from antiphon.gateway.data import GatewayData
from antiphon.gateway.server.program import end_signals, note_to
from antiphon.gateway.server.traces import hub_traces

__all__ = ["WorkerProgram", "run_worker", "worker_directory"]


class WorkerProgram(msgspec.Struct, frozen=True):
    """How a worker is to be run."""

    fleet: tuple[str, ...]
    """Addresses of the broker, of which any is enough."""
    credentials: Path | None = None
    data: Path | None = None
    worker: WorkerOptions = WorkerOptions()
    client_rules: ClientRules = ClientRules()
    client_files: bool = False
    """Whether files and terminals are those of the attached client, where it offers them."""
    retention: float | None = None
    """Seconds for which the broker keeps events; None: as long as their session."""


def worker_directory(chosen: Path | None = None) -> Path:
    """Return the directory of a worker's data: the one that was chosen, or `worker` in the state directory."""
    return (state_dir() / "worker") if chosen is None else chosen.expanduser().absolute()


async def run_worker(
    program: WorkerProgram,
    agents: Mapping[str, AgentSource],
    announce: Callable[[FleetWorker], None],
    waiting: Callable[[int], None] = lambda turns: None,
) -> None:
    """Run a worker until a signal ends it, or a request to drain. `announce` gets it once it is a member of the fleet.

    `waiting` gets the number of turns that are waited for at the end, if there are any.

    Raises:
        AcpError: it cannot be started; the hint says why.
    """
    async with AsyncExitStack() as stack:
        asked, again = stack.enter_context(end_signals())  # first: a signal while we start ends us in order, too
        data = await stack.enter_async_context(GatewayData.open(worker_directory(program.data)))
        policy = UserPolicy(await stack.enter_async_context(user_database()))
        traces = await stack.enter_async_context(hub_traces(os.environ))
        options = program.worker
        name = f"worker {options.name}".strip()
        broker = await connect_broker(
            program.fleet,
            name=name,
            credentials=program.credentials,
            streams=(SESSIONS,),
            retention=program.retention,
        )
        stack.push_async_callback(broker.close)
        audit = AuditSender(broker, partial(note_to, data.audit))
        stack.push_async_callback(audit.close)
        directories = [*options.roots, *options.workspaces.values()]
        closed = [data.directory, state_dir(), config_dir(), *([program.credentials] if program.credentials else ())]
        worker = await stack.enter_async_context(
            FleetWorker(
                broker,
                data,
                agents,
                options,
                roots=GatewayRoots(directories, closed),
                gates=policy.gate,
                audit=audit,
                client_rules=program.client_rules,
                client_files=program.client_files,
                traces=traces,
            )
        )
        announce(worker)
        ends = [asyncio.ensure_future(each.wait()) for each in (asked, worker.asked_to_end)]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in ends:
                each.cancel()
        if turns := worker.hub.counts()["turns"]:
            waiting(turns)
        # A signal behind a request to drain is the first one, and hurries all the same.
        await worker.drain(again if asked.is_set() else asked)
