"""Changes to files."""

import pytest

from antiphon.protocol import v1
from tests.engines.codex.translate.harness import CWD, Stage, add, update

OLD, NEW = "one\ntwo\nthree\nfour\nfive\n", "one\nTWO\nthree\nfour\nfive\n"
HUNK = "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"


def diffs(stage: Stage, at: int = -1) -> list[tuple[str, str | None, str]]:
    shown = stage.news[at]
    assert isinstance(shown, v1.ToolCall | v1.ToolCallUpdate) and isinstance(shown.content, list)
    return [(piece.path, piece.old_text, piece.new_text) for piece in shown.content if isinstance(piece, v1.Diff)]


@pytest.mark.parametrize("found", [OLD, NEW])
def test_a_diff_has_the_whole_text_even_if_codex_was_faster(found: str) -> None:
    stage = Stage(read={f"{CWD}/a": found}.get)
    stage.changes("f", [update(f"{CWD}/a", HUNK)])
    assert diffs(stage) == [(f"{CWD}/a", OLD, NEW)]


def test_the_text_before_is_read_once_and_before_the_change() -> None:
    files = {f"{CWD}/a": OLD}
    stage = Stage(read=files.get)
    stage.changes("f", [update("a", HUNK)])
    files[f"{CWD}/a"] = "something else\n"
    stage.changes("f", [update("a", HUNK)], "completed")
    assert diffs(stage) == [(f"{CWD}/a", OLD, NEW)]


@pytest.mark.parametrize("found", [None, "quite another text\n"])
def test_without_the_text_each_hunk_is_a_diff(found: str | None) -> None:
    stage = Stage(read=lambda _: found)
    stage.changes("f", [update(f"{CWD}/a", HUNK + "@@ -9 +9,2 @@\n nine\n+ten\n")])
    assert diffs(stage) == [
        (f"{CWD}/a", "one\ntwo\nthree\n", "one\nTWO\nthree\n"),
        (f"{CWD}/a", "nine\n", "nine\nten\n"),
    ]
    [call] = stage.news
    assert isinstance(call, v1.ToolCall) and [place.line for place in call.locations] == [2, 10]


def test_a_new_file_has_no_old_text_unless_it_overwrites_one() -> None:
    stage = Stage(read={f"{CWD}/a": "old\n", f"{CWD}/b": "hello\n"}.get)
    stage.changes("f", [add("a", "hello\n"), add("b", "hello\n"), add("c", "hello\n")])
    assert [old for _, old, _ in diffs(stage)] == ["old\n", None, None]


def test_a_deleted_file_has_no_new_text() -> None:
    stage = Stage()
    stage.changes("f", [{"path": "a", "kind": {"type": "delete"}, "diff": OLD}])
    [call] = stage.news
    assert isinstance(call, v1.ToolCall) and (call.kind, call.name, call.title) == ("delete", "Delete", "Delete a")
    assert diffs(stage) == [(f"{CWD}/a", OLD, "")]


def test_a_moved_file_shows_where_it_went_and_what_changed() -> None:
    stage = Stage(read={f"{CWD}/a": OLD}.get)
    stage.changes("f", [update("a", HUNK + f"\n\nMoved to: {CWD}/b", f"{CWD}/b")])
    [call] = stage.news
    assert isinstance(call, v1.ToolCall) and (call.kind, call.title) == ("edit", "Edit a → b")
    assert diffs(stage) == [(f"{CWD}/b", OLD, NEW)]
    assert call.raw_input == {"paths": [f"{CWD}/a", f"{CWD}/b"]}


def test_a_file_that_only_moves_is_a_move() -> None:
    stage = Stage()
    stage.changes("f", [update("a", f"\n\nMoved to: {CWD}/b", f"{CWD}/b")])
    assert stage.tale == ["call f move Move: Move a → b [in_progress] 'Moved from a to b.'"]


def test_several_files_are_one_call() -> None:
    stage = Stage()
    stage.changes("f", [update("a", HUNK), add("b", "x\n"), add("/else/c", "x\n")])
    [call] = stage.news
    assert isinstance(call, v1.ToolCall) and (call.name, call.title) == ("Edit", "Edit a and 2 more files")
    assert call.raw_input == {"paths": [f"{CWD}/a", f"{CWD}/b", "/else/c"]}


def test_a_patch_that_grows_is_shown_as_it_is_now() -> None:
    stage = Stage()
    stage.told("item/fileChange/patchUpdated", itemId="f", changes=[add("a", "x")])
    stage.told("item/fileChange/patchUpdated", itemId="f", changes=[add("a", "x")])
    stage.told("item/fileChange/patchUpdated", itemId="f", changes=[add("a", "xy")])
    assert len(stage.news) == 2 and diffs(stage) == [(f"{CWD}/a", None, "xy")]


def test_a_diff_that_nobody_can_read_is_shown_as_it_is() -> None:
    stage = Stage()
    stage.changes("f", [update("a", "what is this?")])
    assert stage.tale == ["call f edit Edit: Edit a [in_progress] '```diff\\nwhat is this?\\n```'"]


def test_a_change_that_failed_says_so() -> None:
    stage = Stage()
    stage.changes("f", [add("a", "x")])
    stage.changes("f", [add("a", "x")], "failed")
    assert stage.tale[-1].startswith("update f [failed] 'The change could not be made.'")
