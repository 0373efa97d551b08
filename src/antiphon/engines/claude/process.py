"""One `claude` process: prompts in, lines out, and control requests in both directions."""

from typing import TYPE_CHECKING, Final

from antiphon.engines.claude import wire
from antiphon.engines.process import CliProcess
from antiphon.errors import Code

if TYPE_CHECKING:
    from antiphon.protocol.base import JsonObject

__all__ = ["CONTROL_LIMIT", "ClaudeProcess"]

CONTROL_LIMIT: Final = 10.0
"""Seconds that the CLI may take to respond to a control request. Most take a few milliseconds."""


class ClaudeProcess(CliProcess[wire.Line]):
    """A running `claude`."""

    title = "Claude Code"

    def read(self, line: bytes) -> wire.Line | None:
        message = wire.decode(line)
        if not isinstance(message, wire.ControlResponse):
            return message
        if message.ok:
            self.succeeded(message.request_id, message.response)
        else:
            self.failed(message.request_id, message.error)
        return None

    async def control(
        self, subtype: str, fields: "JsonObject | None" = None, limit: float = CONTROL_LIMIT
    ) -> "JsonObject":
        """Send a control request and return the response.

        Raises:
            CliRefused: the CLI refuses, or does not respond.
            ConnectionClosed: the CLI ended.
        """
        id = f"antiphon-{self.next_number()}"
        return await self.exchange(id, subtype, wire.control_request(id, subtype, fields or {}), _same, limit)

    def answer(self, id: str, result: "JsonObject") -> None:
        self.send(wire.control_answer(id, result))

    def refuse(self, id: str, message: str, code: int = Code.INTERNAL_ERROR) -> None:
        """Respond with an error. The protocol of the CLI has no codes."""
        self.send(wire.control_refusal(id, message))


def _same(response: "JsonObject") -> "JsonObject":
    return response
