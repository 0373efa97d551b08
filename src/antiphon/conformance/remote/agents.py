"""Agents on a network: how the check reaches them, where they work, and the scenarios that make no sense with them."""

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from antiphon.conformance.requirements import Scenario, Suite
from antiphon.errors import AcpError
from antiphon.transports.remote import RemoteAddress, is_loopback

if TYPE_CHECKING:
    from antiphon.transports.base import Transport

__all__ = ["RemoteAgents", "RemoteDirectory", "left_out"]

PROCESS: Final = "there is no process to look at"
STDIO: Final = "it is about lines on stdin and stdout, which a network does not have"
HANDSHAKE: Final = "over HTTP `initialize` opens the connection, so nothing comes before it and it is not sent twice"
HANDSHAKES: Final = ("odd-client", "version-in-words", "version-none", "initialize-again", "initialize-first")
"""Scenarios with another handshake than the usual one."""
FILES: Final = "it works with files and commands of this machine, which the agent on another machine does not have"


class RemoteAgents:
    """An address: each agent of the check is a connection to it."""

    is_process = False

    def __init__(self, url: str, token: str | None = None, *, plaintext: bool = False) -> None:
        self._address = RemoteAddress(url, token=token, plaintext=plaintext)

    async def start(self) -> "Transport":
        return await self._address.open()


class RemoteDirectory:
    """The directory in which the sessions of a check work.

    An agent at a loopback address or a Unix socket sees the directories of this machine, unless its address leads elsewhere, as with
    SSH: that is known by a directory that is named and does not exist here.

    Raises:
        AcpError: the agent is on another machine, and no directory there was named.
    """

    def __init__(self, url: str, named: str | None) -> None:
        self.path = None if named is None else Path(named)
        self.shared = _is_here(url) and (self.path is None or self.path.is_dir())
        if self.path is not None and self.shared:
            self.path = self.path.resolve()
        elif self.path is None and not self.shared:
            raise AcpError(
                "the agent is on another machine, and no directory there is known to work in",
                hint="name a directory there, in which small files may be written, with `--cwd DIR`",
            )
        elif self.path is not None and not PurePosixPath(self.path).is_absolute():
            raise AcpError(f"`{named}` is no directory here", hint="give `--cwd` the whole path of a directory there")


def _is_here(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "unix" or is_loopback(parts.hostname or "")


def left_out(suite: Suite[Any], url: str, *, shared: bool) -> dict[str, str]:
    """Return the scenarios that make no sense with the agent at an address, each with the reason."""
    reasons = {name: _reason(one, shared) for name, one in suite.scenarios.items()}
    if urlsplit(url).scheme in ("http", "https"):
        reasons |= dict.fromkeys(HANDSHAKES, HANDSHAKE)
    return {name: reason for name, reason in reasons.items() if reason and name in suite.scenarios}


def _reason(scenario: Scenario[Any], shared: bool) -> str:
    if scenario.process:
        return PROCESS
    if scenario.stdio:
        return STDIO
    return FILES if scenario.files and not shared else ""
