"""The files of a recording: nothing is overwritten, and no line is cut."""

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.recorder.writer import RecordingFiles, RecordingWriter, WriteQueue


def files_at(path: Path, **options: int | None) -> RecordingFiles:
    files = RecordingFiles(str(path), **options)
    files.first_line = lambda part: b"part %d\n" % part
    files.open()
    return files


@given(
    lines=st.lists(st.binary(max_size=30).map(lambda some: some.replace(b"\n", b"") + b"\n")), limit=st.integers(1, 80)
)
def test_rotation_loses_nothing_and_cuts_no_line(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], limit: int
) -> None:
    path = tmp_path_factory.mktemp("shelf") / "a.jsonl"
    files = files_at(path, limit=limit)
    for start in range(0, len(lines), 3):
        files.write(b"".join(lines[start : start + 3]))
    files.close()
    parts = [path, *(path.with_name(f"a.jsonl.{n}") for n in range(1, len(os.listdir(path.parent))))][::-1]
    found = []
    for number, part in enumerate(parts, 1):
        # Not `splitlines`: a carriage return in a line does not end it.
        first, *rest = [line + b"\n" for line in part.read_bytes().split(b"\n")[:-1]] if lines else [b"part 1\n"]
        assert first == b"part %d\n" % number
        assert part.stat().st_size <= limit or len(rest) <= 1
        found += rest
    assert found == lines


def test_what_is_there_moves_aside_and_only_so_many_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for text in (b"one\n", b"two\n", b"three\n", b"four\n"):
        files = files_at(path, keep=2)
        files.write(text)
        files.close()
    names = {file.name: file.read_bytes().splitlines()[1] for file in tmp_path.iterdir()}
    assert names == {"a.jsonl": b"four", "a.jsonl.1": b"three", "a.jsonl.2": b"two"}
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in tmp_path.iterdir())


def test_a_disk_that_was_full_leaves_one_torn_line_and_whole_ones_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = files_at(tmp_path / "a.jsonl")
    files.write(b"first\n")
    write = os.write
    monkeypatch.setattr(os, "write", full_after(3, write))
    with pytest.raises(OSError, match="No space"):
        files.write(b"second\n")
    monkeypatch.undo()
    files.write(b"third\n")
    files.close()
    assert (tmp_path / "a.jsonl").read_bytes() == b"part 1\nfirst\nsec\nthird\n"


def full_after(room: int, write: Callable[[int, bytes], int]) -> Callable[[int, memoryview], int]:
    left = room

    def limited(fd: int, block: memoryview) -> int:
        nonlocal left
        if not left:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(fd, bytes(block[:left]))
        left -= written
        return written

    return limited


def test_what_waits_is_bounded_and_the_recording_notes_what_is_missing(tmp_path: Path) -> None:
    queue = WriteQueue(("c2a", "a2c", "stderr"), limit=10)
    for block in (b"[1]\n", b"[2]\n", b"[3]\n", b"[4]\n"):
        queue.put("c2a", block)
    assert [queue.take(), queue.take()][0] is not None
    queue.put("c2a", b"[5]\n[6]\n")
    queue.put("c2a", b"")
    files = RecordingFiles(str(tmp_path / "a.jsonl"))
    files.open()
    received: list[str] = []
    writer = RecordingWriter(queue, files, received.append)
    writer.start(["agent"], frozenset())
    writer.finish()
    note, *lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_bytes().splitlines()]
    assert note["command"] == ["agent"]
    assert [line.get("bytes", line.get("msg")) for line in lines] == [11, [6]]
    assert received == [f"recording to {tmp_path / 'a.jsonl'}"]


def test_what_comes_at_once_is_taken_at_once_and_never_past_an_answer() -> None:
    queue = WriteQueue(("c2a", "a2c", "stderr"))
    for direction, block in (
        ("c2a", b"[1"),
        ("c2a", b"]\n"),
        ("a2c", b"[2]\n"),
        ("c2a", b"[3]\n"),
        ("c2a", b""),
        ("a2c", b""),
    ):
        queue.put(direction, block)
    taken = []
    while (found := queue.take()) is not None:
        taken.append(found)
    assert b"".join(block for _, _, block in taken if isinstance(block, bytes)) == b"[1]\n[2]\n[3]\n"
    assert [direction for _, direction, block in taken if block and block != b"]\n"] == ["c2a", "a2c", "c2a"]
    assert [block for _, _, block in taken][-2:] == [b"", b""]
