"""The versions of agents that are installed: each program is asked, all at once, and none for long."""

import asyncio
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from antiphon.catalogue.finding import Found
from antiphon.errors import SpawnFailed
from antiphon.local.commands import Command

__all__ = ["PATIENCE", "version_in", "with_versions"]

PATIENCE: Final = 2.0
"""Seconds a program may take to tell its version. Some start a whole runtime for it; people wait for a list."""

AT_ONCE: Final = 16
"""Programs asked at the same time."""

OUTPUT: Final = 64 * 1024

_VERSION: Final = re.compile(r"(?<![\w.])v?(\d+\.\d+(?:\.\d+)*(?:[-+.][0-9A-Za-z]+)*)")
_RUNNERS: Final = re.compile(
    r"(python|pypy|node|ruby|perl|java)[\d.]*|npx|npm|pnpm|yarn|bunx?|deno|uvx?|pipx|env|sh|bash|zsh|docker|podman|ssh|sudo|nix"
)
"""Programs that start another one: their version is not the agent's."""


async def with_versions(agents: Sequence[Found], limit: float = PATIENCE) -> list[Found]:
    """The same agents, with the versions that their programs told in time."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def ask(agent: Found) -> Found:
        if agent.version is not None or not _can_be_asked(agent):
            return agent
        async with gate:
            return msgspec.structs.replace(agent, version=await _version(agent, limit))

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(agent)) for agent in agents]
    return [task.result() for task in tasks]


def version_in(output: str) -> str | None:
    """The first thing in a program's output that looks like a version."""
    found = _VERSION.search(output)
    return None if found is None else found[1][:40]


def _can_be_asked(agent: Found) -> bool:
    if agent.origin == "registry":  # which program that is was not the user's choice
        return False
    return agent.origin == "known" or not _RUNNERS.fullmatch(os.path.basename(agent.where))


async def _version(agent: Found, limit: float) -> str | None:
    home = Path.home()
    try:
        command = await Command.start(
            [agent.drives or agent.where, "--version"],
            # Not here: a project's files are no business of such a question.
            cwd=home if home.is_dir() else "/",
            env=agent.environment(),
            output_limit=OUTPUT,
        )
    except SpawnFailed:
        return None
    async with command:
        try:
            async with asyncio.timeout(limit):
                exit = await command.wait()
        except TimeoutError:
            return None
        return version_in(command.output()) if exit.code == 0 else None
