"""Faults of the tests of a gateway: a small disk that can be filled, a clock that jumps, agents and gateways that are killed; and clients
over sockets that come back and remember what they have seen."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from antiphon.transports.websocket import open_websocket
from tests.gateway.peers import RawClient
from tests.gateway.processes import Gateway, running
from tests.gateway.test_attachments import numbers
from tests.limits import limit
from tests.waits import until

__all__ = ["MESSAGE", "FaultyGateway", "ReturningUser", "SmallDisk", "children_of"]

MESSAGE = 64 * 1024 * 1024
"""Bytes that a client of these tests takes at once."""


class SmallDisk:
    """A file system of its own for a directory, in a mount namespace that ends with the process which holds it."""

    def __init__(self, directory: Path, holder: "subprocess.Popen[bytes]") -> None:
        self.prefix = ("nsenter", "--target", str(holder.pid), "--user", "--mount", "--preserve-credentials")
        """What starts a program that sees this disk."""
        self.view = Path(f"/proc/{holder.pid}/root")
        """The root directory of the programs that see it, for those that do not."""
        self._filler = self.view / directory.relative_to("/") / "filler"

    @classmethod
    @contextmanager
    def mounted(cls, directory: Path, size: str = "24m") -> "Iterator[SmallDisk]":
        """Mount it on a directory, as long as the block lasts."""
        directory.mkdir(parents=True, exist_ok=True)
        script = f'mount -t tmpfs -o size={size},mode=700 none "$0" && echo && exec cat'
        command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, str(directory)]
        holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert holder.stdin is not None and holder.stdout is not None
        try:
            assert holder.stdout.readline() == b"\n", "no file system could be mounted"
            yield cls(directory, holder)
        finally:
            holder.stdin.close()
            holder.wait(limit())
            holder.stdout.close()

    def fill(self) -> None:
        """Leave no space at all."""
        with open(self._filler, "ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                with suppress(OSError):  # no space is left
                    while file.write(bytes(size)):
                        pass

    def free(self) -> None:
        """Give the space back."""
        self._filler.unlink(missing_ok=True)


class FaultyGateway:
    """A gateway as people start it, that can be killed and started again on the same data."""

    def __init__(
        self, directory: Path, *options: str, without: str = "quick restarts", disk: SmallDisk | None = None
    ) -> None:
        self.directory = directory
        self.root = directory / "root"
        self.disk = disk
        self.clock = directory / "clock"
        self._options = options
        self._without = without
        self._stack = ExitStack()
        self.gateway: Gateway = self._start()

    def _start(self) -> Gateway:
        prefix, view = ((), Path("/")) if self.disk is None else (self.disk.prefix, self.disk.view)
        env = {"ANTIPHON_TEST_CLOCK": str(self.clock), "ANTIPHON_TEST_GATE": str(self.directory / "gate")}
        options = ("--limit", "prompts-per-minute=100000", *self._options)
        return self._stack.enter_context(
            running(self.directory, *options, without=self._without, env=env, prefix=prefix, view=view)
        )

    def __enter__(self) -> "FaultyGateway":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def kill(self) -> None:
        """Kill it with SIGKILL, and start it again."""
        self.gateway.kill()
        self._stack.close()
        self.gateway = self._start()

    def kill_agent(self) -> bool:
        """Kill the process of the agent with SIGKILL. False: there is none."""
        found = [pid for pid in children_of(self.gateway.process.pid) if _is_agent(pid)]
        for pid in found:
            os.kill(pid, signal.SIGKILL)
        return bool(found)

    def jump(self, seconds: float) -> None:
        """Set the clock of the gateway, by so many seconds from the true time."""
        half = self.clock.with_suffix(".half")
        half.write_text(str(seconds), encoding="utf-8")
        half.replace(self.clock)

    async def client(self, *, numbers: bool = True) -> RawClient:
        """Connect a client and initialize it."""
        address = f"ws://127.0.0.1:{self.gateway.port}/acp"
        transport = await open_websocket(address, headers=self.gateway.bearer, limit=2 * MESSAGE, timeout=limit())
        client = RawClient(None, transport=transport)
        await client.initialize(numbers=numbers)
        return client

    async def history(self, session: str) -> list[str]:
        """Load a session over a connection of its own, and return its texts."""
        client = await self.client(numbers=False)
        await client.request("session/load", {"sessionId": session, "cwd": str(self.root), "mcpServers": []})
        await client.leave()
        return client.texts

    async def idle(self, session: str) -> int:
        """Answer what is asked until no turn runs and no prompt waits; return the number of the last event."""
        client, answered = await self.client(), 0
        while True:
            seen = len(client.frames)
            state = await client.request("_antiphon/session/attach", {"sessionId": session})
            if state["turn"] is None and not state["queued"]:
                await client.leave()
                return int(state["number"])
            for request in client.requests()[answered:]:
                client.choose(request)
                answered += 1
            await until(lambda count=seen + 1: len(client.frames) > count)  # type: ignore[misc]


class ReturningUser:
    """A person who connects again after each cut, says where the last connection stopped, and remembers all events."""

    def __init__(self, gateway: FaultyGateway, session: str = "") -> None:
        self.session = session
        self.seen: list[int] = []
        self.texts: list[str] = []
        self.client: RawClient | None = None
        self._gateway = gateway

    @property
    def here(self) -> RawClient:
        assert self.client is not None
        return self.client

    @property
    def numbers(self) -> list[int]:
        """The numbers of all events that were seen."""
        return self.seen + (numbers(self.client) if self.client is not None else [])

    @property
    def all_texts(self) -> list[str]:
        return self.texts + (self.client.texts if self.client is not None else [])

    async def come(self) -> None:
        """Connect, and attach after the last event that was seen; or open a session."""
        assert self.client is None
        client = await self._gateway.client()
        if not self.session:
            self.session = await client.new(self._gateway.root)
        else:
            after = self.seen[-1] if self.seen else 0
            await client.request("_antiphon/session/attach", {"sessionId": self.session, "after": after})
        self.client = client

    async def cut(self) -> None:
        """Cut the connection without a word, and keep what was seen."""
        client = self.here
        client.transport._socket.transport.abort()  # type: ignore[attr-defined]
        await until(lambda: client.is_lost)
        await self.leave()

    async def leave(self) -> None:
        """End the connection if there is one, and keep what was seen."""
        if self.client is not None:
            await self.client.leave()
            self.seen, self.texts, self.client = self.numbers, self.all_texts, None


def children_of(pid: int) -> list[int]:
    """The processes below a process."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in children.read_text(encoding="utf-8").split()]
        except OSError:
            continue
    return [each for child in found for each in (child, *children_of(child))]


def _is_agent(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[1:5] == [b"-m", b"antiphon", b"agent", b"--engine"]
