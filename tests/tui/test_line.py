"""The input line: pasted text, images, commands that there are not, and what a command of the shell wrote."""

import gc
import os
import stat
import tty
import weakref
from pathlib import Path

import pytest
from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import Completion, DummyCompleter

from antiphon.errors import AcpError
from antiphon.protocol import v1
from antiphon.tui.display.idle import IdleCollector
from antiphon.tui.line.actions import unknown_command
from antiphon.tui.line.clipboard import clipboard_image, clipboard_programs
from antiphon.tui.line.completion import ChatCompleter
from antiphon.tui.line.echo import WatchedInput
from antiphon.tui.line.entry import InputLine
from antiphon.tui.line.fuzzy import ranked
from antiphon.tui.line.pastes import Pastes, pasted_image
from antiphon.tui.line.shell import ShellOutput
from tests.rows import each_row

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 100


def test_a_long_paste_is_a_label_and_comes_back_whole() -> None:
    pastes = Pastes()
    long, other = "a\n" * 300, "b\n" * 300
    assert pastes.fold("two\nlines") == "two\nlines"
    assert (pastes.fold(long), pastes.fold(other), pastes.fold(long)) == (
        "[300 lines]",
        "[300 lines, 2]",
        "[300 lines]",
    )
    assert pastes.fold("x" * 5_000) == "[5,000 characters]"
    assert (
        pastes.unfold("see [300 lines] and [300 lines, 2], not [301 lines]")
        == f"see {long} and {other}, not [301 lines]"
    )
    assert pastes.label_before("see [300 lines]") == "[300 lines]" and pastes.label_before("see [300 lines] ") == ""


def test_a_label_in_pasted_text_is_text() -> None:
    pastes = Pastes()
    first = pastes.fold("x\n" * 20)
    second = pastes.fold(f"{first}\n" * 30)
    assert pastes.unfold(second) == f"{first}\n" * 30


def test_the_path_of_an_image_that_is_dropped_on_the_terminal_is_a_mention(tmp_path: Path) -> None:
    (tmp_path / "a b.png").write_bytes(PNG)
    mention = f'@"{tmp_path}/a b.png"'
    assert pasted_image(f"{tmp_path}/a\\ b.png ", "/") == mention
    assert pasted_image(f"'{tmp_path}/a b.png'", "/") == pasted_image(f"file://{tmp_path}/a b.png\n", "/") == mention
    assert pasted_image(f"{tmp_path}/other.png", "/") is None
    assert pasted_image("look at a.png", "/") is None and pasted_image("", "/") is None


