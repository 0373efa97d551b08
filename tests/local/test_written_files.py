"""Writing text: all or nothing, in the style of what was there, and nothing left behind."""

import codecs
import os
import resource
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.local import files as writing
from antiphon.local.files import FileProblem, NotAFile, NotPermitted, NotText, Roots, read_text, write_text
from tests.local.places import UNKNOWN_USER, as_unknown_user
from tests.rows import each_row


def test_a_new_file_is_written_with_the_folders_on_its_way(tmp_path: Path) -> None:
    write_text(tmp_path / "a" / "b" / "f", "hé\n")
    assert (tmp_path / "a" / "b" / "f").read_bytes() == "hé\n".encode()
    assert os.listdir(tmp_path / "a" / "b") == ["f"]


def test_a_new_file_has_the_mode_that_the_umask_gives(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "new" / "f", "")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new" / "f").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o750


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o664, 0o700, 0o777])
def test_a_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "script"
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(mode)
    write_text(path, "#!/bin/sh\ntrue\n")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_file_keeps_its_owner_where_we_may_give_it(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.touch()
    if os.geteuid() == 0:
        os.chown(path, UNKNOWN_USER, UNKNOWN_USER)
        path.chmod(0o4755)
    before = path.stat()
    write_text(path, "x")
    after = path.stat()
    assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)


def test_another_users_file_is_written_without_lending_rights() -> None:
    with as_unknown_user() as folder:
        path = folder / "f"
        path.touch()
        if os.getuid() == 0:
            os.seteuid(0)
            os.chown(path, 0, 0)
            path.chmod(0o6777)
            os.seteuid(UNKNOWN_USER)
        write_text(path, "x")
        assert not path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)


def test_a_file_keeps_its_extended_attributes(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.touch()
    try:
        os.setxattr(path, "user.note", b"keep me")
    except OSError:  # a file system without them: nothing to keep
        return
    write_text(path, "x")
    assert os.getxattr(path, "user.note") == b"keep me"


@each_row(
    ("old", "text", "new"),
    [
        (b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n"),
        (b"a\r\nb\r\n", "a\r\nc\r\n", b"a\r\nc\r\n"),
        (b"a\r\nb\r\n", "a\r\nc\nd\r\n", b"a\r\nc\r\nd\r\n"),
        (b"a\r\nb\n", "a\nc\n", b"a\nc\n"),
        (b"a\nb\n", "a\r\nc\n", b"a\r\nc\n"),
        (b"no line end", "a\nb", b"a\nb"),
        (b"old mac\r", "a\n", b"a\n"),
        (b"", "a\n", b"a\n"),
        (b"a\r\r\n", "x\r\r\ny\n", b"x\r\r\ny\r\n"),
        (codecs.BOM_UTF8 + b"a\n", "b\n", codecs.BOM_UTF8 + b"b\n"),
        (codecs.BOM_UTF8 + b"a\n", "\ufeffb\n", codecs.BOM_UTF8 + b"b\n"),
        (codecs.BOM_UTF8 + b"a\r\n", "b\n", codecs.BOM_UTF8 + b"b\r\n"),
        (b"a\n", "\ufeffb\n", codecs.BOM_UTF8 + b"b\n"),
    ],
)
def test_line_ends_and_byte_order_mark_stay_as_they_were(tmp_path: Path, old: bytes, text: str, new: bytes) -> None:
    (tmp_path / "f").write_bytes(old)
    write_text(tmp_path / "f", text)
    assert (tmp_path / "f").read_bytes() == new


@given(st.lists(st.sampled_from([b"\r\n", b"x", b"\r", b"\n"]), max_size=12), st.integers(1, 5))
def test_a_file_is_crlf_if_it_is_so_throughout_wherever_a_read_cuts_it(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], chunk: int
) -> None:
    path = tmp_path_factory.mktemp("style") / "f"
    old = b"".join(parts)
    path.write_bytes(old)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "CHUNK", chunk)
        write_text(path, "\n")
    crlf = b"\r\n" in old and b"\n" not in old.replace(b"\r\n", b"")
    assert path.read_bytes() == (b"\r\n" if crlf else b"\n")


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff")))
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("again") / "f"
    write_text(path, text)
    assert read_text(path) == text


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "f").write_text("old", encoding="utf-8")
    (tmp_path / "link").symlink_to("real/f")
    (tmp_path / "ahead").symlink_to("real/not_yet")
    write_text(tmp_path / "link", "new", roots=Roots([tmp_path]))
    write_text(tmp_path / "ahead", "there", roots=Roots([tmp_path]))
    assert (tmp_path / "link").is_symlink() and (tmp_path / "ahead").is_symlink()
    assert (tmp_path / "real" / "f").read_text(encoding="utf-8") == "new"
    assert (tmp_path / "real" / "not_yet").read_text(encoding="utf-8") == "there"


