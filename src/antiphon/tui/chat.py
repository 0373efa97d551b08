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
from antiphon.client.attachments import AttachmentError
from antiphon.client.handlers import Elicitation, SignInHandler
from antiphon.client.session import ClientSession
from antiphon.client.terminals import Terminals
from antiphon.client.updates import OnUpdate
from antiphon.errors import AcpError, AuthRequired, sentence_and_hint
from antiphon.permission.gate import Ask, PermissionGate
from antiphon.protocol import v1
from antiphon.protocol.base import JsonObject
from antiphon.tui import commands
from antiphon.tui import status as state
from antiphon.tui.display.notifications import Notifications
from antiphon.tui.display.plain import PlainWindow
from antiphon.tui.display.welcome import branch_of
from antiphon.tui.line.actions import LineActions, unknown_command
from antiphon.tui.line.completion import ChatCompleter
from antiphon.tui.output.images import ImagePainter, image_protocol
from antiphon.tui.output.unfold import OutputViewer
from antiphon.tui.painter import Painter, clean, one_line
from antiphon.tui.questions import ChatQuestions
from antiphon.tui.screen import ChatScreen
from antiphon.tui.sessions import ChatSessions
from antiphon.tui.start import ChatStart, why_not_signed_in
from antiphon.tui.terminals import WatchedTerminals
from antiphon.tui.undo import ChatUndo
from antiphon.tui.window import ChatWindow

if TYPE_CHECKING:
    from antiphon.client.turn import ClientTurn

__all__ = ["Begin", "Chat", "ChatFrontend", "Fork", "Open", "Reopen", "StartedAgent"]

# --- what a chat needs to start agents -------------------------------------------------------------------------------

Begin: TypeAlias = Callable[[OnUpdate], Awaitable[ClientSession]]
Reopen: TypeAlias = Callable[[str, OnUpdate], Awaitable[ClientSession]]
Fork: TypeAlias = Callable[[str, JsonObject, OnUpdate], Awaitable[ClientSession]]


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
    fork: Fork | None = None
    """Opens a copy of a session; None: only new ones."""
    local: bool = True
    """Whether it works on the files of this machine."""
    in_use: Callable[[ClientSession], object] = lambda session: None
    """Called with each session that the user goes to."""


Open: TypeAlias = Callable[[ChatFrontend], AbstractAsyncContextManager[StartedAgent]]


_log = logging.getLogger(__name__)

DRAW_INTERVAL: Final = 0.02
"""Seconds of updates in a row after which the window gets its turn: an agent may send faster than we draw."""

BRANCH_INTERVAL: Final = 2.0
"""Seconds after which the branch is read again."""

