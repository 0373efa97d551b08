"""A second chance for a message that the strict decoder refused, by the schema's own rules of leniency.

Works on the bytes, level by level, so that what it does not understand (`Unknown`) keeps the very bytes it came in.
`base` defines which mark on a field allows what.
"""

import re
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Final, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw, UnsetType, ValidationError

from antiphon.protocol.base import BAD_INPUT, EXACT, ITEMS, OR_DEFAULT, SKIP, Choice, Kind, Unknown, decoder

__all__ = ["MAX_READS", "MAX_VALUES", "is_crowded", "salvage", "salvage_with_notes"]

T = TypeVar("T")

MAX_VALUES: Final = 50_000
"""Values in a message that is read again where it is wrong. Each costs an object here and a look in Python: in a line of 64 MiB there is
room for 30 million, which took minutes and gigabytes. A message with more is read strictly, and refused if that fails."""

MAX_READS: Final = 5_000
"""Wrong values in a message that are looked into. After that a wrong item is dropped with all that follow it in its list."""

BATCH: Final = 256
"""Items that are decoded at once: mostly few of a list are wrong, and the others cost next to nothing this way."""

MAX_NOTES: Final = 20
"""Most notes kept on one message. They are for a log, and a peer could send a list of a million bad items."""

MAX_NOTE: Final = 200
"""Longest note, in characters: it may hold words that the peer made up."""

_SEPARATORS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|,', re.DOTALL)
"""Strings, in which nothing separates anything, and commas."""


class Notes(list[str]):
    """What is noted of a message, and how many more wrong values are looked into."""

    def __init__(self) -> None:
        super().__init__()
        self.left = MAX_READS

    def spend(self, path: str) -> None:
        """Count a wrong value.

        Raises:
            msgspec.ValidationError: there were too many.
        """
        if self.left <= 0:
            raise ValidationError(f"More than {MAX_READS} wrong values - at `{path}`")
        self.left -= 1


_cached_decoder = cache(decoder)
_object = msgspec.json.Decoder(dict[str, Raw])
_list = msgspec.json.Decoder(list[Raw])
_any = msgspec.json.Decoder()


def salvage(wire: bytes | Raw, kind: type[T]) -> T:
    """What can be understood of `wire` as `kind`.

    Raises:
        msgspec.ValidationError: a part that may not be guessed is missing or wrong.
    """
    return salvage_with_notes(wire, kind)[0]


def salvage_with_notes(wire: bytes | Raw, kind: type[T]) -> tuple[T, tuple[str, ...]]:
    """The same, and a note for each thing that was dropped, defaulted or kept unread."""
    if is_crowded(wire):
        return decoder(kind).decode(wire), ()
    notes = Notes()
    value = cast("T", _read(wire, kind, "$", notes))
    return value, tuple(notes)


def is_crowded(wire: bytes | Raw) -> bool:
    """Whether a message has too many values to be looked into one by one."""
    data = bytes(wire)
    if data.count(b",") < MAX_VALUES:
        return False
    commas = 0
    for found in _SEPARATORS.finditer(data):
        if data[found.start()] == 44:  # a comma
            commas += 1
            if commas >= MAX_VALUES:
                return True
    return False


def _read(raw: bytes | Raw, kind: Kind, path: str, notes: Notes) -> object:
    try:
        return _cached_decoder(kind).decode(raw)
    except BAD_INPUT as error:
        refusal = error
    notes.spend(path)
    origin = _origin(kind)
    if origin is Annotated:
        inner, *marks = get_args(kind)
        if any(isinstance(mark, msgspec.Meta) for mark in marks):  # a limit, which the bare type would not have
            return _whole_number(raw, kind, path, notes, refusal)
        return _read(raw, inner, path, notes)
    if origin in (Union, UnionType):
        return _read_union(raw, kind, path, notes, refusal)
    if origin is list:
        (item,) = get_args(kind)
        return _read_list(_items(raw, path), item, path, notes)
    if origin is dict:
        return {key: _read(each, get_args(kind)[1], f"{path}.{key}", notes) for key, each in _fields(raw, path).items()}
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _read_struct(_fields(raw, path), kind, path, notes)
    if isinstance(kind, type) and issubclass(kind, Choice):
        return _read_choice(raw, kind, path, notes)
    if kind is int:
        return _whole_number(raw, kind, path, notes, refusal)
    raise _at(path, refusal)


def _fields(raw: bytes | Raw, path: str) -> dict[str, Raw]:
    return _opened(raw, _object, path)


def _items(raw: bytes | Raw, path: str) -> list[Raw]:
    return _opened(raw, _list, path)


def _opened(raw: bytes | Raw, strict: "msgspec.json.Decoder[T]", path: str) -> T:
    """Read a part strictly; the error has its path."""
    try:
        return strict.decode(raw)
    except ValidationError as error:
        raise _at(path, error) from None


def _read_union(raw: bytes | Raw, kind: Kind, path: str, notes: Notes, refusal: Exception) -> object:
    members = [member for member in get_args(kind) if member not in (NoneType, UnsetType)]
    if len(members) == 1:
        return _read(raw, members[0], path, notes)
    tagged = {m.__struct_config__.tag: m for m in members if isinstance(m, type) and issubclass(m, msgspec.Struct)}
    if len(tagged) < len(members):
        raise _at(path, refusal)
    fields = _fields(raw, path)
    tag_field = next(iter(tagged.values())).__struct_config__.tag_field
    tag = _tag(fields, tag_field)
    if tag is None:
        raise ValidationError(f"Object has no `{tag_field}` for its kind - at `{path}`")
    if tag in tagged:
        return _read_struct(fields, tagged[tag], path, notes)
    return _unknown(tag, raw, path, notes)


