"""The preferences of the joint agent: from the environment first, then the config files, then the defaults. Pure.

A value that makes no sense is left out and reported, and the next source counts: no session fails for a misspelt variable.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from antiphon.config.environment import AUTO_RESUME
from antiphon.config.shapes import NAME, REVIEWS, Settings
from antiphon.errors import Advice

__all__ = [
    "DUET",
    "JOINT_ROUTES",
    "PRIMARY",
    "REVIEW",
    "REVIEWS",
    "ROUTE",
    "TASKS",
    "DuetPreferences",
    "Review",
    "StartRoute",
    "preferences",
    "start_route",
]  # fmt: skip

ROUTE: Final = "ANTIPHON_ROUTE"
PRIMARY: Final = "ANTIPHON_PRIMARY_AGENT"
"""The variables, besides `AUTO_RESUME`. Each has a second name that begins with `BANJO_`, for users who come from there."""

TASKS_PROGRAM: Final = "DOT_EXECUTABLE"
"""The variable that names another `dot`."""

TASKS: Final = ("dot", "ls", "--json")
"""What lists the tasks that are left, unless the user's config file names another."""

DUET: Final = "duet"
REVIEW: Final = "review"
JOINT_ROUTES: Final = (DUET, REVIEW)
"""The routes that need two engines. Every other route is an engine's name."""

_OFF: Final = ("false", "0", "no", "off")
_ON: Final = ("true", "1", "yes", "on")

Review: TypeAlias = Literal["report", "fix"]


class DuetPreferences(msgspec.Struct, frozen=True):
    """The preferences of the user. Whether the engines are there is not known here: see `start_route`."""

    engines: tuple[str, ...] = ()
    """Names or command lines, the preferred first. Empty: those that are installed."""
    route: str | None = None
    primary: str | None = None
    auto_resume: bool = True
    review: Review = "report"
    review_rounds: int = 2
    max_turns: int = 20
    max_tokens: int | None = None
    max_cost: float | None = None
    """The limit in US dollars."""
    tasks: tuple[str, ...] = TASKS
    nudge: bool = True
    nudge_cooldown: float = 30.0
    nudge_max: int = 5
    problems: tuple[Advice, ...] = ()
    """Values that were ignored because they make no sense: a sentence each, with a hint."""


class StartRoute(msgspec.Struct, frozen=True):
    """The route and the primary engine of a new session."""

    route: str
    primary: str
    problems: tuple[Advice, ...] = ()


def preferences(settings: Settings, environ: Mapping[str, str]) -> DuetPreferences:
    """Read the preferences from the environment and the config files."""
    value = settings.duet
    problems: list[Advice] = []
    found = {
        "route": _name(environ, ROUTE, "a route", problems) or value.route,
        "primary": _name(environ, PRIMARY, "an engine", problems) or value.primary,
        "auto_resume": _switch(environ, AUTO_RESUME, problems),
        "tasks": value.tasks or _with_program(environ, problems),
    }
    rest = msgspec.structs.asdict(value)
    settled = {name: rest[name] if value is None else value for name, value in {**rest, **found}.items()}
    return DuetPreferences(
        **{name: value for name, value in settled.items() if value is not None}, problems=tuple(problems)
    )


def start_route(wanted: DuetPreferences, engines: Sequence[str]) -> StartRoute:
    """Route and primary of a new session over these engines (at least one): the wanted ones, as far as they exist."""
    first = engines[0]
    problems: list[Advice] = []
    listed = ", ".join(f"`{each}`" for each in engines)
    route, primary = wanted.route or first, wanted.primary or first
    if primary not in engines:
        problems.append(
            Advice(f"There is no engine `{primary}` here to lead, so `{first}` does", f"there are {listed}")
        )
        primary = first
    if route in JOINT_ROUTES and len(engines) < 2:
        why = f"The route `{route}` needs two engines, so `{first}` answers alone"
        problems.append(Advice(why, "`antiphon doctor` shows how to get another one"))
        route = first
    elif route not in engines and route not in JOINT_ROUTES:
        both = ", `duet` and `review`" if len(engines) > 1 else ""
        problems.append(Advice(f"There is no route `{route}` here, so `{first}` answers", f"there are {listed}{both}"))
        route = first
    return StartRoute(route, primary, tuple(problems))


def _variable_set(environ: Mapping[str, str], variable: str) -> tuple[str, str] | None:
    """The variable that is set, and its value. An empty one counts as unset."""
    for name in (variable, variable.replace("ANTIPHON_", "BANJO_", 1)):
        if value := environ.get(name, "").strip():
            return name, value
    return None


def _name(environ: Mapping[str, str], variable: str, what: str, problems: list[Advice]) -> str | None:
    value = _variable_set(environ, variable)
    if value is None or NAME.fullmatch(value[1]):
        return None if value is None else value[1]
    why = f"{value[0]} is {value[1][:80]!a}, which is not a name of {what}"
    problems.append(Advice(why, "letters, digits, `-`, `_` and `.`"))
    return None


def _switch(environ: Mapping[str, str], variable: str, problems: list[Advice]) -> bool | None:
    value = _variable_set(environ, variable)
    if value is None or value[1].lower() in (*_OFF, *_ON):
        return None if value is None else value[1].lower() in _ON
    problems.append(Advice(f"{value[0]} is {value[1][:80]!a}, which is neither on nor off", "true or false"))
    return None


def _with_program(environ: Mapping[str, str], problems: list[Advice]) -> tuple[str, ...]:
    program = os.path.expanduser(environ.get(TASKS_PROGRAM, "").strip())
    if not program:
        return TASKS
    # A relative path would mean something else wherever we are started.
    if "\0" in program or ("/" in program and not program.startswith("/")):
        why = f"{TASKS_PROGRAM} is {program[:80]!a}, which is not a program"
        problems.append(Advice(why, "a program's name or its whole path"))
        return TASKS
    return (program, *TASKS[1:])
