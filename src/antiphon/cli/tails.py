"""The agent's terminals, and the last of what each has written, kept to be shown when its call has ended."""

import re
from contextlib import suppress
from typing import Final

from antiphon.client.terminals import Terminals
from antiphon.errors import RequestError
from antiphon.protocol import v1

__all__ = ["KeptTerminals", "written_lines"]

TAIL: Final = 4_000
"""Characters that are kept of one: more than is ever shown."""

TAILS: Final = 100
"""Terminals that are remembered."""


_SEQUENCE: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
"""Colours and movements. They are no words, and a command's output is not what anybody is asked about."""


def written_lines(text: str) -> list[str]:
    """The lines that a terminal would show of this; what was written over is gone."""
    whole = _SEQUENCE.sub("", text).replace("\r\n", "\n").strip("\n")
    return [line.rstrip("\r").rpartition("\r")[2] for line in whole.split("\n")] if whole.strip() else []


class KeptTerminals(Terminals):
    """Terminals whose last words outlive them."""

    def __init__(self) -> None:
        super().__init__()
        self._tails: dict[str, str] = {}

    def tail(self, terminal_id: str) -> str | None:
        """The end of what it has written, as far as the agent has seen it."""
        return self._tails.get(terminal_id)

    async def output(self, request: v1.TerminalOutput) -> v1.TerminalOutputResult:
        result = await super().output(request)
        self._tails[request.terminal_id] = result.output[-TAIL:]
        while len(self._tails) > TAILS:
            del self._tails[next(iter(self._tails))]
        return result

    async def release(self, request: v1.ReleaseTerminal) -> v1.ReleaseTerminalResult:
        with suppress(RequestError):  # it is not there, which the release says too
            await self.output(v1.TerminalOutput(request.session_id, request.terminal_id))
        return await super().release(request)