def test_a_name_may_be_as_long_as_the_system_takes(tmp_path: Path) -> None:
    write_text(tmp_path / ("n" * 255), "x")
    write_text(tmp_path / ("n" * 255), "y")
    assert read_text(tmp_path / ("n" * 255)) == "y"


def test_what_is_not_a_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for path in (tmp_path / "pipe", tmp_path / "folder", tmp_path, tmp_path / "file" / "below", Path("/dev/null")):
        with pytest.raises(NotAFile, match="hint: "):
            write_text(path, "x", roots=Roots([tmp_path, "/dev"]))
    assert sorted(os.listdir(tmp_path)) == ["file", "folder", "pipe"]


def test_half_a_surrogate_pair_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(NotText, match="surrogate"):
        write_text(tmp_path / "f", "x\ud800")
    assert not os.listdir(tmp_path)


def test_a_read_only_folder_is_refused_and_nothing_is_left_in_it() -> None:
    with as_unknown_user() as folder:
        (folder / "f").write_text("old", encoding="utf-8")
        folder.chmod(0o555)
        for path in (folder / "f", folder / "new", folder / "new" / "deep"):
            with pytest.raises(NotPermitted, match="permission denied\nhint: ") as caught:
                write_text(path, "new")
            assert str(path) in str(caught.value)
        assert os.listdir(folder) == ["f"] and read_text(folder / "f") == "old"


def test_a_read_only_file_stays_as_it_is_though_its_folder_would_let_us() -> None:
    with as_unknown_user() as folder:
        (folder / "f").write_text("old", encoding="utf-8")
        (folder / "f").chmod(0o444)
        with pytest.raises(NotPermitted, match="read-only\nhint: "):
            write_text(folder / "f", "new")
        assert os.listdir(folder) == ["f"] and read_text(folder / "f") == "old"


def test_a_file_that_we_may_write_but_not_read_is_written() -> None:
    with as_unknown_user() as folder:
        (folder / "f").touch()
        (folder / "f").chmod(0o222)
        write_text(folder / "f", "new")
        assert stat.S_IMODE((folder / "f").stat().st_mode) == 0o222


def test_a_write_that_fails_half_way_leaves_the_old_text_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old", encoding="utf-8")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))  # as good as a full disk
    try:
        for path in (tmp_path / "f", tmp_path / "new" / "deep" / "f"):
            with pytest.raises(FileProblem, match="too large\nhint: "):
                write_text(path, "x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(tmp_path) == ["f"] and read_text(tmp_path / "f") == "old"


def test_folders_that_were_there_already_stay_when_a_write_fails(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotAFile):
        write_text(tmp_path / "empty" / "made" / ("x" * 300), "")
    assert os.listdir(tmp_path) == ["empty"] and not os.listdir(tmp_path / "empty")


def test_writers_at_the_same_time_never_make_a_mix(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "f"
    texts = [letter * 50_000 for letter in "abcd"]
    write_text(path, texts[0])
    seen: set[str] = set()

    def write(text: str) -> None:
        for _ in range(10):
            write_text(path, text)

    writers = [threading.Thread(target=write, args=[text]) for text in texts]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        seen.add(read_text(path))
    for writer in writers:
        writer.join()
    assert seen <= set(texts) and read_text(path) in texts
    assert os.listdir(tmp_path / "deep") == ["f"]


def test_writers_that_make_the_same_folders_at_once_all_succeed(tmp_path: Path) -> None:
    failed: list[Exception] = []

    def write(name: str) -> None:
        try:
            for n in range(20):
                write_text(tmp_path / str(n) / "x" / name, name)
        except Exception as error:
            failed.append(error)

    writers = [threading.Thread(target=write, args=[name]) for name in "abcd"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert not failed
    assert all(sorted(os.listdir(tmp_path / str(n) / "x")) == list("abcd") for n in range(20))
