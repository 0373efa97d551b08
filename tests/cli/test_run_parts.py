"""Parts of `antiphon run` that are quicker to look at alone: what a screen shows, what a log leaves out, what a form takes."""

import pytest

from antiphon.protocol import v1
from antiphon.redaction import Redactor
from antiphon.text import cut, exact, prose
from antiphon.transcript.forms import Field, Wrong, fields_of
from tests.rows import each_row


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("call", 4, "call"),
        ("response", 4, "res…"),
        ("聖歌隊", 6, "聖歌隊"),
        ("聖歌隊", 5, "聖歌…"),
        ("é" * 3, 3, "é" * 3),
        ("", 0, ""),
    ],
)
def test_a_line_is_cut_by_columns(text: str, width: int, shown: str) -> None:
    assert cut(text, width) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", "a␛[31mb"),
        ("git status \x1b]0;touch x;\x07", "git status ␛]0;touch x;␇"),
        ("a\x9b31mb", "a<U+009B>31mb"),
        ("a\rb\x08\x00", "a␍b␈␀"),
        ("left\u202eright", "left<U+202E>right"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("tabs\tand\nlines", "tabs\tand\nlines"),
    ],
)
def test_nothing_draws_and_no_code_is_hidden(text: str, shown: str) -> None:
    assert prose(text) == shown


def test_what_the_user_decides_by_has_nothing_invisible() -> None:
    assert exact("rm\u200b x\u00a0y\u202e") == "rm<U+200B> x<U+00A0>y<U+202E>"


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdef0123456789", "key sk-ant-api03-abcdef0123456789", "ghp_abcdef0123456789abcdef", "token=abcdef0123456789",
        '{"api_key": "abcdef0123456789"}', "https://ada:abcdef0123456789@example.org/", "the value of MINE is abcdef0123456789",
    ],
)  # fmt: skip
def test_a_log_has_no_secrets(text: str) -> None:
    cleaned = Redactor({"MINE_TOKEN": "abcdef0123456789", "OTHER_KEY": "short"})(text)
    assert "***" in cleaned and "0123456789" not in cleaned and "\n" not in cleaned


def one(field: v1.Property, *, required: bool = False) -> Field:
    [found] = fields_of(v1.Form(properties={"x": field}, required=["x"] if required else None))
    return found


VOICES = v1.StringProperty(one_of=[v1.EnumOption("high", "High"), v1.EnumOption("low", "Low")])


@each_row(
    ("field", "line", "value"),
    [
        (v1.StringProperty(), "Ada", "Ada"),
        (v1.StringProperty(default="Ada"), "", "Ada"),
        (v1.StringProperty(), "", None),
        (v1.StringProperty(format=v1.StringFormat.EMAIL), "ada@example.org", "ada@example.org"),
        (VOICES, "2", "low"),
        (VOICES, "HIGH", "high"),
        (VOICES, "low", "low"),
        (v1.IntegerProperty(minimum=1), "3", 3),
        (v1.NumberProperty(), "0.5", 0.5),
        (v1.BooleanProperty(), "Yes", True),
        (v1.BooleanProperty(default=False), "", False),
        (v1.MultiSelectProperty(v1.StringItems(["a", "b"])), "b, 1, b", ["b", "a"]),
    ],
)
def test_a_typed_line_is_a_value(field: v1.Property, line: str, value: object) -> None:
    assert one(field).read(line) == value


@each_row(
    ("field", "line"),
    [
        (v1.StringProperty(min_length=2), "A"),
        (v1.StringProperty(max_length=2), "Ada"),
        (v1.StringProperty(format=v1.StringFormat.URI), "not an address"),
        (VOICES, "3"),
        (v1.IntegerProperty(), "1.5"),
        (v1.IntegerProperty(minimum=1), "0"),
        (v1.NumberProperty(maximum=2), "3"),
        (v1.NumberProperty(maximum=2), "nan"),
        (v1.BooleanProperty(), "perhaps"),
        (v1.MultiSelectProperty(v1.StringItems(["a", "b"]), min_items=2), "a"),
        (v1.MultiSelectProperty(v1.StringItems(["a", "b"]), max_items=1), "a,b"),
    ],
)
def test_what_does_not_fit_is_reported(field: v1.Property, line: str) -> None:
    with pytest.raises(Wrong):
        one(field).read(line)


def test_what_is_required_cannot_be_left_out() -> None:
    with pytest.raises(Wrong, match="cannot be left out"):
        one(v1.StringProperty(), required=True).read("")
