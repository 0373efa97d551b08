"""The tables of `docs/evidence/conformance.md`: the checks put their results in, and a test compares them with the page or writes it."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import pytest

from antiphon.conformance.report import ReportDocument
from antiphon.traffic.checker import Level
from tests.interop.programs import ROOT
from tests.interop.table import REWRITE, on_page, put, row

PAGE: Final = ROOT / "docs" / "evidence" / "conformance.md"

RESULTS: dict[str, dict[str, ReportDocument]] = defaultdict(dict)
"""Side → who was checked, by title → what was found."""

CELLS: Final = {"passed": "✓", "failed": "**✗**", "noted": "i"}
"""Status → what stands in a cell; what was not shown is empty."""

LEVELS: Final = (Level.MUST, Level.CAPABILITY, Level.SHOULD, Level.ADVICE)


def summary(found: Mapping[str, ReportDocument]) -> str:
    """A line for each peer: how many of those requirements that were shown hold, by level."""
    lines = [row(["", "verdict", *LEVELS]), row(["---"] * (len(LEVELS) + 2))]
    for title, document in found.items():
        cells = []
        for level in LEVELS:
            shown = [one.status for one in document.results if one.level == level and one.status in CELLS]
            cells.append(f"{shown.count('passed')} of {len(shown)}" if shown else "")
        verdict = "correct" if document.correct else "**not correct**"
        lines.append(row([title, verdict if document.complete else "", *cells]))
    return "\n".join(lines)


def matrix(found: Mapping[str, ReportDocument]) -> str:
    """A line for each requirement, a column for each peer."""
    first = next(iter(found.values()))
    lines = [row(["requirement", "level", *map(str, range(1, len(found) + 1))]), row(["---"] * (len(found) + 2))]
    statuses = [{one.id: one.status for one in document.results} for document in found.values()]
    for one in first.results:
        name = f'[`{one.id}`]({one.link} "{one.requirement.replace(chr(34), chr(39)).replace("|", "/")}")'
        lines.append(row([name, one.level, *(CELLS.get(each.get(one.id, ""), "") for each in statuses)]))
    columns = ", ".join(f"{number} {title}" for number, title in enumerate(found, 1))
    return f"Columns: {columns}.\n\n" + "\n".join(lines)


def compared(side: str, titles: list[str]) -> None:
    """The page has what was found; it is written if that is asked for."""
    found = {title: page for title in titles if (page := RESULTS[side].get(title)) is not None}
    if missing := [title for title in titles if title not in found]:
        pytest.skip(f"not checked, or not to the end: {missing}")
    for name, made in ((f"{side}: summary", summary), (f"{side}: requirements", matrix)):
        seen = made(found)
        if REWRITE:
            put(PAGE, name, seen)
        shown = on_page(name, PAGE.read_text(encoding="utf-8"))
        found_otherwise = contradictions(shown, seen)
        assert not found_otherwise, "\n".join(["run `make evidence`, read the difference:", *found_otherwise])


def contradictions(shown: str, seen: str) -> list[str]:
    """Cells in which the page says another thing than was seen. On a busy machine a third-party program may not come to everything: what
    stands in one and is empty in the other is no contradiction, and neither is how many there were."""
    old, new = (
        {
            cells[0]: cells[1:]
            for line in text.splitlines()
            if (cells := [cell.strip() for cell in line.split("|")[1:-1]])
        }
        for text in (shown, seen)
    )
    missing = [f"{name}: not on both" for name in old.keys() ^ new.keys()]
    differing = [
        f"{name}: {before} on the page, {now} seen"
        for name in old.keys() & new.keys()
        for before, now in zip(old[name], new[name], strict=True)
        if before and now and before != now and " of " not in before
    ]
    return sorted(missing + differing)
