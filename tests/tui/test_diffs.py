"""Changes as lines, and the changes of a whole session."""

from pathlib import Path

from antiphon.protocol import v1
from antiphon.text import strip_ansi
from antiphon.transcript.presentation import ChangedFile, changes_of
from antiphon.transcript.transcript import fold
from antiphon.tui.output.diff import change_of, diff_texts, file_texts, placed
from antiphon.tui.painter import Painter
from tests.rows import each_row


def test_a_change_has_its_lines_and_some_around_them() -> None:
    old = "".join(f"{number}\n" for number in range(20))
    change = change_of(old, old.replace("10\n", "ten\n"))
    assert change.lines == (" 8", " 9", "-10", "+ten", " 11", " 12")
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


def painted(path: str, old: str | None, new: str, cwd: str, width: int = 40) -> list[str]:
    return Painter(width, colour=False).all(file_texts(path, old, new, cwd))


def test_lines_have_their_numbers_in_the_file_and_parts_are_apart(tmp_path: Path) -> None:
    old = "".join(f"line {number}\n" for number in range(1, 121))
    new = old.replace("line 3\n", "line three\n").replace("line 110\n", "")
    (tmp_path / "a.txt").write_text(new, encoding="utf-8")
    assert painted("a.txt", old, new, str(tmp_path)) == [
        "a.txt  +1 -2",
        "  1   line 1",
        "  2   line 2",
        "  3 - line 3",
        "  3 + line three",
        "  4   line 4",
        "  5   line 5",
        "    ⋯",
        "108   line 108",
        "109   line 109",
        "110 - line 110",
        "110   line 111",
        "111   line 112",
    ]


def test_a_part_of_a_file_has_the_numbers_of_the_file_and_an_unknown_place_has_none(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\nfour\n", encoding="utf-8")
    around = ["1   one", "2   two", "3 - drei", "3 + three", "4   four"]
    assert painted("a.txt", "drei\n", "three\n", str(tmp_path))[1:] == around
    assert painted("b.txt", "drei\n", "three\n", str(tmp_path))[1:] == ["- drei", "+ three"]


def test_a_part_of_a_line_is_shown_as_the_whole_line_before_the_change_and_after_it(tmp_path: Path) -> None:
    before, after = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"
    lines = ["1   def add(a, b):", "2 -     return a - b", "2 +     return a + b"]
    for name, text in (("a.py", before), ("b.py", after)):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert painted(name, "a - b", "a + b", str(tmp_path))[1:] == lines


@each_row(
    ("old", "new", "file", "expected"),
    [
        ("o", "0", "one\ntwo\n", ("o", "0", None)),  # there twice
        ("x\ny", "x", "x\ny\nz", ("x\ny\nz", "x\nz", 1)),  # the new text is a part of the old one, which is still there
        ("x", "x\ny", "x\ny\nz", ("x\nz", "x\ny\nz", 1)),
        ("a\n", "b\n", "a\nb\n", ("a\n", "b\n", None)),  # both are there: before the change, or after it?
        ("3", "III", "1\n2\n3\n4\n5\n6\n", ("1\n2\n3\n4\n5\n", "1\n2\nIII\n4\n5\n", 1)),
        ("", "x", "a\n", ("", "x", None)),
        ("6", "VI", "1\n2\n3\n4\n5\n6", ("4\n5\n6", "4\n5\nVI", 4)),
    ],
)
def test_a_change_is_placed_in_its_file_only_if_that_is_certain(
    old: str, new: str, file: str, expected: tuple[str, str, int | None]
) -> None:
    assert placed(old, new, file) == expected


def test_blank_lines_inside_a_change_stay_and_those_around_it_do_not() -> None:
    change = change_of("a\n\nb\nc\n\n\nd\n", "a\n\nb\nx\n\ny\n\n\nd\n")
    assert change.lines == (" b", "-c", "+x", "+", "+y")


def test_the_words_that_differ_are_marked_unless_most_do() -> None:
    removed, added = change_of("return a - b\n", "return a + b\n").rows
    assert [removed.text[slice(*span)] for span in removed.words] == ["-"]
    assert [added.text[slice(*span)] for span in added.words] == ["+"]
    assert not any(row.words for row in change_of("import os\n", "x = [1, 2]\n").rows)


def test_a_long_line_goes_on_below_its_text() -> None:
    lines = painted("a.txt", None, "word " * 12 + "\n", "/w", 30)
    assert lines[1:] == ["1 + word word word word word", "    word word word word word", "    word word"]


def test_code_has_the_colours_of_its_language_and_none_are_needed_to_read_it() -> None:
    change = 'def f():\n    """Text."""\n\n    return 1\n'
    coloured = Painter(60, {"TERM": "xterm-256color"}).all(file_texts("a.py", None, change, "/w"))
    assert sum(line.count("\x1b[") for line in coloured) > 12
    assert [strip_ansi(line).rstrip() for line in coloured] == painted("a.py", None, change, "/w", 60)


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
