"""What every test gets. In CI (`ANTIPHON_CI=1`) a skipped test is a failure unless `allowed_skips.txt` names it."""

import gc
import os
import re
import signal
from collections.abc import Generator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import settings

from tests.rows import FEW, first_and_last

ALLOWED_SKIPS = Path(__file__).with_name("allowed_skips.txt")
TABLES = ("interop", "thirdparty")
"""Directories whose tests play with the programs of others and fill one table: one process runs them, in `make prove`."""
CHECKS = "conformance/peers"
"""The directory whose tests check the programs of others, each for itself, in `make prove`."""
NO_TABLE = ("interop/test_network.py",)
"""Files there that fill no table."""
IN_CI = os.environ.get("ANTIPHON_CI") == "1"
MARKING = re.compile(r"\b(?:slow|proves?)\b")
"""What stands in every file with a marked test: one of the marks, or `proves`, which marks the tests of the engines. Those in a directory `e2e`
need not say so: their fixtures give them the marks."""
ONLY_MARKED = os.environ.get("ANTIPHON_TESTS") == "marked"
"""Whether only tests with one of these marks run: `tools/all_tests.py` says so for each of its parts."""

# No deadline: a busy machine is not a failing property. In CI the same examples every time, so red means a change.
# In CI examples are the same every time, so the other Pythons need not see all of those that the first has seen.
EXAMPLES = 20 if FEW else 50

FROZEN_EVERY = 25
"""Tests after which what they left alive is frozen (reports, caches, modules): unfrozen, it made a quarter of the processor time."""
NUMBERS = count(1)

settings.register_profile("house", deadline=None, derandomize=IN_CI, max_examples=EXAMPLES)
settings.load_profile("house")


def allowed_skips() -> dict[str, str]:
    """Node ids that may be skipped → the reason."""
    allowed: dict[str, str] = {}
    for line in ALLOWED_SKIPS.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        node, _, reason = (part.strip() for part in line.partition(" -- "))
        if not reason:
            raise pytest.UsageError(f"{ALLOWED_SKIPS.name}: no reason given for `{node}`")
        allowed[node] = reason
    return allowed


def forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip that is not listed into a failure. An expected failure also counts as skipped; it stays as it is."""
    if not (IN_CI and report.skipped) or hasattr(report, "wasxfail"):
        return
    if report.nodeid.partition("[")[0] in allowed_skips():
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"{reason}\n{report.nodeid} may not be skipped in CI: {ALLOWED_SKIPS.name} does not name it"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    forbid_skip(report)
    return report


def pytest_configure() -> None:
    """Take signals as a program in a terminal does: a shell starts background jobs with some of them ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_runtest_setup() -> None:
    """Give every test Ctrl-C back: a test that runs the program in this process leaves it ignored, as the program does at its end."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if next(NUMBERS) % FROZEN_EVERY == 0:
        freeze()


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Fail a test that leaves signals blocked: the next one that waits for Ctrl-C would wait for ever."""
    if blocked := signal.pthread_sigmask(signal.SIG_SETMASK, ()):
        pytest.fail(f"{item.nodeid} leaves signals blocked: {sorted(blocked)}")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out files without a marked test where only those run: each of many processes takes seconds to collect all."""
    is_test = collection_path.suffix == ".py" and collection_path.name.startswith("test_")
    return True if ONLY_MARKED and is_test and not may_be_marked(collection_path) else None


@cache
def may_be_marked(path: Path) -> bool:
    """Whether tests of this file may be slow or for `make prove`: its text has such a mark, or its directory gives it."""
    return bool(mark_of(path)) or "e2e" in path.parts or MARKING.search(path.read_text(encoding="utf-8")) is not None


@cache
def mark_of(path: Path) -> Literal["together", "checks", ""]:
    """The mark of a file whose tests play with the programs of others: they fill a table, or check them."""
    here = Path(__file__).parent
    place = path.relative_to(here).as_posix() if path.is_relative_to(here) else ""
    if place.startswith(f"{CHECKS}/"):
        return "checks"
    return "together" if place not in NO_TABLE and place.startswith(tuple(f"{each}/" for each in TABLES)) else ""


def pytest_itemcollected(item: pytest.Item) -> None:
    if (item.get_closest_marker("slow") or item.get_closest_marker("prove")) and not may_be_marked(item.path):
        raise pytest.UsageError(f"{item.nodeid} is marked, but its file does not say so: no part would run it")
    if mark := mark_of(item.path):
        item.add_marker(pytest.mark.prove)
        item.add_marker(mark)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave some rows of each test on the other Pythons: every line of ours runs there, not every case that it is given."""
    if not FEW:
        return
    rows: dict[str, list[pytest.Item]] = {}
    for item in items:
        rows.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {row for each in rows.values() for row in first_and_last(each)}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def pytest_collection_finish() -> None:
    """Thousands of collected tests stay alive to the end."""
    freeze()


def freeze() -> None:
    """Leave what is alive now out of later collections of garbage: many tests collect it, and are to look only at their own."""
    gc.collect()
    gc.freeze()
