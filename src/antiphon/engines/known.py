"""The engines by name. Importing this module imports no engine."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from antiphon.errors import AcpError

if TYPE_CHECKING:
    from antiphon.engines.base import Engine

__all__ = ["ENGINES", "LOGINS", "UnknownEngine", "make_engine", "sign_in"]

ENGINES: Final = {
    "demo": "antiphon.engines.demo.engine:Demo",
    "claude": "antiphon.engines.claude.engine:Claude",
    "codex": "antiphon.engines.codex.engine:Codex",
}
"""Name → module and class. Other names, and whole commands, are ACP agents."""

LOGINS: Final = {"claude": "antiphon.engines.claude.login:login", "codex": "antiphon.engines.codex.login:login"}
"""Name → the function that signs the user in, in the terminal that we were started in, by the way that was asked for, if any."""


class UnknownEngine(AcpError):
    """There is neither an engine nor an agent of that name."""


def make_engine(name: str) -> "Engine":
    """Return the engine of that name: one of ours, an agent of the catalogue or the user's own, or the command line of any ACP agent.

    Raises:
        UnknownEngine: there is no such engine.
        AcpError: its program is not installed.
    """
    if name in ENGINES:
        engine: Engine = _imported(ENGINES[name])()
        return engine
    return _by_command(name) if _is_command(name) else _by_name(name)


def _is_command(name: str) -> bool:
    return "/" in name or len(name.split()) > 1


def _by_command(line: str) -> "Engine":
    import os
    import shlex
    import shutil

    try:
        command = shlex.split(line)
    except ValueError as error:
        raise UnknownEngine(
            f"`{line[:80]}` is not a command: {error}", hint="quote its words as a shell wants them"
        ) from error
    from antiphon.catalogue.known import keys_for

    program = shutil.which(command[0]) if command else None
    if program is None:
        shown = command[0] if command else line
        raise UnknownEngine(f"there is no program `{shown[:80]}`", hint="install it, or give its full path")
    from antiphon.engines.acp.engine import AcpEngine

    title = os.path.basename(command[0])
    return AcpEngine(f"antiphon-{title}", title, (os.path.abspath(program), *command[1:]), keys=keys_for(command))


def _by_name(name: str) -> "Engine":
    from antiphon.catalogue.agents import UnknownAgent, start_of

    try:
        found = start_of(name)
    except UnknownAgent as error:
        raise UnknownEngine(
            f"there is no engine `{name[:80]}`",
            hint=f"{error.hint}; or give a whole command, as in --engine 'PROGRAM --acp'",
        ) from error
    from antiphon.engines.acp.engine import AcpEngine

    return AcpEngine(f"antiphon-{name}", found.title, found.command, found.env, found.cwd, found.keys)


def sign_in(name: str, way: str) -> None:
    """Sign in to the CLI of an engine. Where a program of its own does that, it takes the place of this one.

    Raises:
        AcpError: there is nothing to sign in to, no such way, or no program.
    """
    if name not in LOGINS:
        make_engine(name)  # raises if there is no such engine
        hint = "it works without one" if name in ENGINES else "sign in by the agent itself; `antiphon agents` shows how"
        raise AcpError(f"the engine `{name}` has no login", hint=hint)
    _imported(LOGINS[name])(way)


def _imported(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
