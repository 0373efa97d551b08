"""The agent's questions in the chat: permission, forms, pages and sign-in."""

import asyncio
import shlex
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol

from rich.console import RenderableType
from rich.text import Text

from antiphon.client.handlers import Elicitation, Elicited
from antiphon.permission.gate import DOUBT, PermissionChoice, Question
from antiphon.policy import PolicyMode, Rule, RuleError, Verdict, closed_reason, covers
from antiphon.policy.rules import FILE_KINDS
from antiphon.protocol import v1
from antiphon.transcript.presentation import antiphon_meta, shown_path
from antiphon.tui.form_panel import FormPanel
from antiphon.tui.output.diff import change_of, diff_texts
from antiphon.tui.painter import exact, one_line
from antiphon.tui.panels import PagePanel, Panel
from antiphon.tui.question.permission import (
    ASKS_WHY,
    PermissionAnswer,
    PermissionPanel,
    PermissionSubject,
    subject_of,
)
from antiphon.tui.question.sign_in import choose_login
from antiphon.tui.screen import ChatScreen
from antiphon.tui.status import ChatModes

__all__ = ["ChatQuestions", "PanelHost"]

WRITTEN_LINES: Final = 20_000
"""Lines of a file about to be written that can be viewed. More are no text that a person reads before an answer."""


class PanelHost(Protocol):
    """What can show a panel until it is answered."""

    async def ask(self, panel: Panel) -> None:
        """Show a panel until it is answered."""

    async def in_terminal(self, command: list[str], env: dict[str, str]) -> int:
        """Run a program in the terminal."""


class ChatQuestions:
    """Asks the questions of the agent in one chat."""

    def __init__(
        self,
        screen: ChatScreen,
        host: Callable[[], PanelHost],
        command: Callable[[], Sequence[str]],
        modes: ChatModes,
        send_next: Callable[[str], None],
        view: Callable[[Sequence[RenderableType]], None],
    ) -> None:
        self._screen = screen
        self._host = host
        self._command = command
        self._modes = modes
        self._send_next = send_next  # after the turn
        self._view = view
        self._reason: str | None = None  # typed already, for an agent that asks for it next
        self._pages: dict[str, str] = {}
        self.elicitation = Elicitation(self._form, self._page, self._completed)

    async def permission(self, question: Question) -> PermissionChoice:
        """Ask for permission."""
        subject = self._subject(question)
        panel = PermissionPanel(subject, view=self._view)
        try:
            await self._host().ask(panel)
        finally:
            self._screen.asked_about = None
        permit = panel.answer
        if permit.all_edits:
            self._modes.accept_edits()
        if permit.reason is not None:
            self._give_reason(permit, question)
        # What was allowed or denied once shows by itself.
        if permit.scope is not None or permit.all_edits or permit.reason or (not permit.allow and not question.request):
            self._screen.note([_answered(subject, permit)], "call")
        verdict = Verdict.ALLOW if permit.allow else Verdict.DENY
        rules = tuple(Rule.parse(text, "user") for text in permit.rules)
        return PermissionChoice(verdict, permit.scope, option_id=permit.option_id, message=permit.reason, rules=rules)

    def _give_reason(self, permit: PermissionAnswer, question: Question) -> None:
        """Keep the reason for the question that follows, or send it as the next prompt."""
        if permit.option_id in ASKS_WHY:
            self._reason = permit.reason
        elif permit.reason is not None and question.request is not None:
            self._send_next(permit.reason)

    def _subject(self, question: Question) -> PermissionSubject:
        cwd, ruling, action = question.action.cwd, question.ruling, question.action
        decided = ruling.rule is not None or ruling.source == DOUBT  # "always" would change nothing
        if question.request is not None:
            self._screen.asked_about = self._screen.asked(question.request.tool_call).key
            engine = antiphon_meta(question.request.meta).get("askedBy")
            subject = subject_of(
                question.request.tool_call,
                question.request.options,
                cwd,
                asked_by=one_line(engine) if isinstance(engine, str) else "",
            )
        else:
            subject = PermissionSubject(*_without_request(question, cwd))
        return replace(
            subject,
            cwd=cwd,
            why=ruling.why if decided else "",
            always=() if decided else tuple(rule.text for rule in question.always),
            edits=action.kind in FILE_KINDS and not decided and self._modes.current is PolicyMode.DEFAULT,
            check=lambda rules: _problem(rules, question),
        )

    async def _form(self, request: v1.FormElicitation) -> Elicited:
        reason, self._reason = self._reason, None
        [*fields] = request.requested_schema.properties
        if reason is not None and len(fields) == 1:
            return v1.Accepted({fields[0]: reason})
        panel = FormPanel(request.message, request.requested_schema)
        call = self._screen.transcript.call(request.tool_call_id) if request.tool_call_id else None
        if call is not None and antiphon_meta(request.meta).get("wholeCall") is True:
            self._screen.in_forms.add(call.key)
        await self._host().ask(panel)
        rows: list[RenderableType] = [Text(one_line(request.message), "bold")]
        match panel.answer:
            case v1.Accepted():
                rows += [Text(f"  {line}", "dim") for line in panel.answered()]
            case _:
                rows.append(Text("  not answered", "dim"))
        self._screen.note(rows, "form")
        return panel.answer

    async def _page(self, request: v1.UrlElicitation) -> Elicited:
        panel = PagePanel(request.message, request.url)
        await self._host().ask(panel)
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

    async def login(self, methods: Sequence[v1.AuthMethod], title: str = "") -> str | None:
        """Let the user sign in."""
        host = self._host()
        return await choose_login(methods, self._command(), host.ask, host.in_terminal, self._screen.note, title)


