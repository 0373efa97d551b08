"""The client's handlers of `terminal/…`: commands on this machine, each for the session that started it and no other.

The roots bound the directory in which a command starts, not the files that it uses: it is a program like any other. Whether it may run
at all is decided by permission.
"""

import asyncio
import os
from collections.abc import Iterable, Mapping
from typing import Final

from antiphon.client.files import refusal
from antiphon.errors import Code, RequestError, SpawnFailed
from antiphon.local.commands import OUTPUT_LIMIT, LocalCommand
from antiphon.local.files import FileProblem, Roots
from antiphon.protocol import v1

__all__ = ["MAX_OPEN", "SHELL", "Terminals"]

MAX_OPEN: Final = 64
"""Terminals that may be open at once: more than a person watches. An agent that releases none gets an error before memory is full."""

SHELL: Final = "/bin/sh"
"""The shell that runs a whole line."""

_GIT_ASKS_FIRST: Final = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.bareRepository",
    "GIT_CONFIG_VALUE_0": "explicit",
}
"""A directory that only looks like a repository is not used as one: its config could name programs that `git status` starts."""

_SYNTAX: Final = frozenset(" \t\n|&;<>()$`\\\"'*?[#~=%{}!")


class Terminals:
    """Runs commands for the agent. `output_limit`: the most bytes that are kept of a command's output, whatever the agent asks for.

    `environment` is that of the commands; without it they get ours.
    """

    def __init__(
        self,
        *,
        output_limit: int = OUTPUT_LIMIT,
        max_open: int = MAX_OPEN,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.output_limit = output_limit
        self.max_open = max_open
        self._environment = environment
        self._open: dict[tuple[v1.SessionId, v1.TerminalId], LocalCommand] = {}
        self._ending: set[asyncio.Future[None]] = set()

    def __len__(self) -> int:
        return len(self._open)

    async def create(self, roots: Roots | Iterable[str], request: v1.CreateTerminal) -> v1.CreateTerminalResult:
        """Start a command in the requested directory, else in the first root, with our environment and the given variables.

        `command` and `args` are a program and its arguments, and stay that. Some agents send a whole shell line as `command`
        without `args`; what has spaces or shell syntax in it is such a line and is run by `/bin/sh -c`.

        Raises:
            RequestError: it cannot be started, or too many are open.
        """
        if len(self._open) >= self.max_open:
            raise RequestError(
                Code.INVALID_REQUEST, f"{self.max_open} terminals are open", hint="release those that are done"
            )
        cwd = _directory(Roots.of(roots), request.cwd)
        ours = os.environ if self._environment is None else self._environment
        env = {**_GIT_ASKS_FIRST, **ours} | {variable.name: variable.value for variable in request.env}
        asked = request.output_byte_limit
        limit = self.output_limit if asked is None else min(asked, self.output_limit)
        try:
            command = await _start(request, cwd, env, limit)
        except SpawnFailed as error:
            raise RequestError(Code.INVALID_PARAMS, str(error)) from error
        terminal_id = f"term-{os.urandom(12).hex()}"
        self._open[request.session_id, terminal_id] = command
        return v1.CreateTerminalResult(terminal_id)

    async def output(self, request: v1.TerminalOutput) -> v1.TerminalOutputResult:
        """Return the output so far, and how the command ended if it has."""
        command = self._find(request.session_id, request.terminal_id)
        status = None if command.exit is None else v1.ExitStatus(*command.exit)
        return v1.TerminalOutputResult(command.output(), command.truncated, status)

    async def wait_for_exit(self, request: v1.WaitForExit) -> v1.WaitForExitResult:
        """Wait until the command ends, without a limit. A release of the terminal ends it."""
        return v1.WaitForExitResult(*await self._find(request.session_id, request.terminal_id).wait())

    async def kill(self, request: v1.KillTerminal) -> v1.KillTerminalResult:
        """Kill the command and all that it started; terminal and output stay."""
        await self._find(request.session_id, request.terminal_id).kill()
        return v1.KillTerminalResult()

    async def release(self, request: v1.ReleaseTerminal) -> v1.ReleaseTerminalResult:
        """Kill the command if it runs, and release the terminal."""
        self._find(request.session_id, request.terminal_id)
        await self._end([(request.session_id, request.terminal_id)])
        return v1.ReleaseTerminalResult()

    async def release_session(self, session_id: v1.SessionId) -> None:
        """Release all terminals of a session."""
        await self._end([key for key in self._open if key[0] == session_id])

    async def close(self) -> None:
        """Release all terminals, and wait for those that are being released. New ones may be created afterwards, as after a reconnect."""
        await self._end(list(self._open))
        if self._ending:
            await asyncio.wait(tuple(self._ending))

    async def _end(self, keys: list[tuple[v1.SessionId, v1.TerminalId]]) -> None:
        ending = [asyncio.ensure_future(self._open.pop(key).close()) for key in keys]
        for each in ending:
            self._ending.add(each)
            each.add_done_callback(self._ending.discard)
        if ending:
            await asyncio.shield(asyncio.gather(*ending))

    def _find(self, session_id: v1.SessionId, terminal_id: v1.TerminalId) -> LocalCommand:
        command = self._open.get((session_id, terminal_id))
        if command is None:
            raise RequestError(
                Code.RESOURCE_NOT_FOUND,
                f"Resource not found: this session has no terminal `{terminal_id}`",
                hint="it was released, or never created",
            )
        return command


def _directory(roots: Roots, asked: str | None) -> str:
    if asked is None and not roots.folders:
        raise RequestError(Code.INVALID_PARAMS, "there is no directory to run a command in: the session has none")
    try:
        return str(roots.folders[0] if asked is None else roots.resolve(asked))
    except FileProblem as error:
        raise refusal(error, asked or "") from error


async def _start(request: v1.CreateTerminal, cwd: str, env: dict[str, str], limit: int) -> LocalCommand:
    # What looks like a line is one, also if there is a program of that name: the policy decided about a line.
    is_line = not request.args and bool(_SYNTAX & set(request.command))
    words = [SHELL, "-c", request.command] if is_line else [request.command, *request.args]
    return await LocalCommand.start(words, cwd=cwd, env=env, output_limit=limit)
