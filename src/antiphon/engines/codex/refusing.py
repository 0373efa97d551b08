"""What the server refuses, as the answer to a client: what is wrong, where, and what to do."""

import re
from typing import Final

from antiphon.engines.codex.server import ServerRefused
from antiphon.errors import Code, RequestError

__all__ = ["refused"]

_UNKNOWN_THREAD: Final = re.compile(
    r"no rollout found|thread not found|unknown thread|invalid thread id", re.IGNORECASE
)
_CONFIGURATION: Final = "failed to load configuration"


def refused(error: ServerRefused) -> RequestError:
    """The server's no."""
    said = error.message
    if _UNKNOWN_THREAD.search(said):
        return RequestError(
            Code.RESOURCE_NOT_FOUND, "Resource not found", f"{said}: `session/list` shows the sessions that there are"
        )
    if said.startswith(_CONFIGURATION):
        where = said.removeprefix(_CONFIGURATION).lstrip(": ")
        return RequestError(
            Code.INTERNAL_ERROR,
            f"Codex cannot read its configuration: {where}\nhint: correct the file at that line and column, and open the session again",
            {"kind": "configuration", "details": where},
        )
    return RequestError(Code.INTERNAL_ERROR, f"Codex refuses: {said}")
