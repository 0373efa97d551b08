"""Whether a path rule meets the paths of an action."""

from collections.abc import Iterable, Iterator

from antiphon.policy.action import Action
from antiphon.policy.globs import Piece, folded, segments_match
from antiphon.policy.rules import PathPattern
from antiphon.policy.verdicts import Match

__all__ = ["path_covered", "path_forbidden"]


def path_covered(pattern: PathPattern, path: str, action: Action) -> bool:
    """Whether an allow with this pattern permits the path: exactly, and only as a whole."""
    return any(segments_match(pattern.segments, names) for names in _all_names([path], _bases(pattern, action)))


def path_forbidden(pattern: PathPattern, action: Action) -> Match:
    """Whether a deny with this pattern meets any path, under any of its names, or a folder above it.

    Perhaps: nobody knows all the paths; it is the same but for upper and lower case or the form of an accent, which on some
    disks is the same file; or a folder is moved or deleted that the pattern reaches into.
    """
    unknown = action.unread or not action.paths or (pattern.base == "~" and action.home is None)
    paths = (*action.paths, *action.spellings)
    bases = _bases(pattern, action)
    if any(segments_match(pattern.segments, names, above=True) for names in _all_names(paths, bases)):
        return Match.YES
    if unknown or _perhaps(pattern, action, paths, bases):
        return Match.MAYBE
    return Match.NO


def _perhaps(pattern: PathPattern, action: Action, paths: Iterable[str], bases: Iterable[str]) -> bool:
    if pattern.folded != pattern.segments or any(path != folded(path) for path in paths):
        known = _all_names([folded(path) for path in paths], [folded(base) for base in bases])
        if any(segments_match(pattern.folded, names, above=True) for names in known):
            return True
    takes_folders = action.kind in ("delete", "move") or action.plain_files
    return takes_folders and any(_reaches_into(pattern.segments, path, base) for path in action.paths for base in bases)


def _reaches_into(segments: tuple[Piece, ...], path: str, base: str) -> bool:
    """Whether the pattern may match something below `path`: every name of the path fits the beginning of the pattern."""
    names = _names_below(path, base)
    if names is None:
        return _names_below(base, path) is not None
    return any(segments_match(segments[:end], names) for end in range(len(segments) + 1))


def _all_names(paths: Iterable[str], bases: Iterable[str]) -> Iterator[list[str]]:
    """Every path below every base, as names; each once."""
    for path in dict.fromkeys(paths):
        for base in dict.fromkeys(bases):
            names = _names_below(path, base)
            if names is not None:
                yield names


def _bases(pattern: PathPattern, action: Action) -> tuple[str, ...]:
    if pattern.base == "/":
        return ("/",)
    if pattern.base == "~":
        return () if action.home is None else (action.home,)
    return action.roots


def _names_below(path: str, base: str) -> list[str] | None:
    base = base.rstrip("/") + "/"
    if not path.startswith(base) and path + "/" != base:
        return None
    return [name for name in path[len(base) :].split("/") if name]
