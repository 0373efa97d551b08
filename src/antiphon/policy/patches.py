"""Unified diffs in raw inputs: which files one names, if they are files that the input names by itself.

OpenCode, Kilo and Copilot put the diff of an edit beside its path. Such a diff can be read if all of its headers name that path.
Anything else that a program which applies patches could read as the name of a file, a rename, a mode or a deletion is not read here,
and the call is asked about.
"""

import re
from collections.abc import Collection
from typing import Final

__all__ = ["files_in"]

_HEADERS: Final = re.compile(r"^--- ([^\n]*)\n\+\+\+ ([^\n]*)$", re.MULTILINE)
"""The two lines before the changes of a file. A pair inside of a change counts as well: what applies it may count lines otherwise."""

_INDEX: Final = re.compile(r"^Index: ([^\n]*)$", re.MULTILINE)
_GIT: Final = re.compile(r"^diff ([^\n]*)$", re.MULTILINE)
_MODES: Final = re.compile(r"^(?:new|create) file mode (?!100644$)", re.MULTILINE)
_MORE: Final = re.compile(
    r"^(?:\*\*\* |rename |copy |similarity |dissimilarity |old mode |new mode |deleted file |GIT |Binary |Prereq:|Submodule )", re.MULTILINE
)  # fmt: skip
_LINES: Final = re.compile(r"[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""Other ends of lines: a header may stand behind one."""

_NOTHING: Final = ("/dev/null", "a/dev/null")
"""What the old side of a new file is called."""


def files_in(patch: str, named: Collection[str]) -> set[str] | None:
    """The files that a patch may change; None if it has a header that is of no file in `named`, or cannot be read.

    A name with `a/` or `b/` before it is both: a program may strip that, or not.
    """
    pairs = _HEADERS.findall(patch)
    if not pairs or _LINES.search(patch) or _MORE.search(patch) or _MODES.search(patch):
        return None
    known = {spelling for name in named for spelling in _spellings(name)}
    commands = {f"--git {old} {new}" for old in known for new in known}
    if any(command not in commands for command in _GIT.findall(patch)):
        return None
    old, new = ({_name(pair[side]) for pair in pairs} for side in (0, 1))
    found = (old - {*_NOTHING}) | new | {*_INDEX.findall(patch)}
    return {each for name in found for each in (name, _stripped(name))} if found <= known else None


def _spellings(name: str) -> set[str]:
    bare = name.removeprefix("/")
    return {name, f"a/{bare}", f"b/{bare}"}


def _name(header: str) -> str:
    """A header without the time that may stand behind a tab."""
    return header.partition("\t")[0]


def _stripped(name: str) -> str:
    return name[2:] if name.startswith(("a/", "b/")) else name
