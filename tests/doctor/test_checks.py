"""The doctor's checks as a table: ids, names, limits; a check that fails or hangs is a finding, and the others come through."""

import asyncio
import importlib.util
import re
import threading
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from antiphon.cli.doctor import NAMES
from antiphon.doctor.checks import PARTS, checks_of, selected
from antiphon.doctor.configuration import _INSIDE, OURS
from antiphon.doctor.findings import Check, DoctorContext, Finding, note, ok
from antiphon.doctor.install import EXTRAS, extra
from antiphon.doctor.runner import run_checks
from tests.cli.program import ROOT

CONTEXT = DoctorContext("/", {"MY_API_KEY": "hunter22-and-more"})


def fine(context: DoctorContext) -> Sequence[Finding]:
    return ok("all is well")


def fails(context: DoctorContext) -> Sequence[Finding]:
    raise RuntimeError("oh no\nsecond line")


def hangs(context: DoctorContext) -> Sequence[Finding]:
    threading.Event().wait()
    return []


async def waits(context: DoctorContext) -> Sequence[Finding]:
    await asyncio.Event().wait()
    return []


def leaks(context: DoctorContext) -> Sequence[Finding]:
    return note("the key is hunter22-and-more", "Bearer 0123456789abcdef", line="hunter22-and-more", long="x" * 9999)


async def test_a_check_that_fails_or_hangs_is_a_finding_and_delays_nothing() -> None:
    looks: dict[str, Any] = {"fails": fails, "hangs": hangs, "waits": waits, "fine": fine}
    began = time.monotonic()
    results = await run_checks([Check(f"x.{name}", name, look, 0.2) for name, look in looks.items()], CONTEXT)
    assert time.monotonic() - began < 5
    assert [result.check.title for result in results] == list(looks)  # in their order
    shown = {result.check.title: result.findings[0] for result in results}
    assert shown["fails"].sentence == "this could not be found out: RuntimeError: oh no"
    assert shown["hangs"].sentence == shown["waits"].sentence == "this could not be found out within 0.2 seconds"
    assert [shown[name].status for name in looks] == ["problem", "problem", "problem", "ok"]
    assert all(found.hint for found in shown.values() if found.status == "problem")


async def test_checks_run_side_by_side() -> None:
    gate = threading.Barrier(3)  # none comes through before all are there

    def meet(context: DoctorContext) -> Sequence[Finding]:
        gate.wait(5)
        return ok("met")

    results = await run_checks([Check(f"x.{number}", "", meet, 5) for number in range(3)], CONTEXT)
    assert all(result.findings[0].sentence == "met" for result in results)


async def test_no_secret_of_the_environment_is_printed() -> None:
    ((result),) = await run_checks([Check("x.leaks", "", leaks, 5)], CONTEXT)
    (found,) = result.findings
    assert (found.sentence, found.hint, found.facts["line"]) == ("the key is ***", "Bearer ***", "***")
    assert len(found.facts["long"]) == 500


def test_ids_are_unique_and_every_check_stands_in_a_part() -> None:
    checks = checks_of(CONTEXT, network=True, start=True)
    assert len({check.id for check in checks}) == len(checks)
    assert list(dict.fromkeys(check.part for check in checks)) == list(PARTS)
    assert all(check.title and 0 < check.limit < 120 and re.fullmatch(r"[a-z.-]+", check.id) for check in checks)


def test_a_name_means_a_part_an_id_or_what_a_check_is_about() -> None:
    checks = checks_of(CONTEXT, network=True, start=True)
    chosen, unknown = selected(checks, ["claude", "lute", "state"])
    assert unknown == ("lute",)
    assert [check.id for check in chosen] == [
        "install.claude", "state.directory", "state.database", "state.leftovers", "state.sessions", "engines.claude.program",
        "engines.claude.login", "network.claude", "start.claude",
    ]  # fmt: skip
    assert selected(checks, []) == (checks, ()) and selected(checks, ["eng"])[1] == ("eng",)


def test_every_name_that_is_offered_means_something() -> None:
    assert selected(checks_of(CONTEXT, network=False, start=False), NAMES)[1] == ()


def test_nothing_is_reached_or_started_unless_asked_for() -> None:
    assert {check.part for check in checks_of(CONTEXT, network=False, start=False)} == set(PARTS) - {"network", "start"}


def test_the_extras_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"]) - {"all"}


@pytest.mark.parametrize("name", EXTRAS)
def test_an_extra_is_installed_if_its_packages_can_be_imported(name: str) -> None:
    try:
        there = all(importlib.util.find_spec(package) is not None for package in EXTRAS[name])
    except ModuleNotFoundError:  # not even the package around it
        there = False
    (found,) = extra(name, CONTEXT)
    assert (found.sentence == "installed") is there


def test_every_variable_of_ours_is_known() -> None:
    """One that is added anywhere has to be added to the doctor, or it would be called misspelt."""
    used = set()
    for path in Path(ROOT, "src").rglob("*.py"):
        used |= set(
            re.findall(r"^\w+(?:: Final)? = \"(ANTIPHON_\w+)\"$", path.read_text(encoding="utf-8"), re.MULTILINE)
        )
        used |= set(re.findall(r"environ(?:ment)?(?:\.get\(|\[)\"(ANTIPHON_\w+)\"", path.read_text(encoding="utf-8")))
    assert used <= {*OURS, *_INSIDE} and set(OURS) <= used
