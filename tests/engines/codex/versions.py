"""The two versions of Codex that the tests run, and where each is: the one of the PyPI package, and a newer one from npm."""

from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

from tests.engines.proofs import on_version

__all__ = ["BOTH", "EACH", "NPM", "PYPI", "program"]

PYPI: Final = "0.163.0"
NPM: Final = "0.166.0"
BOTH: Final = (PYPI, NPM)
EACH: Final = [on_version(version, PYPI) for version in BOTH]
"""Both, for `parametrize`."""

FROM_NPM: Final = Path(__file__).with_name("node_modules") / ".bin" / "codex"


@cache
def program(version: str) -> Path | None:
    """Where it is, if it is installed."""
    if version == NPM:
        return FROM_NPM.resolve() if FROM_NPM.exists() else None
    found = PathFinder.find_spec("codex_cli_bin")
    folders = (found.submodule_search_locations if found is not None else None) or ()
    return next((path for folder in folders if (path := Path(folder, "bin", "codex")).exists()), None)
