"""The question whether an agent may do something: a title, the thing itself once, and one line of keys. Pure.

Rule 1: the command, the change or the address is shown exactly, and once. What was cut can be viewed whole.
Rule 2: what "always" would remember is shown before it is chosen, and can be changed. The agent itself gets "once".
Rule 3: an answer of the agent's own is offered by a number, and only if no key of ours means the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from rich.cells import cell_len
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from antiphon.protocol import v1
from antiphon.transcript.presentation import antiphon_meta, shown_path
from antiphon.tui.blocks import command_of, unfenced
from antiphon.tui.output.diff import HangingText, change_of, file_texts, indented
from antiphon.tui.painter import Painter, clean, exact, one_line
from antiphon.tui.panels import PAUSE, SEPARATOR, SHORTEST, KeyPanel, Leaving, fit, key_lines

__all__ = ["ASKS_WHY", "PermissionAnswer", "PermissionPanel", "PermissionSubject", "Scope", "subject_of"]

Scope: TypeAlias = Literal["session", "project", "everywhere"]

SCOPES: Final[dict[str, Scope]] = {"s": "session", "p": "project", "e": "everywhere"}

ALWAYS_OF_OURS: Final = "antiphon_always_"
"""The ids of the options that the joint agent adds for other clients begin with this: here a key means the same."""

WITH_WORDS: Final = "reject_with_message"
"""The id of an option after which the agent asks for the reason."""

CHANGE_PLAN: Final = "change_plan"
"""The id of the same for a plan."""

ASKS_WHY: Final = (WITH_WORDS, CHANGE_PLAN)

AND_STOP: Final = "reject_and_stop"
"""The id of an option that ends the turn, too."""

PLAIN_WORDS: Final = 3
"""Words of the agent's own name for a yes, such as `Allow this once`, that say no more than our key does."""

LONGEST_RULE: Final = 40
"""Characters of a rule in the line of keys. The next step shows it whole."""

SHORTEST_RULE: Final = 16
"""Characters of a rule for which there is to be a place in one row of keys."""

TITLE_ROWS: Final = 2
"""Rows of a title. A longer one is cut, and stands whole in the content."""

ASKING: Final = "Allow?  "
"""Stands before the title."""

_Kind = v1.PermissionOptionKind


@dataclass(frozen=True, slots=True)
class PermissionAnswer:
    """The answer of the user."""

    allow: bool
    scope: Scope | None = None
    option_id: str | None = None
    """One of the agent's own options, if that is what was chosen."""
    rules: tuple[str, ...] = ()
    """The rules to remember, if the user has changed them."""
    all_edits: bool = False
    """Whether edits are allowed from now on, in this session."""
    reason: str | None = None
    """Why not, in the user's words."""


@dataclass(frozen=True, slots=True)
class PermissionSubject:
    """What a permission request is about."""

    title: str
    body: tuple[RenderableType, ...] = ()
    why: str = ""
    """Why it is asked, if a rule or a doubt is the reason."""
    always: tuple[str, ...] = ()
    """The rules that "always" would remember; none: it cannot be remembered."""
    options: Sequence[v1.PermissionOption] = ()
    cwd: str = ""
    """The directory of the session. The line of keys shows paths below it as they are seen from there."""
    edits: bool = False
    """Whether it is an edit, so that all edits of the session can be allowed with it."""
    check: Callable[[Sequence[str]], str] = lambda rules: ""
    """Returns what is wrong with rules that the user has changed."""


