"""The owners of sessions: requests are sent to the owner, new sessions are placed at a worker, and workers are watched.

With one process there is one worker, which owns everything: `LocalOwner` places every session at itself and grants every request.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final, Protocol, TypeAlias

import msgspec

from antiphon.errors import AcpError

__all__ = ["LOCAL", "LocalOwner", "NoOwner", "Owner", "Placement", "SessionWorker"]

LOCAL: Final = "local"
"""The name of the one worker of a single process."""


class Placement(msgspec.Struct, frozen=True):
    """What a new session needs of a worker."""

    agent: str
    cwd: str
    labels: Mapping[str, str] = {}


class SessionWorker(msgspec.Struct, frozen=True):
    """A process that runs agents, and how it stands."""

    name: str
    alive: bool = True
    sessions: int = 0


class NoOwner(AcpError):
    """No worker has the session, or none can take it."""


class Owner(Protocol):
    """Finds the worker of a session."""

    async def ask(self, session: str, request: bytes) -> bytes:
        """Put a request to the owner of a session, and return its response.

        Raises:
            NoOwner: no worker has the session.
        """

    async def place(self, placement: Placement) -> SessionWorker:
        """Choose the worker of a new session.

        Raises:
            NoOwner: no worker can take it; the error has the reason.
        """

    def watch(self) -> AsyncIterator[SessionWorker]:
        """The workers as they are now, and then each one whose state changes."""


Handle: TypeAlias = Callable[[bytes], Awaitable[bytes]]


class LocalOwner:
    """The owner of every session of one process."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handle] = {}

    def serve(self, session: str, handle: Handle) -> None:
        """Answer the requests for a session from now on."""
        self._handlers[session] = handle

    def forget(self, session: str) -> None:
        """Answer no more requests for a session."""
        self._handlers.pop(session, None)

    async def ask(self, session: str, request: bytes) -> bytes:
        handle = self._handlers.get(session)
        if handle is None:
            raise NoOwner(f"session `{session}` is not open here", hint="load it, then ask again")
        return await handle(request)

    async def place(self, placement: Placement) -> SessionWorker:
        return self._worker()

    async def watch(self) -> AsyncIterator[SessionWorker]:
        yield self._worker()
        await asyncio.Event().wait()  # this process is the worker: while anything waits here, it lives

    def _worker(self) -> SessionWorker:
        return SessionWorker(LOCAL, sessions=len(self._handlers))
