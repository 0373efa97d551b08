"""Undo brings back every byte: after any edits, in any number of turns, and whatever git knows or does not know of the files."""

import os
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.snapshots.plan import TreeTurn, restore_plan
from antiphon.snapshots.restore import restore
from antiphon.snapshots.store import SnapshotStore
from tests.snapshots.trees import Editor, Seen, make_project, seen

SEQUENCES = 200
EACH = 10
"""Sequences in one project. They change it for good, so that after many there would be no tracked and no ignored file left in it."""


def kinds_of(root: Path, before: Seen, after: Seen) -> Iterator[str]:
    """Yield what kinds of changes there are between two looks at a project."""
    changed = [path for path in {*before, *after} if before.get(path) != after.get(path)]
    tracked = {*git_output(root, "ls-files", "-z").split(b"\0")}
    rules = git_output(root, "check-ignore", "-z", "--stdin", given=b"\0".join(changed)) if changed else b""
    ignored = {*rules.split(b"\0")} - {b""}
    created = {after[path] for path in changed if path not in before and after[path][1]}
    for path in changed:
        then, now = before.get(path), after.get(path)
        yield "ignored" if path in ignored else "tracked" if path in tracked else "untracked"
        yield "created" if then is None else "deleted" if now is None else "changed"
        if then is not None and now is None and then in created:
            yield "renamed"
        if then is not None and now is not None and then[0] != now[0] and then[1] == now[1]:
            yield "mode"
        if any(each is not None and b"\0" in each[1] for each in (then, now)):
            yield "binary"


def git_output(root: Path, *words: str, given: bytes = b"") -> bytes:
    """Return what git says, also if that is nothing."""
    return subprocess.run(["git", "-C", root, *words], input=given, capture_output=True, check=False).stdout


@pytest.mark.slow
@pytest.mark.prove
async def test_after_each_of_200_random_sequences_of_edits_every_byte_comes_back(tmp_path: Path) -> None:
    covered = Counter[str]()
    for seed in range(SEQUENCES):
        root = tmp_path / f"project-{seed // EACH}"
        if seed % EACH == 0:
            make_project(root)
        # A new store each time: what it knows comes from the disk.
        store = SnapshotStore([str(root)], tmp_path / f"store-{seed // EACH}")
        choice = random.Random(seed)
        editor = Editor(root, seed)
        looks, turns = [], []
        for _ in range(choice.randrange(1, 4)):
            looks.append(seen(root))
            before = (await store.take(60)).trees[0]
            editor.edit(choice.randrange(1, 12))
            turns.append(TreeTurn(before, (await store.take(60)).trees[0]))
        first = choice.randrange(len(turns))
        covered.update(kinds_of(root, looks[first], seen(root)))
        now = (await store.take(60)).trees[0]
        plan = restore_plan(turns[first:], now)
        assert plan.changed_since == [], seed
        assert plan.lost == {}, seed
        (result,) = await restore(store, [plan])
        assert result.failed == {}, seed
        assert seen(root) == looks[first], seed
    wanted = ("tracked", "untracked", "ignored", "binary", "created", "changed", "deleted", "renamed", "mode")
    assert all(covered[kind] >= 20 for kind in wanted), covered


async def test_an_undo_can_be_undone(tmp_path: Path) -> None:
    root = make_project(tmp_path / "project")
    store = SnapshotStore([str(root)], tmp_path / "store")
    before = (await store.take()).trees[0]
    Editor(root, 7).edit(30)
    edited = seen(root)
    after = (await store.take()).trees[0]
    plan = restore_plan([TreeTurn(before, after)], after)
    await restore(store, [plan])
    assert seen(root) != edited
    now = (await store.take()).trees[0]
    back = restore_plan([TreeTurn(after, now)], now)
    (result,) = await restore(store, [back])
    assert (result.failed, seen(root)) == ({}, edited)
    assert os.listdir(tmp_path / "store" / "packs")
