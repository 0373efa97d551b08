"""Checks of config files and of environment variables."""

import difflib
import os
import re
import shutil
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from antiphon.catalogue.agents import UnknownAgent, find
from antiphon.catalogue.known import default_agent
from antiphon.config.directories import CONFIG_DIR, STATE_DIR
from antiphon.config.environment import AUTO_RESUME
from antiphon.config.reader import ConfigFile, user_file
from antiphon.doctor.findings import DoctorContext, Finding, note, ok, problem, split
from antiphon.duet.preferences import PRIMARY, ROUTE
from antiphon.engines.events import VARIABLE as MIRROR
from antiphon.transports.tree import MARK

__all__ = ["OURS", "chosen_agent", "of_project", "of_user", "paths", "proxies", "servers", "variables"]

_LINE: Final = re.compile(r", line (\d+): ")


def of_user(context: DoctorContext) -> Sequence[Finding]:
    """Check the user's config file."""
    file = context.loaded.sources.user
    if file is None:
        return ok(f"there is none, and need not be: {user_file()}", path=str(user_file()))
    return _troubles(file, context) or ok(f"{file.path} is understood", path=str(file.path))


def of_project(context: DoctorContext) -> Sequence[Finding]:
    """Check the project's config file, and whether it is trusted."""
    file = context.loaded.sources.project
    if file is None:
        return ok(f"there is none for {context.cwd}")
    found = _troubles(file, context)
    for text in context.loaded.notes:
        found += note(text.sentence, text.hint or None, path=str(file.path))
    if found:
        return found
    trust = "trusted" if context.trusted else "not trusted, and sets nothing that would need it"
    return ok(f"{file.path} is understood; it is {trust}", path=str(file.path))


def chosen_agent(context: DoctorContext) -> Sequence[Finding]:
    """Check that the agent for `run` and `chat` exists. Its program has a check of its own."""
    name = context.loaded.settings.agent
    if not name:
        name = default_agent(context.loaded.settings, context.environment)
        return ok(f"none is set, so `run` and `chat` start `{name}`")
    try:
        find(name, context.loaded.settings, path=context.environment.get("PATH"), registry=context.registry)
    except UnknownAgent as error:
        sentence, hint = split(error.advice, "`antiphon agents` lists those there are")
        return problem(f"`agent` in the config file: {sentence}", hint)
    return ok(f"`{name}` is what `run` and `chat` start")


def servers(context: DoctorContext) -> Sequence[Finding]:
    """Check the programs of the MCP servers of every session."""
    every = context.loaded.settings.mcp.values()
    found: list[Finding] = []
    for server in every:
        path = server.env.get("PATH", context.environment.get("PATH"))
        if server.type == "stdio" and server.command and shutil.which(server.command[0], path=path) is None:
            found += problem(
                f"the MCP server `{server.name}` cannot be started: there is no program `{server.command[0]}`",
                f"install it, or correct `mcp.{server.name}.command` in the config file",
            )
    if found or not every:
        return found
    return ok(", ".join(server.name for server in every))


def _troubles(file: ConfigFile, context: DoctorContext) -> list[Finding]:
    found: list[Finding] = []
    for text in context.loaded.problems:
        if text.sentence.startswith(str(file.path)):
            sentence, hint = split(text, "correct it, or take it out")
            line = _LINE.search(sentence)
            found += problem(sentence, hint, path=str(file.path), **({"line": line[1]} if line else {}))
    return found


# --- environment variables; their values may be secret and are not shown ---------------------------------------------

OURS: Final = (
    STATE_DIR,
    CONFIG_DIR,
    MIRROR,
    ROUTE,
    PRIMARY,
    AUTO_RESUME,
    "ANTIPHON_FLEET",
    "ANTIPHON_FLEET_CREDENTIALS",
)
"""The variables that people set for us."""

_PREFIX: Final = "ANTIPHON_"

_INSIDE: Final = (MARK, "ANTIPHON_CI", "ANTIPHON_INTEROP")
"""Variables that we set ourselves, and those of our own tests."""

_DIRECTORIES: Final = ("CODEX_HOME",)
"""Directories that have to be there: the program that reads the variable does not make them."""

_FILES: Final = ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "CODEX_CA_CERTIFICATE")
"""Certificate files without which connections fail, with errors that do not name them."""

_XDG: Final = ("XDG_CONFIG_HOME", "XDG_STATE_HOME")
_PROXIES: Final = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")


def variables(context: DoctorContext) -> Sequence[Finding]:
    """Check for misspelt variables of our own, which have no effect."""
    found: list[Finding] = []
    ours = [name for name in context.environment if name.startswith(_PREFIX) and name not in _INSIDE]
    for name in ours:
        if name in OURS:
            continue
        # Without what they all begin with: it would make any two of them alike.
        ends = [each.removeprefix(_PREFIX) for each in OURS]
        near = difflib.get_close_matches(name.removeprefix(_PREFIX), ends, n=1, cutoff=0.75)
        if near:
            found += problem(f"{name} is set, and means nothing", f"did you mean {_PREFIX}{near[0]}? Else take it out")
        else:
            found += note(f"{name} is set, and means nothing here", f"we know {', '.join(OURS)}")
    known = [name for name in ours if name in OURS]
    return found or ok(f"set: {', '.join(known)}" if known else "none of ours is set")


def paths(context: DoctorContext) -> Sequence[Finding]:
    """Check variables of other programs that name a missing file or directory."""
    found: list[Finding] = []
    for name, exists in (
        *((name, os.path.isdir) for name in _DIRECTORIES),
        *((name, os.path.exists) for name in _FILES),
    ):
        value = context.environment.get(name)
        if value and not exists(os.path.expanduser(value)):
            found += problem(f"{name} names `{value[:200]}`, which is not there", "correct it, make it, or take it out")
    for name in _XDG:
        value = context.environment.get(name)
        if value and not os.path.isabs(value):
            found += note(f"{name} is not a whole path, and so it is ignored", "correct it, or take it out")
    return found or ok("no variable that we know points nowhere")


def proxies(context: DoctorContext) -> Sequence[Finding]:
    """Check the proxies, a common cause of problems."""
    found = []
    for name in _PROXIES:
        value = context.environment.get(name) or context.environment.get(name.lower())
        if value:
            found.append(f"{name} is {_shown(value)}")
    if not found:
        return ok("none is set")
    spared = context.environment.get("NO_PROXY") or context.environment.get("no_proxy")
    around = f"; not for {spared[:100]}" if spared else "; there is no NO_PROXY"
    hint = None if spared else "if a model or an MCP server is on this machine, set NO_PROXY=localhost,127.0.0.1"
    return note(f"{', '.join(found)}{around}", hint)


def _shown(address: str) -> str:
    """Return an address without user and password."""
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "no address"
    return f"{parts.scheme}://{parts.hostname or ''}{port}"
