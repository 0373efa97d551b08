"""A session with Codex as a client opens it: a thread of the server that all sessions share."""

from typing import TYPE_CHECKING

from antiphon.engines.cli_session import CliSession
from antiphon.engines.codex.driver import CodexDriver
from antiphon.engines.codex.settings import CodexSettings
from antiphon.transcript.fork_point import dropped_prompts

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.agent.session import AgentSession
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.codex.hub import CodexHub

__all__ = ["CodexSession"]


class CodexSession(CliSession):
    """A session of Codex."""

    def __init__(self, session: "AgentSession", hub: "CodexHub") -> None:
        super().__init__(session)
        self._hub = hub
        self._settings = CodexSettings(session)
        self._driver = CodexDriver(session, hub, self._settings)

    # Opening.

    async def create(self) -> None:
        await self._driver.begin(await self._driver.thread.start())

    async def restore(self, *, replay: bool) -> None:
        self._follow(self.session.id)
        await self._driver.begin(await self._driver.thread.resume())
        if replay:
            await self._driver.send_history()

    async def copy(self, source: str) -> None:
        self._follow(source)
        await self._driver.begin(await self._driver.thread.fork(source, dropped_prompts(self.session.meta)))

    def _follow(self, id: str) -> None:
        """Take over the settings of a session that is open already: Codex does not know which mode its rights were sent for."""
        other = self._hub.listener_of(self._hub.ids.own_id(id))
        if isinstance(other, CodexDriver):
            self._settings.follow(other.settings)

    # Working.

    async def prompt(self, turn: "AgentTurn") -> "Outcome":
        return await self._driver.prompt(turn)

    async def steer(self, turn: "AgentTurn") -> bool:
        return await self._driver.steer(turn)

    async def cancel(self) -> None:
        await self._driver.cancel()

    async def choose(self, name: str, value: str) -> None:
        """Change a setting. Codex takes the settings with every turn, so it counts from the next prompt on."""
        self._settings.set_option(name, value)

    async def close(self) -> None:
        await self._driver.close()
