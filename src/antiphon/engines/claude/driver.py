"""Drives `claude` for one session: starts the process, sends prompts, translates its output, and answers its questions.

One process per session, one pump for all of its output; so what it does by itself, between prompts, is sent in the same order.
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
from antiphon.config.shapes import APPEND_SYSTEM_PROMPT, MAX_COST, MAX_TOKENS, MAX_TURNS, USED_TOKENS, asked_of_engines
from antiphon.engines.claude import settings, wire
from antiphon.engines.claude.grants import settings_with
from antiphon.engines.claude.launch import EDIT_HOOKS, HOOKS, ClaudeLaunch, ServerFile, command_of, environment_of
from antiphon.engines.claude.login import sign_in_needed
from antiphon.engines.claude.translate.events import (
    ClaudeTurnEnded,
    CliStarted,
    CommandsChanged,
    ConversationReset,
    ModeChanged,
    ModelChanged,
    SignInNeeded,
)
from antiphon.engines.cli_driver import (
    INTERRUPT_LIMIT,
    CliDriver,
    EngineSessionEvent,
    EngineSessionState,
    PendingPrompt,
)
from antiphon.engines.content import (
    ContextPiece,
    DocumentPiece,
    PicturePiece,
    Piece,
    TextPiece,
    begins_with_command,
    pieces_of,
    reader_of,
)
from antiphon.engines.events import UpdateSender
from antiphon.engines.process import CliProcess, CliRefused, KeptProcess
from antiphon.engines.project import Project
from antiphon.errors import AcpError, Code, ConnectionClosed, RequestError, ResponseError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from antiphon.agent.session import AgentSession
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.bounded import SessionIds
    from antiphon.engines.claude.history import History
    from antiphon.engines.claude.questions import ClaudeQuestions
    from antiphon.engines.claude.settings import ClaudeSettings
    from antiphon.engines.claude.translate.translator import ClaudeTranslator
    from antiphon.engines.cli_program import CliMemory
    from antiphon.engines.events import Handler, TurnEnd, TurnFailure
    from antiphon.protocol.base import JsonObject

__all__ = ["CONTROL_LIMIT", "DOCUMENTS", "PICTURES", "ClaudeDriver", "ClaudeProcess", "ClaudePrompt", "message_of"]

# One `claude` process: prompts in, lines out, and control requests in both directions.

CONTROL_LIMIT: Final = 10.0
"""Seconds that the CLI may take to respond to a control request. Most take a few milliseconds."""


class ClaudeProcess(CliProcess[wire.Line]):
    """A running `claude`."""

    title = "Claude Code"

    def read(self, line: bytes) -> wire.Line | None:
        message = wire.decode(line)
        if not isinstance(message, wire.ControlResponse):
            return message
        if message.ok:
            self.succeeded(message.request_id, message.response)
        else:
            self.failed(message.request_id, message.error)
        return None

    async def control(
        self, subtype: str, fields: "JsonObject | None" = None, limit: float = CONTROL_LIMIT
    ) -> "JsonObject":
        """Send a control request and return the response.

        Raises:
            CliRefused: the CLI refuses, or does not respond.
            ConnectionClosed: the CLI ended.
        """
        id = f"antiphon-{self.next_number()}"
        return await self.exchange(id, subtype, wire.control_request(id, subtype, fields or {}), _same, limit)

    def answer(self, id: str, result: "JsonObject") -> None:
        self.send(wire.control_answer(id, result))

    def refuse(self, id: str, message: str, code: int = Code.INTERNAL_ERROR) -> None:
        """Respond with an error. The protocol of the CLI has no codes."""
        self.send(wire.control_refusal(id, message))


def _same(response: "JsonObject") -> "JsonObject":
    return response


# A prompt as Claude Code takes it, and as it waits for its end.
#
# The CLI looks for a slash command and for `@path` in one place only: the last block, if that is text. So the words come last, and context
# before them, where an `@` in a file is just an `@`; and the end of a longer prompt that happens to look like a command is not one.

PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Types that the model is shown. The CLI itself shrinks what has too many pixels or bytes."""