def subject_of(
    call: v1.ToolCallPatch,
    options: Sequence[v1.PermissionOption],
    cwd: str,
    *,
    asked_by: str = "",
) -> PermissionSubject:
    """Return what a permission request is about: the exact command or change, besides its title."""
    content = call.content if isinstance(call.content, list) else []
    title = (
        one_line(call.title) if isinstance(call.title, str) else one_line(str(call.name or call.kind or "a tool call"))
    )
    notes = [clean(unfenced(text)).strip() for text in _texts(content)]
    body: list[RenderableType] = []
    command = command_of(call.raw_input)
    if command is not None:
        marks = ["$", *" " * command.count("\n")]
        body += [Text(f"{mark} {line}", "bold") for mark, line in zip(marks, exact(command).splitlines(), strict=False)]
        if _repeats(title, command):
            title = notes.pop(0) if notes and len(notes[0]) <= 60 and "\n" not in notes[0] else "Run a command"
    diffs = [item for item in content if isinstance(item, v1.Diff)]
    for item in diffs:
        head, *lines = file_texts(item.path, item.old_text, item.new_text, cwd, style="bold")
        if len(diffs) == 1 and exact(shown_path(item.path, cwd)) in title:
            title = f"{title}  {change_of(item.old_text, item.new_text).counts}"
        else:
            body.append(head)
        body += lines
    body += [Text(note) for note in notes if note and note not in title]
    known = " ".join([title, command or "", *(shown_path(item.path, cwd) for item in diffs)])
    places = [place.path for place in call.locations or ()] if isinstance(call.locations, list) else []
    body += [Text(path) for place in dict.fromkeys(places) if (path := exact(shown_path(place, cwd))) not in known]
    if not body:
        body += _input_texts(call.raw_input)
    names_it = asked_by and not title.startswith(f"{asked_by}: ")
    return PermissionSubject(f"{asked_by}: {title}" if names_it else title, tuple(body), options=tuple(options))


def _texts(content: Sequence[v1.ToolContent]) -> list[str]:
    """Return the texts of a call, without those that are only for clients that show nothing else of a question."""
    return [
        item.content.text
        for item in content
        if isinstance(item, v1.ContentItem)
        and isinstance(item.content, v1.TextBlock)
        and antiphon_meta(item.meta).get("question") != "engine"
    ]


def _repeats(title: str, command: str) -> bool:
    """Whether a title is the command itself, perhaps cut or in quotes."""
    words, line = title.strip("`$ …"), one_line(command)
    return line in title or (len(words) > 3 and words in line)


def _input_texts(raw: object) -> list[RenderableType]:
    """Return the input of a call of which nothing else is known."""
    if not isinstance(raw, dict):
        return []
    return [
        Text.assemble((f"{exact(str(name))}: ", "dim"), exact(value if isinstance(value, str) else repr(value)))
        for name, value in raw.items()
    ]


_Step: TypeAlias = Literal["ask", "scope", "rule", "reason"]


