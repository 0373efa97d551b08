"""Why a call failed, in words for the user: what the CLI says to the model is longer and speaks of what the model may do next."""

import re
from typing import Final

from antiphon.engines.claude.translate.blocks import readable

__all__ = ["failure_in"]

_TAGS: Final = re.compile(r"</?tool_use_error>")
_ERROR: Final = re.compile(r"^(?:Error:\s*)+(?=\S)")
_REFUSED: Final = "The user doesn't want to proceed with this tool use."
_THEIR_WORDS: Final = re.compile(
    r"(?:the user said:|user provided the following reason for the rejection:)\s*(.+)", re.DOTALL | re.IGNORECASE
)
_TO_THE_MODEL: Final = re.compile(r"\s*IMPORTANT: You \*may\*.*", re.DOTALL)


def failure_in(said: str) -> str:
    """The reason, on its own."""
    said = _ERROR.sub("", _TAGS.sub("", readable(said)).strip())
    if said.startswith(_REFUSED):
        return _refusal(said)
    return _TO_THE_MODEL.sub("", said)


def _refusal(said: str) -> str:
    if "stopped while running" in said:
        return "Stopped while it was running. It may have done some of its work."
    theirs = _THEIR_WORDS.search(said)
    return f"Not run, because you said: {theirs[1].strip()}" if theirs else "Not run, because it was declined."
