"""Which words of a `git` command no `*` covers. Knows git's own command line; knows nothing of what a repository's settings say.

A `*` covers the subcommands that work in the repository they are run in. All others (`clone`, `archive`, `config`, an alias)
have to be named by a rule, and even then not the options that name programs, settings, or files to write.
"""

import re
from typing import Final

__all__ = ["git_escapes", "git_unlisted"]

_FIRST: Final = frozenset({"--help", "--no-pager", "--no-optional-locks", "--version", "-P", "-h", "-v"})
"""What may stand before the subcommand under a `*`. The others (`-c`, `-C`, `--git-dir` …) choose other settings, and settings
name programs."""

_WITH_VALUE: Final = frozenset({
    "--attr-source", "--config-env", "--git-dir", "--namespace", "--super-prefix", "--work-tree", "-C", "-c",
})  # fmt: skip

_COVERED: Final = frozenset({
    "add", "apply", "blame", "branch", "cat-file", "check-ignore", "checkout", "cherry", "cherry-pick", "clean", "commit",
    "count-objects", "describe", "diff", "diff-index", "diff-tree", "fetch", "for-each-ref", "grep", "init", "log", "ls-files",
    "ls-remote", "ls-tree", "merge", "merge-base", "mv", "name-rev", "pull", "push", "range-diff", "rebase", "reflog", "remote",
    "reset", "restore", "rev-list", "rev-parse", "revert", "rm", "shortlog", "show", "show-branch", "show-ref", "stash", "status",
    "switch", "tag", "version", "whatchanged",
})  # fmt: skip
_REMOTE: Final = frozenset({"-v", "--verbose", "get-url", "show"})

_LETTERS: Final = {"archive": "o", "bugreport": "os", "clone": "cu", "diagnose": "os", "format-patch": "o"}
"""Short options that are harmless elsewhere: `git push -u`, `git switch -c`."""

_TRANSPORTS: Final = frozenset({"archive", "clone", "fetch", "ls-remote", "pull", "push", "remote", "submodule"})
_HELPER: Final = re.compile(r"(?:[^=]*=)?[A-Za-z0-9+.-]+::")
"""`ext::…` is an address that names a program."""

Words = tuple[str | None, ...]


def git_escapes(words: Words) -> frozenset[int]:
    """Words that start programs or choose settings, by where they stand: options before the subcommand, and some behind it."""
    at = _subcommand(words)
    found = {i for i in range(1, at) if (word := words[i]) is None or (word.startswith("-") and word not in _FIRST)}
    name = words[at] if at < len(words) else None
    letters = _LETTERS.get(name or "", "")
    for i in range(at + 1, len(words)):
        word = words[i] or ""
        short = word.startswith("-") and not word.startswith("--") and any(letter in word for letter in letters)
        if short or (name in _TRANSPORTS and _HELPER.match(word)):
            found.add(i)
    return frozenset(found)


def git_unlisted(words: Words) -> frozenset[int]:
    """The subcommand, if it is not among those that a `*` covers."""
    at = _subcommand(words)
    if at >= len(words):
        return frozenset()
    if words[at] == "remote" and at + 1 < len(words) and words[at + 1] not in _REMOTE:
        return frozenset({at + 1})
    return frozenset() if words[at] in _COVERED else frozenset({at})


def _subcommand(words: Words) -> int:
    at = 1
    while at < len(words) and (word := words[at]) is not None and word.startswith("-"):
        at += 2 if word in _WITH_VALUE else 1
    return at
