"""Decoded JSON of a peer, read without trust: a value of the wrong type counts as missing."""

from collections import Counter
from typing import Any, TypeAlias

import msgspec

__all__ = ["Json", "JsonObject", "as_object", "as_text", "objects_in", "shown", "texts_in", "twice_in"]

Json: TypeAlias = Any
"""A decoded JSON value of a peer, of any shape."""

JsonObject: TypeAlias = dict[str, Json]
"""A decoded JSON object of a peer: its members may be anything."""


def as_object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def as_text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def objects_in(value: object) -> list[JsonObject]:
    """The objects in a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def texts_in(value: object, name: str) -> list[str]:
    """The texts that the objects in a list have under a name."""
    return [one[name] for one in objects_in(value) if isinstance(one.get(name), str)]


def twice_in(texts: list[str]) -> list[str]:
    """Those that are in a list more than once."""
    return [text for text, count in Counter(texts).items() if count > 1]


def shown(value: object) -> str:
    """A value as a sentence shows it, however long it is."""
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case str() if len(value) > 60:
            return f'"{value[:57]}…"'
        case _:
            return msgspec.json.encode(value).decode()
