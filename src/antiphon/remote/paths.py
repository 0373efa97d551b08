"""Directories of this machine and where they are on another, for paths and `file://` URIs.

Rule 1: the longest directory that holds a path decides, compared segment by segment: `/src` does not hold `/srcs`.
Rule 2: a path is mapped only if it maps back to itself. Where directories overlap, a path that one machine has and the other shows as
another directory is not mapped at all.
Rule 3: the rest of a path stays as it was written, the rest of a URI with its own escapes, its query and its fragment.
"""

import os
import posixpath
import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote, unquote

from antiphon.errors import LocalProtocolError

__all__ = ["PathMap", "is_below", "path_of"]

_FILE: Final = re.compile(r"(file:)(//(?:localhost)?)?(/[^?#]*)([?#].*)?", re.IGNORECASE | re.DOTALL)
"""A URI of a file on the machine that reads it: scheme, authority, path, query and fragment."""

_PLAIN: Final = "!$&'()*+,;=:@"
"""Characters that stand in a segment of a URI as they are, beside letters, digits and `-._~`."""

Segments = tuple[str, ...]
_Pairs = Sequence[tuple[Segments, Segments]]


class PathMap:
    """Pairs of directories, local and remote. Without any, nothing is mapped.

    Raises:
        LocalProtocolError: a directory is not absolute, or is given twice.
    """

    def __init__(self, pairs: Sequence[tuple[str, str]] = ()) -> None:
        self.pairs = tuple(pairs)
        split = [(_directory(local), _directory(remote)) for local, remote in pairs]
        for place, name in enumerate(("local", "remote")):
            given = [pair[place] for pair in split]
            for each in given:
                if given.count(each) > 1:
                    raise LocalProtocolError(
                        f"the {name} directory `{_joined(each)}` is mapped twice", hint="give each directory once"
                    )
        self._there = sorted(split, key=lambda pair: len(pair[0]), reverse=True)
        self._back = sorted(((remote, local) for local, remote in split), key=lambda pair: len(pair[0]), reverse=True)

    @classmethod
    def parse(cls, texts: Sequence[str]) -> "PathMap":
        """Read pairs of the form `LOCAL=REMOTE`. LOCAL may be relative to the current directory, or begin with `~`."""
        pairs = []
        for text in texts:
            local, equals, remote = text.partition("=/")  # a name may have an equals sign in it
            if not equals or not local:
                raise LocalProtocolError(
                    f"`{text}` is not a pair of directories", hint="write it like `--map ~/project=/srv/project`"
                )
            pairs.append((os.path.abspath(os.path.expanduser(local)), "/" + remote))
        return cls(pairs)

    def __bool__(self) -> bool:
        return bool(self.pairs)

    def to_remote(self, path: str) -> str | None:
        """Return where a local path is on the other machine; None: in no mapped directory."""
        return _path(path, self._there, self._back)

    def to_local(self, path: str) -> str | None:
        """Return where a path of the other machine is here; None: in no mapped directory."""
        return _path(path, self._back, self._there)

    def uri_to_remote(self, uri: str) -> str | None:
        """Return the URI of a local file on the other machine; None: it is of no file in a mapped directory."""
        return _uri(uri, self._there, self._back)

    def uri_to_local(self, uri: str) -> str | None:
        """Return the URI that a file of the other machine has here; None: it is of no file in a mapped directory."""
        return _uri(uri, self._back, self._there)


def is_below(path: str, directories: Sequence[str]) -> bool:
    """Whether a path is one of these directories or in one of them, as it is written: links are not followed."""
    if not path.startswith("/"):
        return False
    own = _split(path)
    return any(own[: len(directory)] == directory for directory in map(_split, directories))


def path_of(uri: str) -> str:
    """Return the path that a URI of a file names; any other text as it is."""
    found = _FILE.fullmatch(uri)
    return uri if found is None else unquote(found[3], errors="surrogateescape")


def _directory(path: str) -> Segments:
    if not path.startswith("/"):
        raise LocalProtocolError(f"`{path}` is not an absolute path", hint="write it from `/`")
    return _split(path)


def _split(path: str) -> Segments:
    """The segments of an absolute path, without empty ones, `.` and `..`."""
    return tuple(part for part in posixpath.normpath(path).split("/") if part)


def _joined(segments: Segments) -> str:
    return "/" + "/".join(segments)


def _moved(segments: Segments, there: _Pairs, back: _Pairs) -> tuple[Segments, int] | None:
    """The other side's directory for a path, and how many segments of the path it stands for."""
    for source, target in there:
        if segments[: len(source)] == source:
            moved = target + segments[len(source) :]
            returns = next(pair for pair in back if moved[: len(pair[0])] == pair[0])
            return (target, len(source)) if returns == (target, source) else None
    return None


def _path(path: str, there: _Pairs, back: _Pairs) -> str | None:
    if not path.startswith("/"):
        return None
    segments = _split(path)
    moved = _moved(segments, there, back)
    if moved is None:
        return None
    target, count = moved
    found = _joined(target + segments[count:])
    return found + "/" if path.endswith("/") and found != "/" else found


def _uri(uri: str, there: _Pairs, back: _Pairs) -> str | None:
    found = _FILE.fullmatch(uri)
    if found is None:
        return _path(uri, there, back)  # some programs send a path where a URI belongs
    scheme, authority, path, rest = found[1], found[2] or "", found[3], found[4] or ""
    written: list[str] = []
    for part in path.split("/"):
        name = unquote(part)
        if name == "..":
            del written[-1:]
        elif name not in ("", "."):
            written.append(part)
    moved = _moved(tuple(unquote(part, errors="surrogateescape") for part in written), there, back)
    if moved is None:
        return None
    target, count = moved
    new = "/" + "/".join([*map(_quoted, target), *written[count:]])
    end = "/" if path.endswith("/") and new != "/" else ""
    return f"{scheme}{authority}{new}{end}{rest}"


def _quoted(segment: str) -> str:
    return quote(segment, safe=_PLAIN, errors="surrogateescape")
