"""A conversation with Claude Code: the process that has it, what the prompts come to, and what is told of it.

One process per session, one pump for all that it says; so what it tells by itself, between prompts, is told in the same order.
Nothing here is needed to answer `session/new`: it is imported while the CLI starts.
"""

import asyncio
import logging
import os
import uuid
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from antiphon.config.project_files import CLAUDE
from antiphon.engines.claude import settings, wire
from antiphon.engines.claude.grants import settings_with
from antiphon.engines.claude.launch import EDIT_HOOKS, HOOKS, ClaudeLaunch, ServerFile, command_of, environment_of
from antiphon.engines.claude.login import sign_in_needed
from antiphon.engines.claude.process import ClaudeProcess
from antiphon.engines.claude.prompt import ClaudePrompt, message_of
from antiphon.engines.claude.translate.events import (
    ClaudeEvent,
    ClaudeTurnEnded,
    CliStarted,
    CommandsChanged,
    ConversationReset,
    ModeChanged,
    ModelChanged,
    SignInNeeded,
    TitleChanged,
)
from antiphon.engines.events import UpdateSender, mirrors
from antiphon.engines.labels import title_of
from antiphon.engines.process import TRIES, CliRefused, KeptProcess
from antiphon.engines.project import Project, is_trust, trust_by_command
from antiphon.errors import AcpError, Code, ConnectionClosed, RequestError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from antiphon.agent.agent import Outcome
    from antiphon.agent.session import AgentSession
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.claude.history import History
    from antiphon.engines.claude.questions import ClaudeQuestions
    from antiphon.engines.claude.session import Place
    from antiphon.engines.claude.settings import ClaudeSettings
    from antiphon.engines.claude.translate.translator import ClaudeTranslator
    from antiphon.engines.events import TurnEnd, TurnFailure

__all__ = ["ClaudeDriver"]

START_LIMIT: Final = 60.0
"""Seconds that the CLI may take until it says what it has on offer. It takes half of one, or many behind a slow proxy."""

INTERRUPT_LIMIT: Final = 2.0
"""Seconds that a turn may take to end after it was interrupted, before the process counts as hung. Real ones take 40 ms."""

STEERABLE: Final = frozenset({"msg_lifecycle_v1", "interrupt_cancel_queued_v1"})
"""What the CLI says it can, if something can be added to a turn."""

BATCH: Final = 200
"""Updates of a history that are read at a time."""

_log = logging.getLogger(__name__)


