"""Changes as lines, and the changes of a whole session."""

from antiphon.protocol import v1
from antiphon.transcript.presentation import ChangedFile, changes_of
from antiphon.transcript.transcript import fold
from antiphon.tui.blocks import change_of, diff_texts


def test_a_change_has_its_lines_and_some_around_them() -> None:
    old = "".join(f"{number}\n" for number in range(20))
    change = change_of(old, old.replace("10\n", "ten\n"))
    assert change.lines == ("@ line 9", " 8", " 9", "-10", "+ten", " 11", " 12")
    assert (change.added, change.removed) == (1, 1)


def test_a_new_file_is_all_added() -> None:
    assert change_of(None, "a\nb\n").lines == ("+a", "+b")


def test_a_change_that_cannot_be_seen_is_reported() -> None:
    assert "differs" in change_of("a\n", "a").lines[0]
    assert change_of("a", "a").lines == ()


def test_a_long_change_is_cut_with_a_note() -> None:
    texts = diff_texts(change_of(None, "x\n" * 100), 10)
    assert len(texts) == 10 and texts[-1].plain == "… 91 more lines"


def test_huge_files_are_shown_without_being_matched_up() -> None:
    change = change_of("a\n" * 5000, "b\n" * 5000)
    assert (change.added, change.removed) == (5000, 5000)


def edit(id: str, path: str, old: str | None, new: str, status: v1.ToolStatus = v1.ToolStatus.COMPLETED) -> v1.ToolCall:
    return v1.ToolCall(id, "Edit", v1.ToolKind.EDIT, status, content=[v1.Diff(path, new, old)])


def test_edits_that_follow_each_other_are_one_change_and_failed_ones_are_none() -> None:
    transcript = fold([
        edit("1", "/a", None, "1\n"),
        edit("2", "/b", "x", "y"),
        edit("3", "/a", "1\n", "1\n2\n"),
        edit("4", "/c", "x", "y", v1.ToolStatus.FAILED),
        edit("5", "/b", "far away", "other part"),
        edit("6", "/d", "x", "y"),
        edit("7", "/d", "y", "x"),
    ])  # fmt: skip
    assert changes_of(transcript) == [
        ChangedFile("/a", None, "1\n2\n"),
        ChangedFile("/b", "x", "y"),
        ChangedFile("/b", "far away", "other part"),
    ]
