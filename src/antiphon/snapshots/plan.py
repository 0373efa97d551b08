"""What has to be done to bring files back, and what changed since. Pure.

What a turn changed is brought back; what changed only between turns is the user's own work, and stays. A file that changed in a turn and
again outside of one is named, so that the user can be asked.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from antiphon.snapshots.entries import DIRECTORY, FILE, TreeEntry, WorkspaceTree, differences, same

__all__ = ["RestorePlan", "RestoreStep", "TreeTurn", "restore_plan"]


class TreeTurn(NamedTuple):
    """A directory before and after a turn; None after it: that was not seen."""

    before: WorkspaceTree
    after: WorkspaceTree | None


class RestoreStep(msgspec.Struct, frozen=True, array_like=True):
    """One path: what is there now, and what was there; None: nothing."""

    path: bytes
    now: TreeEntry | None
    then: TreeEntry | None


class RestorePlan(msgspec.Struct):
    """What has to be done in one directory."""

    root: bytes
    steps: list[RestoreStep]
    changed_since: list[bytes]
    """The paths among the steps that also changed outside of the turns."""
    lost: dict[bytes, str]
    """What changed in the turns and cannot be brought back → why."""

    def without(self, paths: Collection[bytes]) -> "RestorePlan":
        """The plan with some paths left as they are now."""
        return RestorePlan(self.root, [step for step in self.steps if step.path not in paths], [], self.lost)

    def reversed(self) -> "RestorePlan":
        """The plan that undoes this one."""
        steps = [RestoreStep(step.path, step.then, step.now) for step in self.steps]
        return RestorePlan(self.root, steps, [], {})

    @property
    def files(self) -> list[RestoreStep]:
        """The steps of files and links: directories follow from them, unless they are alone."""
        shown = [step for step in self.steps if DIRECTORY not in (_kind(step.now), _kind(step.then))]
        return shown or self.steps


def restore_plan(turns: Sequence[TreeTurn], now: WorkspaceTree) -> RestorePlan:
    """The plan to bring a directory back to before the first of these turns. The turns are in order, and none is missing."""
    target = turns[0].before
    touched: set[bytes] = set()
    since: set[bytes] = set()
    unseen = {path: why for path, why in target.uncovered.items() if path not in target.entries}
    lost: dict[bytes, str] = {}
    for number, turn in enumerate(turns):
        later = turns[number + 1].before if number + 1 < len(turns) else now
        touched |= {each.path for each in differences(turn.before, turn.after or later)}
        if turn.after is None:  # who changed what in between is not known
            since |= {each.path for each in differences(turn.before, later)}
        else:
            since |= {each.path for each in differences(turn.after, later)}
    for tree in [now, *(turn.after for turn in turns if turn.after)]:  # what happened inside of these was not seen
        lost |= {
            path: why
            for path, why in tree.uncovered.items()
            if path not in target.uncovered
            and (entry := tree.entries.get(path)) is not None
            and entry.kind == DIRECTORY
        }
    steps: list[RestoreStep] = []
    for path in sorted(touched):
        here, then = now.entries.get(path), target.entries.get(path)
        if same(here, then):
            continue
        if path in lost and (then is None or then.kind != DIRECTORY):
            continue
        why = unseen.get(path) or target.hidden(path) or now.hidden(path) or _lost(target, path, here, then)
        if why:
            lost[path] = why
        else:
            steps.append(RestoreStep(path, here, then))
    planned = {step.path for step in steps}
    return RestorePlan(now.root, steps, sorted(since & planned), lost)


def _lost(target: WorkspaceTree, path: bytes, here: TreeEntry | None, then: TreeEntry | None) -> str:
    """Why the earlier content of a path is not there; empty: it is."""
    if then is None or then.kind != FILE or then.digest:
        return ""
    if (
        here is not None
        and here.kind == FILE
        and here.size == then.size
        and here.stamp == then.stamp
        and any(here.stamp)
    ):
        return ""  # only its mode changed
    return target.uncovered.get(path, "its content was not kept")


def _kind(entry: TreeEntry | None) -> str:
    return "" if entry is None else entry.kind
