"""The session that `--continue` means: the one that was used last in this directory, here or in an editor.

The agent's own list says when each was used last, and we note when we open and leave one: the later of the two counts. So a session that
was only looked at is gone on with, too, and one that an editor has used since comes before it.
"""

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from antiphon.errors import Advice, AuthRequired, RequestRefused
from antiphon.store.sessions import NameStore

if TYPE_CHECKING:
    from antiphon.client.launch import RunningAgent
    from antiphon.protocol import v1

__all__ = ["last_used"]

LOOKED_AT: Final = 100
"""Sessions of a list that are looked at: agents tell the newest first, or have few."""

_BEFORE: Final = datetime.min.replace(tzinfo=UTC)


async def last_used(running: "RunningAgent") -> list[str]:
    """The ids of the sessions to try, the likeliest first; none if there is nothing to continue."""
    ours = await NameStore(running.database).last(running.name, running.cwd)
    listed = await _listed(running)
    if not listed:
        return [] if ours is None else [ours.session_id]
    newest = max(listed, key=lambda info: _time(info.updated_at))  # the first, in a list without times
    if ours is None:
        return [newest.session_id]
    if _time(ours.used_at) < _time(newest.updated_at):
        return [newest.session_id]
    # One in which nothing was said is not listed, and may be gone.
    return list(dict.fromkeys((ours.session_id, newest.session_id)))


async def _listed(running: "RunningAgent") -> "list[v1.SessionInfo]":
    """The agent's sessions in this directory."""
    if running.agent.capabilities.session_capabilities.list is None:
        return []
    here = _spellings(running.cwd)
    found: list[v1.SessionInfo] = []
    try:
        async for info in running.agent.list_sessions(running.cwd):
            if info.cwd in here:  # some agents list all that they have
                found.append(info)
            if len(found) == LOOKED_AT:
                break
    except AuthRequired:
        raise
    except RequestRefused as error:
        running.warn(Advice(f"{running.agent.name} does not tell its sessions: {error.reason}"))
    return found


def _spellings(directory: str) -> set[str]:
    """The names that an agent may have for it."""
    return {directory, os.path.realpath(directory)}


def _time(text: str | None) -> datetime:
    try:
        at = datetime.fromisoformat(text or "")
    except ValueError:
        return _BEFORE
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
