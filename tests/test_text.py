"""What shows nothing is shown by its number, everywhere; in prose it is kept where it is needed to write something."""

import sys
import unicodedata
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.export.html import safe
from antiphon.text import exact, prose, repaired_json, replace_surrogates
from antiphon.tui.painter import clean
from antiphon.tui.painter import exact as exact_on_screen
from tests.rows import each_row

IGNORABLE: Final = frozenset(
    [0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x200B, 0x2010), *range(0x202A, 0x202F),
     *range(0x2060, 0x2070), 0x3164, *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0, *range(0xFFF0, 0xFFF9), *range(0x1BCA0, 0x1BCA4),
     *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000)]
)  # fmt: skip
"""Default_Ignorable_Code_Point of Unicode: a program that cannot draw these draws nothing."""

SHOWN: Final = frozenset([*range(0x0600, 0x0606), 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x110BD, 0x110CD])
"""Format characters that are drawn: signs before numbers, ends of verses."""

FORMAT: Final = frozenset(code for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Cf") - SHOWN
HIDDEN: Final = sorted(IGNORABLE | FORMAT)

WAYS: Final = {
    "prose": prose,
    "exact": exact,
    "run": prose,
    "chat": clean,
    "chat, exact": exact_on_screen,
    "html": safe,
}

WORDS: Final = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"], max_codepoint=0x24F), max_size=4)


def hidden_in(text: str) -> list[str]:
    return [f"U+{ord(sign):04X}" for sign in text if ord(sign) in IGNORABLE or ord(sign) in FORMAT]


@pytest.mark.parametrize("way", WAYS)
def test_every_character_that_shows_nothing_is_shown_among_latin_letters(way: str) -> None:
    show = WAYS[way]
    for code in HIDDEN:
        for text in (chr(code), f"pass{chr(code)}word", f"a {chr(code)} b", f"end{chr(code)}", f"{chr(code)}begin"):
            shown = show(text)
            assert hidden_in(shown) == [], f"U+{code:04X} in {shown!r}"
            assert f"U+{code:04X}" in shown


@given(st.lists(st.tuples(WORDS, st.sampled_from(HIDDEN).map(chr)), min_size=1, max_size=8))
def test_nothing_is_hidden_between_latin_words_however_much_of_it(parts: list[tuple[str, str]]) -> None:
    text = "".join(word + sign for word, sign in parts)
    for name, show in WAYS.items():
        assert hidden_in(show(text)) == [], name


SIGNS: Final = st.sampled_from([*map(chr, HIDDEN), *"👩💻❤🏴👍🏽1#*a中葛नعᠠ", "\U000e0067\U000e0062\U000e007f"])


@given(st.lists(SIGNS, max_size=30).map("".join))
def test_two_hidden_characters_in_a_row_are_never_both_kept(text: str) -> None:
    """A message can be hidden in a row of them. The longest row that writes something is an emoji's selector with its joiner, and a flag."""
    shown, row = prose(text), 0
    for place, sign in enumerate(shown):
        row = row + 1 if ord(sign) in IGNORABLE else 0
        flag = 0xE0020 <= ord(sign) <= 0xE007F
        assert row <= 1 or flag or shown[place - 1 : place + 1] == "\ufe0f\u200d", ascii(shown)


@given(st.lists(SIGNS, max_size=30).map("".join))
@example("\u180b\u180b")
@example("a\ufe0f\u200d💻")
@example("\uffa0\ufe00")
def test_showing_is_the_same_when_done_twice(text: str) -> None:
    assert prose(prose(text)) == prose(text) and exact(exact(text)) == exact(text)


KEPT: Final = {
    "a family": "👨‍👩‍👧‍👦",
    "a woman at a computer": "👩🏽‍💻",
    "a burning heart": "❤️‍🔥",
    "a heart": "❤️ and ☎️ and ©️",
    "a heart as text": "❤︎",
    "a keycap": "1️⃣ #️⃣",
    "the flag of England": "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "the flag of pirates": "🏴‍☠️",
    "Persian": "می‌خواهم",
    "Sinhala": "ශ්‍රී",
    "Hindi": "क्‍ष",
    "Hebrew with a mark": "שלום\u200f!",
    "Mongolian": "ᠠ᠋",
    "Japanese with a selector": "葛\U000e0100飾区",
    "a sign of mathematics": "∩︀",
    "spaces of French": "Quoi\u202f?",
}


@each_row("what", KEPT)
def test_what_is_needed_to_write_something_is_kept(what: str) -> None:
    text = f"See {KEPT[what]}."
    assert prose(text) == prose(text) == clean(text) == text


@each_row("what", KEPT)
def test_words_that_come_in_pieces_are_kept_too(what: str) -> None:
    text = KEPT[what]
    if "flag of England" in what:
        return  # a row of tags is only known to be a flag when it is whole
    shown = "".join(prose(sign, text[:place]) for place, sign in enumerate(text))
    assert shown == text


@each_row(
    ("json", "repaired"),
    [
        (rb'"\ud83d b"', rb'"\ufffd b"'),
        (rb'"\uDE00 b"', rb'"\ufffd b"'),
        (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\\\ud83d"', rb'"\\\ufffd"'),
    ],
)
def test_half_of_a_surrogate_pair_in_json_is_replaced(json: bytes, repaired: bytes) -> None:
    assert replace_surrogates(json) == repaired


def test_json_without_half_of_a_pair_stays_the_same_object() -> None:
    for json in (rb'"\ud83d\ude00 \\ud83d"', rb'"\u0041"', b'"plain"'):
        assert replace_surrogates(json) is json
        assert repaired_json(json) is json


def test_bytes_that_are_not_utf_8_are_replaced_in_a_line_of_json() -> None:
    assert repaired_json(b'"\xff \\ud83d"') == '"\ufffd \\ufffd"'.encode()
