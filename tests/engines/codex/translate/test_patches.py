"""Hunks, against those that difflib makes."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.codex.translate.file_changes import BadPatch, applied, hunks_of, reverted

LINES = st.lists(
    st.sampled_from(["a", "b", "c", "", "-x", "+y", "@@ no", "\\ no", "form\x0cfeed", "car\r"]), max_size=12
)


def lines_of(text: str) -> list[str]:
    """Lines by line feeds alone, with their ends."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def diff_of(old: str, new: str, around: int) -> str:
    """A unified diff; difflib itself does not say where a line has no end."""
    made = difflib.unified_diff(lines_of(old), lines_of(new), n=around)
    body = [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in made]
    return "".join(body[2:])


@given(LINES, LINES, st.booleans(), st.booleans(), st.integers(0, 4))
def test_hunks_lead_from_the_old_text_to_the_new_and_back(
    old: list[str], new: list[str], old_end: bool, new_end: bool, around: int
) -> None:
    before = "\n".join(old) + ("\n" if old_end and old else "")
    after = "\n".join(new) + ("\n" if new_end and new else "")
    hunks = hunks_of(diff_of(before, after, around))
    assert applied(before, hunks) == after
    assert reverted(after, hunks) == before


def test_a_diff_may_have_a_header_and_a_word_on_where_the_file_goes() -> None:
    [hunk] = hunks_of("--- a/x\n+++ b/x\n@@ -3,2 +3,2 @@ def f():\n one\n-two\n+2\n\n\nMoved to: /w/y")
    assert (hunk.old_start, hunk.old, hunk.new, hunk.line) == (3, ("one\n", "two\n"), ("one\n", "2\n"), 4)
    assert hunks_of("\n\nMoved to: /w/y") == []


@pytest.mark.parametrize("bad", ["nothing", "@@ -1 +1 @@\n a\n b\n", "@@ -1,2 +1,2 @@\n a\n", "@@ -1 +1 @@\n?a\n"])
def test_what_is_not_a_patch_is_refused(bad: str) -> None:
    with pytest.raises(BadPatch):
        hunks_of(bad)


def test_hunks_of_another_text_are_not_applied() -> None:
    hunks = hunks_of("@@ -1,2 +1,2 @@\n one\n-two\n+2\n")
    for other in ("", "one\n", "x\none\ntwo\n", "one\nTWO\n"):
        with pytest.raises(BadPatch):
            applied(other, hunks)


@given(st.text("@-+ 1,\\na", max_size=40))
def test_garbage_is_a_bad_patch_and_nothing_worse(text: str) -> None:
    try:
        hunks = hunks_of(text)
        applied("a\n", hunks)
    except BadPatch:
        pass
