"""How a look works: with a git that is the user's, beside the event loop, and without leaving anything behind."""

import asyncio
import os
import shutil
import stat
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from antiphon.duet.review import changes, snapshot
from antiphon.snapshots import git as folders
from tests.duet.directories import write

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.mark.parametrize("path", [".:bin:", "", ".:{}"])
async def test_a_project_cannot_bring_a_git_along(
    tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str
) -> None:
    for folder in (tree, tree / "bin"):
        for name in ("git", "git-update-index"):
            write(folder, name, f'#!/bin/sh\necho trap >> "{tmp_path}/trapped"\n').chmod(0o755)
    monkeypatch.chdir(tree)
    monkeypatch.setenv("PATH", path.format(os.environ["PATH"]))
    with await snapshot([str(tree)]) as before:
        write(tree, "song.txt", "do\n")
        found = await changes(before)
    assert not (tmp_path / "trapped").exists()
    assert found.files == ["song.txt"] if path.endswith("}") else "git could not be started" in found.why


async def test_copying_and_removing_are_done_beside_the_event_loop(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where: dict[str, bool] = {}

    def noting(name: str) -> None:
        real = getattr(shutil, name)

        def do(*args: Any, **named: Any) -> Any:
            where[name] = threading.current_thread() is threading.main_thread()
            return real(*args, **named)

        monkeypatch.setattr(shutil, name, do)

    for name in ("copy2", "rmtree"):
        noting(name)
    async with await snapshot([str(tree)]) as before:
        assert before.why == ""
    assert where == {"copy2": False, "rmtree": False}


async def test_a_snapshot_that_is_cancelled_while_it_copies_leaves_nothing(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copying, called_off = threading.Event(), threading.Event()
    real = shutil.copy2

    def slow(*args: Any) -> Any:
        copying.set()
        called_off.wait(10)
        return real(*args)

    monkeypatch.setattr(shutil, "copy2", slow)
    task = asyncio.create_task(snapshot([str(tree)]))
    await asyncio.to_thread(copying.wait, 10)
    task.cancel()
    asyncio.get_running_loop().call_soon(called_off.set)
    with pytest.raises(asyncio.CancelledError):
        await task


def a_process_that_is_gone() -> int:
    with subprocess.Popen(["true"]) as process:
        return process.pid


async def test_what_a_killed_process_left_is_removed_by_a_snapshot_a_day_later(
    tree: Path, nothing_is_left: Path
) -> None:
    killed = a_process_that_is_gone()
    long_ago = time.time() - 2 * folders.LEFT

    def left(name: str, *, old: bool = True) -> Path:
        path = nothing_is_left / name
        write(path, "1/index", "something")
        if old:
            os.utime(path, (long_ago, long_ago))
        return path

    gone = left(f"antiphon-look-{killed}-abc")
    others = [
        left(f"antiphon-look-{killed}-new", old=False),
        left(f"antiphon-look-{os.getppid()}-abc"),
        left("antiphon-look-something"),
        left(f"of-another-{killed}-abc"),
    ]
    link = nothing_is_left / f"antiphon-look-{killed}-link"
    link.symlink_to(others[-1])
    os.utime(link, (long_ago, long_ago), follow_symlinks=False)
    async with await snapshot([str(tree)]) as before:
        assert not gone.exists() and all(path.is_dir() for path in others) and link.is_symlink()
        assert str(os.getpid()) in before.folder.name and stat.S_IMODE(before.folder.stat().st_mode) == 0o700
    link.unlink()
    for path in others:
        shutil.rmtree(path)
