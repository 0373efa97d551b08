"""A session of a client: its settings, its transcript, the turns that run, and how it is opened again."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

from msgspec import UNSET

from antiphon.client.capabilities import spoken_version
from antiphon.client.turn import ClientTurn
from antiphon.client.updates import (
    Offer,
    OnUpdate,
    SessionActivity,
    SessionInbox,
    of_category,
    take_settings,
    with_value,
)
from antiphon.errors import (
    AcpError,
    Code,
    ConnectionClosed,
    LocalProtocolError,
    NotSupported,
    RequestRefused,
    RequestTimeout,
)
from antiphon.local.roots import AnyPath, Workspace
from antiphon.protocol import v1
from antiphon.protocol.base import JsonObject
from antiphon.protocol.extension import CANCEL_METHODS, TERMINAL, TOOL_CALL, OpenWork, WorkState
from antiphon.protocol.timeouts import Timeout
from antiphon.protocol.v1 import methods as m
from antiphon.transcript.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from antiphon.client.capabilities import Abilities
    from antiphon.client.link import Link
    from antiphon.client.terminals import Terminals
    from antiphon.client.updates import ClientSessions
    from antiphon.connection.connection import Connection
    from antiphon.protocol.methods import Call

__all__ = ["ClientSession", "PromptContent", "SessionWorkspace", "open_earlier", "reopen"]

# The directories and MCP servers of a session: sent to the agent whenever the session is opened.


@dataclass(frozen=True)
class SessionWorkspace(Workspace):
    """The directories and the MCP servers of a session."""

    servers: tuple[v1.McpServer, ...] = ()
    meta: JsonObject | None = None
    """The `_meta` of the requests that open it."""

    @classmethod
    def at(
        cls,
        cwd: AnyPath | None,
        directories: Iterable[AnyPath] = (),
        servers: Sequence[v1.McpServer] = (),
        meta: JsonObject | None = None,
    ) -> Self:
        """Return these directories with absolute paths, as the protocol wants them; without a directory, the current one."""
        return replace(super().at(cwd, directories), servers=tuple(servers), meta=meta)

    def new(self) -> v1.NewSession:
        """Make the request for a new session."""
        return v1.NewSession(
            self.cwd, list(self.servers), additional_directories=list(self.directories), meta=self.meta
        )

    def load(self, session_id: str) -> v1.LoadSession:
        """Make the request for an earlier session with its history."""
        return v1.LoadSession(
            session_id, self.cwd, list(self.servers), additional_directories=list(self.directories), meta=self.meta
        )

    def resume(self, session_id: str) -> v1.ResumeSession:
        """Make the request for an earlier session without its history."""
        return v1.ResumeSession(
            session_id,
            self.cwd,
            additional_directories=list(self.directories),
            mcp_servers=list(self.servers),
            meta=self.meta,
        )

    def fork(self, session_id: str) -> v1.ForkSession:
        """Make the request for a new session that begins with the history of another."""
        return v1.ForkSession(
            session_id,
            self.cwd,
            additional_directories=list(self.directories),
            mcp_servers=list(self.servers),
            meta=self.meta,
        )


P = TypeVar("P")
R = TypeVar("R")

PromptContent: TypeAlias = str | v1.ContentBlock | Iterable[str | v1.ContentBlock]
"""The content of a prompt: text, a block, or several of them."""


class ClientSession:
    """One session with an agent, opened by `ConnectedAgent.new_session` and its siblings.

    `modes`, `config_options`, `models`, `commands` and `title` are as the agent last sent them, None where it never did.
    """

    def __init__(
        self,
        id: str,
        workspace: "SessionWorkspace",
        link: "Link",
        sessions: "ClientSessions",
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
        self._workspace = workspace
        self._link = link
        self._activity = SessionActivity()
        self._questions = self._activity.questions
        self._inbox = SessionInbox(self, on_update)
        self._sessions = sessions
        self._terminals = terminals
        self._open_on: Connection | None = None
        self._opening_lock = asyncio.Lock()
        self._closed = False
        self._closing: asyncio.Task[None] | None = None

    @property
    def cwd(self) -> str:
        """The directory that the session works in."""
        return self._workspace.cwd

    @property
    def directories(self) -> tuple[str, ...]:
        """Further directories of the session."""
        return self._workspace.directories

    # Requests.

    def prompt(
        self, content: PromptContent, *, timeout: float | None = None, meta: JsonObject | None = None
    ) -> ClientTurn:
        """Send a prompt. Iterate over the turn, or await it. `meta` is the `_meta` of the request.

        A turn has no timeout unless given: after `timeout` seconds it is cancelled and fails with `RequestTimeout`. The session can
        still be used.

        It is sent at once, unless the agent has to be started or the session opened again first; then when it is first awaited. A
        second prompt while one runs is sent too; what becomes of it is up to the agent.

        Raises:
            NotSupported: the agent has not advertised that it takes such content.
        """
        self._check_open()
        blocks = _blocks(content)
        self._link.abilities.need_content(blocks)
        for before in self._inbox.turns:
            if before._forgotten:
                before._cancel()  # before this one is sent: a cancellation ends what the agent has been given so far
        turn = ClientTurn(self, blocks, timeout, meta)
        self._inbox.add(turn)
        self.transcript.add_prompt(blocks)
        return turn

    async def cancel(self) -> None:
        """Cancel what runs in this session, and wait until it is over."""
        if self._inbox.turns:
            await self._cancel_turns()
        elif (
            home := self._connection
        ) is not None:  # what the agent does by itself, or a turn that another client began
            with suppress(ConnectionClosed, RequestTimeout):
                home.post(m.CANCEL, v1.Cancel(self.id))
                await self.wait_idle(timeout=self._link.cancel_grace)

    async def _cancel_turns(self) -> None:
        ending = [cancelling for turn in self._inbox.turns if (cancelling := turn._cancel()) is not None]
        if ending:
            await asyncio.shield(asyncio.gather(*ending))

    async def set_mode(self, mode_id: str, *, timeout: Timeout = UNSET) -> None:
        """Change the mode."""
        if self.modes is not None:
            await self._ask(m.SET_MODE, lambda: v1.SetMode(self.id, mode_id), timeout)
            self._inbox.follow(v1.CurrentModeUpdate(mode_id))
        elif (option := of_category(self, v1.ConfigCategory.MODE)) is not None:
            await self.set_config_option(option.id, mode_id, timeout=timeout)
        else:
            raise NotSupported(f"{self._link.name} has no modes in this session")

    async def set_model(self, model_id: str, *, timeout: Timeout = UNSET) -> None:
        """Change the model: by the option for it, or by the older method that some agents have instead."""
        if self.models is not None:
            await self._ask(m.SET_MODEL, lambda: v1.SetModel(self.id, model_id), timeout)
            self._inbox.follow(v1.CurrentModelUpdate(model_id))
        elif (option := of_category(self, v1.ConfigCategory.MODEL)) is not None:
            await self.set_config_option(option.id, model_id, timeout=timeout)
        else:
            raise NotSupported(f"{self._link.name} has no choice of models in this session")

    async def set_config_option(self, config_id: str, value: str | bool, *, timeout: Timeout = UNSET) -> None:
        """Change an option. Others may change with it."""
        if self.config_options is None:
            raise NotSupported(f"{self._link.name} has no settings in this session")
        answer = await self._ask(m.SET_CONFIG_OPTION, lambda: v1.SetConfigOption(self.id, config_id, value), timeout)
        options = answer.config_options or with_value(self.config_options, config_id, value)
        self._inbox.follow(v1.ConfigOptionUpdate(options))

    async def close(self, *, timeout: Timeout = UNSET) -> None:
        """Cancel what runs, release what the session holds here, and have the agent close it, if the agent has a method for that.

        A second call waits for the first; a call that is cancelled is carried out all the same.
        """
        if self._closing is None:
            self._closed = True
            self._closing = self._link.run(self._close(timeout), f"close {self.id}")
            self._closing.add_done_callback(_seen)
        if not self._closing.done():
            await asyncio.shield(self._closing)

    async def _close(self, timeout: Timeout) -> None:
        await self._cancel_turns()
        self._questions.release()
        self._sessions.forget(self)
        self._activity.close()
        if self._terminals is not None:
            await self._terminals.release_session(self.id)
        home = self._connection
        if home is not None and self._link.abilities.has(
            "session/close"
        ):  # a session that is not open is not opened to be closed
            await home.request(m.CLOSE_SESSION, v1.CloseSession(self.id), timeout=timeout)

    # What the agent does, as version 2 reports it. With an agent of version 1 it is computed from our own requests.

    @property
    def state(self) -> WorkState:
        """What the agent does here: idle, running, or waiting for the user; a word that is not known here stands for busy."""
        return self._activity.state if self._connection is not None else WorkState.IDLE

    @property
    def background(self) -> tuple[OpenWork, ...] | None:
        """The work that goes on in the background. None: the agent does not report it, as agents of version 1."""
        return self._activity.background

    @property
    def cancellable(self) -> tuple[OpenWork, ...]:
        """The tool calls and terminals that can be cancelled alone now. Empty with agents of version 1."""
        return tuple(self._activity.cancellable)

    async def states(self) -> AsyncIterator[WorkState]:
        """Iterate over the states: the current one, and one whenever it or the background work has changed.

        It ends when the session is closed or its agent is lost.
        """
        with self._activity.watched() as watcher:
            while True:
                while watcher.states:
                    yield watcher.states.popleft()
                if self._closed or (home := self._connection) is None:
                    return
                await watcher.wait(home.wait_closed())

    async def wait_idle(self, *, timeout: float | None = None) -> None:
        """Wait until the agent does nothing in the foreground, also nothing that it began by itself. Background work may go on.

        Raises:
            RequestTimeout: it was not idle within `timeout` seconds, if given.
        """
        try:
            async with asyncio.timeout(timeout):
                with self._activity.watched() as watcher:
                    while self.state is not WorkState.IDLE and (home := self._connection) is not None:
                        await watcher.wait(home.wait_closed())
        except TimeoutError:
            raise RequestTimeout(m.PROMPT.name, timeout or 0, peer=self._link.name) from None

    async def cancel_tool_call(self, tool_call_id: str, *, timeout: Timeout = UNSET) -> None:
        """Cancel one tool call; the turn goes on. When this returns the agent has accepted it; the last status of the call confirms it.

        Raises:
            NotSupported: the agent does not offer it for this call, or speaks version 1.
        """
        await self._cancel_work(OpenWork(TOOL_CALL, tool_call_id), timeout)

    async def cancel_terminal(self, terminal_id: str, *, timeout: Timeout = UNSET) -> None:
        """Cancel the command in one terminal of the agent, as `cancel_tool_call` does with a call."""
        await self._cancel_work(OpenWork(TERMINAL, terminal_id), timeout)

    async def _cancel_work(self, work: OpenWork, timeout: Timeout) -> None:
        self._check_open()
        home, what = self._connection, work.kind.replace("_", " ")
        if home is not None and spoken_version(home) == 1:
            raise NotSupported(
                f"{self._link.name} speaks version 1 of ACP here, which cannot cancel a single {what}",
                hint="`await turn.cancel()` cancels all of it; `connect(versions=(2, 1))` asks for version 2 first",
            )
        if home is None or work not in self._activity.cancellable:
            raise NotSupported(
                f"{self._link.name} does not offer to cancel the {what} `{work.id}`",
                hint="`session.cancellable` has what can be cancelled now; `await turn.cancel()` cancels the turn",
            )
        call, member = CANCEL_METHODS[work.kind]
        await home.request(call, {"sessionId": self.id, member: work.id}, timeout=timeout)

    async def _ask(self, call: "Call[P, R]", make: Callable[[], P], timeout: Timeout = UNSET) -> R:
        self._check_open()

        async def ask(connection: "Connection") -> R:
            # Made now: the id changes if a new session takes its place.
            return await connection.request(call, make(), timeout=timeout)

        return await self._link.attempt(ask, ready=self._ready, expire=self._expire)

    def _check_open(self) -> None:
        if self._closed:
            raise LocalProtocolError(f"session `{self.id}` is closed")

    # The connection that it is open on.

    @property
    def _connection(self) -> "Connection | None":
        """The connection that the session is open on, if it is."""
        home = self._open_on
        return home if home is not None and not home.closed and self._link.is_current(home) else None

    def _opened(self, home: "Connection", offer: Offer) -> None:
        """Note that the session is open on a connection, and take its settings."""
        self._open_on = home
        take_settings(self, offer)

    def _expire(self) -> None:
        """Note that the session is open no longer; the next use opens it again."""
        self._open_on = None
        self._activity.forget()

    async def _ready(self) -> "Connection":
        """Return the connection with the session open on it. If it is opened again, a notice goes to the turn or to `on_update`."""
        connection = await self._link.connected()
        if connection is not self._open_on:
            async with self._opening_lock:
                connection = await self._link.connected()
                if connection is not self._open_on:
                    self._activity.forget()
                    self._inbox.send_notice(await reopen(self, connection, self._sessions))
        return connection


def _seen(closing: "asyncio.Task[None]") -> None:
    """Take the error of a task whose caller may have been cancelled, so that it is not logged as lost."""
    if not closing.cancelled():
        closing.exception()


def _blocks(content: PromptContent) -> list[v1.ContentBlock]:
    given: object = content  # not trusted: a wrong type here is the commonest mistake
    if isinstance(given, str | v1.ContentBlock | v1.Unknown):
        given = [given]
    if not isinstance(given, Iterable) or isinstance(given, dict):
        raise _no_prompt(given)
    return [v1.TextBlock(each) if isinstance(each, str) else _block(each) for each in given]


def _block(given: object) -> v1.ContentBlock:
    if not isinstance(given, v1.ContentBlock | v1.Unknown):
        raise _no_prompt(given)
    return given


def _no_prompt(given: object) -> LocalProtocolError:
    return LocalProtocolError(
        f"a prompt is text, content blocks, or several of them, not {given!r:.60}",
        hint='session.prompt("text"), or session.prompt([v1.TextBlock("look at"), v1.ResourceLink(…)])',
    )


# A session is opened again after it expired or its agent was lost: resumed, else loaded, else replaced by a new one.

_log = logging.getLogger(__name__)


async def reopen(session: "ClientSession", connection: "Connection", sessions: "ClientSessions") -> v1.NoticeUpdate:
    """Open a session on this connection by the best method of the agent. Return a notice for the user.

    Raises:
        RequestRefused: the agent refuses every method.
        AcpError: only a new session is left, and that is not wanted.
    """
    found = await open_earlier(
        session._link.abilities,
        session.id,
        resume=lambda: _resume(session, connection, sessions),
        load=lambda: _load(session, connection, sessions),
    )
    if isinstance(found, v1.NoticeUpdate):
        return found
    if not session._link.retry.start_over:
        raise AcpError(f"session `{session.id}` is lost: the agent does not know it any more") from found
    return await _new(session, connection, sessions)


async def open_earlier(
    abilities: "Abilities",
    session_id: str,
    *,
    resume: "Callable[[], Awaitable[R]]",
    load: "Callable[[], Awaitable[R]]",
) -> "R | RequestRefused | None":
    """Open an earlier session by the best method of the agent: resume it, else load it.

    Return what the method returned, or why the last one was refused; None where the agent has neither.

    Raises:
        RequestRefused: for a reason that is not about the session, so that the other method is no better.
    """
    refusal: RequestRefused | None = None
    for method, open_it in (("session/resume", resume), ("session/load", load)):
        if abilities.has(method):
            try:
                return await open_it()
            except RequestRefused as error:
                # The code for a session that does not exist differs from agent to agent.
                if error.wants_sign_in or error.reports_closed or error.code == Code.REQUEST_TIMEOUT:
                    raise
                _log.info("session `%s` cannot be opened again by `%s`: %s", session_id, method, error)
                refusal = error
    return refusal


async def _resume(session: "ClientSession", connection: "Connection", sessions: "ClientSessions") -> v1.NoticeUpdate:
    answer = await connection.request(m.RESUME_SESSION, session._workspace.resume(session.id))
    session._opened(connection, answer)
    return _notice("The session was resumed", "It was no longer open; it goes on with its history.")


async def _load(session: "ClientSession", connection: "Connection", sessions: "ClientSessions") -> v1.NoticeUpdate:
    session._inbox.replaying = True
    try:
        answer = await connection.request(m.LOAD_SESSION, session._workspace.load(session.id))
    finally:
        session._inbox.replaying = False
    session._opened(connection, answer)
    return _notice("The session was loaded again", "It was no longer open; it goes on with its history.")


async def _new(session: "ClientSession", connection: "Connection", sessions: "ClientSessions") -> v1.NoticeUpdate:
    with sessions.opening(session._workspace):
        answer = await connection.request(m.NEW_SESSION, session._workspace.new())
    sessions.forget(session)
    if session._terminals is not None:
        await session._terminals.release_session(session.id)  # the agent has no id for them any more
    session.id = answer.session_id
    session._opened(connection, answer)
    sessions.put(session)
    return _notice(
        "A new session was started",
        "The earlier one could not be opened again: the agent does not know it any more. The settings are the agent's defaults.",
    )


def _notice(title: str, description: str) -> v1.NoticeUpdate:
    return v1.NoticeUpdate(v1.NoticeSeverity.WARNING, title, description)
