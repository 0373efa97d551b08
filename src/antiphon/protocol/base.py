"""What every message shares: field names in camelCase, absent fields left out, `_meta` carried, unknown kinds kept.

How forgiving a field is stands in its type, because the schema sets it field by field:

- an optional field falls back to its default when its value is wrong (the schema's `default-on-error`);
- `Exact[T]` does not: a wrong value is an error, because guessing would change what happens;
- `Items[T]` is a list that loses its bad items and keeps the rest (`skip-invalid-items`);
- `Skip[T]` loses its bad items too, but a value that is no list is an error (`skip-invalid-items` alone);
- `OrDefault[T]` takes `null` for its default (`default-on-null`), and anything else wrong is an error.

The strict decoder knows nothing of this. Only when it has refused a message does `salvage` read these marks.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from antiphon.errors import LocalProtocolError

__all__ = [
    "BAD_INPUT",
    "EXACT",
    "ITEMS",
    "OR_DEFAULT",
    "SKIP",
    "UNSET",
    "UNSTABLE",
    "Choice",
    "Exact",
    "Items",
    "Json",
    "JsonObject",
    "Kind",
    "Legacy",
    "Model",
    "OrDefault",
    "Raw",
    "Skip",
    "Uint",
    "Unknown",
    "UnsetType",
    "Unstable",
    "decoder",
    "encode",
    "encode_into",
    "unstable",
]  # fmt: skip

BAD_INPUT = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What the decoder raises on input that it refuses (`ValidationError` is a `DecodeError`)."""

T = TypeVar("T")
Json: TypeAlias = Any
"""A JSON value of any shape."""
Kind: TypeAlias = Any
"""A type as annotations write it: a class, a union, `Annotated`."""
JsonObject = dict[str, Json]

EXACT, ITEMS, SKIP, OR_DEFAULT, UNSTABLE, LEGACY = "exact", "items", "skip", "or-default", "unstable", "legacy"
Exact = Annotated[T, EXACT]
Items = Annotated[list[T], ITEMS]
Skip = Annotated[list[T], SKIP]
OrDefault = Annotated[T, OR_DEFAULT]
Unstable = Annotated[T, UNSTABLE]
"""A field that only the unstable schema has: it may change or go."""
Legacy = Annotated[T, LEGACY]
"""A field that no schema has (any more) but real peers or the older documents send. We read it and never send it unasked."""

Uint = Annotated[int, msgspec.Meta(ge=0)]


class Model(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of every message part.

    Frozen, so it can be shared; one that holds no list or dictionary can be hashed, others raise TypeError. `gc=False`, because frozen trees have no cycles and the
    collector would otherwise walk every chunk of a stream. A required field has no default: `omit_defaults` would drop it.
    """

    __unstable__: ClassVar[bool] = False

    meta: JsonObject | None = msgspec.field(default=None, name="_meta")


def unstable(model: type[T]) -> type[T]:
    """Mark a type that only the unstable schema has."""
    type.__setattr__(model, "__unstable__", True)
    return model


class Unknown:
    """A member of a union that we have no type for, kept as the bytes it came in; it goes out unchanged."""

    __slots__ = ("kind", "raw")
    __match_args__ = ("kind",)

    def __init__(self, kind: str, raw: bytes) -> None:
        self.kind = kind
        self.raw = raw

    @property
    def fields(self) -> JsonObject:
        """The decoded value of the bytes, made on demand."""
        return msgspec.json.decode(self.raw, type=JsonObject)

    def __eq__(self, other: object) -> bool:
        return self.raw == other.raw if isinstance(other, Unknown) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.raw)

    def __repr__(self) -> str:
        return f"Unknown(kind={self.kind!r}, raw={self.raw[:80]!r}{'…' if len(self.raw) > 80 else ''})"


class _ChoiceMeta(type):
    """Makes `isinstance(x, Union)` true for the members: msgspec checks what its hook returned, and users may too."""

    def __instancecheck__(cls, value: object) -> bool:
        return issubclass(cls, Choice) and isinstance(value, (*cls.members(), Unknown))


class Choice(metaclass=_ChoiceMeta):
    """A union whose members carry no common tag, which msgspec cannot distinguish by itself.

    Subclasses define how to distinguish them: by the value of `tag`, then by the presence of a key, else `otherwise`. At run time the subclass
    stands in for the union in annotations; type checkers see the real union (`if TYPE_CHECKING`).
    """

    tag: ClassVar[str | None] = None
    by_tag: ClassVar[Mapping[str, type]] = {}
    by_key: ClassVar[Mapping[str, type]] = {}
    otherwise: ClassVar[type | None] = None
    otherwise_tag: ClassVar[str | None] = None
    """The word that some peers write where the schema wants no tag."""

    @classmethod
    def members(cls) -> tuple[type, ...]:
        """Every type that the union may hold."""
        return (*cls.by_tag.values(), *cls.by_key.values(), *((cls.otherwise,) if cls.otherwise else ()))

    @classmethod
    def pick(cls, fields: Mapping[str, Json], tag: object) -> type | None:
        """The member for these fields; `None` where the tag is unknown."""
        if isinstance(tag, str) and tag in cls.by_tag:
            return cls.by_tag[tag]
        for key, member in cls.by_key.items():
            if key in fields:
                return member
        return cls.otherwise if not isinstance(tag, str) or tag == cls.otherwise_tag else None


def _decode_choice(kind: type, value: Json) -> Json:
    """msgspec's hook for types it does not know: our untagged unions."""
    if not issubclass(kind, Choice) or not isinstance(value, dict):
        raise msgspec.ValidationError(f"Expected `object`, got `{type(value).__name__}`")
    member = kind.pick(value, value.get(kind.tag) if kind.tag else None)
    if member is None:
        raise msgspec.ValidationError(f"Unknown kind of {kind.__name__}")
    return msgspec.convert(value, member, dec_hook=_decode_choice)


def _encode_unknown(value: object) -> Raw:
    if isinstance(value, Unknown):
        return Raw(value.raw)
    raise LocalProtocolError(f"{type(value).__name__} cannot be sent: it has no JSON form (here: {value!r:.60})")


def decoder(kind: type[T]) -> "msgspec.json.Decoder[T]":
    """The strict decoder for a type of ours."""
    return msgspec.json.Decoder(kind, dec_hook=_decode_choice)


_encoder = msgspec.json.Encoder(enc_hook=_encode_unknown)
encode = _encoder.encode
encode_into = _encoder.encode_into
