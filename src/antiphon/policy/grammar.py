"""The arguments that a program may be given: an allow-list of options and operands, and a check of words against it.

What is not on the list is never taken for harmless. Options are written as in a manual page:

    -n           a flag; letters may be joined (`-la`)
    -n:          with a value, joined or in the next word
    -n;          with a value in the next word only: joined to it, the program reads on and finds other options
    --color=     with a value that may be left out, and can only be joined by `=`
    -C:p         with a value of a certain kind (below)
    -#           a number with a dash, such as `-5`
    >-o:         writes a file or does something else that an allow has to name, but starts nothing

Kinds of values and operands: `t` any text, `f` a file to read, `p` a path inside the session's directories, `r` the name of a git
remote, `u` an address of a git repository elsewhere, `h` a host or a path but never an option, `n` numbers with commas, `e` an ending
of a name, `-` only `-` or `/dev/null`. `p*` at the end of the operands repeats.
"""

import posixpath
import re
from collections.abc import Callable
from enum import IntEnum
from functools import cached_property
from typing import Final

import msgspec

from antiphon.policy.paths import Exists, Resolve, inside
from antiphon.policy.patterns import Words

__all__ = ["Grammar", "RunContext", "WordRisk", "grammar"]

_NUMBER: Final = re.compile(r"-[0-9]+")
_REMOTE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_ADDRESS: Final = re.compile(
    r"(?:https?|ssh|git)://(?:[A-Za-z0-9_.%+-]+@)?[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]+)?/[A-Za-z0-9_.~/%+-]*"
    r"|[A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[A-Za-z0-9_~][A-Za-z0-9_.~/-]*"
)
_NOWHERE: Final = frozenset({"-", "/dev/null"})
_NUMBERS: Final = re.compile(r"[0-9]+(?:,[0-9]+)*")
_ENDING: Final = re.compile(r"(?:%0?[0-9]?[du])?(?:\.[A-Za-z0-9]+)?")


class WordRisk(IntEnum):
    """What is known about one word of a command."""

    FINE = 0
    REACHES = 1
    """The word writes a file or reaches outside; it starts nothing."""
    RUNS = 2
    """The word may start another program, or its effect is not known."""


class RunContext:
    """The context of a command: every directory that it may be in, the session's roots, and the way to look at the disk."""

    def __init__(
        self,
        directories: tuple[str, ...],
        roots: tuple[str, ...],
        resolve: Resolve,
        exists: Exists,
        *,
        changed: bool = False,
    ) -> None:
        self.changed = changed and exists("/")
        """Whether something in the same line may have made files and links since: what is on the disk now may not be there then."""
        self.directories = directories
        self.roots = roots
        self.resolve = resolve
        self.exists = exists

    def also_at(self, directories: tuple[str, ...]) -> "RunContext":
        """The same with more directories."""
        known = tuple(dict.fromkeys((*self.directories, *directories)))
        return self if known == self.directories else self._with(known, changed=self.changed)

    def after_changes(self) -> "RunContext":
        """The same after something that may have made files and links."""
        return self if self.changed else self._with(self.directories, changed=True)

    def nowhere_known(self) -> "RunContext":
        """The same in a directory that is not known."""
        return self._with((), changed=self.changed)

    def _with(self, directories: tuple[str, ...], *, changed: bool) -> "RunContext":
        return RunContext(directories, self.roots, self.resolve, self.exists, changed=changed)

    @cached_property
    def strays(self) -> bool:
        """Whether git may find a repository that is not the session's: a directory that looks like a `.git` and has another name.

        Such a directory can be part of a project, and its settings name programs that git runs. git looks in each directory for a
        `.git` first, then whether the directory is a repository itself, and then goes up.
        """
        return any(self._strays_from(directory) for directory in self.directories)

    def _strays_from(self, directory: str) -> bool:
        exists = self.exists
        here = directory.rstrip("/")
        while True:
            if self._is_repository(here) and not exists(f"{here}/.git/HEAD"):
                return True
            if self.changed and not exists(f"{here}/.git"):
                return True
            # git passes over a directory `.git` that is not a repository, and looks further up. It never passes over a file `.git`.
            if not here or exists(f"{here}/.git/HEAD") or (exists(f"{here}/.git") and not exists(f"{here}/.git/.")):
                return False
            here = here.rpartition("/")[0]

    def _is_repository(self, directory: str) -> bool:
        """Whether git may take a directory for a repository. Its objects may be elsewhere, at the path in a file `commondir`."""
        exists = self.exists
        return exists(f"{directory}/HEAD") and (exists(f"{directory}/objects") or exists(f"{directory}/commondir"))

    def holds(self, path: str) -> bool:
        """Whether the path leads to a place inside the roots, from every directory that the command may be in."""
        if "\0" in path or path.startswith("~") or not self.directories:
            return False
        return all(self._inside(posixpath.join(directory, path)) for directory in self.directories)

    def _inside(self, path: str) -> bool:
        if ".." in path.split("/"):
            return False  # the name before it may be a link
        try:
            real = posixpath.normpath(self.resolve(path))
        except (OSError, ValueError):
            return False
        return real in self.roots or inside(real, self.roots)

    def has(self, name: str) -> bool:
        """Whether a file of that name is in one of the directories, or above one."""
        return any(self.exists(posixpath.join(above, name)) for above in self._above())

    def has_remote(self, name: str) -> bool:
        """Whether the repository has a remote of this name. It is a guess: one that was never used leaves no trace."""
        return self.has(f".git/refs/remotes/{name}")

    def _above(self) -> list[str]:
        found: dict[str, None] = {}
        for directory in self.directories:
            while directory not in found:
                found[directory] = None
                directory = posixpath.dirname(directory)
        return list(found)


