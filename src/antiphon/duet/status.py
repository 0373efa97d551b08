"""What our own commands tell about a session: gathered here, written as markdown by `telling_state`."""

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from antiphon import __version__
from antiphon.catalogue.programs import CLAUDE, CODEX
from antiphon.duet.budget import Spent
from antiphon.duet.commands import offered
from antiphon.duet.listing import list_sessions
from antiphon.duet.telling_state import (
    EngineStatus,
    JointStatus,
    SessionLine,
    help_text,
    sessions_text,
    status_text,
    version_text,
)
from antiphon.engines.finding import ask_version, find_cli, known_version
from antiphon.errors import AcpError
from antiphon.protocol import v1
from antiphon.store.conversations import ConversationStore

if TYPE_CHECKING:
    from antiphon.duet.joint import JointSession

__all__ = ["about"]

_DRIVEN = {cli.name: cli for cli in (CLAUDE, CODEX)}


async def about(joint: "JointSession", what: Literal["help", "sessions", "status", "version"]) -> str:
    """The answer to one of our commands."""
    match what:
        case "help":
            theirs = {part.title: part.offered for part in joint.cast.parts.values()}
            return help_text(offered(joint.standing.titles), theirs)
        case "sessions":
            return sessions_text(await _sessions(joint))
        case "status":
            return status_text(await _status(joint))
        case "version":
            return version_text(__version__, [await _engine(joint, name) for name in joint.cast.engines])


async def _status(joint: "JointSession") -> JointStatus:
    row = await joint.store.get(joint.outer.id)
    wishes, state, nudging = joint.wishes, joint.state, joint.nudging
    return JointStatus(
        joint.outer.id,
        state.route,
        joint.primary,
        [
            *[await _engine(joint, name) for name in joint.cast.engines],
            *(EngineStatus(name, name, problem=why) for name, why in joint.absent.items()),
        ],
        title=(row.title or "") if row is not None else "",
        review=state.review,
        auto_resume=joint.auto_resume,
        nudge=nudging.enabled,
        nudges=nudging.count,
        max_nudges=nudging.maximum,
        spent=joint.budget.spent if joint.budget is not None else Spent(),
        max_turns=wishes.max_turns,
        max_tokens=wishes.max_tokens,
        max_cost=wishes.max_cost,
    )


async def _engine(joint: "JointSession", name: str) -> EngineStatus:
    part = joint.cast.parts.get(name)
    modes = part.modes if part is not None else None
    models = part.models if part is not None else None
    try:
        version, problem = await _version(joint, name), None
    except AcpError as error:
        version, problem = "", error.advice
    return EngineStatus(
        name,
        joint.cast.title(name),
        version,
        joint.state.of(name).conversation,
        modes.current_mode_id if modes is not None else "",
        models.current_model_id if models is not None else "",
        problem,
    )


async def _version(joint: "JointSession", name: str) -> str:
    """The version of the program that an engine drives; of one that drives none, its own."""
    if name not in _DRIVEN:
        return joint.cast.engines[name].version
    found = find_cli(_DRIVEN[name])
    return known_version(found) or await asyncio.to_thread(ask_version, found) or ""


async def _sessions(joint: "JointSession") -> list[SessionLine]:
    known = await ConversationStore(joint.store.database).conversations()
    page = await list_sessions(v1.ListSessions(joint.outer.cwd), joint.cast.engines, joint.store, known)
    return [
        SessionLine(
            row.session_id,
            _when(row.updated_at),
            row.title or "",
            str(_marks(row).get("engine", "")),
            row.session_id == joint.outer.id,
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
