"""The two versions of Claude Code that the tests run, and where each is: the one of the PyPI package, and an older one from npm."""

from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

from tests.engines.proofs import on_version

__all__ = ["BOTH", "EACH", "NEW", "OLD", "program"]

NEW: Final = "2.1.325"
OLD: Final = "2.1.197"
BOTH: Final = (NEW, OLD)
EACH: Final = [on_version(version, NEW) for version in BOTH]
"""Both, for `parametrize`."""

OLD_PROGRAM: Final = Path(__file__).with_name("node_modules") / ".bin" / "claude"


@cache
def program(version: str) -> Path | None:
    """Where it is, if it is installed."""
    if version == OLD:
        return OLD_PROGRAM.resolve() if OLD_PROGRAM.exists() else None
    found = PathFinder.find_spec("claude_agent_sdk")
    folders = (found.submodule_search_locations if found is not None else None) or ()
    return next((path for folder in folders if (path := Path(folder, "_bundled", "claude")).exists()), None)
