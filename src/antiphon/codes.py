"""The error codes of JSON-RPC and ACP, and what they mean. Apart from `errors`, which loads no enum before one is used."""

from enum import IntEnum
from typing import Final

__all__ = ["FIND_OWNER", "Code", "meaning_of", "recovery_from"]

FIND_OWNER: Final = "find the owner"
"""The action of an error from a process that does not own a session: nothing was done, and another process has it or can take it."""


class Code(IntEnum):
    """JSON-RPC error codes by name: what we send.

    Three numbers mean different things in different documents. We send the schema's meaning where it has one:

    ======  =========================  ==========================================================
    code    we send it for             others use it for
    ======  =========================  ==========================================================
    -32000  authentication required    connection closed (one client guide)
    -32001  request timed out          unsupported protocol version (one agent's notes)
    -32002  resource not found         permission denied (one client guide)
    ======  =========================  ==========================================================

    For an unsupported version we send -32022, and a closed connection is never sent: it is noticed.
    """

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    REQUEST_CANCELLED = -32800
    AUTH_REQUIRED = -32000
    REQUEST_TIMEOUT = -32001
    RESOURCE_NOT_FOUND = -32002
    SESSION_EXPIRED = -32003
    UNSUPPORTED_VERSION = -32022


_NAMES: Final[dict[int, str]] = {
    Code.PARSE_ERROR: "parse error",
    Code.INVALID_REQUEST: "invalid request",
    Code.METHOD_NOT_FOUND: "method not found",
    Code.INVALID_PARAMS: "invalid params",
    Code.INTERNAL_ERROR: "internal error",
    Code.REQUEST_CANCELLED: "request cancelled",
    Code.AUTH_REQUIRED: "authentication required",
    Code.REQUEST_TIMEOUT: "request timeout",
    Code.RESOURCE_NOT_FOUND: "resource not found",
    Code.SESSION_EXPIRED: "session expired",
    Code.UNSUPPORTED_VERSION: "unsupported protocol version",
}

# The other meaning of a colliding code, and words in the error's message that give it away.
_OTHER_MEANINGS: Final = {
    -32000: ("connection closed", ("connection closed", "connection lost", "disconnected")),
    -32001: ("unsupported protocol version", ("protocol version", "unsupported version")),
    -32002: ("permission denied", ("permission denied", "user rejected", "not permitted")),
}


def meaning_of(code: int, message: str = "") -> str:
    """What a received code means; the message decides where documents disagree."""
    if code in _OTHER_MEANINGS:
        other, signs = _OTHER_MEANINGS[code]
        if any(sign in message.lower() for sign in signs):
            return other
    if code in _NAMES:
        return _NAMES[code]
    return "server error" if -32099 <= code <= -32000 else "error"


_RECOVERIES: Final[dict[str, tuple[bool | None, str]]] = {
    "parse error": (False, "fix the JSON"),
    "invalid request": (False, "fix the structure"),
    "method not found": (False, "check the method"),
    "invalid params": (False, "fix the params"),
    "internal error": (None, "investigate"),
    "connection closed": (True, "reconnect"),
    "request timeout": (True, "try again later"),
    "permission denied": (False, "the user rejected it"),
    "session expired": (True, "open a new session"),
    "authentication required": (True, "sign in"),
    "resource not found": (False, "check the name"),
    "unsupported protocol version": (False, "use another version"),
}


def recovery_from(meaning: str) -> tuple[bool | None, str]:
    """Return whether another try can succeed after an error of this meaning, None if that is not known, and what to do before it."""
    return _RECOVERIES.get(meaning, (False, ""))
