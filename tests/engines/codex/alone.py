"""Codex on its own: a home in the test's folder, no network but loopback, and no model."""

import os
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.engines.codex.versions import program

__all__ = ["AGENT", "environment", "real", "script"]

AGENT: Final = (sys.executable, "-P", "-m", "antiphon", "agent", "--engine", "codex")

SETTINGS: Final = """
check_for_update_on_startup = false
openai_base_url = "http://127.0.0.1:9/v1"
chatgpt_base_url = "http://127.0.0.1:9/"
cli_auth_credentials_store = "file"
[analytics]
enabled = false
[features]
plugins = false
apps = false
remote_plugin = false
tool_suggest = false
"""
"""No server listens there."""


def environment(tmp_path: Path, codex: Path | str, settings: str = SETTINGS, **more: str) -> dict[str, str]:
    """What the agent is started with, and nothing else."""
    home = tmp_path / "codex-home"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(settings, encoding="utf-8")
    return {
        "PATH": os.defpath,
        "HOME": str(tmp_path),
        "CODEX_HOME": str(home),
        "LANG": "C.UTF-8",
        "ANTIPHON_STATE_DIR": str(tmp_path / "state"),
        "ANTIPHON_CONFIG_DIR": str(tmp_path / "config"),
        "CODEX_EXECUTABLE": str(codex),
        **more,
    }


def real(version: str) -> Path:
    """The real program, or the test is skipped."""
    found = program(version)
    if found is None:
        pytest.skip(f"Codex {version} is not installed")
    return found


def script(tmp_path: Path, lines: str) -> Path:
    """A program that sends its version and otherwise does what the lines say."""
    path = tmp_path / "codex"
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo codex-cli 0.166.0 && exit\n{lines}\n', encoding="utf-8")
    path.chmod(0o755)
    return path
