"""Clients of the remote profiles, ours and those of the official SDKs, checked. What is found is on `docs/evidence/conformance.md`."""

import shlex
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from antiphon.conformance.client_process import ClientCommands
from antiphon.conformance.client_run import ClientCheckOptions
from antiphon.conformance.remote.client_check import check_remote_client
from antiphon.conformance.report import document_of
from antiphon.conformance.suites.remote_client import REMOTE_CLIENT_SUITE
from tests.conformance.peers import page
from tests.interop.environment import environment
from tests.interop.programs import NEXT_PYTHON, NODE, PROGRAMS, all_programs

pytestmark = pytest.mark.slow

LIMIT = 15.0
"""Seconds that a client may take: what it never does costs as much."""

SIDE = "clients of the remote profiles"


class Client(NamedTuple):
    """One of them: its title on the page, the command without the purpose, and how the purposes are written."""

    title: str
    words: list[str]
    purposes: dict[str, list[str]]
    missing: str = ""
    signal: str = ""

    def commands(self, path: Path, environment: "dict[str, str]") -> ClientCommands:
        lines = [
            f"{name} = {shlex.join([*self.words, *more])!r}" for name, more in self.purposes.items() if name != "prompt"
        ]
        lines += [f'[signal]\ncancel = "{self.signal}"'] if self.signal else []
        path.write_text("\n".join(lines), encoding="utf-8")
        return ClientCommands.of([*self.words, *self.purposes["prompt"]], path, environment, target="{url}")


def _clients() -> dict[str, Client]:
    who = all_programs()
    ours = [
        "env",
        "ANTIPHON_TOKEN={token}",
        sys.executable,
        "-m",
        "antiphon",
        "run",
        "--agent",
        "{url}",
        "--on-ask",
        "allow",
    ]
    found = {
        "antiphon": Client(
            "antiphon run",
            ours,
            {"prompt": ["hello"], "cancel": ["hello"], "load": ["--resume", "judge-earlier", "hello"]},
            signal="INT",
        )
    }
    purposes = {name: [name] for name in ("prompt", "cancel", "load")}
    for name, program in (
        ("python", [sys.executable, str(PROGRAMS / "remote_client.py")]),
        ("python-next", [str(NEXT_PYTHON), str(PROGRAMS / "remote_client.py")]),
        ("typescript", [str(NODE), str(PROGRAMS / "remote_client.mjs")]),
    ):
        found[name] = Client(who[name].title, [*program, "{url}", "{token}"], purposes, who[name].missing)
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", _clients())
async def test_a_remote_client_is_checked(name: str, tmp_path: Path) -> None:
    client = _clients()[name]
    if client.missing:
        pytest.skip(client.missing)
    with environment(tmp_path) as on:
        commands = client.commands(tmp_path / "commands.toml", on.environment)
        report = await check_remote_client(commands, ClientCheckOptions(limit=LIMIT))
    assert report.results
    if name == "antiphon":
        assert {one.requirement.id: one.verdict.text for one in report.broken} == {}
    page.check(SIDE, client.title, document_of(report, REMOTE_CLIENT_SUITE))


def test_the_page_has_all_remote_clients() -> None:
    page.complete(SIDE, [client.title for client in _clients().values()])
