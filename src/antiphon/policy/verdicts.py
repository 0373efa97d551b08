"""The words of the policy: modes, verdicts, and whether a rule matches."""

from enum import Enum, StrEnum

__all__ = ["Match", "Mode", "Verdict"]


class Mode(StrEnum):
    """How much is done without asking, where no rule says anything."""

    DEFAULT = "default"
    ACCEPT_EDITS = "acceptEdits"
    PLAN = "plan"
    DONT_ASK = "dontAsk"
    BYPASS = "bypassPermissions"


class Verdict(StrEnum):
    """What becomes of an action."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


class Match(Enum):
    """Whether a deny or ask rule matches. MAYBE is for what cannot be read for sure, and never ends in an allow."""

    NO = 0
    MAYBE = 1
    YES = 2
