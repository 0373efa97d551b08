"""Our own slash commands, what is meant by one that is typed, and the short names of engines. Pure.

Every other command goes to the engines unchanged. An engine's command with the name of ours is reached with the engine before it: `/claude:review`.
"""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from antiphon.config.shapes import NAME
from antiphon.protocol import v1

__all__ = [
    "LONGEST",
    "OWN",
    "ContinueCommand",
    "EngineCommand",
    "ExplainCommand",
    "NudgeCommand",
    "OwnAction",
    "PlainCommand",
    "ReviewCommand",
    "RouteCommand",
    "TypedCommand",
    "handles",
    "is_command_line",
    "offered",
    "parse",
    "prefixes",
    "reserved",
    "slug",
]

PlainName: TypeAlias = Literal["clear", "help", "sessions", "status", "trust", "version"]


class OwnCommand(msgspec.Struct, frozen=True):
    """A command of ours, as clients list it."""

    name: str
    description: str
    hint: str = ""
    """What may follow it."""
    engines: int = 1
    """How many engines a session needs for it."""


OWN: Final = (
    OwnCommand("duet", "Let every engine answer, from now on", "what to ask them", engines=2),
    OwnCommand(
        "review",
        "Let the primary engine work and the other one review it, from now on",
        "what to do, or `fix` or `report` for what becomes of the findings",
        engines=2,
    ),
    OwnCommand(
        "continue", "Go on with the last session of this directory", "the beginning of an id, for another session"
    ),
    OwnCommand("clear", "Begin afresh; the old session stays in the list of sessions"),
    OwnCommand("nudge", "Go on by itself while tasks are left after a limit, or not", "on, or off"),
    OwnCommand("status", "Show route, engines, modes, models and limits"),
    OwnCommand("explain", "Explain a piece of code in short", "a reference, such as src/a.py:10-20"),
    OwnCommand("trust", "Trust this project's own settings, hooks and MCP servers as they are now"),
    OwnCommand("sessions", "Show the sessions of this directory"),
    OwnCommand("version", "Show the versions of Antiphon and of the engines"),
    OwnCommand("help", "Show what can be typed"),
)
"""Our own commands, besides those that are named after engines."""

_PLAIN: Final[Mapping[str, PlainName]] = {
    "clear": "clear", "help": "help", "sessions": "sessions", "status": "status", "trust": "trust", "version": "version",
}  # fmt: skip


class RouteCommand(msgspec.Struct, frozen=True):
    """Choose a route from now on, beginning with the prompt if there is one."""

    route: str
    prompt: str = ""


class ReviewCommand(msgspec.Struct, frozen=True):
    """Work and review from now on; `then` is what becomes of the findings, if it was given."""

    prompt: str = ""
    then: Literal["report", "fix"] | None = None


class NudgeCommand(msgspec.Struct, frozen=True):
    """`/nudge`: continue automatically or not; None: show whether it is on. `odd` is an argument that is neither on nor off."""

    on: bool | None = None
    odd: str = ""


class ExplainCommand(msgspec.Struct, frozen=True):
    """Explain a reference, which may be empty."""

    reference: str = ""


class ContinueCommand(msgspec.Struct, frozen=True):
    """Go on with an earlier session: the one whose id begins like this; empty: the last one."""

    id: str = ""


class PlainCommand(msgspec.Struct, frozen=True):
    """A command without arguments."""

    name: PlainName


class EngineCommand(msgspec.Struct, frozen=True):
    """A command for one engine, as the engine gets it."""

    engine: str
    text: str


OwnAction: TypeAlias = (
    RouteCommand | ReviewCommand | NudgeCommand | ExplainCommand | ContinueCommand | PlainCommand | EngineCommand
)


class TypedCommand(msgspec.Struct, frozen=True):
    """A command of ours that was typed: its name, and what it asks for."""

    name: str
    asked: OwnAction


def reserved() -> frozenset[str]:
    """Names that no engine may have."""
    return frozenset(own.name for own in OWN)


def offered(engines: Mapping[str, str]) -> list[v1.Command]:
    """Our commands for a session over these engines (short name → title), those of the engines first."""
    shown = []
    if len(engines) > 1:
        shown = [
            v1.Command(name, f"Let {title} answer, from now on", v1.CommandInput(f"what to ask {title}"))
            for name, title in engines.items()
        ]
    shown += [
        v1.Command(own.name, own.description, v1.CommandInput(own.hint) if own.hint else None)
        for own in OWN
        if own.engines <= len(engines)
    ]
    return shown


