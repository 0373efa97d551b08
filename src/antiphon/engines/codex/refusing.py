"""What the server refuses, and its end, as the answer to a client: what is wrong, where, and what to do."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from antiphon.engines.codex.server import ServerRefused
from antiphon.errors import Code, ConnectionClosed, RequestError

if TYPE_CHECKING:
    from antiphon.engines.codex.server import Server

__all__ = ["clearly", "ended", "is_archived", "is_open_elsewhere", "key_at_fault", "plain", "refused"]

_UNKNOWN_THREAD: Final = re.compile(
    r"no rollout found|thread not found|unknown thread|invalid thread id", re.IGNORECASE
)
_OPEN_ELSEWHERE: Final = re.compile(r"\bis closing\b|\balready has an active writer\b", re.IGNORECASE)
_ARCHIVED: Final = re.compile(r"\bis archived\b", re.IGNORECASE)
_CONFIGURATION: Final = "failed to load configuration"
_KEY: Final = re.compile(r"^in `(.+)`$", re.MULTILINE)
_COLOURS: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


@contextmanager
def clearly() -> Iterator[None]:
    """What the server refuses in this block, and that it ended, is an error for the client.

    Raises:
        RequestError: instead of what was raised.
    """
    try:
        yield
    except ServerRefused as error:
        raise refused(error) from error
    except ConnectionClosed as error:
        raise ended(error) from error


def refused(error: ServerRefused, key: str | None = None) -> RequestError:
    """The server's no. `key` is what is wrong in its configuration, where that is why."""
    said = error.message
    if _UNKNOWN_THREAD.search(said):
        return RequestError(
            Code.RESOURCE_NOT_FOUND, "Resource not found", f"{said}: `session/list` shows the sessions that there are"
        )
    if is_archived(error):
        return RequestError(
            Code.INVALID_PARAMS, "The session is archived", "load or resume it first: that takes it out of the archive"
        )
    if is_open_elsewhere(error):
        hint = "close it in the other program, or wait until that has closed it"
        return RequestError(Code.INTERNAL_ERROR, "The session is open in another program", said, hint=hint)
    if said.startswith(_CONFIGURATION):
        where = said.removeprefix(_CONFIGURATION).lstrip(": ") + (f", in `{key}`" if key else "")
        return RequestError(
            Code.INTERNAL_ERROR,
            f"Codex cannot read its configuration: {where}",
            {"kind": "configuration", "details": where},
            hint="correct the file at that line and column, and open the session again",
        )
    return RequestError(Code.INTERNAL_ERROR, f"Codex refuses: {said}")


def is_open_elsewhere(error: ServerRefused) -> bool:
    """Whether a server still has the thread: the same one closes it, or another one writes in it."""
    return _OPEN_ELSEWHERE.search(error.message) is not None


def is_archived(error: ServerRefused) -> bool:
    """Whether that is why."""
    return _ARCHIVED.search(error.message) is not None


def ended(why: ConnectionClosed | None) -> RequestError:
    """The server is gone, and with it what was asked of it."""
    return RequestError(
        Code.INTERNAL_ERROR,
        "Codex ended unexpectedly",
        f"{plain(str(why or 'no more is known'))}",
        hint="try again: the conversation goes on in a new process",
    )


def plain(text: str) -> str:
    """Without the colours that the program has for terminals."""
    return _COLOURS.sub("", text)


async def key_at_fault(server: "Server") -> str | None:
    """The key of its configuration that the server cannot read: empty if it does not say which, None if it can read all."""
    try:
        await server.request("config/read", {})
    except ServerRefused as error:
        found = _KEY.search(error.message)
        return found[1] if found is not None else ""
    return None
