"""Clients that others wrote, checked. What is found is on the page `docs/evidence/conformance.md`, which the tool writes."""

from pathlib import Path

import pytest

from antiphon.conformance.client_check import check_client
from antiphon.conformance.client_run import ClientCheckOptions
from antiphon.conformance.report import document_of
from antiphon.conformance.suites.client import SUITE
from tests.conformance.peers import page
from tests.conformance.peers.clients import clients, placed

pytestmark = pytest.mark.slow

LIMIT = 10.0
"""Seconds that an answer of theirs may take: what is never answered costs as much."""


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", clients())
async def test_a_third_party_client_is_checked(name: str, tmp_path: Path) -> None:
    client = clients()[name]
    with placed(client, tmp_path) as commands:
        report = await check_client(commands, ClientCheckOptions(limit=LIMIT), jobs=2)
    assert report.results
    page.check("clients", client.title, document_of(report, SUITE))


def test_the_page_has_all_clients() -> None:
    page.complete("clients", [client.title for client in clients().values()])
