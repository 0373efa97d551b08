"""Programs that start other programs, and options that make a program do so.

A pattern with `*` never covers them: `Bash(find *)` means looking for files, not running what stands behind `-exec`.
The lists name what is common. A program that is not here and starts others does so under its own name: who allows
`Bash(make *)` or `Bash(python *)` allows whatever they are told to run.
"""

from typing import Final

import msgspec

from antiphon.policy.git_words import git_escapes, git_unlisted
from antiphon.policy.text_tools import awk_escapes, awk_writes, sed_escapes, sed_writes

__all__ = [
    "BASH_LIKE",
    "RESERVED",
    "SCRIPT_RUNNERS",
    "SHELLS",
    "escapes",
    "may_hide",
    "program_name",
    "starts_others",
    "uncovered",
]

SHELLS: Final = frozenset({
    "ash", "bash", "bash-static", "csh", "dash", "fish", "ksh", "ksh93", "mksh", "nu", "pwsh", "rbash", "sh", "tcsh", "yash", "zsh",
})  # fmt: skip

BASH_LIKE: Final = frozenset({"bash", "dash", "ksh", "sh", "zsh"})
"""Shells that read a line as bash does, or near enough for what we believe of a line. To fish or csh it means something else."""

SCRIPT_RUNNERS: Final = SHELLS | {".", "eval", "source", "trap"}
"""What runs text as shell commands. Without a script that stands in the line, nobody knows what runs."""

_WRAPPERS: Final = SCRIPT_RUNNERS | {
    "aa-exec", "builtin", "busybox", "bwrap", "caffeinate", "capsh", "cgexec", "chronic", "coreutils", "dbus-run-session", "eatmydata",
    "proxychains", "proxychains4", "systemd-inhibit", "torsocks", "chpst", "chroot", "chrt", "command", "coproc", "doas", "env", "exec",
    "faketime", "fakeroot", "firejail", "flock", "gosu", "ionice", "ltrace", "nice", "nohup", "nsenter", "numactl", "parallel",
    "pkexec", "prlimit", "proot", "rlwrap", "run-parts", "runcon", "runuser", "script", "setarch", "setpriv", "setsid", "sg",
    "sshpass", "start-stop-daemon", "stdbuf", "strace", "su", "sudo", "systemd-run", "taskset", "time", "timeout", "tini", "toybox",
    "unbuffer", "unshare", "valgrind", "watch", "watchexec", "xargs", "xvfb-run",
}  # fmt: skip
"""Programs whose work is to run another one. No pattern with `*` covers them."""

_CHANGERS: Final = frozenset({
    "alias", "bind", "compgen", "complete", "compopt", "declare", "dirs", "disown", "enable", "export", "fc", "getopts", "hash",
    "history", "jobs", "let", "local", "mapfile", "read", "readarray", "readonly", "set", "shopt", "typeset", "unalias", "unset",
    "wait",
})  # fmt: skip
"""Builtins that change what later words of the same shell mean, or run code hidden in an index: `unset 'a[$(rm x)]'`."""

_ALSO_RUN: Final = frozenset({
    "bun", "bundle", "deno", "docker", "entr", "expect", "gdb", "hatch", "kubectl", "less", "nix", "nix-shell", "npm", "npx", "nvim", "pdm",
    "pipx", "pnpm", "podman", "poetry", "rye", "screen", "socat", "ssh", "tmux", "uv", "uvx", "vi", "view", "vim", "yarn",
})  # fmt: skip
"""Programs with work of their own that also run what they are told. A pattern covers them; a deny looks behind them."""

RESERVED: Final = frozenset({
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select",
    "then", "until", "while", "{", "}",
})  # fmt: skip
"""Words that are grammar where a command is expected. As a command's name they mean that we and the shell disagree."""


class _Escape(msgspec.Struct, frozen=True):
    """What makes one program start others, or write where it usually reads: long options, letters, and words."""

    long: tuple[str, ...] = ()
    letters: str = ""
    words: frozenset[str] = frozenset()
    starts: tuple[str, ...] = ()


