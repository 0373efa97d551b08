"""A session with Claude Code as a client opens it: answered at once, with what is remembered; the conversation is opened behind the answer."""

import asyncio
import os
import uuid
from typing import TYPE_CHECKING

from antiphon.engines.base import EngineSession
from antiphon.engines.claude.launch import may_bypass
from antiphon.engines.claude.settings import MODE, MODEL, ClaudeSettings
from antiphon.engines.cli_program import SessionSettings
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.agent.session import AgentSession
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.claude.driver import ClaudeDriver
    from antiphon.engines.claude.history import History
    from antiphon.engines.cli_program import CliMemory, FoundProgram

__all__ = ["ClaudeSession", "Place"]


class Place:
    """Which conversation it is, and by which program it is held."""

    def __init__(self, program: str, remembered: "CliMemory") -> None:
        self.program = program
        self.remembered = remembered
        """What this version of the program told the last time."""
        self.id = str(uuid.uuid4())
        """The CLI's id of the conversation: the session's own, until the user clears it."""
        self.source: str | None = None
        """The conversation that it goes on with: itself, or one that it is a copy of."""


class ClaudeSession(EngineSession):
    """Claude Code at work."""

    def __init__(
        self, session: "AgentSession", found: "FoundProgram", history: "History", remembered: "CliMemory"
    ) -> None:
        self.session = session
        self._history = history
        self._place = Place(found.path, remembered)
        self._choosing = ClaudeSettings(session, bypass=may_bypass(os.environ))
        self._open: ClaudeDriver | None = None

    # Opening.

    async def create(self) -> None:
        """From nothing."""
        self.session.id = self._place.id
        await self._begin()

    async def restore(self, *, tell: bool) -> None:
        """As it was left; with all that was said again, if wished. The process is started when that is done, so that it says nothing in between."""
        await self._must_exist(self.session.id)
        self._place.id = self._place.source = self.session.id
        kept = await asyncio.to_thread(SessionSettings(self.session.id).load)
        await self._choosing.begin(self._place.remembered.load(), kept)
        if tell:
            await self._conversation.tell_history()
        self._start_soon()

    async def copy(self, source: str) -> None:
        """As another stands."""
        await self._must_exist(source)
        self.session.id = self._place.id
        self._place.source = source
        await self._begin()

    async def _must_exist(self, id: str) -> None:
        if await asyncio.to_thread(self._history.find, id) is None:
            raise RequestError(
                Code.RESOURCE_NOT_FOUND,
                "Resource not found",
                f"Claude Code has no session `{id}`: `session/list` shows those that there are",
            )

    async def _begin(self) -> None:
        await self._choosing.begin(self._place.remembered.load())
        # Behind the answer: what is imported for it takes longer than the answer does.
        asyncio.get_running_loop().call_soon(self._start_soon)

    def _start_soon(self) -> None:
        if not self.session.closed:
            self._conversation.start_soon()

    @property
    def _conversation(self) -> "ClaudeDriver":
        if self._open is None:
            from antiphon.engines.claude.driver import ClaudeDriver

            self._open = ClaudeDriver(self.session, self._place, self._history, self._choosing)
        return self._open

    # Working.

    async def prompt(self, turn: "AgentTurn") -> "Outcome":
        return await self._conversation.prompt(turn)

    async def steer(self, turn: "AgentTurn") -> bool:
        return await self._conversation.steer(turn)

    async def cancel(self) -> None:
        if self._open is not None:
            await self._open.interrupt()

    # A choice has two views, and who changes it in the one is told of the other.

    async def set_mode(self, mode_id: str) -> None:
        await self._choosing.set_mode(await self._conversation.ready(), mode_id)
        await self.session.tell_options()

    async def set_model(self, model_id: str) -> None:
        await self._choosing.set_model(await self._conversation.ready(), model_id)
        await self._keep()
        await self.session.tell_options()

    async def set_config_option(self, config_id: str, value: bool | str) -> None:
        await self._choosing.set_option(await self._conversation.ready(), config_id, str(value))
        if config_id != MODE:
            await self._keep()
        if config_id == MODE:
            await self.session.update(v1.CurrentModeUpdate(str(value)))
        elif config_id == MODEL:
            await self.session.tell_model(str(value))

    async def _keep(self) -> None:
        """Keep model and effort for the next time: the CLI itself forgets what was chosen in a session. A mode is chosen anew."""
        kept = {name: value for name, value in self._choosing.chosen().items() if name != MODE}
        await asyncio.to_thread(SessionSettings(self.session.id).save, kept)

    async def close(self) -> None:
        if self._open is not None:
            await self._open.close()
