"""How long the response to a request is waited for: the named timeouts that methods have.

A request has the timeout of its method (`Call.timeout`), unless the caller gives another. None means no timeout: a turn takes as long
as its work, and a person as long as they like.
"""

from typing import TYPE_CHECKING, Final

from msgspec import UnsetType

if TYPE_CHECKING:
    from typing import TypeAlias

__all__ = ["APPROVAL_TIMEOUT", "NO_TIMEOUT", "OPEN_TIMEOUT", "REQUEST_TIMEOUT", "START_TIMEOUT", "Timeout"]  # fmt: skip

Timeout: "TypeAlias" = float | UnsetType | None
"""Seconds; None for no timeout; UNSET for the default of the method."""

START_TIMEOUT: Final = 90.0
"""Seconds for `initialize`. Long, because some agents do all their work before it; a program that was started in the wrong way, and
waits for a person, differs from them by this alone."""

OPEN_TIMEOUT: Final = 300.0
"""Seconds to open a session. The agent may have to start programs, to download MCP servers, and to send a long history."""

REQUEST_TIMEOUT: Final = 60.0
"""Seconds for everything that a program does by itself, methods that the protocol does not know included."""

APPROVAL_TIMEOUT: Final = 3600.0
"""Seconds for files and commands at the client: it may ask its user first, and they may be at lunch."""

NO_TIMEOUT: Final = None
"""For a turn, for a command that runs, and for what a person is asked. Cancel it, or give a timeout."""
