"""Puts the agent's questions before the user: permission, forms, pages, signing in. Shows panels; the panels read the keys."""

import asyncio
import webbrowser
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from rich.console import RenderableType
from rich.text import Text

from antiphon.client.handlers import Elicitation, Elicited
from antiphon.permission.gate import Choice, Question
from antiphon.policy import Verdict
from antiphon.protocol import v1
from antiphon.tui.calls import near
from antiphon.tui.clean import exact, one_line
from antiphon.tui.diffs import bounded
from antiphon.tui.form_panel import FormPanel
from antiphon.tui.login import choose_login
from antiphon.tui.panels import PagePanel, Panel
from antiphon.tui.permission_panel import PermissionPanel, Permit, Subject, subject_of
from antiphon.tui.screen import Screen

__all__ = ["Asking", "Shows"]

WRITTEN_LINES: Final = 400
"""Lines of a file about to be written that are shown."""


class Shows(Protocol):
    """What can show a panel until it is answered."""

    async def ask(self, panel: Panel) -> None:
        """Show it."""

    async def in_terminal(self, command: list[str], env: dict[str, str]) -> int:
        """Let a program have the terminal."""


class Asking:
    """The questions of one chat."""

    def __init__(self, screen: Screen, room: Callable[[], Shows], command: Callable[[], Sequence[str]]) -> None:
        self._screen = screen
        self._room = room
        self._command = command
        self._pages: dict[str, str] = {}
        self.elicitation = Elicitation(self._form, self._page, self._completed)

    async def permission(self, question: Question) -> Choice:
        """May the agent do this?"""
        subject = self._subject(question)
        panel = PermissionPanel(subject, view=lambda things: self._screen.note(things, "view"))
        try:
            await self._room().ask(panel)
        finally:
            self._screen.asked_about = None
        permit = panel.answer
        if permit.scope is not None or not permit.allow:  # what was allowed once shows by itself
            self._screen.note([_answered(subject, permit)], "call")
        verdict = Verdict.ALLOW if permit.allow else Verdict.DENY
        return Choice(verdict, permit.scope, option_id=permit.option_id)

    def _subject(self, question: Question) -> Subject:
        cwd, why = question.action.cwd, question.ruling.why
        always = tuple(rule.text for rule in question.always)
        if question.request is not None:
            self._screen.asked_about = self._screen.asked(question.request.tool_call).key
            return subject_of(question.request.tool_call, question.request.options, cwd, why=why, always=always)
        return Subject(*_unasked(question, cwd), why, always)

    async def _form(self, request: v1.FormElicitation) -> Elicited:
        panel = FormPanel(request.message, request.requested_schema)
        await self._room().ask(panel)
        rows: list[RenderableType] = [Text(one_line(request.message), "bold")]
        match panel.answer:
            case v1.Accepted():
                rows += [
                    Text(f"  {one_line(name)}: {exact(str(value))}", "dim") for name, value in panel.values.items()
                ]
            case _:
                rows.append(Text("  not answered", "dim"))
        self._screen.note(rows, "form")
        return panel.answer

    async def _page(self, request: v1.UrlElicitation) -> Elicited:
        panel = PagePanel(request.message, request.url)
        await self._room().ask(panel)
        if panel.answer == "opened":
            if panel.wants_browser and not await asyncio.to_thread(webbrowser.open, request.url):
                self._screen.note("No browser could be opened here: open the address yourself.")
            self._pages[request.elicitation_id] = request.url
        self._screen.note([Text.assemble(f"{panel.answer}: ", (exact(request.url), "underline"))], "form")
        if panel.answer == "opened":
            return v1.Accepted()
        return v1.Declined() if panel.answer == "declined" else v1.Dismissed()

    def _completed(self, elicitation_id: str) -> None:
        if (url := self._pages.pop(elicitation_id, None)) is not None:
            self._screen.note(f"Done at {exact(url)}")

    async def login(self, methods: Sequence[v1.AuthMethod]) -> str | None:
        """Which way to sign in."""
        room = self._room()
        return await choose_login(methods, self._command(), room.ask, room.in_terminal, self._screen.note)


def _unasked(question: Question, cwd: str) -> tuple[str, tuple[RenderableType, ...]]:
    """What an agent is about to do without having asked: the title, and the thing itself."""
    action = question.action
    if question.content is not None:
        lines = [Text(f"+ {line}", "green") for line in exact(question.content).splitlines()]
        names = [Text(exact(near(path, cwd)), "bold") for path in action.paths]
        return "Write a file", (*names, *bounded(lines, WRITTEN_LINES))
    body: list[RenderableType] = []
    if action.command is not None:
        body.append(Text(f"$ {exact(action.command)}", "bold"))
    elif action.words:
        body.append(Text("$ " + " ".join(exact(word) for word in _quoted(action.words)), "bold"))
    body += [Text(exact(near(path, cwd))) for path in action.paths]
    return ("Run a command" if action.kind == "execute" else one_line(action.name or action.kind).capitalize()), tuple(
        body
    )


def _quoted(words: Sequence[str]) -> list[str]:
    import shlex

    return [shlex.quote(word) for word in words]


def _answered(subject: Subject, permit: Permit) -> RenderableType:
    mark, style = ("+", "green") if permit.allow else ("-", "red")
    words = "allowed" if permit.allow else "denied"
    if permit.scope is None:
        return Text.assemble((mark, style), (f" you {words} it: {subject.title}", "dim"))
    where = {"session": "in this session", "project": "in this project", "everywhere": "everywhere"}[permit.scope]
    rules = ", ".join(exact(rule) for rule in subject.always)
    return Text.assemble((mark, style), (f" you {words} it, always {where}: {rules}", "dim"))
