"""`antiphon run` on a real pseudo-terminal: what the screen shows, what is asked, and what is typed."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli import agents
from tests.cli.program import Place
from tests.limits import limit

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_call_is_one_line_that_is_drawn_again(place: Place) -> None:
    with place.terminal("/think it", "--agent", "demo") as terminal:
        status, text = terminal.finish()
    assert status == 0
    assert text.splitlines() == ["Let me think about it for a moment.", "✓ Think it over", "I have thought about it."]
    assert "· Think it over".encode() in terminal.raw and "▸ Think it over".encode() in terminal.raw
    assert b"\x1b[2mLet \x1b[0m" in terminal.raw  # dim


def test_the_plan_is_one_line(place: Place) -> None:
    with place.terminal("/plan", "--agent", "demo") as terminal:
        _, text = terminal.finish()
    assert text.splitlines() == ["☰ plan 3/3: done", "The plan is done."]
    assert b"plan 1/3: Do the work" in terminal.raw


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"TERM": ""}])
def test_a_dumb_terminal_gets_no_control_codes(env: dict[str, str], place: Place) -> None:
    with place.terminal("/think it", "--agent", "demo", env=env) as terminal:
        status, text = terminal.finish()
    assert status == 0 and b"\x1b" not in terminal.raw and "✓ Think it over" in text


def test_no_color_means_no_colours(place: Place) -> None:
    with place.terminal("/think it", "--agent", "demo", env={"NO_COLOR": "1"}) as terminal:
        _, text = terminal.finish()
    assert b"m" not in [part[-1:] for part in terminal.raw.split(b"\x1b[")[1:]] and b"\x1b[2m" not in terminal.raw
    assert "✓ Think it over" in text


def test_an_agent_cannot_draw_on_the_screen(place: Place) -> None:
    with place.terminal("x", "--agent", place.agent(agents.Draws)) as terminal:
        _, text = terminal.finish()
    assert text.splitlines() == ["red␛[31m ␛]0;title␇bell␇ done", "✓ Evil␛[2J second"]  # seen, and not obeyed
    assert b"\x07" not in terminal.raw and b"\x1b[31m" not in terminal.raw and b"\x1b[2J" not in terminal.raw


def test_permission_is_asked_with_the_change_and_given(place: Place) -> None:
    with place.terminal("/edit notes.txt hello", "--agent", "demo") as terminal:
        shown = terminal.wait_for("Allow?")
        assert "? Edit notes.txt (edit)" in shown and "+hello" in shown
        assert f"always would allow: Edit({place.cwd}" in shown.replace("\n", "")
        terminal.type("y\n")
        status, text = terminal.finish()
    assert status == 0 and "✓ Edit notes.txt" in text and text.count("+hello") == 1
    assert (place.cwd / "notes.txt").read_text(encoding="utf-8") == "hello\n"
    assert b"\x1b[32m  +hello" in terminal.raw  # green


def test_nothing_is_written_over_an_open_question(place: Place) -> None:
    with place.terminal("/edit notes.txt hello", "--agent", "demo") as terminal:
        terminal.wait_for("Allow?")
        assert terminal.listen(1.5).endswith("everywhere):")  # longer than an agent may take to start unmentioned
        terminal.type("n\n")
        status, text = terminal.finish()
    assert status == 0 and "starting the agent" not in text


@pytest.mark.parametrize("answer", ["n\n", "no\n", "\x04"])
def test_a_no_is_a_no_and_ends_with_0(answer: str, place: Place) -> None:
    with place.terminal("/run touch x", "--agent", "demo") as terminal:
        assert "  touch x" in terminal.wait_for("Allow?")
        terminal.type(answer)
        status, text = terminal.finish()
    assert status == 0 and "You did not allow it, so nothing was done." in text and not (place.cwd / "x").exists()


def test_what_is_not_an_answer_is_asked_again(place: Place) -> None:
    with place.terminal("/run touch x", "--agent", "demo") as terminal:
        terminal.wait_for("Allow?")
        terminal.type("what?\ny\n")
        terminal.wait_for(lambda text: text.count("Allow?") == 2)
        terminal.type("n\n")
        status, text = terminal.finish()
    assert status == 0 and "You did not allow it, so nothing was done." in text


def test_always_is_remembered_for_the_project(place: Place) -> None:
    with place.terminal("/run touch x", "--agent", "demo") as terminal:
        terminal.wait_for("Allow?")
        terminal.type("p\n")
        assert terminal.finish()[0] == 0
    done = place.run("/run touch x")
    assert done.status == 0 and "ended with 0" in done.out
    assert place.run("/run touch y").status == 5  # nothing wider than what was shown


def test_what_was_typed_before_the_question_is_not_an_answer(place: Place) -> None:
    with place.terminal("/limit 1 echo one; sleep 0.3; echo two", "--allow", "Bash", "--agent", "demo") as terminal:
        terminal.finish()
    with place.terminal("/run touch x", "--agent", "demo") as terminal:
        terminal.type("y\n")
        terminal.wait_for("Allow?")
        terminal.type("n\n")
        _, text = terminal.finish()
    assert "You did not allow it" in text


def test_on_ask_means_that_the_user_is_not_asked(place: Place) -> None:
    with place.terminal("/edit notes.txt", "--agent", "demo", "--on-ask", "deny") as terminal:
        status, text = terminal.finish()
    assert status == 5 and "Allow?" not in text


def test_a_form_is_filled_in_line_by_line(place: Place) -> None:
    with place.terminal("/ask", "--agent", "demo") as terminal:
        for wanted, typed in (
            ("Your name", "Bob"), ("Your voice", "2"), ("How many bars", "99"), ("at most 64", "12"), ("How fast", ""),
            ("Again?", "y"), ("Which parts", "call, 2"),
        ):  # fmt: skip
            terminal.wait_for(wanted)
            terminal.type(f"{typed}\n")
        status, text = terminal.finish()
    assert status == 0
    for line in (
        "- bars: 12",
        "- name: Bob",
        "- parts: ['call', 'response']",
        "- repeat: True",
        "- tempo: 1.0",
        "- voice: low",
    ):
        assert line in text


def test_a_form_may_be_declined_and_a_page_visited(place: Place) -> None:
    with place.terminal("/ask", "--agent", "demo") as terminal:
        terminal.wait_for("Your name")
        terminal.type("\x04")
        assert "You would rather not say." in terminal.finish()[1]
    with place.terminal("/visit https://example.org/x", "--agent", "demo") as terminal:
        assert "  https://example.org/x" in terminal.wait_for("Did you go there?")
        terminal.type("y\n")
        assert "You went there." in terminal.finish()[1]


def test_ctrl_c_cancels_the_turn(place: Place) -> None:
    with place.terminal("/slow 1000", "--agent", "demo") as terminal:
        terminal.wait_for("1 2 3")
        terminal.type("\x03")
        status, text = terminal.finish()
    assert status == 130 and "cancelling" in text and text.endswith("stopped: cancelled")


def test_ctrl_c_at_a_question_cancels_the_turn(place: Place) -> None:
    with place.terminal("/run touch x", "--agent", "demo") as terminal:
        terminal.wait_for("Allow?")
        terminal.type("\x03")
        status, text = terminal.finish()
    assert status == 130 and "stopped: cancelled" in text and not (place.cwd / "x").exists()
    assert "Run `touch x` (cancelled)" in text and "failed" not in text


def test_ctrl_c_twice_ends_everything_at_once(place: Place) -> None:
    with place.terminal("x", "--agent", place.agent(agents.NeverEnds)) as terminal:
        terminal.wait_for("working")
        terminal.type("\x03")
        terminal.wait_for("cancelling")
        terminal.type("\x03")
        assert terminal.finish()[0] == 130


def test_the_answer_may_go_to_a_file_while_the_rest_is_on_the_terminal(place: Place) -> None:
    out = place.cwd / "out.txt"
    with out.open("wb") as file, place.terminal("/think it", "--agent", "demo", stdout=file.fileno()) as terminal:
        _, text = terminal.finish()
    assert out.read_text(encoding="utf-8") == "I have thought about it.\n"
    assert text.splitlines() == ["Let me think about it for a moment.", "✓ Think it over"]


def test_a_prompt_on_stdin_leaves_the_terminal_to_be_asked_on(place: Place) -> None:
    read, write = os.pipe()
    os.write(write, b"/run touch x")
    os.close(write)
    with place.terminal("--agent", "demo", stdin=read) as terminal:
        os.close(read)
        terminal.wait_for("Allow?")
        terminal.type("y\n")
        status, _ = terminal.finish()
    assert status == 0 and (place.cwd / "x").exists()


def test_without_a_prompt_it_is_an_error(place: Place) -> None:
    with place.terminal() as terminal:
        status, text = terminal.finish()
    assert status == 2 and "error: there is no prompt" in text and "hint: " in text


def test_lines_are_cut_to_the_screen_and_a_note_names_the_demo(place: Place) -> None:
    with place.terminal(f"/run echo {'x' * 200}", "--on-ask", "allow") as terminal:
        _, text = terminal.finish()
    calls = [line for line in text.splitlines() if "Run `echo" in line]
    assert len(calls) == 1 and len(calls[0]) <= 80 and calls[0].endswith("…")
    assert "--agent NAME" in text


def test_it_starts_without_a_terminal_library(place: Place) -> None:
    script = "import sys; from antiphon.cli.main import main; main(['run', 'hi']); print(*sorted({'rich', 'prompt_toolkit', 'tree_sitter'} & set(sys.modules)))"
    done = subprocess.run(
        [*place.words()[:1], "-c", script], cwd=place.cwd, env=place.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit(), check=True
    )  # fmt: skip
    assert done.stdout.decode().splitlines()[-1] == ""
