"""Lives as tables: what a table promises, and the page with their diagrams."""

from enum import Enum

import pytest

from antiphon.errors import LocalProtocolError
from antiphon.life import Life
from tests.rows import each_row
from tools import life_diagrams


class Door(Enum):
    SHUT = "shut"
    OPEN = "open"
    GONE = "gone"


class Doing(Enum):
    PUSH = "be pushed"
    PULL = "be pulled"
    KNOCK = "be knocked at"
    REMOVE = "be removed"


DOOR: Life[Door, Doing] = Life(
    "door",
    Door.SHUT,
    {
        Door.SHUT: {Doing.PULL: Door.OPEN, Doing.KNOCK: Door.SHUT, Doing.REMOVE: Door.GONE},
        Door.OPEN: {Doing.PUSH: Door.SHUT, Doing.REMOVE: Door.GONE},
        Door.GONE: {},
    },
)


def test_an_event_leads_to_the_next_state() -> None:
    assert DOOR.next(DOOR.start, Doing.PULL) is Door.OPEN
    assert DOOR.next(Door.SHUT, Doing.KNOCK) is Door.SHUT
    assert DOOR.allows(Door.SHUT, Doing.PULL)
    assert not DOOR.allows(Door.OPEN, Doing.PULL)
    assert DOOR.ended(Door.GONE)


def test_an_event_that_the_table_does_not_have_raises() -> None:
    with pytest.raises(LocalProtocolError, match="the door is gone: it cannot be pulled"):
        DOOR.next(Door.GONE, Doing.PULL)


def test_a_table_with_a_state_that_cannot_be_reached_is_refused() -> None:
    with pytest.raises(ValueError, match="GONE"):
        Life("door", Door.SHUT, {Door.SHUT: {Doing.PULL: Door.OPEN}, Door.OPEN: {}, Door.GONE: {}})
    with pytest.raises(ValueError, match="OPEN"):
        Life("door", Door.SHUT, {Door.SHUT: {Doing.PULL: Door.OPEN, Doing.REMOVE: Door.GONE}, Door.GONE: {}})


def test_the_diagram_has_every_state_and_the_events_between_them() -> None:
    assert DOOR.diagram().splitlines() == [
        "stateDiagram-v2",
        "    [*] --> shut",
        "    shut --> open: be pulled",
        "    shut --> gone: be removed",
        "    open --> shut: be pushed",
        "    open --> gone: be removed",
        "    gone --> [*]",
    ]


def test_the_page_with_the_diagrams_is_up_to_date() -> None:
    page = life_diagrams.PAGE.read_text(encoding="utf-8")
    assert page == life_diagrams.page(), "run python tools/life_diagrams.py"


@each_row("address", life_diagrams.LIVES)
def test_every_listed_life_can_end(address: str) -> None:
    life = life_diagrams.load(address)
    assert any(life.ended(state) for state in life.transitions)
