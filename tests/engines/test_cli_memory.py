"""What a CLI sent last time: kept privately, believed as far as it can be read."""

import os
import stat
from pathlib import Path

import pytest

from antiphon.engines.cli_program import (
    LARGEST,
    VERSIONS,
    CliMemory,
    StoredSettings,
    notes_folder,
    read_notes,
    write_notes,
)


def test_an_offer_is_known_the_next_time_and_by_this_version_alone(tmp_path: Path) -> None:
    shown = {"models": [{"value": "big"}], "commands": []}
    CliMemory("claude", "2.1.0").save(shown)
    assert CliMemory("claude", "2.1.0").load() == shown
    assert CliMemory("claude", "2.1.1").load() is None and CliMemory("codex", "2.1.0").load() is None


@pytest.mark.parametrize("id", ["0198f3a2-77c1", "../../etc/passwd", "a/b", "x" * 500])
def test_what_was_chosen_in_a_session_is_known_until_it_is_forgotten(id: str) -> None:
    chosen = StoredSettings(id)
    assert chosen.load() == {}
    chosen.save({"model": "big"})
    assert StoredSettings(id).load() == {"model": "big"} and StoredSettings("another").load() == {}
    assert chosen.path.parent == notes_folder() / "sessions"
    write_notes(chosen.path, {"model": 7, "effort": "low"})
    assert chosen.load() == {"effort": "low"}
    chosen.forget()
    chosen.forget()
    assert chosen.load() == {}


def test_only_the_user_can_read_the_notes() -> None:
    kept = CliMemory("claude", "2.1.0")
    kept.save({"a": 1})
    assert stat.S_IMODE(kept.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.path.parent.stat().st_mode) == 0o700
    assert [path.name for path in kept.path.parent.iterdir()] == [kept.path.name]


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b" " * (LARGEST + 1)])
def test_what_is_damaged_counts_as_nothing_and_is_replaced(data: bytes) -> None:
    kept = CliMemory("claude", "2.1.0")
    kept.save({"a": 1})
    kept.path.write_bytes(data)
    assert kept.load() is None
    kept.save({"a": 2})
    assert kept.load() == {"a": 2}


def test_the_same_again_is_not_written_again() -> None:
    kept = CliMemory("claude", "2.1.0")
    kept.save({"a": 1})
    before = kept.path.stat()
    kept.save({"a": 1})
    after = kept.path.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_version_is_never_a_path() -> None:
    kept = CliMemory("claude", "../../../etc/x\0y")
    kept.save({"a": 1})
    assert kept.load() == {"a": 1} and "/" not in kept.path.name and ".." not in kept.path.parts


def test_old_versions_are_forgotten() -> None:
    for number in range(VERSIONS + 3):
        kept = CliMemory("claude", f"1.0.{number}")
        kept.save({"n": number})
        os.utime(kept.path, ns=(number, number))
    CliMemory("codex", "1.0").save({"other": True})
    assert CliMemory("claude", "1.0.0").load() is None
    assert CliMemory("claude", f"1.0.{VERSIONS + 2}").load() == {"n": VERSIONS + 2}
    assert len([*CliMemory("claude", "1").path.parent.iterdir()]) == VERSIONS + 1


def test_where_nothing_can_be_written_nothing_fails(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder", encoding="utf-8")
    kept = CliMemory("claude", "2.1.0", blocked / "below")
    kept.save({"a": 1})
    assert kept.load() is None
    assert write_notes(blocked / "x" / "y", {}) is False and read_notes(blocked / "x" / "y") is None
