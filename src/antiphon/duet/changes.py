"""What changed in a session's directories between two moments, as a unified diff.

`look` remembers how they look, `changes` tells what became of them. Both use git with a repository of our own (`shadow`), whether the
directories are in one or not. Where git is not there, or takes too long, `from_calls` makes a diff of what the tool calls told.
"""

import asyncio
import difflib
import os
import shutil
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from antiphon.duet.clipping import clipped_diff
from antiphon.duet.folders import new_folder, sweep
from antiphon.duet.git import GitFailed, TooMuch, user_excludes
from antiphon.duet.shadow import TreeSnapshot, in_thread
from antiphon.protocol.v1.tools import Diff, ToolStatus
from antiphon.transcript.entries import CallEntry
from antiphon.transcript.transcript import fold

if TYPE_CHECKING:
    from antiphon.protocol import v1

__all__ = ["DIFF_LIMIT", "LOOK_TIME", "TreeChanges", "TreesBefore", "changes", "from_calls", "snapshot"]

LOOK_TIME: Final = 10.0
"""Seconds for one look. It happens before and after a turn that takes minutes; longer than this nobody should wait for it."""

DIFF_LIMIT: Final = 60_000
"""Characters of a diff: what a model reads at once with everything else it is given."""

READ_LIMIT: Final = 8 * 1024 * 1024
"""Bytes of a diff that are read, of which the best part is shown."""

NESTED_LIMIT: Final = 20
"""Repositories inside a directory that are looked at."""

COMPARED_LINES: Final = 20_000
"""Lines that we compare ourselves. Finding the differences of longer texts takes too long."""


@dataclass(frozen=True)
class TreeChanges:
    """What became of the directories."""

    diff: str = ""
    files: list[str] = field(default_factory=list)
    complete: bool = True
    """Whether all of it was looked at; if not, `why` says what was in the way."""
    why: str = ""


class TreesBefore:
    """How the directories looked. It holds a temporary directory until it is closed: use it in an `async with` block.

    In a `with` block it is removed on the event loop, which may take a moment.
    """

    def __init__(self) -> None:
        self.shadows: list[TreeSnapshot] = []
        self.why = ""
        """What kept us from looking; empty: nothing."""
        self.folder = new_folder()
        self.close = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        """Remove what it holds. Also done when nobody has it any more."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await in_thread(self.close)


async def snapshot(roots: Sequence[str]) -> TreesBefore:
    """Remember how these directories look. It always succeeds; if it could not look, `why` is set."""
    before = TreesBefore()
    try:
        await asyncio.to_thread(sweep)
        async with asyncio.timeout(LOOK_TIME):
            before.why = await _begin(before, roots)
    except TimeoutError:
        before.why = f"looking at the directories took longer than {LOOK_TIME:g} s"
    except (GitFailed, OSError) as error:
        before.why = str(error)
    except BaseException:
        await in_thread(before.close)
        raise
    return before


async def changes(before: TreesBefore, limit: int = DIFF_LIMIT) -> TreeChanges:
    """What became of the directories since. Can be asked again, until `before` is closed."""
    if not before.shadows or not before.close.alive:
        return TreeChanges(complete=False, why=before.why or "nothing was looked at before")
    parts: list[str] = []
    files: list[str] = []
    why = before.why
    try:
        async with asyncio.timeout(LOOK_TIME):
            for shadow in before.shadows:
                try:
                    diff, found, large = await shadow.changes(READ_LIMIT)
                except TooMuch as much:
                    diff, found, large, why = much.output, [], [], str(much)
                files += [f"{shadow.name}{name}" for name in (*found, *large)]
                parts += [diff.decode("utf-8", "replace")]
                parts += [
                    f"diff --git a/{shadow.name}{name} b/{shadow.name}{name}\nToo large to show.\n" for name in large
                ]
    except TimeoutError:
        why = f"looking at the directories took longer than {LOOK_TIME:g} s"
    except (GitFailed, OSError) as error:
        why = str(error)
    return TreeChanges(clipped_diff("".join(parts), limit), files, not why, why)


async def _begin(before: TreesBefore, roots: Sequence[str]) -> str:
    """Look at all of them, and at the repositories inside: what could not be looked at."""
    waiting = _named(roots)
    if not waiting:
        return "there is no directory to look at"
    excludes = await user_excludes(before.folder)
    most = len(waiting) + NESTED_LIMIT
    troubles: list[str] = []
    number = 0
    while waiting and number < most:
        root, name = waiting.pop(0)
        number += 1
        shadow = TreeSnapshot(before.folder / str(number), root, name, excludes)
        try:
            inside = await shadow.begin()
        except (GitFailed, OSError) as error:
            troubles.append(str(error))
            continue
        before.shadows.append(shadow)
        waiting += [(os.path.join(root, each), f"{name}{each}/") for each in inside]
    if waiting:
        troubles.append(f"{len(waiting)} of the repositories inside were not looked at")
    return "; ".join(troubles)


def _named(roots: Sequence[str]) -> list[tuple[str, str]]:
    """The directories that are there, each once, and what stands before the paths in each: nothing in the first of them."""
    named: list[tuple[str, str]] = []
    for number, root in enumerate(roots):
        path = os.path.realpath(root)
        if os.path.isdir(path) and not any(_inside(path, other) for other, _ in named):
            named.append((path, f"{path.lstrip('/')}/" if number else ""))
    return named


def _line(name: str) -> str:
    return " ".join(name.split())


def _inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def from_calls(updates: "Iterable[v1.Update]", limit: int = DIFF_LIMIT) -> TreeChanges:
    """What the tool calls told of their changes: for each file from the first text to the last. Never known to be complete."""
    chains: dict[str, list[tuple[str | None, str]]] = {}
    for call in fold(updates).entries:
        if not isinstance(call, CallEntry) or call.status == ToolStatus.FAILED:
            continue
        for item in call.content:
            if isinstance(item, Diff):
                chain = chains.setdefault(item.path, [])
                if chain and chain[-1][1] == item.old_text:
                    chain[-1] = (chain[-1][0], item.new_text)
                else:  # a first change, or one that is told as a part of the file
                    chain.append((item.old_text, item.new_text))
    told = {path: [pair for pair in chain if pair[0] != pair[1]] for path, chain in chains.items()}
    parts = [_unified(path, old, new) for path, chain in told.items() for old, new in chain]
    files = [path for path, chain in told.items() if chain]
    return TreeChanges(
        clipped_diff("".join(parts), limit), files, complete=False, why="only what the tool calls told is known"
    )


def _unified(path: str, old: str | None, new: str) -> str:
    name = _line(path) or "?"
    before, after = (old or "").splitlines(), new.splitlines()
    head = f"diff --git a/{name.lstrip('/')} b/{name.lstrip('/')}\n"
    if len(before) + len(after) > COMPARED_LINES:
        return f"{head}Too large to compare: {len(before)} lines became {len(after)}.\n"
    source = "/dev/null" if old is None else f"a/{name.lstrip('/')}"
    lines = difflib.unified_diff(before, after, source, f"b/{name.lstrip('/')}", lineterm="")
    return head + "".join(f"{line}\n" for line in lines)
