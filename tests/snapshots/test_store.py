"""Snapshots on the disk: what is kept, what is borrowed from git, what is left out by name, and the limits of it all."""

import fcntl
import os
import stat
import time
from pathlib import Path

import pytest

from antiphon.snapshots import store as stores
from antiphon.snapshots import walk
from antiphon.snapshots.entries import TreeEntry, WorkspaceTree
from antiphon.snapshots.plan import TreeTurn, restore_plan
from antiphon.snapshots.restore import restore
from antiphon.snapshots.store import SnapshotStore, sweep_stores
from antiphon.snapshots.walk import TreeTooLarge
from tests.duet.directories import commit, git, write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def store(root: Path, tmp_path: Path) -> SnapshotStore:
    return SnapshotStore([str(root)], tmp_path / "store")


@pytest.fixture
def certain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dates count at once, where otherwise those of the last two seconds do not, and git is asked for the first file."""
    monkeypatch.setattr(walk, "RACY", -(10**11))
    monkeypatch.setattr(stores, "FEW", 0)


def small(monkeypatch: pytest.MonkeyPatch, ignored: int) -> None:
    monkeypatch.setattr(walk, "IGNORED_LIMIT", ignored)
    monkeypatch.setattr(stores, "IGNORED_LIMIT", ignored)


async def look(store: SnapshotStore, seconds: float = 60) -> WorkspaceTree:
    return (await store.take(seconds)).trees[0]


def packed(store: SnapshotStore) -> int:
    """Bytes that were kept."""
    return sum(path.stat().st_size for path in (store.directory / "packs").iterdir())


async def undone(store: SnapshotStore, before: WorkspaceTree) -> dict[bytes, str]:
    """Bring everything back, and return what that was not possible for."""
    now = await look(store)
    plan = restore_plan([TreeTurn(before, now)], now)
    (result,) = await restore(store, [plan])
    return plan.lost | result.failed


async def test_an_ignored_directory_is_kept_if_it_is_small_and_named_if_it_is_not(
    root: Path, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(monkeypatch, 10)
    git(root, "init", "--quiet")
    write(root, ".gitignore", "node_modules/\nlocal/\n")
    for number in range(30):
        write(root, f"node_modules/m{number}/index.js", "x")
    settings = write(root, "local/settings", "kept")
    before = await look(store)
    assert before.uncovered == {b"node_modules": "it is ignored, and holds more than 10 files"}
    settings.write_text("lost?", encoding="utf-8")
    write(root, "node_modules/m1/index.js", "changed")
    assert await undone(store, before) == {}  # nothing is known of what happened there
    assert settings.read_text(encoding="utf-8") == "kept"


async def test_a_large_directory_that_a_turn_makes_is_named_and_stays(
    root: Path, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(monkeypatch, 10)
    before = await look(store)
    for number in range(30):
        write(root, f"node_modules/m{number}", "x")  # not a repository: its name decides
    assert await undone(store, before) == {b"node_modules": "it is ignored, and holds more than 10 files"}
    assert (root / "node_modules" / "m1").exists()


async def test_a_file_that_is_too_large_is_named_when_it_changed_and_left_alone(
    root: Path, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "FILE_LIMIT", 1000)
    monkeypatch.setattr(stores, "FILE_LIMIT", 1000)
    write(root, "same.bin", "x" * 2000)
    large = write(root, "large.bin", "x" * 2000)
    before = await look(store)
    assert set(before.uncovered) == {b"same.bin", b"large.bin"} and packed(store) == 0
    large.write_text("y" * 3000, encoding="utf-8")
    assert list(await undone(store, before)) == [b"large.bin"]
    assert large.stat().st_size == 3000


@pytest.mark.usefixtures("certain")
@pytest.mark.parametrize("version", ["2", "3", "4", "sha256", "below"])
async def test_what_git_has_is_not_read_and_comes_back_with_every_byte(
    root: Path, tmp_path: Path, version: str
) -> None:
    git(root, "init", "--quiet", *(["--object-format=sha256"] if version == "sha256" else []))
    project = root / "deep" if version == "below" else root
    write(project, ".gitattributes", "*.dos text eol=crlf\n")
    for name in ("src/a.py", "src/b.py", "src/c/d.py"):
        write(project, name, f"{name}\n" * 10)
    (project / "lines.dos").write_bytes(b"one\r\ntwo\r\n")
    git(root, "add", "-A")
    if version == "3":
        git(root, "update-index", "--skip-worktree", f"{project / 'src' / 'b.py'}")
    if version == "4":
        git(root, "update-index", "--index-version", "4")
    commit(root)
    later = time.time_ns() + 10**9
    os.utime(root / ".git" / "index", ns=(later, later))
    store = SnapshotStore([str(project)], tmp_path / "store")
    before = await look(store)
    assert packed(store) == len(b"one\r\ntwo\r\n")  # git has it with other ends of lines
    size = 32 if version == "sha256" else 20
    assert {len(entry.digest) for entry in before.entries.values() if entry.kind == "f"} == {size}
    git(root, "rm", "-r", "--quiet", "--force", ".")
    write(project, "src/a.py", "other")
    assert await undone(store, before) == {}
    assert (project / "src" / "a.py").read_text(encoding="utf-8") == "src/a.py\n" * 10
    assert (project / "src" / "c" / "d.py").exists() and (project / "lines.dos").read_bytes() == b"one\r\ntwo\r\n"


@pytest.mark.usefixtures("certain")
async def test_where_git_filters_files_their_bytes_are_read(root: Path, store: SnapshotStore) -> None:
    git(root, "init", "--quiet")
    git(root, "config", "filter.rot.clean", "tr a-z b-za")
    git(root, "config", "filter.rot.smudge", "tr b-za a-z")
    write(root, ".gitattributes", "*.secret filter=rot\n")
    secret = write(root, "a.secret", "hidden\n")
    git(root, "add", "-A")
    commit(root)
    later = time.time_ns() + 10**9
    os.utime(root / ".git" / "index", ns=(later, later))
    before = await look(store)
    secret.unlink()
    assert await undone(store, before) == {}
    assert secret.read_text(encoding="utf-8") == "hidden\n"


@pytest.mark.usefixtures("certain")
async def test_a_content_that_git_has_removed_since_is_named(root: Path, store: SnapshotStore) -> None:
    git(root, "init", "--quiet")
    song = write(root, "song.txt", "do re mi\n")
    git(root, "add", "-A")
    later = time.time_ns() + 10**9
    os.utime(root / ".git" / "index", ns=(later, later))
    before = await look(store)
    song.unlink()
    git(root, "rm", "--quiet", "--cached", "song.txt")
    git(root, "prune", "--expire=now")
    assert await undone(store, before) == {b"song.txt": "its content is not kept any more"}


async def test_a_look_that_sees_nothing_new_takes_no_other_snapshot(root: Path, store: SnapshotStore) -> None:
    write(root, "a", "1")
    first = (await store.take()).number
    assert (await store.take()).number == first
    write(root, "a", "2")
    second = (await store.take()).number
    os.chmod(root / "a", 0o600)
    third = (await store.take()).number
    assert len({first, second, third}) == 3
    again = SnapshotStore(store.roots, store.directory)
    assert (await again.take()).number == third  # also in another process


async def test_a_look_without_time_reads_nothing_and_the_next_one_does(root: Path, store: SnapshotStore) -> None:
    write(root, "a", "1")
    tree = await look(store, 0.0)
    assert tree.uncovered == {b"a": "there was no time to read it"}
    assert (await look(store)).uncovered == {}


async def test_too_many_files_are_an_error(root: Path, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch, 5)
    monkeypatch.setattr(stores, "ENTRIES_LIMIT", 20)
    for number in range(30):
        write(root, f"f{number}", "x")
    with pytest.raises(TreeTooLarge, match="more than 20 files"):
        await store.take()


async def test_pipes_and_links_are_not_followed_and_a_repository_is_not_looked_into(
    root: Path, store: SnapshotStore
) -> None:
    os.mkfifo(root / "pipe")
    (root / "up").symlink_to("..")
    (root / ".GIT").mkdir()
    write(root, "sub/.git/config", "theirs")
    tree = await look(store)
    assert set(tree.entries) == {b"up", b"sub"}
    assert tree.uncovered == {b"pipe": "it is neither a file nor a link nor a directory"}


async def test_old_and_superfluous_snapshots_and_their_contents_are_removed(
    root: Path, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "SNAPSHOTS_LIMIT", 3)
    for number in range(6):
        write(root, "a", f"{number}")
        await store.take()
    assert store.numbers() == [4, 5, 6]
    assert {path.name for path in (store.directory / "packs").iterdir()} == {"4", "5", "6"}
    monkeypatch.setattr(stores, "AGE_LIMIT", -1.0)
    write(root, "a", "last")
    await store.take()
    assert store.numbers() == []


async def test_a_store_that_is_full_says_so(root: Path, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "STORE_LIMIT", 1024**2)
    write(root, "small", "x")
    write(root, "large", "x" * 2 * 1024**2)
    tree = await look(store)
    assert tree.uncovered == {b"large": "there are more than 1 MB to keep"} and tree.entries[b"small"].digest


async def test_only_the_user_can_read_a_store_and_stores_that_are_not_used_are_removed(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", str(tmp_path / "state"))
    write(root, ".env", "KEY=1")
    store = SnapshotStore([str(root)])
    await store.take()
    modes = {stat.S_IMODE(path.stat().st_mode) for path in [store.directory, *store.directory.rglob("*")]}
    assert modes == {0o700, 0o600}
    sweep_stores()
    assert store.directory.exists()
    monkeypatch.setattr(stores, "AGE_LIMIT", -1.0)
    sweep_stores()
    assert not store.directory.exists()


async def test_a_store_that_another_process_holds_is_an_error_and_not_a_wait_for_ever(
    root: Path, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.take()
    monkeypatch.setattr(stores, "LOCK_TIME", 0.1)
    held = os.open(store.directory / "lock", os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(OSError, match="another program is looking"):
        await store.take()
    os.close(held)
    await store.take()


def test_an_entry_stays_small() -> None:
    assert TreeEntry("f", 0o644).__sizeof__() < 120
