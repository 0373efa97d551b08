"""What the two players of the agent's part have in common: what is fed to them and what they tell.

A player is pure. It hears a line and the time, and says what is to be sent by now and how long it has to be waited for the next.
"""

from abc import ABC, abstractmethod
from typing import Any, Final

import msgspec

from antiphon.recorder.matching import heard
from antiphon.recorder.rewriting import Names, with_id
from antiphon.recorder.script import Script
from antiphon.traffic.entries import Entry

__all__ = ["INTERNAL", "UNKNOWN_METHOD", "WRONG", "Player", "error_line"]

UNKNOWN_METHOD: Final = -32601
WRONG: Final = -32602
INTERNAL: Final = -32603


class Player(ABC):
    """Plays one side of a recording. Times are seconds of any clock that only goes forward."""

    def __init__(self, script: Script, names: Names, *, speed: float = 1.0) -> None:
        """`speed`: how much faster than recorded; 0 is at once."""
        self.script = script
        self.names = names
        self.problems: list[str] = []
        """Why this is not what was recorded; it fails where there is one."""
        self.notes: list[str] = []
        """What was different and did not matter. Whoever tells them empties the list."""
        self.over = False
        """Nothing more is to be said or heard."""
        self._told: set[str] = set()
        self._pace = 1.0 / speed if speed else 0.0
        self._out: list[bytes] = []
        self._lines = 0
        self._started = False

    def hear(self, raw: bytes, now: float) -> None:
        """A line of the peer has come."""
        self._lines += 1
        if not self.over:
            self._hear(heard(self._lines, self.script.ours.other, raw), now)

    def ready(self, now: float) -> list[bytes]:
        """What is to be sent by now, each with its line end."""
        if not self._started:
            self._started = True
            self._start(now)
        if not self.over:
            self._advance(now)
        out, self._out = self._out, []
        return out

    @abstractmethod
    def wait(self, now: float) -> float | None:
        """Seconds until there is something to send; None: not before the peer says something."""

    def end(self, now: float) -> list[bytes]:
        """The peer will say no more: the last that is to be sent, and the last that there is to complain about."""
        self._pace = 0.0  # nobody waits for a pause
        out = self.ready(now)
        if not self.over:
            self._miss()
        self.over = True
        return out

    @abstractmethod
    def _start(self, now: float) -> None:
        """Count the first pause from now."""

    @abstractmethod
    def _hear(self, entry: Entry, now: float) -> None: ...

    @abstractmethod
    def _advance(self, now: float) -> None: ...

    def _miss(self) -> None:  # noqa: B027 - whoever takes anything misses nothing
        """Complain about what never came."""

    def _pause(self, line: Entry, before: Entry | None) -> float:
        return max(0.0, line.t - before.t) * self._pace if before is not None else 0.0

    def _send(self, line: Entry, id: bytes | None = None) -> None:
        raw = line.raw if line.is_noise else self.names.line(line.raw)
        if id is not None:
            raw = with_id(raw, id)
        self._out.append(raw + self.script.ending(line))

    def _refuse(self, id: bytes, code: int, message: str) -> None:
        self._out.append(error_line(id, code, message))

    def _note(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self.notes.append(text)


def error_line(id: bytes, code: int, message: str) -> bytes:
    """An answer that is an error."""
    error: dict[str, Any] = {"code": code, "message": message}
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (id or b"null", msgspec.json.encode(error))
