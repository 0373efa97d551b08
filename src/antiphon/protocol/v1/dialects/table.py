"""The dialect rules of ACP v1 in their order."""

from typing import Final

from antiphon.protocol.dialects import DialectRule, Fields, RuleTable
from antiphon.protocol.v1.dialects import OPENCODE
from antiphon.protocol.v1.dialects.content import CONTENT_RULES
from antiphon.protocol.v1.dialects.initialize import INITIALIZE_RULES
from antiphon.protocol.v1.dialects.session import MCP_RULES, SESSION_RULES
from antiphon.protocol.v1.dialects.tool_calls import PERMISSION_RULES, TERMINAL_RULES, TOOL_CALL_RULES
from antiphon.protocol.v1.dialects.updates import UPDATE_RULES

__all__ = ["NOTHING_RULES", "NULL_IS_ENOUGH", "RULES", "repair"]

# Empty results: `null` where the schema has an object without required fields.

NULL_IS_ENOUGH: Final = (
    "authenticate", "fs/write_text_file", "logout", "providers/disable", "providers/set", "session/archive",
    "session/close", "session/delete", "session/load", "session/resume", "session/set_mode", "session/set_model",
    "session/unarchive", "terminal/kill", "terminal/release", "terminal/wait_for_exit",
)  # fmt: skip
"""Calls whose answer may be empty. Not `mcp/message`: there, sending neither a result nor an error is a mistake."""


def _no_change(fields: Fields) -> Fields | None:
    """An object is left as it is."""
    return None


NOTHING_RULES: Final = tuple(
    DialectRule("null for an empty answer", OPENCODE, method, "result", _no_change, null=b"{}")
    for method in NULL_IS_ENOUGH
)


RULES: Final[tuple[DialectRule, ...]] = (
    # The order counts within a method: from the outside in, so that a rule finds things where the schema has them.
    *INITIALIZE_RULES,
    *SESSION_RULES,
    *MCP_RULES,
    *UPDATE_RULES,
    *PERMISSION_RULES,
    *TOOL_CALL_RULES,
    *CONTENT_RULES,
    *TERMINAL_RULES,
    *NOTHING_RULES,
)


TABLE: Final = RuleTable(RULES)

repair = TABLE.repair