class PermissionPanel(KeyPanel[PermissionAnswer]):
    """The panel of a permission request. `view` shows all of it if it does not fit."""

    half_screen = True

    def __init__(
        self, subject: PermissionSubject, view: Callable[[list[RenderableType]], None] = lambda things: None
    ) -> None:
        super().__init__(PermissionAnswer(allow=False))
        self.subject = subject
        self._view = view
        self._hidden = False  # whether something is not shown whole
        self._painted: tuple[object, list[str], int] = (None, [], 0)
        """The rows of the content that were painted, what for, and of how many things they are."""
        self._step: _Step = "ask"
        self._allow = True  # what is about to be remembered, once the scope is known
        self._rules = subject.always
        self._changed: list[str] = []
        self._wrong = ""
        self._refused = ""
        """The rule that was typed last and is wrong: it stays on the line, to be mended."""
        self._numbered, self._choosing = _numbered(subject)
        self._yes = "" if self._choosing else _own_yes(subject)
        """What the agent calls a yes, if that says more than `once`."""

    # What is shown.

    def lines(self, painter: Painter, height: int) -> list[str]:
        """Return title, content and keys."""
        width, is_cut = painter.width, False
        if self._step in ("scope", "rule"):
            above: list[RenderableType] = [Text(f"Always {'allow' if self._allow else 'deny'}", "question")]
            body: list[RenderableType] = [Text(exact(rule), "bold") for rule in self._rules]
        else:
            title, is_cut = self._title(width)
            above, body = [title], [*self._whole_title(width), *self.subject.body, *self._why()]
        if self._wrong:
            above.append(Text(f"✗ {self._wrong}", "error"))
        shown, beyond = self._rows_of(painter, body, height)
        below = self._below(width)
        if (self._numbered or self._yes) and len(painter.all([*above, *below])) + SHORTEST > height:
            below, is_cut = self._below(width, in_rows=True), True
        lines, hidden = fit(painter, above, shown, below, height, beyond)
        if self._step == "ask" and (is_cut or hidden > 0) is not self._hidden:
            self._hidden = is_cut or hidden > 0  # there is one key more, or one less
            return self.lines(painter, height)
        return lines

    def _title(self, width: int) -> tuple[Text, bool]:
        """Return the title in few rows, and whether it was cut."""
        title = self.subject.title
        is_cut = len(ASKING) + cell_len(title) > TITLE_ROWS * width
        if is_cut:
            title = f"{title[: width - len(ASKING) - 1]}…"
        return Text.assemble((ASKING, "question"), (title, "bold")), is_cut

    def _why(self) -> list[RenderableType]:
        return [Text(f"Asked because: {one_line(self.subject.why)}", "dim")] if self.subject.why else []

    def _whole_title(self, width: int) -> list[RenderableType]:
        return [Text(self.subject.title, "bold")] if self._title(width)[1] else []

    def _rows_of(self, painter: Painter, body: Sequence[RenderableType], height: int) -> tuple[list[str], int]:
        """Return the first rows of the content, and how many lines there are besides. What is not in sight is not painted."""
        key = (painter, painter.width, self._step, self._rules)
        what_for, rows, done = self._painted
        if what_for != key:
            rows, done = [], 0
        while len(rows) <= height and done < len(body):
            rows += painter.paint(_indented(body[done]))
            done += 1
        self._painted = (key, rows, done)
        return rows, len(body) - done

    def body(self) -> list[RenderableType]:
        """Return the whole content, with all that is cut where there is not much of a place."""
        options = [f"{number} {one_line(option.name)}" for number, option in enumerate(self._numbered, 1)]
        content = map(_indented, [*self.subject.body, *self._why()])
        return [Text(self.subject.title, "bold"), *content, *map(Text, options)]

    def _below(self, width: int, *, in_rows: bool = False) -> list[RenderableType]:
        numbers = [(str(number), one_line(option.name)) for number, option in enumerate(self._numbered, 1)]
        if self._yes:
            numbers.insert(0, ("y", self._yes))
        if in_rows:
            most = max(width // 2 - 6, 12)
            short = [(key, name if len(name) <= most else f"{name[: most - 1]}…") for key, name in numbers]
            options: list[RenderableType] = [*key_lines(short, width)]
        else:
            options = [Text.assemble((key, "key"), f" {name}") for key, name in numbers]
        return [
            *(options if self._step == "ask" else []),
            *key_lines([key for key in self.keys(width) if key[1]], width),
        ]

    def keys(self, width: int = 80) -> list[tuple[str, str]]:
        """Return the keys of this step, but for numbers, and what they mean."""
        if self._step == "scope":
            scopes = [("s", "this session"), ("p", "this project"), ("e", "everywhere")]
            other = [("c", "change it"), ("d", "deny instead")] if self._allow else [("d", "allow instead")]
            return [*scopes, *other, ("esc", "back")]
        if self._step in ("rule", "reason"):
            return [("enter", "take it" if self._step == "rule" else "send"), ("esc", "back")]
        last = [("v", "view")] if self._hidden else []
        if self._choosing:
            return [("n", "no"), *last]
        lasting = [("a", f"always {self._rule_shown(width)}")] if self._lasting else []
        edits = [("A", "all edits")] if self.subject.edits else []
        return [("y", "" if self._yes else "once"), *lasting, *edits, ("n", "no"), ("r", "no, because …"), *last]

    def _rule_shown(self, width: int) -> str:
        """Return the rule that `a` would remember, as far as it fits into the line of keys."""
        others = ["y once", "a always ", *(["A all edits"] if self.subject.edits else []), "n no", "r no, because …"]
        left = width - len(SEPARATOR.join([*others, "v view"]))
        if left < SHORTEST_RULE:  # there are two rows of keys in any case
            left = width - len(SEPARATOR.join(others[:2]))
        most = min(left, LONGEST_RULE)
        rule = one_line(exact(self._rules[0])).replace(f"({self.subject.cwd}/", "(") + (
            f" +{len(self._rules) - 1}" if len(self._rules) > 1 else ""
        )
        return rule if len(rule) <= most else rule[: most - 1] + "…"

    @property
    def _lasting(self) -> bool:
        return bool(self._rules) and not self._choosing

    @property
    def typed(self) -> str | None:
        """The text before the input line, where a rule or a reason is typed."""
        return {"rule": "Rule: ", "reason": "Because: "}.get(self._step)

    @property
    def prefill(self) -> str:
        """The rule that is being changed."""
        if self._step == "rule" and self._wrong:
            return self._refused
        at = len(self._changed)
        return self._rules[at] if self._step == "rule" and at < len(self._rules) else ""

    # What answers.

    def answers(self, key: str) -> bool:
        """Return whether a key answers; always asks for the scope first."""
        if key.isascii() and key.isdigit() and self._step == "ask":
            return 0 < int(key) <= len(self._numbered)
        return any(key == shown for shown, _ in self.keys())

    def denies(self, key: str) -> bool:
        """Return whether the key denies, or only shows more."""
        return key in ("n", "v", "r") if self._step == "ask" else key in ("c", "d")

    def take(self, key: str) -> None:
        """Take the answer, or go on to the next step."""
        match self._step, key:
            case "scope", "c":
                self._step, self._changed, self._wrong = "rule", [], ""
            case "scope", "d":
                self._allow = not self._allow
            case "scope", _:
                rules = self._rules if self._rules != self.subject.always else ()
                self.give(PermissionAnswer(self._allow, SCOPES[key], rules=rules))
            case _, "y" | "n":
                self.give(PermissionAnswer(key == "y"))
            case _, "a":
                self._step, self._allow = "scope", True
            case _, "A":
                self.give(PermissionAnswer(allow=True, all_edits=True))
            case _, "r":
                self._step = "reason"
            case _, "v":
                self._view(self.body())
            case _:
                option = self._numbered[int(key) - 1]
                allows = option.kind.known and str(option.kind).startswith("allow")
                self.give(PermissionAnswer(allows, option_id=option.option_id))

    def enter(self, text: str) -> None:
        """Take a typed rule or reason."""
        if self._step == "reason":
            self.give(_with_reason(self.subject.options, text.strip()))
            return
        self._pressed_at = -PAUSE  # the line is over, and the next key is no letter of it
        changed = [*self._changed, text.strip()]
        rules = tuple(rule for rule in (*changed, *self._rules[len(changed) :]) if rule)
        self._wrong = self.subject.check(rules)
        if self._wrong:
            self._refused = text.strip()
            return
        self._changed = changed
        if len(changed) == len(self._rules):
            self._rules, self._step = rules, "scope"

    def stray(self) -> None:
        """Go back to the first step after typed words."""
        self._step = "ask"

    def leave(self, how: Leaving) -> None:
        """Go back one step; in the first step, deny."""
        if self._step != "ask" and how == "escape":
            self._step, self._wrong = "scope" if self._step == "rule" else "ask", ""
        else:
            self.give(PermissionAnswer(allow=False))


def _indented(thing: RenderableType) -> RenderableType:
    return indented(thing) if isinstance(thing, HangingText | Text) else Padding(thing, (0, 0, 0, 2), expand=False)


def _numbered(subject: PermissionSubject) -> tuple[list[v1.PermissionOption], bool]:
    """Return the options that are chosen by a number, and whether there is no other way to allow it."""
    options = [option for option in subject.options if not option.option_id.startswith(ALWAYS_OF_OURS)]
    once = [option for option in options if option.kind.known and option.kind == _Kind.ALLOW_ONCE]
    if options and (len(once) != 1 or any(not option.kind.known for option in options)):
        return options[:9], True
    others = [option for option in options if option not in once and option.option_id not in (*ASKS_WHY, AND_STOP)]
    no = [option for option in others if option.kind == _Kind.REJECT_ONCE][:1]
    lasting = (_Kind.ALLOW_ALWAYS, _Kind.REJECT_ALWAYS) if subject.always else ()
    return [option for option in others if option not in no and option.kind not in lasting][:9], False


def _own_yes(subject: PermissionSubject) -> str:
    """Return the agent's own name for a yes, such as `Yes, and ask before each edit`; empty if it is an ordinary one."""
    once = [option for option in subject.options if option.kind.known and option.kind == _Kind.ALLOW_ONCE]
    name = one_line(once[0].name) if len(once) == 1 else ""
    return name if len(name.split()) > PLAIN_WORDS else ""


def _with_reason(options: Sequence[v1.PermissionOption], reason: str) -> PermissionAnswer:
    """Return a no with a reason: by the agent's own option for it, or by one that ends the turn, so that the reason is the next prompt."""
    ids = {option.option_id for option in options}
    option_id = next((id for id in (*ASKS_WHY, AND_STOP) if id in ids), None) if reason else None
    return PermissionAnswer(allow=False, option_id=option_id, reason=reason or None)
