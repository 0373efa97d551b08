"""What real peers of ACP v2 send that its schema does not have: rules of the second step of reading, after the strict decoder.

There are few so far. Python's SDK 1.0.0rc3 follows a draft of September, in which commands and their input had no `type`.
"""

from typing import Final

from antiphon.protocol.dialects import (
    Change,
    DialectRule,
    Fields,
    RuleTable,
    each,
    inside,
    is_null,
    packed,
)

__all__ = ["RULES", "TABLE"]

ALPHA: Final = "drafts of September: Python SDK 1.0.0rc3"


def _typed(word: str) -> Change:
    """Add the `type` that an object of the drafts did not have."""

    def apply(fields: Fields) -> Fields | None:
        return None if "type" in fields else {"type": packed(word), **fields}

    return apply


def _command(fields: Fields) -> Fields | None:
    typed = _typed("command")(fields)
    known = typed or fields
    if is_null(known.get("input")):
        return typed
    return inside("input", _typed("text"))(known) or typed


_commands = each("availableCommands", _command)

RULES: Final = (
    DialectRule("commands without a type", ALPHA, "session/update", "params", inside("update", _commands)),
    DialectRule("commands without a type", ALPHA, "session/new", "result", _commands),
    DialectRule("commands without a type", ALPHA, "session/resume", "result", _commands),
)

TABLE: Final = RuleTable(RULES)
