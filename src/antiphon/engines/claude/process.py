"""One `claude` process: prompts in, lines out, and the control requests that go both ways."""

import asyncio
import itertools
from typing import TYPE_CHECKING, Any, Final

from antiphon.engines.claude import wire
from antiphon.engines.process import LineProcess, ProgramPeer
from antiphon.errors import AcpError, ConnectionClosed, fresh

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["CONTROL_LIMIT", "ClaudeProcess", "ClaudeRefused"]

CONTROL_LIMIT: Final = 10.0
"""Seconds that the CLI may take to answer a control request. Most take a few milliseconds."""


class ClaudeRefused(AcpError):
    """The CLI says no to a control request, or does not answer."""

    def __init__(self, subtype: str, error: str, code: str = "") -> None:
        super().__init__(f"Claude Code refuses `{subtype}`: {error}")
        self.error = error
        self.error_code = code


class ClaudeProcess(ProgramPeer):
    """A living one. Iterate `lines`: answers to our control requests are taken out of it on the way."""

    def __init__(self, program: LineProcess) -> None:
        super().__init__(program)
        self._waiting: dict[str, tuple[str, asyncio.Future[dict[str, Any]]]] = {}
        self._numbers = itertools.count(1)

    async def lines(self) -> "AsyncIterator[wire.Line]":
        """What it says, until it ends."""
        async for handful in self._program.handfuls():
            for raw in handful:
                line = wire.decode(raw)
                if isinstance(line, wire.ControlResponse):
                    self._answered(line)
                else:
                    yield line
        for _, answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(fresh(self.end or ConnectionClosed("Claude Code has ended")))

    def _answered(self, line: wire.ControlResponse) -> None:
        subtype, answer = self._waiting.get(line.request_id, ("", None))
        if answer is None or answer.done():  # somebody stopped waiting
            return
        if line.ok:
            answer.set_result(line.response)
        else:
            answer.set_exception(ClaudeRefused(subtype, line.error, line.error_code))

    # To the CLI.

    def prompt(self, content: "str | list[dict[str, Any]]", uuid: str) -> None:
        """Say what the user says."""
        self._program.send(wire.user_message(content, uuid))

    async def control(
        self, subtype: str, fields: "dict[str, Any] | None" = None, limit: float = CONTROL_LIMIT
    ) -> dict[str, Any]:
        """Ask the CLI itself something.

        Raises:
            ControlRefused: it says no, or nothing.
            ConnectionClosed: it ended.
        """
        if self.end is not None:
            raise fresh(self.end)
        request_id = f"antiphon-{next(self._numbers)}"
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = subtype, answer
        self._program.send(wire.control_request(request_id, subtype, fields or {}))
        try:
            return await asyncio.wait_for(answer, limit)
        except TimeoutError:
            raise ClaudeRefused(subtype, f"no answer within {limit:g} seconds") from None
        finally:
            del self._waiting[request_id]

    def answer(self, request_id: str, body: dict[str, Any]) -> None:
        """Answer a control request of the CLI."""
        self._program.send(wire.control_answer(request_id, body))

    def refuse(self, request_id: str, error: str) -> None:
        """Say no to one."""
        self._program.send(wire.control_refusal(request_id, error))
