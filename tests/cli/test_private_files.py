"""What we keep is for the user alone, whatever the umask is: directories 0700 with all above them that we make, files 0600.

Every command that keeps something is run with umask 0 in a home that is not there yet; then every file below it is looked at. A new
command that keeps something belongs in the table, and a new file of an old one is found without it.
"""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.config.directories import config_dir, make_private_directory, make_private_file, state_dir
from tests.cli.program import NO_ENGINES, ROOT
from tests.limits import limit

pytestmark = pytest.mark.slow

KEEPING = [
    ("run", "/echo la", "--agent", "demo", "--session", "work"),
    ("run", "/edit notes.txt hello", "--agent", "demo", "--on-ask", "allow", "--json"),
    ("run", "/echo la", "--agent", "antiphon"),
    ("agents", "add", "mine", "--", "cat"),
    ("policy", "trust"),
    ("sessions", "export", "last", "-o", "OUT/x.md"),
    ("sessions", "export", "last", "-o", "OUT/x.json"),
    ("sessions", "export", "last", "-o", "OUT/x.html"),
    ("record", "-q", "--", "true"),
    ("record", "-q", "-o", "OUT/r.jsonl", "--", "true"),
    ("check", "--record", "OUT/checked", "--only", "init.version", "--", sys.executable, "-m", "antiphon", "agent", "--engine", "demo"),
    ("inspect", "OUT/checked/FIRST", "--html", "OUT/r.html"),
    ("setup", "zed", "--yes"),
    ("doctor",),
]  # fmt: skip


def not_private(top: Path) -> list[str]:
    """What other users could read, list or change below a directory, and the directory itself."""
    found = [top, *top.rglob("*")]
    wrong = []
    for path in found:
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        if not path.is_symlink() and mode & 0o077:
            wrong.append(f"{path.relative_to(top.parent)} {mode:o}")
    return wrong


@pytest.mark.timeout(600)
def test_everything_that_is_kept_is_for_the_user_alone(tmp_path: Path) -> None:
    home, work, out = tmp_path / "home", tmp_path / "work", tmp_path / "out"
    work.mkdir()
    (work / ".antiphon").mkdir()
    (work / ".antiphon" / "config.toml").write_text('[policy]\nallow = ["Edit"]\n', encoding="utf-8")
    out.mkdir(mode=0o700)
    home.mkdir(mode=0o700)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT), **NO_ENGINES}
    for words in KEEPING:
        recorded = next((path.name for path in sorted((out / "checked").glob("*"))), "")
        given = [word.replace("OUT", str(out)).replace("FIRST", recorded) for word in words]
        command = [sys.executable, "-m", "antiphon", *given]
        done = subprocess.run(
            command, cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False, umask=0, timeout=limit() * 4
        )  # fmt: skip
        assert "Traceback" not in done.stderr, (words, done.stderr)
        kept = [home / ".local", home / ".config" / "antiphon", out]
        assert [each for top in kept if top.exists() for each in not_private(top)] == [], (words, done.stderr)
    assert state_dir({"XDG_STATE_HOME": str(home / ".local" / "state")}).is_dir()
    assert config_dir({"XDG_CONFIG_HOME": str(home / ".config")}).is_dir()
    assert {path.name for path in out.iterdir()} >= {"x.md", "x.json", "x.html", "r.jsonl", "r.html", "checked"}


def test_directories_above_are_private_too_and_what_is_there_stays(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        shared = tmp_path / "shared"
        shared.mkdir(mode=0o755)
        shared.chmod(0o755)
        make_private_file(shared / "a" / "b" / "file")
        make_private_directory(shared)
    finally:
        os.umask(before)
    modes = [
        stat.S_IMODE(path.stat().st_mode)
        for path in (shared, shared / "a", shared / "a" / "b", shared / "a" / "b" / "file")
    ]
    assert modes == [0o755, 0o700, 0o700, 0o600]
    with pytest.raises(OSError, match="Not a directory"):
        make_private_directory(shared / "a" / "b" / "file" / "c")


def test_our_own_directory_that_was_open_to_others_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    place = state_dir({})
    place.mkdir(parents=True)
    place.chmod(0o755)
    make_private_directory(place)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
