"""Threads, their turns, and how a turn fails."""

from typing import Any

import msgspec

from antiphon.engines.codex.wire.base import Part
from antiphon.engines.codex.wire.items import Item
from antiphon.protocol.base import Items

__all__ = ["ErrorFacts", "Thread", "ThreadStatus", "Turn", "TurnError"]


class ErrorFacts(Part, frozen=True):
    """What is known about an error beside its name."""

    http_status_code: int | None = None
    turn_kind: str | None = None


class TurnError(Part, frozen=True):
    """Why a turn failed. `codex_error_info` is a name, or an object with one member that has the name."""

    message: str = ""
    codex_error_info: str | dict[str, ErrorFacts | None] | None = None
    additional_details: str | None = None


class Turn(Part, frozen=True):
    """One turn: `inProgress`, `completed`, `interrupted` or `failed`. How many of its items are told is another matter."""

    id: str
    status: str = "inProgress"
    items: Items[Item] = msgspec.field(default_factory=list)
    items_view: str = "full"
    error: TurnError | None = None
    started_at: int | None = None
    completed_at: int | None = None


class ThreadStatus(Part, frozen=True):
    """`notLoaded`, `idle`, `systemError` or `active`."""

    type: str = "idle"
    active_flags: Items[str] = msgspec.field(default_factory=list)


class Thread(Part, frozen=True):
    """A conversation, as lists and answers have it."""

    id: str
    name: str | None = None
    preview: str = ""
    cwd: str | None = None
    path: str | None = None
    model: str | None = None
    model_provider: str | None = None
    created_at: int | None = None
    updated_at: int | None = None
    ephemeral: bool = False
    source: Any = None
    status: ThreadStatus | None = None
    forked_from_id: str | None = None
    parent_thread_id: str | None = None
    history_mode: str | None = None
    turns: Items[Turn] = msgspec.field(default_factory=list)
