"""Command lines of nothing but `mkdir`, `rm` and `mv` with plain paths: what `acceptEdits` lets pass inside the roots."""

from typing import Final

import msgspec

from antiphon.policy.lines import Line

__all__ = ["FileWork", "file_work", "looks_like_file_work"]

_OPTIONS: Final = {
    "mkdir": frozenset({"-p", "-v", "-pv", "-vp", "--parents", "--verbose"}),
    "mv": frozenset({"-f", "-i", "-n", "-v", "--force", "--interactive", "--no-clobber", "--verbose"}),
    "rm": frozenset({"--dir", "--force", "--recursive", "--verbose"}),
}
_RM_LETTERS: Final = frozenset("dfirRv")


def looks_like_file_work(text: str) -> bool:
    """A cheap look, so that other lines are not parsed for this."""
    return text.lstrip().partition(" ")[0] in _OPTIONS


class FileWork(msgspec.Struct, frozen=True):
    """The paths that a line makes, removes or moves."""

    paths: tuple[str, ...]
    made: tuple[str, ...] = ()
    """Those that only `mkdir` names: directories."""
    moved: tuple[str, ...] = ()
    """Those that `mv` names."""


def file_work(line: Line) -> FileWork | None:
    """What the line does to files; None if it does anything else or anything more."""
    if line.unclear or line.special or not line.parts:
        return None
    found: dict[str, list[str]] = {"mkdir": [], "rm": [], "mv": []}
    for part in line.parts:
        operands = _operands(tuple(word for word in part.words if word is not None), len(part.words))
        if not operands:
            return None
        found[part.words[0] or ""] += operands
    made, moved = tuple(found["mkdir"]), tuple(found["mv"])
    others = {*moved, *found["rm"]}
    return FileWork((*made, *found["rm"], *moved), tuple(path for path in made if path not in others), moved)


def _operands(words: tuple[str, ...], count: int) -> list[str] | None:
    if len(words) != count or words[0] not in _OPTIONS:
        return None
    program, *arguments = words
    operands: list[str] = []
    for at, word in enumerate(arguments):
        if word == "--":
            return operands + arguments[at + 1 :]
        if not word.startswith("-"):
            operands.append(word)
        elif not _harmless(program, word):
            return None
    # An empty path is an error for the program and a folder for us.
    return operands if all(operands) else None


def _harmless(program: str, option: str) -> bool:
    if option in _OPTIONS[program]:
        return True
    return program == "rm" and len(option) > 1 and option[1] != "-" and _RM_LETTERS.issuperset(option[1:])
