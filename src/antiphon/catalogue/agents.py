"""Finds agents by name on this machine: the user's own, those we know, those of the registry that the user gave. Starts none.

The user's own come first, so that a name can be given another command; then what is installed; then what a registry can start.
"""

import asyncio
import logging
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from antiphon.catalogue.known import DEMO_COMMAND, ENGINE, JOINT, KNOWN, OURS, keys_for
from antiphon.catalogue.programs import CliMissing, find_cli
from antiphon.catalogue.registry import Registry, RegistryEntry, RegistryProblem, launch
from antiphon.config.environment import environment_for
from antiphon.config.shapes import NOTHING, OwnAgent, Settings
from antiphon.errors import AcpError, SpawnFailed
from antiphon.local.commands import LocalCommand

__all__ = [
    "VERSION_TIMEOUT",
    "AgentMissing",
    "FoundAgent",
    "MissingAgent",
    "Origin",
    "UnknownAgent",
    "find",
    "find_all",
    "names",
    "start_of",
    "user_settings",
    "version_in",
    "with_versions",
]

Origin: TypeAlias = Literal["built in", "own", "known", "registry"]

_log = logging.getLogger(__name__)
LISTED: Final = 30
"""Names that an error lists: all but those of a long registry."""

_REFERENCE: Final = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")
_NO_SETTINGS: Final = Settings()
_NO_REGISTRY: Final = Registry({})


class UnknownAgent(AcpError):
    """No agent has this name."""


class AgentMissing(AcpError):
    """The agent is known, but its program is not installed."""


