"""Real little programs on a PATH of their own, and settings in directories of their own."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

AGENT = f"""\
#!{sys.executable}
import sys
if "--version" in sys.argv:
    print("fake agent v1.2.3-beta (build 7)")
    sys.exit()
sys.path.insert(0, {str(ROOT / "examples")!r})
import runpy
runpy.run_path({str(ROOT / "examples" / "hello.py")!r}, run_name="__main__")
"""
"""An agent that uses ACP and knows its version."""


def program(folder: Path, name: str, text: str = AGENT) -> Path:
    """Write a program that can be started by its name."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty world: `bin` is the only folder on the PATH, `config` and `state` are ours, `work` is where we are."""
    for name in ("bin", "config", "state", "work", "home"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ANTIPHON_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("ANTIPHON_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def own(place: Path, text: str) -> None:
    """Write the user's config file."""
    (place / "config" / "config.toml").write_text(text, encoding="utf-8")
