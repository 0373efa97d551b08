"""What can be decided about a command or a change, in the words of the newer and of the older protocol. Pure."""

from typing import Any, Final

import msgspec

from antiphon.engines.questions import Body
from antiphon.protocol import v1

__all__ = ["NEW", "OLD", "ONCE", "REJECT", "SESSION", "STOP", "Offer", "Words", "decided"]

_Kind = v1.PermissionOptionKind
SESSION: Final = "allow_session"
ONCE: Final = v1.PermissionOption("allow", "Allow once", _Kind.ALLOW_ONCE)
REJECT: Final = v1.PermissionOption("reject", "Reject", _Kind.REJECT_ONCE)
STOP: Final = v1.PermissionOption("reject_and_stop", "Reject and stop", _Kind.REJECT_ONCE)

REJECTED: Final = "The user rejected this: it did not happen, and nothing was changed."
"""Read by the model. Only the older protocol has a place for it."""


class Words(msgspec.Struct, frozen=True):
    """How a protocol says what was decided."""

    once: Any
    session: Any
    decline: Any
    stop: Any

    @property
    def declined(self) -> Body:
        """It does not happen, and the turn goes on."""
        return {"decision": self.decline}

    @property
    def stopped(self) -> Body:
        """It does not happen, and the turn ends."""
        return {"decision": self.stop}


NEW: Final = Words("accept", "acceptForSession", "decline", "cancel")
# A server that knows `denied` only as a word takes what it cannot read for just that.
OLD: Final = Words("approved", "approved_for_session", {"denied": {"rejection": REJECTED}}, "abort")


class Offer(msgspec.Struct, frozen=True):
    """An option, the decision that it stands for, and what has to be said about it beside its name."""

    option: v1.PermissionOption
    decision: Any
    note: str | None = None


def decided(offers: list[Offer], chosen: v1.PermissionOption | None, words: Words) -> Body:
    """The answer. What was not on offer is no approval."""
    for offer in offers:
        if offer.option is chosen:
            return {"decision": offer.decision}
    return words.declined
