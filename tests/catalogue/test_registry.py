"""The official registry's format, as it is and as it should not be."""

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.catalogue.agents import FoundAgent, MissingAgent, find, names
from antiphon.catalogue.registry import RegistryProblem, launch, read
from tests.catalogue.programs import program
from tests.rows import each_row

LINUX = "linux-x86_64"


def agent(id: str = "lute", **distribution: Any) -> dict[str, Any]:
    return {
        "id": id,
        "name": id.title(),
        "version": "1.2.3",
        "description": "Plays.",
        "repository": "https://example.org/x",
        "authors": ["Somebody"],
        "license": "MIT",
        "icon": "https://example.org/x.svg",
        "distribution": distribution or {"npx": {"package": "@x/lute@1.2.3", "args": ["--acp"], "env": {"A": "1"}}},
    }


def registry(*agents: object) -> bytes:
    return json.dumps({"version": "1.0.0", "agents": list(agents), "extensions": []}).encode()


def binary(platforms: dict[str, Any] | None = None) -> dict[str, Any]:
    target = {"archive": "https://example.org/lute.tar.gz", "cmd": "./dir/lute", "args": ["acp"], "sha256": "0" * 64}
    return agent(binary=platforms or {LINUX: target})


def started(entry: dict[str, Any], *there: str) -> tuple[tuple[str, ...], bool, str]:
    (only,) = read(registry(entry)).agents.values()
    way = launch(only, LINUX, lambda program: f"/bin/{program}" if program in there else None)
    return way.command, way.on_demand, way.hint


def test_a_registry_and_a_single_agent_are_read() -> None:
    both = read(registry(agent("lute"), agent("harp")))
    assert list(both.agents) == ["lute", "harp"] and both.problems == ()
    assert list(read(json.dumps(agent("lute")).encode()).agents) == ["lute"]
    assert read(registry()).agents == {}


@pytest.mark.parametrize(
    ("distribution", "there", "command", "on_demand"),
    [
        ({"npx": {"package": "p@1"}}, ["npx"], ("/bin/npx", "--yes", "p@1"), True),
        ({"npx": {"package": "p", "args": ["--acp"]}}, ["npx"], ("/bin/npx", "--yes", "p", "--acp"), True),
        (
            {"npx": {"package": "p", "cmd": "c", "args": ["x"]}},
            ["npx"],
            ("/bin/npx", "--yes", "--package", "p", "c", "x"),
            True,
        ),
        ({"uvx": {"package": "p==1", "args": ["x"]}}, ["uvx"], ("/bin/uvx", "p==1", "x"), True),
        ({"uvx": {"package": "p", "cmd": "c"}}, ["uvx"], ("/bin/uvx", "--from", "p", "c"), True),
        ({"npx": {"package": "p"}, "uvx": {"package": "q"}}, ["uvx"], ("/bin/uvx", "q"), True),
    ],
)
def test_a_package_is_started_by_its_runner(
    distribution: dict[str, Any], there: list[str], command: tuple[str, ...], on_demand: bool
) -> None:
    assert started(agent(**distribution), *there) == (command, on_demand, "")


def test_an_installed_program_counts_before_a_runner() -> None:
    both = agent(npx={"package": "p"}, binary={LINUX: {"archive": "https://x/a.tgz", "cmd": "./lute", "args": ["acp"]}})
    assert started(both, "npx", "lute") == (("/bin/lute", "acp"), False, "")
    assert started(both, "npx") == (("/bin/npx", "--yes", "p"), True, "")


def test_what_cannot_be_started_comes_with_what_to_do() -> None:
    assert "`npx`" in started(agent())[2]
    assert "`uvx`" in started(agent(uvx={"package": "p"}))[2]
    assert started(binary())[2] == (
        "download https://example.org/lute.tar.gz and `antiphon agents add lute -- PROGRAM acp`"
    )
    other = {"darwin-aarch64": {"archive": "https://x", "cmd": "./x"}}
    assert "linux-x86_64" in started(binary(other))[2] and "darwin-aarch64" in started(binary(other))[2]


@each_row(
    "bad",
    [
        "text",
        {},
        {**agent(), "id": "Not Lower"},
        {**agent(), "id": "$(rm)"},
        {**agent(), "id": 7},
        {**agent(), "distribution": {}},
        {**agent(), "distribution": {"docker": {"image": "x"}}},
        agent(npx={"package": "--call=rm"}),
        agent(npx={"package": "p", "cmd": "-c"}),
        agent(uvx={"package": ""}),
        agent(npx={"package": "p", "args": "--acp"}),
        agent("good"),
    ],
    ids=lambda bad: str(bad)[:40],
)
def test_an_entry_that_is_not_understood_is_reported_and_left_out(bad: object) -> None:
    found = read(registry(agent("good"), bad, agent("best")))
    assert list(found.agents) == ["good", "best"]
    assert len(found.problems) == 1 and found.problems[0].startswith("agent 2 ")
    assert "\x1b" not in found.problems[0]


def test_what_is_unknown_in_an_entry_does_no_harm() -> None:
    newer = {**agent(), "price": 7, "distribution": {"npx": {"package": "p", "later": 1}, "docker": {}}}
    assert list(read(registry(newer)).agents) == ["lute"]


@each_row(
    "data",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"agents":{}}',
        b'{"agents":[7]}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"agents":[' + b"[" * 100_000,
    ],
    ids=["empty", "html", "list", "object", "no list", "nothing good", "binary", "deep", "deep inside"],
)
def test_what_is_not_a_registry_is_refused_in_a_sentence(data: bytes) -> None:
    with pytest.raises(RegistryProblem, match=r"not a registry of agents: .*\nhint: "):
        read(data)


def test_a_registry_adds_agents_and_replaces_only_what_is_missing(place: Path) -> None:
    there = read(registry(agent("gemini"), agent("lute"), agent("vibe", uvx={"package": "p"})))
    npx = program(place / "bin", "npx")
    assert names(registry=there)[-1] == "lute"
    lute = find("lute", registry=there)
    assert isinstance(lute, FoundAgent) and lute.command[0] == str(npx) and lute.on_demand and lute.env == {"A": "1"}
    assert lute.version == "1.2.3"
    gemini = find("gemini", registry=there)
    assert isinstance(gemini, FoundAgent) and gemini.origin == "registry"
    program(place / "bin", "gemini")
    gemini = find("gemini", registry=there)
    assert isinstance(gemini, FoundAgent) and gemini.origin == "known"
    vibe = find("vibe", registry=there)
    assert isinstance(vibe, MissingAgent) and vibe.origin == "known"
