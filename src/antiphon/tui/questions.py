"""The agent's questions in the chat: permission, forms, pages and sign-in."""

import asyncio
import webbrowser
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from antiphon.catalogue.known import keys_for
from antiphon.client.handlers import Elicitation, Elicited
from antiphon.config.environment import environment_for
from antiphon.permission.gate import PermissionChoice, Question
from antiphon.policy import Verdict
from antiphon.protocol import v1
from antiphon.transcript.presentation import shown_path
from antiphon.tui.blocks import bounded, change_of, command_of, diff_texts, unfenced
from antiphon.tui.form_panel import FormPanel
from antiphon.tui.painter import Painter, clean, exact, one_line
from antiphon.tui.panels import CommandPanel, KeyPanel, Leaving, MenuPanel, PagePanel, Panel, fit, keys_text
from antiphon.tui.screen import ChatScreen

__all__ = [
    "ChatQuestions",
    "PanelHost",
    "PermissionAnswer",
    "PermissionPanel",
    "PermissionSubject",
    "Scope",
    "choose_login",
    "subject_of",
]

Scope: TypeAlias = Literal["session", "project", "everywhere"]

SCOPES: Final[dict[str, Scope]] = {"s": "session", "p": "project", "e": "everywhere"}


@dataclass(frozen=True, slots=True)
class PermissionAnswer:
    """The answer of the user."""

    allow: bool
    scope: Scope | None = None
    option_id: str | None = None
    """One of the agent's own options, if that is what was chosen."""


@dataclass(frozen=True, slots=True)
class PermissionSubject:
    """What a permission request is about."""

    title: str
    body: tuple[RenderableType, ...] = ()
    why: str = ""
    """Why it is asked at all."""
    always: tuple[str, ...] = ()
    """The rules that "always" would remember; none: it cannot be remembered."""
    options: Sequence[v1.PermissionOption] = ()


def subject_of(
    call: v1.ToolCallPatch,
    options: Sequence[v1.PermissionOption],
    cwd: str,
    *,
    why: str = "",
    always: tuple[str, ...] = (),
) -> PermissionSubject:
    """Return what a permission request is about: the exact command or change, besides its title."""
    title = (
        one_line(call.title) if isinstance(call.title, str) else one_line(str(call.name or call.kind or "a tool call"))
    )
    body: list[RenderableType] = []
    command = command_of(call.raw_input)
    if command is not None:
        body += [
            Text(f"$ {line}" if number == 0 else f"  {line}", "bold")
            for number, line in enumerate(exact(command).splitlines())
        ]
    for item in call.content if isinstance(call.content, list) else ():
        match item:
            case v1.Diff(path=path, new_text=new, old_text=old):
                change = change_of(old, new)
                counts = f"+{change.added} -{change.removed}" + ("" if old is not None else "  new file")
                body += [Text.assemble((exact(shown_path(path, cwd)), "bold"), f"  {counts}"), *diff_texts(change)]
            case v1.ContentItem(content=v1.TextBlock(text=text)):
                body.append(Text(clean(unfenced(text))))
            case _:
                pass
    shown = (
        {item.path for item in call.content if isinstance(item, v1.Diff)} if isinstance(call.content, list) else set()
    )
    places = [place.path for place in call.locations or ()] if isinstance(call.locations, list) else []
    body += [Text(exact(shown_path(path, cwd))) for path in dict.fromkeys(places) if path not in shown]
    if not body:
        body += _input_texts(call.raw_input)
    return PermissionSubject(title, tuple(body), why, always, tuple(options))


def _input_texts(raw: object) -> list[RenderableType]:
    """Return the input of a call of which nothing else is known."""
    if not isinstance(raw, dict):
        return []
    return [
        Text.assemble((f"{exact(str(name))}: ", "dim"), exact(value if isinstance(value, str) else repr(value)))
        for name, value in raw.items()
    ]


