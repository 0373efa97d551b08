"""Changes to files."""

import pytest

from antiphon.protocol import v1
from tests.engines.codex.translate.harness import CWD, TranslatedThread, add, update

OLD, NEW = "one\ntwo\nthree\nfour\nfive\n", "one\nTWO\nthree\nfour\nfive\n"
HUNK = "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"


def diffs(thread: TranslatedThread, at: int = -1) -> list[tuple[str, str | None, str]]:
    shown = thread.events[at]
    assert isinstance(shown, v1.ToolCall | v1.ToolCallUpdate) and isinstance(shown.content, list)
    return [(piece.path, piece.old_text, piece.new_text) for piece in shown.content if isinstance(piece, v1.Diff)]


@pytest.mark.parametrize("found", [OLD, NEW])
def test_a_diff_has_the_whole_text_even_if_codex_was_faster(found: str) -> None:
    thread = TranslatedThread(read={f"{CWD}/a": found}.get)
    thread.changes("f", [update(f"{CWD}/a", HUNK)])
    assert diffs(thread) == [(f"{CWD}/a", OLD, NEW)]


def test_the_text_before_is_read_once_and_before_the_change() -> None:
    files = {f"{CWD}/a": OLD}
    thread = TranslatedThread(read=files.get)
    thread.changes("f", [update("a", HUNK)])
    files[f"{CWD}/a"] = "something else\n"
    thread.changes("f", [update("a", HUNK)], "completed")
    assert diffs(thread) == [(f"{CWD}/a", OLD, NEW)]


@pytest.mark.parametrize("found", [None, "quite another text\n"])
def test_without_the_text_each_hunk_is_a_diff(found: str | None) -> None:
    thread = TranslatedThread(read=lambda _: found)
    thread.changes("f", [update(f"{CWD}/a", HUNK + "@@ -9 +9,2 @@\n nine\n+ten\n")])
    assert diffs(thread) == [
        (f"{CWD}/a", "one\ntwo\nthree\n", "one\nTWO\nthree\n"),
        (f"{CWD}/a", "nine\n", "nine\nten\n"),
    ]
    [call] = thread.events
    assert isinstance(call, v1.ToolCall) and [place.line for place in call.locations] == [2, 10]


def test_a_new_file_has_no_old_text_unless_it_overwrites_one() -> None:
    thread = TranslatedThread(read={f"{CWD}/a": "old\n", f"{CWD}/b": "hello\n"}.get)
    thread.changes("f", [add("a", "hello\n"), add("b", "hello\n"), add("c", "hello\n")])
    assert [old for _, old, _ in diffs(thread)] == ["old\n", None, None]


@pytest.mark.parametrize("status", ["declined", "failed"])
def test_what_was_declined_is_marked_as_denied(status: str) -> None:
    thread = TranslatedThread()
    thread.changes("f", [add("a", "hello\n")])
    thread.changes("f", [add("a", "hello\n")], status)
    thread.command("c", "make")
    thread.command("c", "make", status)
    ends = [each for each in thread.events if isinstance(each, v1.ToolCallUpdate)]
    assert [each.status for each in ends] == ["failed", "failed"]
    marked = [each.meta == {"antiphon": {"denied": True}} for each in ends]
    assert marked == [status == "declined"] * 2


def test_a_deleted_file_has_no_new_text() -> None:
    thread = TranslatedThread()
    thread.changes("f", [{"path": "a", "kind": {"type": "delete"}, "diff": OLD}])
    [call] = thread.events
    assert isinstance(call, v1.ToolCall) and (call.kind, call.name, call.title) == ("delete", "Delete", "Delete a")
    assert diffs(thread) == [(f"{CWD}/a", OLD, "")]


def test_a_moved_file_shows_where_it_went_and_what_changed() -> None:
    thread = TranslatedThread(read={f"{CWD}/a": OLD}.get)
    thread.changes("f", [update("a", HUNK + f"\n\nMoved to: {CWD}/b", f"{CWD}/b")])
    [call] = thread.events
    assert isinstance(call, v1.ToolCall) and (call.kind, call.title) == ("edit", "Edit a → b")
    assert diffs(thread) == [(f"{CWD}/b", OLD, NEW)]
    assert call.raw_input == {"paths": [f"{CWD}/a", f"{CWD}/b"]}


def test_a_file_that_only_moves_is_a_move() -> None:
    thread = TranslatedThread()
    thread.changes("f", [update("a", f"\n\nMoved to: {CWD}/b", f"{CWD}/b")])
    assert thread.outline == ["call f move Move: Move a → b [in_progress] 'Moved from a to b.'"]


def test_several_files_are_one_call() -> None:
    thread = TranslatedThread()
    thread.changes("f", [update("a", HUNK), add("b", "x\n"), add("/else/c", "x\n")])
    [call] = thread.events
    assert isinstance(call, v1.ToolCall) and (call.name, call.title) == ("Edit", "Edit a and 2 more files")
    assert call.raw_input == {"paths": [f"{CWD}/a", f"{CWD}/b", "/else/c"]}


def test_a_patch_that_grows_is_shown_as_it_is_now() -> None:
    thread = TranslatedThread()
    thread.notify("item/fileChange/patchUpdated", itemId="f", changes=[add("a", "x")])
    thread.notify("item/fileChange/patchUpdated", itemId="f", changes=[add("a", "x")])
    thread.notify("item/fileChange/patchUpdated", itemId="f", changes=[add("a", "xy")])
    assert len(thread.events) == 2 and diffs(thread) == [(f"{CWD}/a", None, "xy")]


def test_an_unreadable_diff_is_shown_as_it_is() -> None:
    thread = TranslatedThread()
    thread.changes("f", [update("a", "what is this?")])
    assert thread.outline == ["call f edit Edit: Edit a [in_progress] '```diff\\nwhat is this?\\n```'"]


def test_a_change_that_failed_is_shown_as_failed() -> None:
    thread = TranslatedThread()
    thread.changes("f", [add("a", "x")])
    thread.changes("f", [add("a", "x")], "failed")
    assert thread.outline[-1].startswith("update f [failed] 'The change could not be made.'")