def parse(text: str, engines: Sequence[str]) -> TypedCommand | None:
    """Our command that a prompt begins with; None if it does not begin with one. `engines` are the short names of a session's engines.

    With one engine `/review` is that engine's own.
    """
    text = text.strip()
    if not text.startswith("/") or text[1:2].isspace() or len(text) < 2:
        return None
    name, *more = text[1:].split(maxsplit=1)
    rest = more[0] if more else ""
    if name in engines:
        return TypedCommand(name, RouteCommand(name, rest))
    engine, colon, theirs = name.partition(":")
    if colon and theirs and engine in engines:
        return TypedCommand(name, EngineCommand(engine, f"/{theirs} {rest}".rstrip()))
    if name == "review" and len(engines) < 2:
        return None
    asked = _asked(name, rest)
    return None if asked is None else TypedCommand(name, asked)


def _asked(name: str, rest: str) -> OwnAction | None:
    match name:
        case "duet":
            return RouteCommand("duet", rest)
        case "review":
            # Only the word alone: `/review fix the parser` is something to do.
            return (
                ReviewCommand(then="fix")
                if rest == "fix"
                else ReviewCommand(then="report")
                if rest == "report"
                else ReviewCommand(rest)
            )
        case "nudge":
            word = rest.lower()
            if word in ("on", "off", ""):
                return NudgeCommand(None if not word else word == "on")
            return NudgeCommand(odd=rest)
        case "explain":
            return ExplainCommand(rest)
        case "continue":
            return ContinueCommand(rest.strip())
        case _:
            return PlainCommand(_PLAIN[name]) if name in _PLAIN else None


# An engine has a name of the catalogue or of the user's own, or it is a whole command line, which needs a short name.
# A short name is typed as a command (`/claude`), chosen as a route and put before the ids of settings, so it must be none of our own words.

LONGEST: Final = 24
"""Letters of the short name of a command line."""

_RUNNERS: Final = frozenset(
    {"npx", "bunx", "uvx", "pipx", "node", "deno", "bun", "uv", "env", "sh", "bash", "run", "exec", "x"}
)
"""Programs that are only the way to another one, whose name is more useful."""

_OF_OURS: Final = ("auto", "primary")
"""The prefixes of our own settings `auto_resume` and `primary_agent`."""


def is_command_line(engine: str) -> bool:
    """Whether this is not a name: it has blanks, slashes, or whatever else names have not."""
    return NAME.fullmatch(engine) is None


def slug(engine: str) -> str:
    """A short name. That of a name is the name itself, without dots: a word with a dot after a slash would be a path."""
    if not is_command_line(engine):
        return engine.replace(".", "-")
    import shlex

    try:
        words = shlex.split(engine)
    except ValueError:
        words = engine.split()
    names = [_plain(word) for word in words if not word.startswith("-") and "=" not in word]
    for word in names:
        if word and word not in _RUNNERS and not re.fullmatch(r"python[\d-]*", word):
            return word
    return next((word for word in names if word), "engine")


def handles(engines: Sequence[str], reserved: Collection[str] = ()) -> dict[str, str]:
    """Short names of engines: no two are alike, and none is taken already. The same list gives the same names."""
    taken, given = set(reserved), {}
    # Names first: they keep what people know them by.
    for engine in sorted(dict.fromkeys(engines), key=is_command_line):
        word = slug(engine)
        free = (word, f"{word}-agent", *(f"{word}-{number}" for number in range(2, len(engines) + len(taken) + 2)))
        given[engine] = next(each for each in free if each not in taken)
        taken.add(given[engine])
    return {engine: given[engine] for engine in engines}


def prefixes(engines: Sequence[str]) -> dict[str, str]:
    """Short name → what stands before `_` in the ids of its settings: it has no `_` itself, so that there is one way to read an id."""
    taken, given = set(_OF_OURS), {}
    for engine in sorted(engines, key=lambda each: "_" in each):  # one without `_` keeps its name
        word = engine.replace("_", "-")
        free = (word, *(f"{word}-{number}" for number in range(2, 2 * len(engines) + 3)))
        given[engine] = next(each for each in free if each not in taken and (each == engine or each not in engines))
        taken.add(given[engine])
    return {engine: given[engine] for engine in engines}


def _plain(word: str) -> str:
    """The part of a word that names the agent: `@scope/agent@latest` and `/opt/agent.js` are both `agent`."""
    base = os.path.basename(word.rstrip("/"))
    base = re.sub(r"(?<=.)@.*", "", base)
    base = re.sub(r"\.(?:[cm]?[jt]s|py|sh)$", "", base)
    return re.sub(r"[^a-z0-9]+", "-", base.lower()).strip("-")[:LONGEST].rstrip("-")
