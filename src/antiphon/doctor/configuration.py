"""The config files: whether they are there and understood, whether a project's is trusted, and whether what they name exists."""

import re
import shutil
from collections.abc import Sequence
from typing import Final

from antiphon.catalogue.engines import default_agent
from antiphon.catalogue.finding import UnknownAgent, find
from antiphon.config.files import ConfigFile, user_file
from antiphon.doctor.findings import Finding, Ward, note, ok, problem, split

__all__ = ["chosen_agent", "of_project", "of_user", "servers"]

_LINE: Final = re.compile(r", line (\d+): ")


def of_user(ward: Ward) -> Sequence[Finding]:
    """The user's own file."""
    file = ward.loaded.sources.user
    if file is None:
        return ok(f"there is none, and need not be: {user_file()}", path=str(user_file()))
    return _troubles(file, ward) or ok(f"{file.path} is understood", path=str(file.path))


def of_project(ward: Ward) -> Sequence[Finding]:
    """The project's file, and whether it counts."""
    file = ward.loaded.sources.project
    if file is None:
        return ok(f"there is none for {ward.cwd}")
    found = _troubles(file, ward)
    for text in ward.loaded.notes:
        found += note(text.sentence, text.hint or None, path=str(file.path))
    if found:
        return found
    trust = "trusted" if ward.trusted else "not trusted, and sets nothing that would need it"
    return ok(f"{file.path} is understood; it is {trust}", path=str(file.path))


def chosen_agent(ward: Ward) -> Sequence[Finding]:
    """The agent that `run` and `chat` start. Whether its program is there, the agents' own checks say."""
    name = ward.loaded.settings.agent
    if not name:
        name = default_agent(ward.loaded.settings, ward.environment)
        return ok(f"nobody chose one, so `run` and `chat` start `{name}`")
    try:
        find(name, ward.loaded.settings, path=ward.environment.get("PATH"), registry=ward.registry)
    except UnknownAgent as error:
        sentence, hint = split(error.advice, "`antiphon agents` lists those there are")
        return problem(f"`agent` in the config file: {sentence}", hint)
    return ok(f"`{name}` is what `run` and `chat` start")


def servers(ward: Ward) -> Sequence[Finding]:
    """The MCP servers that every session gets, as far as they are programs."""
    every = ward.loaded.settings.mcp.values()
    found: list[Finding] = []
    for server in every:
        path = server.env.get("PATH", ward.environment.get("PATH"))
        if server.type == "stdio" and server.command and shutil.which(server.command[0], path=path) is None:
            found += problem(
                f"the MCP server `{server.name}` cannot be started: there is no program `{server.command[0]}`",
                f"install it, or correct `mcp.{server.name}.command` in the config file",
            )
    if found or not every:
        return found
    return ok(", ".join(server.name for server in every))


def _troubles(file: ConfigFile, ward: Ward) -> list[Finding]:
    found: list[Finding] = []
    for text in ward.loaded.problems:
        if text.sentence.startswith(str(file.path)):
            sentence, hint = split(text, "correct it, or take it out")
            line = _LINE.search(sentence)
            found += problem(sentence, hint, path=str(file.path), **({"line": line[1]} if line else {}))
    return found