def program(directory: Path, name: str, script: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_the_image_of_the_clipboard_is_stored_for_the_user_alone(tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(PNG)
    program(tmp_path, "xclip", f'[ "$4" = image/png ] && exec /bin/cat {tmp_path}/picture')
    environment = {"PATH": str(tmp_path), "DISPLAY": ":0"}
    path = clipboard_image(tmp_path / "state", environment)
    assert path.read_bytes() == PNG and path.suffix == ".png" and stat.S_IMODE(path.stat().st_mode) == 0o600
    (tmp_path / "picture").write_bytes(b"no image")
    with pytest.raises(AcpError, match="no image in the clipboard"):
        clipboard_image(tmp_path / "state", environment)
    with pytest.raises(AcpError, match="needs xclip"):
        clipboard_image(tmp_path / "state", {"PATH": "/nowhere", "DISPLAY": ":0"})
    assert len(os.listdir(tmp_path / "state")) == 1


def test_the_clipboard_is_read_by_the_program_of_the_desktop() -> None:
    names = [words[0] for words in clipboard_programs({"WAYLAND_DISPLAY": "w", "DISPLAY": ":0"}, "linux")]
    assert names == ["wl-paste", "xclip"] and clipboard_programs({}, "linux") == []
    assert clipboard_programs({}, "darwin")[0][0] == "pngpaste"


@each_row(
    ("text", "known"),
    [
        ("/review this", True),
        ("/help", True),
        ("/etc/hosts is wrong", True),
        ("// a comment", True),
        ("/", True),
        ("no command", True),
        ("/nosuch", False),
        ("/revew it", False),
    ],
)
def test_a_command_that_there_is_not_is_an_error_and_a_path_is_a_prompt(text: str, known: bool) -> None:
    theirs = [v1.Command("review", "Review")]
    error = unknown_command(text, lambda: ["help"], theirs)
    assert (error is None) is known
    assert unknown_command(text, lambda: ["help"], None) is None  # the agent has not sent its commands


def test_the_error_names_what_may_be_meant() -> None:
    error = unknown_command("/revew it", lambda: ["help"], [v1.Command("review", "Review")])
    assert error is not None and "`/review`" in (error.hint or "") and "`//revew`" in (error.hint or "")


def test_names_that_begin_with_the_letters_come_first() -> None:
    names = ["remove", "model", "commode", "mode", "m/o/d/e"]
    assert ranked("mode", names, str) == ["mode", "model", "commode", "m/o/d/e"]
    assert ranked("mode", names, str, keep_order=True) == ["model", "mode", "commode", "m/o/d/e"]


def test_the_agent_gets_the_command_what_it_wrote_and_how_it_ended() -> None:
    output = ShellOutput("make test", "\x1b[31mred\x1b[0m\r\n10%\r100%\r\n```\r\n", 2)
    assert output.for_agent() == "I ran `make test`:\n````console\nred\n100%\n```\n````\nExit status 2."
    assert ShellOutput("true", "", 0).for_agent() == "I ran `true`:\n```console\n\n```"
    assert ShellOutput("x", "", -9).ending == "ended by SIGKILL"


def test_a_state_of_completion_without_any_is_no_menu() -> None:
    buffer = Buffer(multiline=True)
    line = InputLine(buffer, DummyCompleter())
    assert not line.has_menu
    buffer.complete_state = CompletionState(buffer.document)  # they are being looked for
    assert not line.has_menu  # Backspace still removes a label, and Shift-Tab changes the mode
    buffer.complete_state = CompletionState(buffer.document, [Completion("/echo")])
    assert line.has_menu


MODELS = [("default", "the one that is best, at present opus"), ("opus", "for hard work"), ("haiku", "fast")]


@pytest.mark.parametrize(("typed", "picked"), [("", "default"), ("hk", "haiku"), ("opus", "opus"), ("none", "none")])
def test_a_picker_takes_the_row_that_is_typed_whole_else_the_first_that_fits(typed: str, picked: str) -> None:
    line = InputLine(Buffer(), ChatCompleter(list, lambda command: MODELS, lambda: "/"))
    assert line.pick("/model ")
    line.buffer.insert_text(typed)
    assert line.picked() == f"/model {picked}"
    assert not line.picking and line.buffer.text == ""


def test_a_picker_whose_line_was_emptied_is_an_ordinary_line_again() -> None:
    line = InputLine(Buffer(), ChatCompleter(list, lambda command: MODELS, lambda: "/"))
    assert line.pick("/model ")
    line.buffer.delete_before_cursor(7)
    assert not line.picking
    assert line.pick("/model ")
    line.reset()
    assert not line.picking


def test_a_letter_is_seen_before_it_is_parsed_but_not_inside_of_a_sequence_or_a_paste() -> None:
    keyboard, other_end = os.openpty()
    tty.setraw(other_end)
    with open(other_end, encoding="utf-8", closefd=True) as stdin:
        given, seen = WatchedInput(stdin), list[str]()
        given.seen = seen.append

        def press(*pieces: str) -> list[str]:
            seen.clear()
            for piece in pieces:
                os.write(keyboard, piece.encode())
                given.read_keys()
            return [letter for letter in seen if letter != "\x1b"]

        assert press("a", "b") == ["a", "b"]
        assert press("\x1b", "[", "A") == []  # an arrow key, over a slow line
        assert press("c") == ["c"]
        assert press("\x1b[I", "d") == ["d"]  # the terminal is in front, and a letter
        assert press("\x1b[200~", "x", "y", "\x1b[201~", "\x7f", "e") == ["e"]
        assert press("\x1b[200~", "x") == []
        given.flush_keys()  # a paste that comes slowly is still a paste
        assert press("y") == []
        os.write(keyboard, b"\x1b[201~")
        assert [key.data for key in given.read_keys()] == ["xy"]
        assert press("\x1b") == []
        assert [key.data for key in given.flush_keys()] == ["\x1b"]
        assert press("f") == ["f"]
    os.close(keyboard)


class Cycle:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.itself = self


def test_garbage_is_collected_while_no_key_is_pressed_and_never_while_a_user_types() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    collector = IdleCollector()
    try:
        for _ in range(20):  # letters are typed from the start on
            collector.nothing_happens(0.1)
        assert gc.get_freeze_count() == frozen and gc.get_threshold() == before
        for _ in range(10):
            collector.nothing_happens(5.0)
        assert gc.get_freeze_count() > frozen  # what was loaded is not looked at again
        assert gc.isenabled() and gc.get_threshold()[0] >= before[0]
        garbage = [Cycle() for _ in range(3_000)]
        last = weakref.ref(garbage[-1])
        garbage.clear()
        for _ in range(20):
            collector.nothing_happens(0.1)
        assert last() is not None
        for _ in range(5):
            collector.nothing_happens(1.0)
        assert last() is None
    finally:
        if not frozen:
            gc.unfreeze()
        gc.set_threshold(*before)