class _Option(msgspec.Struct, frozen=True):
    value: str
    """"" for a flag, ":" for a value that is needed, ";" for one in the next word only, "=" for one that may be left out."""
    kind: str
    level: WordRisk


class Grammar(msgspec.Struct, frozen=True):
    """Options and operands that are known. `plain` are words that are fine wherever they stand; `first` are the first operands."""

    long: dict[str, _Option]
    letters: dict[str, _Option]
    operands: str = ""
    numbers: bool = False
    plain: frozenset[str] = frozenset()
    first: frozenset[str] | None = None

    def check(self, words: Words, start: int, context: RunContext) -> dict[int, WordRisk]:
        """The words from `start` on that are not fine, with what is known about them."""
        return _LineReader(self, words, context).read(start)

    def leading(self, words: Words, start: int) -> int | None:
        """The end of the options at the beginning, for a program that runs what stands behind them. None: one is not known."""
        at = start
        while at < len(words):
            word = words[at]
            if word is None:
                return at
            if word == "--":
                return at + 1
            if not word.startswith("-") or word == "-":
                return at
            step = self._step(word)
            if step is None:
                return None
            at += step
        return at

    def _step(self, word: str) -> int | None:
        """How many words an option takes with its value."""
        if self.numbers and _NUMBER.fullmatch(word):
            return 1
        if word.startswith("--"):
            name, sign, _ = word.partition("=")
            option = self.long.get(name)
            if option is None or (sign and not option.value):
                return None
            return 2 if option.value in (":", ";") and not sign else 1
        for place, letter in enumerate(word[1:], 2):
            option = self.letters.get(letter)
            if option is None:
                return None
            if option.value and word[place:]:
                return None if option.value == ";" else 1
            if option.value in (":", ";"):
                return 2
        return 1


