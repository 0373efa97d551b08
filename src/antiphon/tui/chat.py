"""The chat: typed lines become turns, one after the other, and updates go to the screen.

Rule 1: the line can be typed on at any time. What is sent while a turn runs waits, in order, and is shown as waiting.
Rule 2: Ctrl-C ends one thing: the question, else the turn, else the line, else (twice) the chat. What waited comes back to the line.
Rule 3: whatever ends the chat, the agent and all it started are ended with it.
"""

import asyncio
import logging
import shlex
import signal
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from errno import EIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rich.console import RenderableType
from rich.text import Text

from antiphon.client.agent import ConnectedAgent
from antiphon.client.attachments import AttachmentError, prompt_blocks
from antiphon.client.handlers import Elicitation, SignInHandler
from antiphon.client.session import ClientSession
from antiphon.client.terminals import Terminals
from antiphon.client.updates import OnUpdate
from antiphon.errors import AcpError, AuthRequired, Code, RequestRefused, sentence_and_hint
from antiphon.permission.gate import Ask, PermissionGate
from antiphon.protocol import v1
from antiphon.tui import commands
from antiphon.tui import status as state
from antiphon.tui.input import ChatCompleter
from antiphon.tui.painter import Painter, clean, one_line
from antiphon.tui.questions import ChatQuestions
from antiphon.tui.screen import ChatScreen
from antiphon.tui.terminals import WatchedTerminals
from antiphon.tui.window import ChatWindow

if TYPE_CHECKING:
    from antiphon.client.turn import ClientTurn

__all__ = ["Begin", "Chat", "ChatFrontend", "Open", "Reopen", "StartedAgent"]

# --- what a chat needs to start agents -------------------------------------------------------------------------------

Begin: TypeAlias = Callable[[OnUpdate], Awaitable[ClientSession]]
Reopen: TypeAlias = Callable[[str, OnUpdate], Awaitable[ClientSession]]


@dataclass(frozen=True)
class ChatFrontend:
    """What the chat offers to the code that starts agents: how to ask the user, and where warnings go."""

    ask: Ask
    elicitation: Elicitation
    authenticate: SignInHandler
    terminals: Terminals
    warn: Callable[[str], None]
    refused: set[str] = field(default_factory=set)
    """Ids of the calls that were denied."""


@dataclass(frozen=True)
class StartedAgent:
    """An agent that was started."""

    agent: ConnectedAgent
    gate: PermissionGate
    first: Begin
    """Opens the session that was asked for on the command line."""
    new: Begin
    load: Reopen
    hint: str = ""
    """Notes to show at the start."""
    command: list[str] = field(default_factory=list)
    """How to start its program again, to sign in there."""


Open: TypeAlias = Callable[[ChatFrontend], AbstractAsyncContextManager[StartedAgent]]


_log = logging.getLogger(__name__)

DRAW_INTERVAL: Final = 0.02
"""Seconds of updates in a row after which the window gets its turn: an agent may send faster than we draw."""

DRAW_LIMIT: Final = 1.0
"""Seconds that the window may take to draw its last state when the chat ends."""

STOPPED: Final = {
    v1.StopReason.CANCELLED: "cancelled",
    v1.StopReason.REFUSAL: "the agent refused to go on",
    v1.StopReason.MAX_TOKENS: "stopped: the agent reached its limit of tokens",
    v1.StopReason.MAX_TURN_REQUESTS: "stopped: the agent reached its limit of requests in one turn",
}


