"""Paths of an action: turns paths as agents write them into absolute ones, given directory, roots and home of a session.

Links are followed by the caller: `resolve` is given an absolute path and returns the real one.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from antiphon.policy.protected import LINKED

__all__ = ["Exists", "PathResolver", "Resolve", "inside", "nothing_exists", "through", "through_process"]

Resolve = Callable[[str], str]
Exists = Callable[[str], bool]


_PROCESS: Final = re.compile(
    r"(?:file://)?/+(?:proc/+(?:self|thread-self|[0-9]+)|dev/+(?:fd|stdin|stdout|stderr))(?:/|\Z)"
)


def nothing_exists(_path: str) -> bool:
    """Return False for every path: for tests, and where the disk does not matter."""
    return False


class PathResolver(msgspec.Struct, frozen=True):
    """The session's directory and roots, the user's home, and the way to resolve links."""

    cwd: str
    roots: tuple[str, ...]
    home: str | None
    resolve: Resolve
    exists: Exists = nothing_exists

    def at(self, directory: str | None) -> "PathResolver":
        """The same in another directory, which may be given relative to this one."""
        if directory is None:
            return self
        return PathResolver(posixpath.join(self.cwd, directory), self.roots, self.home, self.resolve, self.exists)

    @property
    def real_cwd(self) -> str:
        """The directory itself."""
        return self._real(self.cwd)

    @property
    def all_roots(self) -> tuple[str, ...]:
        """The roots, resolved and as they were given."""
        written = [root for root in self.roots if root.startswith("/")]
        return _once([*map(self._real, written), *map(posixpath.normpath, written)])

    def real(self, written: Iterable[str]) -> tuple[str, ...]:
        """The files that paths of an agent lead to."""
        return _once(self._real(path) for one in written for path in self._readings(one))

    def spelled(self, written: Iterable[str]) -> tuple[str, ...]:
        """The same with links left as they are, and as a protected link in a root would spell them."""
        written = tuple(written)
        spelled = [posixpath.normpath(path) for one in written for path in self._readings(one)]
        return _once([*spelled, *through(self.links() if written else (), self.real(written))])

    def names(self, written: Iterable[str]) -> tuple[str, ...]:
        """Every name of these paths: the real ones and the others."""
        written = tuple(written)
        return _once([*self.real(written), *self.spelled(written)])

    def links(self) -> tuple[tuple[str, str], ...]:
        """Links with a protected name in the roots, each with where it leads."""
        found = []
        for root in _once(map(self._real, self.roots)):
            for name in LINKED if root.startswith("/") else ():
                link = posixpath.join(root, name)
                target = self._real(link)
                if target != link:
                    found.append((link, target))
        return tuple(found)

    def _readings(self, written: str) -> list[str]:
        """One path, or two if it begins with `~`: some tools take that for a home, some for a name."""
        path = written.removeprefix("file://")
        readings = [posixpath.join(self.cwd, path)]
        if path == "~" or path.startswith("~/"):
            # With no home to put there it stays what it is, and matches no allow.
            readings.append(path if self.home is None else self.home + path[1:])
        return readings

    def _real(self, path: str) -> str:
        if not path.startswith("/"):
            return path
        try:
            real = self.resolve(path)
        except (OSError, ValueError):  # NUL, half a surrogate pair, links in a circle: no file, and no allow matches it
            return path.lstrip("/")
        # `//x` may be another path than `/x` in POSIX; on the systems we run on it is not.
        return "/" + posixpath.normpath(real).lstrip("/")


def through(links: Iterable[tuple[str, str]], real: Iterable[str]) -> Iterator[str]:
    """Other names of real paths: where `.vscode` is a link to `conf`, `conf/x` is `.vscode/x`."""
    paths = tuple(real)
    for link, target in links:
        yield from (link + path[len(target) :] for path in paths if path == target or inside(path, (target,)))


def through_process(paths: Iterable[str]) -> bool:
    """Whether a path leads through a process (`/proc/self/cwd/x`): it is another file for the agent than for us."""
    return any(_PROCESS.match(path) or _PROCESS.match(posixpath.normpath(path)) for path in paths)


def inside(path: str, roots: Iterable[str]) -> bool:
    """Whether a path is strictly below one of the roots."""
    return any(path.startswith(root.rstrip("/") + "/") and path != root for root in roots)


def _once(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(paths))
