"""A session as a client holds it: what it offers, what was said in it, and the turns that run."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from msgspec import UNSET

from antiphon.client import settings
from antiphon.client.hearing import Hearing, OnUpdate
from antiphon.client.questions import Questions
from antiphon.client.reopening import reopen
from antiphon.client.run import Run
from antiphon.client.turn import Turn
from antiphon.errors import ConnectionClosed, LocalProtocolError, NotSupported
from antiphon.protocol import v1
from antiphon.protocol.timeouts import Timeout
from antiphon.protocol.v1 import methods as m
from antiphon.transcript.transcript import Transcript

if TYPE_CHECKING:
    from antiphon.client.link import Link
    from antiphon.client.place import Place
    from antiphon.client.sessions import Sessions
    from antiphon.client.terminals import Terminals
    from antiphon.connection.connection import Connection
    from antiphon.protocol.methods import Call

__all__ = ["Said", "Session"]

P = TypeVar("P")
R = TypeVar("R")

Said: TypeAlias = str | v1.ContentBlock | Iterable[str | v1.ContentBlock]
"""What a prompt may be: text, a block, or several."""


class Session:
    """One conversation with an agent. Made by `ConnectedAgent.new_session` and its siblings.

    `modes`, `config_options`, `models`, `commands` and `title` are as the agent last told them, None where it never did.
    """

    def __init__(
        self,
        id: str,
        place: "Place",
        link: "Link",
        sessions: "Sessions",
        terminals: "Terminals | None",
        on_update: OnUpdate | None,
        transcript: int | None = None,
    ) -> None:
        self.id = id
        self.modes: v1.ModeState | None = None
        self.config_options: list[v1.ConfigOption] | None = None
        self.models: v1.ModelState | None = None
        self.commands: list[v1.Command] | None = None
        self.title: str | None = None
        self.transcript = Transcript(transcript)
        self.place = place
        self.link = link
        self.questions = Questions()
        self.hearing = Hearing(self, on_update)
        self._sessions = sessions
        self.terminals = terminals
        self._home: Connection | None = None
        self._opening = asyncio.Lock()
        self._closed = False
        self._closing: asyncio.Task[None] | None = None

    @property
    def cwd(self) -> str:
        """The directory it works in."""
        return self.place.cwd

    # What we say.

    def prompt(self, said: Said, *, timeout: float | None = None) -> Turn:
        """Let the agent work on this. Iterate over the turn, or await it.

        A turn has no timeout unless given: after `timeout` seconds it is cancelled and fails with `RequestTimeout`. The session can
        still be used.

        It is sent at once, unless the agent has to be started or the session opened again first; then when it is first awaited. A
        second prompt while one runs is sent too; what becomes of it is up to the agent.

        Raises:
            NotSupported: the agent did not say that it takes such content.
        """
        self._check_open()
        blocks = _blocks(said)
        self.link.abilities.need_content(blocks)
        for run in tuple(self.hearing.runs):
            if run.forgotten:
                run.call_off()  # before this one is sent: a cancellation ends what the agent has been given so far
        run = Run(self, blocks, timeout)
        self.hearing.runs.append(run)
        self.transcript.said(blocks)
        return Turn(run)

    async def cancel(self) -> None:
        """Cancel whatever runs in this session, and wait until it is over."""
        if self.hearing.runs:
            await self._call_off()
        elif (home := self.home) is not None:  # perhaps a turn that somebody else began
            with suppress(ConnectionClosed):
                home.post(m.CANCEL, v1.Cancel(self.id))

    async def _call_off(self) -> None:
        ending = [called_off for run in tuple(self.hearing.runs) if (called_off := run.call_off()) is not None]
        if ending:
            await asyncio.shield(asyncio.gather(*ending))

    async def set_mode(self, mode_id: str, *, timeout: Timeout = UNSET) -> None:
        """Change the way of working."""
        if self.modes is not None:
            await self._ask(m.SET_MODE, lambda: v1.SetMode(self.id, mode_id), timeout)
            self.hearing.follow(v1.CurrentModeUpdate(mode_id))
        elif (option := settings.of_category(self, v1.ConfigCategory.MODE)) is not None:
            await self.set_config_option(option.id, mode_id, timeout=timeout)
        else:
            raise NotSupported(f"{self.link.name} has no modes in this session")

    async def set_model(self, model_id: str, *, timeout: Timeout = UNSET) -> None:
        """Change the model: by the setting for it, or by the older method that some agents have instead."""
        if self.models is not None:
            await self._ask(m.SET_MODEL, lambda: v1.SetModel(self.id, model_id), timeout)
            self.hearing.follow(v1.CurrentModelUpdate(model_id))
        elif (option := settings.of_category(self, v1.ConfigCategory.MODEL)) is not None:
            await self.set_config_option(option.id, model_id, timeout=timeout)
        else:
            raise NotSupported(f"{self.link.name} has no choice of models in this session")

    async def set_config_option(self, config_id: str, value: str | bool, *, timeout: Timeout = UNSET) -> None:
        """Change a setting. Others may change with it."""
        if self.config_options is None:
            raise NotSupported(f"{self.link.name} has no settings in this session")
        answer = await self._ask(m.SET_CONFIG_OPTION, lambda: v1.SetConfigOption(self.id, config_id, value), timeout)
        options = answer.config_options or settings.with_value(self.config_options, config_id, value)
        self.hearing.follow(v1.ConfigOptionUpdate(options))

    async def close(self, *, timeout: Timeout = UNSET) -> None:
        """Stop what runs, release what it holds here, and have the agent close it, if it has a way to.

        A second call waits for the first; a call that is cancelled is carried out all the same.
        """
        if self._closing is None:
            self._closed = True
            self._closing = self.link.do(self._close(timeout), f"close {self.id}")
            self._closing.add_done_callback(_seen)
        if not self._closing.done():
            await asyncio.shield(self._closing)

    async def _close(self, timeout: Timeout) -> None:
        await self._call_off()
        self.questions.release()
        self._sessions.forget(self)
        if self.terminals is not None:
            await self.terminals.release_session(self.id)
        home = self.home
        if home is not None and self.link.abilities.has(
            "session/close"
        ):  # a session that is not open is not opened to be closed
            await home.request(m.CLOSE_SESSION, v1.CloseSession(self.id), timeout=timeout)

    async def _ask(self, call: "Call[P, R]", make: Callable[[], P], timeout: Timeout = UNSET) -> R:
        self._check_open()

        async def ask(connection: "Connection") -> R:
            # Made now: the id changes if a new session takes its place.
            return await connection.request(call, make(), timeout=timeout)

        return await self.link.attempt(ask, ready=self.ready, expire=self.expire)

    def _check_open(self) -> None:
        if self._closed:
            raise LocalProtocolError(f"session `{self.id}` is closed")

    # Where it lives.

    @property
    def home(self) -> "Connection | None":
        """The connection that it is open on, if it is."""
        home = self._home
        return home if home is not None and not home.closed and self.link.is_current(home) else None

    def opened(self, home: "Connection", offer: settings.Offer) -> None:
        """It is open there, and this is what it offers."""
        self._home = home
        settings.take(self, offer)

    def expire(self) -> None:
        """It is open no longer; the next use opens it again."""
        self._home = None

    async def ready(self) -> "Connection":
        """The connection, with the session open on it: again if need be, which is said in the turn or to `on_update`."""
        connection = await self.link.alive()
        if connection is not self._home:
            async with self._opening:
                connection = await self.link.alive()
                if connection is not self._home:
                    self.hearing.tell(await reopen(self, connection, self._sessions))
        return connection


def _seen(closing: "asyncio.Task[None]") -> None:
    """Whoever called it may have been cancelled: why it failed is no news then."""
    if not closing.cancelled():
        closing.exception()


def _blocks(said: Said) -> list[v1.ContentBlock]:
    given: object = said  # whatever its type says: the commonest mistake is to say it some other way
    if isinstance(given, str | v1.ContentBlock | v1.Unknown):
        given = [given]
    if not isinstance(given, Iterable) or isinstance(given, dict):
        raise _no_prompt(given)
    return [v1.TextBlock(each) if isinstance(each, str) else _block(each) for each in given]


def _block(said: object) -> v1.ContentBlock:
    if not isinstance(said, v1.ContentBlock | v1.Unknown):
        raise _no_prompt(said)
    return said


def _no_prompt(said: object) -> LocalProtocolError:
    return LocalProtocolError(
        f"a prompt is text, content blocks, or several of them, not {said!r:.60}",
        hint='session.prompt("text"), or session.prompt([v1.TextBlock("look at"), v1.ResourceLink(…)])',
    )
