"""Drives one thread of the Codex server that all sessions share: sends prompts, translates its output, and answers its questions.

The hub forwards what the server sends about the thread, in order. After a restart of the server the thread is resumed with the next
prompt, and all settings that were chosen are sent again: without that it would come back with other rights.
"""

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from antiphon.engines.bounded import Recent
from antiphon.engines.cli_driver import INTERRUPT_LIMIT, CliDriver, EngineSessionEvent, EngineSessionState
from antiphon.engines.codex import wire
from antiphon.engines.codex.commands import AT_ONCE, COMMANDS, NEXT_TURN, run_command
from antiphon.engines.codex.hub import EARLY
from antiphon.engines.codex.login import sign_in_needed
from antiphon.engines.codex.prompt import CodexPrompt, input_of
from antiphon.engines.codex.questions import CodexQuestions, text_before
from antiphon.engines.codex.rollout import RAW, UnseenItems
from antiphon.engines.codex.server import CodexServer, client_errors, server_ended
from antiphon.engines.codex.stored_threads import turns_of
from antiphon.engines.codex.thread import OpenThread
from antiphon.engines.codex.translate import CodexTranslator
from antiphon.engines.codex.translate.events import ModelChanged, TurnEnded
from antiphon.engines.process import CliRefused
from antiphon.errors import Code, ConnectionClosed, RequestError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from antiphon.agent.session import AgentSession
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.codex.hub import CodexHub
    from antiphon.engines.codex.settings import CodexSettings
    from antiphon.engines.events import Handler
    from antiphon.protocol.base import JsonObject

__all__ = ["CodexDriver"]

END_LIMIT: Final = 1.0
"""Seconds that the end of a command may take to be reported after it was ended. Real ones take 10 ms."""

_log = logging.getLogger(__name__)


