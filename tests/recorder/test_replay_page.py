"""The page about `antiphon replay` says what the program says."""

import re
from pathlib import Path

from antiphon.cli.debug.replay import parser

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "replay.md").read_text(encoding="utf-8")


def test_every_option_is_on_the_page_and_no_other() -> None:
    options = {name for action in parser()._actions for name in action.option_strings if name.startswith("--")}
    examples = {"--agent", "--engine"}
    shown = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]*)", PAGE))
    assert shown - examples == options - {"--help"}


def test_the_page_shows_the_test_as_it_is() -> None:
    code = Path(__file__).with_name("test_replay_double.py").read_text(encoding="utf-8")
    assert f"```python\n{code}```" in PAGE
