"""The files of a project that change what an engine runs or where it connects. Found and digested; nothing is interpreted.

A project is often code that other people wrote. Claude Code reads settings, MCP servers, hooks, commands and agents from the working directory
and from every directory above it; Codex reads `.codex`. None of this counts until the user has trusted exactly these bytes.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

__all__ = [
    "ANY",
    "ANY_TEXT",
    "CLAUDE",
    "CODEX",
    "NAMES",
    "ProjectFile",
    "ProjectFileKinds",
    "directories_above",
    "main_repository",
    "project_files",
    "untrusted",
]  # fmt: skip

MAX_FILES: Final = 500
"""Files below one such directory. A project with more cannot be trusted: no user has read them all."""

MAX_BYTES: Final = 8 * 1024 * 1024
"""Bytes of one file that are digested."""

ANY_TEXT: Final = "any"
"""Used instead of a digest: instructions for the model are trusted by their path, because they name no program and change every day."""

UNREADABLE: Final = ""
"""Used instead of a digest: the content cannot be known, so it is never trusted."""


class ProjectFileKinds(msgspec.Struct, frozen=True):
    """The files that one engine reads from a project."""

    paths: tuple[str, ...]
    """Files, and directories of which every file counts."""
    harmless: tuple[str, ...] = ()
    """What lies below those directories and runs nothing."""
    instructions: tuple[str, ...] = ()
    """Text for the model that the engine does not get from directories above until the project is trusted."""


CLAUDE: Final = ProjectFileKinds(
    (".mcp.json", ".claude"),
    # Text for the model, and what Claude Code writes there itself.
    ("CLAUDE.md", "rules", "worktrees", "plans", "todos", "agent-memory", "agent-memory-local"),
    ("CLAUDE.md", "CLAUDE.local.md"),
)

CODEX: Final = ProjectFileKinds((".codex",))

ANY: Final = ProjectFileKinds(
    (
        ".mcp.json", ".claude", ".codex", ".gemini", ".qwen", ".kimi", ".vibe", ".copilot", ".opencode", "opencode.json",
        "opencode.jsonc", ".cursor/mcp.json", ".cursor/cli.json", ".cursor/hooks.json", ".vscode/mcp.json", "fastagent.config.yaml",
        "fast-agent.yaml",
    ),
    CLAUDE.harmless,
)  # fmt: skip
"""What some agent may read: the warning about an agent whose habits are unknown names all of it."""


NAMES: Final = (*ANY.paths, *CLAUDE.instructions)
"""Every name that is looked for in a directory."""


class ProjectFile(msgspec.Struct, frozen=True):
    """A file of a project, and the SHA-256 of its bytes."""

    path: str
    digest: str = UNREADABLE


def directories_above(start: str | os.PathLike[str]) -> list[str]:
    """Yield a directory and its parents, nearest first, without the user's home, whose files are trusted."""
    directory = os.path.realpath(start)
    home = os.path.realpath(os.path.expanduser("~"))
    found = []
    while True:
        if directory != home:
            found.append(directory)
        above = os.path.dirname(directory)
        if above == directory:
            return found
        directory = above


def project_files(family: ProjectFileKinds, starts: Iterable[str | os.PathLike[str]]) -> list[ProjectFile]:
    """Return the files that an engine reads for sessions in these directories. Blocks: use a thread."""
    found: dict[str, ProjectFile] = {}
    working = {os.path.realpath(start) for start in starts}
    for start in sorted(working):
        for directory in directories_above(start):
            for path in _present(family, directory):
                if path not in found:
                    found[path] = ProjectFile(path, _digest(path))
            if directory not in working:  # in the working directory itself they are given to the engine
                for name in family.instructions:
                    path = os.path.join(directory, name)
                    if os.path.isfile(path):
                        found.setdefault(path, ProjectFile(path, ANY_TEXT))
    return list(found.values())


def _present(family: ProjectFileKinds, directory: str) -> Iterator[str]:
    for name in family.paths:
        path = os.path.join(directory, name)
        if os.path.isdir(path):
            yield from _below(path, family.harmless)
        elif os.path.lexists(path):
            yield path


def _below(top: str, harmless: Sequence[str]) -> Iterator[str]:
    """Every file below a directory, links followed; after too many of them the directory itself, which has no digest."""
    count = 0
    for directory, folders, files in os.walk(top, followlinks=True):
        if directory == top:
            folders[:] = [name for name in folders if name not in harmless]
            files = [name for name in files if name not in harmless]
        folders.sort()
        count += len(files) + len(folders)
        if count > MAX_FILES:
            yield top
            return
        yield from (os.path.join(directory, name) for name in sorted(files))


def _digest(path: str) -> str:
    import hashlib  # takes longer than all the rest, and most projects have no such file

    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError):
        return UNREADABLE
    return hashlib.sha256(data).hexdigest() if len(data) <= MAX_BYTES else UNREADABLE


def main_repository(directory: str) -> str | None:
    """The directory of the repository that a linked work tree of git belongs to; None if it is no such work tree."""
    try:
        with open(os.path.join(directory, ".git"), encoding="utf-8") as file:
            word, _, place = file.read(4096).partition(":")
    except (OSError, ValueError):
        return None
    parts = os.path.realpath(os.path.join(directory, place.strip())).split(f"{os.sep}.git{os.sep}worktrees{os.sep}")
    return parts[0] if word == "gitdir" and len(parts) == 2 else None


def untrusted(found: Iterable[ProjectFile], trusted: Mapping[str, str]) -> list[ProjectFile]:
    """Return the files that are not trusted as they are. `trusted` has the digest of each trusted path."""
    return [file for file in found if not file.digest or trusted.get(file.path) != file.digest]
