"""Answers of the server to what we ask, as far as they are read here."""

from typing import Any

import msgspec

from antiphon.engines.codex.wire.base import Part
from antiphon.engines.codex.wire.turns import Thread, Turn
from antiphon.protocol.base import Items

__all__ = [
    "Account",
    "AccountRead",
    "Effort",
    "Model",
    "ModelPage",
    "ThreadOpened",
    "ThreadPage",
    "TurnBegun",
    "TurnPage",
]


class ThreadOpened(Part, frozen=True):
    """A thread was started, resumed, forked or read, and how it is set up."""

    thread: Thread
    model: str | None = None
    model_provider: str | None = None
    reasoning_effort: str | None = None
    cwd: str | None = None
    approval_policy: Any = None
    sandbox: Any = None
    collaboration_mode: Any = None


class ThreadPage(Part, frozen=True):
    """Some of the threads."""

    data: Items[Thread] = msgspec.field(default_factory=list)
    next_cursor: str | None = None


class TurnPage(Part, frozen=True):
    """Some of a thread's turns."""

    data: Items[Turn] = msgspec.field(default_factory=list)
    next_cursor: str | None = None


class TurnBegun(Part, frozen=True):
    """A turn begins, or the running one has taken in what was said."""

    turn: Turn | None = None
    turn_id: str | None = None


class Effort(Part, frozen=True):
    """How hard a model may think."""

    reasoning_effort: str
    description: str = ""


class Model(Part, frozen=True):
    """A model on offer."""

    id: str
    model: str = ""
    display_name: str = ""
    description: str = ""
    hidden: bool = False
    is_default: bool = False
    default_reasoning_effort: str | None = None
    supported_reasoning_efforts: Items[Effort] = msgspec.field(default_factory=list)
    input_modalities: Items[str] = msgspec.field(default_factory=list)


class ModelPage(Part, frozen=True):
    """Some of the models."""

    data: Items[Model] = msgspec.field(default_factory=list)
    next_cursor: str | None = None


class Account(Part, frozen=True):
    """Who is signed in, and how."""

    type: str = ""
    email: str | None = None
    plan_type: str | None = None


class AccountRead(Part, frozen=True):
    """Nobody is signed in where there is no account; whether anybody must be is the other half."""

    account: Account | None = None
    requires_openai_auth: bool = False
