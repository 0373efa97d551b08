"""Which worker takes a session, and why none does."""

import random
from typing import Any

import msgspec
import pytest

from antiphon.fleet.membership import WorkerState
from antiphon.fleet.placement import candidates, directory_at, home_at, is_inside, ranked
from antiphon.journal.owner import NoOwner, Placement, SessionHome


def worker(name: str, host: str = "", **more: Any) -> WorkerState:
    given = {"agents": ("demo",), "roots": ("/code",), "slots": 4, **more}
    return WorkerState(name, host=host or name, **given)


NEW = Placement("demo", "/code/site")


def choose(workers: list[WorkerState], placement: Placement) -> WorkerState:
    """Return the worker that a session is placed at."""
    return ranked(workers, placement)[0]


def refusal(workers: list[WorkerState], placement: Placement) -> str:
    with pytest.raises(NoOwner) as caught:
        choose(workers, placement)
    assert caught.value.hint and caught.value.recoverable
    return f"{caught.value.sentence} ({caught.value.hint})"


def test_a_new_session_is_placed_at_the_least_used_worker_that_has_the_agent_and_a_root_above_it() -> None:
    workers = [
        worker("a", used=3),
        worker("b", used=1, turns=1),
        worker("c", used=1),
        worker("d", agents=("codex",)),
        worker("e", roots=("/other",)),
        worker("f", slots=40, used=20),
    ]
    assert [each.name for each in ranked(workers, NEW)] == ["c", "b", "f", "a"]


def test_the_order_of_the_workers_does_not_matter() -> None:
    workers = [worker(name, host="h") for name in "abcdefgh"]
    placements = [NEW, Placement("demo", "/code", key="k", home=SessionHome("x", "h"))]
    for placement in placements:
        chosen = choose(workers, placement)
        for seed in range(20):
            mixed = random.Random(seed).sample(workers, len(workers))
            assert choose(mixed, placement) == chosen


def test_a_start_that_no_worker_can_take_is_refused_with_the_reason() -> None:
    assert "no worker is connected" in refusal([], NEW)
    assert "no worker is connected" in refusal([worker("a", format=9)], NEW), "one that speaks another language"
    assert refusal([worker("a", agents=("codex", "claude"))], NEW) == (
        "no worker has the agent `demo` (the agents of the fleet are: claude, codex)"
    )
    assert "a root above `/code/site`" in refusal([worker("a", roots=("/codex",))], NEW)
    gpu = msgspec.structs.replace(NEW, labels=("gpu", "eu"))
    assert "the label `gpu`" in refusal([worker("a", labels=("eu",))], gpu)
    assert "`gpu`, `eu`" in refusal([worker("a", labels=("eu",)), worker("b", labels=("gpu",))], gpu), (
        "one has to have both"
    )
    assert "about to end: a" in refusal([worker("a", draining=True)], NEW)
    assert "all slots are taken at a" in refusal([worker("a", used=4), worker("b", draining=True)], NEW)
    assert [each.name for each in candidates([worker("a", labels=("gpu", "eu"))], gpu)] == ["a"]


@pytest.mark.parametrize(
    ("directory", "root", "inside"),
    [
        ("/code", "/code", True),
        ("/code/a/b", "/code", True),
        ("/codex", "/code", False),
        ("/", "/code", False),
        ("/code/../etc", "/code", False),
        ("code", "/code", False),
        ("/x", "/", True),
    ],
)
def test_a_directory_is_inside_of_a_root_by_whole_names(directory: str, root: str, inside: bool) -> None:
    assert is_inside(directory, root) is inside


# Sessions that were somewhere.


def test_a_session_whose_directory_is_not_shared_waits_for_its_machine_and_says_so() -> None:
    session = Placement("demo", "/code/site", key="k", home=SessionHome("old", "laptop"))
    assert "the session waits for its machine: `/code/site` is on `laptop` alone" in refusal([worker("a")], session)
    assert choose([worker("a"), worker("b", host="laptop")], session).name == "b", "another worker of the machine"
    moved = worker("b", host="laptop", roots=("/elsewhere",))
    assert "waits for its machine" in refusal([moved], session), "the root is not served there any more"


def test_a_session_in_a_shared_workspace_can_be_wherever_the_workspace_is() -> None:
    old = worker("old", host="one", roots=(), workspaces={"site": "/mnt/site", "all": "/mnt", "tools": "/opt"})
    home = home_at(old, ["/mnt/site/docs"])
    assert home == SessionHome("old", "one", {"all": "/mnt", "site": "/mnt/site"})
    session = Placement("demo", "/mnt/site/docs", ("/mnt/site/lib",), key="k", home=home)
    other = worker("new", host="two", roots=(), workspaces={"site": "/srv/shared"})
    assert choose([other], session).name == "new"
    assert directory_at(other, "/mnt/site/docs", home) == "/srv/shared/docs"
    assert directory_at(other, "/mnt/site", home) == "/srv/shared"
    assert directory_at(other, "/mnt/other", home) is None
    both = worker("both", host="two", workspaces={"site": "/srv/shared", "all": "/nfs"})
    assert directory_at(both, "/mnt/site/docs", home) == "/srv/shared/docs", "the innermost counts"
    assert directory_at(both, "/mnt/other", home) == "/nfs/other"
    half = msgspec.structs.replace(session, directories=("/opt/x",))
    assert "the workspace `all`, `site`" in refusal([other], half), "one of its directories is not there"
    assert directory_at(old, "/mnt/site/docs", home) == "/mnt/site/docs", "at home nothing is mapped"


def test_the_machine_of_a_session_comes_first_because_its_agent_has_its_files_there() -> None:
    shared = {"site": "/code"}
    session = Placement("demo", "/code/a", key="k", home=SessionHome("old", "one", shared))
    workers = [worker("x", host="two", workspaces=shared), worker("y", host="one", workspaces=shared, used=3)]
    assert choose(workers, session).name == "y"
    full = [workers[0], msgspec.structs.replace(workers[1], used=4)]
    assert choose(full, session).name == "x"


def test_sessions_that_move_at_once_are_spread_over_the_workers() -> None:
    shared = {"site": "/code"}
    workers = [worker(f"w{n}", workspaces=shared, slots=1000) for n in range(4)]
    home = SessionHome("old", "gone", shared)
    chosen = [choose(workers, Placement("demo", "/code", key=f"{n:032x}", home=home)).name for n in range(400)]
    counts = {name: chosen.count(name) for name in set(chosen)}
    assert len(counts) == 4 and min(counts.values()) > 60


def test_processes_whose_beats_differ_a_little_choose_the_same_worker() -> None:
    shared = {"site": "/code"}
    home = SessionHome("old", "gone", shared)
    session = Placement("demo", "/code", key="k", home=home)
    seen = [worker(name, workspaces=shared, slots=1000, used=10) for name in "abc"]
    later = [msgspec.structs.replace(each, used=10 + place, turns=place) for place, each in enumerate(seen)]
    assert choose(seen, session).name == choose(later, session).name
