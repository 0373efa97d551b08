"""Asks the person at the terminal, line by line: for permission, and for answers to the agent's questions.

One question at a time, and nothing else is shown meanwhile. What was typed before a question came does not answer it, and only the
answers that it lists do. The end of the input is a no. When the turn is cancelled the question goes without an answer.
"""

import asyncio
import os
import select
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, TypeVar

from antiphon.cli.run.printers import show_diff
from antiphon.cli.terminal import QUIET, YES_OR_NO, TypedAnswers
from antiphon.protocol import v1
from antiphon.transcript.presentation import describe_action, diffs_in

if TYPE_CHECKING:
    from antiphon.cli.terminal import Screen
    from antiphon.client.handlers import Elicited
    from antiphon.permission.gate import PermissionChoice, Question
    from antiphon.store.decisions import Scope

__all__ = ["Person"]

CONTENT_LINES: Final = 20
"""Lines shown of a text that is about to be written without a diff."""

_SCOPES: "Final[tuple[Scope, ...]]" = ("session", "project", "everywhere")

T = TypeVar("T")


class Person:
    """The person at the terminal, who reads stderr and types answers."""

    def __init__(self, screen: "Screen", terminal: int, quiet: float = QUIET) -> None:
        self._screen = screen
        self._terminal = terminal
        self._silence = quiet
        self._asking = asyncio.Lock()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._typed = b""

    async def undisturbed(self) -> None:
        """Wait until no question is open."""
        await self._quiet.wait()

    # Permission.

    async def decide(self, question: "Question") -> "PermissionChoice":
        """Ask whether the agent may do this."""
        from antiphon.permission.gate import PermissionChoice
        from antiphon.policy import Verdict

        once, no = PermissionChoice(Verdict.ALLOW), PermissionChoice(Verdict.DENY)
        words = {"y": once, "yes": once, "n": no, "no": no}
        rules = ", ".join(rule.text for rule in question.always)
        offered = "y yes, n no"
        if rules:
            offered += ", always in this s session, p project, e everywhere"
            for scope in _SCOPES:
                words[scope[0]] = words[scope] = PermissionChoice(Verdict.ALLOW, scope=scope)
        async with self._exclusive():
            self._show(question)
            if rules:
                self._screen.note(f"  always would allow: {rules}", "dim")
            return await self._answer(f"  Allow? ({offered}): ", TypedAnswers(words), no)

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
        """Show the text of a permission request that names no command, path or change."""
        for item in content or ():
            if isinstance(item, v1.ContentItem) and isinstance(item.content, v1.TextBlock):
                for line in item.content.text.splitlines()[:CONTENT_LINES]:
                    self._screen.note(f"  {line}", "cyan")

    # Other questions.

    async def fill_in(self, request: v1.FormElicitation) -> "Elicited":
        """Ask for the fields of a form, one after the other."""
        from antiphon.transcript.forms import Wrong, fields_of

        form = request.requested_schema
        async with self._exclusive():
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
            if not form.properties and not await self._answer("  Go on? (y yes, n no): ", YES_OR_NO, False):
                return v1.Declined()
            return v1.Accepted(content)

    async def visit(self, request: v1.UrlElicitation) -> "Elicited":
        """Ask the person to open a page. The address is shown whole, and never opened by this program."""
        async with self._exclusive():
            self._screen.note(f"? {request.message}", "bold")
            self._screen.note(f"  {request.url}", "cyan")
            opened = await self._answer("  Open it yourself. Did you go there? (y yes, n no): ", YES_OR_NO, False)
            return v1.Accepted() if opened else v1.Declined()

    # The terminal.

    @asynccontextmanager
    async def _exclusive(self) -> AsyncIterator[None]:
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
        with suppress(termios.error):  # no terminal any more: reading will fail
            termios.tcflush(self._terminal, termios.TCIFLUSH)

    async def _answer(self, prompt: str, answers: TypedAnswers[T], no: T) -> T:
        """Ask until one of the listed answers is typed; `no` at the end of the input."""
        try:
            while True:
                self._forget_typed()
                line = await self._raw_line(prompt)
                meant = answers.read(line + self._typed)
                if meant == no or (meant is not None and not await self._goes_on()):
                    return meant
                while await self._goes_on():  # keys are ignored until a pause: the user types words or pastes a text
                    pass
        except EOFError:
            return no

    async def _goes_on(self) -> bool:
        """Drop what is typed within a moment, and return whether there was anything.

        Raises:
            EOFError: the input has ended.
        """
        self._typed = b""
        try:
            async with asyncio.timeout(self._silence):
                await self._read_more()
        except TimeoutError:
            return False
        return True

    async def _line(self, prompt: str) -> str:
        """Read a line of text."""
        return (await self._raw_line(prompt)).decode("utf-8", "replace").strip()

    async def _raw_line(self, prompt: str) -> bytes:
        """Read a line from the terminal, with its end. Not `input` in a thread, which Ctrl-C would have to wait for."""
        ahead = self._typed or select.select([self._terminal], [], [], 0)[0]  # shown already, where it was typed
        self._screen.ask(prompt)
        while b"\n" not in self._typed:
            await self._read_more()
            if not ahead:
                self._screen.answered()  # the terminal has shown the end of the line
        line, end, self._typed = self._typed.partition(b"\n")
        return line + end

    async def _read_more(self) -> None:
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._terminal, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._terminal)
        try:
            chunk = os.read(self._terminal, 4096)
        except OSError:  # the terminal is gone
            chunk = b""
        if not chunk:
            self._screen.note("")
            raise EOFError
        self._typed += chunk
