"""Names that betray a dialect which the strict decoder would let pass and lose. A leaf module: every start-up loads it."""

from collections.abc import Callable
from typing import Literal

__all__ = ["HINTS", "METHOD_ALIASES", "Half", "Reply"]

Half = Literal["params", "result"]
Reply = Callable[[bytes], bytes]
"""Turns our answer, as the schema has it, into the words of whoever asked in a dialect."""

HINTS: dict[tuple[str, str], tuple[bytes, ...]] = {}
"""(method, half) → byte strings; if one occurs in the message the dialects are tried before the strict decoder."""

METHOD_ALIASES: dict[str, str] = {"unstable_resumeSession": "session/resume"}
"""Older names of methods → today's."""
