"""Themes, notifications and the first screen, without a terminal."""

import ast
import re
from pathlib import Path

import pytest

import antiphon.tui
from antiphon.tui.display.notifications import AWAY, Notifications, way_of
from antiphon.tui.display.theme import STYLES, THEMES, ThemeProblem, is_light, load_theme
from antiphon.tui.display.welcome import ShownEngine, branch_of, engines_in, welcome_texts
from antiphon.tui.painter import Painter
from tests.rows import each_row

TRUE_COLOUR = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


def test_a_theme_is_a_small_file_and_changes_the_colours(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('you = "bold #010203"\n', encoding="utf-8")
    from rich.text import Text

    painted = Painter(80, TRUE_COLOUR, styles=load_theme("mine", tmp_path)).paint(Text("hello", "you"))
    assert "38;2;1;2;3" in painted[0]
    assert (
        "38;2" not in Painter(80, TRUE_COLOUR, styles=load_theme("terminal", tmp_path)).paint(Text("hello", "you"))[0]
    )


def test_the_built_in_themes_change_only_styles_that_there_are() -> None:
    for theme in THEMES.values():
        assert set(theme) <= set(STYLES)
        Painter(80, styles=theme)


def test_no_colour_is_named_outside_of_the_themes() -> None:
    colours = {"red", "green", "yellow", "blue", "magenta", "cyan", "white", "black"}
    named = []
    for file in Path(antiphon.tui.__file__).parent.rglob("*.py"):
        if file.name in ("theme.py", "painter.py"):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                words = node.value.removeprefix("bright_").split()
                named += [f"{file.name}:{node.lineno} {node.value!r}"] if len(words) < 3 and colours & {*words} else []
    assert not named  # a theme could not change it


def test_bright_colours_of_code_are_darker_on_a_light_background() -> None:
    code = "```python\ndef add(a):\n    return a\n```"
    dark, light = (Painter(80, TRUE_COLOUR, light=light).markdown(code) for light in (False, True))
    assert any("\x1b[94" in line for line in dark) and not re.search(r"\x1b\[(?:1;)?9[1-7]", "".join(light))
    plain = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in dark]
    assert plain == [re.sub(r"\x1b\[[\d;]*m", "", line) for line in light]


@each_row(
    ("name", "terminal", "light"),
    [
        ("light", "", True),
        ("terminal", "0;15", True),
        ("terminal", "0;default;7", True),
        ("terminal", "15;0", False),
        ("terminal", "", False),
        ("dark", "0;15", False),
    ],
)
def test_a_light_background_is_known_by_the_theme_or_by_the_terminal(name: str, terminal: str, light: bool) -> None:
    assert is_light(name, {"COLORFGBG": terminal}) is light


@each_row(
    ("text", "problem"),
    [
        ("you = 3\n", "`you` is no style"),
        ('you = "blodd"\n', "`you` is no style"),
        ('yuo = "bold"\n', "unknown style `yuo`"),
        ("you =\n", "cannot be read"),
    ],
)
def test_what_is_wrong_with_a_theme_is_named(text: str, problem: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "mine.toml").write_text(text, encoding="utf-8")
        with pytest.raises(ThemeProblem, match=problem):
            load_theme("mine", Path(folder))
        with pytest.raises(ThemeProblem, match="there is no theme `other`") as error:
            load_theme("other", Path(folder))
        assert "terminal, dark, light, mine" in error.value.hint


def test_who_looks_elsewhere_is_notified_and_who_does_not_is_not() -> None:
    sent: list[str] = []
    told = Notifications(sent.append, "bell", "/w")
    told.pressed()
    told.turn_over("hello")
    assert "\x07" not in [code for code in sent if not code.startswith("\x1b]")]
    told.focus(here=False)
    told.turn_over("hello")
    assert sent[-1] == "\x07"
    told.focus(here=True)
    sent.clear()
    told.asked()
    assert sent == ["\x1b]2;? antiphon: w\x07"]


def test_without_reports_of_the_terminal_the_last_key_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Notifications(lambda codes: None, "bell", "/w")
    assert not told.is_away
    monkeypatch.setattr("antiphon.tui.display.notifications.monotonic", lambda: told._pressed_at + AWAY + 1)
    assert told.is_away


def test_a_title_has_no_codes_of_a_prompt_in_it_and_the_old_one_is_put_back() -> None:
    sent: list[str] = []
    told = Notifications(sent.append, "osc777", "/w")
    told.focus(here=False)
    told.working("evil\x1b]0;owned\x07;x")
    told.turn_over("evil\x1b]0;owned\x07;x")
    told.close()
    assert sent[0] == "\x1b[22;2t" and sent[-1] == "\x1b[23;2t"
    assert not [code for code in sent if code.count("\x1b") != 1 or code.count("\x07") > 1]
    assert sent[-2].startswith("\x1b]777;notify;Antiphon;done: evil") and sent[-2].count(";") == 3


def test_off_sends_nothing() -> None:
    told = Notifications(lambda codes: pytest.fail("it was sent"), "off", "/w")
    told.focus(here=False)
    told.working("x")
    told.asked()
    told.turn_over("x")
    told.close()


@each_row(
    ("environment", "way"),
    [
        ({"TERM_PROGRAM": "iTerm.app"}, "osc9"),
        ({"TERM": "xterm-kitty"}, "osc9"),
        ({"VTE_VERSION": "7600"}, "osc777"),
        ({"TERM_PROGRAM": "iTerm.app", "TMUX": "/tmp/x"}, "bell"),
        ({"TERM": "xterm-256color"}, "bell"),
    ],
)
def test_the_way_to_notify_depends_on_the_terminal(environment: dict[str, str], way: str) -> None:
    assert way_of("auto", environment) == way and way_of("off", environment) == "off"


def test_the_first_screen_says_who_answers_and_who_is_not_signed_in() -> None:
    engines = [
        ShownEngine("claude", "Claude Code", False, "opus"),
        ShownEngine("codex", "Codex", True, "gpt", answers=True),
    ]
    for width in (50, 80, 120):
        lines = Painter(width, colour=False).all(welcome_texts(engines, "default (Shift-Tab): ask"))
        assert lines[:3] == [
            "  Claude Code  opus · not signed in: /login",
            "  Codex        answers · gpt · signed in",
            "  mode         default (Shift-Tab): ask",
        ]
        assert any("/duet, /review" in line for line in lines) and max(map(len, lines)) <= width


def test_a_response_that_is_not_understood_says_nothing_about_engines() -> None:
    assert engines_in({"engines": [{"name": "a", "signedIn": True}, {"name": "b"}, 3]}) == {"a": True}
    assert engines_in(None) == engines_in({"engines": None}) == {}


def test_the_branch_is_read_from_a_repository_and_from_a_worktree(tmp_path: Path) -> None:
    assert branch_of(str(tmp_path)) == branch_of("/")
    git = tmp_path / "main" / ".git"
    (git / "worktrees" / "w").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/feature/x\n", encoding="utf-8")
    (git / "worktrees" / "w" / "HEAD").write_text("0123456789abcdef\n", encoding="utf-8")
    (tmp_path / "w" / "deep").mkdir(parents=True)
    (tmp_path / "w" / ".git").write_text(f"gitdir: {git}/worktrees/w\n", encoding="utf-8")
    assert branch_of(str(tmp_path / "main")) == "feature/x"
    assert branch_of(str(tmp_path / "w" / "deep")) == "01234567"
