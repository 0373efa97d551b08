"""JSON as editors write it: with comments, and commas behind the last item. Reads only."""

import re
from typing import Any, Final

import msgspec

__all__ = ["read_jsonc"]

_COMMENT: Final = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA: Final = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)


def read_jsonc(text: str) -> Any:
    """What it says.

    Raises:
        ValueError: it is no JSON, not even with comments.
    """
    text = text.removeprefix("\ufeff")
    for pattern in (_COMMENT, _LAST_COMMA):
        text = pattern.sub(lambda match: match[1] or " ", text)
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error
