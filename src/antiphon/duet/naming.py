"""How engines are called: by a name of the catalogue or of the user's own, or by a whole command line, which needs a short name. Pure.

A short name is typed as a command (`/claude`), chosen as a route and put before the ids of settings, so it must be none of our own words.
"""

import os
import re
from collections.abc import Collection, Sequence
from typing import Final

from antiphon.config.shapes import NAME

__all__ = ["LONGEST", "handles", "is_command_line", "prefixes", "slug"]

LONGEST: Final = 24
"""Letters of the short name of a command line."""

_RUNNERS: Final = frozenset(
    {"npx", "bunx", "uvx", "pipx", "node", "deno", "bun", "uv", "env", "sh", "bash", "run", "exec", "x"}
)
"""Programs that are only the way to another one, whose name tells more."""

_OF_OURS: Final = ("auto", "primary")
"""What our own `auto_resume` and `primary_agent` begin with."""


def is_command_line(engine: str) -> bool:
    """Whether this is no name: it has blanks, slashes, or whatever else names have not."""
    return NAME.fullmatch(engine) is None


def slug(engine: str) -> str:
    """A short name. That of a name is the name itself, without dots: a word with a dot after a slash would be a path."""
    if not is_command_line(engine):
        return engine.replace(".", "-")
    import shlex

    try:
        words = shlex.split(engine)
    except ValueError:
        words = engine.split()
    telling = [_plain(word) for word in words if not word.startswith("-") and "=" not in word]
    for word in telling:
        if word and word not in _RUNNERS and not re.fullmatch(r"python[\d-]*", word):
            return word
    return next((word for word in telling if word), "engine")


def handles(engines: Sequence[str], reserved: Collection[str] = ()) -> dict[str, str]:
    """Engine → its short name: no two alike, and none of those that are taken. The same for the same list."""
    taken, given = set(reserved), {}
    # Names first: they keep what people know them by.
    for engine in sorted(dict.fromkeys(engines), key=is_command_line):
        word = slug(engine)
        free = (word, f"{word}-agent", *(f"{word}-{number}" for number in range(2, len(engines) + len(taken) + 2)))
        given[engine] = next(each for each in free if each not in taken)
        taken.add(given[engine])
    return {engine: given[engine] for engine in engines}


def prefixes(engines: Sequence[str]) -> dict[str, str]:
    """Short name → what stands before `_` in the ids of its settings: it has no `_` itself, so that there is one way to read an id."""
    taken, given = set(_OF_OURS), {}
    for engine in sorted(engines, key=lambda each: "_" in each):  # who has none keeps its name
        word = engine.replace("_", "-")
        free = (word, *(f"{word}-{number}" for number in range(2, 2 * len(engines) + 3)))
        given[engine] = next(each for each in free if each not in taken and (each == engine or each not in engines))
        taken.add(given[engine])
    return {engine: given[engine] for engine in engines}


def _plain(word: str) -> str:
    """The telling part of a word: `@scope/agent@latest` and `/opt/agent.js` are both `agent`."""
    base = os.path.basename(word.rstrip("/"))
    base = re.sub(r"(?<=.)@.*", "", base)
    base = re.sub(r"\.(?:[cm]?[jt]s|py|sh)$", "", base)
    return re.sub(r"[^a-z0-9]+", "-", base.lower()).strip("-")[:LONGEST].rstrip("-")
