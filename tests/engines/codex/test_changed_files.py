"""What was in a file before Codex changes it. The path is the model's: anything may be there."""

import os
from pathlib import Path

import pytest

from antiphon.engines.codex import questions as files
from antiphon.engines.codex.questions import text_before


def test_the_text_is_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "song.txt"
    path.write_bytes("la\r\nlä\n".encode())
    assert text_before(str(path)) == "la\r\nlä\n"
    (tmp_path / "link").symlink_to(path)
    assert text_before(str(tmp_path / "link")) == "la\r\nlä\n"


@pytest.mark.timeout(10)
def test_what_is_not_a_file_has_no_text_and_is_not_waited_for(tmp_path: Path) -> None:
    pipe, zero = tmp_path / "pipe", tmp_path / "zero"
    os.mkfifo(pipe)
    zero.symlink_to("/dev/zero")
    before = len(os.listdir("/dev/fd"))
    for path in (pipe, zero, tmp_path, tmp_path / "nothing", Path("/dev/tty")):
        assert text_before(str(path)) is None
    assert text_before("a\0b") is None
    assert len(os.listdir("/dev/fd")) == before


def test_what_is_too_large_or_no_text_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST", 4)
    path = tmp_path / "song.txt"
    for content, text in ((b"lala", "lala"), (b"lalal", None), (b"\xff", None)):
        path.write_bytes(content)
        assert text_before(str(path)) == text


@pytest.mark.skipif(not os.path.exists("/proc/self/comm"), reason="there are no such files here")
def test_a_file_with_the_size_zero_is_read_to_the_limit() -> None:
    assert text_before("/proc/self/comm")