DOCUMENTS: Final = frozenset({"application/pdf"})


async def message_of(turn: "AgentTurn") -> "str | list[JsonObject]":
    """Return the content of the message for a prompt."""
    pieces = await pieces_of(
        turn.prompt, read=reader_of(turn), cwd=turn.session.cwd, pictures=PICTURES, documents=DOCUMENTS
    )
    is_command = begins_with_command(turn.prompt)
    if is_command:
        pieces = _words_last(pieces)
    last = pieces[-1] if pieces else TextPiece("")
    if isinstance(last, TextPiece):
        if not is_command and last.text.startswith("/") and len(pieces) > 1:
            pieces[-1] = TextPiece(f"\n{last.text}")
        if len(pieces) <= 1:
            return last.text
    return [_block(piece) for piece in pieces]


def _words_last(pieces: list[Piece]) -> list[Piece]:
    words = [piece.text for piece in pieces if isinstance(piece, TextPiece)]
    return [*(piece for piece in pieces if not isinstance(piece, TextPiece)), TextPiece("\n\n".join(words))]


def _block(piece: Piece) -> "JsonObject":
    match piece:
        case TextPiece(text=text) | ContextPiece(text=text):
            return {"type": "text", "text": text}
        case PicturePiece(mime_type=mime, data=data):
            return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}
        case DocumentPiece(mime_type=mime, data=data):
            return {"type": "document", "source": {"type": "base64", "media_type": mime, "data": data}}


class ClaudePrompt(PendingPrompt):
    """A prompt with what the user added to it meanwhile: all of it has to be answered, by the process that it was sent to."""

    def __init__(self, process: "ClaudeProcess", id: str) -> None:
        super().__init__()
        self.process = process
        self.id = id
        self._ids = {id}
        self._worst: TurnEnd | None = None

    def add(self, id: str) -> None:
        """The user adds a message, which has this id."""
        self._ids.add(id)

    def owns(self, id: str) -> bool:
        """Whether the message with this id belongs to the prompt and is not answered yet."""
        return id in self._ids

    def answered(self, ids: "Sequence[str]", end: "TurnEnd | None") -> None:
        """The messages with these ids have been answered; without ids, all of them: an older CLI sends none.

        Of several ends the first one counts that is not a plain one, so that no trouble is hidden by what came after it.
        """
        self._ids -= set(ids or self._ids)
        if self._worst is None or _is_plain(self._worst):
            self._worst = end or self._worst
        if not self._ids:
            self.finish(self._worst)


def _is_plain(end: "TurnEnd") -> bool:
    return end.error is None and end.stop_reason in (None, v1.StopReason.END_TURN)


# The driver.

START_LIMIT: Final = 60.0
"""Seconds that the CLI may take to report what it offers. It takes half of one, or many behind a slow proxy."""

STEERABLE: Final = frozenset({"msg_lifecycle_v1", "interrupt_cancel_queued_v1"})
"""The capabilities that the CLI reports if something can be added to a turn."""

BATCH: Final = 200
"""Updates of a history that are read at a time."""

_log = logging.getLogger(__name__)


