"""Notifications that only say something to the user."""

from typing import Any

import msgspec

from antiphon.engines.codex.wire.base import OfThread, Part
from antiphon.protocol.base import Items

__all__ = [
    "AuthRecovery", "ConfigWarning", "DeprecationNotice", "Goal", "GoalUpdated", "HookCompleted", "HookEntry", "HookRun", "McpLogin",
    "McpStartup", "ModelRerouted", "ModelVerified", "Place", "Review", "ReviewCompleted", "SafetyBuffering", "Span", "Warned",
    "WorldWritable",
]  # fmt: skip


class Warned(OfThread, frozen=True, kw_only=True):
    """A warning."""

    message: str = ""


class Place(Part, frozen=True):
    """A place in a file, from 1."""

    line: int = 0
    column: int = 0


class Span(Part, frozen=True):
    """From here to there."""

    start: Place = Place()


class ConfigWarning(OfThread, frozen=True, kw_only=True):
    """Something is wrong with the configuration."""

    summary: str = ""
    details: str | None = None
    path: str | None = None
    range: Span | None = None


class DeprecationNotice(OfThread, frozen=True, kw_only=True):
    """Something will not work for long any more."""

    summary: str = ""
    details: str | None = None


class ModelRerouted(OfThread, frozen=True, kw_only=True):
    """Another model answers than the one that was asked for."""

    from_model: str = ""
    to_model: str = ""
    reason: str = ""


class ModelVerified(OfThread, frozen=True, kw_only=True):
    """The account was checked before a model answered."""

    verifications: Items[str] = msgspec.field(default_factory=list)


class SafetyBuffering(OfThread, frozen=True, kw_only=True):
    """The answer is held back until it is checked."""

    model: str = ""
    faster_model: str | None = None
    reasons: Items[str] = msgspec.field(default_factory=list)
    show_buffering_ui: bool = False


class AuthRecovery(OfThread, frozen=True, kw_only=True):
    """A provider's sign-in is being renewed."""

    message: str = ""
    provider: str = ""


class McpStartup(OfThread, frozen=True, kw_only=True):
    """An MCP server is `starting`, `ready`, `failed` or `cancelled`."""

    name: str = ""
    status: str = ""
    error: str | None = None
    failure_reason: str | None = None


class McpLogin(OfThread, frozen=True, kw_only=True):
    """A sign-in at an MCP server is over."""

    name: str = ""
    success: bool = False
    error: str | None = None


class HookEntry(Part, frozen=True):
    """Something that a hook said: `warning`, `stop`, `feedback`, `context` or `error`."""

    kind: str = ""
    text: str = ""


class HookRun(Part, frozen=True):
    """One run of a hook: `running`, `completed`, `failed`, `blocked` or `stopped`."""

    event_name: str = ""
    status: str = ""
    status_message: str | None = None
    source_path: str | None = None
    entries: Items[HookEntry] = msgspec.field(default_factory=list)


class HookCompleted(OfThread, frozen=True, kw_only=True):
    """A hook has run."""

    run: HookRun = HookRun()


class Review(Part, frozen=True):
    """What the automatic reviewer thinks of an action: `approved`, `denied`, `timedOut` or `aborted`."""

    status: str = ""
    rationale: str | None = None
    risk_level: str | None = None


class ReviewCompleted(OfThread, frozen=True, kw_only=True):
    """The automatic reviewer has decided; the action is an object whose `type` tells its fields."""

    review: Review = Review()
    review_id: str = ""
    target_item_id: str | None = None
    action: Any = None


class Goal(Part, frozen=True):
    """What a thread works towards."""

    objective: str = ""
    status: str = ""


class GoalUpdated(OfThread, frozen=True, kw_only=True):
    """A goal was set, or it stands differently."""

    goal: Goal = Goal()


class WorldWritable(OfThread, frozen=True, kw_only=True):
    """Folders on Windows that everybody may write to, which the sandbox cannot protect."""

    sample_paths: Items[str] = msgspec.field(default_factory=list)
    extra_count: int = 0
    failed_scan: bool = False
