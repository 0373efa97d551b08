"""Where our files are on this machine. Reads the environment and nothing else; who writes a file makes its directory."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

__all__ = ["CONFIG_DIR", "STATE_DIR", "config_dir", "state_dir"]

STATE_DIR: Final = "ANTIPHON_STATE_DIR"
"""The environment variable that moves everything we keep to another directory."""

CONFIG_DIR: Final = "ANTIPHON_CONFIG_DIR"
"""The environment variable that names another directory for `config.toml`."""


def state_dir(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """The directory for what outlives a process: sessions, decisions, logs. It may not exist yet."""
    return _place(STATE_DIR, "XDG_STATE_HOME", Path(".local", "state"), environment, platform)


def config_dir(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """The directory for what the user writes: `config.toml`. It may not exist yet."""
    return _place(CONFIG_DIR, "XDG_CONFIG_HOME", Path(".config"), environment, platform)


def _place(ours: str, xdg: str, otherwise: Path, environment: Mapping[str, str], platform: str) -> Path:
    if chosen := environment.get(ours):
        return Path(chosen).expanduser().absolute()
    if platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "antiphon"
    base = Path(environment.get(xdg, ""))
    # The XDG rules: a relative path there is a mistake, and is to be ignored.
    return (base if base.is_absolute() else Path.home() / otherwise) / "antiphon"
