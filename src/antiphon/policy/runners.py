"""Programs that run what they are fed: commands among their words, in a file, or on their standard input.

Two lists with opposite care. `runs_input` names programs that are known to run what they are fed; no "always" is offered for
them. `reads_data` names programs that are known to take their standard input for data; every other program behind a pipe may
take it for commands.
"""

import re
from typing import Final

from antiphon.policy.arguments import ANY_WORDS, has_grammar, levels
from antiphon.policy.git_words import git_reads_data
from antiphon.policy.grammar import Level, Spot
from antiphon.policy.names import base_name, program_name
from antiphon.policy.programs import INTERPRETERS, MANAGERS, PACKAGE_RUNNERS, TAKE_COMMANDS, interprets, starts_others
from antiphon.policy.where import nothing_exists

__all__ = ["INTERPRETERS", "interprets", "reads_data", "runs_input"]

Words = tuple[str | None, ...]

_NOWHERE: Final = Spot(("/",), ("/",), lambda path: path, nothing_exists)
_CLOSED: Final = TAKE_COMMANDS - {"make"}

_MODULES: Final = frozenset({
    "black", "build", "compileall", "flake8", "isort", "json.tool", "mypy", "pip", "pylint", "pyright", "pytest", "ruff", "unittest",
})  # fmt: skip
"""Modules for `python -m` that do work of their own."""

_ALSO_DATA: Final = frozenset(
    {"aspell", "bat", "batcat", "clip", "colordiff", "delta", "gron", "more", "xclip", "xmllint"}
)
"""Programs beside those of `arguments` that take their standard input for data."""

_ELSEWHERE: Final = frozenset({"sftp", "ssh"})
"""Programs that take their standard input for commands on another machine."""

_WRITERS: Final = frozenset({
    "chgrp", "chmod", "chown", "cp", "dd", "kill", "ln", "link", "mkdir", "mkfifo", "mktemp", "mv", "rm", "rmdir", "shred", "tee", "touch", "truncate",
    "unlink",
})  # fmt: skip
"""Programs of `ANY_WORDS` that change files, so that it matters which words xargs adds."""

_XARGS_OPTIONS: Final = re.compile(r"-[0rt]+|-[nLP][0-9]+|--null|--no-run-if-empty|--max-args=[0-9]+")


def runs_input(command: Words) -> str:
    """Why an exact rule for this command says too little about what runs; empty if it says enough.

    `command` is the program with its arguments, None for a word that is not known.
    """
    first = command[0] if command else None
    if first is None:
        return "its program is not known"
    name, base = program_name(first), base_name(first)
    if starts_others(first):
        return f"`{first}` runs the commands that it is given"
    if interprets(first) and not (base in ("python", "pypy") and _is_module(command)):
        return f"`{first}` runs the code that it is given"
    if name in _CLOSED or base in _CLOSED:
        return f"`{first}` has commands of its own that start programs"
    if name == "make" and any((word or "-").startswith("-") for word in command[1:]):
        return "`make` with options may read its rules from anywhere"
    if name in PACKAGE_RUNNERS:
        return f"`{first}` runs programs from elsewhere"
    known = MANAGERS.get(name)
    if known is not None and len(command) > 1 and command[1] not in known:
        return f"`{first} {command[1] or ''}`".replace(" `", "`") + " may run what stands behind it"
    if _may_run(command) and any(word is None or _runs(word) for word in command[1:]):
        return f"`{first}` is told to run a program that runs what it is given"
    return ""


def reads_data(command: Words) -> bool:
    """Whether the command takes its standard input for data, or does not read it; never for commands."""
    first = command[0] if command else None
    if first is None or "/" in first:
        return False
    if first == "git" and not git_reads_data(command):
        return False
    if first == "xargs":
        return _adds_to_harmless(command)
    if base_name(first) == "python":
        return command[1:3] == ("-m", "json.tool")
    known = first in ANY_WORDS or first in _ALSO_DATA or (has_grammar(first) and first not in _ELSEWHERE)
    return known and not _may_run(command)


def _may_run(command: Words) -> bool:
    """Whether a word of the command may make its program start another."""
    return Level.RUNS in levels(command, _NOWHERE).values()


def _adds_to_harmless(command: Words) -> bool:
    """Whether xargs runs a program that does no harm whatever words are added."""
    rest = list(command[1:])
    while rest and rest[0] is not None and _XARGS_OPTIONS.fullmatch(rest[0]):
        rest.pop(0)
    return not rest or rest[0] in ANY_WORDS - _WRITERS


def _is_module(command: Words) -> bool:
    return len(command) > 2 and command[1] == "-m" and command[2] in _MODULES


def _runs(word: str) -> bool:
    return starts_others(word) or interprets(word) or program_name(word) in _CLOSED
