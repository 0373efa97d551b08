"""Every link to the specification leads to a heading that is really there."""

from antiphon.conformance.suites.agent import SUITE as AGENTS
from antiphon.conformance.suites.client import SUITE as CLIENTS
from antiphon.traffic.checker import SPEC, rules
from tests.rows import each_row
from tests.traffic.anchors import ANCHORS

LINKS = {
    **{f"rule {one.id}": one.link for one in rules().values()},
    **{f"agent {one.id}": one.link for one in AGENTS.requirements().values()},
    **{f"client {one.id}": one.link for one in CLIENTS.requirements().values()},
}


@each_row("whose", LINKS)
def test_a_link_leads_to_a_page_and_a_heading_that_are_known(whose: str) -> None:
    page, _, anchor = LINKS[whose].removeprefix(SPEC).partition("#")
    assert page in ANCHORS
    assert not anchor or anchor in ANCHORS[page]