_ESCAPES: Final = {
    "fd": _Escape(("exec", "exec-batch"), "xX"),
    "find": _Escape(
        words=frozenset({"-delete", "-exec", "-execdir", "-fls", "-fprint", "-fprint0", "-fprintf", "-ok", "-okdir"})
    ),
    "git": _Escape(
        (
            "build-fake-ancestor", "config", "exec", "export-marks", "ext-diff", "extcmd", "open-files-in-pager", "output",
            "output-directory", "prefix", "receive-pack", "separate-git-dir", "template", "textconv", "tool", "unsafe-paths",
            "upload-pack",
        ),
        "Ox",
        frozenset({
            "bisect", "config", "credential", "daemon", "difftool", "fast-import", "filter-branch", "hook", "instaweb",
            "mergetool", "remote-ext", "remote-fd", "send-email", "shell", "submodule", "upload-archive", "upload-pack", "web--browse",
        }),
    ),
    "[": _Escape(words=frozenset({"-v", "-R"})),
    "less": _Escape(("lesskey", "lesskey-content", "lesskey-src", "log-file", "LOG-FILE"), "kKoO", starts=("+",)),
    "man": _Escape(("html", "pager", "preprocessor"), "CHPM"),
    "printf": _Escape(letters="v"),
    "rg": _Escape(("hostname-bin", "pre", "search-zip"), "z"),
    "rsync": _Escape(("rsh", "rsync-path"), "eM"),
    "scp": _Escape(letters="DFoS"),
    "sftp": _Escape(letters="DFSbo"),
    "sort": _Escape(("compress-program", "files0-from", "output", "temporary-directory"), "oT"),
    "ssh": _Escape(letters="EFISo"),
    "tar": _Escape(
        (
            "checkpoint-action", "info-script", "new-volume-script", "rmt-command", "rsh-command", "to-command",
            "use-compress-program",
        ),
        "FI",
    ),
    "test": _Escape(words=frozenset({"-v", "-R"})),
    "wget": _Escape(("config", "execute", "use-askpass"), "e"),
    "zip": _Escape(("unzip-command", "test"), "T"),
}  # fmt: skip

_WRITES: Final = {
    "curl": _Escape(
        (
            "alt-svc", "config", "cookie-jar", "dump-header", "etag-save", "hsts", "libcurl", "output", "output-dir", "remote-header-name",
            "remote-name", "remote-name-all", "stderr", "trace", "trace-ascii",
        ),
        "DJKOco",
    ),
    "wget": _Escape(
        (
            "append-output", "directory-prefix", "hsts-file", "output-document", "output-file", "rejected-log", "save-cookies", "warc-file",
        ),
        "OPao",
    ),
}  # fmt: skip
"""Options that choose a file to write. They start nothing, so only an allow cares."""

_AWKS: Final = frozenset({"awk", "gawk", "mawk", "nawk"})


def program_name(word: str) -> str:
    """`/usr/bin/Git` → `git`. For what is denied: there a different case may be the same file."""
    return word.rpartition("/")[2].casefold()


def starts_others(word: str) -> bool:
    """Whether the program is there to run other programs, or to change what the shell's next words mean."""
    name = program_name(word)
    return name in _WRAPPERS or name in _CHANGERS


def may_hide(words: tuple[str | None, ...]) -> bool:
    """Whether other commands may stand among the words of this one, so that a deny has to look for them there."""
    first = words[0] or ""
    name = program_name(first)
    loader = name.startswith("ld-") and ".so" in name  # the system's own loader runs the program that it is given
    return loader or starts_others(first) or name in _ALSO_RUN or bool(escapes(words))


def escapes(words: tuple[str | None, ...]) -> frozenset[int]:
    """Which words of a command no `*` covers, because they may make its program start others or write files."""
    name = program_name(words[0] or "") if words else ""
    escape = _ESCAPES.get(name)
    if name == "sed":
        return sed_escapes(words)
    if name in _AWKS:
        return awk_escapes(words)
    if escape is None:
        return frozenset()
    found = {at for at, word in enumerate(words) if at and (word is None or _is_escape(word, escape))}
    if name == "tar" and len(words) > 1 and _cluster(words[1]) & set(escape.letters):  # `tar xIf …` has no dash
        found.add(1)
    if name == "git":
        found |= git_escapes(words)
    return frozenset(found)


def uncovered(words: tuple[str | None, ...]) -> frozenset[int]:
    """Which words of a command no `*` covers: those that escape, those that write, and a subcommand that has to be named."""
    return escapes(words) | _only_uncovered(program_name(words[0] or "") if words else "", words)


def _only_uncovered(name: str, words: tuple[str | None, ...]) -> frozenset[int]:
    if name == "git":
        return git_unlisted(words)
    if name == "sed":
        return sed_writes(words)
    if name in _AWKS:
        return awk_writes(words)
    writes = _WRITES.get(name)
    if writes is None:
        return frozenset()
    return frozenset(at for at, word in enumerate(words) if at and (word is None or _is_escape(word, writes)))


def _is_escape(word: str, escape: _Escape) -> bool:
    if word in escape.words or (escape.starts and word.startswith(escape.starts)):
        return True
    if word.startswith("--") and len(word) > 2:
        # Long options may be shortened: `--to-c=…` is `--to-command=…`.
        name = word[2:].partition("=")[0]
        return any(option.startswith(name) for option in escape.long)
    return word.startswith("-") and any(letter in word for letter in escape.letters)


def _cluster(word: str | None) -> set[str]:
    return set() if word is None or word.startswith("-") else set(word)
