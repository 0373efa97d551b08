"""How long the response to a request is waited for: one named timeout for each method.

A request that is sent here has a timeout by its method, unless the caller gives another. None means no timeout: a turn takes as long
as its work, and a person as long as they like. The tests compare this table with the methods of the protocol.
"""

from typing import TYPE_CHECKING, Final

from msgspec import UNSET, UnsetType

if TYPE_CHECKING:
    from typing import TypeAlias

__all__ = ["APPROVAL_TIMEOUT", "BY_METHOD", "NO_TIMEOUT", "OPEN_TIMEOUT", "REQUEST_TIMEOUT", "START_TIMEOUT", "Timeout", "timeout_of"]  # fmt: skip

Timeout: "TypeAlias" = float | UnsetType | None
"""Seconds; None for no timeout; UNSET for the default of the method."""

START_TIMEOUT: Final = 90.0
"""Seconds for `initialize`. Long, because some agents do all their work before it; a program that was started in the wrong way, and
waits for a person, is told from them by this alone."""

OPEN_TIMEOUT: Final = 300.0
"""Seconds to open a session. The agent may have to start programs, to download MCP servers, and to send a long history."""

REQUEST_TIMEOUT: Final = 60.0
"""Seconds for everything that a program does by itself, methods that the protocol does not know included."""

APPROVAL_TIMEOUT: Final = 3600.0
"""Seconds for files and commands at the client: it may ask its user first, and they may be at lunch."""

NO_TIMEOUT: Final = None
"""For a turn, for a command that runs, and for what a person is asked. Cancel it, or give a timeout."""

BY_METHOD: Final[dict[str, float | None]] = {
    "initialize": START_TIMEOUT,
    "proxy/initialize": START_TIMEOUT,
    "session/new": OPEN_TIMEOUT,
    "session/load": OPEN_TIMEOUT,
    "session/resume": OPEN_TIMEOUT,
    "session/fork": OPEN_TIMEOUT,
    "authenticate": NO_TIMEOUT,
    "session/prompt": NO_TIMEOUT,
    "session/request_permission": NO_TIMEOUT,
    "elicitation/create": NO_TIMEOUT,
    "terminal/wait_for_exit": NO_TIMEOUT,
    "proxy/successor": NO_TIMEOUT,
    "fs/read_text_file": APPROVAL_TIMEOUT,
    "fs/write_text_file": APPROVAL_TIMEOUT,
    "terminal/create": APPROVAL_TIMEOUT,
    "mcp/message": APPROVAL_TIMEOUT,
}
"""The methods whose default is not `REQUEST_TIMEOUT`. `proxy/successor` carries another request, which has its own at its end."""


def timeout_of(method: str, given: Timeout = UNSET, general: Timeout = UNSET) -> float | None:
    """Return the seconds that a response may take: what is given, else the default of the method.

    `general` replaces every default but that of a method which has no timeout.
    """
    if not isinstance(given, UnsetType):
        return given
    default = BY_METHOD.get(method, REQUEST_TIMEOUT)
    return default if default is None or isinstance(general, UnsetType) else general
