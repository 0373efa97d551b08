"""Commands that stand behind others: `sudo rm x`, `xargs rm`, `sh -c 'rm x'`, `find -exec rm {} ;`. Only denies look here.

Every command of a line is one of these, and the first that fits decides:

1. A program that starts no other, or whose arguments are all on its allow-list: nothing stands behind it.
2. A shell, a wrapper, a builtin that is understood: what it runs is looked at in the same way.
3. One of these that is not understood, an interpreter with code in the line, a program with commands of its own, a program that
   may take its standard input for commands: it may run anything, and a deny may match.
4. Any other program: it may be a wrapper that is not known, so a deny may match if its program is named among the words, or if
   a word may be a script.

Files are not read: `make`, `npm test`, `python x.py` and `./x` do what is in them.
"""

import posixpath
import re
from collections.abc import Callable
from functools import cache
from typing import Final

import msgspec

from antiphon.policy.arguments import ANY_WORDS, changes_places, has_grammar, levels, reads_data
from antiphon.policy.grammar import Grammar, RunContext, WordRisk, grammar
from antiphon.policy.paths import through_process
from antiphon.policy.patterns import CommandLine, SimpleCommand, Words
from antiphon.policy.programs import (
    BASH_LIKE,
    CHANGERS,
    MANAGERS,
    PACKAGE_RUNNERS,
    SHELLS,
    TAKE_COMMANDS,
    base_name,
    interprets,
    is_harmless,
    is_local,
    program_name,
    starts_others,
)

__all__ = ["NestedCommands", "nested_commands"]

MAX_SCRIPTS: Final = 20
"""Scripts inside scripts that are read. More is an attack, and counts as unknown."""

MAX_WORDS: Final = 100
"""Words of a command that are looked at. Beyond that it cannot be seen what runs."""

MAX_DEPTH: Final = 12
"""Wrappers around wrappers that are followed."""

_READABLE: Final = BASH_LIKE | {"ash", "mksh", "rbash", "bash-static", "ksh93"}
"""Shells whose scripts we can read. In those of the others what is found counts, and what is not may still be there."""

_WRAPPERS: Final[dict[str, tuple[str, int]]] = {
    "builtin": ("", 0),
    "command": ("-p -v -V", 0),
    "doas": ("-n -u:", 0),
    "env": ("-i -0 -v -u: --ignore-environment --null --unset: --debug", 0),
    "exec": ("-c -l -a:", 0),
    "ionice": ("-t -c: -n: --class: --classdata: --ignore", 0),
    "nice": ("-n: -# --adjustment:", 0),
    "nohup": ("", 0),
    "setsid": ("-c -f -w --ctty --fork --wait", 0),
    "stdbuf": ("-i: -o: -e: --input: --output: --error:", 0),
    "sudo": ("-b -E -H -k -n -S -g: -u: --background --preserve-env --set-home --non-interactive --stdin --group: --user:", 0),
    "time": ("-p -v --portability --verbose", 0),
    "timeout": ("-v -k: -s: --foreground --preserve-status --verbose --kill-after: --signal:", 1),
    "xargs": ("-0 -r -t -x -n: -L: -P: -s: -d: -E: -a:f --null --no-run-if-empty --verbose --exit --max-args: --max-lines= --max-procs: "
              "--max-chars: --delimiter: --arg-file:f", 0),
}  # fmt: skip
"""Wrappers whose options are known, and how many operands stand before the command. All others are not understood."""

_SETS: Final = frozenset({"declare", "export", "local", "readonly", "typeset"})
_SHELL_OPTIONS: Final = re.compile(r"-[leuxvfni]+|--login|--norc|--noprofile|--posix")
_SHELL_SCRIPT: Final = re.compile(r"-[leuxvfni]*c")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=(.*)", re.DOTALL)
_HARMLESS_CHANGES: Final = {
    "dirs": re.compile(r"[-+][0-9clpv]+"),
    "disown": re.compile(r"%?[0-9]+|-[ahr]+"),
    "history": re.compile(r"[0-9]+"),
    "jobs": re.compile(r"-[lnprs]+|%?[0-9]+"),
    "set": re.compile(r"[-+][eufvxo]+|pipefail|errexit|nounset|xtrace|verbose|noglob"),
    "shopt": re.compile(r"-[suq]+|[a-z_]+"),
    "unset": re.compile(r"-[fv]|[A-Za-z_][A-Za-z0-9_]*"),
    "wait": re.compile(r"-[fn]+|%?[0-9]+"),
}
"""Words that make these builtins change nothing about which program runs."""

