"""Versions: asked of real programs, which may be slow, silent or broken."""

import asyncio
import sys
from pathlib import Path

from antiphon.catalogue.agents import FoundAgent, version_in, with_versions
from tests.catalogue.programs import program
from tests.rows import each_row


def shell(folder: Path, name: str, line: str) -> FoundAgent:
    path = program(folder, name, f"#!/bin/sh\nPATH=/usr/bin:/bin\n{line}\n")
    return FoundAgent(name, name, (str(path), "--acp"), "own")


@each_row(
    ("output", "version"),
    [
        ("1.2.3\n", "1.2.3"),
        ("gemini-cli version v0.61.0\n", "0.61.0"),
        ("codex-acp 2.6.0-rc.1+build.5\n", "2.6.0-rc.1+build.5"),
        ("(node:4242) Warning: x\n10.0\n", "10.0"),
        ("no version here, only 7 and 1.\n", None),
        ("1." + "1" * 100, "1." + "1" * 38),
        ("\x1b[1m3.4.5\x1b[0m", None),
        ("", None),
    ],
)
def test_a_version_is_found_in_the_output_of_a_program(output: str, version: str | None) -> None:
    assert version_in(output) == version


async def test_every_program_is_asked_and_each_keeps_its_place(place: Path) -> None:
    agents = [shell(place / "bin", f"agent-{n}", f"[ $1 = --version ] && echo 1.0.{n}") for n in range(20)]
    async with asyncio.timeout(30):
        assert [agent.version for agent in await with_versions(agents)] == [f"1.0.{n}" for n in range(20)]


async def test_a_program_that_fails_or_hangs_has_no_version_and_delays_nothing(place: Path) -> None:
    agents = [
        shell(place / "bin", "fails", "echo 1.0; exit 3"),
        shell(place / "bin", "hangs", "echo 1.0; sleep 1000"),
        shell(place / "bin", "reads", "cat >/dev/null; echo 4.5.6"),
        shell(place / "bin", "floods", "yes | head -c 10000000; echo; echo 7.8.9"),
        FoundAgent("gone", "gone", (str(place / "bin" / "gone"),), "own"),
    ]
    async with asyncio.timeout(30):
        shown = await with_versions(agents, limit=1.0)
    assert [agent.version for agent in shown][:3] == [None, None, "4.5.6"]
    assert shown[4].version is None


async def test_a_program_that_starts_another_is_not_asked_for_its_own_version(place: Path) -> None:
    python = FoundAgent("mine", "mine", (sys.executable, "agent.py"), "own")
    npx = FoundAgent("theirs", "theirs", (str(program(place / "bin", "npx")), "--yes", "x"), "registry", on_demand=True)
    listed = FoundAgent("listed", "listed", (str(program(place / "bin", "listed")),), "registry")
    assert [agent.version for agent in await with_versions([python, npx, listed])] == [None, None, None]


async def test_a_version_that_is_known_is_not_asked_for(place: Path) -> None:
    agent = FoundAgent("x", "x", (str(place / "bin" / "nothing"),), "known", version="9.9")
    assert (await with_versions([agent]))[0].version == "9.9"


async def test_the_question_is_not_asked_in_the_directory_of_the_project(place: Path) -> None:
    agent = shell(place / "bin", "curious", f"pwd > {place}/asked-in; echo 1.0")
    await with_versions([agent])
    assert (place / "asked-in").read_text(encoding="utf-8").strip() == str(place / "home")


async def test_of_an_engine_of_ours_the_version_is_that_of_the_program_behind_it(place: Path) -> None:
    behind = program(place / "bin", "behind")
    ours = FoundAgent("claude", "Claude Code", (sys.executable, "-m", "antiphon"), "known", drives=str(behind))
    assert [agent.version for agent in await with_versions([ours])] == ["1.2.3-beta"]
