"""Drives the CLI of one engine session: its prompts, one at a time, and its output as updates, in order. Knows no particular CLI.

A driver sends the prompt to the CLI and keeps it as a `PendingPrompt` until the CLI reports the end of the turn. A cancelled prompt is
interrupted in the CLI first, and ends when its turn has ended there. What the CLI does between prompts is sent to the client like the rest.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeVar

from antiphon.aio import ignore_result
from antiphon.engines.events import TitleChanged, UpdateSender, mirrors
from antiphon.engines.labels import title_of
from antiphon.engines.project import is_trust, trust_by_command
from antiphon.errors import Code, ConnectionClosed, RequestError
from antiphon.life import Life
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.agent.session import AgentSession
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.events import Handler, TurnEnd

__all__ = [
    "ENGINE_SESSION_LIFE",
    "INTERRUPT_LIMIT",
    "CliDriver",
    "EngineSessionEvent",
    "EngineSessionState",
    "PendingPrompt",
]

INTERRUPT_LIMIT: Final = 2.0
"""Seconds that a turn may take to end after it was interrupted, before its process counts as hung. Real ones take 20 to 40 ms."""

_log = logging.getLogger(__name__)


class EngineSessionState(Enum):
    """What the CLI of an engine session does."""

    IDLE = "idle"
    WORKING = "working"
    CANCELLING = "cancelling"
    CLOSED = "closed"


class EngineSessionEvent(Enum):
    """What can happen to an engine session."""

    PROMPT = "take a prompt"
    CANCEL = "cancel the prompt"
    END = "end the turn"
    CLOSE = "close"


_S, _E = EngineSessionState, EngineSessionEvent
ENGINE_SESSION_LIFE: Final = Life(
    "engine session",
    _S.IDLE,
    {
        _S.IDLE: {_E.PROMPT: _S.WORKING, _E.CLOSE: _S.CLOSED},
        _S.WORKING: {_E.CANCEL: _S.CANCELLING, _E.END: _S.IDLE, _E.CLOSE: _S.CLOSED},
        # PROMPT: the agent answers a cancelled prompt after a while, also when the CLI has not stopped yet.
        _S.CANCELLING: {_E.END: _S.IDLE, _E.PROMPT: _S.WORKING, _E.CLOSE: _S.CLOSED},
        _S.CLOSED: {_E.PROMPT: _S.CLOSED, _E.CANCEL: _S.CLOSED, _E.END: _S.CLOSED, _E.CLOSE: _S.CLOSED},
    },
    "A session of Claude Code or Codex, from the moment at which it is open. What the CLI does by itself, between prompts, is no state.",
)


class PendingPrompt:
    """A prompt that waits for the end of its turn. The end is None if the CLI dropped the prompt before it began."""

    def __init__(self) -> None:
        self.end: asyncio.Future[TurnEnd | None] = asyncio.get_running_loop().create_future()
        self.end.add_done_callback(ignore_result)  # a cancelled prompt waits for the end, and not for an error

    def finish(self, end: "TurnEnd | None") -> None:
        """The turn has ended."""
        if not self.end.done():
            self.end.set_result(end)

    def fail(self, error: Exception) -> None:
        """There will be no end. Changes nothing if the turn has ended."""
        if not self.end.done():
            self.end.set_exception(error)


P = TypeVar("P", bound=PendingPrompt)


class CliDriver(Generic[P]):
    """The work of a CLI in one session. A subclass knows the CLI: it begins and interrupts turns, and translates output."""

    title: ClassVar[str]
    """What the CLI is called in errors and in the log."""

    def __init__(self, session: "AgentSession", handlers: "Mapping[type, Handler]", *, titled: bool) -> None:
        self._session = session
        self._updates = UpdateSender(session, {TitleChanged: self._title_changed, **handlers})
        self._titled = titled
        self._pending: P | None = None
        self.state = ENGINE_SESSION_LIFE.start

    def _happens(self, event: EngineSessionEvent) -> None:
        self.state = ENGINE_SESSION_LIFE.next(self.state, event)

    # What a subclass fills in.

    async def _begin(self, turn: "AgentTurn") -> "P | None":
        """Send the prompt to the CLI; return what `_expect` made of it. None: all is done, and no turn began."""
        raise NotImplementedError

    async def _interrupt(self, pending: P) -> None:
        """Interrupt the turn in the CLI, and wait for its end. A CLI that does not stop is replaced."""
        raise NotImplementedError

    async def _turn_over(self, pending: P) -> None:
        """Clean up after a turn, however it ended."""

    def _sign_in_needed(self, details: str) -> RequestError:
        """The error that asks the client to sign the user in. `details`: the message of the CLI."""
        raise NotImplementedError

    # Prompts.

    async def prompt(self, turn: "AgentTurn") -> "Outcome":
        """Send the user's prompt to the CLI, and wait for the end of the turn."""
        if is_trust(turn):
            await trust_by_command(turn)
            return None
        pending = await self._begin(turn)
        if pending is None:
            return None
        try:
            end = await asyncio.shield(pending.end)  # a cancelled prompt still waits for its end
        except asyncio.CancelledError:
            if self._pending is pending:
                self._happens(_E.CANCEL)
            await self._interrupt(pending)
            raise
        finally:
            if self._pending is pending:
                self._pending = None
                self._happens(_E.END)
            await self._turn_over(pending)
        return self._outcome(end)

    def _expect(self, pending: P) -> P:
        """Wait for the end of this prompt from now on. No `await` may come between this and sending the prompt."""
        self._happens(_E.PROMPT)
        self._pending = pending
        return pending

    @property
    def _steerable(self) -> "P | None":
        """The prompt that something can be added to."""
        return self._pending if self.state is _S.WORKING else None

    def _outcome(self, end: "TurnEnd | None") -> "Outcome":
        if end is None:
            return v1.StopReason.CANCELLED
        if end.error is None:
            return v1.PromptResult(end.stop_reason or v1.StopReason.END_TURN, end.usage)
        if end.error.code == Code.AUTH_REQUIRED:
            raise self._sign_in_needed(end.error.message)
        raise end.error.refusal()

    def _end_unreadable(self, error: Exception) -> RequestError:
        """The error of a prompt whose end could not be read."""
        wrong = f"the end of the turn could not be read: {type(error).__name__}"
        return RequestError(Code.INTERNAL_ERROR, f"{self.title}: {wrong}")

    # Updates.

    async def _send_all(self, events: Iterable[object]) -> None:
        """Send each event, whatever goes wrong with one of them: what follows may be what a prompt waits for."""
        for each in events:
            try:
                await self._updates.send(each)
            except ConnectionClosed as error:  # the client is gone
                _log.debug("an update of %s was not sent: %s", self.title, error)
            except Exception:
                if self._session.closed:
                    raise
                _log.exception("an update of %s could not be sent: %.200r", self.title, each)

    async def _send_strictly(self, events: Iterable[object]) -> None:
        """Send each event; what goes wrong ends it."""
        for each in events:
            await self._updates.send(each)

    async def _title_changed(self, changed: TitleChanged) -> None:
        self._titled = True
        await self._session.entitle(changed.title)

    async def _entitle(self, text: str) -> None:
        """Give the session, which has no title, a line of this text as its title."""
        if title := title_of(text):
            self._titled = True
            await self._session.entitle(title)

    @property
    def _terminals(self) -> bool:
        """Whether the client shows the output of commands as they print it."""
        return (self._session.client.capabilities.meta or {}).get("terminal_output") is True

    @property
    def _mirror(self) -> bool:
        """Whether output of commands is shown in terminals of the client."""
        return mirrors(self._session.client)

    def _log_unknown(self, unknown: Mapping[str, int]) -> None:
        if unknown:
            _log.info("%s sent messages that are not known here: %s", self.title, dict(unknown))
