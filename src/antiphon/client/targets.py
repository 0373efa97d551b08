"""Whom to connect to: a program that we start (by its words, or an agent's name), or a transport that somebody has made already.

Knows how to reach an agent, and whether it can be reached again. Says nothing to it.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from antiphon.errors import AcpError, LocalProtocolError
from antiphon.transports.base import Transport
from antiphon.transports.process import spawn

__all__ = ["Given", "Program", "Target", "Words", "target_of"]

Words: TypeAlias = Sequence[str | os.PathLike[str]]
Target: TypeAlias = str | Words | Transport
"""An agent's name (such as `"demo"`), the words of a command, or a transport."""

# -P: or the directory it is started in would come first on the path, and with it whatever is called `msgspec.py` there.
DEMO: Final = ("-P", "-m", "antiphon", "agent", "--engine", "demo")
_SCHEMES: Final = ("http://", "https://", "ws://", "wss://", "unix://", "tcp://")


class Program:
    """A command: it can be started as often as needed."""

    restartable = True

    def __init__(
        self, words: Words, name: str, cwd: str | os.PathLike[str] | None, env: Mapping[str, str] | None
    ) -> None:
        self.words = words
        self.name = name
        self._cwd = cwd
        self._env = env

    async def open(self) -> Transport:
        """Start it.

        Raises:
            SpawnFailed: there is no such program, or it may not be run.
        """
        return await spawn(self.words, cwd=self._cwd, env=self._env)


class Given:
    """One end of a conversation that somebody else has set up: when it is over, it is over."""

    restartable = False
    name = "the agent"

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def open(self) -> Transport:
        """The transport itself."""
        return self._transport


def target_of(target: object, cwd: str | os.PathLike[str] | None, env: Mapping[str, str] | None) -> Program | Given:
    """What `connect` was given, understood.

    Raises:
        AcpError: it is an address, which nothing here can reach yet; or an agent that is not known or not installed.
        LocalProtocolError: it is neither a name, nor a list of words, nor a transport.
    """
    if isinstance(target, Transport):
        if cwd is not None or env is not None:
            raise LocalProtocolError(
                "a transport has been made already: `cwd` and `env` are for programs that we start"
            )
        return Given(target)
    if isinstance(target, str):
        if target == "demo":
            return Program([sys.executable, *DEMO], "demo", cwd, env)
        return _named(target, cwd, env)
    if not isinstance(target, Sequence) or isinstance(target, bytes) or not target:
        raise LocalProtocolError(
            f'an agent is a name such as "demo", a list of the words of its command, or a transport, not {target!r:.80}'
        )
    return Program(target, os.path.basename(os.fspath(target[0])), cwd, env)


def _named(name: str, cwd: str | os.PathLike[str] | None, env: Mapping[str, str] | None) -> Program:
    """An agent by its name: the user's own, a known one, or one of the registry that the user gave."""
    if name.lower().startswith(_SCHEMES):
        # The host alone: the rest of an address may hold secrets anywhere.
        address = name.partition("://")[2].partition("/")[0].partition("?")[0].partition("#")[0].rpartition("@")[2]
        raise AcpError(
            f"`{address}` cannot be reached: this version talks to programs that it starts, not over a network",
            hint="give the agent's command as a list of words",
        )
    from antiphon.catalogue.finding import AgentMissing, UnknownAgent, start_of  # only who asks by name pays for it

    try:
        found = start_of(name)
    except (AgentMissing, UnknownAgent) as error:
        raise type(error)(f"{error}, or give a list of the words of its command") from None
    env = found.environment() if env is None else {**env, **found.env}
    return Program(found.command, name, found.cwd if cwd is None else cwd, env)
