"""The list of agents: a table for people, or one JSON object per line."""

import sys
from collections.abc import Sequence

import msgspec

from antiphon.catalogue.finding import Found, Missing, find_all
from antiphon.catalogue.registry import Registry
from antiphon.catalogue.versions import with_versions
from antiphon.config.settings import Settings
from antiphon.text import one_line

__all__ = ["rows", "show", "table"]

HEADER = ("NAME", "STATE", "VERSION", "COMMAND, OR HOW TO GET IT")


class Row(msgspec.Struct, frozen=True, rename="camel"):
    """One agent as `--json` prints it."""

    name: str
    title: str
    origin: str
    state: str
    version: str | None
    command: tuple[str, ...] | None
    hint: str | None


async def show(settings: Settings, registry: Registry, *, as_json: bool) -> int:
    """Look for every agent, ask those that are here for their version, and print."""
    agents = find_all(settings, registry=registry)
    versions = {agent.name: agent.version for agent in await with_versions([a for a in agents if isinstance(a, Found)])}
    if as_json:
        lines = [msgspec.json.encode(_row(agent, versions.get(agent.name))).decode() for agent in agents]
    else:
        lines = table(rows(agents, versions))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def rows(agents: Sequence[Found | Missing], versions: dict[str, str | None]) -> list[tuple[str, ...]]:
    """What stands in the table, without its header."""
    found = []
    for agent in agents:
        last = agent.shown if isinstance(agent, Found) else agent.hint
        cells = (agent.name, _state(agent), versions.get(agent.name) or "-", last)
        found.append(tuple(one_line(cell) for cell in cells))
    return found


def table(cells: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines with every column as wide as it has to be."""
    every = [HEADER, *cells]
    widths = [max(len(row[column]) for row in every) for column in range(len(HEADER) - 1)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in every
    ]


def _state(agent: Found | Missing) -> str:
    if isinstance(agent, Missing):
        return "not found"
    return "on demand" if agent.on_demand else "found"


def _row(agent: Found | Missing, version: str | None) -> Row:
    command = agent.command if isinstance(agent, Found) else None
    hint = agent.hint if isinstance(agent, Missing) else None
    return Row(agent.name, agent.title, agent.origin, _state(agent), version, command, hint)
