"""A session with Codex: one thread of the server that all sessions share.

What the server says about the thread comes through the hub, in order. After a restart of the server the thread is resumed with the next
prompt, and everything that was chosen is sent again: without that it would come back with other rights.
"""

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from antiphon.engines.base import EngineSession
from antiphon.engines.codex import wire
from antiphon.engines.codex.answering import Answering
from antiphon.engines.codex.choosing import Choosing
from antiphon.engines.codex.commands import COMMANDS, NEXT_TURN, run_command
from antiphon.engines.codex.files import text_before
from antiphon.engines.codex.history import turns_of
from antiphon.engines.codex.login import must_be_signed_in, sign_in_needed
from antiphon.engines.codex.prompts import input_of
from antiphon.engines.codex.refusing import key_at_fault, refused
from antiphon.engines.codex.server import Server, ServerRefused
from antiphon.engines.codex.servers import servers_of
from antiphon.engines.codex.settings import MODE, MODEL
from antiphon.engines.codex.translate import Translator, news
from antiphon.engines.codex.unseen import RAW, RAW_EVENTS, Unseen
from antiphon.engines.codex.waiting import Waiting
from antiphon.engines.mirror import mirrors
from antiphon.engines.telling import Telling
from antiphon.engines.titles import title_of
from antiphon.errors import AcpError, Code, ConnectionClosed, RequestError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from antiphon.agent.hooks import Outcome
    from antiphon.agent.session import Session
    from antiphon.agent.turn import Turn
    from antiphon.engines.codex.hub import Hub

__all__ = ["CodexSession"]

INTERRUPT_LIMIT: Final = 2.0
"""Seconds that a turn may take to end after it was interrupted, before the server counts as hung. Real ones take 20 ms."""

CLOSE_LIMIT: Final = 2.0
"""Seconds for each farewell."""

_log = logging.getLogger(__name__)


