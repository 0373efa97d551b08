"""A plan carried out in a workspace that is not a friendly one, and a process that is killed while it does."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from antiphon.snapshots.entries import TreeEntry
from antiphon.snapshots.plan import RestorePlan, RestoreStep, TreeTurn, restore_plan
from antiphon.snapshots.restore import Interrupted, interrupted, restore
from antiphon.snapshots.store import SnapshotStore, blob_id
from tests.duet.directories import write
from tests.snapshots.trees import Editor, make_project, seen


async def planned(store: SnapshotStore, root: Path, seed: int = 3) -> RestorePlan:
    """The plan that takes some edits back."""
    before = (await store.take()).trees[0]
    Editor(root, seed).edit(25)
    now = (await store.take()).trees[0]
    return restore_plan([TreeTurn(before, now)], now)


async def test_no_link_is_followed_out_of_the_workspace(tmp_path: Path) -> None:
    root, outside = tmp_path / "project", tmp_path / "outside"
    root.mkdir()
    write(root, "src/app.py", "as it was")
    write(root, "gone/file", "as it was")
    write(outside, "app.py", "theirs")
    store = SnapshotStore([str(root)], tmp_path / "store")
    before = (await store.take()).trees[0]
    write(root, "src/app.py", "changed")
    write(root, "src/new.py", "new")
    write(outside, "new.py", "theirs")
    now = (await store.take()).trees[0]
    plan = restore_plan([TreeTurn(before, now)], now)
    os.rename(root / "src", root / "moved")
    (root / "src").symlink_to(outside)  # after the plan was made
    (result,) = await restore(store, [plan])
    assert set(result.failed) == {b"src/app.py"}
    assert seen(outside) == {b"app.py": (0o100644, b"theirs"), b"new.py": (0o100644, b"theirs")}


async def test_a_repository_is_never_touched(tmp_path: Path) -> None:
    root = make_project(tmp_path / "project")
    store = SnapshotStore([str(root)], tmp_path / "store")
    await store.take()
    config = (root / ".git" / "config").read_bytes()
    file = TreeEntry("f", 0o644, 0, digest=blob_id(b"", 20))
    for path in (b".git/config", b"inner/.GIT/hooks/x", b".git"):
        (result,) = await restore(store, [RestorePlan(os.fsencode(root), [RestoreStep(path, None, file)], [], {})])
        assert result.done == []
    assert (root / ".git" / "config").read_bytes() == config


async def test_what_changes_after_the_plan_was_made_is_left_alone_and_named(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    for name in ("edited", "removed", "replaced"):
        write(root, name, "as it was")
    store = SnapshotStore([str(root)], tmp_path / "store")
    before = (await store.take()).trees[0]
    for name in ("edited", "replaced", "made"):
        write(root, name, "by the agent")
    (root / "removed").unlink()
    now = (await store.take()).trees[0]
    plan = restore_plan([TreeTurn(before, now)], now)
    write(root, "edited", "by the user ")
    write(root, "made", "by the user ")
    write(root, "removed", "by the user")
    (root / "replaced").unlink()
    (root / "replaced").mkdir()
    mine = seen(root)
    (result,) = await restore(store, [plan])
    assert set(result.failed.values()) == {"it changed meanwhile"} and len(result.failed) == 4
    assert seen(root) == mine


KILLED = """
import asyncio, os, sys
from pathlib import Path
from antiphon.snapshots import restore as restoring
from antiphon.snapshots.restore import Interrupted
from antiphon.snapshots.store import SnapshotStore
import msgspec
root, directory, plan, left = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
plans = msgspec.msgpack.decode(plan.read_bytes(), type=Interrupted).plans
def counted(name):
    real = getattr(os, name)
    def call(*given, **named):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), 9)
        return real(*given, **named)
    setattr(os, name, call)
for name in ("rename", "unlink", "rmdir", "mkdir", "symlink"):
    counted(name)
asyncio.run(restoring.restore(SnapshotStore([root], directory), plans))
"""


@pytest.mark.slow
@pytest.mark.parametrize("steps", [0, 4, 9])
@pytest.mark.parametrize("way", ["finish", "back"])
async def test_an_undo_that_is_killed_is_finished_or_taken_back(tmp_path: Path, steps: int, way: str) -> None:
    root = make_project(tmp_path / "project")
    as_it_was = seen(root)
    store = SnapshotStore([str(root)], tmp_path / "store")
    plan = await planned(store, root)
    edited = seen(root)
    written = tmp_path / "plan"
    written.write_bytes(msgspec.msgpack.encode(Interrupted([plan])))
    words = [sys.executable, "-c", KILLED, str(root), str(store.directory), str(written), str(steps)]
    killed = await asyncio.to_thread(subprocess.run, words, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    again = SnapshotStore([str(root)], store.directory)
    left = interrupted(again)
    assert left is not None
    plans = left.plans if way == "finish" else [each.reversed() for each in left.plans]
    (result,) = await restore(again, plans, again=True)
    assert result.failed == {} and interrupted(again) is None
    assert seen(root) == (as_it_was if way == "finish" else edited)
