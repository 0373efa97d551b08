"""A session with Claude Code as a client opens it: answered at once, with what is remembered; the CLI starts behind the response."""

import asyncio
import os
import uuid
from functools import cached_property
from typing import TYPE_CHECKING, Final

from antiphon.engines.claude.launch import may_bypass
from antiphon.engines.claude.settings import ClaudeSettings
from antiphon.engines.cli_program import StoredSettings
from antiphon.engines.cli_session import MODE, CliSession
from antiphon.errors import Code, RequestError
from antiphon.transcript.fork_point import dropped_prompts

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.agent.session import AgentSession
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.bounded import SessionIds
    from antiphon.engines.claude.driver import ClaudeDriver
    from antiphon.engines.claude.history import History
    from antiphon.engines.cli_program import CliMemory

__all__ = ["ClaudeSession"]


STORE_DELAYS: Final = (0.1, 0.2, 0.4, 0.8)
"""Seconds between two looks for a prompt that the CLI has not stored yet."""


class ClaudeSession(CliSession):
    """A session of Claude Code. Its driver, and with it the larger part of the engine, is imported when the CLI starts."""

    def __init__(
        self, session: "AgentSession", program: str, memory: "CliMemory", history: "History", ids: "SessionIds"
    ) -> None:
        super().__init__(session)
        self._program = program
        self._memory = memory
        self._history = history
        self._ids = ids
        self._source: str | None = None
        """The session that this one goes on with: itself, or one that it is a copy of."""
        self._last: str | None = None
        """The line that is the last one of the copy; None: all are copied."""
        self._settings = ClaudeSettings(session, bypass=may_bypass(os.environ))

    # Opening.

    async def create(self) -> None:
        self.session.id = str(uuid.uuid4())
        await self._begin()

    async def restore(self, *, replay: bool) -> None:
        """Open an earlier session. The CLI starts when the history has been sent, so that nothing comes in between."""
        await self._must_exist(self.session.id)
        self._ids.forget(self.session.id)
        self._source = self.session.id
        kept = await asyncio.to_thread(StoredSettings(self.session.id).load)
        await self._settings.begin(self._memory.load(), kept)
        if replay:
            await self._driver.send_history()
        self._start_soon()

    async def copy(self, source: str) -> None:
        await self._must_exist(source)
        self.session.id = str(uuid.uuid4())
        self._source = source
        if dropped := dropped_prompts(self.session.meta):
            self._last = await self._line_before(source, dropped)
            self._source = source if self._last is not None else None  # nothing is left: it is a new session
        await self._begin()

    async def _line_before(self, source: str, dropped: list[str]) -> str | None:
        """The last line of the source before these prompts. The CLI may store the last prompt a moment after it was answered."""
        for delay in STORE_DELAYS:
            try:
                return await asyncio.to_thread(self._history.line_before, source, dropped)
            except RequestError:
                await asyncio.sleep(delay)
        return await asyncio.to_thread(self._history.line_before, source, dropped)

    async def _must_exist(self, id: str) -> None:
        if await asyncio.to_thread(self._history.find, id) is None:
            raise RequestError(
                Code.RESOURCE_NOT_FOUND,
                "Resource not found",
                f"Claude Code has no session `{id}`: `session/list` shows those that there are",
            )

    async def _begin(self) -> None:
        await self._settings.begin(self._memory.load())
        # Behind the response: what is imported for the CLI takes longer than the response does.
        asyncio.get_running_loop().call_soon(self._start_soon)

    def _start_soon(self) -> None:
        if not self.session.closed:
            self._driver.start_soon()

    @cached_property
    def _driver(self) -> "ClaudeDriver":
        from antiphon.engines.claude.driver import ClaudeDriver

        return ClaudeDriver(
            self.session,
            self._settings,
            self._history,
            program=self._program,
            memory=self._memory,
            ids=self._ids,
            source=self._source,
            last=self._last,
        )

    # Working.

    async def prompt(self, turn: "AgentTurn") -> "Outcome":
        return await self._driver.prompt(turn)

    async def steer(self, turn: "AgentTurn") -> bool:
        return await self._driver.steer(turn)

    async def cancel(self) -> None:
        await self._driver.cancel()

    async def choose(self, name: str, value: str) -> None:
        await self._settings.set_option(await self._driver.ready(), name, value)
        if name != MODE:
            # The CLI forgets model and effort of a session when it ends. A mode is chosen anew.
            kept = {each: chosen for each, chosen in self._settings.chosen().items() if each != MODE}
            await asyncio.to_thread(StoredSettings(self.session.id).save, kept)

    async def close(self) -> None:
        await self._driver.close()