class CodexSession(EngineSession):
    """Codex at work."""

    def __init__(self, session: "Session", hub: "Hub") -> None:
        self.session = session
        self._hub = hub
        self._thread = ""
        self._server: Server | None = None
        self._choosing = Choosing(session)
        self._translator = self._new_translator()
        self._telling = Telling(
            session,
            {
                news.ModelChanged: lambda changed: self._choosing.model_is(changed.model),
                wire.ThreadSettings: self._choosing.settings_are,
                news.TurnEnded: self._turn_ended,
            },
        )
        self._answering = Answering(session, self._translator, self._telling)
        self._unseen = Unseen()
        self._waiting: Waiting | None = None
        self._turn: str | None = None
        self._titled = False

    def _new_translator(self) -> Translator:
        client = self.session.client
        meta = client.capabilities.meta or {}
        return Translator(
            self.session.cwd,
            terminals=meta.get("terminal_output") is True,
            mirror=mirrors(client),
            read=text_before,
        )

    # Opening.

    async def create(self) -> None:
        """From nothing."""
        await self._open("thread/start", {"cwd": self.session.cwd})
        self.session.id = self._thread

    async def restore(self) -> None:
        """As it was left."""
        await self._open("thread/resume", {"threadId": self.session.id, "cwd": self.session.cwd})

    async def copy(self, source: str) -> None:
        """As another stands."""
        other = self._hub.listener_of(source)
        if isinstance(other, CodexSession):
            self._choosing.follow(other._choosing)
        await self._open("thread/fork", {"threadId": source, "cwd": self.session.cwd})
        self.session.id = self._thread

    async def _open(self, method: str, params: dict[str, Any]) -> None:
        server = await self._signed_in()
        models = await self._hub.models()
        opened = await self._opened(server, method, params)
        self._choosing.begin(models, opened)
        if title := title_of(opened.thread.name or opened.thread.preview):
            self._titled = True
            await self.session.entitle(title)
        await self.session.offer(*COMMANDS)

    async def _signed_in(self) -> Server:
        try:
            return await must_be_signed_in(self._hub)
        except RequestError as error:
            server = await self._hub.ready()
            if error.code != Code.AUTH_REQUIRED or await key_at_fault(server) is None:
                raise
        return server  # it cannot read its configuration and falls back on one that wants a login; it says so when a thread is opened

    async def _opened(self, server: Server, method: str, params: dict[str, Any]) -> wire.ThreadOpened:
        """Open the thread in this server, and listen to it from now on."""
        starts = method == "thread/start"
        extra: dict[str, Any] = dict(RAW_EVENTS) if starts else {}
        if self.session.mcp_servers:
            extra["config"] = {"mcp_servers": servers_of(self.session.mcp_servers)}
        if self.session.directories:
            extra["runtimeWorkspaceRoots"] = [self.session.cwd, *self.session.directories]
        try:
            opened = await server.call(method, {**params, **extra, **self._choosing.for_thread()}, wire.ThreadOpened)
        except ServerRefused as error:
            key = await key_at_fault(server)
            if key is not None:
                self._hub.give_up_unused(server)  # the next one looks at the file again
            raise refused(error, key) from error
        self._hub.forget(self._thread)
        self._thread, self._server = opened.thread.id, server
        self._unseen.opened(opened.thread, live=starts)
        self._hub.listen(self._thread, self)
        return opened

    async def tell_history(self) -> None:
        """All that was said, again, as Codex has kept it."""
        server = await self._ready()
        translator = self._new_translator()
        try:
            missing = await self._unseen.history()
            async for turns in turns_of(server, self._thread):
                for each in translator.turns(missing.put_into(turn) for turn in turns):
                    await self._telling.tell(each)
        except ServerRefused as error:
            raise refused(error) from error

    # The server.

    async def _started(self) -> Server:
        try:
            return await self._hub.ready()
        except RequestError:
            raise
        except AcpError as error:
            raise RequestError(Code.INTERNAL_ERROR, "Codex does not start", str(error)) from error

    async def _ready(self) -> Server:
        """The server, with the thread open in it."""
        server = await self._started()
        if self._server is not server:
            params = {"threadId": self._thread, "cwd": self.session.cwd}
            try:
                await self._opened(server, "thread/resume", params)
            except RequestError as error:
                if error.code != Code.RESOURCE_NOT_FOUND:
                    raise
                await self._opened(server, "thread/start", {"cwd": self.session.cwd})  # nothing was said in it yet
        return server

    # Hearing.

    def expect(self) -> None:
        """What comes in together leaves together: words of the model are small, and each write wakes the client."""
        self.session.client.connection.transport.gather()

    def hear(self, told: wire.Told) -> "Awaitable[None]":
        """The server says something about the thread."""
        if type(told.params) is not wire.Delta:
            return self._hear(told)
        words = self._translator.feed(told.method, told.params)
        return self._telling.tell(words[0]) if len(words) == 1 else self._tell_all(words)

    async def _hear(self, told: wire.Told) -> None:
        match told.params:
            case wire.Resolved(request_id=id) if self._server is not None:
                self._answering.withdraw(self._server, id)
            case wire.TurnTold(turn=begun) if told.method == "turn/started":
                self._turn = begun.id
                if self._waiting is not None:
                    self._waiting.started(begun.id)
            case wire.TurnTold(turn=over) if told.method == "turn/completed":
                self._turn = None
                await self._hear_end(told, over.id)
                return
            case _:
                pass
        for item in self._unseen.hear(told):
            await self._tell_all(self._translator.item(item, replay=False))
        if told.method not in RAW:
            await self._tell_all(self._translator.feed(told.method, told.params))

    async def _hear_end(self, told: wire.Told, id: str) -> None:
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

    async def _tell_all(self, told: "Iterable[news.News]") -> None:
        for each in told:
            try:
                await self._telling.tell(each)
            except Exception:  # what follows may be what somebody waits for
                if self.session.closed:
                    raise
                _log.exception("news of Codex could not be told: %.200r", each)

    def asked(self, server: Server, question: wire.Asked) -> None:
        """It asks something about it."""
        self._answering.ask(server, question)

    async def lost(self, server: Server) -> None:
        """The server is gone: whoever waits is told, and what it left open is closed."""
        self._answering.withdraw_all()
        self._log_unknown()
        if self.session.closed:
            return
        await self._close_calls()
        if self._waiting is not None:
            why = str(server.end or "Codex ended")
            self._waiting.fail(
                RequestError(
                    Code.INTERNAL_ERROR,
                    "Codex ended unexpectedly",
                    f"{why}\nhint: send your prompt again: the conversation goes on in a new process",
                )
            )

    def _log_unknown(self) -> None:
        if self._translator.unknown:
            _log.info("Codex said things that nobody here knows: %s", dict(self._translator.unknown))

    async def _close_calls(self) -> None:
        for each in self._translator.close_open():
            await self._telling.tell(each)

    async def _turn_ended(self, ended: "news.TurnEnded") -> None:
        if self._waiting is not None:
            self._waiting.ended(ended.ids, ended.end)

    # Working.

    async def prompt(self, turn: "Turn") -> "Outcome":
        content = await input_of(turn)
        server = await self._ready()
        if not self._titled and (title := title_of(turn.text)):
            self._titled = True
            await self.session.entitle(title)
        waiting = self._waiting = Waiting()
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
        if end.error is None:
            return v1.PromptResult(end.stop_reason or v1.StopReason.END_TURN, end.usage)
        raise sign_in_needed(end.error.message) if end.error.code == Code.AUTH_REQUIRED else end.error.refusal()

    async def _begin(self, server: Server, turn: "Turn", content: list[dict[str, Any]], waiting: Waiting) -> None:
        try:
            id = await self._started_turn(server, turn, content)
        except ServerRefused as error:
            waiting.fail(refused(error))
        except AcpError as error:
            waiting.fail(error)
        else:
            if id == NEXT_TURN:
                waiting.is_next_turn()
            else:
                waiting.is_turn(id)

    async def _started_turn(self, server: Server, turn: "Turn", content: list[dict[str, Any]]) -> str | None:
        """Start the turn of a prompt; its id, or None if there is none to wait for."""
        if turn.command is not None and turn.command[0] in {command.name for command in COMMANDS}:
            return await run_command(turn, *turn.command, server, self._thread)
        await self._choosing.learn(server)
        params = {"threadId": self._thread, "input": content, **self._choosing.for_turn()}
        begun = await server.call("turn/start", params, wire.TurnBegun)
        return begun.turn.id if begun.turn is not None else begun.turn_id

    async def _call_off(self, server: Server, waiting: Waiting) -> None:
        """Interrupt the turn, wait for its end, and end the commands that it left running. A server that hangs is replaced."""
        try:
            async with asyncio.timeout(INTERRUPT_LIMIT):
                if (id := await waiting.id()) is not None:
                    with suppress(ServerRefused):  # it has just ended
                        await server.request("turn/interrupt", {"threadId": self._thread, "turnId": id})
                    await asyncio.wait([waiting.end])
                with suppress(ServerRefused):
                    await server.request("thread/backgroundTerminals/clean", {"threadId": self._thread})
        except (TimeoutError, ConnectionClosed) as error:
            _log.warning("Codex (pid %d) does not stop, so it is ended: %s", server.pid, error)
            self._hub.give_up(server)
        finally:
            self._answering.withdraw_all()

    async def cancel(self) -> None:
        server, turn = self._server, self._turn
        if server is None or turn is None or self._waiting is not None:
            return
        with suppress(ServerRefused, ConnectionClosed):
            await server.request("turn/interrupt", {"threadId": self._thread, "turnId": turn})
            await server.request("thread/backgroundTerminals/clean", {"threadId": self._thread})
        self._answering.withdraw_all()

    async def steer(self, turn: "Turn") -> bool:
        content = await input_of(turn)
        waiting, server = self._waiting, self._server
        if waiting is None or server is None or (id := await waiting.id()) is None:
            return False
        try:
            await server.request("turn/steer", {"threadId": self._thread, "expectedTurnId": id, "input": content})
        except ServerRefused:  # it has just ended
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
            await self.session.update(v1.CurrentModelUpdate(str(value)))

    async def close(self) -> None:
        self._log_unknown()
        self._answering.close()
        self._hub.forget(self._thread)
        server = self._server
        if server is not None and server.end is None:
            with suppress(ServerRefused, ConnectionClosed):
                await server.request("thread/backgroundTerminals/clean", {"threadId": self._thread}, CLOSE_LIMIT)
                await server.request("thread/unsubscribe", {"threadId": self._thread}, CLOSE_LIMIT)
