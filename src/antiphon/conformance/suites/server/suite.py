"""The two suites for servers, and how a requirement of them is written.

The transport proposal is the specification of both profiles; for WebSocket, RFC 6455 is too. Where the official servers differ and the
proposal is open, any of their ways is right.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from antiphon.conformance.remote.server_run import PlayServer, ServerRun
from antiphon.conformance.requirements import Requirement, Suite
from antiphon.traffic.checker import Level, Side

__all__ = [
    "HTTP_SUITE",
    "PROPOSAL",
    "SOCKET_SUITE",
    "for_both",
    "remote_advice",
    "remote_capability",
    "remote_must",
    "remote_should",
    "rfc6455",
]

PROPOSAL: Final = "https://agentclientprotocol.com/rfds/streamable-http-websocket-transport"
"""The base of the links of requirements from the transport proposal."""

RFC_6455: Final = "https://www.rfc-editor.org/rfc/rfc6455#section-"

HTTP_SUITE: Final[Suite[ServerRun]] = Suite(Side.AGENT, judges_traffic=False)
SOCKET_SUITE: Final[Suite[ServerRun]] = Suite(Side.AGENT, judges_traffic=False)


def _at(level: Level, base: str = PROPOSAL) -> Callable[..., Requirement]:
    def made(id: str, text: str, *, fix: str, link: str = "", needs: tuple[str, ...] = ()) -> Requirement:
        return Requirement(id, level, text, base + link, fix, needs)

    return made


remote_must = _at(Level.MUST)
remote_should = _at(Level.SHOULD)
remote_capability = _at(Level.CAPABILITY)
remote_advice = _at(Level.ADVICE)
rfc6455 = _at(Level.MUST, RFC_6455)


PlayBoth = Callable[[ServerRun, str], Awaitable[None]]


def for_both(name: str, title: str, *shows: Callable[[str], Requirement]) -> Callable[[PlayBoth], PlayBoth]:
    """Make a scenario of each profile of the function below, which gets the prefix of the ids: `http` or `ws`."""

    def made(play: PlayBoth) -> PlayBoth:
        for suite, prefix in ((HTTP_SUITE, "http"), (SOCKET_SUITE, "ws")):
            listed = tuple(one(prefix) for one in shows)
            suite.scenario(f"{prefix}-{name}", title, shows=listed)(_with(play, prefix))
        return play

    return made


def _with(play: PlayBoth, prefix: str) -> PlayServer:
    async def played(run: ServerRun) -> None:
        await play(run, prefix)

    return played
