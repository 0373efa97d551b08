"""How many words a prompt asks for, and which they are. Knows no API."""

import json
import re
from functools import cache
from typing import Any, Final

from benchmarks.updates import TEXTS

_WANTED: Final = re.compile(r"Say (\d+) words")


def prompt_for(words: int) -> str:
    """Write the prompt that is answered with so many deltas."""
    return f"Say {words} words."


def wanted(said: object) -> int:
    """Find out how many the last prompt of a conversation asks for; one, if there is none."""
    found = _WANTED.findall(json.dumps(said))
    return int(found[-1]) if found else 1


@cache
def words_of(number: int) -> tuple[str, ...]:
    """List what is sent, one delta each: pieces of about the size of a token."""
    text = " ".join(TEXTS) + " "
    pieces = [text[at : at + 6] for at in range(0, len(text) - 6, 6)]
    return tuple(pieces[index % len(pieces)] for index in range(number))


def event(said: dict[str, Any]) -> bytes:
    """Write an event of a stream as both APIs do."""
    return f"event: {said['type']}\ndata: {json.dumps(said)}\n\n".encode()
