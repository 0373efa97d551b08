"""An engine that drives a CLI: how the CLI is found, how sessions are opened, and how the user signs in. Knows no particular CLI.

Imported before `initialize` is answered, so it imports little. The login itself happens in a terminal, between the user and the CLI:
there our program is run with `--login`, and becomes the CLI.
"""

import sys
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

from antiphon.engines.base import Engine
from antiphon.errors import AcpError, Code, RequestError
from antiphon.protocol.v1.auth import AgentAuth, TerminalAuth

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from antiphon.agent.session import AgentSession
    from antiphon.engines.cli_program import Cli, FoundProgram
    from antiphon.engines.cli_session import CliSession

__all__ = ["CliEngine", "find", "run_login", "sign_in_error", "terminal_login"]

S = TypeVar("S", bound="CliSession")


class CliEngine(Engine, Generic[S]):
    """An engine whose sessions are those of a CLI, also the ones that were begun in a terminal."""

    async def _make(self, session: "AgentSession") -> S:
        """Make the engine session; it is opened by its own methods."""
        raise NotImplementedError

    async def new(self, session: "AgentSession") -> S:
        return await self._opened(session, lambda made: made.create())

    async def load(self, session: "AgentSession") -> S:
        return await self._opened(session, lambda made: made.restore(replay=True))

    async def resume(self, session: "AgentSession") -> S:
        return await self._opened(session, lambda made: made.restore(replay=False))

    async def fork(self, session: "AgentSession", source: str) -> S:
        return await self._opened(session, lambda made: made.copy(source))

    async def _opened(self, session: "AgentSession", open: "Callable[[S], Awaitable[None]]") -> S:
        made = await self._make(session)
        try:
            await open(made)
        except BaseException:  # no caller has it yet, so no caller would close it
            await made.close()
            raise
        return made

    async def _check_signed_in(self) -> None:
        """Raise an `AcpError` unless a prompt could be answered now."""
        raise NotImplementedError

    async def signed_in(self) -> bool:
        try:
            await self._check_signed_in()
        except AcpError:  # not signed in, not installed, or it does not report it
            return False
        return True


async def find(cli: "Cli") -> "tuple[FoundProgram, str]":
    """Return the program of a CLI and its version, each time anew: it may have been installed or updated since.

    Raises:
        CliMissing: it is not installed, or does not start.
        CliTooOld: it is too old.
    """
    import asyncio

    from antiphon.engines.cli_program import ask_version, check_version, find_cli, known_version

    found = find_cli(cli)
    version = known_version(found)
    if version is None:  # in a thread: a program that is slow to print its version blocks nothing else
        version = await asyncio.to_thread(ask_version, found)
    return found, check_version(found, version)


def terminal_login(engine: str, id: str, name: str, description: str, *words: str) -> TerminalAuth:
    """A way to sign in, by our own command in a terminal of the client."""
    # Some clients open terminals without advertising it: they look for the whole command in the `_meta`.
    whole = ["-P", "-m", "antiphon", "agent", "--engine", engine, *words]
    meta = {"terminal-auth": {"command": sys.executable, "args": whole, "label": name}}
    return TerminalAuth(id, name, description, [*words], meta=meta)


def run_login(cli: "Cli", command: "Sequence[str]", ways: "Mapping[str, Sequence[str]]", way: str) -> NoReturn:
    """Become the CLI's own login, in the terminal that we were started in. `ways`: its further words for each way; the first is the default.

    Raises:
        AcpError: there is no such way, no CLI, or one that is too old.
    """
    import os

    from antiphon.engines.cli_program import find_cli, version_of

    way = way or next(iter(ways))
    if way not in ways:
        raise AcpError(f"there is no login `{way}`", hint=f"choose one of {', '.join(ways)}")
    found = find_cli(cli)
    version_of(found)
    sys.stdout.flush()
    try:
        os.execv(found.path, [found.path, *command, *ways[way]])  # noqa: S606 - it is meant to be this process
    except OSError as error:
        raise AcpError(
            f"`{found.path}` cannot be started: {error.strerror}", hint="check that it is a program for this machine"
        ) from error


def sign_in_error(title: str, methods: "Iterable[AgentAuth | TerminalAuth]", what: str, details: str) -> RequestError:
    """The error that asks a client to sign the user in. `what` to do; `details`: the message of the CLI."""
    text = f"{title} is not signed in{f' ({details})' if details else ''}: {what}"
    return RequestError(
        Code.AUTH_REQUIRED,
        "Authentication required",
        {"details": text, "authMethods": [method.id for method in methods]},
    )
