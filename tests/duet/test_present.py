"""Which engines there are: real little programs on a PATH of their own."""

import sys
from pathlib import Path

import pytest

from antiphon.catalogue.known import installed, named_by_user
from antiphon.catalogue.programs import CLAUDE, CODEX
from tests.catalogue.programs import own, program


@pytest.fixture(autouse=True)
def nowhere(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No package that brings one, and no variable that names it."""
    monkeypatch.setattr(sys, "path", ["first", str(place / "packages")])
    for cli in (CLAUDE, CODEX):
        monkeypatch.delenv(cli.variable, raising=False)


def test_where_nothing_is_installed_the_demo_answers_and_it_is_known_why() -> None:
    present = installed()
    assert present.engines == ("demo",) and set(present.missing) == {"claude", "codex"}
    for why in present.missing.values():
        assert "not installed" in why.sentence and why.hint


def test_what_is_installed_is_there_claude_first(place: Path) -> None:
    program(place / "bin", "codex")
    assert (installed().engines, set(installed().missing)) == (("codex",), {"claude"})
    program(place / "bin", "claude")
    assert (installed().engines, dict(installed().missing)) == (("claude", "codex"), {})


def test_engines_that_were_named_are_there_in_that_order(place: Path) -> None:
    program(place / "bin", "claude")
    program(place / "bin", "codex")
    named = ["my-agent --acp", "codex", "gemini", "claude", "codex"]
    assert installed(named).engines == ("my-agent --acp", "codex", "gemini", "claude")


def test_what_was_named_and_is_missing_is_left_out_and_reported(place: Path) -> None:
    program(place / "bin", "codex")
    present = installed(["claude", "codex"])
    assert present.engines == ("codex",) and list(present.missing) == ["claude"]


def test_naming_only_missing_engines_is_an_error_and_no_demo() -> None:
    present = installed(["claude"])
    assert present.engines == ("claude",) and list(present.missing) == ["claude"]


def test_the_users_file_may_name_them(place: Path) -> None:
    assert named_by_user() is None
    own(place, 'agent = "gemini"\n')
    assert named_by_user() is None
    own(place, '[duet]\nroute = "duet"\n')
    assert named_by_user() is None
    own(place, '[duet]\nengines = ["codex", "x --acp"]\n')
    assert named_by_user() == ("codex", "x --acp")
    own(place, "[duet\n")  # reported by the code that reads all of it
    assert named_by_user() is None