class ClaudeDriver(CliDriver[ClaudePrompt]):
    """The work of Claude Code in one session. Owns the process."""

    title = "Claude Code"

    def __init__(
        self,
        session: "AgentSession",
        chosen: "ClaudeSettings",
        history: "History",
        *,
        program: str,
        memory: "CliMemory",
        ids: "SessionIds",
        source: str | None,
        last: str | None = None,
    ) -> None:
        self._handlers: dict[type, Handler] = {
            ModeChanged: lambda changed: chosen.mode_is(changed.mode),
            ModelChanged: lambda changed: chosen.model_is(changed.model),
            CommandsChanged: lambda changed: chosen.commands_are(changed.commands),
            CliStarted: self._started,
        }
        live: dict[type, Handler] = {
            ClaudeTurnEnded: self._turn_ended,
            ConversationReset: self._session_cleared,
            SignInNeeded: self._sign_in,
        }
        if MAX_TOKENS in asked_of_engines(session.meta):
            live[v1.ToolCallUpdate] = self._call_with_tokens
        super().__init__(session, {**self._handlers, **live}, titled=source == session.id)
        self._settings = chosen
        self._history = history
        self._program = program
        self._memory = memory
        self._ids = ids
        self._source = source
        self._last = last
        self._servers = ServerFile(session.mcp_servers)
        self._project = Project(session, self.title, CLAUDE)
        self._trusted = False
        """Whether the process was started with the settings of the project."""
        self._kept: KeptProcess[ClaudeProcess] = KeptProcess(self)
        self._last_error: TurnFailure | None = None
        self._can: frozenset[str] = frozenset()

    # The larger half of the imports: they are made while the CLI starts, which takes longer.

    @cached_property
    def _translator(self) -> "ClaudeTranslator":
        return self._new_translator()

    @cached_property
    def _questions(self) -> "ClaudeQuestions":
        from antiphon.engines.claude.questions import ClaudeQuestions

        return ClaudeQuestions(self._session, self._updates, self._translator)

    def _new_translator(self, replay: bool = False) -> "ClaudeTranslator":
        from antiphon.engines.claude.translate.translator import ClaudeTranslator

        return ClaudeTranslator(self._session.cwd, terminals=self._terminals, mirror=self._mirror, replay=replay)

    async def send_history(self) -> None:
        """Send the history of the session to the client, out of Claude's own files."""
        replayed = UpdateSender(self._session, {**self._handlers, ClaudeTurnEnded: _ignore, ConversationReset: _ignore})
        events = self._history.replay(self._session.id, self._new_translator(replay=True))
        while batch := await asyncio.to_thread(lambda: list(islice(events, BATCH))):
            for each in batch:
                await replayed.send(each)

    def _call_with_tokens(self, call: v1.ToolCallUpdate) -> "Awaitable[None]":
        """Send an update of a call; at its end with the tokens of its request, for a client that counts them."""
        if call.status in (v1.ToolStatus.COMPLETED, v1.ToolStatus.FAILED):
            ours = {USED_TOKENS: self._translator.used_tokens}
            call = msgspec.structs.replace(call, meta={**(call.meta or {}), "antiphon": ours})
        return self._session.update(call)

    # The process.

    def start_soon(self) -> None:
        """Begin to start the process: the first prompt will not have to wait for it."""
        self._kept.start_soon()

    async def start(self) -> ClaudeProcess:
        """Start a process that resumes the session if the CLI has stored it by now, else the one that it goes on with."""
        session, own_id = self._session, self._ids.own_id(self._session.id)
        stored = await asyncio.to_thread(self._history.find, own_id)
        if stored is not None and await asyncio.to_thread(self._history.cwd_of, own_id) is None:
            # It has no message: the CLI neither resumes such a session nor begins it again.
            stored, own_id = None, str(uuid.uuid4())
            self._ids.move(session.id, own_id)
        self._trusted = await self._project.look()
        asked: Any = asked_of_engines(session.meta)
        launch = ClaudeLaunch(
            program=self._program,
            cwd=session.cwd,
            trusted=self._trusted,
            session=own_id,
            source=self._source if stored is None else own_id,
            last=self._last if stored is None else None,
            directories=session.directories,
            servers=self._servers.path(),
            settings=self._launch_settings(),
            bypass=self._settings.bypass,
            append=asked.get(APPEND_SYSTEM_PROMPT),
            max_turns=asked.get(MAX_TURNS),
            max_cost=asked.get(MAX_COST),
            **self._settings.chosen(),
        )
        try:
            # `gather`: updates that arrive together are sent together. Tokens are small, and each write wakes the client.
            return await ClaudeProcess.start(
                command_of(launch), session.cwd, environment_of(os.environ), session.client.gather
            )
        except BaseException:
            self._servers.remove()
            raise

    def _launch_settings(self) -> str | None:
        if self._session.host.rules is None:
            return settings_with(self._session.cwd)
        from antiphon.engines.claude.rules import settings_for  # late: most sessions have none

        return settings_for(self._session)

    async def began(self, process: ClaudeProcess) -> None:
        """Ask what the CLI offers, show where that differs from what was remembered, and remember it."""
        _ = self._questions  # imported now, while the CLI starts
        self._last_error = None
        # Also where there is no rule yet that stops anything: the session may become read-only.
        hooks = {"hooks": EDIT_HOOKS if self._session.host.rules is None else HOOKS}
        try:
            initialized = await process.control("initialize", {"forwardSubagentText": True, **hooks}, START_LIMIT)
        except BaseException:
            # As long as it lives it may still open the file, by a name that would soon mean another one.
            await process.close()
            self._servers.remove()
            raise
        self._servers.remove()  # it has been read: what is secret in it is not kept
        try:
            applied = await process.control("get_settings")
        except CliRefused:  # an older CLI
            applied = {}
        if settings.forbids_bypass(applied):
            self._settings.bypass = False
        await self._settings.learn(settings.offer_of(initialized, applied))
        if self._source is None:  # what a resumed session offers is its own
            await asyncio.to_thread(self._memory.save, msgspec.to_builtins(self._settings.offer))

    def receive(self, process: ClaudeProcess, line: wire.Line) -> "Awaitable[None]":
        """Handle a line. Nearly all are a token of the model, which is sent without a coroutine."""
        if type(line) is not wire.StreamEvent:
            return self._receive_line(process, line)
        events = self._translator.stream(line)
        return self._updates.send(events[0]) if len(events) == 1 else self._send_all(events)

    async def _receive_line(self, process: ClaudeProcess, line: wire.Line) -> None:
        match line:
            case wire.ControlRequest():
                self._questions.ask(process, line)
            case wire.ControlCancel(request_id=id):
                self._questions.cancel(process, id)
            case wire.ElicitationComplete(elicitation_id=id):
                await self._questions.page_done(id)
            case wire.Lifecycle(command_uuid=id, state="cancelled") if self._pending and self._pending.owns(id):
                self._pending.answered([id], None)
            case wire.ResultLine():
                await self._receive_result(line)
            case _:
                await self._send_all(self._translator.feed(line))

    async def _receive_result(self, line: wire.ResultLine) -> None:
        """Handle the end of a turn: whatever is wrong with it, the prompt ends."""
        try:
            events = self._translator.feed(line)
        except Exception as error:
            if self._pending is not None:
                self._pending.fail(self._end_unreadable(error))
            raise
        await self._send_all(events)

    async def _turn_ended(self, ended: ClaudeTurnEnded) -> None:
        pending, ids = self._pending, ended.user_message_uuids
        if pending is not None and (any(map(pending.owns, ids)) or not (ids or ended.origin)):
            pending.answered(ids, ended.end)
        elif not ended.origin:
            self._last_error = ended.end.error  # of a process that could not begin, for example

    async def _session_cleared(self, reset: ConversationReset) -> None:
        """The user cleared the session: the CLI goes on with an empty one, under another id."""
        self._ids.move(self._session.id, reset.new_id)
        self._source = None

    async def _sign_in(self, needed: SignInNeeded) -> None:
        if self._pending is not None:
            self._pending.fail(sign_in_needed(details=needed.text))
        else:
            await self._updates.send_sign_in(needed)

    async def _started(self, started: CliStarted) -> None:
        self._can = frozenset(started.capabilities)
        if started.mode is not None:
            await self._settings.mode_is(started.mode)
        if started.model is not None:
            await self._settings.model_is(started.model)

    async def ended(self, process: ClaudeProcess) -> None:
        """Fail the prompt that waits for the process, and close the tool calls that it left open."""
        self._questions.cancel_all(process)
        self._log_unknown(self._translator.unknown)
        if self._session.closed:
            return
        try:
            await self._send_strictly(self._translator.close_open(background=True))
        finally:
            if self._pending is not None and self._pending.process is process:
                self._pending.fail(self._gone(process.end or ConnectionClosed("Claude Code ended")))

    def _gone(self, error: AcpError) -> RequestError:
        """The error of a prompt or a setting for which the CLI does not run."""
        failure, self._last_error = self._last_error, None
        if failure is not None and failure.kind == "session_not_found":
            return RequestError(
                failure.code,
                f"Claude Code cannot continue this session: {failure.message}",
                hint="an older one only does so in the directory "
                "where it was begun: open it there, or update Claude Code",
            )
        return RequestError(
            Code.INTERNAL_ERROR,
            "Claude Code ended unexpectedly",
            f"{failure.message if failure is not None else error}",
            hint="send your prompt again: the session goes on in a new process",
        )

    # Working.

    async def _begin(self, turn: "AgentTurn") -> ClaudePrompt:
        content = await message_of(turn)
        if not self._titled:
            await self._entitle(turn.text)
        trusted = await self._project.look()
        await self._project.send_notice()  # in the turn: a client may not listen before it
        process = await self.ready()
        if (
            trusted != self._trusted
        ):  # it was started with other settings of the project than those that are trusted now
            self._kept.drop(process)
            process = await self.ready()
        self._last_error = None  # it belonged to something that the CLI did by itself
        # No await from here on: `ended` is called once, and fails the prompt that waits at that moment.
        pending = self._expect(ClaudePrompt(process, str(uuid.uuid4())))
        process.send(wire.user_message(content, pending.id))
        return pending

    async def steer(self, turn: "AgentTurn") -> bool:
        """Add to the turn that runs: the CLI takes it in between two steps, or answers it next.

        An older CLI names no prompts in its answers and does not cancel those that wait, so it is not asked to.
        """
        content = await message_of(turn)
        pending = self._steerable
        if pending is None or pending.end.done() or not self._can >= STEERABLE:
            return False
        id = str(uuid.uuid4())
        pending.add(id)
        pending.process.send(wire.user_message(content, id))
        return True

    async def cancel(self) -> None:
        """Interrupt what the CLI does by itself, between prompts."""
        process = self._kept.process
        if process is not None and self.state is EngineSessionState.IDLE:
            with suppress(CliRefused, ConnectionClosed):
                await process.control("interrupt", {"cancel_queued": True})
            self._questions.cancel_all(process)

    async def _interrupt(self, pending: ClaudePrompt) -> None:
        process = pending.process
        try:
            async with asyncio.timeout(INTERRUPT_LIMIT):
                response = await process.control("interrupt", {"cancel_queued": True})
                if pending.id not in response.get("cancelled", ()):
                    await asyncio.wait([pending.end])
        except (TimeoutError, CliRefused, ConnectionClosed) as error:
            _log.warning("Claude Code (pid %d) does not stop, so it is ended: %s", process.pid, error)
            self._kept.drop(process)
        finally:
            self._questions.cancel_all(process)

    async def _turn_over(self, pending: ClaudePrompt) -> None:
        await self._send_strictly(self._translator.close_open(background=False))

    def _sign_in_needed(self, details: str) -> RequestError:
        return sign_in_needed(details=details)

    async def ready(self) -> ClaudeProcess:
        """Return the process once it can be used.

        Raises:
            RequestError: it does not start, with what to do about it.
        """
        try:
            return await self._kept.ready()
        except (ConnectionClosed, CliRefused) as error:
            raise self._gone(error) from error
        except ResponseError:
            raise
        except AcpError as error:
            raise RequestError(Code.INTERNAL_ERROR, "Claude Code does not start", str(error)) from error

    async def close(self) -> None:
        """End the process and the questions, and remove what it was given."""
        self._happens(EngineSessionEvent.CLOSE)
        self._questions.close()
        await self._kept.close()
        self._servers.remove()


async def _ignore(_: object) -> None:
    """Do nothing: the event concerns a live session."""
