"""The page about features names every row and every piece of it with a test that is there."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "evidence" / "features.md").read_text(encoding="utf-8")
ROWS = [*range(1, 19)]
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows() -> dict[int, str]:
    """The rows of the page by their numbers."""
    found = re.findall(r"^## (\d+)\. .+?\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
    return {int(number): text for number, text in found}


def pieces(text: str) -> list[str]:
    """The pieces of a row, each with the tests below it."""
    return re.findall(r"^- .+?(?=^- |\Z)", text, re.MULTILINE | re.DOTALL)


@cache
def functions_of(file: str) -> frozenset[str]:
    """What a file of tests defines, by name."""

    def functions(tree: ast.AST) -> Iterator[str]:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name

    path = ROOT / file
    return frozenset(functions(ast.parse(path.read_text(encoding="utf-8")))) if path.exists() else frozenset()


def test_every_row_is_there_in_its_order() -> None:
    assert list(rows()) == ROWS


def test_every_piece_of_a_row_has_a_test() -> None:
    assert all(pieces(text) for text in rows().values())
    without = [piece for text in rows().values() for piece in pieces(text) if not TEST.search(piece)]
    assert without == []


def test_every_test_that_is_named_is_there() -> None:
    named = TEST.findall(PAGE)
    assert [f"{file}::{test}" for file, test in named if test not in functions_of(file)] == []
    # One that is written another way would go unseen.
    assert len(named) == PAGE.count("::")


def test_the_index_leads_to_every_row() -> None:
    links = {int(number) for number in re.findall(r"\]\(#(\d+)-", PAGE)}
    assert links == set(ROWS)
