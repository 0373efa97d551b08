"""The public names: one list, each documented, and the pages that describe them."""

import inspect
import re
from pathlib import Path

import pytest

import antiphon
from antiphon import testing, v1
from tools.api_page import GROUPS, PAGE, page

NAMES = Path(__file__).resolve().parent.parent / "docs" / "names.md"


def test_the_page_of_public_names_matches_the_docstrings() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python tools/api_page.py"


def test_the_reference_on_the_site_has_every_public_name_and_the_fixtures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PAGE.parents[1] / "tools"))
    import docs_site  # type: ignore[import-not-found,unused-ignore]  # a script beside the package

    pages = docs_site.python_pages()
    names = [name for name in antiphon.__all__ if name not in ("v1", "__version__")]
    named = [f"antiphon.{name}" for name in names] + [f"antiphon.testing.{name}" for name in testing.__all__]
    assert [name for name in named if not any(f'heading: "{name}"' in page for page in pages.values())] == []
    assert "::: antiphon.testing.fixtures" in pages["testing.md"]


def test_every_public_name_has_a_docstring() -> None:
    public = [getattr(antiphon, name) for name in antiphon.__all__ if name != "__version__"]
    assert not [
        value for value in (*public, *(getattr(testing, name) for name in testing.__all__)) if not inspect.getdoc(value)
    ]


def test_the_page_groups_every_name_once() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert len(set(grouped)) == len(grouped) and set(grouped) <= set(antiphon.__all__)


def test_the_table_of_names_has_only_names_that_exist() -> None:
    rows = [line.split("|")[2] for line in NAMES.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    named = {name for row in rows[1:] for name in re.findall(r"`(?:antiphon\.)?([A-Z]\w+)", row)}
    assert named and not {name for name in named if not hasattr(v1, name) and not hasattr(antiphon, name)}
