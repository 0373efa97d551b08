"""Text in a Markdown fence that nothing in it breaks out of. Pure."""

import re
from typing import Final

__all__ = ["fenced"]

_RUNS: Final = re.compile(r"`{3,}")


def fenced(text: str, language: str = "") -> str:
    """The text between fences that are longer than any row of backticks in it."""
    fence = "`" * max((len(run) + 1 for run in _RUNS.findall(text)), default=3)
    return f"{fence}{language}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"
