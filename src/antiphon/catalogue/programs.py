"""The programs that our own engines drive, found by a variable, the user's config file, the PATH, a Python package. Starts no program.

The user waits for `session/new`, so looking takes a millisecond or two: the package that may hold the program is found on the disk
and never imported, and the config file is only read if there is one.
"""

import logging
import os
import sys
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from antiphon.config.directories import config_dir
from antiphon.errors import Code, RequestError

__all__ = ["CLAUDE", "CODEX", "Cli", "CliMissing", "CliProblem", "FoundProgram", "Source", "find_cli"]

Source: TypeAlias = Literal["variable", "config", "path", "package"]

_log = logging.getLogger(__name__)


class Cli(msgspec.Struct, frozen=True):
    """A program that an engine drives, and where it may be."""

    name: str
    """How the configuration calls it: `engines.NAME.executable`."""
    title: str
    program: str
    """Name of the program on the PATH."""
    variable: str
    """The environment variable that names another one."""
    package: str
    """The Python package that brings it along, which is never imported."""
    inside: str
    """Path of the program in that package."""
    install: str
    """How to get it: commands, as they are typed."""
    oldest: tuple[int, ...]


CLAUDE: Final = Cli(
    name="claude",
    title="Claude Code",
    program="claude",
    variable="CLAUDE_CODE_EXECUTABLE",
    package="claude_agent_sdk",
    inside="_bundled/claude",
    install="`pip install 'antiphon[claude]'`, or `npm install -g @anthropic-ai/claude-code`",
    oldest=(2, 1, 41),  # the first with `claude auth`
)

CODEX: Final = Cli(
    name="codex",
    title="Codex",
    program="codex",
    variable="CODEX_EXECUTABLE",
    package="codex_cli_bin",
    inside="bin/codex",
    install="`pip install 'antiphon[codex]'`, or `npm install -g @openai/codex`",
    oldest=(0, 163),  # the oldest that our tests run: its messages change with its versions
)


class FoundProgram(msgspec.Struct, frozen=True):
    """A program that was found."""

    cli: Cli
    path: str
    source: Source


class CliProblem(RequestError):
    """The program cannot be used: the reason for the client, and what the user can do."""

    def __init__(self, sentence: str, hint: str) -> None:
        super().__init__(Code.INTERNAL_ERROR, sentence, hint=hint)
        self.args = (sentence, hint)

    def __str__(self) -> str:
        return str(self.advice)  # without the code, which is of no use to the user


class CliMissing(CliProblem):
    """The program is not installed, or does not start."""


def find_cli(cli: Cli, environment: Mapping[str, str] = os.environ) -> FoundProgram:
    """Find the program: by variable, the user's config file, the PATH, the package.

    Raises:
        CliMissing: it was not found; or what the variable or the config file names cannot be run.
    """
    path = environment.get("PATH", os.defpath)
    if chosen := environment.get(cli.variable):
        return _chosen(cli, chosen, "variable", cli.variable, path)
    key = f"engines.{cli.name}.executable"
    if chosen := _configured(cli.name):
        return _chosen(cli, chosen, "config", f"`{key}` in the config file", path)
    if place := _on_path(cli.program, path):
        return FoundProgram(cli, place, "path")
    if place := _in_package(cli):
        return FoundProgram(cli, place, "package")
    raise CliMissing(
        f"{cli.title} is not installed: there is no `{cli.program}` on the PATH",
        f"{cli.install}; or name it in {cli.variable}, or as `{key}` in the config file",
    )


def _chosen(cli: Cli, chosen: str, source: Source, where: str, path: str) -> FoundProgram:
    place: str | None = os.path.expanduser(chosen)
    if "/" not in chosen:
        place = _on_path(chosen, path)
    # A relative path would mean something else wherever we are started.
    if place is None or not place.startswith("/") or not _runs(place):
        raise CliMissing(
            f"{cli.title} cannot be started: {where} names `{chosen[:200]}`, which is not a program that can be run",
            "correct it to the whole path of the program, or take it out",
        )
    return FoundProgram(cli, place, source)


def _configured(name: str) -> str | None:
    """Return the program of the user's config file. A project may not choose a program to run."""
    if not (config_dir() / "config.toml").exists():
        return None
    from antiphon.config.reader import read_file, user_file

    file = read_file(user_file(), digest=False)
    if file is None or "engines" not in file.text:  # most files have no such table, and parsing TOML is slow
        return None
    from antiphon.config.reader import read

    part = read(file.text)
    for problem in part.problems:
        _log.warning("%s, line %d: %s", file.path, problem.line, problem.sentence)
    return part.text("engines", name, "executable")


def _on_path(program: str, path: str) -> str | None:
    """Find a program on the PATH, without relative directories: a project may contain anything."""
    for folder in path.split(os.pathsep):
        place = os.path.join(folder, program)
        if folder.startswith("/") and _runs(place):
            return place
    return None


def _in_package(cli: Cli) -> str | None:
    from importlib.machinery import PathFinder

    # The first place to look is that of the program which was started; with `python -m` it is the directory that we are in.
    places = sys.path if sys.flags.safe_path else sys.path[1:]
    spec = PathFinder.find_spec(cli.package, [place for place in places if os.path.isabs(place)])
    for folder in (spec and spec.submodule_search_locations) or ():
        if _runs(place := os.path.join(folder, cli.inside)):
            return place
    return None


def _runs(place: str) -> bool:
    return os.path.isfile(place) and os.access(place, os.X_OK)
