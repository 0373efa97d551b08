"""Our agent and our client with what others wrote, each pair through the whole scenario, over stdio.

The controls come first: an official client with an agent of the same SDK shows what is the peer's own fault.
"""

from pathlib import Path

import pytest

from tests.interop import faults, scenario, table
from tests.interop.environment import Played, environment, play
from tests.interop.programs import all_programs

OFFICIAL = ("python", "python-next", "typescript")

STEPS = [step for step in scenario.TITLES if step != "quiet"]
"""What the client programs play; whether it was quiet is seen from outside."""

LACKING = {("python", "updates_if_wanted")}
"""Who has no word for a step, on either side of it."""


def result(client: str, agent: str, seen: scenario.Seen, played: Played, folder: str) -> str:
    """The cell of the table for one step; an assertion fails where it is neither well nor a fault that we know."""
    trouble = scenario.problem(seen, folder, played.traffic)
    fault = faults.known(client, agent, seen.step)
    where = f"{client} → {agent}, {seen.step}"
    if fault is not None:
        same = (
            fault.says == trouble if seen.step == "quiet" else fault.says in trouble
        )  # no other error hides behind it
        assert same, f"{where}: {fault.id} has changed or gone: {trouble or 'all is well'}"
        for proof in fault.proof if fault.proved_by(client, agent) else ():
            assert proof in played.traffic + played.logged + trouble, f"{where}: nothing proves {fault.id}"
        return f"peer's fault: {fault.id}"
    if seen.lacking or {(client, seen.step), (agent, seen.step)} & LACKING:
        assert trouble, f"{where}: it can do this now"
        return table.LACKING
    assert not trouble, f"{where}: {trouble}\n{played.logged}"
    return table.OK


def pair(client: str, agent: str, place: Path) -> Played:
    who = all_programs()
    for name in (client, agent):
        if who[name].missing:
            pytest.skip(f"{who[name].name} {who[name].missing}")
    with environment(place) as on:
        played = play(on, who[client], who[agent])
        folder = str(on.folder)
    seen = played.seen if agent != "antiphon" else [*played.seen, scenario.quiet(played.logged, played.traffic)]
    assert [each.step for each in played.seen] == STEPS, played.logged
    table.RESULTS[client, agent] = {
        scenario.TITLES[each.step]: result(client, agent, each, played, folder) for each in seen
    }
    return played


@pytest.mark.slow
@pytest.mark.parametrize("name", OFFICIAL)
def test_control_an_official_client_with_an_official_agent(name: str, tmp_path: Path) -> None:
    pair(name, name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["antiphon", *OFFICIAL])
def test_our_client_drives_an_agent(agent: str, tmp_path: Path) -> None:
    assert pair("antiphon", agent, tmp_path).logged == ""


@pytest.mark.slow
@pytest.mark.parametrize("client", OFFICIAL)
def test_our_agent_is_driven_by_an_official_client(client: str, tmp_path: Path) -> None:
    pair(client, "antiphon", tmp_path)
