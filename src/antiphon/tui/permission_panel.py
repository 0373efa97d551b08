"""The question for permission: shows exactly what is about to happen, and takes one key. Pure."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from antiphon.protocol import v1
from antiphon.tui.calls import command_of, near, unfenced
from antiphon.tui.clean import clean, exact, one_line
from antiphon.tui.diffs import change_of, diff_texts
from antiphon.tui.painting import Painter
from antiphon.tui.panels import Keyed, Leaving, fit, keys_text

__all__ = ["PermissionPanel", "Permit", "Scope", "Subject", "subject_of"]

Scope: TypeAlias = Literal["session", "project", "everywhere"]

SCOPES: Final[dict[str, Scope]] = {"s": "session", "p": "project", "e": "everywhere"}


@dataclass(frozen=True, slots=True)
class Permit:
    """What the user said."""

    allow: bool
    scope: Scope | None = None
    option_id: str | None = None
    """One of the agent's own options, if that is what was chosen."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What permission is asked for."""

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
) -> Subject:
    """What an agent asks permission for: the command or the change itself, not only what the agent calls it."""
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
                body += [Text.assemble((exact(near(path, cwd)), "bold"), f"  {counts}"), *diff_texts(change)]
            case v1.ContentItem(content=v1.TextBlock(text=text)):
                body.append(Text(clean(unfenced(text))))
            case _:
                pass
    shown = (
        {item.path for item in call.content if isinstance(item, v1.Diff)} if isinstance(call.content, list) else set()
    )
    places = [place.path for place in call.locations or ()] if isinstance(call.locations, list) else []
    body += [Text(exact(near(path, cwd))) for path in dict.fromkeys(places) if path not in shown]
    if not body:
        body += _input_texts(call.raw_input)
    return Subject(title, tuple(body), why, always, tuple(options))


def _input_texts(raw: object) -> list[RenderableType]:
    """The input of a call of which nothing else is known."""
    if not isinstance(raw, dict):
        return []
    return [
        Text.assemble((f"{exact(str(name))}: ", "dim"), exact(value if isinstance(value, str) else repr(value)))
        for name, value in raw.items()
    ]


class PermissionPanel(Keyed[Permit]):
    """May this happen? `view` is given all of it when the user wants to see what did not fit."""

    def __init__(self, subject: Subject, view: Callable[[list[RenderableType]], None] = lambda things: None) -> None:
        super().__init__(Permit(allow=False))
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
        """What it is, the thing itself, the keys."""
        above: list[RenderableType] = [Text.assemble(("Allow?  ", "bold yellow"), (self.subject.title, "bold"))]
        if self.subject.why:
            above.append(Text(one_line(self.subject.why), "dim"))
        body = painter.all(self.body())
        lines, self._hidden = fit(painter, above, body, self._below(), height)
        return lines

    def body(self) -> list[RenderableType]:
        """The thing itself, whole."""
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
        """One key answers; always and never ask for how long first."""
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
        """A no, or a look at all of it."""
        return self._always is None and key in ("n", "v")

    def take(self, key: str) -> None:
        """Answer, or ask for how long."""
        if self._always is not None:
            self.give(Permit(self._always, SCOPES[key]))
        elif key in ("y", "n"):
            self.give(Permit(key == "y"))
        elif key in ("a", "N"):
            self._always = key == "a"
        elif key == "v":
            self._view(self.body())
        else:
            option = self.subject.options[int(key) - 1]
            self.give(Permit(option.kind.known and str(option.kind).startswith("allow"), option_id=option.option_id))

    def stray(self) -> None:
        """Words were typed: nothing is to be remembered."""
        self._always = None

    def leave(self, how: Leaving) -> None:
        """Esc goes back one step, and from the first it is a no."""
        if self._always is not None and how == "escape":
            self._always = None
        else:
            self.give(Permit(allow=False))
