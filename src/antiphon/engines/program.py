"""A program on pipes that speaks in lines: started, heard in order, spoken to, and ended with everything it started.

What the engines that drive a CLI have in common. It is the one module of the engines that knows a transport (ADR 0018).
"""

import logging
from typing import TYPE_CHECKING, Self

from antiphon.transports.process import ProcessTransport, spawn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from antiphon.errors import ConnectionClosed

__all__ = ["Program"]

_log = logging.getLogger(__name__)


class Program:
    """A running program. Who hears its lines slowly slows it down; nothing piles up here."""

    def __init__(self, child: ProcessTransport) -> None:
        self._child = child

    @classmethod
    async def start(cls, command: "Sequence[str]", *, cwd: str, env: "Mapping[str, str]") -> Self:
        """Start it.

        Raises:
            SpawnFailed: there is no such program, or it may not be run.
        """
        return cls(await spawn(command, cwd=cwd, env=env))

    @property
    def pid(self) -> int:
        """Its process."""
        return self._child.pid

    @property
    def end(self) -> "ConnectionClosed | None":
        """Why nothing more will come from it; None while it may speak."""
        return self._child.lost

    @property
    def stderr(self) -> str:
        """Its last words there."""
        return self._child.stderr

    async def lines(self) -> "AsyncIterator[bytes]":
        """What it says, line by line, until it ends."""
        while (frame := await self._child.receive()) is not None:
            if not isinstance(frame, bytes | bytearray):  # only the remains of one
                _log.warning(
                    "`%s` said a line of %d bytes, which is too long to be kept", self._child.command, frame.size
                )
                continue
            yield bytes(frame)

    def send(self, line: bytes) -> None:
        """Say a line, with its end. A program that is gone hears nothing; `lines` tells that it is."""
        if self._child.lost is None:
            self._child.out += line
            self._child.flush_soon()

    async def close(self) -> None:
        """End it: its input is closed, and what does not end by that is told to, then made to. Closing twice is fine."""
        await self._child.close()
