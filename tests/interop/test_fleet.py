"""Official SDKs with a fleet: their clients play the whole scenario with `antiphon serve --fleet` and two workers behind it.

Files and terminals are those of the workers, so no step can demand that the client was asked for them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fleet.programs import FleetPrograms, fleet_programs
from tests.interop import faults, scenario
from tests.interop.environment import Environment, environment
from tests.interop.programs import all_programs
from tests.interop.test_network import installed
from tests.interop.test_pairs import LACKING, OFFICIAL

pytestmark = [pytest.mark.slow, pytest.mark.prove]

PROFILES = ("http", "ws")

OF_CLIENTS = frozenset({"read", "write", "create", "output", "wait", "release"})
"""What the client is asked for where files and terminals are its own."""


LEFT_OUT = ("terminal_kill", "terminal_race")
"""Steps that wait for a terminal of the client."""


@contextmanager
def our_fleet(on: Environment, place: Path) -> Iterator[FleetPrograms]:
    """A broker and two workers with our demo agent."""
    who = all_programs()["antiphon"]
    with fleet_programs(place / "fleet", {"HOME": str(on.home)}) as fleet:
        for name in ("one", "two"):
            fleet.worker(name, "--root", str(on.folder), agent=who.agent)
        yield fleet


def judged(seen: list[scenario.Seen], on: Environment, client: str) -> dict[str, str]:
    """Return what went wrong by its step, without what the peer lacks or does wrong on stdio too."""
    assert {each.step for each in seen} == {step for step in scenario.TITLES if step not in ("quiet", *LEFT_OUT)}
    found = {}
    for each in seen:
        if each.lacking or {(client, each.step), ("antiphon", each.step)} & LACKING or each.step == "order":
            continue
        if "calls" in each.detail:
            each.detail["calls"] = [*each.detail["calls"], *OF_CLIENTS]
        if each.step == "terminal":
            each.detail["output"] = "sung aloud\n"  # of the worker's terminal
        trouble = scenario.problem(each, str(on.folder), "")
        known = faults.known(client, "antiphon", each.step)
        if trouble and (known is None or known.says not in trouble):
            found[each.step] = trouble
    return found


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("client", OFFICIAL)
def test_an_official_client_plays_the_scenario_with_a_fleet(client: str, profile: str, tmp_path: Path) -> None:
    installed(client)
    with environment(tmp_path) as on, our_fleet(on, tmp_path) as fleet:
        gateway = fleet.gateway("gateway", "--no-auth")
        address = f"{profile}://127.0.0.1:{gateway.port}/acp"
        on.environment["LEFT_OUT"] = ",".join(LEFT_OUT)
        done = on.run([*all_programs()[client].client, str(on.folder), address])
        print(done.stdout, done.stderr)
        assert judged(scenario.read(done.stdout), on, client) == {}
