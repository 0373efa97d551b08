"""The tables of `docs/evidence/conformance.md`: each check compares its result with the page; `make evidence` writes all of them."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

import pytest

from antiphon.conformance.report import ReportDocument
from antiphon.traffic.checker import Level
from tests.interop.programs import ROOT
from tests.interop.table import REWRITE, on_page, put, row

PAGE: Final = ROOT / "docs" / "evidence" / "conformance.md"

RESULTS: dict[str, dict[str, ReportDocument]] = defaultdict(dict)
"""Side → who was checked, by title → what was found; only where the page is to be written."""

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


def check(side: str, title: str, document: ReportDocument) -> None:
    """What was found about one of them is what the page has. Where the page is to be written, it is kept for `complete`."""
    if REWRITE:
        RESULTS[side][title] = document
        return
    found_otherwise = contradictions(on_page_of(side), title, document)
    assert not found_otherwise, "\n".join(["run `make evidence`, read the difference:", *found_otherwise])


def complete(side: str, titles: list[str]) -> None:
    """The page has all of them and no other; it is written if that is asked for."""
    if REWRITE:
        found = {title: page for title in titles if (page := RESULTS[side].get(title)) is not None}
        if missing := [title for title in titles if title not in found]:
            pytest.skip(f"not checked, or not to the end: {missing}")
        put(PAGE, f"{side}: summary", summary(found))
        put(PAGE, f"{side}: requirements", matrix(found))
    assert on_page_of(side).titles == titles, "run `make evidence`, read the difference"


class Shown(NamedTuple):
    """The tables of one side, as they stand on the page: the lines by their first cell."""

    summary: dict[str, list[str]]
    requirements: dict[str, list[str]]

    @property
    def titles(self) -> list[str]:
        return list(self.summary)


def on_page_of(side: str) -> Shown:
    text = PAGE.read_text(encoding="utf-8")
    return Shown(lines_of(on_page(f"{side}: summary", text)), lines_of(on_page(f"{side}: requirements", text)))


def lines_of(table: str) -> dict[str, list[str]]:
    """The lines of a table below its head, by their first cell."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("|")]
    return {cells[0]: cells[1:] for cells in rows[2:]}


def contradictions(shown: Shown, title: str, document: ReportDocument) -> list[str]:
    """Cells in which the page says another thing than was seen. On a busy machine a third-party program may not come to everything: what
    stands in one and is empty in the other is no contradiction, and neither is how many there were."""
    number = shown.titles.index(title) + 1
    old = {name: cells[number] for name, cells in shown.requirements.items()} | {"verdict": shown.summary[title][0]}
    new = {name: cells[1] for name, cells in lines_of(matrix({title: document})).items()}
    new["verdict"] = lines_of(summary({title: document}))[title][0]
    # Of a program that starts slowly not all is checked.
    missing = [f"{name}: not on both" for name in (old.keys() ^ new.keys() if document.complete else new.keys() - old)]
    differing = [
        f"{name}: {old[name]} on the page, {new[name]} seen"
        for name in old.keys() & new.keys()
        if old[name] and new[name] and old[name] != new[name]
    ]
    return sorted(missing + differing)