OURS_ABOVE: Final = 3
THEIRS_ABOVE: Final = 4
"""Commands of ours, and then of an agent with several engines, that stand first in the list: `/help`, `/mode`, `/model`, `/duet` …"""

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

    viewer: OutputViewer

    def __init__(
        self,
        open_agent: Open,
        history: Path | None,
        cwd: str,
        *,
        painter: Painter,
        prompt: str = "",
        notify: str = "auto",
        keys: str = "emacs",
        undo: bool = True,
        images: str = "auto",
        plain: bool = False,
    ) -> None:
        self._open = open_agent
        self._terminals = WatchedTerminals()
        self._refused: set[str] = set()
        self.screen = ChatScreen(painter, self._terminals.tail, cwd, self._word_of)
        self.screen.images = ImagePainter(image_protocol(images))
        self.modes = state.ChatModes(self)
        self.asking = ChatQuestions(
            self.screen,
            lambda: self.window,
            lambda: self.opened.command if self.opened else [],
            self.modes,
            self.send_next,
            lambda things: self.viewer.show(things),
        )
        self.actions = LineActions(self, None if history is None else history.parent / "pasted")
        completer = ChatCompleter(
            self._commands,
            lambda name: commands.values_of(self, name),
            lambda: self.screen.cwd,
            lambda: self.actions.last.command if self.actions.last is not None else "",
        )
        self.notifications = Notifications(lambda codes: self.window.write(codes), notify, cwd)
        kind = PlainWindow if plain else ChatWindow
        self.window: ChatWindow = kind(self.screen, self, completer, history, keys=keys)
        self.window.line.can_pick = not plain
        self.viewer = OutputViewer(self.screen, lambda: self.window.rows, self.actions.page, self.window.refresh)
        self.sessions = ChatSessions(self, self._enter, self._take_update)
        self.undo = ChatUndo(self, keeps_files=undo)
        self.opened: StartedAgent | None = None
        self.listed: list[v1.SessionInfo] = []
        self.failure: AcpError | None = None
        self.resume_hint: str | None = None
        """How to come back, once it is over."""
        self._session: ClientSession | None = None
        self._waiting: deque[str] = deque()
        self._woken, self._started, self._left = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._turn: ClientTurn | None = None
        self._cancelling: asyncio.Task[v1.PromptResult] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._since: float | None = None
        self._about_to_leave = False
        self._branch_at, self._branch_name = float("-inf"), ""
        self.start = ChatStart(self)
        if prompt:
            self._waiting.append(prompt)
            self._woken.set()

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
    def is_working(self) -> bool:
        """Whether a turn or a command runs."""
        return self.busy or bool(self._tasks)

    @property
    def waiting(self) -> list[str]:
        """Prompts that are queued."""
        return list(self._waiting)

    def status(self) -> Text:
        """The status line."""
        if self._about_to_leave:
            return Text("Ctrl-C again to leave, or go on typing", "warning")
        seconds = None if self._since is None else int(time.monotonic() - self._since)
        doing = (
            state.WAITING
            if self.window.panel is not None
            else "cancelling"
            if self._cancelling is not None
            else "working"
            if self._session is not None
            else "starting"
        )
        name, gate = (self.opened.agent.name, self.opened.gate) if self.opened is not None else (None, None)
        width = self.screen.painter.width
        return state.status_text(name, self._session, gate, doing, seconds, self._branch(), width)

    def _branch(self) -> str:
        """The branch of the directory, read again from time to time: the agent may change it."""
        if (now := time.monotonic()) > self._branch_at + BRANCH_INTERVAL:
            self._branch_at, self._branch_name = now, branch_of(self.screen.cwd)
        return self._branch_name

    def send_next(self, text: str) -> None:
        """Send a prompt when the turn is over, before those that are queued."""
        self._waiting.appendleft(text)
        self._woken.set()

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
        self._since = time.monotonic()
        self.start.show_head()  # the first frame says where this is, and that it starts
        window = asyncio.create_task(self.window.run())
        work = asyncio.create_task(self._work())
        left = asyncio.create_task(self._left.wait())
        try:
            await asyncio.wait((window, work, left), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.start.close()
            self.notifications.close()
            left.cancel()
            work.cancel()
            self.window.close()
            await asyncio.wait((window,), timeout=DRAW_LIMIT)
            await self.undo.close()
            window.cancel()  # it was not begun, or another program has the terminal
            results = await asyncio.gather(window, work, return_exceptions=True)
        session = self._session
        if session is not None and session.transcript.entries and self.agent.capabilities.load_session:
            self.resume_hint = f"Go on with this session: antiphon chat --resume {shlex.quote(one_line(session.id))}"
        for result in results:
            if isinstance(result, AcpError):
                self.failure = result
            elif isinstance(result, EOFError) or (isinstance(result, OSError) and result.errno == EIO):
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
        async with self._open(attending) as opened:
            self.opened = opened
            about = opened.agent.meta.get("antiphon")
            self.screen.own_name = str(about.get("name", "")) if isinstance(about, dict) else ""
            await self._enter(await opened.first(self._take_update))
            if opened.hint:
                self.note(opened.hint)
            self._since = None
            self.start.greet()
            while True:
                await self._woken.wait()
                self._woken.clear()
                while self._waiting:
                    await self._send_prompt(self._waiting.popleft())

    async def _enter(self, session: "ClientSession") -> None:
        self._session = session
        engines = state.answering(session, self.agent.name)
        self.screen.titles = {engine.name: engine.title for engine in engines} if len(engines) > 1 else {}
        self._started.set()
        if self.opened is not None:
            self.opened.in_use(session)
        self.undo.entered(session)
        self.screen.end_turn()  # what was replayed is final
        self.window.refresh()

    def _take_update(self, update: v1.Update) -> None:
        """Handle an update outside of a turn."""
        self.screen.apply(update)
        self.start.renew()
        self.window.refresh()

    def _word_of(self, call_id: str) -> str:
        """Return whether a failed call was denied, cancelled or failed: the agent does not report it."""
        if call_id in self._refused:
            return "denied"
        return "cancelled" if self._cancelling is not None else "failed"

    def _warn(self, sentence: str) -> None:
        self.note([Text.assemble(("!", "warning"), f" {clean(sentence)}")], "notice")

    # What is typed.

    def submit(self, text: str) -> None:
        """Send a prompt or run a command, now or after the running turn."""
        self._about_to_leave = False
        self.start.settle()
        if self.actions.takes(text, self.screen.cwd):
            return
        own = commands.find(text)
        if own is not None and own.picks and text.strip() == f"/{own.name}" and self._session is not None:
            self.run_task(self._pick(own))
            return
        if own is not None and not own.waits:
            self.run_task(self._do(own, text))
            return
        self._waiting.append(text)
        self._woken.set()

    async def _pick(self, own: commands.ChatCommand) -> None:
        """Let the user pick what follows a command; if there is nothing to pick, the command says what there is."""
        try:
            await commands.prepare_values(self, own.name)
        except AcpError as error:
            self.show_error(error)
            return
        picks = self.window.panel is None and self.window.line.pick(f"/{own.name} ")
        self.window.refresh()
        if not picks:
            await self._do(own, f"/{own.name}")

    def interrupt(self) -> None:
        """Handle Ctrl-C while no question is open."""
        if self._turn is not None and self._cancelling is None:
            self._cancelling = asyncio.create_task(self._turn.cancel())
            self._give_back()
        elif self.window.input.text and not self.busy:
            self.window.line.reset()
        elif self._about_to_leave or self._cancelling is not None:
            self.leave()
        else:
            self._about_to_leave = True

    def typed(self) -> None:
        """Note that the user typed: an earlier Ctrl-C does not count any more."""
        self._about_to_leave = False
        self.notifications.pressed()

    def leave(self) -> None:
        """End the chat, in any state."""
        self._left.set()
        self.window.close()

    def _give_back(self, *prompts: str) -> None:
        """Put prompts that were not answered back on the input line, and those that are queued."""
        if prompts or self._waiting:
            typed = [self.window.input.text] if self.window.input.text else []
            text = "\n".join([*prompts, *self._waiting, *typed])
            self._waiting.clear()
            self.window.line.put(text)

    def run_task(self, work: Coroutine[None, None, None]) -> None:
        """Do something beside everything else."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end_task)

    def _end_task(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self.window.refresh()  # the plain chat asks for the next line when nothing runs

    def _commands(self) -> list[tuple[str, str]]:
        ours = [(own.name, own.about) for own in commands.COMMANDS.values()]
        offered = self._session.commands if self._session is not None else None
        theirs = [
            (one_line(each.name), each.description) for each in offered or () if each.name not in commands.COMMANDS
        ]
        # Where several engines answer, the first of the agent's commands choose between them, and have to be in sight.
        above, first = (OURS_ABOVE, THEIRS_ABOVE) if self.screen.titles else (len(ours), 0)
        return [*ours[:above], *theirs[:first], *ours[above:], *theirs[first:]]

    # Turns.

    async def _send_prompt(self, text: str) -> None:
        own = commands.find(text)
        self._since = time.monotonic()
        self.start.settle()
        self.notifications.working(text)
        try:
            if own is not None:
                await self._do(own, text)
            elif (unknown := unknown_command(text, lambda: list(commands.COMMANDS), self.session.commands)) is not None:
                self.show_error(unknown)
                if not self.window.input.text:
                    self.window.line.put(text)
            else:
                await self._play(text[1:] if text.startswith("//") else text)
        finally:
            self._since = None
            self.notifications.turn_over(text if own is None and not self._waiting else "")
            self.window.refresh()

    async def _do(self, own: commands.ChatCommand, text: str) -> None:
        self.screen.note([Text(f"{state.PROMPT} {one_line(text)}", "bold dim")], "user")
        self.window.refresh()
        try:
            if own.needs_session:
                await self._started.wait()  # as a prompt does; if the agent cannot be started, the chat ends
            await own.do(self, text.partition(" ")[2])
        except AcpError as error:
            self.show_error(error)
        self.window.refresh()

    async def _play(self, text: str) -> None:
        session = self.session
        try:
            takes = self.agent.capabilities.prompt_capabilities
            blocks = await self.actions.blocks(text, session.cwd, takes, self.agent.name)
            blocks = await self.undo.before(text, blocks)
            turn = session.prompt(blocks)
        except AcpError as error:
            self.show_error(error)
            if isinstance(error, AttachmentError) and not self.window.input.text:
                self._give_back(text)  # to be mended
            return
        self.undo.sent()
        self.screen.show_prompt(text, blocks)
        self._turn = turn
        try:
            result = await self._follow(turn)
        except AcpError as error:
            self.screen.end_turn()
            if isinstance(error, AuthRequired):
                await self._sign_in(error, text)
            else:
                self.show_error(error)
            return
        else:
            self.screen.end_turn()
        finally:
            self._turn = self._cancelling = None
            await self.undo.after()
        word = STOPPED.get(result.stop_reason.meaning)
        if result.stop_reason.value == "tool_error":  # in no schema, but some agents send it
            word = "stopped: a tool failed"
        if word is not None:
            self.note([Text(f"({word})", "warning")])

    async def _sign_in(self, error: AuthRequired, text: str) -> None:
        """Let the user sign in, and give the prompt back: it was not answered."""
        self.note([Text.assemble(("✗ ", "error"), f"{why_not_signed_in(error)}.")], "notice")
        if await self.start.sign_in():
            self.note("Enter sends your prompt again.")
        self._give_back(text)

    async def _follow(self, turn: "ClientTurn") -> v1.PromptResult:
        """Show the updates of a turn, also those that come after it was cancelled."""
        last_drawn = time.monotonic()
        async for update in turn:
            self.screen.apply(update)
            self.window.refresh()
            if (now := time.monotonic()) - last_drawn > DRAW_INTERVAL:
                await asyncio.sleep(0)
                last_drawn = now
        await self._terminals.look()
        return turn.result if self._cancelling is None else await self._cancelling

    def show_error(self, error: AcpError) -> None:
        """Show an error: what went wrong, and what to do about it."""
        sentence, hint = sentence_and_hint(error)
        rows: list[RenderableType] = [Text.assemble(("✗ ", "error"), clean(sentence))]
        self.note([*rows, Text(f"  {clean(hint)}", "dim")] if hint else rows, "notice")
