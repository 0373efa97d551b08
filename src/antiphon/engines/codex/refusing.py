"""What the server refuses, as the answer to a client: what is wrong, where, and what to do."""

import re
from typing import TYPE_CHECKING, Final

from antiphon.engines.codex.server import ServerRefused
from antiphon.errors import Code, RequestError

if TYPE_CHECKING:
    from antiphon.engines.codex.server import Server

__all__ = ["key_at_fault", "refused"]

_UNKNOWN_THREAD: Final = re.compile(
    r"no rollout found|thread not found|unknown thread|invalid thread id", re.IGNORECASE
)
_CONFIGURATION: Final = "failed to load configuration"
_KEY: Final = re.compile(r"^in `(.+)`$", re.MULTILINE)


def refused(error: ServerRefused, key: str | None = None) -> RequestError:
    """The server's no. `key` is what is wrong in its configuration, where that is why."""
    said = error.message
    if _UNKNOWN_THREAD.search(said):
        return RequestError(
            Code.RESOURCE_NOT_FOUND, "Resource not found", f"{said}: `session/list` shows the sessions that there are"
        )
    if said.startswith(_CONFIGURATION):
        where = said.removeprefix(_CONFIGURATION).lstrip(": ") + (f", in `{key}`" if key else "")
        return RequestError(
            Code.INTERNAL_ERROR,
            f"Codex cannot read its configuration: {where}\nhint: correct the file at that line and column, and open the session again",
            {"kind": "configuration", "details": where},
        )
    return RequestError(Code.INTERNAL_ERROR, f"Codex refuses: {said}")


async def key_at_fault(server: "Server") -> str | None:
    """The key of its configuration that the server cannot read: empty if it does not say which, None if it can read all."""
    try:
        await server.request("config/read", {})
    except ServerRefused as error:
        found = _KEY.search(error.message)
        return found[1] if found is not None else ""
    return None
