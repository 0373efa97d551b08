"""Reading text: whole or in parts, as it stands, and never from what is not text."""

import codecs
import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.local import files
from antiphon.local.files import (
    FileProblem,
    NotAFile,
    NotPermitted,
    NotText,
    NotThere,
    Roots,
    TooLarge,
    lines_of,
    read_text,
    write_text,
)
from tests.local.places import as_unknown_user
from tests.rows import each_row


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("eins\nzwei\n", encoding="utf-8")
    assert read_text(tmp_path / "f") == read_text(str(tmp_path / "f")) == "eins\nzwei\n"


@each_row(
    ("line", "limit", "expected"),
    [
        (None, None, "1\n2\n3\n4"), (1, None, "1\n2\n3\n4"), (0, None, "1\n2\n3\n4"), (2, None, "2\n3\n4"),
        (None, 2, "1\n2\n"), (2, 2, "2\n3\n"), (0, 1, "1\n"), (4, 1, "4"), (4, 9, "4"), (5, None, ""), (99, 1, ""), (2, 0, ""),
        (3, 2**63, "3\n4"), (2**63, None, ""),
    ],
)  # fmt: skip
def test_a_part_is_read_by_line_and_limit(tmp_path: Path, line: int | None, limit: int | None, expected: str) -> None:
    (tmp_path / "f").write_text("1\n2\n3\n4", encoding="utf-8")
    assert read_text(tmp_path / "f", line, limit) == expected
    assert lines_of("1\n2\n3\n4", line, limit) == expected


text = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff") | st.sampled_from("\n\r\n"), max_size=60
)


@given(text, st.none() | st.integers(0, 8), st.none() | st.integers(0, 8), st.integers(1, 9))
def test_a_part_of_a_file_is_the_same_lines_whatever_the_size_of_a_read(
    tmp_path_factory: pytest.TempPathFactory, text: str, line: int | None, limit: int | None, chunk: int
) -> None:
    path = tmp_path_factory.mktemp("part") / "f"
    path.write_bytes(text.encode())
    lines = [part + "\n" for part in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    start = max(line or 1, 1) - 1
    expected = "".join(lines[start : None if limit is None else start + limit])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CHUNK", chunk)
        assert read_text(path, line, limit) == expected
    assert lines_of(text, line, limit) == expected


@each_row(
    "content", ["a\r\nb\r\n", "a\rb\r", "a\r\nb\nc\r", "", "\n", "no end", "\x0c\x1c\u2028x\n", "日本\n", "\x1b[0m"]
)
def test_text_comes_as_it_stands(tmp_path: Path, content: str) -> None:
    (tmp_path / "f").write_bytes(content.encode())
    assert read_text(tmp_path / "f") == content


def test_a_byte_order_mark_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(codecs.BOM_UTF8 + b"one\ntwo\n")
    assert read_text(tmp_path / "f") == "one\ntwo\n"
    assert read_text(tmp_path / "f", 1, 1) == "one\n"
    assert read_text(tmp_path / "f", 2) == "two\n"


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\0\0", b"caf\xe9\n", b"ok\n\xff", b"text\0text", "wide".encode("utf-16-le")]
)
def test_what_is_not_utf8_text_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(NotText, match="hint: ") as caught:
        read_text(tmp_path / "f")
    assert str(tmp_path / "f") in str(caught.value)


def test_utf16_is_called_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("wide", encoding="utf-16")
    with pytest.raises(NotText, match="UTF-16"):
        read_text(tmp_path / "f")


def test_a_text_part_of_a_file_is_read_even_if_another_is_binary(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"\0\xff\ntext\n\0")
    assert read_text(tmp_path / "log", 2, 1) == "text\n"


def test_a_missing_file_is_not_there_and_that_is_a_file_not_found_error_too(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "no", tmp_path / "no" / "such", tmp_path / "file" / "below"):
        with pytest.raises(NotThere, match="no such file\nhint: ") as caught:
            read_text(path)
        assert isinstance(caught.value, FileNotFoundError)


def test_a_root_that_is_gone_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotThere):
        read_text(tmp_path / "root" / "f", roots=Roots([tmp_path / "root"]))


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / ".."):
        with pytest.raises(NotAFile, match="it is a directory\nhint: "):
            read_text(path)
    with pytest.raises(NotAFile, match="it is a directory"):
        read_text(tmp_path, roots=Roots([tmp_path]))


def test_pipes_sockets_and_devices_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for path in (tmp_path / "pipe", tmp_path / "link", tmp_path / "socket", Path("/dev/zero"), Path("/dev/tty")):
            with pytest.raises(NotAFile, match="pipe, a socket or a device"):
                read_text(path)


def test_what_may_not_be_read_is_not_permitted() -> None:
    with as_unknown_user() as folder:
        (folder / "f").touch(0)
        with pytest.raises(NotPermitted, match="permission denied\nhint: ") as caught:
            read_text(folder / "f")
        assert isinstance(caught.value, PermissionError)


def test_a_file_over_the_limit_is_refused_whole_but_read_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "big"
    with path.open("wb") as file:
        file.write(b"first\n")
        file.truncate(files.MAX_TEXT + 10)  # a hole: NUL bytes that take no room
        file.seek(files.MAX_TEXT + 10)
        file.write(b"\nlast\n")
    for line, limit in ((None, None), (2, 1), (1, 2), (2, None)):
        with pytest.raises(TooLarge, match=r"10 MiB\nhint: .*`line` and `limit`"):
            read_text(path, line, limit)
    assert read_text(path, 1, 1) == "first\n"
    assert read_text(path, 3) == read_text(path, 3, 5) == "last\n"


def test_a_line_is_not_looked_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_SCAN", files.CHUNK)
    (tmp_path / "f").write_bytes(b"x\n" * files.CHUNK * 2)
    with pytest.raises(TooLarge, match="hint: "):
        read_text(tmp_path / "f", files.CHUNK * 2)


def test_a_file_without_a_size_is_read_all_the_same() -> None:
    assert read_text("/proc/version").startswith("Linux")


def test_a_path_through_a_process_is_refused_also_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/proc/self/cwd")
    for path in ("/proc/self/environ", f"/proc/{os.getpid()}/environ", "/dev/stdin", tmp_path / "link" / "x"):
        with pytest.raises(FileProblem, match="leads through a process"):
            read_text(path)


def test_nothing_stays_open(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xff")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    before = os.listdir("/proc/self/fd")
    for path in (tmp_path / "f", tmp_path, tmp_path / "deep" / "er" / "no", tmp_path / "deep" / "no" / "no"):
        with pytest.raises(FileProblem):
            read_text(path)
        with pytest.raises(FileProblem):
            write_text(path / ("x" * 300), "")
    assert len(os.listdir("/proc/self/fd")) == len(before)
