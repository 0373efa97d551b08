"""What an agent gets of this machine: its environment, the policy of the user, and in each session files and terminals.

Files are served inside the session's directories and the gateway's roots. What belongs to the gateway is never served, wherever it is:
an agent that reads the token of the gateway, or writes its policy, would be let in as its user.
"""

import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Raw

from antiphon.client.files import Files
from antiphon.client.launch import GuardedFiles, GuardedTerminals, LaunchOptions, gate_of
from antiphon.client.terminals import Terminals
from antiphon.config.environment import owner_of
from antiphon.errors import RequestError
from antiphon.gateway.agents.terminals import TerminalOutputs
from antiphon.local.problems import NotPermitted
from antiphon.local.roots import AnyPath, Roots, Workspace
from antiphon.permission.gate import Ask, PermissionGate
from antiphon.permission.settings import settings_here
from antiphon.policy.protected import never_served
from antiphon.protocol import v1
from antiphon.protocol.methods import Call
from antiphon.protocol.v1 import methods as m
from antiphon.store.database import Database

__all__ = ["GatewayRoots", "HostServices", "UserPolicy", "gateway_environment"]

MAX_TERMINALS: Final = 32
"""Terminals that may be open in one session."""

_NEEDED: Final = frozenset({"PATH", "HOME", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TZ", "USER", "LOGNAME", "SHELL", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
    "ANTIPHON_STATE_DIR", "ANTIPHON_CONFIG_DIR", "CARGO_HOME", "GOPATH", "GOROOT", "JAVA_HOME", "NVM_DIR", "PNPM_HOME", "PYENV_ROOT", "RUSTUP_HOME",
    "VIRTUAL_ENV"})  # fmt: skip
"""Variables that programs need to run. A gateway's own secrets, and those of other programs, are not among them."""

_CALLS: Final[tuple[Call[Any, Any], ...]] = (
    m.READ_TEXT_FILE, m.WRITE_TEXT_FILE, m.CREATE_TERMINAL, m.TERMINAL_OUTPUT, m.WAIT_FOR_EXIT, m.KILL_TERMINAL, m.RELEASE_TERMINAL,
)  # fmt: skip
_BY_NAME: Final = {call.name: call for call in _CALLS}
_log = logging.getLogger(__name__)