class PermissionPanel(KeyPanel[PermissionAnswer]):
    """The panel of a permission request. `view` shows all of it if it does not fit."""

    def __init__(
        self, subject: PermissionSubject, view: Callable[[list[RenderableType]], None] = lambda things: None
    ) -> None:
        super().__init__(PermissionAnswer(allow=False))
        self.subject = subject
        self._view = view
        self._hidden = 0
        self._always: bool | None = None  # what is about to be remembered, once the scope is known
        kinds = Counter(option.kind.meaning for option in subject.options if option.kind.known)
        self._plain = all(count == 1 for count in kinds.values()) and all(
            option.kind.known for option in subject.options
        )
        self._lasting = bool(subject.always)

    def lines(self, painter: Painter, height: int) -> list[str]:
        """Return title, content and keys."""
        above: list[RenderableType] = [Text.assemble(("Allow?  ", "bold yellow"), (self.subject.title, "bold"))]
        if self.subject.why:
            above.append(Text(one_line(self.subject.why), "dim"))
        body = painter.all(self.body())
        lines, self._hidden = fit(painter, above, body, self._below(), height)
        return lines

    def body(self) -> list[RenderableType]:
        """Return the whole content."""
        return [Padding(thing, (0, 0, 0, 2), expand=False) for thing in self.subject.body]

    def _below(self) -> list[RenderableType]:
        if self._always is not None:
            rules = "  ".join(exact(rule) for rule in self.subject.always)
            verb = "allow" if self._always else "deny"
            scopes = [("s", "this session"), ("p", "this project"), ("e", "everywhere"), ("esc", "back")]
            return [Text.assemble(f"Always {verb} ", (rules, "bold"), " in"), keys_text(scopes)]
        below: list[RenderableType] = []
        if not self._plain:
            for number, option in enumerate(self.subject.options[:9], 1):
                below.append(Text.assemble((f" {number} ", "reverse"), f" {one_line(option.name)}"))
        keys = [("y", "yes"), *([("a", "always")] if self._lasting else []), ("n", "no")]
        keys += [("N", "never")] if self._lasting else []
        keys += [("v", "view all")] if self._hidden else []
        return [*below, keys_text(keys)]

    def answers(self, key: str) -> bool:
        """Return whether a key answers; always and never ask for the scope first."""
        if self._always is not None:
            return key in SCOPES
        numbered = not self._plain and key.isascii() and key.isdigit()
        return (
            key in ("y", "n")
            or (key in ("a", "N") and self._lasting)
            or (key == "v" and bool(self._hidden))
            or (numbered and 0 < int(key) <= min(len(self.subject.options), 9))
        )

    def denies(self, key: str) -> bool:
        """Return whether the key denies, or only shows more."""
        return self._always is None and key in ("n", "v")

    def take(self, key: str) -> None:
        """Take the answer, or ask for the scope."""
        if self._always is not None:
            self.give(PermissionAnswer(self._always, SCOPES[key]))
        elif key in ("y", "n"):
            self.give(PermissionAnswer(key == "y"))
        elif key in ("a", "N"):
            self._always = key == "a"
        elif key == "v":
            self._view(self.body())
        else:
            option = self.subject.options[int(key) - 1]
            self.give(
                PermissionAnswer(option.kind.known and str(option.kind).startswith("allow"), option_id=option.option_id)
            )

    def stray(self) -> None:
        """Go back to the first step after typed words."""
        self._always = None

    def leave(self, how: Leaving) -> None:
        """Go back one step; in the first step, deny."""
        if self._always is not None and how == "escape":
            self._always = None
        else:
            self.give(PermissionAnswer(allow=False))


# --- sign-in ---------------------------------------------------------------------------------------------------------

Show = Callable[[Panel], Awaitable[None]]
RunInTerminal = Callable[[list[str], dict[str, str]], Awaitable[int]]
Say = Callable[[str], None]


async def choose_login(
    methods: Sequence[v1.AuthMethod], command: Sequence[str], show: Show, run: RunInTerminal, say: Say
) -> str | None:
    """Let the user choose a login method, run it if it needs this terminal, and return its id; None if there is none."""
    if not methods:
        say("The agent wants a login and offers no way to do it here: sign in with its own program first.")
        return None
    menu = MenuPanel("The agent wants you to sign in", [_row(method) for method in methods])
    await show(menu)
    chosen = next((method for method in methods if _id(method) == menu.answer), None)
    if chosen is None or menu.answer is None:
        return None
    if isinstance(chosen, v1.EnvVarAuth):
        names = ", ".join(str(each.get("name", "?")) for each in chosen.vars if isinstance(each, dict))
        say(f"Set {names or 'what it needs'} in the environment and start the chat again.")
        return None
    program = _program(chosen, command)
    if program is not None:
        words, extra = program
        asked = CommandPanel("To sign in, the agent wants this command to be run in your terminal", words, extra)
        await show(asked)
        if not asked.answer:
            say("The login was not started.")
            return None
        try:
            status = await run(words, environment_for(keys_for(command), own=extra))
        except OSError as error:
            say(f"The login could not be started: {error.strerror or error}")
            return None
        if status:
            say(f"The login ended with {status}.")
            return None
    return menu.answer


