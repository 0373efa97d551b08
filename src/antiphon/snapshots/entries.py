"""What stands in a directory, as data, and the differences of two looks. Pure.

Paths are bytes, relative to the directory: a name need not be text.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

__all__ = [
    "DIRECTORY",
    "FILE",
    "LINK",
    "TreeDifference",
    "TreeEntry",
    "WorkspaceTree",
    "contents_of",
    "differences",
    "parents",
    "same",
]

Kind: TypeAlias = Literal["f", "l", "d"]

FILE: Final = "f"
LINK: Final = "l"
DIRECTORY: Final = "d"


class TreeEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A file, a link or a directory, as it was found."""

    kind: Kind
    mode: int
    """The permission bits."""
    size: int = 0
    stamp: tuple[int, int, int] = (0, 0, 0)
    """When it was written, when it was changed in any way, and its inode; zeros: a change right after the look might not show in them."""
    digest: bytes = b""
    """The id that git would give to the content; the target of a link. Empty: the content was not read."""
    pack: int = 0
    """The file of ours that holds the content; 0: git has it among its objects."""
    offset: int = 0


class WorkspaceTree(msgspec.Struct, array_like=True):
    """All that was found in one directory."""

    root: bytes
    entries: dict[bytes, TreeEntry] = {}
    uncovered: dict[bytes, str] = {}
    """What was not looked into, or not kept → why. A directory here stands for all that is in it."""

    def hidden(self, path: bytes) -> str:
        """Why nothing is known of a path; empty: it is known whether it is there."""
        return next((self.uncovered[each] for each in parents(path) if each in self.uncovered), "")


class TreeDifference(NamedTuple):
    """Something that two looks saw differently; None: it was not there."""

    path: bytes
    old: TreeEntry | None
    new: TreeEntry | None


def parents(path: bytes) -> Iterator[bytes]:
    """The directories above a path, the nearest first."""
    while (cut := path.rfind(b"/")) > 0:
        path = path[:cut]
        yield path


def same(old: TreeEntry | None, new: TreeEntry | None) -> bool:
    """Whether two looks saw the same thing. Of content that was not read, size and dates decide."""
    if old is None or new is None:
        return old is new
    if (old.kind, old.mode) != (new.kind, new.mode):
        return False
    if old.kind == DIRECTORY:
        return True
    if old.digest and new.digest:
        return old.digest == new.digest
    return old.size == new.size and old.stamp == new.stamp and any(old.stamp)


def differences(old: WorkspaceTree, new: WorkspaceTree) -> Iterator[TreeDifference]:
    """What changed between two looks at one directory, but for what one of them could not see."""
    before, after = old.entries, new.entries
    for path, entry in before.items():
        now = after.get(path)
        if now is not entry and not same(entry, now) and not _unseen(new, path, now):
            yield TreeDifference(path, entry, now)
    for path, entry in after.items():
        if path not in before and not _unseen(old, path, None):
            yield TreeDifference(path, None, entry)


def _unseen(tree: WorkspaceTree, path: bytes, found: TreeEntry | None) -> bool:
    return found is None and bool(tree.hidden(path))


def contents_of(entries: Mapping[bytes, TreeEntry]) -> dict[bytes, TreeEntry]:
    """The contents that are kept: id → an entry that says where."""
    return {entry.digest: entry for entry in entries.values() if entry.kind == FILE and entry.digest}
