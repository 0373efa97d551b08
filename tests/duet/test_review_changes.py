"""What changed in directories, with the real git: in repositories of every kind, and where there is none."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from antiphon.duet import review as looking
from antiphon.duet.review import TreeChanges, changes, clipped_diff, from_calls, snapshot
from antiphon.protocol import v1
from antiphon.snapshots import git as running
from antiphon.snapshots import git as shadow
from tests.duet.directories import commit, git, write
from tests.duet.history.histories import call

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file of a repository, with its date."""
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in (folder / ".git").rglob("*")
        if path.is_file()
    }


async def test_only_what_changed_between_the_snapshots_is_reported(tree: Path) -> None:
    before_all = state(tree)
    with await snapshot([str(tree)]) as before:
        assert before.why == ""
        assert await changes(before) == TreeChanges()
        write(tree, "src/sing.py", "print('lo')\n")
        write(tree, "new/verse.txt", "sol\n")
        write(tree, "noise.log", "ignored\n")
        found = await changes(before)
        assert found.complete and sorted(found.files) == ["new/verse.txt", "src/sing.py"]
        assert "-print('la')\n+print('lo')\n" in found.diff and "+sol\n" in found.diff
        assert "fa" not in found.diff and "ignored" not in found.diff
        write(tree, "src/sing.py", "print('la')\n")
        assert (await changes(before)).files == ["new/verse.txt"]
    assert state(tree) == before_all


async def test_files_that_were_deleted_renamed_and_made_links_are_reported(tree: Path) -> None:
    write(tree, "long.txt", "".join(f"line {number}\n" for number in range(50)))
    write(tree, "folder/inside.txt", "inside\n")
    git(tree, "add", "-A")
    with await snapshot([str(tree)]) as before:
        (tree / "song.txt").unlink()
        (tree / "long.txt").rename(tree / "renamed.txt")
        (tree / "link").symlink_to("/nowhere")
        (tree / "folder/inside.txt").unlink()
        (tree / "folder").rmdir()
        (tree / "folder").symlink_to("src")
        (tree / "src/sing.py").chmod(0o755)
        found = await changes(before)
    assert found.complete, found.why
    assert "deleted file mode 100644" in found.diff and "rename to renamed.txt" in found.diff
    assert "new file mode 120000" in found.diff and "+/nowhere" in found.diff and "new mode 100755" in found.diff
    assert "a/folder/inside.txt" in found.diff and "b/folder\n" in found.diff


async def test_a_file_becomes_a_folder_and_a_folder_a_file(tree: Path) -> None:
    with await snapshot([str(tree)]) as before:
        (tree / "song.txt").unlink()
        write(tree, "song.txt/verse", "do\n")
        (tree / "src/sing.py").unlink()
        (tree / "src").rmdir()
        write(tree, "src", "print()\n")
        found = await changes(before)
    assert found.complete, found.why
    assert sorted(found.files) == ["song.txt", "song.txt/verse", "src", "src/sing.py"]


async def test_binary_and_large_files_are_named(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadow, "FILE_LIMIT", 1000)
    write(tree, "grows.txt", "x" * 2000)
    write(tree, "stays.txt", "x" * 2000)
    with await snapshot([str(tree)]) as before:
        (tree / "picture.bin").write_bytes(bytes(range(256)))
        write(tree, "grows.txt", "x" * 3000)
        write(tree, "huge.txt", "y" * 5000)
        found = await changes(before)
    assert sorted(found.files) == ["grows.txt", "huge.txt", "picture.bin"] and found.complete
    assert "Binary files /dev/null and b/picture.bin differ" in found.diff
    assert "b/grows.txt\nToo large to show." in found.diff and "yyy" not in found.diff


