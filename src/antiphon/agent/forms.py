"""Whether answers fit the form that was asked for. Pure; what a client sends is not believed."""

from collections.abc import Iterator, Mapping

from antiphon.protocol.v1.elicitation import (
    BooleanProperty,
    ContentValue,
    Form,
    IntegerProperty,
    MultiSelectProperty,
    NumberProperty,
    Property,
    StringItems,
    StringProperty,
    TitledItems,
)

__all__ = ["misfits"]


def misfits(answers: Mapping[str, ContentValue], form: Form) -> Iterator[str]:
    """What is wrong with the answers, a sentence each. Answers to what was not asked are wrong too."""
    for name in form.required or ():
        if name not in answers:
            yield f"`{name}` is missing"
    for name, value in answers.items():
        field = form.properties.get(name)
        if field is None:
            yield f"`{name}` was not asked for"
        elif (wrong := _wrong(value, field)) is not None:
            yield f"`{name}` {wrong}"


def _wrong(value: ContentValue, field: Property) -> str | None:
    match field:
        case StringProperty():
            return _wrong_text(value, field)
        case BooleanProperty():
            return None if isinstance(value, bool) else "is neither true nor false"
        case IntegerProperty():
            whole = isinstance(value, int) and not isinstance(value, bool)
            return _out_of_range(value, field) if whole else "is not a whole number"
        case NumberProperty():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return _out_of_range(value, field) if number else "is not a number"
        case MultiSelectProperty():
            return _wrong_choices(value, field)
        case _:
            return None  # a kind from tomorrow: whoever asks for it knows what to expect


def _wrong_text(value: ContentValue, field: StringProperty) -> str | None:
    if not isinstance(value, str):
        return "is not text"
    offered = field.enum if field.enum is not None else [each.const for each in field.one_of or ()]
    if offered and value not in offered:
        return "is none of the choices"
    if len(value) < (field.min_length or 0):
        return "is too short"
    if field.max_length is not None and len(value) > field.max_length:
        return "is too long"
    return None


def _out_of_range(value: object, field: IntegerProperty | NumberProperty) -> str | None:
    assert isinstance(value, int | float)  # noqa: S101 - both callers looked
    if field.minimum is not None and value < field.minimum:
        return f"is below {field.minimum:g}"
    if field.maximum is not None and value > field.maximum:
        return f"is above {field.maximum:g}"
    return None


def _wrong_choices(value: ContentValue, field: MultiSelectProperty) -> str | None:
    if not isinstance(value, list):
        return "is not a list"
    match field.items:
        case StringItems(enum=offered):
            known = set(offered)
        case TitledItems(any_of=titled):
            known = {each.const for each in titled}
        case _:
            return None
    if not known.issuperset(value):
        return "has a choice that is not on offer"
    few, many = field.min_items or 0, field.max_items if field.max_items is not None else len(value)
    return None if few <= len(value) <= many else "has the wrong number of choices"
