"""A table in one test: every row is checked, each that fails is named, and nothing passes for want of rows."""

import asyncio

import pytest

from tests import rows
from tests.rows import NamedRow, each_row, first_and_last

SEEN: list[str] = []


@pytest.fixture(autouse=True)
def _all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "FEW", False)


@each_row("word", ["one", "two", "three"])
@each_row("number", [1, 2])
def test_every_row_is_checked_with_the_rows_of_the_table_below_it(word: str, number: int) -> None:
    SEEN.append(f"{word} {number}")
    assert SEEN[-1] == f"{word} {number}"


def test_they_were_checked() -> None:
    test_every_row_is_checked_with_the_rows_of_the_table_below_it()
    assert {"one 1", "one 2", "three 1", "three 2"} <= set(SEEN)


@each_row("word", ["a", "b"])
async def test_rows_may_wait_and_share_fixtures(word: str, tmp_path: object) -> None:
    await asyncio.sleep(0)
    assert word and tmp_path


def test_all_rows_that_fail_are_named_with_what_they_failed_with() -> None:
    @each_row(("left", "right"), [(1, 1), (1, 2), pytest.param(3, 4, id="three and four"), (5, 5)])
    def equal(left: int, right: int) -> None:
        assert left == right, "not equal"

    with pytest.raises(AssertionError) as raised:
        equal()
    text = str(raised.value)
    assert text.startswith("2 of 4 rows failed: `1-2`, `three and four`\n")
    assert text.count("tests/test_rows.py:") == text.count("not equal") == 2
    assert isinstance(raised.value.__cause__, AssertionError)  # the first one, with its traceback


def test_a_row_that_does_not_raise_what_it_should_is_named() -> None:
    @each_row("number", [0, 1])
    def divides(number: int) -> None:
        with pytest.raises(ZeroDivisionError):
            _ = 1 / number

    with pytest.raises(AssertionError, match=r"^1 of 2 rows failed: `1`"):
        divides()


def test_rows_that_show_the_same_are_numbered() -> None:
    @each_row("number", [7, 8, 7], ids=["same", "other", "same"])
    def fails(number: int) -> None:
        raise ValueError(number)

    with pytest.raises(AssertionError) as raised:
        fails()
    assert "`same (row 1)`, `other`, `same (row 3)`" in str(raised.value)


def test_a_table_that_cannot_be_checked_is_refused() -> None:
    with pytest.raises(ValueError, match="without rows"):
        each_row("number", [])
    with pytest.raises(ValueError, match="names for them"):
        each_row("number", [1, 2], ids=["one"])
    with pytest.raises(ValueError, match="has marks"):
        each_row("number", [pytest.param(1, marks=pytest.mark.slow)])
    with pytest.raises(ValueError, match="zip"):
        each_row(("left", "right"), [(1, 2, 3)])


def test_the_other_pythons_check_the_first_and_the_last_row() -> None:
    table = [NamedRow(name, {}) for name in "abc"]
    assert [row.name for row in first_and_last(table)] == ["a", "c"]
    assert [row.name for row in first_and_last(table[:1])] == ["a"]