def _program(method: v1.AuthMethod, command: Sequence[str]) -> tuple[list[str], dict[str, str]] | None:
    """Return the command of a login in the terminal. Some agents send it in `_meta` of a plain method."""
    if isinstance(method, v1.TerminalAuth):
        return [*command, *method.args], method.env
    meta = getattr(method, "meta", None)
    login = meta.get("terminal-auth") if isinstance(meta, Mapping) else None
    if not isinstance(login, Mapping) or not isinstance(login.get("command"), str):
        return None
    words, env = login.get("args") or [], login.get("env") or {}
    if not isinstance(words, list) or not isinstance(env, Mapping):
        return None
    return [login["command"], *map(str, words)], {str(name): str(value) for name, value in env.items()}


def _id(method: v1.AuthMethod) -> str | None:
    return None if isinstance(method, v1.Unknown) else method.id


def _row(method: v1.AuthMethod) -> tuple[str, str, str | None]:
    if isinstance(method, v1.Unknown):
        return "", f"[{method.kind}]", None
    return method.id, one_line(method.name), method.description


# --- the questions of a chat -----------------------------------------------------------------------------------------

WRITTEN_LINES: Final = 400
"""Lines of a file about to be written that are shown."""


class PanelHost(Protocol):
    """What can show a panel until it is answered."""

    async def ask(self, panel: Panel) -> None:
        """Show a panel until it is answered."""

    async def in_terminal(self, command: list[str], env: dict[str, str]) -> int:
        """Run a program in the terminal."""


class ChatQuestions:
    """Asks the questions of the agent in one chat."""

    def __init__(self, screen: ChatScreen, host: Callable[[], PanelHost], command: Callable[[], Sequence[str]]) -> None:
        self._screen = screen
        self._host = host
        self._command = command
        self._pages: dict[str, str] = {}
        self.elicitation = Elicitation(self._form, self._page, self._completed)

    async def permission(self, question: Question) -> PermissionChoice:
        """Ask for permission."""
        subject = self._subject(question)
        panel = PermissionPanel(subject, view=lambda things: self._screen.note(things, "view"))
        try:
            await self._host().ask(panel)
        finally:
            self._screen.asked_about = None
        permit = panel.answer
        if permit.scope is not None or not permit.allow:  # what was allowed once shows by itself
            self._screen.note([_answered(subject, permit)], "call")
        verdict = Verdict.ALLOW if permit.allow else Verdict.DENY
        return PermissionChoice(verdict, permit.scope, option_id=permit.option_id)

    def _subject(self, question: Question) -> PermissionSubject:
        cwd, why = question.action.cwd, question.ruling.why
        always = tuple(rule.text for rule in question.always)
        if question.request is not None:
            self._screen.asked_about = self._screen.asked(question.request.tool_call).key
            return subject_of(question.request.tool_call, question.request.options, cwd, why=why, always=always)
        return PermissionSubject(*_without_request(question, cwd), why, always)

    async def _form(self, request: v1.FormElicitation) -> Elicited:
        panel = FormPanel(request.message, request.requested_schema)
        await self._host().ask(panel)
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

    async def login(self, methods: Sequence[v1.AuthMethod]) -> str | None:
        """Let the user sign in."""
        host = self._host()
        return await choose_login(methods, self._command(), host.ask, host.in_terminal, self._screen.note)


def _without_request(question: Question, cwd: str) -> tuple[str, tuple[RenderableType, ...]]:
    """Return title and content of an action for which the agent sent no request."""
    action = question.action
    if question.content is not None:
        lines = [Text(f"+ {line}", "green") for line in exact(question.content).splitlines()]
        names = [Text(exact(shown_path(path, cwd)), "bold") for path in action.paths]
        return "Write a file", (*names, *bounded(lines, WRITTEN_LINES))
    body: list[RenderableType] = []
    if action.command is not None:
        body.append(Text(f"$ {exact(action.command)}", "bold"))
    elif action.words:
        body.append(Text("$ " + " ".join(exact(word) for word in _quoted(action.words)), "bold"))
    body += [Text(exact(shown_path(path, cwd))) for path in action.paths]
    return ("Run a command" if action.kind == "execute" else one_line(action.name or action.kind).capitalize()), tuple(
        body
    )


def _quoted(words: Sequence[str]) -> list[str]:
    import shlex

    return [shlex.quote(word) for word in words]


def _answered(subject: PermissionSubject, permit: PermissionAnswer) -> RenderableType:
    mark, style = ("+", "green") if permit.allow else ("-", "red")
    words = "allowed" if permit.allow else "denied"
    if permit.scope is None:
        return Text.assemble((mark, style), (f" you {words} it: {subject.title}", "dim"))
    where = {"session": "in this session", "project": "in this project", "everywhere": "everywhere"}[permit.scope]
    rules = ", ".join(exact(rule) for rule in subject.always)
    return Text.assemble((mark, style), (f" you {words} it, always {where}: {rules}", "dim"))
