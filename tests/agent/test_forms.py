"""Answers that do not fit their form are noticed."""

from typing import Any

from antiphon.agent.questions import misfits
from antiphon.engines.demo.features import FORM
from antiphon.protocol import v1
from tests.rows import each_row

GOOD: dict[str, v1.ContentValue] = {
    "name": "Ada",
    "voice": "low",
    "bars": 8,
    "tempo": 1,
    "repeat": True,
    "parts": ["call", "response"],
}


def test_answers_that_fit_are_fine() -> None:
    assert list(misfits(GOOD, FORM)) == []
    assert list(misfits({"name": "Ada"}, FORM)) == []


@each_row(
    ("name", "value", "wrong"),
    [
        ("name", 5, "not text"),
        ("name", "", "too short"),
        ("name", "x" * 41, "too long"),
        ("voice", "loud", "none of the choices"),
        ("bars", "many", "not a whole number"),
        ("bars", True, "not a whole number"),
        ("bars", 1.5, "not a whole number"),
        ("bars", 0, "below 1"),
        ("bars", 65, "above 64"),
        ("tempo", "fast", "not a number"),
        ("tempo", 3.0, "above 2"),
        ("repeat", "yes", "neither true nor false"),
        ("parts", "call", "not a list"),
        ("parts", ["pause"], "not on offer"),
        ("colour", "red", "not asked for"),
    ],
)
def test_an_answer_that_does_not_fit_is_named(name: str, value: Any, wrong: str) -> None:
    (said,) = misfits({**GOOD, name: value}, FORM)
    assert f"`{name}`" in said and wrong in said


def test_a_missing_answer_and_a_wrong_number_of_choices_are_named() -> None:
    assert list(misfits({}, FORM)) == ["`name` is missing"]
    field = v1.MultiSelectProperty(v1.TitledItems([v1.EnumOption("a", "A")]), min_items=1)
    assert list(misfits({"parts": []}, v1.Form(properties={"parts": field}))) == [
        "`parts` has the wrong number of choices"
    ]
