"""What a dialect rule is, and the few tools that rules are made of.

A rule looks at the top-level fields of one half of a method and returns them in the schema's words, or None if it sees nothing of
its dialect. Fields stay raw bytes until a rule needs to open one, so everything it does not touch survives as it came.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from antiphon.protocol.dialects.hints import Half, Reply

__all__ = ["Fields", "Rule", "fields_of", "items_of", "opened", "packed"]

Fields = dict[str, Raw]


class Rule(NamedTuple):
    """One row of the table."""

    name: str
    source: str
    """Who says it this way."""
    method: str
    half: Half
    apply: Callable[[Fields], Fields | None]
    hint: bytes | None = None
    """A byte string that betrays the dialect in messages which are legal to the strict decoder (see `hints`)."""
    reply: Reply | None = None
    """How to answer a question that this rule understood, if the dialect wants other words."""


_fields = msgspec.json.Decoder(Fields)
_items = msgspec.json.Decoder(list[Raw])


def fields_of(raw: Raw | bytes | None) -> Fields | None:
    """The fields of an object; None for anything else."""
    if raw is None or not bytes(raw).lstrip().startswith(b"{"):
        return None
    return _fields.decode(raw)


def items_of(raw: Raw | bytes | None) -> list[Raw] | None:
    """The items of a list; None for anything else."""
    if raw is None or not bytes(raw).lstrip().startswith(b"["):
        return None
    return _items.decode(raw)


def opened(raw: Raw | bytes | None) -> Any:
    """The plain value of a small part; None where there is none."""
    return None if raw is None else msgspec.json.decode(raw)


def packed(value: object) -> Raw:
    """A value as raw JSON again."""
    return Raw(msgspec.json.encode(value))
