"""Typing in `antiphon chat`: commands of the shell, pickers, pastes, the history, the editor, the keys of vi."""

import re
from pathlib import Path

import pytest

from antiphon.tui.screen import PROMPT
from tests.tui.terminal import CTRL_C, ENTER, ESCAPE, TAB, Terminal, chat

CTRL_G, CTRL_R, CTRL_V = "\x07", "\x12", "\x16"
DOWN = "\x1b[B"
pytestmark = pytest.mark.slow


def idle(terminal: Terminal) -> str:
    return terminal.wait("   /help")


def begin(terminal: Terminal) -> None:
    terminal.wait("mode default")


def paste(terminal: Terminal, text: str) -> None:
    terminal.press(f"\x1b[200~{text}\x1b[201~")


def test_a_command_runs_in_the_users_shell_and_its_output_is_handed_over(tmp_path: Path) -> None:
    with chat(tmp_path, SHELL="/bin/sh") as terminal:
        begin(terminal)
        terminal.ask(f"why? @!{ENTER}", "✗ `@!` means the output of your last command")
        terminal.press(CTRL_C)
        terminal.ask(f"!echo some words; exit 3{ENTER}", "exit status 3 · @! in a prompt")
        assert "! echo some words; exit 3\nsome words\n" in terminal.shown
        terminal.ask(f"/echo why? @!{ENTER}", "(the output of `echo some words; exit 3` is below)")
        terminal.wait("Exit status 3.")
        idle(terminal)
        terminal.ask(f"!read answer && echo got $answer && test -t 1 && pwd{ENTER}", "! read answer")
        terminal.ask(f"yes{ENTER}", "got yes")
        terminal.wait(str(tmp_path / "work"))
        idle(terminal)
        terminal.ask(f"!cat{ENTER}", "! cat")
        terminal.ask(f"here{ENTER}", "! cat\nhere\nhere")  # it runs: a shell that starts a program may lose a Ctrl-C
        terminal.ask(CTRL_C, "ended by SIGINT")
        idle(terminal)
        terminal.ask(f"/echo still here{ENTER}", "still here")


def test_a_long_paste_is_shown_as_its_number_of_lines_and_sent_whole(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        begin(terminal)
        terminal.press("/echo ")
        paste(terminal, "".join(f"line {number} @no.txt\r" for number in range(300)))
        terminal.wait(f"{PROMPT} /echo [300 lines]")
        terminal.press("\x7f")
        terminal.wait("[300 lines]", gone=True)
        paste(terminal, "".join(f"line {number} @no.txt\r" for number in range(300)))
        terminal.ask(ENTER, "line 299 @no.txt")
        idle(terminal)
        assert terminal.all.count(f"{PROMPT} /echo [300 lines]") == 1 and terminal.all.count("line 150 ") == 1


def test_tab_completes_also_when_it_is_typed_fast(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        (tmp_path / "work" / "deep").mkdir()
        (tmp_path / "work" / "deep" / "score.txt").write_text("do\nre\nmi\n", encoding="utf-8")
        begin(terminal)
        terminal.ask(f"/usa{TAB}", f"{PROMPT} /usage")
        terminal.press(CTRL_C)
        terminal.ask(f"see @sco{TAB}", f"{PROMPT} see @deep/score.txt")
        terminal.press(ENTER)
        terminal.ask(f":2-3{ENTER}", "With your words came")
        terminal.wait("L2:3")


def test_a_command_that_there_is_not_is_not_sent(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        begin(terminal)
        shown = terminal.ask(f"/ecko hello{ENTER}", "✗ there is no command `/ecko`")
        assert "did you mean `/echo`" in " ".join(shown.split())
        terminal.wait(f"{PROMPT} /ecko hello")
        terminal.press(CTRL_C)
        terminal.ask(f"//ecko hello{ENTER}", f"{PROMPT} /ecko hello")


def test_modes_models_and_sessions_are_picked_from_a_list(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        begin(terminal)
        shown = terminal.ask(f"/mode{ENTER}", "everything is allowed unless a rule denies it")
        assert "▸" in shown and f"{PROMPT} /mode" in shown
        terminal.ask("pln", "plan")
        terminal.wait("acceptEdits", gone=True)
        terminal.ask(ENTER, "mode: plan (nothing is changed, nothing is run)")
        terminal.ask(f"/model{ENTER}", "canon")
        terminal.press(ESCAPE)
        terminal.wait(f"{PROMPT} /model", gone=True)
        terminal.ask(f"/model{ENTER}", "canon")
        terminal.press(CTRL_C)
        terminal.wait(f"{PROMPT} /model", gone=True)
        terminal.press(ENTER)  # there is nothing to send
        terminal.ask(f"/echo the first song{ENTER}", "the first song")
        idle(terminal)
        terminal.ask(f"/new{ENTER}", "a new session")
        idle(terminal)
        terminal.ask(f"/load{ENTER}", "/echo the first song")
        terminal.ask("first" + ENTER, f"{PROMPT} /echo the first song\n")
        assert "You are in work" not in terminal.all


def test_the_history_is_searched_and_the_editor_writes_the_line(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf " and\\nmore" >> "$1"\n', encoding="utf-8")
    editor.chmod(0o700)
    with chat(tmp_path, EDITOR=str(editor), VISUAL=str(editor)) as terminal:
        begin(terminal)
        for word in ("alpha", "beta"):
            terminal.ask(f"/echo {word}{ENTER}", f"{PROMPT} /echo {word}")
            idle(terminal)
        terminal.ask(
            f"{CTRL_R}alp", f"{PROMPT} /echo alpha\nI-search backward: alp"
        )  # on the line while it is searched
        terminal.press(ENTER)
        terminal.ask(CTRL_G, f"{PROMPT} /echo alpha and\n  more")
        terminal.ask(ENTER, "alpha and\nmore\n")


def test_a_letter_is_on_the_screen_before_the_rest_is_drawn_and_in_the_same_place(tmp_path: Path) -> None:
    with chat(tmp_path, columns=40) as terminal:
        begin(terminal)
        terminal.press("q")
        terminal.until(lambda: re.search(r"q(\x1b\[\?2026h|$)", terminal.written) is not None)  # alone, before a frame
        terminal.wait(f"{PROMPT} q\n")
        for letter in "abcdefghijklmnopqrstuvwxyz" * 3:  # beyond the right edge, as fast as they come
            terminal.press(letter)
        terminal.until(lambda: "".join(terminal.shown.split()).count("xyz") == 3)
        typed = "".join(terminal.shown[terminal.shown.index(PROMPT) + 1 :].split())
        assert typed.startswith("q" + "abcdefghijklmnopqrstuvwxyz" * 3)


def test_the_keys_of_vi_are_a_setting(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text('[chat]\nkeys = "vi"\n', encoding="utf-8")
    with chat(tmp_path) as terminal:
        begin(terminal)
        terminal.ask("/echo one two", f"{PROMPT} /echo one two")
        terminal.press(ESCAPE)
        terminal.until(lambda: "\x1b[2 q" in terminal.written)  # the cursor is a block
        terminal.ask("bdw", f"{PROMPT} /echo one\n")
        terminal.ask(f"Athree{ENTER}", "one three")


def test_without_a_clipboard_an_image_is_named_by_its_path(tmp_path: Path) -> None:
    with chat(tmp_path, DISPLAY="", WAYLAND_DISPLAY="") as terminal:
        begin(terminal)
        terminal.ask(CTRL_V, "✗ the clipboard cannot be read here")
