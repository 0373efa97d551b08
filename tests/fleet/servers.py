"""Real `nats-server` processes for tests: on the loopback, with a store and ports of their own; one, or a cluster of three."""

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from antiphon.fleet.nats.program import find_nats_server
from tests.limits import limit

__all__ = ["NatsServer", "free_ports", "nats_cluster", "nats_server"]

LOOK = 0.01
"""Seconds between two looks at what a server has done: it writes a file, and says nothing."""

CONFIG = """\
server_name: "{name}"
listen: "127.0.0.1:{port}"
max_payload: {max_payload}
ports_file_dir: "{directory}"
{jetstream}
{cluster}
{more}
"""


class NatsServer:
    """One server. It keeps its port and its store when it is started again."""

    def __init__(
        self,
        directory: Path,
        *,
        name: str = "one",
        sync_interval: str = "2m",
        max_payload: int = 8 << 20,
        cluster: str = "",
        more: str = "",
        jetstream: bool = True,
        store_limit: str = "",
    ) -> None:
        self.name = name
        self.port = -1
        self.more = more
        self._directory = directory
        self._max_payload = max_payload
        self._cluster = cluster
        self._jetstream = ""
        if jetstream:
            bound = f"max_file_store: {store_limit}, " if store_limit else ""
            self._jetstream = (
                f'jetstream {{ store_dir: "{directory / "store"}", {bound}sync_interval: "{sync_interval}" }}'
            )
        self._process: subprocess.Popen[bytes] | None = None
        self._is_frozen = False
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"nats://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The id of the process."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it was started, and not ended since."""
        return self._process is not None

    @property
    def log(self) -> str:
        """What the server has logged."""
        return (self._directory / "log").read_text(encoding="utf-8", errors="replace")

    def start(self, *, wait: bool = True) -> None:
        """Start the server, and wait until it says on which port it listens."""
        assert self._process is None
        config = self._directory / "server.conf"
        config.write_text(
            CONFIG.format(
                name=self.name,
                port=self.port,
                max_payload=self._max_payload,
                directory=self._directory,
                jetstream=self._jetstream,
                cluster=self._cluster,
                more=self.more,
            ),
            encoding="utf-8",
        )
        for old in self._directory.glob("*.ports"):
            old.unlink()
        with open(self._directory / "log", "ab") as log:
            self._process = subprocess.Popen(
                [find_nats_server(), "--config", str(config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        if wait:
            self.wait()

    def wait(self) -> None:
        """Wait until the server says on which port it listens."""
        process = self._process
        assert process is not None
        file = self._directory / f"nats-server_{process.pid}.ports"
        end = time.monotonic() + limit()
        pause = threading.Event()
        while True:
            with suppress(OSError, ValueError):
                self.port = int(json.loads(file.read_text(encoding="utf-8"))["nats"][0].rpartition(":")[2])
                return
            assert process.poll() is None, f"nats-server ended:\n{self.log}"
            assert time.monotonic() < end, f"nats-server is not ready:\n{self.log}"
            pause.wait(LOOK)

    def kill(self) -> None:
        """Kill the server, as a crash would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the server in order."""
        self._end(signal.SIGTERM)

    def freeze(self) -> None:
        """Stop the process without ending it: its connections stay, and nothing answers."""
        self._is_frozen = True
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)  # its threads go on until each has noticed

    def thaw(self) -> None:
        """Let a frozen process go on, if it is there."""
        if self._is_frozen and self._process is not None:
            os.kill(self.pid, signal.SIGCONT)
        self._is_frozen = False

    def restart(self) -> None:
        """Start a killed or stopped server again, on its port and with its store."""
        self.start()

    def close(self) -> None:
        """Kill the server if it runs, and remove what it stored."""
        if self._process is not None:
            self.kill()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _end(self, how: signal.Signals) -> None:
        process, is_frozen = self._process, self._is_frozen
        self._process, self._is_frozen = None, False
        assert process is not None
        process.send_signal(how)
        if is_frozen:
            process.send_signal(signal.SIGCONT)  # else it does not see that it is to end
        process.wait(limit())


@contextmanager
def nats_server(directory: Path, *, sync_interval: str = "2m", more: str = "", **how: object) -> Iterator[NatsServer]:
    """Start one server; `how` is what `NatsServer` takes."""
    server = NatsServer(directory / "one", sync_interval=sync_interval, more=more, **how)  # type: ignore[arg-type]
    try:
        server.start()
        yield server
    finally:
        server.close()


@contextmanager
def nats_cluster(
    directory: Path, *, sync_interval: str = "2m", more: str = "", advertise: bool = True
) -> Iterator[Sequence[NatsServer]]:
    """Start three servers that know each other, and wait until they listen. The first that asks for a stream waits for a leader.

    `advertise`: whether they send the addresses of the others to clients.
    """
    names = ("a", "b", "c")
    routes = free_ports(len(names))
    addresses = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes)
    with ExitStack() as stack:
        servers = []
        for name, port in zip(names, routes, strict=True):
            told = "" if advertise else ", no_advertise: true"
            cluster = f'cluster {{ name: "fleet", listen: "127.0.0.1:{port}", routes: [{addresses}]{told} }}'
            server = NatsServer(directory / name, name=name, sync_interval=sync_interval, cluster=cluster, more=more)
            stack.callback(server.close)
            server.start(wait=False)
            servers.append(server)
        for server in servers:
            server.wait()
        yield servers


def free_ports(count: int) -> list[int]:
    """Return ports that are free now. Routes have to be known before a server starts."""
    with ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in found:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in found]
