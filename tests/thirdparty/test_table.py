"""The page about third-party agents says what the tests saw: this runs last, compares, or writes the page."""

import pytest

from tests.thirdparty import table


@pytest.mark.slow
def test_the_page_has_what_was_seen() -> None:
    if not table.complete():
        pytest.skip("not everything was played to its end")
    seen = table.render()
    if table.REWRITE:
        table.put(table.PAGE, table.NAME, seen)
    assert table.on_page(table.NAME, table.PAGE.read_text(encoding="utf-8")) == seen, (
        "run `make evidence`, read the difference"
    )
