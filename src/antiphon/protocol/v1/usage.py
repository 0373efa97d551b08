"""Tokens and money."""

from antiphon.protocol.base import Model, Uint, unstable
from antiphon.protocol.v1.updating import StateUpdate

__all__ = ["Cost", "Usage", "UsageUpdate"]


class Cost(Model, frozen=True):
    """What a session has cost so far; `currency` is an ISO 4217 code."""

    amount: float
    currency: str


@unstable
class Usage(Model, frozen=True):
    """Tokens used up, added over the session."""

    total_tokens: Uint
    input_tokens: Uint
    output_tokens: Uint
    thought_tokens: Uint | None = None
    cached_read_tokens: Uint | None = None
    cached_write_tokens: Uint | None = None


class UsageUpdate(StateUpdate, frozen=True, tag="usage_update"):
    """How full the context window is."""

    used: Uint
    size: Uint
    cost: Cost | None = None
