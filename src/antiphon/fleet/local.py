"""A whole fleet on this machine, to try it: a broker, one gateway and some workers, as processes that end together.

Each has a key of its own, with the rights of its role, as in a fleet of many machines. One that ends by itself is started again: a worker
that is killed is there again under its name, after its sessions have moved to another. A worker that was drained stays away.
"""

import asyncio
import fcntl
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from antiphon.config.directories import make_private_directory, private_opener, write_private_file
from antiphon.errors import AcpError
from antiphon.fleet.credentials import make_credentials, server_users
from antiphon.fleet.membership import LEASE
from antiphon.fleet.nats.program import find_nats_server
from antiphon.protocol.base import BAD_INPUT
from antiphon.transports.process import ProcessTransport, spawn

__all__ = ["LOCAL_FILE", "LocalFleet", "LocalFleetAddress", "find_local_fleet"]

LOCAL_FILE: Final = "fleet.json"
"""The file in its directory in which a fleet that runs says where it is, for commands of the same user."""

LOCK_FILE: Final = "lock"
"""The file in its directory that is locked as long as a fleet runs there."""

START_TIMEOUT: Final = 30.0
"""Seconds for a process of the fleet to say that it is ready."""

STOP_TIMEOUT: Final = 20.0
"""Seconds for a process of the fleet to end after it was asked to."""

LOOK_AGAIN: Final = 0.02
"""Seconds between two looks for the file in which the broker says where it listens."""

FIRST_DELAY: Final = 0.5
LONGEST_DELAY: Final = 10.0
"""Seconds before a process that ended by itself is started again: doubled each time, up to the longest."""

WORKER_DELAY: Final = LEASE + 2.0
"""Seconds before a worker that ended by itself is started again: another one has its sessions by then, as with a machine that is gone."""

BROKER_CONFIG: Final = """\
listen: "127.0.0.1:{port}"
server_name: "local"
max_payload: 8388608
ports_file_dir: "{ports}"
jetstream {{ store_dir: "{store}", sync_interval: "1s" }}
{users}
"""
"""One server of one machine. What is stored is on its disk within a second: a machine that loses its power may lose that second."""


class LocalFleetAddress(msgspec.Struct, frozen=True):
    """Where a fleet is that `antiphon fleet up` has started."""

    pid: int
    broker: str
    """The address of the broker."""
    credentials: str
    """The file with the key for commands that look at the fleet or drain workers."""


