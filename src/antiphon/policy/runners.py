"""Programs that run what they are fed: commands among their words, in a file, or on their standard input.

Two lists with opposite care. `runs_input` names programs that are known to run what they are fed; no "always" is offered for
them. `reads_data` names programs that are known to take their standard input for data; every other program behind a pipe may
take it for commands.
"""

import re
from typing import Final

from antiphon.policy.programs import escapes, program_name, starts_others

__all__ = ["INTERPRETERS", "base_name", "interprets", "reads_data", "runs_input"]

Words = tuple[str | None, ...]

INTERPRETERS: Final = frozenset({
    "bc", "bpython", "bsh", "bun", "chez", "clisp", "clojure", "crystal", "csi", "dc", "deno", "dotnet-script", "elixir", "erl", "escript",
    "fsi", "ghci", "gjs", "gnuplot", "groovy", "guile", "gsi", "iex", "ipython", "irb", "janet", "jjs", "jruby", "jshell", "julia", "kotlinc",
    "lua", "luajit", "m4", "maxima", "micropython", "node", "nodejs", "ocaml", "octave", "osascript", "perl", "php", "pry", "pypy", "python",
    "qjs", "r", "racket", "rscript", "raku", "ruby", "runghc", "sbcl", "scala", "scheme", "swipl", "tclsh", "ts-node", "tsx", "wish", "xonsh",
})  # fmt: skip
"""Interpreters of a language that can start programs, without a version at the end of the name."""

_TAKE_COMMANDS: Final = frozenset({
    "at", "batch", "crontab", "ed", "emacs", "entr", "ex", "expect", "ftp", "gdb", "lftp", "lldb", "mail", "mailx", "make", "mysql", "nvim",
    "pdb", "psql", "red", "rlwrap", "screen", "sftp", "socat", "sqlite", "sqlite3", "ssh", "telnet", "tmux", "vi", "view", "vim", "vimdiff",
})  # fmt: skip
"""Programs with commands of their own, some of which start programs. `make` is here for `make -f -`."""

_CLOSED: Final = _TAKE_COMMANDS - {"make"}

_PACKAGE_RUNNERS: Final = frozenset(
    {"bunx", "corepack", "docker", "kubectl", "nerdctl", "npx", "oc", "pipx", "pnpx", "podman", "uvx"}
)
"""Programs that fetch a program, or enter a container, and run it there."""

_MANAGERS: Final = {
    "bundle": frozenset({"add", "check", "info", "install", "list", "lock", "outdated", "update"}),
    "cargo": frozenset({
        "add", "audit", "bench", "build", "check", "clean", "clippy", "doc", "fetch", "fmt", "metadata", "remove", "run", "test", "tree", "update",
    }),
    "composer": frozenset({"audit", "install", "outdated", "require", "show", "test", "update", "validate"}),
    "go": frozenset({"build", "clean", "doc", "env", "fmt", "list", "mod", "test", "version", "vet", "work"}),
    "hatch": frozenset({"build", "clean", "dep", "env", "fmt", "project", "status", "test", "version"}),
    "nix": frozenset({"build", "flake", "log", "path-info", "search"}),
    "npm": frozenset({
        "audit", "build", "ci", "config", "i", "install", "ls", "list", "outdated", "pack", "run", "run-script", "start", "t", "test", "view", "why",
    }),
    "pdm": frozenset({"add", "build", "install", "list", "lock", "outdated", "show", "sync", "update"}),
    "pipenv": frozenset({"check", "graph", "install", "lock", "sync", "update", "verify"}),
    "pnpm": frozenset({"add", "audit", "build", "i", "install", "lint", "list", "ls", "outdated", "run", "start", "t", "test", "update", "why"}),
    "poetry": frozenset({"add", "build", "check", "install", "lock", "show", "sync", "update", "version"}),
    "rye": frozenset({"add", "build", "fmt", "lint", "lock", "show", "sync", "test"}),
    "uv": frozenset({"add", "build", "export", "lock", "pip", "python", "remove", "sync", "tree", "venv", "version"}),
    "yarn": frozenset({"add", "audit", "build", "info", "install", "lint", "list", "outdated", "run", "start", "test", "upgrade", "why"}),
}  # fmt: skip
"""Package managers, with the subcommands that do not run a program named behind them. All others (`npm exec`, `uv run`) do."""

