"""A session with Codex: one thread of the server that all sessions share.

What the server says about the thread comes through the hub, in order. After a restart of the server the thread is resumed with the next
prompt, and everything that was chosen is sent again: without that it would come back with other rights.
"""

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from antiphon.engines.base import EngineSession
from antiphon.engines.bounded import Recent
from antiphon.engines.codex import wire
from antiphon.engines.codex.commands import AT_ONCE, COMMANDS, NEXT_TURN, run_command
from antiphon.engines.codex.files import text_before
from antiphon.engines.codex.hub import EARLY
from antiphon.engines.codex.login import sign_in_needed
from antiphon.engines.codex.prompt import CodexPrompt, input_of
from antiphon.engines.codex.questions import CodexQuestions
from antiphon.engines.codex.rollout import RAW, UnseenItems
from antiphon.engines.codex.server import CodexServer, client_errors, server_ended
from antiphon.engines.codex.settings import MODE, MODEL, CodexSettings
from antiphon.engines.codex.stored_threads import turns_of
from antiphon.engines.codex.thread import OpenThread
from antiphon.engines.codex.translate import CodexTranslator
from antiphon.engines.codex.translate.events import CodexEvent, ModelChanged, TurnEnded
from antiphon.engines.events import UpdateSender, mirrors
from antiphon.engines.labels import title_of
from antiphon.engines.process import CliRefused
from antiphon.engines.project import is_trust, trust_by_command
from antiphon.errors import AcpError, Code, ConnectionClosed, RequestError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from antiphon.agent.agent import Outcome
    from antiphon.agent.session import AgentSession
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.codex.hub import CodexHub

__all__ = ["CodexSession"]

INTERRUPT_LIMIT: Final = 2.0
"""Seconds that a turn may take to end after it was interrupted, before the server counts as hung. Real ones take 20 ms."""

END_LIMIT: Final = 1.0
"""Seconds that the end of a command may take to be told after it was ended. Real ones take 10 ms."""

_log = logging.getLogger(__name__)


