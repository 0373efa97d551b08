"""The executable that `{agent}` stands for in a client's command, and the socket on which the check waits for it."""

import asyncio
import os
import shlex
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from antiphon.conformance import shim as pump
from antiphon.transports.base import Transport
from antiphon.transports.pipes import PipeTransport

__all__ = ["AgentProcessStart", "AgentStart", "OnAgentStart", "ShimSocket"]

LONGEST: Final = 90
"""Bytes that the address of a socket may have: 104 on macOS, 108 on Linux, with its end."""

HELLO_LIMIT: Final = 64 * 1024
"""Bytes of the first line of a connection: a command line may be long."""


class AgentStart:
    """One start of the agent by the client, in memory: nothing but a connection."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def leave(self) -> None:
        """End like an agent that dies: nothing more is read or sent."""
        await self.transport.close()


OnAgentStart = Callable[[AgentStart], None]


class AgentProcessStart(AgentStart):
    """The agent as a process. `events` is what became of it: `eof`, `flooded`, the names of signals."""

    def __init__(self, transport: Transport, control: socket.socket, facts: dict[str, object]) -> None:
        super().__init__(transport)
        self.facts = facts
        """How it was started: `argv` (what stood behind it), `cwd`, `pid`."""
        self.events: list[str] = []
        self.gone = False
        self._control = control
        self._changed = asyncio.Condition()

    async def follow(self) -> None:
        """Read its events, to its end."""
        loop, rest = asyncio.get_running_loop(), b""
        with suppress(OSError, msgspec.DecodeError, KeyError, TypeError):
            while chunk := await loop.sock_recv(self._control, 4096):
                *lines, rest = (rest + chunk).split(b"\n")
                await self._note([str(msgspec.json.decode(line)["event"]) for line in lines])
        self.gone = True
        await self._note([])

    async def _note(self, events: list[str]) -> None:
        async with self._changed:
            self.events += events
            self._changed.notify_all()

    async def _command(self, words: str) -> None:
        with suppress(OSError):
            await asyncio.get_running_loop().sock_sendall(self._control, words.encode() + b"\n")

    async def _happens(self, event: str, limit: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(limit), self._changed:
                await self._changed.wait_for(lambda: event in self.events or self.gone)
        return event in self.events

    async def leave(self) -> None:
        await self._command("exit 3")
        await self.is_gone(5.0)
        await super().leave()

    async def flood(self, size: int, limit: float) -> bool:
        """Write so many bytes to stderr: whether the client read them."""
        await self._command(f"flood {size}")
        return await self._happens("flooded", limit)

    async def outlive_input(self, limit: float) -> bool:
        """Make the shim stay when its input ends. Return whether it confirmed in time."""
        await self._command("outlive")
        return await self._happens("outlives input", limit)

    async def is_gone(self, limit: float) -> bool:
        """Whether the process has ended, or does within the limit."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit), self._changed:
                await self._changed.wait_for(lambda: self.gone)
        return self.gone


class ShimSocket:
    """A directory that only we may enter, with the file and the socket. `close` ends everything that came through it."""

    def __init__(self, on_start: OnAgentStart) -> None:
        self._on_start = on_start
        self._place = _short_directory()
        self.agent = self._place / "agent"
        """The file to start."""
        address = str(self._place / "s")
        words = [sys.executable, "-I", "-S", pump.__file__, address]
        self.agent.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        self.agent.chmod(0o700)
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(address)
        self._listening.listen(16)
        self._listening.setblocking(False)
        self._controls: dict[str, tuple[socket.socket, dict[str, object]]] = {}
        self._sockets: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._keep(self._listen())

    def _keep(self, doing: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            came, _ = await loop.sock_accept(self._listening)
            came.setblocking(False)
            self._sockets.append(came)
            self._keep(self._take(came))  # a connection that sends nothing must not block the others

    async def _take(self, came: socket.socket) -> None:
        """A shim connects twice, first for its control. Other programs that know the address send nothing that is understood."""
        kind, _, pid = (await _line(came)).partition(" ")
        if kind == "control":
            with suppress(msgspec.DecodeError, KeyError, TypeError):
                facts = msgspec.json.decode(await _line(came))
                self._controls[str(facts["pid"])] = came, facts
        elif kind == "data" and pid in self._controls:
            control, facts = self._controls.pop(pid)
            self._sockets.remove(came)
            agent_start = AgentProcessStart(_transport(came), control, facts)
            self._keep(agent_start.follow())
            self._on_start(agent_start)

    async def close(self) -> None:
        """Close the socket and everything that came through it."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for one in (self._listening, *self._sockets):
            one.close()
        shutil.rmtree(self._place, ignore_errors=True)


def _short_directory() -> Path:
    """A path without spaces, because commands are often split at them, and short enough for a socket."""
    made = tempfile.mkdtemp(prefix="acp-")
    if len(os.fsencode(made)) > LONGEST - 2 or set(made) & set(" \t'\"\\"):
        os.rmdir(made)
        made = tempfile.mkdtemp(prefix="acp-", dir="/tmp")  # for us alone, as `mkdtemp` makes them
    return Path(made)


async def _line(came: socket.socket) -> str:
    """Letter by letter: what follows belongs to another reader."""
    loop, line = asyncio.get_running_loop(), b""
    while not line.endswith(b"\n") and len(line) < HELLO_LIMIT:
        letter = await loop.sock_recv(came, 1)
        if not letter:
            break
        line += letter
    return line.decode("utf-8", "replace").strip()


def _transport(came: socket.socket) -> Transport:
    """The connection as a transport, which owns two descriptors of it."""
    reading = os.dup(came.fileno())
    return PipeTransport(reading, came.detach())
