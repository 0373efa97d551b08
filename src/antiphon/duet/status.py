"""What `/help`, `/status`, `/version` and `/sessions` answer, as Markdown. The texts are pure; `about` gathers what they need."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from antiphon import __version__
from antiphon.catalogue.programs import CLAUDE, CODEX
from antiphon.duet.commands import offered
from antiphon.duet.limits import Spent
from antiphon.duet.session_list import list_sessions
from antiphon.engines.cli_program import ask_version, find_cli, known_version
from antiphon.errors import AcpError, Advice
from antiphon.protocol import v1
from antiphon.store.sessions import EngineSessionStore
from antiphon.text import one_line, prose

if TYPE_CHECKING:
    from antiphon.duet.session import JointSession
    from antiphon.engines.base import Engine

__all__ = [
    "EngineStatus",
    "JointStatus",
    "SessionLine",
    "about",
    "help_text",
    "sessions_text",
    "status_text",
    "version_text",
]

SESSIONS: Final = 20
"""Sessions that `/sessions` lists, the newest first."""

TITLE: Final = 60
"""Letters of a title in a list."""


class EngineStatus(msgspec.Struct, frozen=True):
    """The status of an engine in the session. An empty field is not known, or not yet."""

    name: str
    title: str
    version: str = ""
    session_id: str = ""
    """The id of the engine session, by which it can be opened in a terminal."""
    mode: str = ""
    model: str = ""
    problem: Advice | None = None
    """Why it is not there."""


class JointStatus(msgspec.Struct, frozen=True):
    """How a joint session stands."""

    session_id: str
    route: str
    primary: str
    engines: Sequence[EngineStatus]
    title: str = ""
    review: str = "report"
    auto_resume: bool = True
    nudge: bool = True
    nudges: int = 0
    """How often the engines went on by themselves since the last prompt of the user."""
    max_nudges: int | None = None
    spent: Spent = Spent()
    """What the last prompt used."""
    max_turns: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None


class SessionLine(msgspec.Struct, frozen=True):
    """A session in a list."""

    id: str
    when: str
    """The time as people read it."""
    title: str = ""
    engine: str = ""
    current: bool = False
    script: bool = False
    """Whether a script made it."""


def help_text(ours: Sequence[v1.Command], per_engine: Mapping[str, Sequence[v1.Command]] | None = None) -> str:
    """Our commands, and how many each engine (by its title) has."""
    rows = [(_code(f"/{command.name}{_hint(command)}"), _cell(command.description)) for command in ours]
    parts = [_table(("command", "what it does"), rows)]
    if counted := {title: len(commands) for title, commands in (per_engine or {}).items() if commands}:
        listed = ", ".join(f"{_cell(title)} has {_many(count, 'command')}" for title, count in counted.items())
        parts.append(f"Everything else goes to the engine: {listed}. `/ENGINE:COMMAND` reaches one that ours hides.")
    else:
        parts.append("Everything else goes to the engine. `/ENGINE:COMMAND` reaches a command that ours hides.")
    return "\n\n".join(parts)


def status_text(state: JointStatus) -> str:
    """Everything about a session."""
    several = len([engine for engine in state.engines if not engine.problem]) > 1
    rows = [("session", _code(state.session_id)), ("title", _cell(state.title))]
    rows.append(("route", _code(state.route)))
    if several:
        rows += [("primary", _code(state.primary)), ("review", _code(state.review))]
    rows.append(("auto-resume", _on(state.auto_resume)))
    most = f" of {state.max_nudges}" if state.max_nudges is not None else ""
    used = f" ({state.nudges}{most} since your last prompt)" if state.nudge and state.nudges else ""
    rows += [("nudge", f"{_on(state.nudge)}{used}"), ("last prompt", _spent(state))]
    engines = [
        (_cell(each.title), _cell(each.version), _code(each.session_id), _cell(each.mode), _cell(each.model))
        for each in state.engines
        if not each.problem
    ]
    parts = [
        _table(("", ""), [row for row in rows if row[1]]),
        _table(("engine", "version", "engine session", "mode", "model"), engines),
    ]
    parts += [
        f"{_cell(each.title)} is not available: {_sentence(each.problem)}" for each in state.engines if each.problem
    ]
    return "\n\n".join(part for part in parts if part)


def version_text(antiphon: str, engines: Sequence[EngineStatus]) -> str:
    """Our version and those of the engines."""
    lines = [f"- Antiphon {_cell(antiphon)}"]
    for engine in engines:
        if engine.problem:
            lines.append(f"- {_cell(engine.title)}: {_sentence(engine.problem)}")
        else:
            lines.append(f"- {_cell(engine.title)} {_cell(engine.version) or '(not started yet)'}")
    return "\n".join(lines)


def sessions_text(sessions: Sequence[SessionLine]) -> str:
    """The sessions there are, the newest first as they are given."""
    if not sessions:
        return "There are no other sessions in this directory."
    rows = [
        (
            _cell(each.when),
            _short(each.title) + (" (this one)" if each.current else " (script)" if each.script else ""),
            _cell(each.engine),
            _code(each.id),
        )
        for each in sessions[:SESSIONS]
    ]
    table = _table(("when", "title", "engine", "id"), rows)
    more = len(sessions) - SESSIONS
    return f"{table}\n\nand {more} more: `antiphon sessions list`" if more > 0 else table


def _spent(state: JointStatus) -> str:
    spent = state.spent
    pieces = [
        _many(spent.turns, "turn") + (f" of {state.max_turns}" if state.max_turns is not None else ""),
        _many(spent.tokens, "token") + (f" of {state.max_tokens:,}" if state.max_tokens is not None else ""),
    ]
    if spent.cost or state.max_cost is not None:
        pieces.append(f"${spent.cost:.2f}" + (f" of ${state.max_cost:.2f}" if state.max_cost is not None else ""))
    return ", ".join(pieces)


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _on(switch: bool) -> str:
    return "on" if switch else "off"


def _hint(command: v1.Command) -> str:
    return "" if command.input is None else f" [{command.input.hint}]"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    """A text as one line in a cell of a table, without markup."""
    line = " ".join(prose(text).split())
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", line)


def _code(text: str) -> str:
    """A text to be copied, as code."""
    line = " ".join(prose(text).split()).replace("`", "'").replace("|", "\\|")
    return f"`{line}`" if line else ""


def _short(title: str) -> str:
    line = " ".join(title.split())
    return _cell(line if len(line) <= TITLE else line[: TITLE - 1].rstrip() + "…")


def _sentence(problem: Advice) -> str:
    """Return an error with its hint on one line. Its backticks stay: commands to be copied stand in them."""
    return one_line("; ".join(filter(None, problem)))


_DRIVEN = {cli.name: cli for cli in (CLAUDE, CODEX)}


async def about(joint: "JointSession", what: Literal["help", "sessions", "status", "version"]) -> str:
    """The answer to one of our commands."""
    settings, engine_sessions = joint.settings, joint.engine_sessions
    match what:
        case "help":
            theirs = {settings.titles[name]: commands for name, commands in engine_sessions.commands().items()}
            return help_text(offered(settings.titles), theirs)
        case "sessions":
            return sessions_text(await _sessions(joint))
        case "status":
            return status_text(await _status(joint))
        case "version":
            return version_text(__version__, [await _engine(joint, name) for name in settings.engines])


async def _status(joint: "JointSession") -> JointStatus:
    settings, nudges, outer, store = joint.settings, joint.nudges, joint.outer, joint.store
    absent, budget = joint.absent, joint.budget
    row = await store.get(outer.id)
    limits = settings.preferences
    return JointStatus(
        outer.id,
        settings.route,
        settings.primary,
        [
            *[await _engine(joint, name) for name in settings.engines],
            *(EngineStatus(name, name, problem=why) for name, why in absent.items()),
        ],
        title=(row.title or "") if row is not None else "",
        review=settings.review,
        auto_resume=settings.auto_resume,
        nudge=settings.nudge,
        nudges=nudges.count,
        max_nudges=nudges.maximum,
        spent=budget.spent if budget is not None else Spent(),
        max_turns=limits.max_turns,
        max_tokens=limits.max_tokens,
        max_cost=limits.max_cost,
    )


async def _engine(joint: "JointSession", name: str) -> EngineStatus:
    settings, engine_sessions = joint.settings, joint.engine_sessions
    inner = engine_sessions.opened.get(name)
    models = inner.models if inner is not None else None
    try:
        version, problem = await _version(settings.engines[name], name), None
    except AcpError as error:
        version, problem = "", error.advice
    return EngineStatus(
        name,
        settings.titles[name],
        version,
        settings.of(name).session_id,
        inner.mode if inner is not None else "",
        models.current_model_id if models is not None else "",
        problem,
    )


async def _version(engine: "Engine", name: str) -> str:
    """The version of the CLI that an engine drives; of one that drives none, its own."""
    if name not in _DRIVEN:
        return engine.version
    found = find_cli(_DRIVEN[name])
    return known_version(found) or await asyncio.to_thread(ask_version, found) or ""


async def _sessions(joint: "JointSession") -> list[SessionLine]:
    outer, store, settings = joint.outer, joint.store, joint.settings
    known = await EngineSessionStore(store.database).engine_sessions()
    page = await list_sessions(v1.ListSessions(outer.cwd), settings.engines, store, known)
    return [
        SessionLine(
            row.session_id,
            _when(row.updated_at),
            row.title or "",
            str(_marks(row).get("engine", "")),
            row.session_id == outer.id,
            _marks(row).get("script") is True,
        )
        for row in page.sessions
    ]


def _marks(row: v1.SessionInfo) -> dict[str, Any]:
    ours = (row.meta or {}).get("antiphon")
    return ours if isinstance(ours, dict) else {}


def _when(at: str | None) -> str:
    try:
        return datetime.fromisoformat(at or "").astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return ""