class CodexSession(EngineSession):
    """Codex at work."""

    def __init__(self, session: "AgentSession", hub: "CodexHub") -> None:
        self.session = session
        self._hub = hub
        self._choosing = CodexSettings(session)
        self._translator = self._new_translator()
        self._telling = UpdateSender(
            session,
            {
                ModelChanged: lambda changed: self._choosing.model_is(changed.model),
                wire.ThreadSettings: self._choosing.settings_are,
                TurnEnded: self._turn_ended,
            },
        )
        self._answering = CodexQuestions(session, self._translator, self._telling, self._choosing)
        self._unseen = UnseenItems()
        self._thread = OpenThread(session, hub, self._choosing, self._unseen, self)
        self._told_once: Recent[str] = Recent()
        self._waiting: CodexPrompt | None = None
        self._turn: str | None = None
        self._titled = False
        self._heard = asyncio.Event()
        """The server has said something."""

    def _new_translator(self) -> CodexTranslator:
        client = self.session.client
        meta = client.capabilities.meta or {}
        return CodexTranslator(
            self.session.cwd,
            terminals=meta.get("terminal_output") is True,
            mirror=mirrors(client),
            read=text_before,
        )

    # Opening.

    async def create(self) -> None:
        """From nothing."""
        await self._begun(await self._thread.start())
        self.session.id = self._thread.id

    async def restore(self, *, telling: bool = False) -> None:
        """As it was left; `telling` all that was said in it."""
        self._follow(self.session.id)
        await self._begun(await self._thread.resume(self.session.id))
        if telling:
            await self._tell_history()

    async def copy(self, source: str) -> None:
        """As another stands."""
        self._follow(source)
        await self._begun(await self._thread.fork(source))
        self.session.id = self._thread.id

    def _follow(self, id: str) -> None:
        """Choose what was chosen where this session is open already: Codex cannot tell which mode its rights were sent for."""
        other = self._hub.listener_of(self._hub.names.thread_of(id))
        if isinstance(other, CodexSession):
            self._choosing.follow(other._choosing)

    async def _begun(self, opened: wire.ThreadOpened) -> None:
        with client_errors():
            self._choosing.begin(await self._hub.models(), opened)
        if title := title_of(opened.thread.name or opened.thread.preview):
            self._titled = True
            await self.session.entitle(title)
        await self.session.offer(*COMMANDS)
        for told in self._hub.said_early():
            if self.session.client.shows_notices:
                await self.hear(told)
            else:  # as text it would be part of the first answer
                self._told_once.add(_words(told))

    async def _tell_history(self) -> None:
        """All that was said, again, as Codex has kept it."""
        server = await self._thread.ready()
        translator = self._new_translator()
        with client_errors():
            missing = await self._unseen.history()
            async for turns in turns_of(server, self._thread.id):
                for each in translator.turns(missing.put_into(turn) for turn in turns):
                    await self._telling.tell(each)

    # Hearing.

    def expect(self) -> None:
        """What comes in together leaves together: words of the model are small, and each write wakes the client."""
        self.session.client.connection.transport.gather()

    def hear(self, told: wire.ServerNotification) -> "Awaitable[None]":
        """The server says something about the thread."""
        if type(told.params) is not wire.Delta:
            return self._hear(told)
        words = self._translator.feed(told.method, told.params)
        return self._telling.tell(words[0]) if len(words) == 1 else self._tell_all(words)

    async def _hear(self, told: wire.ServerNotification) -> None:
        if told.thread_id is None and told.method in EARLY and self._knows(told):
            return
        match told.params:
            case wire.RequestResolved(request_id=id) if self._thread.server is not None:
                self._answering.withdraw(self._thread.server, id)
            case wire.TurnNotification(turn=begun) if told.method == "turn/started":
                self._turn = begun.id
                self._thread.has_turn()
                if self._waiting is not None:
                    self._waiting.started(begun.id)
            case wire.TurnNotification(turn=over) if told.method == "turn/completed":
                self._turn = None
                self._answering.turn_over()
                await self._hear_end(told, over.id)
                return
            case _ if told.method == "thread/archived":
                self._thread.left()
            case _:
                pass
        for item in self._unseen.hear(told):
            await self._tell_all(self._translator.item(item, replay=False))
        if told.method not in RAW:
            await self._tell_all(self._translator.feed(told.method, told.params))
        self._heard.set()

    def _knows(self, told: wire.ServerNotification) -> bool:
        """Whether it was told before: each new server says it again."""
        words = _words(told)
        known = words in self._told_once or self._hub.told_before(told)
        self._told_once.add(words)
        return known

    async def _hear_end(self, told: wire.ServerNotification, id: str) -> None:
        """Somebody may wait for this one: whatever is wrong with it, their prompt ends."""
        try:
            for item in await self._unseen.turn_ended():
                await self._tell_all(self._translator.item(item, replay=False))
            await self._tell_all(self._translator.feed(told.method, told.params))
        except Exception as error:
            if self._waiting is not None:
                wrong = f"the end of the turn could not be read: {type(error).__name__}"
                self._waiting.failed(id, RequestError(Code.INTERNAL_ERROR, f"Codex: {wrong}"))
            raise

    async def _tell_all(self, told: "Iterable[CodexEvent]") -> None:
        for each in told:
            try:
                await self._telling.tell(each)
            except ConnectionClosed as error:  # the client is gone
                _log.debug("news of Codex were not told: %s", error)
            except Exception:  # what follows may be what somebody waits for
                if self.session.closed:
                    raise
                _log.exception("news of Codex could not be told: %.200r", each)

    def asked(self, server: CodexServer, question: wire.ServerRequest) -> None:
        """It asks something about it."""
        self._answering.ask(server, question)

    async def lost(self, server: CodexServer) -> None:
        """The server is gone: whoever waits is told, and what it left open is closed."""
        self._turn = None
        if self._waiting is not None:
            self._waiting.fail(server_ended(server.end))
        self._answering.withdraw_all()
        self._log_unknown()
        if not self.session.closed:
            await self._close_calls()

    def displaced(self) -> None:
        """Somebody else has opened the thread, and hears what is said in it: whoever waits here would wait for ever."""
        self._thread.left()
        self._turn = None
        if self._waiting is not None:
            why, hint = "another client has opened it, and hears the rest", "send your prompt again to go on here"
            self._waiting.fail(RequestError(Code.INTERNAL_ERROR, "The session was opened elsewhere", why, hint=hint))
        self._answering.withdraw_all()

    def _log_unknown(self) -> None:
        if self._translator.unknown:
            _log.info("Codex said things that nobody here knows: %s", dict(self._translator.unknown))

    async def _close_calls(self) -> None:
        for each in self._translator.close_open():
            await self._telling.tell(each)

    async def _turn_ended(self, over: "TurnEnded") -> None:
        if self._waiting is not None:
            self._waiting.ended(over.ids, over.end)

    # Working.

    async def prompt(self, turn: "AgentTurn") -> "Outcome":
        if is_trust(turn):
            await trust_by_command(turn)
            return None
        content = await input_of(turn)
        await self._thread.check_project()
        server = await self._thread.ready()
        await self._thread.project.tell()  # in the turn: a client may not listen before it
        if turn.command is not None and turn.command[0] in AT_ONCE:
            await self._at_once(server, turn, *turn.command)
            return None
        if not self._titled and (title := title_of(turn.text)):
            self._titled = True
            await self.session.entitle(title)
        waiting = self._waiting = CodexPrompt()
        # A task of its own: a turn that is called off while it begins must still be known, or it could not be interrupted.
        beginning = asyncio.create_task(self._begin(server, turn, content, waiting))
        try:
            await asyncio.shield(beginning)
            end = await asyncio.shield(waiting.end)
        except asyncio.CancelledError:
            await self._call_off(server, waiting)
            raise
        finally:
            beginning.cancel()
            self._waiting = None
            # Somebody may still wait for its id, to add something. It changes nothing if the turn has ended.
            waiting.fail(ConnectionClosed("the turn is over"))
        if end.error is None:
            return v1.PromptResult(end.stop_reason or v1.StopReason.END_TURN, end.usage)
        raise sign_in_needed(end.error.message) if end.error.code == Code.AUTH_REQUIRED else end.error.refusal()

    async def _at_once(self, server: CodexServer, turn: "AgentTurn", name: str, rest: str) -> None:
        """A command that begins no turn: there is nothing to interrupt, and who calls it off stops waiting."""
        with client_errors():
            await run_command(turn, name, rest, server, self._thread.id)
        if name == "archive":
            self._thread.left()

    async def _begin(
        self, server: CodexServer, turn: "AgentTurn", content: list[dict[str, Any]], waiting: CodexPrompt
    ) -> None:
        try:
            with client_errors():
                id = await self._started_turn(server, turn, content)
        except AcpError as error:
            waiting.fail(error)
        else:
            if id == NEXT_TURN:
                waiting.is_next_turn()
            else:
                waiting.is_turn(id)

    async def _started_turn(self, server: CodexServer, turn: "AgentTurn", content: list[dict[str, Any]]) -> str | None:
        """Start the turn of a prompt; its id, or None if there is none to wait for."""
        if turn.command is not None and turn.command[0] in {command.name for command in COMMANDS}:
            if rights := self._choosing.begin_rights():  # a command takes none, and may be the first turn in the mode
                await server.request("thread/settings/update", {"threadId": self._thread.id, **rights})
            return await run_command(turn, *turn.command, server, self._thread.id)
        await self._choosing.learn(server)
        params = {"threadId": self._thread.id, "input": content, **self._choosing.begin_turn()}
        begun = await server.call("turn/start", params, wire.TurnStarted)
        return begun.turn.id if begun.turn is not None else begun.turn_id

    async def _call_off(self, server: CodexServer, waiting: CodexPrompt) -> None:
        """Interrupt the turn, wait for its end, and end the commands that it left running. A server that hangs is replaced."""
        try:
            async with asyncio.timeout(INTERRUPT_LIMIT):
                if (id := await waiting.id()) is not None:
                    with suppress(CliRefused):  # it has just ended
                        await server.request("turn/interrupt", {"threadId": self._thread.id, "turnId": id})
                    await asyncio.wait([waiting.end])
                await self._thread.clean(server)
            await self._hear_last_ends()
        except (TimeoutError, ConnectionClosed) as error:
            _log.warning("Codex (pid %d) does not stop, so it is ended: %s", server.pid, error)
            self._hub.give_up(server)
        finally:
            self._answering.withdraw_all()

    async def _hear_last_ends(self) -> None:
        """Wait for the ends of commands that were called off: nothing of a turn may be told after its answer, so what comes later is not."""
        with suppress(TimeoutError):
            async with asyncio.timeout(END_LIMIT):
                while self._translator.has_ending:
                    self._heard.clear()
                    await self._heard.wait()
        self._translator.forget_ends()

    async def cancel(self) -> None:
        server, turn = self._thread.server, self._turn
        if server is None or self._waiting is not None:
            return
        with suppress(ConnectionClosed):
            if turn is not None:
                with suppress(CliRefused):  # it has just ended
                    await server.request("turn/interrupt", {"threadId": self._thread.id, "turnId": turn})
            await self._thread.clean(server)
        self._answering.withdraw_all()

    async def steer(self, turn: "AgentTurn") -> bool:
        content = await input_of(turn)
        waiting, server = self._waiting, self._thread.server
        if waiting is None or server is None or (id := await waiting.id()) is None:
            return False
        with client_errors():
            try:
                await server.request(
                    "turn/steer", {"threadId": self._thread.id, "expectedTurnId": id, "input": content}
                )
            except CliRefused:  # it has just ended
                return False
        return True

    # Choosing. A choice has two views, and who changes it in the one is told of the other.

    async def set_mode(self, mode_id: str) -> None:
        self._choosing.set_option(MODE, mode_id)
        await self.session.tell_options()

    async def set_model(self, model_id: str) -> None:
        self._choosing.set_option(MODEL, model_id)
        await self.session.tell_options()

    async def set_config_option(self, config_id: str, value: bool | str) -> None:
        self._choosing.set_option(config_id, str(value))
        if config_id == MODE:
            await self.session.update(v1.CurrentModeUpdate(str(value)))
        elif config_id == MODEL:
            await self.session.tell_model(str(value))

    async def close(self) -> None:
        self._log_unknown()
        self._answering.close()
        await self._thread.close()


def _words(told: wire.ServerNotification) -> str:
    return f"{told.method} {told.params!r}"
