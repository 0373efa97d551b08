"""What has happened so far in a conversation, as far as rules ask for it. Knows nothing about right and wrong."""

from typing import Any

from antiphon.traffic.entries import Direction, Entry
from antiphon.traffic.pairs import Pairs

__all__ = ["Ledger"]


class Ledger:
    """Fed with every line, after the rules have looked at it."""

    def __init__(self) -> None:
        self.pairs = Pairs()
        self.initialize: Entry | None = None
        self.initialized: Entry | None = None
        """The answer to `initialize`, when it came."""
        self.client: dict[str, Any] = {}
        """The client's capabilities, as it told them."""
        self.agent: dict[str, Any] = {}
        """The agent's capabilities, as it told them."""
        self.version: int | None = None
        """The version that was agreed on."""

    @property
    def judged(self) -> bool:
        """Whether the rules are those of this conversation: they are those of version 1."""
        return self.version in (None, 1)

    def hear(self, entry: Entry) -> None:
        """Take note of a line."""
        asked = self.pairs.hear(entry)
        if entry.method == "initialize" and entry.dir is Direction.C2A and self.initialize is None:
            self.initialize = entry
            self.client = _object(entry.params.get("clientCapabilities"))
        elif asked is not None and asked is self.initialize and "result" in entry.msg:
            self.initialized = entry
            result = _object(entry.msg["result"])
            self.agent = _object(result.get("agentCapabilities"))
            version = result.get("protocolVersion")
            self.version = version if isinstance(version, int) else None


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