_PYTHON: Final = "-u -B -O -s -E -I -q -S -P -W: -X:"
_ASKS_VERSION: Final = frozenset({"--version", "-V", "-v", "--help", "-h"})
_RUN_FILES: Final = {
    "bun": frozenset({"add", "build", "i", "install", "remove", "run", "test"}),
    "deno": frozenset({"cache", "check", "doc", "fmt", "info", "lint", "run", "test"}),
}
_MAKE: Final = (
    "-B -e -i -k -n -q -r -R -s -S -t -w -d -j= -l= -O= -C:f -o: -W: --always-make --ignore-errors --keep-going --dry-run --just-print "
    "--question --no-builtin-rules --no-builtin-variables --silent --quiet --touch --no-print-directory --print-directory --debug= --jobs= "
    "--load-average= --output-sync= --directory:f --trace --version --help --warn-undefined-variables"
)
_OWN_WORK: Final = frozenset({"black", "flake8", "gh", "isort", "mypy", "prettier", "pyright", "pytest", "ruff", "tsc"})
"""Programs whose words are data for them: a message in quotes is no script."""

_OF_GH: Final = frozenset({"issue", "label", "pr", "release", "run", "search", "status", "workflow"})
_RENAMERS: Final = frozenset({"cp", "dd", "install", "link", "ln", "mv", "rsync"})
"""Programs that may give another name to what they name."""

_SIGNS: Final = frozenset("$`\\\"'();|&<>\n")
_GLOBS: Final = frozenset("*?[{")
_SCRIPT_SIGNS: Final = _SIGNS | _GLOBS | frozenset(" \t!~")
_BETWEEN: Final = re.compile(r"[\s;&|<>()$`!=,:@{}\[\]*?#~%^+]+")
_BETWEEN_GLOBS: Final = re.compile(r"[\s;&|<>()!=:@#%^+]+")
_QUOTES: Final = str.maketrans("", "", "'\"\\")


class NestedCommands(msgspec.Struct):
    """Commands that a line may run.

    `found` are commands whose words are known; a deny matches them as any command. `perhaps` are words that may be the names of
    programs, and `globs` those that may become such names: a deny may match them at most. `unknown` is the reason why the line may run
    others that cannot be seen; empty if it does not.
    """

    found: list[Words] = msgspec.field(default_factory=list)
    perhaps: set[str] = msgspec.field(default_factory=set)
    globs: set[str] = msgspec.field(default_factory=set)
    unknown: str = ""


def nested_commands(line: CommandLine, context: RunContext) -> NestedCommands:
    """Every command that the line may run."""
    return _Search(context).search(line)


