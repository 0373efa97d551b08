"""Checks of agents: the joint agent, installed and missing agents, and a real start."""

import asyncio
import shlex
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from antiphon.catalogue.agents import FoundAgent, MissingAgent, UnknownAgent, find, with_versions
from antiphon.catalogue.known import DEMO, OURS, PresentEngines, installed
from antiphon.doctor.findings import DoctorContext, Finding, note, ok, problem, split
from antiphon.doctor.runner import in_thread
from antiphon.duet.commands import handles, is_command_line, reserved
from antiphon.duet.preferences import JOINT_ROUTES, DuetPreferences, preferences, start_route
from antiphon.engines.known import ENGINES
from antiphon.errors import AcpError, AuthRequired, RequestRefused

if TYPE_CHECKING:
    from antiphon.client.agent import ConnectedAgent

__all__ = ["agent", "registry", "start", "together"]

# --- the joint agent: its engines and its route ----------------------------------------------------------------------

_CORRECT = "correct `duet.engines` in your config file"


def together(context: DoctorContext, command: str) -> Sequence[Finding]:
    """Check the joint agent: engines, route and settings of a new session here."""
    wanted = preferences(context.loaded.settings, context.environment)
    present = installed(wanted.engines, context.environment)
    short = handles(present.engines, {*reserved(), *JOINT_ROUTES})
    names = [short[each] for each in present.engines]
    begins = start_route(wanted, names)
    found = [*_missing(wanted, present, context)]
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
        engines_text = "no engine is installed, so it has the demo behind it"
    elif len(names) == 1:
        engines_text = f"it has {names[0]} behind it"
    else:
        engines_text = f"it joins {', '.join(names[:-1])} and {names[-1]}; the route of a new session is `{route}`"
    return f"built in: {engines_text}; auto-resume is {'on' if auto_resume else 'off'}"


def _missing(wanted: DuetPreferences, present: PresentEngines, context: DoctorContext) -> Iterator[Finding]:
    """Yield findings about engines that the user named and that are missing."""
    for name in wanted.engines:
        if name in present.missing:
            yield from problem(*split(present.missing[name], _CORRECT))
        elif name not in ENGINES and (trouble := _trouble(name, context)) is not None:
            yield from problem(*trouble)


def _trouble(name: str, context: DoctorContext) -> tuple[str, str] | None:
    """Return what is wrong with an engine that is the name of an agent or a command."""
    settings, path = context.loaded.settings, context.environment.get("PATH")
    if name not in settings.agents and is_command_line(name):
        program = shlex.split(name)[0]  # an empty command is reported as a mistake in the file
        there = shutil.which(program, path=path) is not None
        return None if there else (f"the engine `{name}` has no program `{program}` here", _CORRECT)
    try:
        found = find(name, settings, path=path, registry=context.registry)
    except UnknownAgent as error:
        return f"`duet.engines`: {error.sentence}", error.hint or _CORRECT
    return (f"the engine `{name}` is not installed", found.hint) if isinstance(found, MissingAgent) else None


async def agent(name: str, context: DoctorContext) -> Sequence[Finding]:
    """Check one agent: its program and version, or how to install it."""
    settings = context.loaded.settings
    found = find(name, settings, path=context.environment.get("PATH"), registry=context.registry)
    if isinstance(found, MissingAgent):
        if found.origin == "own":
            return problem(f"the program of your own agent `{name}` is not here", found.hint)
        if name == settings.agent:
            return problem("not installed, and `run` and `chat` start it by the config file", found.hint)
        return (problem if name in context.named else note)("not installed", found.hint)
    if found.origin == "built in":
        if name == OURS:
            return await in_thread(lambda: together(context, found.shown))  # it looks at the disk
        return ok("built in: it needs no model, no key and no network", command=found.shown)
    if found.on_demand:
        return ok(f"started on demand by {found.where}, which downloads it first", command=found.shown)
    (known,) = await with_versions([found], min(context.limit, 5.0))
    facts = {"command": found.shown, "path": found.where}
    if known.version is None:
        return ok(f"{found.where}, which does not report its version", **facts)
    return ok(f"{known.version}, {found.where}", version=known.version, **facts)


def registry(context: DoctorContext) -> Sequence[Finding]:
    """Check the copy of a registry."""
    if context.registry_trouble is not None:
        sentence, hint = split(context.registry_trouble, "`antiphon agents registry --forget` removes it")
        return problem(sentence, hint)
    count = len(context.registry.agents)
    return ok(f"{count} agent{'' if count == 1 else 's'} in the copy that was read") if count else []


# --- a real start: `initialize` and a session, without a prompt ------------------------------------------------------


async def start(name: str, context: DoctorContext) -> Sequence[Finding]:
    """Start an agent, open a session, close it, and report the times. Missing agents are reported elsewhere."""
    found = find(name, context.loaded.settings, path=context.environment.get("PATH"), registry=context.registry)
    if isinstance(found, MissingAgent):
        return []
    try:
        async with asyncio.timeout(context.start_limit):
            return await _through(found, context)
    except TimeoutError:
        return problem(
            f"`{found.shown}` was not done within {context.start_limit:g} seconds",
            f"try `antiphon agents check {name}`, or give it more time with --timeout",
        )
    except AuthRequired:
        return problem("it starts, but opens no session before you sign in", _sign_in(found))
    except AcpError as error:
        sentence, hint = split(error.advice, f"try `{found.shown}` by hand: it has to serve ACP on stdin and stdout")
        return problem(sentence, hint)


def _sign_in(found: FoundAgent) -> str:
    return f"to sign in, {found.login}" if found.login else "see its documentation for how to sign in"


async def _through(found: FoundAgent, context: DoctorContext) -> Sequence[Finding]:
    from antiphon.client.connect import connect
    from antiphon.client.link import Retry

    began = time.monotonic()
    marks: dict[str, float] = {}
    with TemporaryDirectory(prefix="antiphon-doctor-", ignore_cleanup_errors=True) as folder:
        env = found.environment(context.environment)
        async with connect(found.command, cwd=found.cwd, env=env, files=None, retry=Retry(delays=())) as agent:
            marks["initialize"] = time.monotonic() - began
            await _open(agent, folder)
            marks["session"] = time.monotonic() - began
        marks["end"] = time.monotonic() - began
    seconds_of = {name: f"{seconds:.2f}" for name, seconds in marks.items()}
    return ok(
        f"answered after {seconds_of['initialize']} s, had a session after {seconds_of['session']} s, was gone after {seconds_of['end']} s",
        **seconds_of,
    )


async def _open(agent: "ConnectedAgent", folder: str) -> None:
    session = await agent.new_session(folder)
    await session.close()
    if agent.capabilities.session_capabilities.delete is not None:
        with suppress(RequestRefused):  # it has started, which is all that this check is about
            await agent.delete_session(session.id)  # it is empty, so it must not appear in a list
