"""The table: every dialect that we read, as its speakers send it, and what it must become."""

from tests.dialects.row import Row
from tests.dialects.rows_content import CONTENT_ROWS
from tests.dialects.rows_initialize import INITIALIZE_ROWS
from tests.dialects.rows_mcp import MCP_ROWS, TERMINAL_ROWS
from tests.dialects.rows_sessions import SESSION_ROWS
from tests.dialects.rows_tools import TOOL_ROWS
from tests.dialects.rows_updates import UPDATE_ROWS

__all__ = ["ROWS", "Row"]

ROWS: tuple[Row, ...] = (
    *INITIALIZE_ROWS, *SESSION_ROWS, *MCP_ROWS, *UPDATE_ROWS, *TOOL_ROWS, *CONTENT_ROWS, *TERMINAL_ROWS,
)  # fmt: skip
