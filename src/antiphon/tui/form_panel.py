"""A form, asked field by field on the input line. Pure: reads and checks what was typed."""

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.text import Text

from antiphon.protocol import v1
from antiphon.protocol.v1.elicitation import ContentValue
from antiphon.transcript.presentation import antiphon_meta
from antiphon.tui.painter import Painter, clean, exact, one_line
from antiphon.tui.panels import Leaving, fit, key_lines

if TYPE_CHECKING:
    from rich.console import RenderableType

    from antiphon.client.handlers import Elicited

__all__ = ["FieldProblem", "FormPanel", "default_of", "read_field", "with_own_words"]

YES: Final = frozenset({"y", "yes", "true", "on", "1"})
NO: Final = frozenset({"n", "no", "false", "off", "0"})

_FORMATS: Final = {
    v1.StringFormat.EMAIL: (re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+"), "an e-mail address"),
    v1.StringFormat.URI: (re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+"), "an address, such as https://…"),
    v1.StringFormat.DATE: (re.compile(r"\d{4}-\d\d-\d\d"), "a date, such as 2026-01-31"),
    v1.StringFormat.DATE_TIME: (
        re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*"),
        "a date and time, such as 2026-01-31T12:00:00Z",
    ),
}


class FieldProblem(Exception):
    """The typed value does not fit the field; the message is the reason."""


def choices_of(field: v1.Property) -> list[tuple[str, str, str | None]]:
    """Return the values to choose from (value, name, description); empty if anything may be typed."""
    match field:
        case v1.StringProperty(one_of=list(options)) | v1.MultiSelectProperty(items=v1.TitledItems(any_of=options)):
            return [(option.const, option.title, option.description) for option in options]
        case v1.StringProperty(enum=list(values)) | v1.MultiSelectProperty(items=v1.StringItems(enum=values)):
            return [(value, value, None) for value in values]
        case _:
            return []


def default_of(field: v1.Property) -> ContentValue | None:
    """Return the default of a field."""
    return None if isinstance(field, v1.Unknown) else field.default


def read_field(field: v1.Property, text: str) -> ContentValue:
    """Return the typed text as a value of the field.

    Raises:
        FieldProblem: it is not one that the field takes.
    """
    match field:
        case v1.BooleanProperty():
            return _truth(text)
        case v1.IntegerProperty() | v1.NumberProperty():
            return _number(field, text)
        case v1.MultiSelectProperty():
            return _several(field, text)
        case v1.StringProperty() if choices := choices_of(field):
            return _one(choices, text)
        case v1.StringProperty():
            return _string(field, text)
        case _:
            return text


def _truth(text: str) -> bool:
    word = text.strip().lower()
    if word not in YES | NO:
        raise FieldProblem("answer y or n")
    return word in YES


def _number(field: v1.IntegerProperty | v1.NumberProperty, text: str) -> int | float:
    try:
        value = int(text) if isinstance(field, v1.IntegerProperty) else float(text)
    except ValueError:
        raise FieldProblem("a whole number" if isinstance(field, v1.IntegerProperty) else "a number") from None
    if not math.isfinite(value):
        raise FieldProblem("a number")
    if field.minimum is not None and value < field.minimum:
        raise FieldProblem(f"at least {field.minimum:g}")
    if field.maximum is not None and value > field.maximum:
        raise FieldProblem(f"at most {field.maximum:g}")
    return value


def _one(choices: Sequence[tuple[str, str, str | None]], text: str) -> str:
    word = text.strip()
    if word.isdigit() and 0 < int(word) <= len(choices):
        return choices[int(word) - 1][0]
    for value, name, _ in choices:
        if word in (value, name) or word.lower() in (value.lower(), name.lower()):
            return value
    raise FieldProblem(f"one of them, by its number from 1 to {len(choices)} or by its name")


def _several(field: v1.MultiSelectProperty, text: str) -> list[str]:
    choices = choices_of(field)
    words = [word for word in re.split(r"[,\s]+", text.strip()) if word]
    values = list(dict.fromkeys(_one(choices, word) for word in words))
    if field.min_items is not None and len(values) < field.min_items:
        raise FieldProblem(f"at least {field.min_items} of them")
    if field.max_items is not None and len(values) > field.max_items:
        raise FieldProblem(f"at most {field.max_items} of them")
    return values


def _string(field: v1.StringProperty, text: str) -> str:
    if field.min_length is not None and len(text) < field.min_length:
        raise FieldProblem(f"at least {field.min_length} characters")
    if field.max_length is not None and len(text) > field.max_length:
        raise FieldProblem(f"at most {field.max_length} characters")
    if field.format is not None and (form := _FORMATS.get(field.format.meaning)) and not form[0].fullmatch(text):
        raise FieldProblem(form[1])
    if field.pattern is not None and _searches(field.pattern, text) is False:
        raise FieldProblem(f"it has to match {exact(field.pattern)}")
    return text


def _searches(pattern: str, text: str) -> bool | None:
    try:
        return re.search(pattern, text[:1000]) is not None
    except re.error:  # JavaScript knows patterns that Python does not: the agent will judge
        return None


_WITH_NOTE: Final = re.compile(r"(\d{1,2})\s*:\s*(\S.*)", re.DOTALL)


def with_own_words(field: v1.Property, text: str) -> tuple[str | list[str], str]:
    """Return what was chosen and the words beside it, for a field of choices that takes both.

    Raises:
        FieldProblem: it is a number that means nothing.
    """
    if noted := _WITH_NOTE.fullmatch(text):
        chosen = read_field(field, noted[1])
        return chosen if isinstance(chosen, list) else str(chosen), noted[2]
    if isinstance(field, v1.MultiSelectProperty):
        numbers = re.fullmatch(r"[\d,\s]+", text)
        picked, own = list[str](), list[str]()
        for part in re.split(r"[,\s]+" if numbers else ",", text):
            try:
                picked += [_one(choices_of(field), part)] if part.strip() else []
            except FieldProblem:
                if numbers:
                    raise
                own.append(part.strip())
        return list(dict.fromkeys(picked)), ", ".join(own)
    try:
        return str(read_field(field, text)), ""
    except FieldProblem:
        if text.isdigit():
            raise
        return "", text


def _others(form: v1.Form) -> dict[str, str]:
    """Return the fields of choices that have a field for the user's own words beside them, and the names of those."""
    marked = {
        str(antiphon_meta(getattr(field, "meta", None)).get("other", "")): name
        for name, field in form.properties.items()
    }
    return {name: marked[name] for name, field in form.properties.items() if name in marked and choices_of(field)}


class FormPanel:
    """A form, field by field. Enter takes the default, Esc declines, Ctrl-C cancels."""

    half_screen = False
    prefill = ""

    def __init__(self, message: str, form: v1.Form) -> None:
        self.done = False
        self.answer: Elicited = v1.Dismissed()
        self.values: dict[str, ContentValue] = {}
        self._message = message
        self._form = form
        self._others = _others(form)
        self._names = [name for name in form.properties if name not in self._others.values()]
        self._place = 0
        self._wrong = ""

    @property
    def _field(self) -> v1.Property | None:
        return self._form.properties[self._names[self._place]] if self._place < len(self._names) else None

    @property
    def typed(self) -> str | None:
        """The name of the field, and its default."""
        if (field := self._field) is None:
            return "Go on? (y yes, n no): "
        name = self._names[self._place]
        title = one_line(getattr(field, "title", None) or name)
        default = default_of(field)
        return f"{title} [{_shown(default)}]: " if default is not None else f"{title}: "

    def lines(self, painter: Painter, height: int) -> list[str]:
        """Return the question, the answers so far, and the field."""
        above: list[RenderableType] = [Text(clean(self._message), "question")]
        if self._form.title and self._place == 0:
            above.append(Text(one_line(self._form.title), "dim"))
        body: list[RenderableType] = []
        field = self._field
        if field is not None and (about := getattr(field, "description", None)):
            body.append(Text(clean(about), "dim"))
        for number, (_, name, description) in enumerate(choices_of(field) if field is not None else (), 1):
            body.append(
                Text.assemble(
                    (f" {number} ", "key"),
                    f" {one_line(name)}",
                    (f"  {one_line(description)}" if description else "", "dim"),
                )
            )
        if self._place < len(self._names) and self._names[self._place] in self._others:
            several = "numbers" if isinstance(field, v1.MultiSelectProperty) else "a number"
            body.append(Text(f"Type {several}, your own answer, or 1: and a note.", "dim"))
        below: list[RenderableType] = [Text(f"✗ {self._wrong}", "error")] if self._wrong else []
        count = f"{self._place + 1} of {len(self._names)}   " if len(self._names) > 1 else ""
        ends = self._place + 1 >= len(self._names)
        keys = key_lines([("enter", "send" if ends else "next"), ("esc", "decline")], painter.width - len(count))
        keys[0] = Text.assemble((count, "dim"), keys[0])
        return fit(painter, above, painter.all(body), [*below, *keys], height)[0]

    @property
    def due(self) -> float | None:
        """Nothing: only lines answer a form."""
        return None

    def key(self, key: str, at: float) -> None:
        """Nothing: keys go to the input line."""

    def settle(self, at: float) -> None:
        """Nothing: only lines answer a form."""

    def enter(self, text: str) -> None:
        """Take the value of a field, or show what is wrong with it."""
        if (field := self._field) is None:
            self._confirm(text)
            return
        name = self._names[self._place]
        try:
            if text.strip() and name in self._others:
                self._choose_or_say(name, field, text.strip())
            elif text.strip():
                self.values[name] = read_field(field, text)
            elif (default := default_of(field)) is not None:
                self.values[name] = default
            elif name in (self._form.required or ()):
                raise FieldProblem("this one has to be answered")
        except FieldProblem as wrong:
            self._wrong = str(wrong)
            return
        self._wrong = ""
        self._place += 1
        if self._place >= len(self._names):
            self._finish()

    def _choose_or_say(self, name: str, field: v1.Property, text: str) -> None:
        """Take choices, an answer in the user's own words, or a choice with a note."""
        chosen, own = with_own_words(field, text)
        if chosen:
            self.values[name] = chosen
        if own:
            self.values[self._others[name]] = own

    def _confirm(self, text: str) -> None:
        """Take the answer to a form without fields: yes or no."""
        word = text.strip().lower()
        if word in ("y", "yes"):
            self._finish()
        elif word in ("n", "no"):
            self.leave("escape")
        else:
            self._wrong = "answer y or n"

    def answered(self) -> list[str]:
        """Return the fields that have a value, by their titles, with the names of what was chosen."""
        lines: dict[str, str] = {}
        beside = {other: name for name, other in self._others.items()}
        for name, value in self.values.items():
            main = beside.get(name, name)
            field = self._form.properties[main]
            names = {chosen: shown for chosen, shown, _ in choices_of(field)}
            values = value if isinstance(value, list) else [value]
            words = ", ".join(exact(names.get(str(each), _shown(each))) for each in values)
            title = one_line(getattr(field, "title", None) or main)
            lines[main] = f"{lines[main]}, {words}" if main in lines else f"{title}: {words}"
        return list(lines.values())

    def leave(self, how: Leaving) -> None:
        """Esc declines, Ctrl-C cancels."""
        self.answer, self.done = v1.Declined() if how == "escape" else v1.Dismissed(), True

    def _finish(self) -> None:
        self.answer, self.done = v1.Accepted(dict(self.values)), True


def _shown(value: ContentValue) -> str:
    match value:
        case bool():
            return "y" if value else "n"
        case list():
            return ", ".join(value)
        case _:
            return one_line(str(value))
