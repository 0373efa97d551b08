"""The colours of the page have enough contrast, in the light and in the dark theme: WCAG AA."""

import re
from importlib.resources import files

import pytest

COLOURS = {
    name: (light, dark)
    for name, light, dark in re.findall(
        r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)",
        files("antiphon.web").joinpath("static/css/base.css").read_text(encoding="utf-8"),
    )
}
GROUNDS = ("bg", "bg-raised", "bg-sunken")
TONES = ("ok", "warn", "bad", "info", "accent")

PAIRS = [
    *((text, ground) for text in ("text", "text-soft", "text-faint") for ground in (*GROUNDS, "bg-hover", "accent-soft")),
    *((tone, ground) for tone in TONES for ground in (*GROUNDS, f"{tone}-soft")),
    *((f"ansi-{number}", ground) for number in range(16) for ground in ("bg-sunken", "bg-raised")),
    *(("text", ground) for ground in ("add-bg", "add-mark", "del-bg", "del-mark")),
    ("ok", "add-bg"), ("bad", "del-bg"), ("accent-text", "accent"), ("accent-text", "accent-hover"),
]  # fmt: skip
"""Text and what it stands on."""


def luminance(colour: str) -> float:
    """The relative luminance of a colour, as WCAG defines it."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_can_be_read_on_every_ground_that_it_stands_on(theme: int) -> None:
    found = {(text, ground): contrast(COLOURS[text][theme], COLOURS[ground][theme]) for text, ground in PAIRS}
    assert {pair: round(value, 2) for pair, value in found.items() if value < 4.5} == {}


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_the_edges_of_fields_can_be_seen(theme: int) -> None:
    for ground in GROUNDS:
        assert contrast(COLOURS["border-strong"][theme], COLOURS[ground][theme]) >= 3
