"""Our own agent, which joins the engines: which ones it would have, who answers first, and what stands in the way of what was wished."""

import shlex
import shutil
from collections.abc import Iterator, Sequence

from antiphon.catalogue.finding import Missing, UnknownAgent, find
from antiphon.cli.health.findings import Finding, Ward, ok, problem, split
from antiphon.duet.commands import reserved
from antiphon.duet.naming import handles, is_command_line
from antiphon.duet.present import DEMO, Present, installed
from antiphon.duet.wishes import JOINT_ROUTES, Wishes, chosen, wishes
from antiphon.engines.known import ENGINES

__all__ = ["together"]

_CORRECT = "correct `duet.engines` in your config file"


def together(ward: Ward, command: str) -> Sequence[Finding]:
    """As it would begin a session here."""
    wanted = wishes(ward.loaded.settings, ward.environment)
    present = installed(wanted.engines, ward.environment)
    short = handles(present.engines, {*reserved(), *JOINT_ROUTES})
    names = [short[each] for each in present.engines]
    begins = chosen(wanted, names)
    found = [*_missing(wanted, present, ward)]
    for text in (*wanted.problems, *begins.problems):
        found += problem(*split(text, "correct it, or take it out"))
    facts = {
        "command": command,
        "engines": ", ".join(names),
        "route": begins.route,
        "primary": begins.primary,
        "autoResume": "on" if wanted.auto_resume else "off",
    }
    return found or ok(_sentence(names, begins.route, auto_resume=wanted.auto_resume), **facts)


def _sentence(names: Sequence[str], route: str, *, auto_resume: bool) -> str:
    if names == [DEMO]:
        who = "no engine is installed, so it has the demo behind it"
    elif len(names) == 1:
        who = f"it has {names[0]} behind it"
    else:
        who = f"it joins {', '.join(names[:-1])} and {names[-1]}; the route of a new session is `{route}`"
    return f"built in: {who}; auto-resume is {'on' if auto_resume else 'off'}"


def _missing(wanted: Wishes, present: Present, ward: Ward) -> Iterator[Finding]:
    """What the user named and is not there."""
    for name in wanted.engines:
        if name in present.missing:
            yield from problem(*split(present.missing[name], _CORRECT))
        elif name not in ENGINES and (trouble := _trouble(name, ward)) is not None:
            yield from problem(*trouble)


def _trouble(name: str, ward: Ward) -> tuple[str, str] | None:
    """What is wrong with an engine that is an agent's name or a command line."""
    settings, path = ward.loaded.settings, ward.environment.get("PATH")
    if name not in settings.agents and is_command_line(name):
        program = shlex.split(name)[0]  # one that has no words is told as a mistake in the file
        there = shutil.which(program, path=path) is not None
        return None if there else (f"the engine `{name}` has no program `{program}` here", _CORRECT)
    try:
        found = find(name, settings, path=path, registry=ward.registry)
    except UnknownAgent as error:
        return split(f"`duet.engines`: {error}", _CORRECT)
    return (f"the engine `{name}` is not installed", found.hint) if isinstance(found, Missing) else None