class CodexDriver(CliDriver[CodexPrompt]):
    """The work of Codex in one session, which is a thread of its server."""

    title = "Codex"

    def __init__(self, session: "AgentSession", hub: "CodexHub", settings: "CodexSettings") -> None:
        handlers: dict[type, Handler] = {
            ModelChanged: lambda changed: settings.model_is(changed.model),
            wire.ThreadSettings: settings.settings_are,
            TurnEnded: self._turn_ended,
        }
        super().__init__(session, handlers, titled=False)
        self._hub = hub
        self.settings = settings
        self._translator = self._new_translator()
        self._questions = CodexQuestions(session, self._updates, self._translator, settings)
        self._unseen = UnseenItems()
        self.thread = OpenThread(session, hub, settings, self._unseen, self)
        self._sent_once: Recent[str] = Recent()
        self._turn: str | None = None
        """The turn that the server works on, also one that it began by itself."""
        self._received = asyncio.Event()
        """Set by each message of the server."""

    def _new_translator(self) -> CodexTranslator:
        return CodexTranslator(self._session.cwd, terminals=self._terminals, mirror=self._mirror, read=text_before)

    async def begin(self, opened: wire.ThreadOpened) -> None:
        """Show the client a thread that was opened: its settings, title, commands, and the warnings of the server."""
        with client_errors():
            self.settings.begin(await self._hub.models(), opened)
        if not self._titled:
            await self._entitle(opened.thread.name or opened.thread.preview)
        await self._session.offer(*COMMANDS)
        for early in self._hub.early_notifications():
            if self._session.client.shows_notices:
                await self.receive(early)
            else:  # as text it would be part of the first answer
                self._sent_once.add(_words(early))

    async def send_history(self) -> None:
        """Send the history of the thread to the client, as Codex has stored it."""
        server = await self.thread.ready()
        translator = self._new_translator()
        with client_errors():
            missing = await self._unseen.history()
            async for turns in turns_of(server, self.thread.id):
                await self._send_strictly(translator.turns(missing.put_into(turn) for turn in turns))

    # Messages of the server, by the hub.

    def expect(self) -> None:
        """Send updates that arrive together in one write: tokens are small, and each write wakes the client."""
        self._session.client.gather()

    def receive(self, message: wire.ServerNotification) -> "Awaitable[None]":
        """Handle a notification about the thread. Nearly all are a token of the model, which is sent without a coroutine."""
        if type(message.params) is not wire.Delta:
            return self._receive(message)
        events = self._translator.feed(message.method, message.params)
        return self._updates.send(events[0]) if len(events) == 1 else self._send_all(events)

    async def _receive(self, message: wire.ServerNotification) -> None:
        if message.thread_id is None and message.method in EARLY and self._knows(message):
            return
        match message.params:
            case wire.RequestResolved(request_id=id) if self.thread.server is not None:
                self._questions.cancel(self.thread.server, id)
            case wire.TurnNotification(turn=begun) if message.method == "turn/started":
                self._turn = begun.id
                self.thread.has_turn()
                if self._pending is not None:
                    self._pending.started(begun.id)
            case wire.TurnNotification(turn=over) if message.method == "turn/completed":
                self._turn = None
                self._questions.turn_over()
                await self._receive_end(message, over.id)
                return
            case _ if message.method == "thread/archived":
                self.thread.left()
            case _:
                pass
        for item in self._unseen.receive(message):
            await self._send_all(self._translator.item(item, replay=False))
        if message.method not in RAW:
            await self._send_all(self._translator.feed(message.method, message.params))
        self._received.set()

    def _knows(self, message: wire.ServerNotification) -> bool:
        """Whether a warning was sent before: each new server repeats it."""
        words = _words(message)
        known = words in self._sent_once or self._hub.sent_before(message)
        self._sent_once.add(words)
        return known

    async def _receive_end(self, message: wire.ServerNotification, id: str) -> None:
        """Handle the end of a turn: whatever is wrong with it, the prompt that waits for it ends."""
        try:
            for item in await self._unseen.turn_ended():
                await self._send_all(self._translator.item(item, replay=False))
            await self._send_all(self._translator.feed(message.method, message.params))
        except Exception as error:
            if self._pending is not None:
                self._pending.failed(id, self._end_unreadable(error))
            raise

    def receive_request(self, server: CodexServer, question: wire.ServerRequest) -> None:
        """Handle a request about the thread."""
        self._questions.ask(server, question)

    async def lost(self, server: CodexServer) -> None:
        """Fail the prompt that waits for a server that has ended, and close the tool calls that it left open."""
        self._turn = None
        if self._pending is not None:
            self._pending.fail(server_ended(server.end))
        self._questions.cancel_all()
        self._log_unknown(self._translator.unknown)
        if not self._session.closed:
            await self._send_strictly(self._translator.close_open())

    def displaced(self) -> None:
        """Fail the prompt: another session has opened the thread and gets its messages, so the prompt would wait for ever."""
        self.thread.left()
        self._turn = None
        if self._pending is not None:
            why, hint = "another client has opened it, and gets the rest", "send your prompt again to go on here"
            self._pending.fail(RequestError(Code.INTERNAL_ERROR, "The session was opened elsewhere", why, hint=hint))
        self._questions.cancel_all()

    async def _turn_ended(self, over: "TurnEnded") -> None:
        if self._pending is not None:
            self._pending.ended(over.ids, over.end)

    # Working.

    async def _begin(self, turn: "AgentTurn") -> CodexPrompt | None:
        content = await input_of(turn)
        await self.thread.check_project()
        server = await self.thread.ready()
        await self.thread.project.send_notice()  # in the turn: a client may not listen before it
        if turn.command is not None and turn.command[0] in AT_ONCE:
            await self._at_once(server, turn, *turn.command)
            return None
        if not self._titled:
            await self._entitle(turn.text)
        pending = self._expect(CodexPrompt(server))
        pending.beginning = asyncio.create_task(self._start_turn(turn, content, pending))
        return pending

    async def _turn_over(self, pending: CodexPrompt) -> None:
        if pending.beginning is not None:
            pending.beginning.cancel()
        # `steer` may still wait for the id of the turn. It changes nothing if the turn has ended.
        pending.fail(ConnectionClosed("the turn is over"))

    def _sign_in_needed(self, details: str) -> RequestError:
        return sign_in_needed(details)

    async def _at_once(self, server: CodexServer, turn: "AgentTurn", name: str, rest: str) -> None:
        """Run a command that begins no turn: there is nothing to interrupt when it is cancelled."""
        with client_errors():
            await run_command(turn, name, rest, server, self.thread.id)
        if name == "archive":
            self.thread.left()

    async def _start_turn(self, turn: "AgentTurn", content: "list[JsonObject]", pending: CodexPrompt) -> None:
        try:
            with client_errors():
                id = await self._started_turn(pending.server, turn, content)
        except Exception as error:  # the prompt gets it
            pending.fail(error)
        else:
            if id == NEXT_TURN:
                pending.is_next_turn()
            else:
                pending.is_turn(id)

    async def _started_turn(self, server: CodexServer, turn: "AgentTurn", content: "list[JsonObject]") -> str | None:
        """Start the turn of a prompt; return its id, or None if there is no turn to wait for."""
        if turn.command is not None and turn.command[0] in {command.name for command in COMMANDS}:
            if rights := self.settings.begin_rights():  # a command takes none, and may be the first turn in the mode
                await server.request("thread/settings/update", {"threadId": self.thread.id, **rights})
            return await run_command(turn, *turn.command, server, self.thread.id)
        await self.settings.learn(server)
        params = {"threadId": self.thread.id, "input": content, **self.settings.begin_turn()}
        begun = await server.call("turn/start", params, wire.TurnStarted)
        return begun.turn.id if begun.turn is not None else begun.turn_id

    async def _interrupt(self, pending: CodexPrompt) -> None:
        """Interrupt the turn, wait for its end, and end the commands that it left running. A server that hangs is replaced."""
        server = pending.server
        try:
            async with asyncio.timeout(INTERRUPT_LIMIT):
                if (id := await pending.id()) is not None:
                    with suppress(CliRefused):  # it has just ended
                        await server.request("turn/interrupt", {"threadId": self.thread.id, "turnId": id})
                    await asyncio.wait([pending.end])
                await self.thread.clean(server)
            await self._receive_last_ends()
        except (TimeoutError, ConnectionClosed) as error:
            _log.warning("Codex (pid %d) does not stop, so it is ended: %s", server.pid, error)
            self._hub.drop(server)
        finally:
            self._questions.cancel_all()

    async def _receive_last_ends(self) -> None:
        """Wait for the ends of cancelled commands. What comes later is dropped: nothing of a turn may be sent after its response."""
        with suppress(TimeoutError):
            async with asyncio.timeout(END_LIMIT):
                while self._translator.has_ending:
                    self._received.clear()
                    await self._received.wait()
        self._translator.forget_ends()

    async def cancel(self) -> None:
        """Interrupt what the server does by itself in the thread, between prompts."""
        server, turn = self.thread.server, self._turn
        if server is None or self.state is not EngineSessionState.IDLE:
            return
        with suppress(ConnectionClosed):
            if turn is not None:
                with suppress(CliRefused):  # it has just ended
                    await server.request("turn/interrupt", {"threadId": self.thread.id, "turnId": turn})
            await self.thread.clean(server)
        self._questions.cancel_all()

    async def steer(self, turn: "AgentTurn") -> bool:
        """Add to the turn that runs. False: it has just ended, and nothing was added."""
        content = await input_of(turn)
        pending, server = self._steerable, self.thread.server
        if pending is None or server is None or (id := await pending.id()) is None:
            return False
        with client_errors():
            try:
                await server.request("turn/steer", {"threadId": self.thread.id, "expectedTurnId": id, "input": content})
            except CliRefused:  # it has just ended
                return False
        return True

    async def close(self) -> None:
        """End the questions, and close the thread."""
        self._happens(EngineSessionEvent.CLOSE)
        self._log_unknown(self._translator.unknown)
        self._questions.close()
        await self.thread.close()


def _words(message: wire.ServerNotification) -> str:
    return f"{message.method} {message.params!r}"
