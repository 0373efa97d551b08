"""`antiphon chat` in tmux, in narrow and wide windows: nothing is cut, nothing is left behind in the history, questions stay small."""

from pathlib import Path

import pytest

from antiphon.tui.screen import PROMPT
from tests.tui.terminal import CTRL_D, ENTER, ESCAPE
from tests.tui.tmux import chat_in_tmux

CTRL_O, CTRL_R = "\x0f", "\x12"
pytestmark = pytest.mark.slow

WIDTHS = pytest.mark.parametrize("columns", [50, 80, 120])
PROGRAM = "".join(f"def part_{number}(voice):\n    return voice + {number}\n\n\n" for number in range(20))


@WIDTHS
def test_a_session_from_the_first_screen_to_the_end(tmp_path: Path, columns: int) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "song.py").write_text(PROGRAM, encoding="utf-8")
    with chat_in_tmux(tmp_path, "demo", columns=columns) as tmux:
        shown = tmux.wait("mode default")
        assert shown.startswith("Antiphon ") and "  Antiphon demo  answers · echo" in shown
        tmux.ask(f"/edit song.py print(part_1(1)){ENTER}", "Allow?")
        shown = tmux.wait("no, because …")
        question = shown[shown.index("Allow?") :].split("\n")
        assert len(question) <= 13 and "y once · a always" in shown
        assert question[-1].startswith(("waiting for you   Antiphon demo", "waiting · Antiphon demo"))
        assert "default" in question[-1] and "…" not in question[-1]
        tmux.ask("a", "this session")
        tmux.ask("s", "lines now.")
        tmux.wait("working", gone=True)
        tmux.ask(f"/run seq 40{ENTER}", "Allow?")
        tmux.ask("n", "so nothing was done.")
        tmux.wait("working", gone=True)
        tmux.ask(f"!seq 5{ENTER}", "hands this output")
        tmux.ask("@son", "  song.py")
        tmux.ask("\t", f"{PROMPT} @song.py")
        tmux.press("\x03")
        tmux.wait("@song.py", gone=True)
        tmux.ask(f"/undo 2{ENTER}", "files only")
        tmux.press(ESCAPE)
        tmux.wait("Nothing was changed.")
        lines = [line.rstrip() for line in tmux.pane.split("\n")]
        assert lines[0].startswith("Antiphon ")  # nothing of an earlier frame went into the history of tmux
        assert lines.count(PROMPT) == 1 and sum(line.startswith("Antiphon demo") for line in lines) == 1
        assert "✗ Run `seq 40`  denied" in lines
        tmux.press(CTRL_D)
        assert tmux.wait_for_end() == 0


@pytest.mark.parametrize(("columns", "theme"), [(50, "light"), (80, "dark"), (120, "light")])
def test_the_pager_pickers_the_search_and_the_keys_of_vi(tmp_path: Path, columns: int, theme: str) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text(f'[chat]\ntheme = "{theme}"\nkeys = "vi"\n', encoding="utf-8")
    with chat_in_tmux(tmp_path, "demo", columns=columns, PAGER="less", LESS="-R") as tmux:
        tmux.wait("mode default")
        tmux.ask(f"/run seq 300{ENTER}", "Allow?")
        tmux.ask("y", "… 291 more lines · Ctrl-O")
        tmux.wait("working", gone=True)
        tmux.ask(CTRL_O, "✓ Run `seq 300`\n  1\n  2\n")
        tmux.ask("G", "\n  299\n  300\n")
        tmux.ask("q", "… 291 more lines · Ctrl-O")
        tmux.ask(f"/mode{ENTER}", "  bypassPermissions")
        tmux.ask("pln", f"{PROMPT} /mode pln")
        tmux.wait("  acceptEdits", gone=True)
        tmux.ask(ENTER, "mode: plan (nothing is changed, nothing is run)")
        tmux.wait("mode plan")
        tmux.ask(CTRL_R, "I-search backward")
        tmux.ask("seq 3", f"{PROMPT} /run seq 300")
        tmux.press(ESCAPE)
        tmux.wait("I-search", gone=True)
        tmux.press(ESCAPE)
        tmux.ask("0cw/echo\x1bA four\x1b", f"{PROMPT} /echo")  # words are changed as in vi
        lines = [line.rstrip() for line in tmux.pane.split("\n")]
        assert sum(line.startswith("Antiphon demo (") for line in lines) == 1  # no other frame is left


def test_a_cleared_screen_leaves_nothing_of_the_window_in_the_history(tmp_path: Path) -> None:
    with chat_in_tmux(tmp_path, "demo") as tmux:
        tmux.wait("mode default")
        tmux.press("\x0c")  # Ctrl-L: the window stands in the first line now
        tmux.wait("answers", gone=True)
        tmux.ask(f"/echo one{ENTER}", "\none\n")
        tmux.wait("working", gone=True)
        lines = [line.rstrip() for line in tmux.pane.split("\n")]
        above = lines[: lines.index(f"{PROMPT} /echo one")]
        assert PROMPT not in above and not any(line.startswith("Antiphon demo (echo)") for line in above)


@pytest.mark.parametrize(
    ("theme", "you"), [("light", "38;2;29;78;216"), ("dark", "38;2;122;162;247"), ("terminal", "34")]
)
def test_light_and_dark_are_themes(tmp_path: Path, theme: str, you: str) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text(f'[chat]\ntheme = "{theme}"\n', encoding="utf-8")
    with chat_in_tmux(tmp_path, "demo", COLORTERM="truecolor") as tmux:
        tmux.wait("mode default")
        tmux.ask(f"/echo hello{ENTER}", "\nhello\n")
        prompt = next(line for line in tmux.colours.split("\n") if "/echo hello" in line)
        assert f"[{you}m" in prompt or f";{you}m" in prompt, repr(prompt)
        tmux.ask(f"/run ls{ENTER}", "Allow?")
        asked = next(line for line in tmux.colours.split("\n") if "Allow?" in line)
        assert ("38;2;" in asked) is (theme != "terminal"), repr(asked)


def test_a_line_that_is_typed_letter_by_letter_past_the_edge_is_there_once(tmp_path: Path) -> None:
    with chat_in_tmux(tmp_path, "demo", columns=50) as tmux:
        tmux.wait("mode default")
        tmux.ask("x" * 44, f"{PROMPT} {'x' * 44}")
        for shown in ("a", "ab", "abc", "abcd\n", "abcd\n  e", "abcd\n  ef"):
            tmux.ask(shown.strip()[-1], f"{PROMPT} {'x' * 44}{shown}")
        tmux.press("\x15")  # Ctrl-U
        tmux.wait("xxx", gone=True)
        lines = [line.strip() for line in tmux.pane.split("\n")]
        assert lines.count(PROMPT) == 1 and not {"d", "e", "ef"} & set(lines)
