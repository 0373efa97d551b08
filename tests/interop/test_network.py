"""Official SDKs over the network, both profiles: their clients with our server as people start it, and our client with their servers.

Each plays the whole scenario: prompts, permissions, files, terminals, cancellation, loading, and a second session.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.interop import faults, scenario
from tests.interop.environment import Environment, environment
from tests.interop.programs import all_programs
from tests.interop.test_pairs import LACKING, OFFICIAL
from tests.limits import limit

pytestmark = [pytest.mark.slow, pytest.mark.prove]

PROFILES = ("http", "ws")

FAULTS: dict[tuple[str, str, str, str], str] = {}
"""The client, the server, the profile and the step that fail for a reason of the peer, and what is then reported."""


def installed(name: str) -> None:
    if why := all_programs()[name].missing:
        pytest.skip(f"{all_programs()[name].name} {why}")


@contextmanager
def running(on: Environment, command: list[str]) -> "Iterator[subprocess.Popen[str]]":
    """A server, ended with the block."""
    process = subprocess.Popen(
        command, cwd=on.folder, env=on.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, encoding="utf-8", start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(limit(5))
        except subprocess.TimeoutExpired:  # a server of others that waits for its clients
            process.kill()
            process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@contextmanager
def our_server(on: Environment) -> Iterator[str]:
    """`antiphon bridge --listen` with our demo agent behind it, in front of a tap: its address without the scheme."""
    who = all_programs()["antiphon"]
    bridge = [who.agent[0], "-m", "antiphon", "bridge", "--listen", "0", "--no-auth", "--", *on.tapped(who.agent)]
    with running(on, bridge) as process:
        assert process.stderr is not None
        yield process.stderr.readline().strip().removeprefix("listening on ws:")


@contextmanager
def our_gateway(on: Environment) -> Iterator[list[str]]:
    """`antiphon serve` with our demo agent behind a tap, and the command by which an editor uses it: files are the editor's."""
    who = all_programs()["antiphon"]
    options = ["--json", "--port", "0", "--no-auth", "--files", "client", "--root", str(on.folder)]
    with running(on, [who.agent[0], "-m", "antiphon", "serve", *options, "--", *on.tapped(who.agent)]) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"].replace("http", "ws", 1)
        yield [who.agent[0], "-m", "antiphon", "agent", "--connect", f"{url}/acp", "--offer-files"]


@contextmanager
def their_server(on: Environment, name: str) -> Iterator[str]:
    with running(on, [*all_programs()[name].agent, "serve"]) as process:
        assert process.stdout is not None
        yield f"//127.0.0.1:{process.stdout.readline().strip()}/acp"


def judge(seen: list[scenario.Seen], on: Environment, pair: tuple[str, str], profile: str) -> None:
    """Compare what was seen with what has to be. What the peer cannot do, or does wrong on stdio too, is left out."""
    assert {each.step for each in seen} == {step for step in scenario.TITLES if step != "quiet"}
    found = {}
    for each in seen:
        if (
            each.lacking
            or {(name, each.step) for name in pair} & LACKING
            or (each.step == "order" and not on.traffic())
        ):
            continue
        trouble = scenario.problem(each, str(on.folder), on.traffic())
        known = faults.known(*pair, each.step)
        expected = FAULTS.get((*pair, profile, each.step), "" if known is None else known.says)
        if (expected not in trouble) if expected else trouble:
            found[each.step] = trouble or f"no longer: {expected}"
    assert found == {}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("client", OFFICIAL)
def test_an_official_client_plays_the_scenario_with_our_server(client: str, profile: str, tmp_path: Path) -> None:
    installed(client)
    with environment(tmp_path) as on, our_server(on) as address:
        done = on.run([*all_programs()[client].client, str(on.folder), f"{profile}:{address}"])
        judge(scenario.read(done.stdout), on, (client, "antiphon"), profile)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("server", OFFICIAL)
def test_our_client_plays_the_scenario_with_an_official_server(server: str, profile: str, tmp_path: Path) -> None:
    installed(server)
    with environment(tmp_path) as on, their_server(on, server) as address:
        done = on.run([*all_programs()["antiphon"].client, str(on.folder), f"{profile}:{address}"])
        judge(scenario.read(done.stdout), on, ("antiphon", server), profile)
        assert done.stderr == ""


@pytest.mark.parametrize("profile", PROFILES)
def test_our_client_plays_the_scenario_with_our_server(profile: str, tmp_path: Path) -> None:
    with environment(tmp_path) as on, our_server(on) as address:
        done = on.run([*all_programs()["antiphon"].client, str(on.folder), f"{profile}:{address}"])
        judge(scenario.read(done.stdout), on, ("antiphon", "antiphon"), profile)


@pytest.mark.parametrize("client", ["antiphon", *OFFICIAL])
def test_a_client_plays_the_scenario_with_our_gateway_through_a_command(client: str, tmp_path: Path) -> None:
    installed(client)
    with environment(tmp_path) as on, our_gateway(on) as command:
        done = on.run([*all_programs()[client].client, str(on.folder), *command])
        judge(scenario.read(done.stdout), on, (client, "antiphon"), "gateway")
