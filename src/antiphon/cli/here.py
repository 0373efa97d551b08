"""What every command says about the settings that hold here, on stderr."""

import sys
from typing import TYPE_CHECKING

from antiphon.text import prose

if TYPE_CHECKING:
    from antiphon.config.settings import Loaded

__all__ = ["tell"]


def tell(loaded: "Loaded") -> None:
    """Say what is wrong with the config files, and what does not count yet."""
    for kind, texts in (("warning", loaded.problems), ("note", loaded.notes)):
        for text in texts:
            sys.stderr.write(f"{kind}: {prose(str(text))}\n")
