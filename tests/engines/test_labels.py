"""What is shown says what is there, on one line, for every client."""

from antiphon.engines.labels import line_number, one_line, sentence, title
from antiphon.text import exact, size_in_words
from tests.rows import each_row


@each_row(
    ("text", "line"),
    [
        ("rm -rf \u202e/ ohce", "rm -rf <U+202E>/ ohce"),
        ("a\u200bb\u2066c\ufeff", "a<U+200B>b<U+2066>c<U+FEFF>"),
        ("echo \x9b31m\x1b[0m", "echo <U+009B>31m␛[0m"),
        ("rm\u00a0-rf\u2003/", "rm<U+00A0>-rf<U+2003>/"),
        ("a\r\n\t b\rc", "a b␍c"),
        ("x\U000e0041\ufe01", "x<U+E0041><U+FE01>"),
        ("half \ud800", "half ?"),
        ("❤\ufe0f", "❤\ufe0f"),
    ],
)
def test_a_line_shows_what_is_invisible(text: str, line: str) -> None:
    assert one_line(text) == line
    assert exact(text).replace("\n\t", "") == line


def test_a_sentence_keeps_the_marks_of_its_language_and_loses_what_turns_it_around() -> None:
    assert (
        sentence("Continuer\u202f?\n\u0645\u06cc\u200c\u062e \u202eno\x1b[1m")
        == "Continuer ? \u0645\u06cc\u200c\u062e <U+202E>no"
    )


def test_a_long_line_is_cut() -> None:
    assert one_line("x" * 201) == "x" * 199 + "…" and one_line("x" * 200) == "x" * 200
    assert len(one_line("\u200b" * 500)) == 200 and sentence("x " * 5000, 10) == "x x x x x…"
    assert title("Read", "y" * 300, "(from line 3)").endswith("… (from line 3)")


def test_lines_have_numbers_that_every_client_can_read() -> None:
    assert [line_number(each) for each in (None, -3, 7, 2**32 - 1, 2**32)] == [None, 1, 7, 2**32 - 1, None]


def test_sizes_have_three_digits() -> None:
    sizes = (0, 1, 1023, 3000, 1023 * 1024, 1 << 20, 10**30)
    assert [size_in_words(each) for each in sizes] == [
        "0 bytes", "1 byte", "1023 bytes", "2.93 KiB", "0.999 MiB", "1 MiB", "953674316406250000000000 MiB",
    ]  # fmt: skip
