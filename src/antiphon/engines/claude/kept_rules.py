"""Rules that the user allowed for a project in a session of this engine alone.

They are kept with our own files and given to the CLI when it starts. In the project, where the CLI itself would keep them, they would be
one more file that a stranger can write, and that has to be trusted before it counts.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from antiphon.engines.remembered import notes_folder, read_notes, write_notes

__all__ = ["keep_rules", "kept_rules", "settings_with"]


def _path() -> Path:
    return notes_folder() / "claude-rules.json"


def kept_rules(cwd: str) -> list[str]:
    """The rules that are allowed in a directory, as the CLI writes them."""
    found = (read_notes(_path()) or {}).get(os.path.realpath(cwd))
    return [rule for rule in found if isinstance(rule, str)] if isinstance(found, list) else []


def keep_rules(cwd: str, rules: Iterable[str]) -> bool:
    """Allow rules in a directory from now on. False: they could not be written."""
    notes = read_notes(_path()) or {}
    notes[os.path.realpath(cwd)] = list(dict.fromkeys([*kept_rules(cwd), *rules]))
    return write_notes(_path(), notes)


def settings_with(cwd: str) -> str | None:
    """Settings for the CLI that allow them; None if there are none."""
    rules = kept_rules(cwd)
    return json.dumps({"permissions": {"allow": rules}}, ensure_ascii=False) if rules else None
