"""Where Claude Code keeps its sessions. Knows names and folders, never opens a file."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

__all__ = [
    "AGENTS",
    "SUFFIX",
    "VARIABLE",
    "config_dir",
    "folder_name",
    "is_folder_of",
    "is_id",
    "projects",
    "session_files",
]

VARIABLE: Final = "CLAUDE_CONFIG_DIR"
SUFFIX: Final = ".jsonl"
AGENTS: Final = "subagents"
"""The folder with the sub-agents of a session, inside the folder that is named after the session."""

LONGEST_NAME: Final = 200
"""Characters of a folder's name before Claude Code cuts it and adds a hash."""

_ODD: Final = re.compile(r"[^A-Za-z0-9]")
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


def config_dir(environment: Mapping[str, str] = os.environ) -> Path:
    """Claude Code's own directory. It may not exist. One that is named without a root lies where we were started."""
    chosen = environment.get(VARIABLE)
    return Path(chosen).expanduser().absolute() if chosen else Path.home() / ".claude"


def is_id(text: str) -> bool:
    """Whether a text can be a session's id, and so be put into a path: no dots, no separators."""
    return _ID.fullmatch(text) is not None


def folder_name(cwd: str) -> str:
    """The name of the folder with the sessions of a directory: everything odd becomes a dash, and a long name is cut and hashed."""
    name = _ODD.sub(_dashes, cwd)
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}-{_hash(cwd)}"


def is_folder_of(name: str, cwd: str) -> bool:
    """Whether a folder of this name may have the sessions of a directory. The names of two directories may be the same."""
    own = folder_name(cwd)
    # The hash is not the same in every build of Claude Code; what comes before it is.
    return name == own or (len(own) > LONGEST_NAME and name[: LONGEST_NAME + 1] == own[: LONGEST_NAME + 1])


def projects(root: Path) -> list[Path]:
    """The folders with sessions, one for each directory that Claude Code was started in."""
    try:
        with os.scandir(root / "projects") as found:
            return [Path(entry.path) for entry in found if entry.is_dir()]
    except OSError:
        return []


def session_files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The paths of the sessions in a folder, with what the file system says of them."""
    try:
        with os.scandir(folder) as found:
            for entry in found:
                if entry.name.endswith(SUFFIX) and is_id(entry.name[: -len(SUFFIX)]) and entry.is_file():
                    yield entry.path, entry.stat()
    except OSError:
        return


def _dashes(odd: re.Match[str]) -> str:
    return "-" * len(_units(odd[0]))


def _units(text: str) -> memoryview:
    """The text as JavaScript counts it: what is beyond U+FFFF has two units."""
    return memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")


def _hash(text: str) -> str:
    value = 0
    for unit in _units(text):
        value = (value * 31 + unit) & 0xFFFFFFFF
    value = abs(value - (1 << 32) if value >> 31 else value)
    digits = ""
    while value:
        value, rest = divmod(value, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
    return digits or "0"
