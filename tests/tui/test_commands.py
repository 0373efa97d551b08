"""The chat's own commands and its arguments are what the documents say."""

import re
from pathlib import Path

from antiphon.cli.chat import parser
from antiphon.tui.commands import COMMANDS, find

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "chat.md").read_text(encoding="utf-8")


def test_every_command_is_documented_and_nothing_else_is() -> None:
    rows = re.findall(r"^\| `/(\w+)((?: [^`]*)?)` \|", PAGE, re.MULTILINE)
    documented = {name: usage.strip().replace("\\|", "|") for name, usage in rows}
    assert documented == {own.name: own.usage for own in COMMANDS.values()}


def test_every_argument_is_documented() -> None:
    options = {word for action in parser()._actions for word in action.option_strings if word.startswith("--")}
    assert {word for word in options if f"`{word}`" not in PAGE} <= {"--help", "--verbose"}


def test_only_a_whole_word_is_a_command_of_ours() -> None:
    assert find("/mode plan") is COMMANDS["mode"] and find("/exit") is COMMANDS["exit"]
    assert find("/modes") is None and find("//mode") is None and find("mode") is None and find("") is None
