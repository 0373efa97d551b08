"""Fields of a form as lines to type: how each is asked for, and what a typed line means. Reads and writes nothing itself."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from antiphon.protocol import v1

__all__ = ["Field", "Wrong", "fields_of"]

_YES: Final = {"y": True, "yes": True, "true": True, "on": True, "n": False, "no": False, "false": False, "off": False}
_FORMATS: Final = {
    v1.StringFormat.EMAIL: re.compile(r"[^@\s]+@[^@\s]+"),
    v1.StringFormat.URI: re.compile(r"[A-Za-z][\w+.-]*:\S+"),
    v1.StringFormat.DATE: re.compile(r"\d{4}-\d\d-\d\d"),
    v1.StringFormat.DATE_TIME: re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d\S*"),
}


class Wrong(ValueError):
    """The typed text does not fit the field; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a form."""

    key: str
    asked: v1.Property
    required: bool
    choices: dict[str, str] = field(default_factory=dict)
    """The values to choose from → the words for them."""

    @property
    def prompt(self) -> str:
        """What stands before the cursor."""
        title = getattr(self.asked, "title", None) or self.key
        default = _shown(getattr(self.asked, "default", None))
        return f"{title}{' *' if self.required else ''}{f' [{default}]' if default else ''}"

    @property
    def explained(self) -> Iterator[str]:
        """What to know before typing."""
        if description := getattr(self.asked, "description", None):
            yield str(description)
        for number, (value, words) in enumerate(self.choices.items(), 1):
            yield f"{number}  {words}{f' ({value})' if words != value else ''}"
        if isinstance(self.asked, v1.MultiSelectProperty):
            yield "several, with commas between them"

    def read(self, line: str) -> v1.ContentValue | None:
        """What a line means; None: nothing, and it need not.

        Raises:
            Wrong: it does not fit.
        """
        if not line:
            default: v1.ContentValue | None = getattr(self.asked, "default", None)
            if default is None and self.required:
                raise Wrong("this cannot be left out")
            return default
        match self.asked:
            case v1.BooleanProperty():
                if line.lower() not in _YES:
                    raise Wrong("answer yes or no")
                return _YES[line.lower()]
            case v1.IntegerProperty() | v1.NumberProperty():
                return _number(line, self.asked)
            case v1.MultiSelectProperty():
                return _several(line, self.asked, self.choices)
            case v1.StringProperty():
                return _text(line, self.asked, self.choices)
            case _:
                return line


def fields_of(form: v1.Form) -> list[Field]:
    """The fields of a form, in its order."""
    required = form.required or []
    return [Field(key, each, key in required, _choices(each)) for key, each in form.properties.items()]


def _choices(field: v1.Property) -> dict[str, str]:
    match field:
        case v1.StringProperty(enum=list(values)):
            return {value: value for value in values}
        case v1.StringProperty(one_of=list(options)) | v1.MultiSelectProperty(items=v1.TitledItems(any_of=options)):
            return {
                option.const: f"{option.title}{f': {option.description}' if option.description else ''}"
                for option in options
            }
        case v1.MultiSelectProperty(items=v1.StringItems(enum=values)):
            return {value: value for value in values}
        case _:
            return {}


def _number(line: str, field: v1.IntegerProperty | v1.NumberProperty) -> int | float:
    try:
        value = int(line) if isinstance(field, v1.IntegerProperty) else float(line)
    except ValueError:
        raise Wrong(
            "this is not a whole number" if isinstance(field, v1.IntegerProperty) else "this is not a number"
        ) from None
    if value != value or (field.minimum is not None and value < field.minimum):
        raise Wrong(f"at least {field.minimum}")
    if field.maximum is not None and value > field.maximum:
        raise Wrong(f"at most {field.maximum}")
    return value


def _one(line: str, choices: dict[str, str]) -> str:
    """A choice, by its number, its value or its words."""
    values = list(choices)
    if line in values:
        return line
    if line.isascii() and line.isdigit() and 1 <= int(line) <= len(values):
        return values[int(line) - 1]
    for value, words in choices.items():
        if words.lower().partition(":")[0] == line.lower():
            return value
    raise Wrong(f"choose one of {', '.join(values)}, or a number")


def _several(line: str, field: v1.MultiSelectProperty, choices: dict[str, str]) -> list[str]:
    chosen = list(dict.fromkeys(_one(word.strip(), choices) for word in line.split(",") if word.strip()))
    if len(chosen) < (field.min_items or 0):
        raise Wrong(f"choose at least {field.min_items}")
    if field.max_items is not None and len(chosen) > field.max_items:
        raise Wrong(f"choose at most {field.max_items}")
    return chosen


def _text(line: str, field: v1.StringProperty, choices: dict[str, str]) -> str:
    if choices:
        return _one(line, choices)
    if len(line) < (field.min_length or 0):
        raise Wrong(f"at least {field.min_length} letters")
    if field.max_length is not None and len(line) > field.max_length:
        raise Wrong(f"at most {field.max_length} letters")
    if field.format in _FORMATS and not _FORMATS[field.format].fullmatch(line):
        raise Wrong(f"this is no {field.format}")
    # A pattern is the agent's to check: some of them would keep us busy for ever.
    return line


def _shown(default: object) -> str:
    match default:
        case None:
            return ""
        case bool():
            return "yes" if default else "no"
        case list():
            return ",".join(map(str, default))
        case _:
            return str(default)
