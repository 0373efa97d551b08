"""Files that name programs to run, or set what is allowed. The one list, for every gate: no wildcard and no mode of edits covers them.

A file belongs here if a program reads it and runs what it names while the user does something else: opens the directory in an editor,
starts a shell or an agent, uses git, pushes. Source code, `Makefile` and the scripts in `package.json` do not: they run when a command
runs them, and that command is decided about.

A list of names and pure functions on paths: whether a file is there does not matter, because writing it makes it.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final
from urllib.parse import unquote

from antiphon.policy.patterns import Piece, folded

__all__ = [
    "LINKED", "NAMES", "mentioned", "named_by", "never_served", "protected", "protected_move", "protected_words",
]  # fmt: skip

_DIRECTORIES: Final = frozenset({
    # version control
    ".git", ".hg", ".jj", ".svn", ".bzr", ".githooks", ".husky", ".lefthook",
    # agents, and ourselves
    ".antiphon", ".agents", ".aider", ".amp", ".augment", ".claude", ".cline", ".clinerules", ".codeium", ".codex", ".continue", ".copilot",
    ".crush", ".cursor", ".factory", ".gemini", ".goose", ".junie", ".kilocode", ".kimi", ".kiro", ".opencode", ".qwen", ".roo", ".trae",
    ".vibe", ".windsurf",
    # editors
    ".devcontainer", ".emacs.d", ".fleet", ".idea", ".nova", ".nvim", ".sublime", ".theia", ".vim", ".vs", ".vscode", ".zed",
    # shells, package managers and tools that read a directory of the project
    ".bundle", ".cargo", ".direnv", ".docker", ".gnupg", ".gradle", ".kube", ".mise", ".mvn", ".oh-my-zsh", ".ssh", ".yarn",
    # services that run what is pushed
    ".buildkite", ".circleci", ".semaphore", ".woodpecker",
})  # fmt: skip
"""Directories of which every file counts, wherever they are."""

_FILES: Final = frozenset({
    # version control, and what runs at a commit
    ".gitattributes", ".gitconfig", ".gitmodules", ".hgrc", ".lefthook.toml", ".lefthook.yaml", ".lefthook.yml", ".pre-commit-config.yaml",
    ".pre-commit-config.yml", "config.worktree", "lefthook-local.yml", "lefthook.toml", "lefthook.yaml", "lefthook.yml",
    # agents
    ".aider.conf.yml", ".claude.json", ".mcp.json", "fast-agent.yaml", "fastagent.config.yaml", "mcp.json", "opencode.json", "opencode.jsonc",
    # shells
    ".bash_aliases", ".bash_login", ".bash_logout", ".bash_profile", ".bashrc", ".cshrc", ".env.fish", ".envrc", ".inputrc", ".kshrc",
    ".login", ".logout", ".mkshrc", ".profile", ".screenrc", ".tcshrc", ".tmux.conf", ".xinitrc", ".xprofile", ".xsession", ".xsessionrc",
    ".zlogin", ".zlogout", ".zprofile", ".zshenv", ".zshrc", "config.fish",
    # editors and debuggers
    ".devcontainer.json", ".dir-locals-2.el", ".dir-locals.el", ".emacs", ".exrc", ".gdbearlyinit", ".gdbinit", ".gvimrc", ".lldbinit",
    ".lvimrc", ".nvim.lua", ".nvimrc", ".pdbrc", ".pythonrc.py", ".vimrc", ".vimspector.json",
    # tools that read a file of the project each time they start
    ".curlrc", ".mise.local.toml", ".mise.toml", ".npmrc", ".pnpmfile.cjs", ".ripgreprc", ".tool-versions", ".wgetrc", ".yarnrc",
    ".yarnrc.yml", "mise.local.toml", "mise.toml", "sitecustomize.py", "usercustomize.py",
    # services that run what is pushed, or open it
    ".appveyor.yml", ".cirrus.yml", ".drone.yml", ".gitlab-ci.yaml", ".gitlab-ci.yml", ".gitpod.yml", ".replit", ".semaphore.yml",
    ".travis.yml", ".woodpecker.yaml", ".woodpecker.yml", "appveyor.yml", "azure-pipelines.yaml", "azure-pipelines.yml",
    "bitbucket-pipelines.yml", "jenkinsfile",
})  # fmt: skip
"""Files that count wherever they are."""

_ENDINGS: Final = (".code-workspace", ".pth", ".sublime-project")
"""Endings of files that count wherever they are."""

_REPOSITORY: Final = frozenset({"commondir", "config", "head"})
"""Files that make a directory a bare repository of git, or its configuration. A file only: `config/` is a directory of many projects."""

_GIT_HOOKS: Final = (
    "applypatch-msg", "commit-msg", "fsmonitor-watchman", "p4-changelist", "p4-post-changelist", "p4-pre-submit", "p4-prepare-changelist",
    "post-applypatch", "post-checkout", "post-commit", "post-index-change", "post-merge", "post-receive", "post-rewrite", "post-update",
    "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg",
    "proc-receive", "push-to-checkout", "reference-transaction", "sendemail-validate", "update",
)  # fmt: skip

_PAIRS: Final = {
    (forge, name) for forge in (".forgejo", ".gitea", ".github") for name in ("actions", "workflows")
} | {("hooks", hook) for hook in _GIT_HOOKS} | {("info", "attributes"), (".config", "git"), (".config", "fish"), (".config", "nvim")}  # fmt: skip
"""Two names one below the other. All below the second counts too."""

_FIRST_OF_PAIRS: Final = frozenset(first for first, _ in _PAIRS)

_WORK_TREES: Final = frozenset({".claude", ".codex", ".cursor"})
"""Agents that keep work trees of the project in `worktrees` there. What is in one is judged as if it stood at the top."""

NAMES: Final = tuple(sorted(_DIRECTORIES | _FILES))
"""The names, for gates of other programs that take a list."""

LINKED: Final = (
    ".antiphon", ".claude", ".codex", ".cursor", ".devcontainer", ".envrc", ".git", ".githooks", ".github", ".husky", ".idea", ".mcp.json",
    ".vscode", ".zed", "hooks",
)  # fmt: skip
"""Names that are looked at in each root, because a link may stand there: what it leads to is protected under any name. Not all of
them: one look takes 30 µs, and each decision about a file looks."""

_IGNORED: Final = re.compile("[\u00ad\u034f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
"""Characters that some disks drop from a name."""


def _names(path: str) -> list[str]:
    """The names of a path, as any disk may read them: without case, without what is invisible, without dots and blanks at the end."""
    path = folded(path if path.isascii() else _IGNORED.sub("", path))
    found = [name.rstrip(" .") for name in path.split("/") if name not in ("", ".")]
    found = [".git" if name.startswith("git~") else name for name in found if name]
    for at in range(len(found) - 2):
        if found[at] in _WORK_TREES and found[at + 1] == "worktrees" and at + 3 < len(found):
            return found[at + 3 :]
    return found


def protected(path: str, *, directory: bool = False) -> str:
    """The name for which a path is protected, in small letters; empty if it is not. `directory`: only a directory can become of it."""
    names = _names(path)
    for at, name in enumerate(names):
        if name in _DIRECTORIES or name in _FILES or name.endswith(_ENDINGS):
            return name
        if at and (names[at - 1], name) in _PAIRS:
            return names[at - 1]
    return names[-1] if names and not directory and names[-1] in _REPOSITORY else ""


_KEYS: Final = frozenset({
    ".aws", ".azure", ".gnupg", ".kube", ".password-store", ".ssh",
    ".git-credentials", ".netrc", ".pgpass", ".pypirc",
})  # fmt: skip
"""Directories and files with the keys of a user."""

_HOOKS: Final = frozenset({".bzr", ".git", ".githooks", ".hg", ".husky", ".jj", ".lefthook", ".svn"})
"""Directories in which a version control program finds what it runs. An agent changes them by that program, not by writing files."""


def never_served(path: str, *, write: bool) -> str:
    """The name for which a server never uses a path for others, whatever the policy allows; empty if it may."""
    names = _names(path)
    for at, name in enumerate(names):
        if name in _KEYS or (write and name in _HOOKS):
            return name
        if write and at and names[at - 1] == "hooks" and name in _GIT_HOOKS:
            return name
    return ""


def protected_move(paths: Sequence[str]) -> str:
    """The same for paths between which something is moved or copied: what arrives in a directory keeps its name."""
    for path in paths:
        names = _names(path)
        if names and names[-1] in _FIRST_OF_PAIRS:  # a directory with anything in it may get this name
            return names[-1]
        for other in paths:
            if other != path and (name := protected(f"{path}/{posixpath.basename(other)}")):
                return name
    return ""


def named_by(segments: Iterable[Piece], name: str) -> bool:
    """Whether a path pattern names it, and does not only cover it with a wildcard."""
    return any(len(piece) == 1 and piece[0] and folded(piece[0]) == name for piece in segments)


# Commands.

Words = tuple[str | None, ...]

_READERS: Final = frozenset({
    "[", "ag", "base64", "basename", "bat", "cat", "cd", "cksum", "cmp", "column", "comm", "cut", "diff", "dirname", "du", "echo", "egrep",
    "expand", "false", "fd", "fgrep", "file", "find", "fmt", "fold", "grep", "head", "hexdump", "jq", "less", "ls", "md5sum", "more", "nl",
    "od", "popd", "printf", "pushd", "pwd", "readlink", "realpath", "rg", "sed", "sha1sum", "sha256sum", "sha512sum", "shellcheck", "sort",
    "stat", "strings", "tac", "tail", "test", "tr", "tree", "true", "wc", "which", "xxd", "yamllint", "yq",
})  # fmt: skip
"""Programs that only read what their words name, but for options that no `*` covers anyway. Any other may write it."""

_GIT_READERS: Final = frozenset({
    "add", "annotate", "blame", "branch", "cat-file", "check-ignore", "commit", "describe", "diff", "diff-tree", "fetch", "for-each-ref",
    "grep", "log", "ls-files", "ls-tree", "merge-base", "name-rev", "reflog", "rev-list", "rev-parse", "shortlog", "show", "show-ref",
    "stage", "status", "tag",
})  # fmt: skip
"""Subcommands of git that write none of the files that they name."""

_TO_THE_LAST: Final = frozenset({"cp", "install", "ln", "mv", "rsync", "scp", "link", "gcp", "ginstall", "gln", "gmv"})
"""Programs that write what they are given to the path in their last word, or in an option."""

_TO_ANY: Final = frozenset({
    "chmod", "chown", "dd", "ed", "ex", "mkfifo", "mknod", "patch", "shred", "sponge", "tee", "touch", "truncate", "unlink",
})  # fmt: skip
"""Programs that write, or make executable, the files that any of their words names."""

_PACKERS: Final = frozenset({
    "brotli", "bunzip2", "bzip2", "gunzip", "gzip", "lz4", "lzip", "lzma", "plzip", "pigz", "pixz", "uncompress", "unlz4", "unlzma", "unxz",
    "unzstd", "xz", "zstd",
})  # fmt: skip
"""Programs that write a file whose name is the beginning of a name that they are given: `gunzip .envrc.gz`."""

_SPLITTERS: Final = frozenset({"csplit", "gcsplit", "gsplit", "split"})
"""Programs that write files whose names begin with what they are given: `split -a1 x .envr`."""

_LINKERS: Final = frozenset({"gln", "link", "ln"})
"""Programs that give a second name to what they are given: whatever is written under that name later is written there."""

_GIT_MOVES: Final = frozenset({"mv"})
_TARGET: Final = re.compile(r"-[A-Za-z]*t|--t[a-z-]*(=|\Z)")
_LINKS: Final = re.compile(r"-[A-Za-z]*[ls]|--(?:l|sy)")
_SUFFIX: Final = re.compile(r"-[A-Za-z]*S|--su")
_PARTS: Final = re.compile(r"[=:,]")
_ADDED: Final = re.compile(r"[?#;]|(?:\.git|\.bundle)?/*\Z")
"""What a program that fetches from an address leaves out of the name of the file or directory that it makes."""

_JOINED: Final = 12
"""Letters of options that may be joined before a value: `cp -rt.vscode x`."""


def protected_words(command: Words, names_of: Callable[[str], Sequence[str]]) -> frozenset[int]:
    """The words of a command that no `*` covers, because the command may write a protected file that they name.

    `names_of` gives every path that a word may stand for, where the command runs.
    """
    program = (command[0] or "").rpartition("/")[2] if command else ""
    start = 1
    if program == "git":
        start, subcommand = _subcommand(command)
        if subcommand in _GIT_READERS:
            return frozenset()
        program = subcommand if subcommand in _GIT_MOVES else "git"
    elif program in _READERS:
        return frozenset()
    given = range(start, len(command))
    if program in _PACKERS or program in _SPLITTERS:
        found = {at for at in given if any(_makes(program, path) for path in _paths(command[at], names_of))}
        unsure = {at for at in given if command[at] is None or _SUFFIX.match(command[at] or "")}
        return frozenset(found | unsure)
    if program not in _TO_THE_LAST and program not in _TO_ANY:
        return frozenset(at for at in given if any(map(_unmistakable, _readings(command[at]))))
    found = {at for at in given if any(map(protected, _paths(command[at], names_of)))}
    unknown = {at for at in given if command[at] is None}
    if program in _TO_THE_LAST:
        found |= {at for at in given if _SUFFIX.match(command[at] or "")}  # the old file gets a name that is in no word
        options = [word for word in command[start:] if word is not None]
        if program not in _LINKERS and not any(_TARGET.match(word) or _LINKS.match(word) for word in options):
            unknown &= {len(command) - 1}
        if protected_move([path for at in given for path in _paths(command[at], names_of)]):
            found.add(len(command) - 1)
    return frozenset(found | unknown)


def _unmistakable(path: str) -> str:
    """The same as `protected` for a word that may be no path: `git checkout HEAD` and `npm config` write no repository."""
    return protected(path, directory=True)


def _makes(program: str, path: str) -> bool:
    """Whether a program that makes names of its own from this path may make a protected one."""
    directory, name = posixpath.split(path)
    if program in _PACKERS:
        return any(protected(posixpath.join(directory, name[:end])) for end in range(1, len(name) + 1))
    begun = _names(path)[-1:] or [""]
    known = {
        *_DIRECTORIES,
        *_FILES,
        *_REPOSITORY,
        *(second for first, second in _PAIRS if first in _names(directory)[-1:]),
    }
    return bool(protected(path)) or any(other.startswith(begun[0]) for other in known if len(name) != 1)


def _paths(word: str | None, names_of: Callable[[str], Sequence[str]]) -> list[str]:
    return [path for reading in _readings(word) for path in names_of(reading)]


def _subcommand(command: Words) -> tuple[int, str]:
    for at, word in enumerate(command[1:], 1):
        if word is None or not word.startswith("-"):
            return at + 1, word or ""
    return len(command), ""


def _readings(word: str | None) -> Iterator[str]:
    """A word, and what in it may be a path: `of=x`, `--target-directory=x`, `-tx`, `-rtx`, `host:x`, `https://host/x.git`."""
    if not word:
        return
    yield word
    if word.startswith("-"):
        yield word[2:] or "."
        for at in range(3, min(len(word), _JOINED)):
            if not word[1:at].isalpha():
                break
            yield word[at:]
    pieces = [piece or "." for piece in _PARTS.split(word)]
    yield from pieces[1:]
    if "://" in word or pieces[-1].rstrip("/").endswith((".git", ".bundle")):
        yield from (cut for piece in pieces for text in (piece, unquote(piece)) if (cut := _ADDED.split(text, 1)[0]))


_MENTIONS: Final = re.compile(
    "|".join(sorted(map(re.escape, {*_DIRECTORIES, *_FILES, *_ENDINGS, ".github", ".gitea", ".forgejo", ".config", *_GIT_HOOKS}), key=len, reverse=True))
)  # fmt: skip


def mentioned(text: str) -> str:
    """A protected name that stands anywhere in a text, quotes and backslashes left out; for what cannot be read for sure."""
    plain = folded(text if text.isascii() else _IGNORED.sub("", text))
    found = _MENTIONS.search(re.sub(r"[\\'\"]", "", plain))
    return found[0] if found else ""