class ClaudeDriver:
    """What one session talks about."""

    def __init__(self, session: "AgentSession", place: "Place", history: "History", choosing: "ClaudeSettings") -> None:
        self._session = session
        self._place = place
        self._history = history
        self._choosing = choosing
        self._telling = UpdateSender(
            session,
            {
                ModeChanged: lambda changed: choosing.mode_is(changed.mode),
                ModelChanged: lambda changed: choosing.model_is(changed.model),
                CommandsChanged: lambda changed: choosing.commands_are(changed.commands),
                CliStarted: self._started,
                ClaudeTurnEnded: _nothing,  # of a history
                ConversationReset: _nothing,
            },
        )
        self._servers = ServerFile(session.mcp_servers)
        self._project = Project(session, "Claude Code", CLAUDE)
        self._trusted = False
        """Whether the process was started with the settings of the project."""
        self._running: KeptProcess[ClaudeProcess] = KeptProcess(self)
        self._waiting: ClaudePrompt | None = None
        self._last_error: TurnFailure | None = None
        self._can: frozenset[str] = frozenset()
        self._titled = place.source == place.id

    # The larger half of the imports: they are made while the CLI starts, which takes longer.

    @cached_property
    def _translator(self) -> "ClaudeTranslator":
        return self._new_translator()

    @cached_property
    def _answering(self) -> "ClaudeQuestions":
        from antiphon.engines.claude.questions import ClaudeQuestions

        return ClaudeQuestions(self._session, self._translator, self._telling)

    def _new_translator(self, replay: bool = False) -> "ClaudeTranslator":
        from antiphon.engines.claude.translate.translator import ClaudeTranslator

        client = self._session.client
        meta = client.capabilities.meta or {}
        return ClaudeTranslator(
            self._session.cwd,
            terminals=meta.get("terminal_output") is True,
            mirror=mirrors(client),
            replay=replay,
        )

    def start_soon(self) -> None:
        """Begin to start the process: the first prompt will not have to wait for it."""
        self._running.start_soon()

    async def tell_history(self) -> None:
        """All that was said, again, out of Claude's own files."""
        story = self._history.replay(self._session.id, self._new_translator(replay=True))
        while batch := await asyncio.to_thread(lambda: list(islice(story, BATCH))):
            for each in batch:
                await self._telling.tell(each)

    # Being the owner of a process.

    async def start(self) -> ClaudeProcess:
        """A process for its own conversation if there is one by now, else for where it comes from."""
        place = self._place
        own = await asyncio.to_thread(self._history.find, place.id)
        if own is not None and await asyncio.to_thread(self._history.cwd_of, place.id) is None:
            own, place.id = (
                None,
                str(uuid.uuid4()),
            )  # nothing was said in it, and the CLI neither resumes it nor begins it again
        self._trusted = await self._project.look()
        launch = ClaudeLaunch(
            program=place.program,
            cwd=self._session.cwd,
            trusted=self._trusted,
            conversation=place.id,
            source=place.source if own is None else place.id,
            directories=self._session.directories,
            servers=self._servers.path(),
            settings=self._settings(),
            bypass=self._choosing.bypass,
            **self._choosing.chosen(),
        )
        # What comes in together leaves together: words of the model are small, and each write wakes the client.
        gather = self._session.client.connection.transport.gather
        try:
            return await ClaudeProcess.start(command_of(launch), self._session.cwd, environment_of(os.environ), gather)
        except BaseException:
            self._servers.remove()
            raise

    def _settings(self) -> str | None:
        if self._session.rules is None:
            return settings_with(self._session.cwd)
        from antiphon.engines.claude.rules import settings_for  # late: most sessions have none

        return settings_for(self._session)

    async def began(self, process: ClaudeProcess) -> None:
        """Ask what it has on offer, show where that differs from what was remembered, and remember it."""
        _ = self._answering  # imported now, while the CLI starts
        self._last_error = None
        # Also where there is no rule yet that stops anything: it may be told to look only.
        hooks = {"hooks": EDIT_HOOKS if self._session.rules is None else HOOKS}
        try:
            initialized = await process.control("initialize", {"forwardSubagentText": True, **hooks}, START_LIMIT)
        except BaseException:
            # As long as it lives it may still open the file, by a name that would soon mean another one.
            await process.close()
            self._servers.remove()
            raise
        self._servers.remove()  # it has been read: what is secret in it is not kept
        try:
            told = await process.control("get_settings")
        except CliRefused:  # an older one
            told = {}
        if settings.forbids_bypass(told):
            self._choosing.bypass = False
        await self._choosing.learn(settings.offer_of(initialized, told))
        if self._place.source is None:  # what a session goes on with is its own
            offer: dict[str, Any] = msgspec.to_builtins(self._choosing.offer)
            await asyncio.to_thread(self._place.remembered.save, offer)

    def hear(self, process: ClaudeProcess, line: wire.Line) -> "Awaitable[None]":
        """One line of it. Nearly all are a word of the model, which is told without a coroutine."""
        if type(line) is not wire.StreamEvent:
            return self._hear_line(process, line)
        told = self._translator.feed(line)
        return self._telling.tell(told[0]) if len(told) == 1 else self._hear_all(told)

    async def _hear_line(self, process: ClaudeProcess, line: wire.Line) -> None:
        match line:
            case wire.ControlRequest():
                self._answering.ask(process, line)
            case wire.ControlCancel(request_id=id):
                self._answering.withdraw(process, id)
            case wire.ElicitationComplete(elicitation_id=id):
                await self._answering.page_done(id)
            case wire.Lifecycle(command_uuid=id, state="cancelled") if self._waiting and self._waiting.owns(id):
                self._waiting.answered([id], None)
            case wire.ResultLine():
                await self._hear_result(line)
            case _:
                await self._hear_all(self._translator.feed(line))

    async def _hear_result(self, line: wire.ResultLine) -> None:
        """Somebody waits for this one: whatever is wrong with it, the prompt ends."""
        try:
            told = self._translator.feed(line)
        except Exception as error:
            if self._waiting is not None:
                wrong = f"the end of the turn could not be read: {type(error).__name__}"
                self._waiting.fail(RequestError(Code.INTERNAL_ERROR, f"Claude Code: {wrong}"))
            raise
        await self._hear_all(told)

    async def _hear_all(self, told: "Sequence[ClaudeEvent]") -> None:
        for each in told:
            try:
                await self._hear_news(each)
            except ConnectionClosed as error:  # the client is gone
                _log.debug("news of Claude Code were not told: %s", error)
            except Exception:  # what follows in the line may be what somebody waits for
                if self._session.closed:
                    raise
                _log.exception("news of Claude Code could not be told: %.200r", each)

    async def _hear_news(self, each: "ClaudeEvent") -> None:
        match each:
            case ClaudeTurnEnded():
                self._turn_ended(each)
            case ConversationReset(new_id=str() as id):
                self._place.id, self._place.source = id, None
            case SignInNeeded(text=text) if self._waiting:
                self._waiting.fail(sign_in_needed(said=text))
            case TitleChanged():
                self._titled = True
                await self._telling.tell(each)
            case _:
                await self._telling.tell(each)

    async def _started(self, started: "CliStarted") -> None:
        self._can = frozenset(started.capabilities)
        if started.mode is not None:
            await self._choosing.mode_is(started.mode)
        if started.model is not None:
            await self._choosing.model_is(started.model)

    async def ended(self, process: ClaudeProcess) -> None:
        """It is gone: whoever waits for it is told, and what it left open is closed."""
        self._answering.withdraw_all(process)
        if self._translator.unknown:
            _log.info("Claude Code said things that nobody here knows: %s", dict(self._translator.unknown))
        if self._session.closed:
            return
        try:
            await self._close_calls(background=True)
        finally:
            if self._waiting is not None and self._waiting.process is process:
                self._waiting.fail(self._gone(process.end or ConnectionClosed("Claude Code ended")))

    async def _close_calls(self, *, background: bool = False) -> None:
        for each in self._translator.close_open(background=background):
            await self._telling.tell(each)

    def _gone(self, error: AcpError) -> RequestError:
        """What kept the CLI from doing its work, for the user."""
        said, self._last_error = self._last_error, None
        if said is not None and said.kind == "session_not_found":
            return RequestError(
                said.code,
                f"Claude Code cannot go on with this conversation: {said.message}",
                hint="an older one only does so in the directory "
                "where it was begun: open it there, or update Claude Code",
            )
        return RequestError(
            Code.INTERNAL_ERROR,
            "Claude Code ended unexpectedly",
            f"{said.message if said is not None else error}",
            hint="send your prompt again: the conversation goes on in a new process",
        )

    # Working.

    async def prompt(self, turn: "AgentTurn") -> "Outcome":
        """Say what the user says, and wait for the end of it."""
        if is_trust(turn):
            await trust_by_command(turn)
            return None
        content = await message_of(turn)
        await self._entitle(turn.text)
        process = await self._ready_for_project()
        self._last_error = None  # of what it did by itself
        # No await from here to the end of `Waiting`: `ended` is called once, and fails the prompt that waits at that moment.
        waiting = self._waiting = ClaudePrompt(process, str(uuid.uuid4()))
        process.prompt(content, waiting.id)
        try:
            end = await asyncio.shield(waiting.end)  # it is still waited for when the turn is called off
        except asyncio.CancelledError:
            await self._call_off(process, waiting)
            raise
        finally:
            self._waiting = None
            await self._close_calls()
        return _outcome(end)

    async def steer(self, turn: "AgentTurn") -> bool:
        """Add to the turn that runs: the CLI takes it in between two steps, or answers it next.

        An older one names no prompts in its answers and does not call off what waits, so it is not asked to.
        """
        content = await message_of(turn)
        waiting = self._waiting
        if waiting is None or waiting.end.done() or not self._can >= STEERABLE:
            return False
        id = str(uuid.uuid4())
        waiting.add(id)
        waiting.process.prompt(content, id)
        return True

    async def interrupt(self) -> None:
        """Call off what it does by itself: there is no prompt that waits for its end."""
        process = self._running.process
        if process is not None and self._waiting is None:
            with suppress(CliRefused, ConnectionClosed):
                await process.control("interrupt", {"cancel_queued": True})
            self._answering.withdraw_all(process)

    async def _ready_for_project(self) -> ClaudeProcess:
        """The process; another one, if it was started with other settings of the project than those that are trusted now.

        Raises:
            RequestError: it does not start, or each one dies before it can be spoken to.
        """
        death = ConnectionClosed("Claude Code ended")
        for _ in range(TRIES):
            process = await self.ready()
            if await self._project.look() != self._trusted:
                self._running.give_up(process)
                process = await self.ready()
            await self._project.tell()  # in the turn: a client may not listen before it
            if process.end is None:  # it may have died while we looked
                return process
            death = process.end
        raise self._gone(death)

    async def ready(self) -> ClaudeProcess:
        """The process, once it can be spoken to.

        Raises:
            RequestError: it does not start, with what to do about it.
        """
        try:
            return await self._running.ready()
        except (ConnectionClosed, CliRefused) as error:
            raise self._gone(error) from error
        except RequestError:
            raise
        except AcpError as error:
            raise RequestError(Code.INTERNAL_ERROR, "Claude Code does not start", str(error)) from error

    async def _call_off(self, process: ClaudeProcess, waiting: ClaudePrompt) -> None:
        """Interrupt the turn and wait for its end. One that does not end has a process that hangs: it is replaced."""
        try:
            async with asyncio.timeout(INTERRUPT_LIMIT):
                answer = await process.control("interrupt", {"cancel_queued": True})
                if waiting.id not in answer.get("cancelled", ()):
                    await asyncio.wait([waiting.end])
        except (TimeoutError, CliRefused, ConnectionClosed) as error:
            _log.warning("Claude Code (pid %d) does not stop, so it is ended: %s", process.pid, error)
            self._running.give_up(process)
        finally:
            self._answering.withdraw_all(process)

    def _turn_ended(self, ended: "ClaudeTurnEnded") -> None:
        waiting, ids = self._waiting, ended.user_message_uuids
        if waiting is not None and (any(map(waiting.owns, ids)) or not (ids or ended.origin)):
            waiting.answered(ids, ended.end)
        elif not ended.origin:
            self._last_error = ended.end.error  # of a process that could not begin, say

    async def _entitle(self, text: str) -> None:
        """Until the CLI finds a better one, the first prompt is the title."""
        if not self._titled and (title := title_of(text)):
            self._titled = True
            await self._session.entitle(title)

    async def close(self) -> None:
        """End it, and free what it holds."""
        self._answering.close()
        await self._running.close()
        self._servers.remove()


async def _nothing(_: object) -> None:
    """For the session alone."""


def _outcome(end: "TurnEnd | None") -> "Outcome":
    if end is None:
        return v1.StopReason.CANCELLED
    if end.error is None:
        return v1.PromptResult(end.stop_reason or v1.StopReason.END_TURN, end.usage)
    raise sign_in_needed(said=end.error.message) if end.error.kind == "auth" else end.error.refusal()
