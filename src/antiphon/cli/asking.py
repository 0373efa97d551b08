"""Asks the person at the terminal, by plain lines: may it do this, and whatever else the agent wants to know.

One question at a time, and nothing else is shown meanwhile. What was typed before a question came is no answer to it. End of file is
a no; when the turn is cancelled the question goes without an answer.
"""

import asyncio
import os
import select
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from antiphon.cli.describing import describe_action
from antiphon.cli.diffs import diffs_in
from antiphon.cli.printing import show_diff
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.cli.screen import Screen
    from antiphon.client.handlers import Elicited
    from antiphon.client.permissions import Choice, Question
    from antiphon.store.decisions import Scope

__all__ = ["Person", "terminal_of"]

CONTENT_LINES: Final = 20
"""Lines shown of a text that is about to be written without a diff."""

_SCOPES: "Final[dict[str, Scope]]" = {"s": "session", "p": "project", "e": "everywhere"}


def terminal_of(screen: "Screen") -> int | None:
    """Where to read answers: stdin if it is a terminal, else the terminal that shows stderr. None: nobody is there."""
    if not screen.is_terminal:
        return None
    if sys.stdin is not None and sys.stdin.isatty():
        return sys.stdin.fileno()
    try:
        return os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None


class Person:
    """Somebody who reads stderr and types."""

    def __init__(self, screen: "Screen", terminal: int) -> None:
        self._screen = screen
        self._terminal = terminal
        self._asking = asyncio.Lock()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._typed = b""

    async def undisturbed(self) -> None:
        """Wait until no question is open."""
        await self._quiet.wait()

    # Permission.

    async def decide(self, question: "Question") -> "Choice":
        """Ask whether the agent may do this."""
        from antiphon.client.permissions import Choice
        from antiphon.policy import Verdict

        async with self._floor():
            self._show(question)
            rules = ", ".join(rule.text for rule in question.always)
            if rules:
                self._screen.note(f"  always would allow: {rules}", "dim")
            offered = "y yes, n no" + (", always in this s session, p project, e everywhere" if rules else "")
            while True:
                self._forget_typed()
                try:
                    answer = (await self._line(f"  Allow? ({offered}): ")).lower()
                except EOFError:
                    answer = "n"
                if answer in ("n", "no"):
                    return Choice(Verdict.DENY)
                if answer in ("y", "yes"):
                    return Choice(Verdict.ALLOW)
                if rules and answer[:1] in _SCOPES:
                    return Choice(Verdict.ALLOW, scope=_SCOPES[answer[:1]])

    def _show(self, question: "Question") -> None:
        action, request = question.action, question.request
        title = request.tool_call.title if request is not None else None
        self._screen.note(f"? {title or action.name or action.kind} ({action.kind})", "bold")
        diffs = diffs_in(request.tool_call.content) if request is not None else []
        for diff in diffs:
            show_diff(self._screen, diff, action.cwd)
        if not diffs or action.kind == "execute":
            for line in describe_action(action).splitlines():
                self._screen.note(f"  {line}", "cyan")
        if action.kind == "execute":
            self._screen.note(f"  in {action.cwd}", "dim")
        if request is not None and not (action.command or action.words or action.paths or diffs):
            self._show_text(request.tool_call.content)
        if question.content is not None:
            lines = question.content.splitlines()
            for line in lines[:CONTENT_LINES]:
                self._screen.note(f"  +{line}", "green")
            if len(lines) > CONTENT_LINES:
                self._screen.note(f"  … {len(lines) - CONTENT_LINES} more lines", "dim")
        self._screen.note(f"  {question.ruling.why}", "dim")

    def _show_text(self, content: "list[v1.ToolContent] | None | v1.UnsetType") -> None:
        """The agent's own words, where it says in no other way what it wants."""
        for item in content or ():
            if isinstance(item, v1.ContentItem) and isinstance(item.content, v1.TextBlock):
                for line in item.content.text.splitlines()[:CONTENT_LINES]:
                    self._screen.note(f"  {line}", "cyan")

    # Other questions.

    async def fill_in(self, request: v1.FormElicitation) -> "Elicited":
        """Ask for the fields of a form, one after the other."""
        from antiphon.cli.forms import Wrong, fields_of

        form = request.requested_schema
        async with self._floor():
            self._screen.note(f"? {request.message}", "bold")
            self._screen.note("  an empty line takes what is in brackets, Ctrl-D declines", "dim")
            content: dict[str, v1.ContentValue] = {}
            try:
                for field in fields_of(form):
                    for line in field.explained:
                        self._screen.note(f"  {line}", "dim")
                    while True:
                        try:
                            value = field.read(await self._line(f"  {field.prompt}: "))
                        except Wrong as wrong:
                            self._screen.note(f"  {wrong}", "yellow")
                            continue
                        break
                    if value is not None:
                        content[field.key] = value
            except EOFError:
                return v1.Declined()
            return v1.Accepted(content)

    async def visit(self, request: v1.UrlElicitation) -> "Elicited":
        """Ask to open a page. It is shown, whole, and never opened by us."""
        async with self._floor():
            self._screen.note(f"? {request.message}", "bold")
            self._screen.note(f"  {request.url}", "cyan")
            try:
                answer = await self._line("  Open it yourself, then press Enter (n declines): ")
            except EOFError:
                answer = "n"
            return v1.Declined() if answer.lower() in ("n", "no") else v1.Accepted()

    # The terminal.

    @asynccontextmanager
    async def _floor(self) -> AsyncIterator[None]:
        async with self._asking:
            self._quiet.clear()
            self._forget_typed()
            try:
                yield
            finally:
                self._quiet.set()

    def _forget_typed(self) -> None:
        import termios

        self._typed = b""
        with suppress(termios.error):  # no terminal any more: the reading will say so
            termios.tcflush(self._terminal, termios.TCIFLUSH)

    async def _line(self, prompt: str) -> str:
        """A line from the terminal. Not `input` in a thread, which Ctrl-C would have to wait for."""
        ahead = self._typed or select.select([self._terminal], [], [], 0)[0]  # shown already, where it was typed
        self._screen.ask(prompt)
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self._terminal, ready.set)
        try:
            while b"\n" not in self._typed:
                await ready.wait()
                ready.clear()
                try:
                    chunk = os.read(self._terminal, 4096)
                except OSError:  # the terminal is gone
                    chunk = b""
                if not chunk:
                    self._screen.note("")
                    raise EOFError
                self._typed += chunk
                if not ahead:
                    self._screen.answered()  # the terminal has shown the end of the line
        finally:
            loop.remove_reader(self._terminal)
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode("utf-8", "replace").strip()
