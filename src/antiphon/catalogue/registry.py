"""The official registry's format: `registry.json`, or one `agent.json`. Bytes in, entries out; fetches and starts nothing.

The format is described at https://github.com/agentclientprotocol/registry. An entry that is not understood is reported and left out; the
others count.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from antiphon.errors import AcpError

__all__ = [
    "BinaryTarget",
    "Distribution",
    "PackageRun",
    "Registry",
    "RegistryEntry",
    "RegistryLaunch",
    "RegistryProblem",
    "launch",
    "read",
]

_ID: Final = re.compile(r"[a-z][a-z0-9-]{0,63}")
MAX_PROBLEMS: Final = 10


class RegistryProblem(AcpError):
    """A registry cannot be read, or has a wrong format."""


class PackageRun(msgspec.Struct, frozen=True):
    """A package that a runner (npx, uvx) downloads and starts."""

    package: str
    cmd: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}


class BinaryTarget(msgspec.Struct, frozen=True):
    """An archive for one platform, and what to start in it."""

    archive: str
    cmd: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    sha256: str | None = None


class Distribution(msgspec.Struct, frozen=True):
    """The ways to install an agent."""

    binary: dict[str, BinaryTarget] = {}
    npx: PackageRun | None = None
    uvx: PackageRun | None = None


class RegistryEntry(msgspec.Struct, frozen=True):
    """One agent of a registry."""

    id: str
    name: str
    version: str
    description: str
    distribution: Distribution
    repository: str | None = None
    website: str | None = None


class Registry(msgspec.Struct, frozen=True):
    """The agents of a registry by their ids, and what was left out."""

    agents: Mapping[str, RegistryEntry]
    problems: tuple[str, ...] = ()


class RegistryLaunch(msgspec.Struct, frozen=True):
    """How to start an entry here, or why that is not possible."""

    command: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    on_demand: bool = False
    """Whether its first start downloads it."""
    hint: str = ""


def read(data: bytes) -> Registry:
    """The agents of a `registry.json` or of one `agent.json`.

    Raises:
        RegistryProblem: it is neither.
    """
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _no_registry(f"it is not JSON: {error}") from error
    if isinstance(document, dict) and "agents" not in document and "distribution" in document:
        document = {"agents": [document]}
    items = document.get("agents") if isinstance(document, dict) else None
    if not isinstance(items, list):
        raise _no_registry("it has no list `agents`")
    agents: dict[str, RegistryEntry] = {}
    problems: list[str] = []
    for number, item in enumerate(items, 1):
        try:
            entry = _entry(item)
            if entry.id in agents:
                raise ValueError("it is listed twice")
            agents[entry.id] = entry
        except (msgspec.ValidationError, ValueError) as error:
            name = item.get("id") if isinstance(item, dict) else None
            problems.append(f"agent {number} ({name!a:.60}) was left out: {error}")
    if items and not agents:
        raise _no_registry(f"none of its agents is understood; {problems[0]}")
    return Registry(agents, tuple(problems[:MAX_PROBLEMS]))


def _entry(item: object) -> RegistryEntry:
    entry = msgspec.convert(item, RegistryEntry)
    if not _ID.fullmatch(entry.id):
        raise ValueError("its id is not made of lower-case letters, digits and `-`")
    runs = [run for run in (entry.distribution.npx, entry.distribution.uvx) if run is not None]
    if not runs and not entry.distribution.binary:
        raise ValueError("it has no distribution that we know")
    for run in runs:
        # Such a word would be an option of the runner, not a package.
        if any(not word or word.startswith("-") or "\0" in word for word in (run.package, run.cmd or "x")):
            raise ValueError("its package is not a package name")
    return entry


def launch(entry: RegistryEntry, platform: str, which: Callable[[str], str | None]) -> RegistryLaunch:
    """How to start it here: its program if that is installed, else by a runner. `platform` is such as `linux-x86_64`."""
    target = entry.distribution.binary.get(platform)
    if target is not None:
        program = which(target.cmd.replace("\\", "/").rpartition("/")[2])
        if program is not None:
            return RegistryLaunch((program, *target.args), target.env)
    npx, uvx = entry.distribution.npx, entry.distribution.uvx
    if npx is not None and (program := which("npx")) is not None:
        words = (npx.package,) if npx.cmd is None else ("--package", npx.package, npx.cmd)
        return RegistryLaunch((program, "--yes", *words, *npx.args), npx.env, True)
    if uvx is not None and (program := which("uvx")) is not None:
        words = (uvx.package,) if uvx.cmd is None else ("--from", uvx.package, uvx.cmd)
        return RegistryLaunch((program, *words, *uvx.args), uvx.env, True)
    if npx is not None or uvx is not None:
        needed = "Node.js, which has `npx`" if npx is not None else "uv, which has `uvx`"
        return RegistryLaunch(hint=f"install {needed}: it starts this agent")
    if target is None:
        return RegistryLaunch(hint=f"it is not made for {platform}; it is for {', '.join(entry.distribution.binary)}")
    after = " ".join(("PROGRAM", *target.args))
    return RegistryLaunch(hint=f"download {target.archive} and `antiphon agents add {entry.id} -- {after}`")


def _no_registry(why: str) -> RegistryProblem:
    return RegistryProblem(
        f"this is not a registry of agents: {why}",
        hint="give a registry.json, such as the one of the official registry",
    )
