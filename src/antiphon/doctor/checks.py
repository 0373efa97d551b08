"""The table of all checks, and the context that they read."""

import os
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from antiphon.catalogue.agents import names
from antiphon.catalogue.known import KNOWN
from antiphon.catalogue.programs import CLAUDE, CODEX
from antiphon.catalogue.registry import Registry, RegistryProblem
from antiphon.catalogue.registry_copy import kept
from antiphon.config.settings import find, settle
from antiphon.doctor import agents, configuration, editors, engines, install
from antiphon.doctor import agents as starting
from antiphon.doctor import configuration as surroundings
from antiphon.doctor import network as reaching
from antiphon.doctor import state as keeping
from antiphon.doctor.findings import Check, DoctorContext, Look
from antiphon.doctor.runner import home
from antiphon.doctor.state import is_trusted
from antiphon.editors.known import EDITORS
from antiphon.engines.known import ENGINES
from antiphon.permission.settings import rule_problem

__all__ = ["PARTS", "checks_of", "read_context", "selected"]

PARTS: Final = {
    "install": "Installation",
    "config": "Configuration",
    "state": "What is kept",
    "environment": "Environment",
    "engines": "Engines",
    "agents": "Other agents",
    "editors": "Editors",
    "network": "Network",
    "start": "Starting",
}
"""The parts of the report, in their order."""

QUICK: Final = 10.0
"""Seconds for a check that only looks at files."""

ENDING: Final = 10.0
"""Seconds more for a check that asks a program: it is ended, and what it started."""

_HERE: Final[tuple[tuple[str, str, Look], ...]] = (
    ("install.python", "Python", install.python),
    ("install.antiphon", "Antiphon", install.ours),
    ("install.command", "The command", install.command),
    *((f"install.{name}", f"Extra `{name}`", partial(install.extra, name)) for name in install.EXTRAS),
    ("config.user", "Your config file", configuration.of_user),
    ("config.project", "The project's config file", configuration.of_project),
    ("config.agent", "The agent", configuration.chosen_agent),
    ("config.mcp", "MCP servers", configuration.servers),
    ("state.directory", "Directory", keeping.directory),
    ("state.database", "Database", keeping.database),
    ("state.leftovers", "Left over", keeping.leftovers),
    ("state.sessions", "Sessions", keeping.sessions),
    ("environment.variables", "Our variables", surroundings.variables),
    ("environment.paths", "Other variables", surroundings.paths),
    ("environment.proxies", "Proxies", surroundings.proxies),
)

_LOGINS: Final = {"claude": engines.claude_login, "codex": engines.codex_login}
_ADDRESSES: Final = {"claude": reaching.claude, "codex": reaching.codex}


def checks_of(context: DoctorContext, *, network: bool, start: bool) -> tuple[Check, ...]:
    """Return all checks, in the order of the report."""
    limit = 3 * context.limit + ENDING
    found = [Check(id, title, look, QUICK, _extra_of(id)) for id, title, look in _HERE]
    for cli in (CLAUDE, CODEX):
        about = (cli.name,)
        found += [
            Check(f"engines.{cli.name}.program", cli.title, partial(engines.program, cli), limit, about),
            Check(f"engines.{cli.name}.login", f"{cli.title} login", _LOGINS[cli.name], limit, about),
        ]
    others = [name for name in names(context.loaded.settings, context.registry) if not _is_engine(name, context)]
    found += [Check(f"agents.{name}", name, partial(agents.agent, name), limit, (name,)) for name in others]
    found.append(Check("agents.registry", "Registry", agents.registry, QUICK, ("registry",)))
    found += [
        Check(f"editors.{name}", editor.title, partial(editors.settings_of, name), QUICK, (name,))
        for name, editor in EDITORS.items()
    ]
    if network:
        found += [
            Check(f"network.{cli.name}", f"{cli.title}'s model", _ADDRESSES[cli.name], limit, (cli.name,))
            for cli in (CLAUDE, CODEX)
        ]
    if start:
        found += _starts(context)
    return tuple(found)


def selected(checks: Sequence[Check], wanted: Sequence[str]) -> tuple[tuple[Check, ...], tuple[str, ...]]:
    """Return the checks that names select (all without names), and the unknown names."""
    if not wanted:
        return tuple(checks), ()
    chosen = tuple(check for check in checks if any(check.is_about(name) for name in wanted))
    return chosen, tuple(name for name in wanted if not any(check.is_about(name) for check in checks))


def _starts(context: DoctorContext) -> list[Check]:
    """Return the checks that start agents: our engines, and others that are named, since a first start may download something."""
    every = names(context.loaded.settings, context.registry)
    chosen = dict.fromkeys((*ENGINES, *(name for name in every if name in context.named)))
    limit = context.start_limit + 2 * ENDING
    return [Check(f"start.{name}", name, partial(starting.start, name), limit, (name,)) for name in chosen]


def _extra_of(id: str) -> tuple[str, ...]:
    """Return the extra that installs an engine's program."""
    name = id.removeprefix("install.")
    return (name,) if name in _LOGINS else ()


def _is_engine(name: str, context: DoctorContext) -> bool:
    """Whether a name is an engine with a program, which has checks of its own."""
    return name not in context.loaded.settings.agents and name in KNOWN and KNOWN[name].drives is not None


# --- the context -----------------------------------------------------------------------------------------------------


def read_context(named: Sequence[str], limit: float, start_limit: float) -> DoctorContext:
    """Read what the checks need to know: settings, trust, the registry. Blocks."""
    cwd = _here()
    sources = find(cwd)
    context = DoctorContext(
        cwd,
        dict(os.environ),
        settle(sources, trusted=False, rule_problem=rule_problem),
        named=frozenset(named),
        limit=limit,
        start_limit=start_limit,
    )
    if is_trusted(context):
        loaded = settle(sources, trusted=True, rule_problem=rule_problem)
        context = msgspec.structs.replace(context, loaded=loaded, trusted=True)
    try:
        copy = kept()
        registry, trouble = Registry({}) if copy is None else copy.read(), None
    except RegistryProblem as error:
        registry, trouble = Registry({}), error.advice
    return msgspec.structs.replace(context, registry=registry, registry_trouble=trouble)


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted under us
        return home()
