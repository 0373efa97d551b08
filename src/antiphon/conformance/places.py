"""Where agents come from: a command that is started anew for each."""

from collections.abc import Mapping, Sequence

from antiphon.config.environment import with_new_sessions
from antiphon.transports.base import Transport
from antiphon.transports.process import spawn

__all__ = ["Program"]


class Program:
    """A command, started where we were started: words in it may be paths. The workspace is told to the agent by `session/new`."""

    is_process = True

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self.command = list(command)
        self._env = with_new_sessions() if env is None else env

    async def start(self) -> Transport:
        return await spawn(self.command, env=self._env)