_MODULES: Final = frozenset({
    "black", "build", "compileall", "flake8", "isort", "json.tool", "mypy", "pip", "pylint", "pyright", "pytest", "ruff", "unittest",
})  # fmt: skip
"""Modules for `python -m` that do work of their own."""

_DATA: Final = frozenset({
    "aspell", "awk", "b2sum", "base32", "base64", "bat", "batcat", "bunzip2", "bzcat", "bzip2", "cat", "cksum", "clip", "cmp", "col", "colordiff",
    "colrm", "column", "comm", "csplit", "cut", "delta", "diff", "egrep", "expand", "false", "fgrep", "file", "fmt", "fold", "gawk", "git",
    "grep", "gron", "gunzip", "gzip", "head", "hexdump", "iconv", "join", "jq", "less", "lz4", "mawk", "md5sum", "more", "nawk", "nl", "numfmt",
    "od", "paste", "pbcopy", "pr", "rev", "rg", "sed", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "shasum", "shuf", "sort",
    "split", "strings", "sum", "tac", "tail", "tar", "tee", "tr", "true", "tsort", "unexpand", "uniq", "unxz", "uuencode", "wc", "wl-copy",
    "xclip", "xmllint", "xsel", "xxd", "xz", "xzcat", "zcat", "zstd", "zstdcat",
})  # fmt: skip
"""Programs that take their standard input for data, as long as none of their words makes them start others."""

_SHELL_DATA: Final = frozenset(
    {":", "[", "cd", "echo", "printf", "pwd", "test", "type", "which", "basename", "date", "dirname", "ls"}
)
"""Programs that do not look at their standard input at all."""

_XARGS_OPTIONS: Final = re.compile(r"-[0rt]+|-[nLP][0-9]+|--null|--no-run-if-empty|--max-args=[0-9]+")
_ANY_WORDS: Final = frozenset({
    "basename", "cat", "cksum", "dirname", "echo", "egrep", "fgrep", "grep", "head", "ls", "md5sum", "sha1sum", "sha256sum", "stat", "tail", "wc",
})  # fmt: skip
"""Programs that do no harm whatever words they are given, so that xargs may add some."""

_VERSION: Final = re.compile(r"[-_.]?[0-9][0-9.]*[a-z]?$")


def base_name(word: str) -> str:
    """The name of a program without directory, case and version: `/usr/bin/Python3.12` is `python`."""
    name = program_name(word)
    return _VERSION.sub("", name) or name


def interprets(word: str) -> bool:
    """Whether the program is an interpreter of a language other than a shell's."""
    return not INTERPRETERS.isdisjoint((program_name(word), base_name(word)))


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
    if name in _PACKAGE_RUNNERS:
        return f"`{first}` runs programs from elsewhere"
    known = _MANAGERS.get(name)
    if known is not None and len(command) > 1 and command[1] not in known:
        return f"`{first} {command[1] or ''}`".replace(" `", "`") + " may run what stands behind it"
    if escapes(command) and any(word is None or _runs(word) for word in command[1:]):
        return f"`{first}` is told to run a program that runs what it is given"
    return ""


def reads_data(command: Words) -> bool:
    """Whether the command takes its standard input for data, or does not read it; never for commands."""
    first = command[0] if command else None
    if first is None or "/" in first:
        return False
    if first == "xargs":
        return _adds_to_harmless(command)
    if base_name(first) == "python":
        return command[1:3] == ("-m", "json.tool")
    return (first in _DATA or first in _SHELL_DATA) and not escapes(command)


def _adds_to_harmless(command: Words) -> bool:
    """Whether xargs runs a program that does no harm whatever words are added."""
    rest = list(command[1:])
    while rest and rest[0] is not None and _XARGS_OPTIONS.fullmatch(rest[0]):
        rest.pop(0)
    return not rest or rest[0] in _ANY_WORDS


def _is_module(command: Words) -> bool:
    return len(command) > 2 and command[1] == "-m" and command[2] in _MODULES


def _runs(word: str) -> bool:
    return starts_others(word) or interprets(word) or program_name(word) in _CLOSED
