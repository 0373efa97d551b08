"""The page about interoperability says what the tests saw: this runs last, compares, or writes the page."""

from typing import Final

import pytest

from tests.interop import table

TABLES: Final = {
    "our agent": (1, [(client, "antiphon") for client in ("python", "python-next", "typescript", "antiphon")]),
    "acpx": (1, [("acpx", "antiphon")]),
    "our client": (0, [("antiphon", agent) for agent in ("python", "python-next", "typescript")]),
    "controls": (1, [(name, name) for name in ("python", "python-next", "typescript")]),
}
"""The name on the page → which side is the same in all columns, and the pairs."""


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_the_page_has_what_was_seen(name: str) -> None:
    same, pairs = TABLES[name]
    missing = [pair for pair in pairs if pair not in table.RESULTS]
    if missing:
        pytest.skip(f"not played, or not to its end: {missing}")
    seen = table.render(pairs, 1 - same)
    if table.REWRITE:
        table.put(table.PAGE, name, seen)
    assert table.on_page(name, table.PAGE.read_text(encoding="utf-8")) == seen, (
        "run `make evidence`, read the difference"
    )


def test_the_page_lists_every_fault_of_a_peer() -> None:
    if table.REWRITE:
        table.put(table.PAGE, "faults", table.faults())
    assert table.on_page("faults", table.PAGE.read_text(encoding="utf-8")) == table.faults()
