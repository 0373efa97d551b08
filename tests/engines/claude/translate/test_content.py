"""What an edit made of a file, from what the CLI sends about it."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.engines.claude.translate.content import apply, diffs_of, hunks_in, places
from antiphon.protocol import v1
from tests.engines.claude.translate.patches import structured_patch

FILE = "/song/a.txt"
LINES = st.lists(st.sampled_from(["a", "b", "", "x y", "\\ no", "+p", "-m", " s", "end\r", "\u2028z"]), max_size=14)
TEXTS = st.tuples(LINES, st.booleans()).map(lambda made: "\n".join(made[0]) + ("\n" if made[1] and made[0] else ""))
TABBED = st.tuples(
    st.lists(st.sampled_from(["\ta", "\t\tb", "c\td", "  two", " one", "\t x", "", "q\r\tr"]), max_size=14),
    st.booleans(),
).map(lambda made: "\n".join(made[0]) + ("\n" if made[1] and made[0] else ""))


def edited(old: str, new: str, words: tuple[str, str], **more: Any) -> dict[str, Any]:
    """The structured result of an Edit."""
    return {
        "filePath": FILE, "oldString": words[0], "newString": words[1], "originalFile": old,
        "structuredPatch": structured_patch(old, new), "userModified": False, "replaceAll": False, **more,
    }  # fmt: skip


def only(found: list[v1.Diff]) -> tuple[str | None, str]:
    assert len(found) == 1 and found[0].path == FILE
    return found[0].old_text, found[0].new_text


@given(TEXTS, TEXTS)
def test_a_patch_makes_of_the_old_text_exactly_the_new_one(old: str, new: str) -> None:
    assert apply(old, hunks_in({"structuredPatch": structured_patch(old, new)})) == new


@given(TEXTS, TEXTS, TEXTS)
def test_a_patch_of_another_text_is_refused_or_applied_and_never_raises(old: str, new: str, other: str) -> None:
    made = apply(other, hunks_in({"structuredPatch": structured_patch(old, new)}))
    assert made is None or isinstance(made, str)


@given(TABBED, st.integers(0, 40), st.integers(1, 12), TABBED)
@example("\t\tb\n\n  two\n\ta", 7, 3, "")
def test_tabs_that_the_patch_has_lost_are_in_the_diff(old: str, start: int, length: int, new: str) -> None:
    words = old[start : start + length]
    if not words or old.count(words) != 1:
        return
    made = old.replace(words, new, 1)
    if not new and not words.endswith("\n") and old.replace(f"{words}\n", "", 1) != old:
        made = old.replace(f"{words}\n", "", 1)  # the CLI takes the line's end away too
    if made == old:
        return
    assert only(diffs_of(FILE, {}, edited(old, made, (words, new)))) == (old, made)


@given(TABBED, TABBED)
def test_a_file_written_anew_has_exactly_the_written_text(old: str, new: str) -> None:
    result = {
        "type": "update",
        "filePath": FILE,
        "content": new,
        "originalFile": old,
        "structuredPatch": structured_patch(old, new),
    }
    assert only(diffs_of(FILE, {}, result)) == (old, new)


def test_a_replacement_everywhere_is_made_everywhere() -> None:
    old, new = "foo\nbar\nfoo\n", "FOO\nbar\nFOO\n"
    assert only(diffs_of(FILE, {}, edited(old, new, ("foo", "FOO"), replaceAll=True))) == (old, new)


def test_what_the_user_changed_before_allowing_it_is_what_is_shown() -> None:
    old, new = "one\ntwo\n", "one\nmine\n"
    assert only(diffs_of(FILE, {}, edited(old, new, ("two", "theirs"), userModified=True))) == (old, new)


def test_tabs_come_back_also_where_the_user_changed_the_words() -> None:
    result = edited("\tone\n\ttwo\n", "\tone\n\tmine\n", ("two", "theirs"), userModified=True)
    assert only(diffs_of(FILE, {}, result)) == ("\tone\n\ttwo\n", "\tone\n\tmine\n")


def test_several_edits_of_one_call_are_made_one_after_the_other() -> None:
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "b\n", "new_string": "c\n", "replace_all": True}]
    result = {
        "filePath": FILE,
        "edits": edits,
        "originalFileContents": "a\nb\n",
        "structuredPatch": structured_patch("a\nb\n", "c\nc\n"),
    }
    assert only(diffs_of(FILE, {}, result)) == ("a\nb\n", "c\nc\n")


@pytest.mark.parametrize(
    ("shown", "result"),
    [
        ("a file that was written", {"type": "create", "content": "x\n", "originalFile": None, "structuredPatch": []}),
        ("a file made by an edit of nothing", edited("", "x\n", ("", "x\n"))),
    ],
)
def test_a_new_file_has_no_old_text(shown: str, result: dict[str, Any]) -> None:
    assert only(diffs_of(FILE, {}, result)) == (None, "x\n"), shown


def test_an_emptied_file_has_an_empty_new_text() -> None:
    assert only(diffs_of(FILE, {}, edited("x\n", "", ("x\n", "")))) == ("x\n", "")


def test_without_the_old_text_the_hunks_are_shown() -> None:
    old = "".join(f"{n}\n" for n in range(40))
    new = old.replace("5\n", "five\n", 1).replace("30\n", "", 1)
    found = diffs_of(FILE, {}, {**edited(old, new, ("5", "five")), "originalFile": None})
    assert [(diff.old_text, diff.new_text) for diff in found] == [
        ("2\n3\n4\n5\n6\n7\n8\n", "2\n3\n4\nfive\n6\n7\n8\n"),
        ("27\n28\n29\n30\n31\n32\n33\n", "27\n28\n29\n31\n32\n33\n"),
    ]


def test_a_hunk_at_the_end_of_a_file_without_a_line_end_has_none_either() -> None:
    found = diffs_of(FILE, {}, {"structuredPatch": structured_patch("a\nb", "a\nc")})
    assert only(found) == ("a\nb", "a\nc")


def test_with_nothing_structured_the_words_of_the_call_are_shown() -> None:
    call = {"file_path": FILE, "old_string": "a", "new_string": "b"}
    assert only(diffs_of(FILE, call, None)) == ("a", "b")
    assert only(diffs_of(FILE, {"content": "all"}, "no object")) == (None, "all")


def test_a_notebook_is_shown_whole() -> None:
    assert only(diffs_of(FILE, {}, {"original_file": "{}", "updated_file": '{"cells":[]}'})) == ("{}", '{"cells":[]}')


@pytest.mark.parametrize("patch", [None, 3, [{"lines": [1]}], [{"oldStart": "a"}], [[]]])
def test_a_text_that_is_not_a_patch_is_harmless(patch: object) -> None:
    result = {"originalFile": "a\n", "oldString": "a", "newString": "b", "structuredPatch": patch}
    assert only(diffs_of(FILE, {}, result)) == ("a\n", "b\n")


def test_places_are_the_first_changed_lines_in_the_new_file() -> None:
    old = "".join(f"{n}\n" for n in range(1, 41))
    new = old.replace("5\n", "five\nand a half\n", 1).replace("30\n", "thirty\n", 1)
    result = edited(old, new, ("5", "five"))
    assert [(place.path, place.line) for place in places(FILE, result)] == [(FILE, 5), (FILE, 31)]
    assert places(FILE, {}) == [v1.ToolLocation(path=FILE)]