class _LineReader:
    """One command line, checked word by word."""

    def __init__(self, rules: Grammar, words: Words, context: RunContext) -> None:
        self.rules = rules
        self.words = words
        self.context = context
        self.found: dict[int, WordRisk] = {}
        self.operands = 0
        self.at = 0

    def read(self, start: int) -> dict[int, WordRisk]:
        self.at = start
        options = True
        while self.at < len(self.words):
            word = self.words[self.at]
            if word is None:
                self._note(WordRisk.RUNS)
            elif word in self.rules.plain:
                pass
            elif not options or not word.startswith("-") or word == "-":
                self._operand(word)
            elif word == "--":
                options = False
            elif word.startswith("--"):
                self._long(word)
            elif not (self.rules.numbers and _NUMBER.fullmatch(word)):
                self._cluster(word)
            self.at += 1
        return self.found

    def _note(self, level: WordRisk) -> None:
        if level:
            self.found[self.at] = max(level, self.found.get(self.at, WordRisk.FINE))

    def _long(self, word: str) -> None:
        name, sign, value = word.partition("=")
        option = self.rules.long.get(name)
        if option is None or (sign and not option.value):
            return self._note(WordRisk.RUNS)
        self._note(option.level)
        if sign:
            self._note(_value(option.kind, value, self.context))
        elif option.value in (":", ";"):
            self._next(option)
        return None

    def _cluster(self, word: str) -> None:
        for place, letter in enumerate(word[1:], 2):
            option = self.rules.letters.get(letter)
            if option is None:
                return self._note(WordRisk.RUNS)
            self._note(option.level)
            rest = word[place:]
            if option.value and rest:
                return self._note(WordRisk.RUNS if option.value == ";" else _value(option.kind, rest, self.context))
            if option.value in (":", ";"):
                return self._next(option)
        return None

    def _next(self, option: _Option) -> None:
        """The value of an option in the next word. A missing one is an error of the program's, and harmless."""
        if self.at + 1 == len(self.words):
            return None
        self.at += 1
        word = self.words[self.at]
        # A dash: with another version of the program the value may be joined only, and this is an option.
        if word is None or (word.startswith("-") and word != "-"):
            return self._note(WordRisk.RUNS)
        return self._note(max(option.level, _value(option.kind, word, self.context)))

    def _operand(self, word: str) -> None:
        rules = self.rules
        if self.operands == 0 and rules.first is not None and word not in rules.first:
            self._note(WordRisk.RUNS)
        kinds = rules.operands.rstrip("*")
        repeats = rules.operands.endswith("*")
        kind = kinds[min(self.operands, len(kinds) - 1)] if self.operands < len(kinds) or repeats else ""
        self.operands += 1
        # One operand more than the program is known to take: many a program writes to it.
        self._note(_value(kind, word, self.context) if kind else WordRisk.REACHES)


def _file(value: str, _: RunContext) -> WordRisk:
    return WordRisk.RUNS if value.startswith("+") else WordRisk.FINE  # `less '+!rm x'`


def _path(value: str, context: RunContext) -> WordRisk:
    return WordRisk.FINE if value == "-" or context.holds(value) else WordRisk.REACHES


def _remote(value: str, context: RunContext) -> WordRisk:
    """The name of a remote. If it has no remote of that name, git takes it for a directory, and runs the hooks that are there."""
    if _ADDRESS.fullmatch(value):
        return WordRisk.REACHES
    if context.changed and not context.has_remote(value):
        return WordRisk.RUNS
    if not _REMOTE.fullmatch(value) or any(context.has(value + end) for end in ("", ".git", ".bundle")):
        return WordRisk.RUNS
    return WordRisk.FINE


_KINDS: Final[dict[str, Callable[[str, RunContext], WordRisk]]] = {
    "t": lambda _value, _context: WordRisk.FINE,
    "f": _file,
    "p": _path,
    "r": _remote,
    "u": lambda value, _context: WordRisk.FINE if _ADDRESS.fullmatch(value) else WordRisk.RUNS,
    "h": lambda value, _context: WordRisk.RUNS if value.startswith("-") else WordRisk.FINE,
    "n": lambda value, _context: WordRisk.FINE if _NUMBERS.fullmatch(value) else WordRisk.RUNS,
    "e": lambda value, _context: WordRisk.FINE if _ENDING.fullmatch(value) else WordRisk.REACHES,
    "-": lambda value, _context: WordRisk.FINE if value in _NOWHERE else WordRisk.REACHES,
}


def _value(kind: str, value: str, context: RunContext) -> WordRisk:
    return _KINDS[kind](value, context)


def grammar(options: str, operands: str = "", *, plain: str = "", first: str | None = None) -> Grammar:
    """Read a list of options, as the module describes it."""
    long: dict[str, _Option] = {}
    letters: dict[str, _Option] = {}
    numbers = False
    for text in options.split():
        level = WordRisk.REACHES if text.startswith(">") else WordRisk.FINE
        text = text.lstrip(">")
        if text == "-#":
            numbers = True
            continue
        name, sign, kind = re.fullmatch(r"(-[^-]|--[^:;=]+)([:;=]?)(.?)", text).groups()  # type: ignore[union-attr]  # a table of ours
        option = _Option(sign, kind or "t", level)
        if name.startswith("--"):
            long[name] = option
        else:
            letters[name[1]] = option
    return Grammar(
        long, letters, operands, numbers, frozenset(plain.split()), None if first is None else frozenset(first.split())
    )
