"""What an agent says is shown and not obeyed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.tui.painter import clean, exact, one_line, output_lines

CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) != "\n"]


@given(st.text())
def test_no_control_character_is_left(text: str) -> None:
    for shown in (clean(text), exact(text), one_line(text), "\n".join(output_lines(text))):
        assert not any(control in shown for control in CONTROLS)
        shown.encode()


def test_escapes_are_pictures_in_prose() -> None:
    assert clean("a\x1b[2Jb\x07") == "a␛[2Jb␇"


def test_words_stay_as_they_are() -> None:
    text = "naïve 日本語 👩‍💻 “quoted” — ok\nnext"
    assert clean(text) == text


@pytest.mark.parametrize("hidden", ["\u202e", "\u200b", "\u2066", "\ufeff", "\u00a0", "\U000e0041", "\x9b"])
def test_what_is_invisible_shows_where_the_user_decides(hidden: str) -> None:
    assert exact(f"rm{hidden}x") == f"rm<U+{ord(hidden):04X}>x"


def test_output_looks_as_it_would_at_the_end() -> None:
    assert output_lines("\x1b[32mok\x1b[0m\r\n10%\r50%\r100%\n\x1b]0;title\x07last\n") == ["ok", "100%", "last"]
    assert output_lines("") == []
