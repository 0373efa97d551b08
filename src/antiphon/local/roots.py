"""The directories that may be used, and the path down into them.

A path is followed by us, link by link, and only then compared with the roots: what comes out has no link and no `..` in it.
A link may be put there afterwards, so `DirectoryChain` opens directory after directory and refuses every link: what was checked is
what is used.
"""

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from antiphon.errors import LocalProtocolError
from antiphon.local.problems import FileProblem, NotAFile, OutsideRoots, problem

__all__ = ["EVERYWHERE", "AnyPath", "DirectoryChain", "RealPaths", "Roots", "Workspace"]

AnyPath = str | os.PathLike[str]

MAX_PATH: Final = 4096
"""Bytes of a path, with the end that the system adds: it takes no longer ones, and following a million `..` takes minutes."""

MAX_LINKS: Final = 40
"""Links followed for one path before it counts as a loop; the kernel's own number on Linux."""


@dataclass(frozen=True)
class Workspace:
    """The directories of a session, as absolute paths."""

    cwd: str
    directories: tuple[str, ...] = ()
    """Directories besides `cwd`."""

    @classmethod
    def at(cls, cwd: AnyPath | None, directories: Iterable[AnyPath] = ()) -> Self:
        """Return these directories with absolute paths; without a directory, the current one."""
        return cls(
            os.path.abspath(os.getcwd() if cwd is None else os.fspath(cwd)),
            tuple(os.path.abspath(os.fspath(directory)) for directory in directories),
        )

    @cached_property
    def roots(self) -> "Roots":
        """Directories in which files may be read and written, and commands may run."""
        return Roots((self.cwd, *self.directories))


class Roots:
    """Directories that may be used, with everything below them. `folders` has their real paths, in the order given."""

    def __init__(self, roots: Iterable[AnyPath]) -> None:
        if isinstance(roots, str):
            raise LocalProtocolError("roots are a list of directories, not one string", hint="Roots([folder])")
        self.folders: tuple[Path, ...] = tuple(Path(_follow(_checked(root))) for root in roots)
        self._real = [str(folder) for folder in self.folders]

    @classmethod
    def of(cls, roots: "Roots | Iterable[AnyPath]") -> "Roots":
        """Roots as they are, or roots of these directories."""
        return roots if isinstance(roots, Roots) else cls(roots)

    def __repr__(self) -> str:
        return f"Roots({self._real})"

    def resolve(self, path: AnyPath) -> Path:
        """The real path, without links and `..`, of a file or directory that need not exist yet.

        Raises:
            OutsideRoots: it is in none of the roots.
            FileProblem: it is not absolute, has a loop of links, or cannot be read.
        """
        asked = _checked(path)
        real = _follow(asked)
        if self._root_of(real) is None:
            raise OutsideRoots(asked, real, self._real)
        return Path(real)

    def way_to(self, place: Path) -> "DirectoryChain":
        """Return the chain of directories to a path of `resolve`."""
        root = self._root_of(str(place))
        if root is None:
            raise OutsideRoots(str(place), str(place), self._real)
        return DirectoryChain(root, place.relative_to(root).parts)

    def _root_of(self, real: str) -> str | None:
        return next((root for root in self._real if real == root or real.startswith(root.rstrip("/") + "/")), None)


def _checked(path: AnyPath) -> str:
    """The path as a string that the system would take, absolute."""
    text = os.fspath(path)
    if "\0" in text:
        raise NotAFile(f"{text!r} is not a path: no file name has a NUL in it", hint="give the path of a file")
    try:
        size = len(os.fsencode(text))
    except UnicodeEncodeError as error:
        raise NotAFile(f"{text[:MAX_PATH]!r} is not a path: it has characters that no file name can have") from error
    if is_too_long(size):
        raise NotAFile(f"`{text[:100]}…` is not a path: it has {size} bytes", hint=f"a path has less than {MAX_PATH}")
    if not text.startswith("/"):
        home = " and the home directory in full" if text.startswith("~") else ""
        raise NotAFile(f"`{text}` is a relative path", hint=f"give the whole path, from `/` on{home}")
    return text


def is_too_long(size: int) -> bool:
    """Whether a path of so many bytes is longer than the system takes."""
    return size >= MAX_PATH


def _follow(path: str) -> str:
    """Follow every link of an absolute path, also one that leads nowhere. What does not exist is taken as it is written."""
    at, links = "/", 0
    ahead = path.split("/")[::-1]
    while ahead:
        part = ahead.pop()
        if part in ("", "."):
            continue
        if part == "..":
            at = os.path.dirname(at)  # of the real directory: its links are resolved
            continue
        step = os.path.join(at, part)
        if at == "/proc" and (part.isdecimal() or part in ("self", "thread-self")):
            # Another file for each process that opens it, and some hold what a process was started with.
            raise NotAFile(f"`{path}` leads through a process", hint="give the path of a file on a disk")
        try:
            target = os.readlink(step)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR):
                raise problem("use", path, error) from error
            at = step  # no link, or not there
            continue
        links += 1
        if links > MAX_LINKS:
            raise NotAFile(f"`{path}` leads through a loop of links", hint="give the path of a file")
        if target.startswith("/"):
            at = "/"
        ahead.extend(target.split("/")[::-1])
    return at


class RealPaths:
    """Resolves links of paths for the policy. `lost` are paths whose file is not known."""

    def __init__(self) -> None:
        self.lost: list[str] = []

    def __call__(self, path: str) -> str:
        """Return the real path.

        Raises:
            ValueError: it cannot be determined.
        """
        try:
            return _follow(_checked(path))
        except FileProblem as error:
            self.lost.append(path)
            raise ValueError(str(error)) from error


# Linux opens a directory for passing through only, which needs no right to list it.
_PASS: Final = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


class DirectoryChain:
    """The directories from a root down to a file, one descriptor each. `folder` is the file's, `name` its name."""

    def __init__(self, root: str, parts: tuple[str, ...]) -> None:
        *self._folders, self.name = parts or (".",)  # `.`: the root itself, which cannot be read or written as a file
        self._made: list[tuple[int, str]] = []
        self.folder = os.open(root, _PASS)

    def __enter__(self) -> "DirectoryChain":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for above, name in reversed(self._made):
            if error is not None:  # nothing is left behind of what failed
                with suppress(OSError):
                    os.rmdir(name, dir_fd=above)
            os.close(above)
        os.close(self.folder)

    def go_down(self, *, make: bool = False) -> None:
        """Open the directories one by one; `make` creates missing ones, which are removed if the block fails."""
        for name in self._folders:
            if make and _make(name, self.folder):
                self._made.append((os.dup(self.folder), name))
            above, self.folder = self.folder, os.open(name, _PASS, dir_fd=self.folder)
            os.close(above)


def _make(name: str, above: int) -> bool:
    try:
        os.stat(name, dir_fd=above, follow_symlinks=False)
    except FileNotFoundError:
        with suppress(FileExistsError):  # another process made it just now
            os.mkdir(name, dir_fd=above)
            return True
    return False


EVERYWHERE: Final = Roots(["/"])
"""The whole machine: for our own use, never for what a peer asks."""
