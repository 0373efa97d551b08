"""A table in one test: every row is checked, and all rows that fail are named with what they failed with.

A test for each row costs milliseconds of pytest's own, in every process that collects it. `each_row` takes what
`pytest.mark.parametrize` takes and makes one test of it. The rows share the fixtures of that test: where a row needs
fresh ones, `parametrize` is right.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from inspect import Signature, iscoroutinefunction, signature
from pathlib import Path
from traceback import extract_tb
from typing import Any, Final, NamedTuple, TypeVar

import pytest

Item = TypeVar("Item")
Test = Callable[..., Any]
Ids = Callable[[Any], object] | Iterable[object] | None

FEW: Final = os.environ.get("ANTIPHON_EXAMPLES") == "few"
"""Whether this is one of the other Pythons: every line of ours runs there, not every case that it is given."""

WIDTH: Final = 80
"""Characters of a value in the name of its row."""

DETAILS: Final = 2_000
"""Characters of what one row failed with: a table that fails as a whole is to be readable."""

ROOT: Final = Path(__file__).resolve().parents[1]


class NamedRow(NamedTuple):
    """The arguments of a test for one row, and what the row is called when it fails."""

    name: str
    arguments: dict[str, Any]


def first_and_last(rows: Sequence[Item]) -> list[Item]:
    """Return the rows that the other Pythons check. Rows differ in what our code does with them, and seldom in what a Python does."""
    return [*rows[:1], *rows[1:][-1:]]


def proved_from(first: int, count: int) -> list[Any]:
    """Return the numbers up to a count for `parametrize`: `make test` plays those below the first one, `make prove` the others."""
    return [*range(first), *(pytest.param(number, marks=pytest.mark.prove) for number in range(first, count))]


def each_row(names: str | Sequence[str], rows: Iterable[Any], ids: Ids = None) -> Callable[[Test], Test]:
    """Make one test of a test and its table. All rows are checked, whichever fails."""
    table = _table([names] if isinstance(names, str) else list(names), list(rows), ids)
    chosen = first_and_last(table) if FEW else table

    def decorate(test: Test) -> Test:
        def run(**fixtures: Any) -> None:
            __tracebackhide__ = True
            failures = Failures(len(chosen))
            for row in chosen:
                with failures.collected(row.name):
                    test(**row.arguments, **fixtures)
            failures.report()

        async def run_async(**fixtures: Any) -> None:
            __tracebackhide__ = True
            failures = Failures(len(chosen))
            for row in chosen:
                with failures.collected(row.name):
                    await test(**row.arguments, **fixtures)
            failures.report()

        return _presented(run_async if iscoroutinefunction(test) else run, test, table[0])

    return decorate


def _presented(made: Test, test: Test, row: NamedRow) -> Test:
    """Give the made test the name, the place, the marks and the fixtures of the one that was written."""
    fixtures = [one for name, one in signature(test).parameters.items() if name not in row.arguments]
    made.__name__, made.__qualname__, made.__module__ = test.__name__, test.__qualname__, test.__module__
    made.__doc__ = test.__doc__
    shown = vars(made)
    shown["__signature__"] = Signature(fixtures)
    shown["__wrapped__"] = test
    shown["pytestmark"] = getattr(test, "pytestmark", [])
    return made


class Failures:
    """What failed among the rows of one test."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._errors: dict[str, BaseException] = {}

    @contextmanager
    def collected(self, row: str) -> Iterator[None]:
        """Keep what a row fails with. The rows after it are checked too."""
        try:
            yield
        except (Exception, pytest.fail.Exception) as error:  # `pytest.raises` fails with the second
            self._errors[row] = error

    def report(self) -> None:
        """Fail if a row has failed: with the names of all of them, then with the error of each. The first has its whole traceback."""
        __tracebackhide__ = True
        if self._errors:
            named = ", ".join(f"`{row}`" for row in self._errors)
            details = "".join(f"\n\n{row}\n{_described(error)}" for row, error in self._errors.items())
            head = f"{len(self._errors)} of {self._rows} rows failed: {named}"
            raise AssertionError(head + details) from next(iter(self._errors.values()))


def _described(error: BaseException) -> str:
    inside = [one for one in extract_tb(error.__traceback__) if Path(one.filename).is_relative_to(ROOT / "tests")]
    at = f"{Path(inside[-1].filename).relative_to(ROOT)}:{inside[-1].lineno}: " if inside else ""
    notes = "\n".join(getattr(error, "__notes__", ()))
    text = f"{at}{type(error).__name__}: {error}\n{notes}".rstrip()
    text = text if len(text) <= DETAILS else f"{text[:DETAILS]} … ({len(text)} characters)"
    return "\n".join(f"  {line}" for line in text.splitlines())


def _table(names: list[str], rows: list[Any], ids: Ids) -> list[NamedRow]:
    names = [name.strip() for each in names for name in each.split(",")]
    if not rows:
        raise ValueError(f"a table without rows checks nothing: {names}")
    given = list(ids) if isinstance(ids, Iterable) else []
    if given and len(given) != len(rows):
        raise ValueError(f"{len(rows)} rows, and {len(given)} names for them")
    table: list[NamedRow] = []
    for number, row in enumerate(rows):
        own = isinstance(row, type(pytest.param()))
        values = row.values if own else (row,) if len(names) == 1 else tuple(row)
        if own and row.marks:
            raise ValueError(f"a row has marks, which only `pytest.mark.parametrize` can give to a test: {row}")
        name = str(given[number]) if given else _name(values, ids if callable(ids) else None)
        table.append(NamedRow(str(row.id) if own and row.id else name, dict(zip(names, values, strict=True))))
    return _numbered(table)


def _name(values: Sequence[Any], id: Callable[[Any], object] | None) -> str:
    return "-".join(_shown(value if id is None or (own := id(value)) is None else own) for value in values)


def _shown(value: object) -> str:
    plain = isinstance(value, str) and value.isprintable()
    text = str(value) if plain else str(getattr(value, "__name__", None) or repr(value))
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}…"


def _numbered(table: list[NamedRow]) -> list[NamedRow]:
    """Number the rows whose names are the same."""
    names = Counter(row.name for row in table)
    return [
        row if names[row.name] == 1 else row._replace(name=f"{row.name} (row {number})")
        for number, row in enumerate(table, 1)
    ]