class _Search:
    def __init__(self, context: RunContext) -> None:
        self.nested = NestedCommands()
        self.context = context
        self.scripts: list[str] = []
        self.depth = 0

    def search(self, line: CommandLine) -> NestedCommands:
        read: set[str] = set()
        waiting = [line]
        while waiting:
            for part in waiting.pop().parts:
                self._part(part)
            scripts, self.scripts = self.scripts, []
            for script in scripts:
                if script in read or not script:
                    continue
                if len(read) == MAX_SCRIPTS:
                    self._doubt("it has too many scripts")
                    return self.nested
                read.add(script)
                inner = _read(script)
                self._doubt(inner.unclear)
                waiting.append(inner)
        return self.nested

    def _doubt(self, why: str) -> None:
        self.nested.unknown = self.nested.unknown or why

    # --- one command ---

    def _part(self, part: SimpleCommand) -> None:
        if part.settings:
            if None not in part.words[: part.settings]:
                self.nested.found.append(part.words)
            for word, text in zip(part.words[: part.settings], part.texts, strict=False):
                self._setting(word, text, given=bool(part.command))
        self._command(part.command, part.texts[part.settings :], fed=part.fed)
        if changes_places(part.command):
            self.context = self.context.after_changes()

    def _setting(self, word: str | None, text: str, *, given: bool = True) -> None:
        """A variable is set, for this shell or for a program that is given it: npm obeys names in small letters too."""
        name = (word or text).partition("=")[0].rstrip("+")
        value = None if word is None else word.partition("=")[2]
        if value is not None:
            self.scripts.append(value)  # `PAGER='rm x' git log`: many a variable is a command for some program
        if not (is_local(name) and (value is not None or not given)) and not (
            value is not None and is_harmless(name, value)
        ):
            self._doubt(f"`{name}` may change what runs")

    def _command(self, words: Words, texts: tuple[str, ...] = (), *, fed: bool = False) -> None:
        self.nested.found.append(words)
        first = words[0] if words else None
        if first is None:
            return
        if fed and not reads_data(words):
            self._doubt(f"`{first}` may run what it is fed")
        name = program_name(first)
        if name in ANY_WORDS:
            self._follow(words)
            if name in _RENAMERS:
                self._mentions(words, texts, scripts=False)
        elif has_grammar(name):
            if WordRisk.RUNS in levels(words, self.context).values():
                self._anything(words)
            elif name == "ssh":
                self._all_nested(words)
            elif name in _RENAMERS:
                self._mentions(words, texts, scripts=False)
        elif len(words) > MAX_WORDS or self.depth > MAX_DEPTH:
            self._doubt(f"`{first}` has too many words")
        else:
            self.depth += 1
            self._runner(name, words, texts)
            self.depth -= 1

    def _follow(self, words: Words) -> None:
        """Directories that a `cd` may lead to: git looks for its repository there."""
        if words[0] in ("cd", "pushd") and len(words) == 2 and words[1] and len(self.context.directories) < 8:
            there = (posixpath.normpath(posixpath.join(here, words[1])) for here in self.context.directories)
            self.context = self.context.also_at(tuple(there))

    def _runner(self, name: str, words: Words, texts: tuple[str, ...]) -> None:
        first = words[0] or ""
        special = _SPECIAL.get(name)
        if special is not None:
            special(self, words)
        elif name in CHANGERS:
            self._change(name, words)
        elif name in SHELLS or base_name(first) in SHELLS:
            self._shell(name, words)
        elif name in _WRAPPERS:
            self._wrapper(name, words)
        elif interprets(first):
            self._interpreter(base_name(first), words, texts)
        elif starts_others(first) or not TAKE_COMMANDS.isdisjoint((name, base_name(first))) or through_process([first]):
            self._anything(words)  # `/proc/self/exe` is the shell
        elif name in PACKAGE_RUNNERS or (name in MANAGERS and (len(words) < 2 or words[1] not in MANAGERS[name])):
            self._all_nested(words)
            self._mentions(words, texts, scripts=True)
        else:
            own = name in _OWN_WORK and (name != "gh" or (len(words) > 1 and words[1] in _OF_GH))
            self._mentions(words, texts, scripts=not own)

    def _anything(self, words: Words) -> None:
        """A program that may run what its arguments name, in a way that is not understood."""
        self._all_nested(words)
        self._doubt(f"`{words[0]}` may run other programs")

    def _all_nested(self, words: Words) -> None:
        """Every word may begin a command, and every word may be a script. That finds too much rather than too little."""
        known = tuple(None if word is None or "{}" in word else word for word in words)
        for at in range(1, len(words)):
            self.nested.found.append(known[at:])
            word = words[at]
            if (
                word is not None
                and word != "."
                and (starts_others(word) or interprets(word) or program_name(word) in TAKE_COMMANDS)
            ):
                self.depth += 1
                self._command(known[at:])
                self.depth -= 1
        self.scripts += [text for word in words[1:] if word is not None for text in _texts(word)]
        # `ssh host rm x` joins its words.
        self.scripts.append(" ".join(word for word in words[1:] if word is not None))

    def _mentions(self, words: Words, texts: tuple[str, ...], *, scripts: bool) -> None:
        """A program that is not known: it may run what a word names."""
        for at, word in enumerate(words):
            if not at:
                continue
            if word is None:
                text = texts[at] if at < len(texts) else "$"
                if _SIGNS & set(text) and words[0] not in _RENAMERS:
                    self._doubt(f"`{words[0]}` may run what it is given")
                self.nested.globs |= _glob_words(text)
                continue
            if scripts and _SIGNS & set(word):
                self._doubt(f"`{words[0]}` may run what it is given")
            self.nested.perhaps |= _names(word)
            if _GLOBS & set(word):
                self.nested.globs |= _glob_words(word)

    # --- shells, wrappers, interpreters ---

    def _shell(self, name: str, words: Words) -> None:
        at = 1
        while at < len(words) and _SHELL_OPTIONS.fullmatch(words[at] or ""):
            at += 1
        script = words[at + 1] if at + 1 < len(words) and _SHELL_SCRIPT.fullmatch(words[at] or "") else None
        # `bash -c -x SCRIPT`: the script is the first word that is not an option.
        if script is None or script[:1] in ("-", "+") or not (name in _READABLE or base_name(name) in _READABLE):
            self._anything(words)
        else:
            self.scripts.append(script)

    def _wrapper(self, name: str, words: Words) -> None:
        options, operands = _wrapper_options(name)
        at = options.leading(words, 1)
        if at is None or (operands and None in words[at : at + operands]):
            self._anything(words)
            return
        at += operands
        while at < len(words) and "=" in (setting := words[at] or ""):
            self._setting(setting, setting)
            at += 1
        inner = words[at:]
        if inner:
            self._command((*inner, None) if name == "xargs" else inner, fed=False)

    def _interpreter(self, base: str, words: Words, texts: tuple[str, ...]) -> None:
        """A script in a file is a file; code in the line may run anything."""
        at: int | None = 1
        if base in ("python", "pypy"):
            at = _python_options().leading(words, 1) if words[1:2] != ("-m",) else 1
            at = at + 1 if at is not None and words[at : at + 1] == ("-m",) else at
        word = words[at] if at is not None and at < len(words) else None
        if len(words) == 2 and word in _ASKS_VERSION:
            return
        known = _RUN_FILES.get(base)
        if word is None or word.startswith("-") or "{}" in word or (known is not None and word not in known):
            self._anything(words)
        else:
            self._mentions(words, texts, scripts=True)

    def _change(self, name: str, words: Words) -> None:
        if name in _SETS:
            for word in words[1:]:
                if word is not None and _ASSIGNMENT.fullmatch(word):
                    self._setting(word, word)
                elif word is None or not re.fullmatch(r"-[rgp]+" if name != "local" else r"-[rgp]+|[a-z_]+", word):
                    self._anything(
                        words
                    )  # a name without a value is given to all programs, whatever it is set to later
            return
        if name == "read":
            names = [word for word in words[1:] if word != "-r"]
            if not all(word is not None and is_local(word) for word in names):
                self._anything(words)
            return
        harmless = _HARMLESS_CHANGES.get(name)
        end = words.index("--") if name == "set" and "--" in words else len(words)
        if harmless is None or not all(word is not None and harmless.fullmatch(word) for word in words[1:end]):
            self._anything(words)

    # --- single programs ---

    def _eval(self, words: Words) -> None:
        self._all_nested(words)
        if None in words:
            self._doubt("only the shell knows what `eval` runs")

    def _trap(self, words: Words) -> None:
        self._all_nested(words)
        if None in words[1:2]:
            self._doubt("only the shell knows what `trap` runs")

    def _make(self, words: Words) -> None:
        if WordRisk.RUNS in _make_options().check(words, 1, self.context).values():
            self._anything(words)
        self._mentions(words, (), scripts=True)


