"""Run all scenarios for clients of the remote profiles with a client, each against a server of the check, and report."""

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from secrets import token_urlsafe
from typing import Final, Protocol

from antiphon.conformance.client_process import CLIENT_PURPOSES, RunningClient
from antiphon.conformance.client_run import ClientCheckOptions
from antiphon.conformance.remote.judge import JudgeServer
from antiphon.conformance.remote.play import play_scenario, play_suite
from antiphon.conformance.requirements import Blocked, NotSeen, Scenario
from antiphon.conformance.results import ConformanceReport, ScenarioRecord
from antiphon.conformance.wire import VerdictRecorder
from antiphon.traffic.entries import Direction, Entry

__all__ = ["RemoteClientRun", "RemoteClientSource", "check_remote_client"]

SCENARIO_LIMIT: Final = 5
"""A scenario may take this many times as long as a response may."""

JOBS: Final = 2
"""Clients that run at once, by default."""

OUTPUT: Final = 300
"""Characters of what a client printed that are reported where it failed."""


class RemoteClientSource(Protocol):
    """A source of clients that connect to an address."""

    def has(self, purpose: str) -> bool:
        """Whether a client can be made to do this."""

    def start_for(self, purpose: str, cwd: Path, url: str, token: str) -> RunningClient:
        """A client that does what the purpose names with the agent at an address; the token is what it may send there."""


class RemoteClientRun(VerdictRecorder):
    """One scenario with one client, and the server that it connects to."""

    def __init__(self, place: RemoteClientSource, cwd: Path, options: ClientCheckOptions) -> None:
        super().__init__()
        self.place = place
        self.cwd = cwd
        self.options = options
        self.judge = JudgeServer()
        self.other = JudgeServer()
        """A server at another address, where the client has no business."""
        self.token = token_urlsafe(16)
        self._running: RunningClient | None = None

    async def start(self, scheme: str, purpose: str = "prompt") -> None:
        """Start the client.

        Raises:
            NotSeen: there is no command that makes it do this.
        """
        if not self.place.has(purpose):
            wanted = CLIENT_PURPOSES[purpose]
            raise NotSeen(f"there is no command for `{purpose}`; one in `--commands FILE` has to {wanted}")
        await self.judge.start()
        self._running = self.place.start_for(purpose, self.cwd, self.judge.url(scheme), self.token)

    @property
    def running(self) -> RunningClient:
        """The client that was started."""
        if self._running is None:
            raise Blocked("the client was not started")
        return self._running

    async def ended(self) -> int | None:
        """The status with which the client ends; None if it does not end in time."""
        self.running.end_input()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.running.ended.wait(), self.options.limit)
        return self.running.status

    def how(self, status: int | None) -> str:
        """How the client ended, as a sentence."""
        if status is None:
            return f"it did not end within {self.options.limit:g} s"
        printed = self.running.output[-OUTPUT:]
        return f"it ended with status {status}" + (f"; it printed: {printed}" if printed else "")

    async def received(self, method: str) -> Entry:
        """The first message of the client with this method.

        Raises:
            Blocked: it did not come.
        """

        def find() -> Entry | None:
            return next((entry for entry in self.judge.messages if entry.method == method), None)

        gone = asyncio.ensure_future(self.running.ended.wait())
        gone.add_done_callback(lambda _: self.judge.changed.set())
        try:
            await self.judge.until(lambda: find() is not None or gone.done(), self.options.limit)
        finally:
            gone.cancel()
        found = find()
        if found is None:
            raise Blocked(f"the client did not send `{method}`: {self.how(self.running.status)}")
        return found

    async def close(self) -> None:
        """End the client and the servers."""
        if self._running is not None:
            await self._running.close()
        await self.judge.close()
        await self.other.close()


@contextmanager
def _workspace() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="antiphon-check-", ignore_cleanup_errors=True) as folder:
        yield Path(folder).resolve()


def _name(judge: JudgeServer) -> str:
    hello = next((entry for entry in judge.messages if entry.method == "initialize"), None)
    info = hello.params.get("clientInfo") if hello is not None else None
    if not isinstance(info, dict):
        return ""
    return " ".join(str(info[key]) for key in ("name", "version") if isinstance(info.get(key), str))


async def check_remote_client(
    place: RemoteClientSource,
    options: ClientCheckOptions | None = None,
    *,
    only: Sequence[str] = (),
    jobs: int = JOBS,
    progress: Callable[[ScenarioRecord], None] | None = None,
) -> ConformanceReport:
    """Check a client of the remote profiles; `only` names the scenarios to run, unless all of them."""
    from antiphon.conformance.suites.remote_client import REMOTE_CLIENT_SUITE as SUITE

    chosen, peers = options or ClientCheckOptions(), list[str]()

    async def play(scenario: Scenario[RemoteClientRun]) -> ScenarioRecord:
        with _workspace() as cwd:
            run = RemoteClientRun(place, cwd, chosen)
            record = await play_scenario(scenario, run, SCENARIO_LIMIT * chosen.limit, "the scenario took too long")
        peers.append(_name(run.judge))
        return record

    report = await play_suite(SUITE, play, Direction.C2A, only=only, jobs=jobs, progress=progress)
    return replace(report, peer=next((name for name in peers if name), ""))