def _problem(texts: Sequence[str], question: Question) -> str:
    """Return what is wrong with rules that the user has changed; empty if they can be remembered."""
    try:
        rules = [Rule.parse(text, "user") for text in texts]
    except RuleError as error:
        return error.sentence
    if reason := next(filter(None, map(closed_reason, rules)), None):
        return f"it would not count: {reason}"
    return "" if covers(question.action, rules) else "it would not allow this call"


def _without_request(question: Question, cwd: str) -> tuple[str, tuple[RenderableType, ...]]:
    """Return title and content of an action for which the agent sent no request."""
    action = question.action
    if question.content is not None:
        names = ", ".join(exact(shown_path(path, cwd)) for path in action.paths)
        before = question.before
        change = change_of(before.text if before is not None and before.there else None, question.content)
        texts = diff_texts(change, path=action.paths[0] if action.paths else "", first=1)
        more = len(texts) - WRITTEN_LINES
        rest = [Text(f"… {more} more lines", "dim")] if more > 0 else []
        return f"Write {names}  {change.counts}", (*texts[:WRITTEN_LINES], *rest)
    body: list[RenderableType] = []
    if action.command is not None:
        body.append(Text(f"$ {exact(action.command)}", "bold"))
    elif action.words:
        body.append(Text(f"$ {' '.join(exact(shlex.quote(word)) for word in action.words)}", "bold"))
    body += [Text(exact(shown_path(path, cwd))) for path in action.paths]
    title = "Run a command" if action.kind == "execute" else one_line(action.name or action.kind).capitalize()
    return title, tuple(body)


def _answered(subject: PermissionSubject, permit: PermissionAnswer) -> RenderableType:
    mark, style = ("+", "done") if permit.allow else ("-", "error")
    words = "allowed" if permit.allow else "denied"
    if permit.all_edits:
        return Text.assemble((mark, style), (" you allowed all edits of this session; /mode changes it", "dim"))
    if permit.scope is None:
        because = f": {one_line(permit.reason)}" if permit.reason else f": {subject.title}"
        return Text.assemble((mark, style), (f" you {words} it{because}", "dim"))
    where = {"session": "in this session", "project": "in this project", "everywhere": "everywhere"}[permit.scope]
    rules = ", ".join(exact(rule) for rule in permit.rules or subject.always)
    return Text.assemble((mark, style), (f" you {words} it, always {where}: {rules}", "dim"))
