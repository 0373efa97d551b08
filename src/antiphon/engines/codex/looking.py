"""Codex as somebody who only looks, also where rules of the user's own let commands out of its sandbox.

In `plan` the sandbox lets nothing change. But a command that the user has allowed among Codex's rules runs without any sandbox, in every
mode, and nobody is asked. It stays inside where the sandbox has to keep something from being read: outside it could be. So the turn of a
reviewer gets a profile of permissions in which everything may be read but one place that does not exist.

A profile has to stand in the configuration that a thread is opened with, and Codex then wants to be told which one holds by default. That
changes how the thread begins where the user has said nothing about the sandbox: it asks before it edits. So the profile is there only if
there are such rules.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from antiphon.engines.codex.configured import Configured

__all__ = ["PROFILE", "config_with_profile", "has_rules"]

PROFILE: Final = "antiphon-looks"

_NOWHERE: Final = "/antiphon-looks-nowhere"
_SYSTEM: Final = Path("/etc/codex")


def has_rules(cwd: str) -> bool:
    """Whether there are rules of Codex's own about commands, of the user, of the machine or of a folder that this one is in."""
    user = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
    here = Path(cwd)
    folders = [user, _SYSTEM, *(folder / ".codex" for folder in (here, *here.parents))]
    return any(_any_in(folder / "rules") for folder in folders)


def _any_in(folder: Path) -> bool:
    try:
        return any(name.endswith(".rules") for name in os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # it may be readable for Codex
        return True


def config_with_profile(found: "Configured") -> dict[str, Any]:
    """What a thread is opened with so that a turn can be given the profile. What the user has said about the sandbox goes on to hold."""
    config: dict[str, Any] = {"permissions": {PROFILE: {"filesystem": {":root": "read", _NOWHERE: "deny"}}}}
    if found.sandbox_mode is None and found.default_permissions is None:
        config["default_permissions"] = ":read-only"
    return config
