"""Programs that start other programs: shells, wrappers, interpreters, programs with commands of their own.

A pattern with `*` never covers shells and wrappers. A program that is not here and starts others does so under its own name:
a user who allows `Bash(make *)` or `Bash(python *)` allows whatever these are given to run.
"""

import re
from typing import Final

__all__ = [
    "BASH_LIKE",
    "CHANGERS",
    "INTERPRETERS",
    "MANAGERS",
    "PACKAGE_RUNNERS",
    "RESERVED",
    "SCRIPT_RUNNERS",
    "SHELLS",
    "TAKE_COMMANDS",
    "base_name",
    "interprets",
    "is_harmless",
    "is_local",
    "program_name",
    "starts_others",
    "takes_commands",
]

# --- names of programs

_VERSION: Final = re.compile(r"[-_.]?[0-9][0-9.]*[a-z]?$")


def program_name(word: str) -> str:
    """`/usr/bin/Git` → `git`. For what is denied: there a different case may be the same file."""
    return word.rpartition("/")[2].casefold()


_ENDS_WITH_A_DIGIT = ("m4",)
"""Interpreters whose own name ends with a digit, which is not a version: what begins like them is taken for them."""


def base_name(word: str) -> str:
    """The name of a program without directory, case and version: `/usr/bin/Python3.12` is `python`."""
    name = program_name(word)
    if name.startswith(_ENDS_WITH_A_DIGIT):
        return next(each for each in _ENDS_WITH_A_DIGIT if name.startswith(each))
    return _VERSION.sub("", name) or name


SHELLS: Final = frozenset({
    "ash", "bash", "bash-static", "csh", "dash", "fish", "ksh", "ksh93", "mksh", "nu", "pwsh", "rbash", "sh", "tcsh", "yash", "zsh",
})  # fmt: skip

BASH_LIKE: Final = frozenset({"bash", "dash", "ksh", "sh", "zsh"})
"""Shells that read a line as bash does, or near enough for what we believe of a line. To fish or csh it means something else."""

SCRIPT_RUNNERS: Final = SHELLS | {".", "eval", "source", "trap"}
"""What runs text as shell commands. Without a script that stands in the line, it is not known what runs."""

_WRAPPERS: Final = SCRIPT_RUNNERS | {
    "aa-exec", "builtin", "busybox", "bwrap", "caffeinate", "capsh", "cgexec", "chronic", "coreutils", "dbus-run-session", "eatmydata",
    "proxychains", "proxychains4", "systemd-inhibit", "torsocks", "chpst", "chroot", "chrt", "command", "coproc", "doas", "env", "exec",
    "faketime", "fakeroot", "firejail", "flock", "gosu", "ionice", "ltrace", "nice", "nohup", "nsenter", "numactl", "parallel",
    "pkexec", "prlimit", "proot", "rlwrap", "run-parts", "runcon", "runuser", "script", "setarch", "setpriv", "setsid", "sg",
    "sshpass", "start-stop-daemon", "stdbuf", "strace", "su", "sudo", "systemd-run", "taskset", "time", "timeout", "tini", "toybox",
    "unbuffer", "unshare", "valgrind", "watch", "watchexec", "xargs", "xvfb-run",
    "catchsegv", "daemon", "daemonize", "dbus-launch", "dtach", "abduco", "dumb-init", "envdir", "envuidgid", "fakechroot",
    "genv", "gnice", "gnohup", "gstdbuf", "gtime", "gtimeout", "gxargs", "hyperfine", "luit", "minijail0", "newgrp", "nix-shell", "nocache", "perf",
    "pgrphack", "reptyr", "s6-setuidgid", "schroot", "setlock", "setuidgid", "softlimit", "ssh-agent", "su-exec",
    "systemd-cat", "systemd-nspawn", "timelimit", "trickle", "tsocks", "uname26", "vglrun", "xinit", "xterm",
    "arm", "armv7l", "armv8l", "aarch64", "i386", "i486", "i586", "i686", "linux32", "linux64", "mips", "mips32", "mips64", "ppc", "ppc32", "ppc64",
    "ppc64le", "riscv64", "s390", "s390x", "sparc", "sparc64", "x86_64",
}  # fmt: skip
"""Programs whose work is to run another one. No pattern with `*` covers them."""

CHANGERS: Final = frozenset({
    "alias", "bind", "compgen", "complete", "compopt", "declare", "dirs", "disown", "enable", "export", "fc", "getopts", "hash",
    "history", "jobs", "let", "local", "mapfile", "read", "readarray", "readonly", "set", "shopt", "typeset", "unalias", "unset",
    "wait",
})  # fmt: skip
"""Builtins that change what later words of the same shell mean, or run code hidden in an index: `unset 'a[$(rm x)]'`."""

INTERPRETERS: Final = frozenset({
    "bc", "bpython", "bsh", "bun", "chez", "clisp", "clojure", "crystal", "csi", "dc", "deno", "dotnet-script", "elixir", "erl", "escript",
    "fsi", "ghci", "gjs", "gnuplot", "groovy", "guile", "gsi", "iex", "ipython", "irb", "janet", "jjs", "jruby", "jshell", "julia", "kotlinc",
    "lua", "luajit", "m4", "maxima", "micropython", "node", "nodejs", "ocaml", "octave", "osascript", "perl", "php", "pry", "pypy", "python",
    "qjs", "r", "racket", "rscript", "raku", "ruby", "runghc", "sbcl", "scala", "scheme", "swipl", "tclsh", "ts-node", "tsx", "wish", "xonsh",
})  # fmt: skip
"""Interpreters of a language that can start programs, without a version at the end of the name."""

