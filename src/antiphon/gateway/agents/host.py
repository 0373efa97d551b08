"""Files and terminals of this machine for the agent in one session, inside its directories and behind the policy."""

import os
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from msgspec import Raw

from antiphon.client.files import Files
from antiphon.client.launch import GuardedFiles, GuardedTerminals
from antiphon.client.terminals import Terminals
from antiphon.config.environment import environment_for
from antiphon.local.roots import Workspace
from antiphon.permission.gate import PermissionGate
from antiphon.protocol.methods import Call
from antiphon.protocol.v1 import methods as m

__all__ = ["HostServices", "without_secrets"]

MAX_TERMINALS: Final = 32
"""Terminals that may be open in one session."""

_SECRET: Final = re.compile(r"(?i)(TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$|^(LD_|DYLD_|ANTIPHON_)")

_CALLS: Final[tuple[Call[Any, Any], ...]] = (
    m.READ_TEXT_FILE, m.WRITE_TEXT_FILE, m.CREATE_TERMINAL, m.TERMINAL_OUTPUT, m.WAIT_FOR_EXIT, m.KILL_TERMINAL, m.RELEASE_TERMINAL,
)  # fmt: skip
_BY_NAME: Final = {call.name: call for call in _CALLS}


def without_secrets(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment of a command that an agent runs: without keys, tokens, passwords and what changes how programs are loaded."""
    return {name: value for name, value in environment_for((), environment).items() if not _SECRET.search(name)}


class HostServices:
    """Serves the requests for files and terminals of one session."""

    def __init__(self, gate: PermissionGate, workspace: Workspace) -> None:
        self._workspace = workspace
        self._terminals = GuardedTerminals(Terminals(max_open=MAX_TERMINALS, environment=without_secrets()), gate)
        files = GuardedFiles(Files(write=True), gate)
        self._handlers: dict[str, Callable[[Any], Awaitable[object]]] = {
            m.READ_TEXT_FILE.name: lambda request: files.read(workspace.roots, request),
            m.WRITE_TEXT_FILE.name: lambda request: files.write(workspace.roots, request),
            m.CREATE_TERMINAL.name: lambda request: self._terminals.create(workspace.roots, request),
            m.TERMINAL_OUTPUT.name: self._terminals.output,
            m.WAIT_FOR_EXIT.name: self._terminals.wait_for_exit,
            m.KILL_TERMINAL.name: self._terminals.kill,
            m.RELEASE_TERMINAL.name: self._terminals.release,
        }

    @staticmethod
    def serves(method: str) -> bool:
        """Whether the method is one of files or terminals."""
        return method in _BY_NAME

    async def serve(self, method: str, params: Raw) -> object:
        """Handle a request and return its result.

        Raises:
            RequestError: the params make no sense, the policy forbids it, or it failed.
        """
        return await self._handlers[method](_BY_NAME[method].decode_params(params))

    async def close(self) -> None:
        """Release all terminals."""
        await self._terminals.close()
