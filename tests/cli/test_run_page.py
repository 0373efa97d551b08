"""The page about `antiphon run` says what the program says."""

import errno
import re

import pytest

from antiphon.cli import outcome
from antiphon.cli.run.arguments import run_parser
from antiphon.runs import events
from tests.cli.program import ROOT

PAGE = (ROOT / "docs" / "run.md").read_text(encoding="utf-8")


def test_every_option_is_on_the_page_and_no_other() -> None:
    options = {name for action in run_parser()._actions for name in action.option_strings}
    shown = set(re.findall(r"(?<![\w-])(-{1,2}[a-z][a-z-]*)", PAGE))
    assert options <= shown and {name for name in shown if name.startswith("--")} <= options


def test_every_exit_status_is_on_the_page_and_in_the_help() -> None:
    statuses = {
        value
        for name, value in vars(outcome).items()
        if name.isupper() and type(value) is int and not hasattr(errno, name)
    }
    assert statuses == set(outcome.RUN_STATUSES)
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", PAGE, re.MULTILINE)
    assert {int(number): what for number, what in rows} == outcome.RUN_STATUSES
    help = run_parser().format_help()
    assert all(re.search(rf"\b{status}\s+[`\w]", help) for status in statuses)


def test_every_event_is_on_the_page() -> None:
    tags = set(events.schema()["discriminator"]["mapping"])
    shown = {
        tag for row in re.findall(r"^\| (`[a-z_`, ]+`) \|", PAGE, re.MULTILINE) for tag in re.findall(r"[a-z_]+", row)
    }
    assert tags == shown


@pytest.mark.parametrize("line", re.findall(r"```json\n(.+?)\n```", PAGE))
def test_the_example_is_an_event(line: str) -> None:
    import msgspec

    assert isinstance(msgspec.json.decode(line, type=events.Event), events.ResultEvent)
