"""Command lines of nothing but `mkdir`, `rm` and `mv` with plain paths: what `acceptEdits` lets pass inside the roots."""

from typing import Final

from antiphon.policy.lines import Line

__all__ = ["file_operands", "looks_like_file_work"]

_OPTIONS: Final = {
    "mkdir": frozenset({"-p", "-v", "-pv", "-vp", "--parents", "--verbose"}),
    "mv": frozenset({"-f", "-i", "-n", "-v", "--force", "--interactive", "--no-clobber", "--verbose"}),
    "rm": frozenset({"--dir", "--force", "--recursive", "--verbose"}),
}
_RM_LETTERS: Final = frozenset("dfirRv")


def looks_like_file_work(text: str) -> bool:
    """A cheap look, so that other lines are not parsed for this."""
    return text.lstrip().partition(" ")[0] in _OPTIONS


def file_operands(line: Line) -> tuple[str, ...] | None:
    """The paths that the line makes, removes or moves; None if it is anything else or anything more."""
    if line.unclear or line.special or not line.parts:
        return None
    found: list[str] = []
    for part in line.parts:
        operands = _operands(tuple(word for word in part.words if word is not None), len(part.words))
        if not operands:
            return None
        found += operands
    return tuple(found)


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
