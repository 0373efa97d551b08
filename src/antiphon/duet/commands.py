"""Our own commands: which there are, and what somebody means who types one. Pure.

Whatever is none of ours goes to the engines as it is. One that ours hides is reached with the engine before it: `/claude:review`.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from antiphon.protocol import v1

__all__ = [
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
    "offered",
    "parse",
    "reserved",
]  # fmt: skip

PlainName: TypeAlias = Literal["clear", "help", "sessions", "status", "trust", "version"]


class OwnCommand(msgspec.Struct, frozen=True):
    """A command of ours, as clients list it."""

    name: str
    description: str
    hint: str = ""
    """What may follow it."""
    engines: int = 1
    """How many engines it takes to make sense."""


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
    OwnCommand("clear", "Begin afresh; what was said so far stays in the list of sessions"),
    OwnCommand("nudge", "Go on by itself while tasks are left after a limit, or not", "on, or off"),
    OwnCommand("status", "Show route, engines, modes, models and limits"),
    OwnCommand("explain", "Explain a piece of code in short", "a reference, such as src/a.py:10-20"),
    OwnCommand("trust", "Trust this project's own settings, hooks and MCP servers as they are now"),
    OwnCommand("sessions", "Show the sessions of this directory"),
    OwnCommand("version", "Show the versions of Antiphon and of the engines"),
    OwnCommand("help", "Show what can be typed"),
)
"""Every command of ours besides those that are called like the engines."""

_PLAIN: Final[Mapping[str, PlainName]] = {
    "clear": "clear", "help": "help", "sessions": "sessions", "status": "status", "trust": "trust", "version": "version",
}  # fmt: skip


class RouteCommand(msgspec.Struct, frozen=True):
    """Answer this way from now on, beginning with the prompt if there is one."""

    route: str
    prompt: str = ""


class ReviewCommand(msgspec.Struct, frozen=True):
    """Work and review from now on; `then` is what becomes of the findings, if it was told."""

    prompt: str = ""
    then: Literal["report", "fix"] | None = None


class NudgeCommand(msgspec.Struct, frozen=True):
    """Switch it; None: show how it stands. `odd` is what was typed and is neither on nor off."""

    on: bool | None = None
    odd: str = ""


class ExplainCommand(msgspec.Struct, frozen=True):
    """Explain a reference, which may be empty."""

    reference: str = ""


class ContinueCommand(msgspec.Struct, frozen=True):
    """Go on with an earlier session: the one whose id begins like this; empty: the last one."""

    id: str = ""


class PlainCommand(msgspec.Struct, frozen=True):
    """A command that takes nothing."""

    name: PlainName


class EngineCommand(msgspec.Struct, frozen=True):
    """A command for one engine, as it is told."""

    engine: str
    text: str


OwnAction: TypeAlias = (
    RouteCommand | ReviewCommand | NudgeCommand | ExplainCommand | ContinueCommand | PlainCommand | EngineCommand
)


class TypedCommand(msgspec.Struct, frozen=True):
    """What was typed: the word, and what is meant."""

    name: str
    asked: OwnAction


def reserved() -> frozenset[str]:
    """The words that no engine may be called by."""
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
    """Our command that a prompt begins with; None if it is none of ours. `engines` are the short names of a session's engines.

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