async def test_a_folder_without_a_repository_is_looked_at_too(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    write(root, "song.txt", "do\n")
    with await snapshot([str(root)]) as before:
        write(root, "song.txt", "do re\n")
        found = await changes(before)
    assert found.files == ["song.txt"] and "-do\n+do re\n" in found.diff and not (root / ".git").exists()


async def test_a_repository_without_a_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    write(tmp_path, "song.txt", "do\n")
    with await snapshot([str(tmp_path)]) as before:
        write(tmp_path, "song.txt", "re\n")
        assert "-do\n+re\n" in (await changes(before)).diff


async def test_a_work_tree_beside_the_first(tree: Path, tmp_path: Path) -> None:
    git(tree, "worktree", "add", "--quiet", str(tmp_path / "second"))
    with await snapshot([str(tmp_path / "second")]) as before:
        write(tmp_path / "second", "song.txt", "do\n")
        found = await changes(before)
    assert found.files == ["song.txt"] and " do\n-re\n-mi\n" in found.diff


async def test_a_directory_in_a_repository_reports_its_own_changes_alone(tree: Path) -> None:
    with await snapshot([str(tree / "src")]) as before:
        write(tree, "src/sing.py", "print('lo')\n")
        write(tree, "song.txt", "other\n")
        found = await changes(before)
    assert found.files == ["sing.py"] and "other" not in found.diff and "+++ b/sing.py" in found.diff


async def test_a_folder_that_its_repository_ignores_is_looked_at(tree: Path) -> None:
    write(tree, "build/out.txt", "a\n")
    with await snapshot([str(tree / "build")]) as before:
        write(tree, "build/out.txt", "b\n")
        assert (await changes(before)).files == ["out.txt"]


async def test_submodules_and_repositories_inside_are_looked_into(tree: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    write(other, "verse.txt", "a\n")
    git(other, "add", "-A")
    commit(other)
    git(tree, "submodule", "--quiet", "add", str(other), "module")
    git(tree, "clone", "--quiet", str(other), "inside")
    with await snapshot([str(tree)]) as before:
        write(tree, "module/verse.txt", "b\n")
        write(tree, "inside/verse.txt", "c\n")
        commit(tree / "module")
        found = await changes(before)
    assert found.complete and sorted(found.files) == ["inside/verse.txt", "module/verse.txt"]
    assert "+++ b/module/verse.txt" in found.diff and "+++ b/inside/verse.txt" in found.diff


async def test_several_directories_are_distinguished(tree: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    write(second, "song.txt", "a\n")
    with await snapshot([str(tree), str(second), str(tree / "src")]) as before:
        write(second, "song.txt", "b\n")
        write(tree, "src/sing.py", "\n")
        assert (await changes(before)).files == ["src/sing.py", f"{second}/song.txt".lstrip("/")]


async def test_a_merge_that_is_not_done(tree: Path) -> None:
    git(tree, "checkout", "--quiet", "-b", "other")
    git(tree, "commit", "--quiet", "-am", "fa")
    git(tree, "checkout", "--quiet", "-b", "third", "HEAD~")
    write(tree, "song.txt", "do\nre\nmi\nsol\n")
    git(tree, "commit", "--quiet", "-am", "sol")
    with pytest.raises(subprocess.CalledProcessError):
        git(tree, "merge", "other")
    with await snapshot([str(tree)]) as before:
        write(tree, "song.txt", "do\nre\nmi\nfa\nsol\n")
        found = await changes(before)
    assert found.files == ["song.txt"] and "-<<<<<<< HEAD" in found.diff


async def test_a_damaged_repository_is_taken_as_plain_files(tree: Path) -> None:
    (tree / ".git/index").write_bytes(b"nonsense")
    with await snapshot([str(tree)]) as before:
        write(tree, "song.txt", "do\n")
        found = await changes(before)
    assert found.complete and found.files == ["song.txt"]


async def test_a_repository_with_longer_names_of_its_objects(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--object-format=sha256")
    write(tmp_path, "song.txt", "do\n")
    git(tmp_path, "add", "-A")
    commit(tmp_path)
    with await snapshot([str(tmp_path)]) as before:
        write(tmp_path, "song.txt", "re\n")
        assert "-do\n+re\n" in (await changes(before)).diff


async def test_names_that_are_not_words(tree: Path) -> None:
    with await snapshot([str(tree)]) as before:
        write(tree, "two\nlines\tand 'quotes\".txt", "a\n")
        write(tree, "-rf", "b\n")
        write(tree, ":(glob)*", "c\n")
        write(tree, os.fsdecode(b"\xff.txt"), "d\n")
        found = await changes(before)
    assert found.complete and len(found.files) == 4 and "two\nlines" not in found.diff


async def test_nothing_that_a_repository_names_is_run(tree: Path, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    tool = write(tmp_path, "tool", f'#!/bin/sh\ntouch "{marks}/$(basename "$0")-$$"\ncat\n')
    tool.chmod(0o755)
    module = tmp_path / "module"
    module.mkdir()
    git(module, "init", "--quiet")
    commit(module)
    git(tree, "submodule", "--quiet", "add", str(module), "module")
    write(tree, ".gitattributes", "* filter=evil diff=evil merge=evil\n")
    settings = {
        "core.fsmonitor": tool, "filter.evil.clean": tool, "filter.evil.smudge": tool, "filter.evil.process": tool,
        "filter.evil.required": "true", "diff.evil.textconv": tool, "diff.evil.command": tool, "diff.external": tool,
        "core.hooksPath": tmp_path, "core.sshCommand": tool, "core.pager": tool, "core.attributesFile": tree / ".gitattributes",
        "diff.ignoreSubmodules": "none", "submodule.module.ignore": "none", "alias.ls-files": f"!{tool}", "core.editor": tool,
    }  # fmt: skip
    for folder in (tree, tree / "module"):
        for name, value in settings.items():
            git(folder, "config", name, str(value))
    for hook in ("post-index-change", "pre-commit", "fsmonitor-watchman", "reference-transaction"):
        write(tmp_path, hook, tool.read_text(encoding="utf-8")).chmod(0o755)
    subprocess.run(["git", "-C", str(tree), "status"], capture_output=True, check=False)  # noqa: ASYNC221 - to see that it would be
    assert list(marks.iterdir()) != []
    for mark in marks.iterdir():
        mark.unlink()
    with await snapshot([str(tree)]) as before:
        write(tree, "song.txt", "do\n")
        write(tree, "module/new.txt", "new\n")
        found = await changes(before)
    assert found.complete and sorted(found.files) == ["module/new.txt", "song.txt"]
    assert list(marks.iterdir()) == []


@pytest.mark.parametrize("named", [True, False])
async def test_what_the_user_ignores_everywhere_is_ignored(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    write(tmp_path, "home/mine" if named else "home/.config/git/ignore", "*.swp\n")
    write(tmp_path, "home/.gitconfig", "[core]\n\texcludesFile = ~/mine\n" if named else "")
    with await snapshot([str(tree)]) as before:
        write(tree, "song.swp", "noise\n")
        write(tree, "song.txt", "do\n")
        assert (await changes(before)).files == ["song.txt"]


async def test_a_missing_git_is_reported(tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with await snapshot([str(tree)]) as before:
        found = await changes(before)
    assert not found.complete and "git could not be started" in found.why


async def test_what_takes_too_long_is_cancelled(tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slow = write(tmp_path / "bin", "git", f'#!/bin/sh\necho $$ >> "{tmp_path}/pids"\nexec sleep 60\n')
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(looking, "LOOK_TIME", 0.3)
    with await snapshot([str(tree)]) as before:
        found = await changes(before)
    assert not found.complete and "longer than 0.3 s" in found.why
    assert all(not alive(int(pid)) for pid in (tmp_path / "pids").read_text(encoding="utf-8").split())


async def test_a_snapshot_that_is_cancelled_leaves_nothing(
    tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow = write(tmp_path / "bin", "git", f'#!/bin/sh\necho $$ > "{tmp_path}/fifo"\nexec sleep 60\n')
    slow.chmod(0o755)
    os.mkfifo(tmp_path / "fifo")
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    task = asyncio.create_task(snapshot([str(tree)]))
    pid = int(await asyncio.to_thread((tmp_path / "fifo").read_text, encoding="utf-8"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(pid)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_too_much_is_not_read(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "READ_LIMIT", 3000)
    with await snapshot([str(tree)]) as before:
        write(tree, "long.txt", "la la la\n" * 2000)
        found = await changes(before, 1000)
    assert not found.complete and "too much" in found.why and len(found.diff) <= 1000


async def test_more_than_git_should_read_is_not_read(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadow, "TOTAL_LIMIT", 10)
    write(tree, "long.txt", "la la la\n" * 20)
    with await snapshot([str(tree)]) as before:
        assert "holds more than" in before.why and not (await changes(before)).complete


async def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    for roots in ([str(tmp_path / "nowhere")], []):
        with await snapshot(roots) as before:
            assert await changes(before) == TreeChanges(complete=False, why="there is no directory to look at")


async def test_a_snapshot_that_is_not_closed_is_cleaned_up(tree: Path) -> None:
    await snapshot([str(tree)])  # the fixture sees that nothing is left


def edit(path: str, old: str | None, new: str, id: str, **more: v1.ToolStatus) -> v1.ToolCall:
    return call(id, "Edit", content=[v1.Diff(path=path, new_text=new, old_text=old)], **more)


def test_calls_report_a_file_from_its_first_text_to_its_last() -> None:
    found = from_calls(
        [edit("/a/x.py", "1\n", "2\n", "a"), edit("/a/x.py", "2\n", "3\n", "b"), edit("/a/new", None, "n\n", "c")]
    )
    assert found.files == ["/a/x.py", "/a/new"] and not found.complete
    assert (
        "-1\n+3\n" in found.diff and "2" not in found.diff.replace("@@ -1 +1 @@", "") and "--- /dev/null" in found.diff
    )


def test_pieces_of_a_file_that_do_not_meet_are_reported_one_by_one() -> None:
    found = from_calls([edit("x", "1\n", "2\n", "a"), edit("x", "8\n", "9\n", "b")])
    assert found.files == ["x"] and "-1\n+2\n" in found.diff and "-8\n+9\n" in found.diff


def test_what_failed_or_was_taken_back_changed_nothing() -> None:
    back = [edit("x", "1\n", "2\n", "a"), edit("x", "2\n", "1\n", "b")]
    found = from_calls([*back, edit("y", "1", "2", "c", status=v1.ToolStatus.FAILED)])
    assert found.files == [] and found.diff == ""


def test_texts_that_are_too_long_are_not_compared() -> None:
    assert "Too large to compare" in from_calls([edit("x\ndiff --git", "1\n" * 30_000, "2\n", "a")]).diff


def test_a_diff_is_clipped_by_files_with_a_note() -> None:
    small = "diff --git a/s b/s\n+small\n"
    large = "diff --git a/l b/l\n" + "+line\n" * 5000
    clipped = clipped_diff(large + small + large, 9000)
    assert len(clipped) <= 9000 and small in clipped and clipped.count("more lines of this file left out") == 2
    many = "".join(f"diff --git a/{number} b/{number}\n" + "+line\n" * 200 for number in range(100))
    clipped = clipped_diff(many, 5000)
    assert len(clipped) <= 5000 and "left out: " in clipped and "and " in clipped
    for limit in (0, 1, 10, 100, 1000, 2500):
        assert len(clipped_diff(many, limit)) <= limit


def test_the_limits_have_names() -> None:
    assert running.OUTPUT_LIMIT > looking.READ_LIMIT > looking.DIFF_LIMIT