def _read_choice(raw: bytes | Raw, kind: type[Choice], path: str, notes: Notes) -> object:
    fields = _fields(raw, path)
    tag = _tag(fields, kind.tag) if kind.tag else None
    member = kind.pick(fields, tag)
    if member is not None:
        return _read_struct(fields, member, path, notes)
    if tag is None:
        raise ValidationError(f"Object has nothing that determines its kind - at `{path}`")
    return _unknown(tag, raw, path, notes)


def _unknown(tag: str, raw: bytes | Raw, path: str, notes: Notes) -> Unknown:
    _note(notes, f"unknown kind `{tag}` kept at {path}")
    return Unknown(tag, bytes(raw))


def _tag(fields: dict[str, Raw], name: str | None) -> str | None:
    if name is None or name not in fields:
        return None
    tag = msgspec.json.decode(fields[name])
    return tag if isinstance(tag, str) else None


_DEFAULT: Final = object()
"""Stands for the field's own default, which the struct fills in."""


class _Field(NamedTuple):
    name: str
    wire_name: str
    kind: Kind
    required: bool
    mark: str | None


@cache
def _plan(kind: type) -> tuple[_Field, ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        _Field(f.name, f.encode_name, hints[f.name], f.required, _mark(hints[f.name]))
        for f in msgspec.structs.fields(kind)
    )


def _origin(kind: Kind) -> object:
    return get_origin(kind)


def _mark(kind: Kind) -> str | None:
    """The leniency mark of a field, also where it stands inside `… | None`."""
    if _origin(kind) is Annotated:
        inner, *marks = get_args(kind)
        return next((mark for mark in marks if mark in (EXACT, ITEMS, SKIP, OR_DEFAULT)), None) or _mark(inner)
    if _origin(kind) in (Union, UnionType):
        return next((mark for mark in map(_mark, get_args(kind)) if mark), None)
    return None


def _read_struct(fields: dict[str, Raw], kind: Kind, path: str, notes: Notes) -> object:
    values: dict[str, object] = {}
    for field in _plan(kind):
        raw = fields.get(field.wire_name)
        if raw is not None:
            value = _read_field(raw, field, f"{path}.{field.wire_name}", notes)
            if value is not _DEFAULT:
                values[field.name] = value
            elif field.required:
                values[field.name] = []  # the only required fields with a default are lists
        elif field.required:
            raise ValidationError(f"Object missing required field `{field.wire_name}` - at `{path}`")
    return kind(**values)


def _read_field(raw: Raw, field: _Field, path: str, notes: Notes) -> object:
    if field.mark == OR_DEFAULT and bytes(raw) == b"null":
        _note(notes, f"null at {path}: the default is used")
        return _DEFAULT
    before = len(notes)
    try:
        if field.mark in (ITEMS, SKIP) and bytes(raw) != b"null":
            return _read_items(raw, field, path, notes)
        return _read(raw, field.kind, path, notes)
    except BAD_INPUT:
        if field.mark in (EXACT, OR_DEFAULT) or (field.required and field.mark != ITEMS):
            raise
        del notes[before:]
        _note(notes, f"wrong value at {path}: the default is used")
        return _DEFAULT


def _read_list(
    raws: list[Raw], item: Kind, path: str, notes: Notes, dropped: "list[int] | None" = None
) -> list[object]:
    """Read the items of a list, many at once where they are right. With `dropped`, a wrong one is left out and its place noted there."""
    whole = _cached_decoder(list[item])
    kept: list[object] = []
    for start in range(0, len(raws), BATCH):
        batch = raws[start : start + BATCH]
        try:
            kept += whole.decode(b"[" + b",".join(batch) + b"]")
            continue
        except BAD_INPUT:
            pass
        for i, each in enumerate(batch, start):
            before = len(notes)
            try:
                kept.append(_read(each, item, f"{path}[{i}]", notes))
            except BAD_INPUT:
                if dropped is None:
                    raise
                del notes[before:]
                if notes.left <= 0:
                    dropped += range(i, len(raws))
                    return kept
                dropped.append(i)
    return kept


def _read_items(raw: Raw, field: _Field, path: str, notes: Notes) -> list[object]:
    dropped: list[int] = []
    kept = _read_list(_items(raw, path), _item_kind(field.kind), path, notes, dropped)
    if len(dropped) == 1:
        _note(notes, f"invalid item dropped at {path}[{dropped[0]}]")
    elif dropped:
        _note(notes, f"{len(dropped)} invalid items dropped at {path}, the first at [{dropped[0]}]")
    return kept


def _item_kind(kind: Kind) -> Kind:
    if _origin(kind) is list:
        return get_args(kind)[0]
    return next(found for found in map(_item_kind, get_args(kind)) if found is not None) if get_args(kind) else None


def _whole_number(raw: bytes | Raw, kind: Kind, path: str, notes: Notes, refusal: Exception) -> object:
    """`3.0` is an integer to JSON Schema, and to many a peer."""
    number = _opened(raw, _any, path)
    if not isinstance(number, float) or not number.is_integer():
        raise _at(path, refusal)
    whole = _opened(b"%d" % int(number), _cached_decoder(kind), path)
    _note(notes, f"whole number with a fraction at {path}")
    return whole


def _note(notes: Notes, text: str) -> None:
    if len(notes) < MAX_NOTES:
        notes.append(text if len(text) <= MAX_NOTE else f"{text[: MAX_NOTE - 1]}…")
    elif len(notes) == MAX_NOTES:
        notes.append("and more")


def _at(path: str, refusal: Exception) -> ValidationError:
    reason = "nested too deeply" if isinstance(refusal, RecursionError) else str(refusal).split(" - at ")[0]
    return ValidationError(f"{reason} - at `{path}`")
