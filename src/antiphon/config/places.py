"""Where our files are on this machine. Reads the environment and nothing else; who writes a file makes its directory."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

__all__ = ["STATE_DIR", "state_dir"]

STATE_DIR: Final = "ANTIPHON_STATE_DIR"
"""The environment variable that moves everything we keep to another directory."""


def state_dir(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """The directory for what outlives a process: sessions, decisions, logs. It may not exist yet."""
    if chosen := environment.get(STATE_DIR):
        return Path(chosen).expanduser().absolute()
    if platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "antiphon"
    base = Path(environment.get("XDG_STATE_HOME", ""))
    # The XDG rules: a relative path there is a mistake, and is to be ignored.
    return (base if base.is_absolute() else Path.home() / ".local" / "state") / "antiphon"
