"""Commands that stand behind others: `sudo rm x`, `xargs rm`, `sh -c 'rm x'`, `find -exec rm {} ;`. Only denies look here.

Which option of which wrapper takes a value is not modelled: everything behind a wrapper may begin a command, and every word
may be a script. That finds too much rather than too little.
"""

from typing import Final

from antiphon.policy.lines import Line
from antiphon.policy.patterns import Words
from antiphon.policy.programs import BASH_LIKE, SCRIPT_RUNNERS, SHELLS, escapes, may_hide, program_name

__all__ = ["commands_behind"]

MAX_SCRIPTS: Final = 20
"""Scripts inside scripts that are read. More is an attack, and counts as unknown."""

MAX_WORDS: Final = 100
"""Words behind a wrapper that are looked at. Beyond that nobody can see what runs."""

_FEEDERS: Final = frozenset({"parallel", "xargs"})
"""Wrappers that add arguments nobody sees to the command behind them."""

_FOREIGN: Final = SHELLS - BASH_LIKE - {"ash", "mksh", "rbash"}
"""Shells whose scripts we cannot read: what is found in them counts, what is not may still be there."""

_SCRIPT_SIGNS: Final = frozenset(" \t\n;&|<>()$`\"'\\!")


def commands_behind(line: Line) -> tuple[list[Words], bool]:
    """Every command that the line may run, and whether it may run others that nobody can see."""
    found: list[Words] = []
    unknown = False
    scripts: list[str] = []
    read: set[str] = set()
    waiting = [line]
    while waiting:
        for part in waiting.pop().parts:
            if part.settings:
                found.append(part.words)
                # `PAGER='rm x' git log`: many a variable is a command for somebody.
                scripts += [word.partition("=")[2] for word in part.words[: part.settings] if word is not None]
            unknown |= _look(part.command, found, scripts)
        for script in scripts:
            if script in read:
                continue
            if len(read) == MAX_SCRIPTS:
                return found, True
            read.add(script)
            inner = _read(script)
            unknown |= bool(inner.unclear)
            waiting.append(inner)
        scripts = []
    return found, unknown


def _look(words: Words, found: list[Words], scripts: list[str]) -> bool:
    """Note one command and those among its words. True if it runs something that is not there to be seen."""
    found.append(words)
    first = words[0] if words else None
    if first is None or not may_hide(words):
        return False
    too_many = len(words) > MAX_WORDS
    words = words[:MAX_WORDS]
    feeder = program_name(first) in _FEEDERS
    seen = tuple(None if word is None or "{}" in word else word for word in words) + ((None,) if feeder else ())
    found += [seen[at:] for at in range(1, len(words))]
    scripts += [text for word in words[1:] if word is not None for text in _texts(word)]
    scripts.append(
        " ".join(word for word in words[1:] if word is not None)
    )  # `eval r"m" x` and `ssh host rm x` join their words
    runners = any(word is not None and program_name(word) in SCRIPT_RUNNERS for word in words)
    renamed = feeder and any((word or "").startswith(("-I", "-J", "-i", "--replace")) for word in words)
    foreign = any(word is not None and program_name(word) in _FOREIGN for word in words)
    return (
        foreign
        or too_many
        or renamed
        or bool(escapes(words))
        or (runners and (None in words or not _has_script(words)))
    )


def _texts(word: str) -> list[str]:
    """The word if it looks like a script, and the value in it: `-S'rm x'`, `--split-string=rm x`, `alias.x=!rm`."""
    texts = [word] if _SCRIPT_SIGNS & set(word) else []
    if "!" in word[:3]:
        texts.append(word.partition("!")[2])  # `vim -c '!rm x'`, `less '+!rm x'`
    if "=" in word:
        texts.append(word.partition("=")[2].lstrip("!"))
    if word.startswith("-") and _SCRIPT_SIGNS & set(word):
        texts.append(word[2:])
    return texts


def _has_script(words: Words) -> bool:
    """Whether a shell is given its script right here; otherwise it reads one from a file or from its input."""
    names = [program_name(word or "") for word in words]
    if names[0] in ("eval", "trap"):
        return len(words) > 1
    return any((word or "").startswith("-") and (word or "").endswith("c") for word in words)


def _read(script: str) -> Line:
    from antiphon.policy.shell import read_line

    return read_line(script)