class Chat:
    """One chat in one terminal, with one agent, in one session at a time."""

    def __init__(self, open_agent: Open, history: Path | None, cwd: str, *, colour: bool = True) -> None:
        self._open = open_agent
        self._terminals = WatchedTerminals()
        self._refused: set[str] = set()
        self.screen = ChatScreen(Painter(80, colour=colour), self._terminals.tail, cwd, self._word_of)
        self.asking = ChatQuestions(
            self.screen, lambda: self.window, lambda: self.opened.command if self.opened else []
        )
        completer = ChatCompleter(self._commands, lambda name: commands.values_of(self, name), lambda: self.screen.cwd)
        self.window = ChatWindow(self.screen, self, completer, history)
        self.opened: StartedAgent | None = None
        self.listed: list[v1.SessionInfo] = []
        self.failure: AcpError | None = None
        self.resume_hint: str | None = None
        """How to come back, once it is over."""
        self._session: ClientSession | None = None
        self._waiting: deque[str] = deque()
        self._woken = asyncio.Event()
        self._started = asyncio.Event()
        self._left = asyncio.Event()
        self._turn: ClientTurn | None = None
        self._cancelling: asyncio.Task[v1.PromptResult] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._since: float | None = None
        self._about_to_leave = False

    # For the window and the commands.

    @property
    def session(self) -> "ClientSession":
        """The open session.

        Raises:
            AcpError: none is, yet.
        """
        if self._session is None:
            raise AcpError("the agent has not started yet", hint="wait a moment")
        return self._session

    @property
    def agent(self) -> "ConnectedAgent":
        """The agent that was started.

        Raises:
            AcpError: it was not, yet.
        """
        if self.opened is None:
            raise AcpError("the agent has not started yet", hint="wait a moment")
        return self.opened.agent

    @property
    def gate(self) -> "PermissionGate":
        """The gate that decides what the agent may do.

        Raises:
            AcpError: the agent has not started yet.
        """
        if self.opened is None:
            raise AcpError("the agent has not started yet", hint="wait a moment")
        return self.opened.gate

    @property
    def busy(self) -> bool:
        """Whether a turn is running."""
        return self._since is not None

    @property
    def waiting(self) -> list[str]:
        """Prompts that are queued."""
        return list(self._waiting)

    def status(self) -> Text:
        """The status line."""
        if self._about_to_leave:
            return Text("Ctrl-C again to leave, or go on typing", "yellow")
        seconds = None if self._since is None else int(time.monotonic() - self._since)
        doing = (
            "waiting for you"
            if self.window.panel is not None
            else "cancelling"
            if self._cancelling is not None
            else "working"
            if self._session is not None
            else "starting"
        )
        name, gate = (self.opened.agent.name, self.opened.gate) if self.opened is not None else (None, None)
        return state.status_text(name, self._session, gate, doing, seconds)

    def note(self, things: Iterable[RenderableType] | str, kind: str = "note") -> None:
        """Show a line of our own in the chat."""
        self.screen.note(things, kind)
        self.window.refresh()

    async def look(self) -> None:
        """Read what the agent's commands have written."""
        await self._terminals.look()

    # Life.

    async def run(self) -> None:
        """Run the chat until the user leaves, or the agent cannot be used; `failure` has the reason."""
        loop = asyncio.get_running_loop()
        for ending in (signal.SIGTERM, signal.SIGHUP):  # the terminal is to be left as it was found
            loop.add_signal_handler(ending, self.leave)
        loop.set_exception_handler(self._fault)
        window = asyncio.create_task(self.window.run())
        work = asyncio.create_task(self._work())
        left = asyncio.create_task(self._left.wait())
        try:
            await asyncio.wait((window, work, left), return_when=asyncio.FIRST_COMPLETED)
        finally:
            left.cancel()
            work.cancel()
            self.window.close()
            await asyncio.wait((window,), timeout=DRAW_LIMIT)
            window.cancel()  # it was not begun, or another program has the terminal
            results = await asyncio.gather(window, work, return_exceptions=True)
        session = self._session
        if session is not None and session.transcript.entries and self.agent.capabilities.load_session:
            self.resume_hint = f"Go on with this session: antiphon chat --resume {shlex.quote(one_line(session.id))}"
        for result in results:
            if isinstance(result, AcpError):
                self.failure = result
            elif isinstance(result, OSError) and result.errno == EIO:
                _log.info("the terminal was closed: %s", result)
            elif isinstance(result, Exception):
                raise result

    def _fault(self, loop: asyncio.AbstractEventLoop, context: "dict[str, Any]") -> None:
        """Log what a callback raised. prompt_toolkit would ask to press Enter; a terminal that was closed ends the chat."""
        error = context.get("exception")
        _log.error("%s", context.get("message"), exc_info=error)
        if isinstance(error, OSError) and error.errno == EIO:
            self.leave()

    async def _work(self) -> None:
        attending = ChatFrontend(
            self.asking.permission,
            self.asking.elicitation,
            self.asking.login,
            self._terminals,
            self._warn,
            self._refused,
        )
        self._since = time.monotonic()
        async with self._open(attending) as opened:
            self.opened = opened
            about = opened.agent.meta.get("antiphon")
            self.screen.own_name = str(about.get("name", "")) if isinstance(about, dict) else ""
            await self._enter(await opened.first(self._take_update))
            self._since = None
            if opened.hint:
                self.note(opened.hint)
            while True:
                await self._woken.wait()
                self._woken.clear()
                while self._waiting:
                    await self._send_prompt(self._waiting.popleft())

    async def _enter(self, session: "ClientSession") -> None:
        self._session = session
        self._started.set()
        self.screen.end_turn()  # what was replayed is final
        self.window.refresh()

    def _take_update(self, update: v1.Update) -> None:
        """Handle an update outside of a turn."""
        self.screen.apply(update)
        self.window.refresh()

    def _word_of(self, call_id: str) -> str:
        """Return whether a failed call was denied, cancelled or failed: the agent does not report it."""
        if call_id in self._refused:
            return "denied"
        return "cancelled" if self._cancelling is not None else "failed"

    def _warn(self, sentence: str) -> None:
        self.note([Text.assemble(("!", "yellow"), f" {clean(sentence)}")], "notice")

    # What is typed.

    def submit(self, text: str) -> None:
        """Send a prompt or run a command, now or after the running turn."""
        self._about_to_leave = False
        own = commands.find(text)
        if own is not None and not own.waits:
            self._run_task(self._do(own, text))
            return
        self._waiting.append(text)
        self._woken.set()

    def interrupt(self) -> None:
        """Handle Ctrl-C while no question is open."""
        if self._turn is not None and self._cancelling is None:
            self._cancelling = asyncio.create_task(self._turn.cancel())
            self._give_back()
        elif self.window.input.text and not self.busy:
            self.window.input.reset()
        elif self._about_to_leave or self._cancelling is not None:
            self.leave()
        else:
            self._about_to_leave = True

    def typed(self) -> None:
        """Note that the user typed: an earlier Ctrl-C does not count any more."""
        self._about_to_leave = False

    def leave(self) -> None:
        """End the chat, in any state."""
        self._left.set()
        self.window.close()

    def _give_back(self) -> None:
        """Put queued prompts back on the input line after a cancelled turn."""
        if self._waiting:
            text = "\n".join([*self._waiting, *([self.window.input.text] if self.window.input.text else [])])
            self._waiting.clear()
            self.window.input.text = text
            self.window.input.cursor_position = len(text)

    def _run_task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _commands(self) -> list[tuple[str, str]]:
        ours = [(own.name, own.about) for own in commands.COMMANDS.values()]
        theirs = self._session.commands if self._session is not None else None
        return ours + [
            (one_line(each.name), each.description) for each in theirs or () if each.name not in commands.COMMANDS
        ]

    # Turns.

    async def _send_prompt(self, text: str) -> None:
        own = commands.find(text)
        self._since = time.monotonic()
        try:
            if own is not None:
                await self._do(own, text)
            else:
                await self._play(text[1:] if text.startswith("//") else text)
        finally:
            self._since = None
            self.window.refresh()

    async def _do(self, own: commands.ChatCommand, text: str) -> None:
        self.screen.note([Text(f"{state.PROMPT} {one_line(text)}", "bold dim")], "user")
        self.window.refresh()
        try:
            if own.needs_session:
                await self._started.wait()  # as a prompt does; if the agent cannot be started, the chat ends
            await own.do(self, text.partition(" ")[2])
        except AcpError as error:
            self._show_error(error)
        self.window.refresh()

    async def _play(self, text: str) -> None:
        session = self.session
        try:
            blocks = await asyncio.to_thread(
                prompt_blocks,
                text,
                cwd=session.cwd,
                takes=self.agent.capabilities.prompt_capabilities,
                agent=self.agent.name,
            )
            turn = session.prompt(blocks)
        except AcpError as error:
            self._show_error(error)
            if isinstance(error, AttachmentError) and not self.window.input.text:
                self.window.input.text = text  # to be mended
                self.window.input.cursor_position = len(text)
            return
        self.screen.show_prompt(text, blocks)
        self._turn = turn
        try:
            result = await self._follow(turn)
        except AcpError as error:
            self.screen.end_turn()
            self._show_error(error)
            if isinstance(error, AuthRequired):
                await self._sign_in()
            return
        else:
            self.screen.catch_up(session.transcript)
            self.screen.end_turn()
        finally:
            self._turn = self._cancelling = None
        word = STOPPED.get(result.stop_reason.meaning)
        if result.stop_reason.value == "tool_error":  # in no schema, but some agents send it
            word = "stopped: a tool failed"
        if word is not None:
            self.note([Text(f"({word})", "yellow")])

    async def _sign_in(self) -> None:
        """Sign in and send the prompt again: some agents ask for a login only then."""
        method = await self.asking.login(self.agent.auth_methods)
        if method is None:
            return
        try:
            await self.agent.authenticate(method)
        except AcpError as error:
            self._show_error(error)
        else:
            self.note("You are signed in: send it again.")

    async def _follow(self, turn: "ClientTurn") -> v1.PromptResult:
        """Show the updates of a turn. The end of a cancelled turn is read by `cancel`, and shown afterwards."""
        last_drawn = time.monotonic()
        async for update in turn:
            self.screen.apply(update)
            self.window.refresh()
            if self._cancelling is not None:
                break
            if (now := time.monotonic()) - last_drawn > DRAW_INTERVAL:
                await asyncio.sleep(0)
                last_drawn = now
        await self._terminals.look()
        return turn.result if self._cancelling is None else await self._cancelling

    def _show_error(self, error: AcpError) -> None:
        sentence, hint = sentence_and_hint(error)
        rows: list[RenderableType] = [Text.assemble(("✗ ", "red"), clean(sentence))]
        self.note([*rows, Text(f"  {clean(hint)}", "dim")] if hint else rows, "notice")

    # Sessions.

    async def load(self, session_id: str) -> None:
        """Open another session, and show its history."""
        if self.opened is None:
            return
        history: list[v1.Update] = []  # kept until it is open; if it never is, nothing has changed here
        is_open = False

        def collect(update: v1.Update) -> None:
            if is_open:
                self._take_update(update)
            else:
                history.append(update)

        try:
            session = await self.opened.load(session_id, collect)
        except RequestRefused as error:
            if error.code != Code.RESOURCE_NOT_FOUND:
                raise
            raise AcpError(f"there is no session `{one_line(session_id)}`", hint="/sessions lists them") from error
        is_open = True
        self.screen.begin(session.cwd)
        self.note(f"session {one_line(session_id)}")
        for update in history:
            self.screen.apply(update)
        await self._enter(session)

    async def begin_anew(self) -> None:
        """Open a new session."""
        if self.opened is not None:
            session = await self.opened.new(self._take_update)
            self.screen.begin(session.cwd)
            await self._enter(session)
            self.note("a new session")
