"""Reads what is already certain in JSON that is still arriving."""

import json
from typing import Any, Final

__all__ = ["members_so_far"]

_DECODER: Final = json.JSONDecoder(strict=False)
_LOOKED_AT: Final = 8192
"""Characters that are looked at. What a call is about stands at its beginning; a file's text may follow, and is not read again and again."""


def members_so_far(text: str) -> dict[str, Any]:
    """The members of an object that have arrived whole, in `text`, which may end anywhere."""
    text = text[:_LOOKED_AT]
    found: dict[str, Any] = {}
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        return found
    at = _skip(text, at + 1)
    try:
        while text[at : at + 1] == '"':
            name, at = _DECODER.raw_decode(text, at)
            at = _skip(text, at)
            if text[at : at + 1] != ":":
                break
            value, at = _DECODER.raw_decode(text, _skip(text, at + 1))
            at = _skip(text, at)
            if text[at : at + 1] not in (",", "}") and not isinstance(value, str | list | dict):
                break  # a number may go on
            found[name] = value
            if text[at : at + 1] != ",":
                break
            at = _skip(text, at + 1)
    except (ValueError, RecursionError):
        pass  # the rest has not arrived, or never was JSON
    return found


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t", "\n", "\r"):
        at += 1
    return at
