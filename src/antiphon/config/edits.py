"""Adding an agent to a config file and taking one out, with everything else in it left as it is. Pure: text in, text out.

Each edit is checked by reading the result: it must mean the same as the old text plus or minus the one agent, or the edit is not made.
"""

import json
import tomllib
from collections.abc import Sequence
from typing import Any

from antiphon.config.reader import BUILT_IN, NAME, statements
from antiphon.errors import AcpError

__all__ = ["EditRefused", "with_agent", "without_agent"]


class EditRefused(AcpError):
    """The config file cannot be changed like this; nothing was changed."""


class WrongAgent(EditRefused):
    """The name or the command of an agent to add is not valid."""


class NoSuchAgent(EditRefused):
    """The config file has no agent of that name."""


def with_agent(text: str, name: str, command: Sequence[str]) -> str:
    """Return the text with `[agents.NAME]` at its end.

    Raises:
        EditRefused: it is not TOML, has such an agent already, or is written in a way that cannot be added to.
    """
    if not NAME.fullmatch(name):
        raise WrongAgent(f"`{name[:80]}` is no name for an agent", hint="use letters, digits, `-`, `_` and `.`")
    if name in BUILT_IN:
        raise WrongAgent(f"`{name}` is built in", hint="choose another name")
    if not command or not command[0]:
        raise WrongAgent("an agent needs a command", hint="antiphon agents add NAME -- PROGRAM [ARGUMENT …]")
    document = _parsed(text)
    if name in _agents(document):
        raise EditRefused(f"there is an agent `{name}` already", hint=f"`antiphon agents remove {name}` first")
    newline = "\r\n" if "\r\n" in text else "\n"
    words = ", ".join(_quoted(word) for word in command)
    before = "" if not text else newline if text.endswith("\n") else newline * 2
    table = f"agents.{name}" if "." not in name else f'agents."{name}"'
    new = f"{text}{before}[{table}]{newline}command = [{words}]{newline}"
    document.setdefault("agents", {})[name] = {"command": list(command)}
    return _checked(new, document)


def without_agent(text: str, name: str) -> str:
    """Return the text without the agent, with all comments outside of its lines.

    Raises:
        EditRefused: it is not TOML, has no such agent, or is written in a way that cannot be taken apart.
    """
    document = _parsed(text)
    agents = _agents(document)
    if name not in agents:
        known = f"it has {', '.join(agents)}" if agents else "`antiphon agents add` adds one"
        raise NoSuchAgent(f"there is no agent `{name}` in the config file", hint=known)
    kept, place = "", 0
    inside = False  # after a line of what goes
    for statement in statements(text):
        gap = text[place : statement.start]
        goes = statement.path[:2] == ("agents", name)
        if goes and not inside and statement.header:
            gap = _one_empty_line_less(gap)  # the one that set the table off
        if not (goes and inside):
            kept += gap
        if not goes:
            kept += text[statement.start : statement.end]
        inside, place = goes, statement.end
    kept += text[place:]
    del agents[name]
    return _checked(kept, document)


def _one_empty_line_less(gap: str) -> str:
    lines = gap.splitlines(keepends=True)
    return "".join(lines[:-1]) if lines and not lines[-1].strip() else gap


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise EditRefused(f"the config file is not TOML: {error}", hint="correct it first") from error


def _agents(document: dict[str, object]) -> dict[str, object]:
    agents = document.get("agents", {})
    if not isinstance(agents, dict):
        raise EditRefused("`agents` in the config file is not a table", hint="correct it first")
    return agents


def _checked(text: str, expected: dict[str, object]) -> str:
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError):
        found = None
    if found is None or _without_nothing(found) != _without_nothing(expected):
        raise EditRefused(
            "the agents in the config file are written in a way that cannot be edited from here", hint="edit it by hand"
        )
    return text


def _without_nothing(document: dict[str, object]) -> dict[str, object]:
    """Remove an empty table of agents."""
    return {key: value for key, value in document.items() if key != "agents" or value}


def _quoted(word: str) -> str:
    """A TOML string: a JSON string is one, except that TOML wants DEL escaped too and has no surrogate pairs."""
    return json.dumps(word, ensure_ascii=False).replace("\x7f", "\\u007f")
