"""Servers of the remote profiles, ours and those of the official SDKs, checked. What is found is on `docs/evidence/conformance.md`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from antiphon.agent import Agent
from antiphon.agent.turn import AgentTurn
from antiphon.conformance.agent_run import CheckOptions
from antiphon.conformance.prompts import DEMO, Prompts
from antiphon.conformance.remote.server_check import check_server, suite_of
from antiphon.conformance.report import document_of
from tests.conformance.peers import page
from tests.gateway.processes import running
from tests.interop.environment import environment
from tests.interop.programs import all_programs
from tests.interop.test_network import installed, their_server
from tests.interop.test_pairs import OFFICIAL
from tests.limits import limit
from tests.transports.serving import served_by_uvicorn

pytestmark = pytest.mark.slow

LIMIT = 5.0
"""Seconds that an answer may take on a machine that has little else to do: what never comes costs as much."""

PLAIN = Prompts({"say": "hello", "long": "/slow", "ask": "/edit {file} {text}"})
"""The words of the agents in tests/interop/peers."""

SIDES = {"http": "servers over streamable HTTP", "ws": "servers over WebSocket"}


class Subject(NamedTuple):
    """A server that runs: its host and port, the token, and how to check it."""

    host: str
    token: str | None
    options: CheckOptions


class Asking(Agent):
    """A small agent of our SDK."""

    async def prompt(self, turn: AgentTurn) -> None:
        """Answer, ask for permission, or go on until it is cancelled."""
        await turn.say("Hello.")
        if turn.text.startswith("/edit"):
            async with turn.tool("Edit") as call:
                await call.permitted()
        elif turn.text == "/slow":
            await asyncio.Event().wait()


@asynccontextmanager
async def _gateway(path: Path) -> AsyncIterator[Subject]:
    with running(path, "--limit", "prompts-per-minute=10000") as gateway:
        options = CheckOptions(DEMO, auth="demo", directory=path / "root")
        yield Subject(f"127.0.0.1:{gateway.port}", gateway.token, options)


@asynccontextmanager
async def _mounted(path: Path) -> AsyncIterator[Subject]:
    async with served_by_uvicorn(Asking().serve_asgi()) as host:
        yield Subject(host, None, CheckOptions(PLAIN))


@asynccontextmanager
async def _official(name: str, path: Path) -> AsyncIterator[Subject]:
    installed(name)
    with environment(path) as on, their_server(on, name) as address:
        host = address.removeprefix("//").removesuffix("/acp")
        await _listens(host)
        yield Subject(host, None, CheckOptions(PLAIN))


async def _listens(host: str) -> None:
    """Wait until a server takes connections: some print their port before."""
    name, _, port = host.rpartition(":")
    async with asyncio.timeout(limit(30)):
        while True:
            try:
                _, writer = await asyncio.open_connection(name, int(port))
            except ConnectionRefusedError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


def _servers() -> "Mapping[str, tuple[str, Callable[[Path], AbstractAsyncContextManager[Subject]]]]":
    """Name → its title on the page, and what runs it."""
    ours = {"serve": ("antiphon serve", _gateway), "asgi": ("Agent.serve_asgi()", _mounted)}
    return ours | {name: (all_programs()[name].title, partial(_official, name)) for name in OFFICIAL}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("profile", SIDES)
@pytest.mark.parametrize("name", _servers())
async def test_a_server_is_checked(name: str, profile: str, tmp_path: Path) -> None:
    title, run = _servers()[name]
    async with run(tmp_path) as subject:
        url, options = f"{profile}://{subject.host}/acp", replace(subject.options, limit=min(limit(LIMIT), 3 * LIMIT))
        report = await check_server(url, options, token=subject.token)
    assert report.results
    if name not in OFFICIAL:
        assert {one.requirement.id: one.verdict.text for one in report.broken} == {}
    page.check(SIDES[profile], title, document_of(report, suite_of(url)))


@pytest.mark.parametrize("profile", SIDES)
def test_the_page_has_all_servers(profile: str) -> None:
    page.complete(SIDES[profile], [title for title, _ in _servers().values()])
