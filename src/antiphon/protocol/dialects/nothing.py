"""Answers that say nothing: `null` where the schema has an object without required fields."""

from typing import Final

from antiphon.protocol.dialects.rule import Fields, Rule
from antiphon.protocol.dialects.sources import OPENCODE

__all__ = ["NOTHING_RULES", "NULL_IS_ENOUGH"]

NULL_IS_ENOUGH: Final = (
    "authenticate", "fs/write_text_file", "logout", "providers/disable", "providers/set", "session/archive",
    "session/close", "session/delete", "session/load", "session/resume", "session/set_mode", "session/set_model",
    "session/unarchive", "terminal/kill", "terminal/release", "terminal/wait_for_exit",
)  # fmt: skip
"""Calls whose answer may be empty. Not `mcp/message`: there, saying neither result nor error is a mistake."""


def _no_change(fields: Fields) -> Fields | None:
    """An object is left as it is."""
    return None


NOTHING_RULES: Final = tuple(
    Rule("null for an empty answer", OPENCODE, method, "result", _no_change, null=b"{}") for method in NULL_IS_ENOUGH
)
