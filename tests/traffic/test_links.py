"""Every link to the specification leads to a heading that is really there."""

from antiphon.conformance.suites.agent import SUITE as AGENTS
from antiphon.conformance.suites.agent_v2 import SUITE_V2
from antiphon.conformance.suites.client import SUITE as CLIENTS
from antiphon.conformance.suites.client_v2 import CLIENT_SUITE_V2
from antiphon.traffic.checker import SPEC, SPECS, rules
from antiphon.traffic.schema import definitions
from tests.rows import each_row
from tests.traffic.anchors import ANCHORS, PAGES_V2

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


LINKS_V2 = {
    **{f"rule {one.id}": one.link for one in rules(2).values()},
    **{f"agent {one.id}": one.link for one in SUITE_V2.requirements().values()},
    **{f"client {one.id}": one.link for one in CLIENT_SUITE_V2.requirements().values()},
}


@each_row("whose", LINKS_V2)
def test_a_link_of_version_2_leads_to_a_page_or_to_a_type_of_its_schema(whose: str) -> None:
    page, _, anchor = LINKS_V2[whose].removeprefix(SPECS[2]).partition("#")
    assert page in PAGES_V2
    assert not anchor or anchor in ({name.lower() for name in definitions(2)} if page == "schema" else PAGES_V2[page])