def find_local_fleet(directory: Path) -> LocalFleetAddress | None:
    """Return where the fleet is that runs in a directory; None: none does."""
    try:
        with open(directory / LOCK_FILE, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return msgspec.json.decode((directory / LOCAL_FILE).read_bytes(), type=LocalFleetAddress)
    except (OSError, msgspec.DecodeError):
        pass  # there is none, or it has not started yet
    return None


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Keep a directory for one fleet, as long as this process lives.

    Raises:
        AcpError: a fleet has it.
    """
    with open(directory / LOCK_FILE, "wb", opener=private_opener) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AcpError(
                f"a fleet runs in `{directory}` already",
                hint="`antiphon fleet status` shows it; end it with Ctrl-C where it was started, or choose another --data",
            ) from None
        yield


class LocalFleet:
    """The processes of a fleet on one machine, from `start` to `stop`."""

    def __init__(
        self,
        directory: Path,
        workers: int,
        *,
        serve: Sequence[str] = (),
        work: Sequence[str] = (),
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`serve` and `work` are further arguments of `antiphon serve` and `antiphon worker`; `report` gets what a person should know."""
        self._directory = directory
        self._names = [f"worker-{number}" for number in range(1, workers + 1)]
        self._serve = serve
        self._work = work
        self._report = report
        self._members: list[_Member] = []
        self._stack = AsyncExitStack()
        self.address = LocalFleetAddress(0, "", "")
        self.gateway: Mapping[str, Any] = {}
        """What `antiphon serve --json` says of itself."""

    async def start(self) -> None:
        """Start the processes. `stop` ends those that have started, also if this raises or is cancelled.

        Raises:
            AcpError: one of them does not start.
        """
        server = find_nats_server()
        make_private_directory(self._directory)
        self._stack.enter_context(_locked(self._directory))
        keys = make_credentials(self._directory / "keys", workers=self._names)
        url = await self._start_broker(server)
        self.address = LocalFleetAddress(os.getpid(), url, str(keys.admin))
        write_private_file(self._directory / LOCAL_FILE, msgspec.json.encode(self.address).decode())
        self._stack.callback(lambda: (self._directory / LOCAL_FILE).unlink(missing_ok=True))
        program = (sys.executable, "-m", "antiphon")

        def command(name: str, role: str, key: Path, *more: str) -> list[str]:
            data = str(self._directory / name)
            return [*program, role, "--fleet", url, "--credentials", str(key), "--data", data, "--json", *more]

        starting = [
            self._add(
                _Member(
                    name,
                    command(name, "worker", keys.workers[name], "--name", name, *self._work),
                    self._report,
                    is_worker=True,
                )
            )
            for name in self._names
        ]
        gateway = _Member("gateway", command("gateway", "serve", keys.gateway, *self._serve), self._report)
        *_, line = await asyncio.gather(*starting, self._add(gateway))
        self.gateway = json.loads(line)
        gateway.command += ["--port", self.gateway["url"].rpartition(":")[2]]  # where pages look for it from now on

    async def _start_broker(self, server: str) -> str:
        """Start the broker on a free port, and from then on always on that one, and return its address."""
        ports = self._directory / "ports"
        shutil.rmtree(ports, ignore_errors=True)  # of a process that was killed
        make_private_directory(ports)
        config = self._directory / "broker.conf"

        def configured(port: int) -> str:
            users = server_users(self._directory / "keys")
            return BROKER_CONFIG.format(port=port, ports=ports, store=self._directory / "broker", users=users)

        write_private_file(config, configured(-1))
        member = _Member("broker", [server, "--config", str(config)], self._report, ready_file=ports)
        ports_line = json.loads(await self._add(member))
        url = str(ports_line["nats"][0])
        write_private_file(config, configured(int(url.rpartition(":")[2])))
        return url

    async def _add(self, member: "_Member") -> str:
        self._members.append(member)
        return await member.start()

    async def stop(self, hurry: asyncio.Event | None = None) -> None:
        """End all processes: the gateway and the workers first, so that the last events are stored, then the broker.

        Turns may go on for some seconds; `hurry` ends them at once.
        """
        broker, others = self._members[:1], self._members[1:]
        for members in (others, broker):
            await asyncio.gather(*(member.stop(hurry or asyncio.Event()) for member in members))
        self._members.clear()
        await self._stack.aclose()


class _Member:
    """A process of the fleet that is started again when it ends by itself."""

    def __init__(
        self,
        name: str,
        command: list[str],
        report: Callable[[str], None],
        *,
        ready_file: Path | None = None,
        is_worker: bool = False,
    ) -> None:
        self.name = name
        self.command = command
        self._report = report
        self._is_worker = is_worker
        self._delay = WORKER_DELAY if is_worker else FIRST_DELAY
        self._ready_file = ready_file
        """A directory in which it writes a file with what it has to say; None: it says it on stdout, in one line."""
        self._process: ProcessTransport | None = None
        self._ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._keeper: asyncio.Task[None] | None = None
        self._is_stopping = False

    async def start(self) -> str:
        """Start it and keep it running, and return the line that it printed when it was ready.

        Raises:
            AcpError: it ended before, or took too long.
        """
        self._keeper = asyncio.ensure_future(self._keep())
        try:
            async with asyncio.timeout(START_TIMEOUT):
                return await asyncio.shield(self._ready)
        except TimeoutError as error:
            raise AcpError(
                f"{self.name} was not ready after {START_TIMEOUT:g} seconds",
                hint=f"start it by hand to see why: {' '.join(self.command)}",
            ) from error

    async def _keep(self) -> None:
        delay = self._delay
        while not self._is_stopping:
            try:
                process = self._process = await spawn(self.command)
            except AcpError as error:
                self._fail(error)
                self._report(f"{self.name} cannot be started: {error.sentence}")
                return
            watching = asyncio.ensure_future(self._read(process))
            while not await process.exited(60.0):
                delay = self._delay  # it has run for a while
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await process.close()
            self._process = None
            if not self._ready.done():
                last = process.stderr.strip().splitlines() or [f"it ended with {process.status}"]
                self._fail(AcpError(f"{self.name} did not start: {last[0].removeprefix('error: ')}", hint=_hint(last)))
                return
            if not self._is_stopping:
                if self._is_worker and process.status == 0:
                    self._report(f"{self.name} was drained, and is away until the fleet is started again")
                    return
                self._report(f"{self.name} ended ({_end(process.status)}): it is started again in {delay:g} seconds")
                await asyncio.sleep(delay)
                delay = min(delay * 2, LONGEST_DELAY)

    def _fail(self, error: AcpError) -> None:
        if not self._ready.done():
            self._ready.set_exception(error)

    async def _read(self, process: ProcessTransport) -> None:
        """Take what it prints: the first line says that it is ready, what follows is of no use here."""
        if self._ready_file is not None:
            while not self._ready.done():
                for file in self._ready_file.glob("*.ports"):
                    with suppress(OSError, ValueError):
                        text = file.read_text(encoding="utf-8")
                        json.loads(text)
                        self._ready.set_result(text)
                        break
                else:
                    await asyncio.sleep(LOOK_AGAIN)
        while (line := await process.receive()) is not None:
            if not self._ready.done() and isinstance(line, bytes) and not _is_error(line):  # stderr has an error too
                self._ready.set_result(line.decode("utf-8", "replace"))

    async def stop(self, hurry: asyncio.Event) -> None:
        """End it in order, and at once where that takes too long."""
        self._is_stopping = True
        process = self._process
        if process is not None:
            for _ in range(2):  # the second signal says that nothing is to be waited for
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGTERM)
                if await _exited(process, hurry):
                    break
            process.skip_grace()
            await process.close()
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)


async def _exited(process: ProcessTransport, hurry: asyncio.Event) -> bool:
    """Wait until a process has ended, for half of the time that it has; less if there is a hurry."""
    is_hurried = hurry.is_set()
    exited = asyncio.ensure_future(process.exited(STOP_TIMEOUT / 2))
    hurried = asyncio.ensure_future(hurry.wait())
    try:
        await asyncio.wait([exited] if is_hurried else [exited, hurried], return_when=asyncio.FIRST_COMPLETED)
        return exited.done() and exited.result()
    finally:
        for task in (exited, hurried):
            task.cancel()
        await asyncio.gather(exited, hurried, return_exceptions=True)


def _is_error(line: bytes) -> bool:
    """Whether a line is what a command of ours prints as JSON when it fails."""
    try:
        return msgspec.json.decode(line, type=_Line).type == "error"
    except BAD_INPUT:
        return False


class _Line(msgspec.Struct):
    type: str = ""


def _end(status: int | None) -> str:
    if status is not None and status < 0:
        with suppress(ValueError):
            return signal.Signals(-status).name
    return f"status {status}"


def _hint(lines: Sequence[str]) -> str:
    """Return the hint among the lines that a process of ours wrote to stderr."""
    return next((line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")), "")
