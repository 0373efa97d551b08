"""The agent's terminals; the output of each one stays available after its release."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from antiphon.client.terminals import Terminals
from antiphon.errors import ResponseError
from antiphon.local.files import Roots
from antiphon.protocol import v1

__all__ = ["TerminalTail", "WatchedTerminals"]

KEPT: Final = 1 << 20
"""Characters of a terminal's output that are kept, so that it can be unfolded later."""

TAILS: Final = 100
"""Terminals whose output is remembered. What was shown stays in the scrollback."""

TOTAL: Final = 16 << 20
"""Characters of all output that is remembered; the oldest is dropped first."""


@dataclass(frozen=True, slots=True)
class TerminalTail:
    """The end of what a terminal has written, and how its command ended if it has."""

    text: str
    ended: str | None = None
    is_cut: bool = False
    """Whether the terminal has written more before it."""


class WatchedTerminals(Terminals):
    """Terminals whose last output stays available after their release."""

    def __init__(self, *, tails: int = TAILS) -> None:
        super().__init__()
        self._most = tails
        self._running: dict[str, str] = {}
        self._tails: dict[str, TerminalTail] = {}

    def tail(self, terminal_id: str) -> TerminalTail | None:
        """Return the end of a terminal's output, as it was last read."""
        return self._tails.get(terminal_id)

    async def look(self) -> None:
        """Read the output of all running commands."""
        for terminal_id, session_id in list(self._running.items()):
            await self._look(terminal_id, session_id)

    async def create(self, roots: Roots | Iterable[str], request: v1.CreateTerminal) -> v1.CreateTerminalResult:
        """Start a command and keep the end of its output."""
        result = await super().create(roots, request)
        self._running[result.terminal_id] = request.session_id
        self._keep(result.terminal_id, TerminalTail(""))
        return result

    async def output(self, request: v1.TerminalOutput) -> v1.TerminalOutputResult:
        """Return the output so far, and keep its end."""
        result = await super().output(request)
        ended = None if result.exit_status is None else _ending(result.exit_status)
        is_cut = result.truncated or len(result.output) > KEPT
        self._keep(request.terminal_id, TerminalTail(result.output[-KEPT:], ended, is_cut))
        return result

    async def release(self, request: v1.ReleaseTerminal) -> v1.ReleaseTerminalResult:
        """Keep the end of the output, then release the terminal."""
        await self._look(request.terminal_id, request.session_id)
        self._running.pop(request.terminal_id, None)
        return await super().release(request)

    async def _look(self, terminal_id: str, session_id: str) -> None:
        try:
            seen = await self.output(v1.TerminalOutput(session_id, terminal_id))
        except ResponseError:  # its session was closed
            self._running.pop(terminal_id, None)
            return
        if seen.exit_status is not None:
            self._running.pop(terminal_id, None)

    def _keep(self, terminal_id: str, tail: TerminalTail) -> None:
        self._tails[terminal_id] = tail
        while len(self._tails) > self._most or (
            len(self._tails) > 1 and sum(len(each.text) for each in self._tails.values()) > TOTAL
        ):
            del self._tails[next(iter(self._tails))]


def _ending(status: v1.ExitStatus) -> str | None:
    """Return how a command ended; empty if it succeeded."""
    if status.signal:
        return f"ended by {status.signal}"
    return f"exit status {status.exit_code}" if status.exit_code else ""
