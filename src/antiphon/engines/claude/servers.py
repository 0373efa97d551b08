"""The MCP servers of a session as the file that `--mcp-config` names. It may hold keys, so only its owner can read it."""

import os
import shutil
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from antiphon.engines.naming import free_name
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ServerFile", "servers_of"]

_DOLLAR: Final = "${ANTIPHON_UNSET_VARIABLE:-$}{"
"""What the CLI reads as a plain `${`: it puts the values of variables into what the file says, and the client means what it says."""

_TIMES_IN_HEADERS: Final = 2
"""It does so once when it reads the file, and in headers again when it connects."""


class ServerFile:
    """Made when a process first asks for it, and kept for the next one until it is removed.

    Where the system can, it is no file on a disk but memory of ours that has a name: it is gone when we are, however that happens.
    """

    def __init__(self, servers: "Iterable[v1.McpServer]") -> None:
        self._servers = servers_of(servers)
        self._memory: int | None = None
        self._folder: str | None = None

    def path(self) -> str | None:
        """Where it is; None without servers, which need no file."""
        if not self._servers:
            return None
        if self._memory is None and self._folder is None:
            self._make(msgspec.json.encode({"mcpServers": self._servers}))
        if self._folder is not None:
            return os.path.join(self._folder, "servers.json")
        return f"/proc/{os.getpid()}/fd/{self._memory}"

    def _make(self, data: bytes) -> None:
        if hasattr(os, "memfd_create"):
            self._memory = os.memfd_create("antiphon")
            os.fchmod(self._memory, 0o600)
            if os.access(f"/proc/{os.getpid()}/fd/{self._memory}", os.R_OK):
                os.write(self._memory, data)
                return
            self.remove()  # there is no /proc to find it in
        self._folder = tempfile.mkdtemp(prefix="antiphon-")  # for its owner alone
        fd = os.open(
            os.path.join(self._folder, "servers.json"), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
        )
        with os.fdopen(fd, "wb") as file:
            file.write(data)

    def remove(self) -> None:
        """It is not needed any more: nobody lives who has been told its name and may not have read it yet.

        The name of our memory is a number of ours, and the next thing that we open gets it. Who comes late reads that instead:
        from a pipe, it takes away what was said to another.
        """
        memory, self._memory = self._memory, None
        if memory is not None:
            os.close(memory)
        folder, self._folder = self._folder, None
        if folder is not None:
            with suppress(OSError):
                shutil.rmtree(folder)


def servers_of(servers: "Iterable[v1.McpServer]") -> dict[str, dict[str, Any]]:
    """Name → what the CLI is told of it. The names become parts of tool names, so each is made safe and given once."""
    found = dict[str, dict[str, Any]]()
    for server in servers:
        match server:
            case v1.StdioServer():
                told = {
                    "type": "stdio",
                    "command": _literal(server.command),
                    "args": [_literal(each) for each in server.args],
                    "env": {each.name: _literal(each.value) for each in server.env},
                }
            case v1.HttpServer() | v1.SseServer():
                told = {
                    "type": "http" if isinstance(server, v1.HttpServer) else "sse",
                    "url": _literal(server.url),
                    "headers": {each.name: _literal(each.value, _TIMES_IN_HEADERS) for each in server.headers},
                }
            case _:  # a kind that was never offered: it has been refused before
                continue
        found[free_name(server.name, found)] = told
    return found


def _literal(value: str, times: int = 1) -> str:
    for _ in range(times):
        value = value.replace("${", _DOLLAR)
    return value