_SPECIAL: Final[dict[str, Callable[[_Search, Words], None]]] = {
    ".": _Search._anything, "eval": _Search._eval, "gmake": _Search._make, "make": _Search._make, "source": _Search._anything, "trap": _Search._trap,
}  # fmt: skip


@cache
def _wrapper_options(name: str) -> tuple[Grammar, int]:
    options, operands = _WRAPPERS[name]
    return grammar(options), operands


@cache
def _python_options() -> Grammar:
    return grammar(_PYTHON)


@cache
def _make_options() -> Grammar:
    return grammar(_MAKE, "t*")


def _texts(word: str) -> list[str]:
    """The word if it looks like a script, and the values in it: `-Srm`, `--split-string=rm x`, `alias.x=!rm`, `+!rm`."""
    texts = [word] if _SCRIPT_SIGNS & set(word) else []
    if "!" in word[:3]:
        texts.append(word.partition("!")[2])
    if "=" in word:
        texts.append(word.partition("=")[2].lstrip("!"))
    if word.startswith("-") and not word.startswith("--"):
        texts.append(word[2:])
    return texts


def _names(word: str) -> set[str]:
    """The parts of a word that may be names of programs."""
    found: set[str] = set()
    for text in (word, word.translate(_QUOTES)):
        for quoted in _BETWEEN.split(text):
            piece = quoted.strip("'\"\\")
            found.add(piece)
            if piece.startswith("-") and not piece.startswith("--"):
                found.add(piece[2:])
    found.discard("")
    return found


def _glob_words(word: str) -> set[str]:
    """The parts of a word with a glob or with braces that may become names of programs."""
    pieces = {word, *_BETWEEN_GLOBS.split(word)}
    return pieces | {piece[2:] for piece in pieces if piece.startswith("-")}


def _read(script: str) -> CommandLine:
    from antiphon.policy.shell import read_line

    return read_line(script)