class FoundAgent(msgspec.Struct, frozen=True):
    """An agent that can be started."""

    name: str
    title: str
    command: tuple[str, ...]
    """The words to start it with; the program by its whole path."""
    origin: Origin
    env: Mapping[str, str] = NOTHING
    """What the user's config file, or the registry, adds to its environment."""
    cwd: str | None = None
    on_demand: bool = False
    """Whether its first start downloads it."""
    version: str | None = None
    login: str = ""
    keys: tuple[str, ...] = ()
    """The owner of the keys that its environment may have."""
    drives: str | None = None
    """The program behind it, where it is an engine of ours: its version counts."""

    def environment(self, ours: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return its environment: ours without the keys of other engines, plus its own variables."""
        return environment_for(self.keys, ours, self.env)

    @property
    def where(self) -> str:
        """The path of its program."""
        return self.command[0]

    @property
    def shown(self) -> str:
        """The command of the agent, as it is typed."""
        return shlex.join((os.path.basename(self.where), *self.command[1:]))


class MissingAgent(msgspec.Struct, frozen=True):
    """A known agent whose program is not installed."""

    name: str
    title: str
    hint: str
    origin: Origin
    why: str = ""
    """What is wrong, where it is more than that nothing was found."""


def find(
    name: str, settings: Settings = _NO_SETTINGS, *, path: str | None = None, registry: Registry = _NO_REGISTRY
) -> FoundAgent | MissingAgent:
    """Find one agent. `path` is where to look for programs (default: our PATH).

    Raises:
        UnknownAgent: no agent has this name.
    """
    if name == "demo":
        from antiphon import __version__

        return FoundAgent(name, "Demo", (sys.executable, *DEMO_COMMAND), "built in", version=__version__)
    if name in settings.agents:
        return _own(name, settings.agents[name], path)
    entry = registry.agents.get(name)
    missing: MissingAgent | None = None
    if name in KNOWN:
        known = _known(name, path)
        if isinstance(known, FoundAgent) or entry is None:
            return known
        missing = known
    if entry is not None:
        offered = _of_registry(entry, path)
        return offered if isinstance(offered, FoundAgent) or missing is None else missing
    raise _unknown(name, settings, registry)


def names(settings: Settings = _NO_SETTINGS, registry: Registry = _NO_REGISTRY) -> list[str]:
    """Return all names: the user's own, the known ones, those of the registry."""
    return list(dict.fromkeys(("demo", *settings.agents, *KNOWN, *sorted(registry.agents))))


def find_all(
    settings: Settings = _NO_SETTINGS, *, path: str | None = None, registry: Registry = _NO_REGISTRY
) -> list[FoundAgent | MissingAgent]:
    """Find all agents."""
    return [find(name, settings, path=path, registry=registry) for name in names(settings, registry)]


def start_of(name: str, settings: Settings | None = None, *, path: str | None = None) -> FoundAgent:
    """Return how to start an agent by name. Without settings, the user's config file is read.

    Raises:
        UnknownAgent: no agent has this name.
        AgentMissing: its program is not installed; the hint names how to get it.
    """
    if settings is None:
        settings = user_settings()
    registry = _NO_REGISTRY if name == "demo" or name in settings.agents else kept_registry()
    found = find(name, settings, path=path, registry=registry)
    if isinstance(found, MissingAgent):
        other = f", or give its command: `antiphon agents add {name} -- PROGRAM …`" if found.origin == "known" else ""
        raise AgentMissing(f"{found.why or f'the agent `{name}` is not installed'}", hint=f"{found.hint}{other}")
    return found


def user_settings() -> Settings:
    """Return the settings of the user's config file alone. Its problems are logged."""
    from antiphon.config.reader import read_file, user_file
    from antiphon.config.settings import Sources, settle

    loaded = settle(Sources(user=read_file(user_file())), trusted=False)
    for problem in loaded.problems:
        _log.warning("%s", problem.sentence)
    return loaded.settings


def kept_registry() -> Registry:
    """Check the copy of a registry. A damaged copy is logged and ignored."""
    from antiphon.catalogue.registry_copy import kept

    try:
        copy = kept()
    except RegistryProblem as error:
        _log.warning("%s", str(error).partition("\n")[0])
        return _NO_REGISTRY
    return _NO_REGISTRY if copy is None else copy.read()


def _which(program: str, path: str | None) -> str | None:
    found = shutil.which(program, path=path)
    return None if found is None else os.path.abspath(found)


def _own(name: str, agent: OwnAgent, path: str | None) -> FoundAgent | MissingAgent:
    title = agent.title or name
    program = _which(agent.command[0], agent.env.get("PATH", path))
    if program is None:
        hint = f"there is no program `{agent.command[0]}`: install it, or correct `agents.{name}.command` in the config file"
        return MissingAgent(name, title, hint, "own")
    return FoundAgent(
        name, title, (program, *agent.command[1:]), "own", _given(agent.env), agent.cwd, keys=keys_for(agent.command)
    )


def _given(env: Mapping[str, str], ours: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables of an agent. `$NAME` is replaced by the user's variable, or left out if it is not set."""
    known = {name: ours.get(value[1:]) if _REFERENCE.fullmatch(value) else value for name, value in env.items()}
    return {name: value for name, value in known.items() if value is not None}


def _known(name: str, path: str | None) -> FoundAgent | MissingAgent:
    agent = KNOWN[name]
    if name == OURS:
        from antiphon import __version__

        return FoundAgent(name, agent.title, (sys.executable, *JOINT), "built in", keys=agent.keys, version=__version__)
    if agent.drives is not None:
        environment = os.environ if path is None else {**os.environ, "PATH": path}
        try:
            behind = find_cli(agent.drives, environment)
        except CliMissing as error:
            return MissingAgent(name, agent.title, error.hint, "known", error.sentence)
        ours = (sys.executable, *ENGINE, name)
        return FoundAgent(name, agent.title, ours, "known", login=agent.login, keys=agent.keys, drives=behind.path)
    for command in agent.commands:
        if (program := _which(command[0], path)) is not None:
            return FoundAgent(name, agent.title, (program, *command[1:]), "known", login=agent.login, keys=agent.keys)
    return MissingAgent(name, agent.title, agent.install, "known")


def _of_registry(entry: RegistryEntry, path: str | None) -> FoundAgent | MissingAgent:
    way = launch(entry, _platform(), lambda program: _which(program, path))
    if not way.command:
        return MissingAgent(entry.id, entry.name, way.hint, "registry")
    version = entry.version if way.on_demand else None  # the registry does not know the installed version
    keys = keys_for((entry.id, *way.command))
    return FoundAgent(entry.id, entry.name, way.command, "registry", way.env, None, way.on_demand, version, keys=keys)


def _platform() -> str:
    """Return this platform, as registries call it."""
    machine = os.uname().machine.lower()
    return f"{sys.platform}-{ {'arm64': 'aarch64', 'amd64': 'x86_64'}.get(machine, machine) }"


def _unknown(name: str, settings: Settings, registry: Registry) -> UnknownAgent:
    import difflib

    there = names(settings, registry)
    near = difflib.get_close_matches(name, there, n=1)
    guess = f"did you mean `{near[0]}`? " if near else ""
    listed = ", ".join([*there[:LISTED], *(["…"] if there[LISTED:] else [])])
    return UnknownAgent(f"there is no agent named `{name[:80]}`", hint=f"{guess}there are {listed}")


# --- versions of installed agents ------------------------------------------------------------------------------------

VERSION_TIMEOUT: Final = 2.0
"""Seconds a program may take to print its version. Some start a whole runtime for it, and the user waits for the list."""

AT_ONCE: Final = 16
"""Programs asked at the same time."""

OUTPUT: Final = 64 * 1024

_VERSION: Final = re.compile(r"(?<![\w.])v?(\d+\.\d+(?:\.\d+)*(?:[-+.][0-9A-Za-z]+)*)")
_RUNNERS: Final = re.compile(
    r"(python|pypy|node|ruby|perl|java)[\d.]*|npx|npm|pnpm|yarn|bunx?|deno|uvx?|pipx|env|sh|bash|zsh|docker|podman|ssh|sudo|nix"
)
"""Programs that start another one: their version is not the agent's."""


async def with_versions(agents: Sequence[FoundAgent], limit: float = VERSION_TIMEOUT) -> list[FoundAgent]:
    """Return the agents with the versions that their programs printed in time."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def ask(agent: FoundAgent) -> FoundAgent:
        if agent.version is not None or not _can_be_asked(agent):
            return agent
        async with gate:
            return msgspec.structs.replace(agent, version=await _version(agent, limit))

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(agent)) for agent in agents]
    return [task.result() for task in tasks]


def version_in(output: str) -> str | None:
    """Return the first text in a program's output that looks like a version."""
    found = _VERSION.search(output)
    return None if found is None else found[1][:40]


def _can_be_asked(agent: FoundAgent) -> bool:
    if agent.origin == "registry":  # the user did not choose this program
        return False
    return agent.origin == "known" or not _RUNNERS.fullmatch(os.path.basename(agent.where))


async def _version(agent: FoundAgent, limit: float) -> str | None:
    home = Path.home()
    try:
        command = await LocalCommand.start(
            [agent.drives or agent.where, "--version"],
            # Not in this directory: the files of a project must not influence the program.
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