TAKE_COMMANDS: Final = frozenset({
    "at", "batch", "crontab", "dc", "ed", "elvis", "emacs", "emacsclient", "entr", "ex", "expect", "ftp", "gdb", "gdb-multiarch", "gdbserver", "gvim", "jed",
    "joe", "kak", "lftp", "lldb", "mail", "mailx", "make", "mysql", "nvim",
    "pdb", "psql", "red", "rlwrap", "screen", "sftp", "socat", "sqlite", "sqlite3", "ssh", "telnet", "tmux", "vi", "view", "vim", "vim.basic", "vim.tiny", "vimdiff", "nano", "nvi", "rvim", "rview",
    "more", "mutt", "w3m", "lynx", "mc", "ranger", "tclsh", "nc", "ncat", "netcat", "anacron", "incrontab",
})  # fmt: skip
"""Programs with commands of their own, some of which start programs. `make` is here for `make -f -`."""

EDITORS: Final = TAKE_COMMANDS - {
    "dc", "ftp", "lftp", "mail", "mailx", "make", "mysql", "psql", "sftp", "sqlite", "sqlite3", "ssh", "tclsh", "telnet", "more", "nc", "ncat", "netcat",
}  # fmt: skip
"""Those of the programs above that no pattern with `*` covers. The others are clients of a server or database, named on purpose."""

PACKAGE_RUNNERS: Final = frozenset(
    {"bunx", "corepack", "docker", "kubectl", "nerdctl", "npx", "oc", "pipx", "pnpx", "podman", "uvx"}
)
"""Programs that fetch a program, or enter a container, and run it there."""

MANAGERS: Final = {
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

_M4: Final = re.compile(r"m4[-_.0-9]*[a-z]?")

RESERVED: Final = frozenset({
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select",
    "then", "until", "while", "{", "}",
})  # fmt: skip
"""Words that are grammar where a command is expected. As a command's name they mean that we and the shell disagree."""


def starts_others(word: str) -> bool:
    """Whether the program is there to run other programs, or to change what the shell's next words mean."""
    name = program_name(word)
    loader = name.startswith("ld-") and ".so" in name  # the system's own loader runs the program that it is given
    return loader or name in _WRAPPERS or name in CHANGERS or base_name(word) in _WRAPPERS


def takes_commands(word: str) -> bool:
    """Whether the program is an editor, a debugger or the like, which runs others by commands in a language of its own."""
    return not EDITORS.isdisjoint((program_name(word), base_name(word)))


def interprets(word: str) -> bool:
    """Whether the program is an interpreter of a language other than a shell's."""
    # `m43` is a version of `m4`, whose name ends with a digit itself.
    return (
        not INTERPRETERS.isdisjoint((program_name(word), base_name(word)))
        or _M4.fullmatch(program_name(word)) is not None
    )


# --- variables that change how programs show things, and not what they run

_HARMLESS: Final = frozenset({
    "CARGO_TERM_COLOR", "CGO_ENABLED", "CI", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "COLUMNS", "DEBIAN_FRONTEND", "DEBUG", "FORCE_COLOR",
    "GIT_TERMINAL_PROMPT", "GOARCH", "GOOS", "LANG", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_NUMERIC", "LINES", "LOG_LEVEL", "NODE_ENV",
    "NO_COLOR", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONIOENCODING", "PYTHONUNBUFFERED", "PYTHONUTF8", "RUST_BACKTRACE", "RUST_LOG", "TERM",
    "TZ", "VERBOSE",
})  # fmt: skip
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.,:=+@ *-]*")

_USUAL_SHELLS: Final = frozenset({"/bin/bash", "/bin/sh", "/bin/zsh", "/usr/bin/bash", "/usr/bin/sh", "/usr/bin/zsh"})
"""What `SHELL` may be set to: those are where a program would look by itself."""

_PAGERS: Final = frozenset({"GIT_PAGER", "PAGER"})

_LOCAL: Final = re.compile(r"[a-z][a-z0-9_]*")
_TIED: Final = frozenset(
    {
        "cdpath",
        "fignore",
        "fpath",
        "histchars",
        "mailpath",
        "manpath",
        "module_path",
        "path",
        "prompt",
        "psvar",
        "watch",
    }
)
"""Names in small letters that mean something to zsh."""


def is_harmless(name: str, value: str) -> bool:
    """Whether a program runs the same things with this variable as without it."""
    if name == "SHELL":
        return value in _USUAL_SHELLS
    if name in _PAGERS:
        return value in ("", "cat")
    return name in _HARMLESS and _PLAIN.fullmatch(value) is not None


def is_local(name: str) -> bool:
    """Whether this is a name as scripts use for variables of their own. Programs obey names in capitals."""
    return _LOCAL.fullmatch(name) is not None and name not in _TIED
