"""Files and terminals behind the policy: each read, write and command is decided before it is done, whether the agent asked or not.

A path outside the session's roots is refused without a question, and a path that leads elsewhere after the question is not used.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from antiphon.client.files import Files, refusal
from antiphon.client.terminals import Terminals
from antiphon.errors import Code, RequestError
from antiphon.local.files import FileProblem, Roots
from antiphon.protocol import v1

if TYPE_CHECKING:
    from pathlib import Path

    from antiphon.client.sessions import Sessions
    from antiphon.permission.gate import PermissionGate

__all__ = ["GuardedFiles", "GuardedTerminals"]


class GuardedFiles(Files):
    """Files that a gate lets the agent have."""

    def __init__(self, files: Files, gate: "PermissionGate") -> None:
        super().__init__(write=files.can_write)
        self._files = files
        self._gate = gate

    def attach(self, sessions: "Sessions") -> None:
        """These are the sessions."""
        self._gate.attach(sessions)

    async def read(self, roots: Roots | Iterable[str], request: v1.ReadTextFile) -> v1.ReadTextFileResult:
        """The text of a file, if the policy lets it be read."""
        roots = Roots.of(roots)
        place = _resolved(roots, request.path)
        await self._gate.admit(request)
        _check(roots, request.path, place)
        return await self._files.read(roots, request)

    async def write(self, roots: Roots | Iterable[str], request: v1.WriteTextFile) -> v1.WriteTextFileResult:
        """Write a whole file, if the policy lets it be written."""
        if not self.can_write:
            return await self._files.write(roots, request)
        roots = Roots.of(roots)
        place = _resolved(roots, request.path)
        await self._gate.admit(request)
        _check(roots, request.path, place)
        return await self._files.write(roots, request)


class GuardedTerminals(Terminals):
    """Terminals that a gate lets the agent have. What runs already is the agent's to watch and to end."""

    def __init__(self, terminals: Terminals, gate: "PermissionGate") -> None:
        super().__init__(output_limit=terminals.output_limit, max_open=terminals.max_open)
        self._terminals = terminals
        self._gate = gate

    def attach(self, sessions: "Sessions") -> None:
        """These are the sessions."""
        self._gate.attach(sessions)

    def __len__(self) -> int:
        return len(self._terminals)

    async def create(self, roots: Roots | Iterable[str], request: v1.CreateTerminal) -> v1.CreateTerminalResult:
        """Start a command, if the policy lets it run."""
        roots = Roots.of(roots)
        place = _resolved(roots, request.cwd) if request.cwd is not None else None
        await self._gate.admit(request)
        if request.cwd is not None and place is not None:
            _check(roots, request.cwd, place)
        return await self._terminals.create(roots, request)

    async def output(self, request: v1.TerminalOutput) -> v1.TerminalOutputResult:
        """The output so far."""
        return await self._terminals.output(request)

    async def wait_for_exit(self, request: v1.WaitForExit) -> v1.WaitForExitResult:
        """Answer when the command ends."""
        return await self._terminals.wait_for_exit(request)

    async def kill(self, request: v1.KillTerminal) -> v1.KillTerminalResult:
        """End the command; terminal and output stay."""
        return await self._terminals.kill(request)

    async def release(self, request: v1.ReleaseTerminal) -> v1.ReleaseTerminalResult:
        """End the command if it runs, and forget the terminal."""
        return await self._terminals.release(request)

    async def release_session(self, session_id: v1.SessionId) -> None:
        """End and forget whatever a session has left."""
        await self._terminals.release_session(session_id)

    async def close(self) -> None:
        """End and forget everything."""
        await self._terminals.close()


def _resolved(roots: Roots, path: str) -> "Path":
    try:
        return roots.resolve(path)
    except FileProblem as error:
        raise refusal(error, path) from error


def _check(roots: Roots, path: str, place: "Path") -> None:
    """The user may have thought for a while: what is used is what was asked about."""
    if _resolved(roots, path) != place:
        raise RequestError(Code.INVALID_PARAMS, f"`{path}` has come to lead elsewhere while it was asked about")
