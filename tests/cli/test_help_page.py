"""The page of commands is what the commands say of themselves."""

import sys
from pathlib import Path

import pytest

from antiphon.cli.main import COMMANDS
from tests.rows import each_row

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")


def flat(text: str) -> str:
    """Without the line breaks and headings that differ between versions of argparse."""
    return " ".join(text.split())


@each_row("name", COMMANDS)
def test_the_page_has_what_the_command_prints(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from help_page import help_of  # type: ignore[import-not-found,unused-ignore] # a script beside the package

    if sys.version_info[:2] == (3, 11):  # later ones write the usage in another way
        assert f"```text\n{help_of(name)}\n```" in PAGE
    assert f"## `antiphon {name}`" in PAGE and flat(COMMANDS[name]) in flat(PAGE)