def gateway_environment(
    ours: Mapping[str, str], owners: Sequence[str] = (), own: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment of a program behind a gateway: what programs need, the keys of its own engine, its own variables.

    A list of what is kept, because no list has the names of all secrets (`DATABASE_URL`, `MYSQL_PWD`, `AWS_ACCESS_KEY_ID` …).
    """
    kept = {
        name: value
        for name, value in ours.items()
        if name in _NEEDED or name.startswith(("LC_", "XDG_")) or owner_of(name) in owners
    }
    return {**kept, **(own or {})}


class UserPolicy:
    """The policy of the user who started the gateway: for each session that of its directory, as `run` and `chat` have it there."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def gate(self, agent: str, cwd: str, ask: Ask) -> PermissionGate:
        """Return the policy for a session of an agent. What it leaves open is asked with the function."""
        loaded = await settings_here(cwd, self._database)
        for problem in (*loaded.problems, *loaded.notes):
            _log.warning("the policy in %s: %s", cwd, problem.sentence)
        return gate_of(LaunchOptions(), loaded, self._database, agent, ask=ask)


class GatewayRoots(Roots):
    """Directories that a gateway serves, without what no agent and no client may use in them.

    `closed` are directories of the gateway itself. In any directory: keys, and for a write what a version control program runs.
    """

    def __init__(
        self,
        roots: Iterable[AnyPath],
        closed: Iterable[AnyPath] = (),
        *,
        outer: Roots | None = None,
        write: bool = False,
    ) -> None:
        super().__init__(roots)
        self._closed = tuple(Path(os.path.realpath(each)) for each in closed)
        self._outer = outer
        self._write = write

    def inside(self, workspace: Workspace, *, write: bool = False) -> "GatewayRoots":
        """Return the directories of a session, as far as they are inside of these."""
        return GatewayRoots((workspace.cwd, *workspace.directories), self._closed, outer=self, write=write)

    def resolve(self, path: AnyPath) -> Path:
        """The real path, as for other roots.

        Raises:
            NotPermitted: it is closed to agents and clients.
        """
        real = super().resolve(path)
        if self._outer is not None:
            self._outer.resolve(real)
        if why := why_closed(Path(real), self._closed, write=self._write):
            hint = "the user of the gateway can do it on the machine itself"
            raise NotPermitted(f"the gateway does not serve `{os.fspath(path)}`: {why}", hint=hint)
        return real


def why_closed(real: Path, closed: Sequence[Path], *, write: bool) -> str:
    """Return why a path is closed to agents and clients; empty if it is not. Directories are compared as the disk has them, not by their names."""
    own = {found for each in closed if (found := _identity(each)) is not None}
    for each in (real, *real.parents):
        if each in closed or _identity(each) in own:
            return "it belongs to Antiphon itself"
    name = never_served(str(real), write=write)
    return f"`{name}` is for its user alone" if name else ""


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class HostServices:
    """Serves the requests for files and terminals of one session. `show` takes the updates with what terminals have printed."""

    def __init__(
        self, gate: PermissionGate, workspace: Workspace, roots: GatewayRoots, show: Callable[[bytes], object]
    ) -> None:
        self.outputs = TerminalOutputs()
        self._show = show
        environment = gateway_environment(os.environ)
        self._terminals = GuardedTerminals(Terminals(max_open=MAX_TERMINALS, environment=environment), gate)
        files = GuardedFiles(Files(write=True), gate)
        readable, writable = roots.inside(workspace), roots.inside(workspace, write=True)
        self._handlers: dict[str, Callable[[Any], Awaitable[object]]] = {
            m.READ_TEXT_FILE.name: lambda request: files.read(readable, request),
            m.WRITE_TEXT_FILE.name: lambda request: files.write(writable, request),
            m.CREATE_TERMINAL.name: lambda request: self._create(readable, request),
            m.TERMINAL_OUTPUT.name: self._output,
            m.WAIT_FOR_EXIT.name: self._wait_for_exit,
            m.KILL_TERMINAL.name: self._kill,
            m.RELEASE_TERMINAL.name: self._release,
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

    # Terminals: what they have printed is shown to clients, which cannot show a terminal that they have not made.

    async def _create(self, roots: GatewayRoots, request: v1.CreateTerminal) -> v1.CreateTerminalResult:
        made = await self._terminals.create(roots, request)
        self.outputs.open(made.terminal_id)
        return made

    async def _output(self, request: v1.TerminalOutput, *, is_over: bool = False) -> v1.TerminalOutputResult:
        found = await self._terminals.output(request)
        over = is_over or found.exit_status is not None
        for update in self.outputs.put(request.session_id, request.terminal_id, found.output, is_over=over):
            self._show(update)
        return found

    async def _show_all(self, session_id: str, terminal_id: str) -> None:
        with suppress(RequestError):  # it was released meanwhile
            await self._output(v1.TerminalOutput(session_id, terminal_id), is_over=True)

    async def _wait_for_exit(self, request: v1.WaitForExit) -> v1.WaitForExitResult:
        ended = await self._terminals.wait_for_exit(request)
        await self._show_all(request.session_id, request.terminal_id)
        return ended

    async def _kill(self, request: v1.KillTerminal) -> v1.KillTerminalResult:
        killed = await self._terminals.kill(request)
        await self._show_all(request.session_id, request.terminal_id)
        return killed

    async def _release(self, request: v1.ReleaseTerminal) -> v1.ReleaseTerminalResult:
        await self._show_all(request.session_id, request.terminal_id)
        return await self._terminals.release(request)

    async def close(self) -> None:
        """Release all terminals."""
        await self._terminals.close()
