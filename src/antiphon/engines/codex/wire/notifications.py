"""What the server tells unasked, as far as somebody here wants to know. The table says which method has which parameters."""

from typing import Any, Final, TypeAlias

import msgspec

from antiphon.engines.codex.wire.items import FileUpdate, Item, OfThread, Part
from antiphon.protocol.base import Items

__all__ = [
    "NOTIFICATIONS",
    "AuthRecovery",
    "ChangesUpdated",
    "ConfigWarning",
    "Delta",
    "DeprecationNotice",
    "ErrorFacts",
    "ErrorTold",
    "Goal",
    "GoalUpdated",
    "HookCompleted",
    "HookEntry",
    "HookRun",
    "ItemTold",
    "McpLogin",
    "McpStartup",
    "ModelRerouted",
    "ModelVerified",
    "NameUpdated",
    "Notification",
    "PartDelta",
    "Place",
    "PlanStep",
    "PlanUpdated",
    "Progress",
    "RateLimitWindow",
    "RateLimits",
    "RateLimitsUpdated",
    "Resolved",
    "Review",
    "ReviewCompleted",
    "SafetyBuffering",
    "SettingsUpdated",
    "Span",
    "StatusChanged",
    "TerminalInput",
    "Thread",
    "ThreadSettings",
    "ThreadStarted",
    "ThreadStatus",
    "ThreadTold",
    "TokenCount",
    "TokenUsage",
    "TokensUpdated",
    "Turn",
    "TurnError",
    "TurnTold",
    "Warned",
    "WorldWritable",
]

# Threads, their turns, and how a turn fails.


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


# Notifications that only say something to the user.


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


class ItemTold(OfThread, frozen=True, kw_only=True):
    """An item starts, or is complete."""

    item: Item


class Delta(OfThread, frozen=True, kw_only=True):
    """More of an item's text or of a command's output."""

    item_id: str
    delta: str = ""


class PartDelta(OfThread, frozen=True, kw_only=True):
    """More of one of the parts of a thought."""

    item_id: str
    delta: str = ""
    summary_index: int = 0
    content_index: int = 0


class TerminalInput(OfThread, frozen=True, kw_only=True):
    """Something was typed into a running command."""

    item_id: str
    stdin: str = ""


class ChangesUpdated(OfThread, frozen=True, kw_only=True):
    """A change to files looks different now."""

    item_id: str
    changes: Items[FileUpdate] = msgspec.field(default_factory=list)


class Progress(OfThread, frozen=True, kw_only=True):
    """How far a server's tool is, in its own words."""

    item_id: str
    message: str = ""


class TurnTold(OfThread, frozen=True, kw_only=True):
    """A turn starts, or is over."""

    turn: Turn


class ErrorTold(OfThread, frozen=True, kw_only=True):
    """Something went wrong; with `will_retry` Codex tries again."""

    error: TurnError
    will_retry: bool = False


class PlanStep(Part, frozen=True):
    """One thing to do."""

    step: str = ""
    status: str = "pending"


class PlanUpdated(OfThread, frozen=True, kw_only=True):
    """The whole plan, as it is now."""

    plan: Items[PlanStep] = msgspec.field(default_factory=list)
    explanation: str | None = None


class TokenCount(Part, frozen=True):
    """Tokens; those read from the cache are among the input, those thought among the output."""

    total_tokens: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0


class TokenUsage(Part, frozen=True):
    """Tokens of the thread so far, and of the last request."""

    total: TokenCount = TokenCount()
    last: TokenCount = TokenCount()
    model_context_window: int | None = None


class TokensUpdated(OfThread, frozen=True, kw_only=True):
    """The model has answered a request, and this is what it took."""

    token_usage: TokenUsage


class RateLimitWindow(Part, frozen=True):
    """A span of time in which only so much may be used. `resets_at` is in seconds since 1970."""

    used_percent: float = 0
    resets_at: int | None = None
    window_duration_mins: int | None = None


class RateLimits(Part, frozen=True):
    """How much of an account's limits is used."""

    primary: RateLimitWindow | None = None
    secondary: RateLimitWindow | None = None
    rate_limit_reached_type: str | None = None
    limit_id: str | None = None
    plan_type: str | None = None


class RateLimitsUpdated(OfThread, frozen=True, kw_only=True):
    """The limits, as they are now."""

    rate_limits: RateLimits


class NameUpdated(OfThread, frozen=True, kw_only=True):
    """The thread has another name."""

    thread_name: str | None = None


class ThreadStarted(Part, frozen=True):
    """A thread is there."""

    thread: Thread

    @property
    def thread_id(self) -> str | None:
        """Which one."""
        return self.thread.id


class StatusChanged(OfThread, frozen=True, kw_only=True):
    """What a thread is busy with."""

    status: ThreadStatus = ThreadStatus()


class ThreadSettings(Part, frozen=True):
    """How a thread is set up. Policies are a word or an object."""

    model: str | None = None
    model_provider: str | None = None
    effort: str | None = None
    summary: str | None = None
    cwd: str | None = None
    approval_policy: Any = None
    sandbox_policy: Any = None
    collaboration_mode: Any = None


class SettingsUpdated(OfThread, frozen=True, kw_only=True):
    """A thread is set up in another way."""

    thread_settings: ThreadSettings


class Resolved(OfThread, frozen=True, kw_only=True):
    """A question of the server needs no answer any more."""

    request_id: int | str


class ThreadTold(OfThread, frozen=True, kw_only=True):
    """Something happened to a thread or in it; the method says what."""


Notification: TypeAlias = (
    Delta
    | PartDelta
    | ItemTold
    | TurnTold
    | ErrorTold
    | PlanUpdated
    | TokensUpdated
    | RateLimitsUpdated
    | NameUpdated
    | ThreadStarted
    | StatusChanged
    | SettingsUpdated
    | Resolved
    | ThreadTold
    | TerminalInput
    | ChangesUpdated
    | Progress
    | AuthRecovery
    | ConfigWarning
    | DeprecationNotice
    | GoalUpdated
    | HookCompleted
    | McpLogin
    | McpStartup
    | ModelRerouted
    | ModelVerified
    | ReviewCompleted
    | SafetyBuffering
    | Warned
    | WorldWritable
)

NOTIFICATIONS: Final[dict[str, type[Part]]] = {
    "item/agentMessage/delta": Delta, "item/plan/delta": Delta, "item/commandExecution/outputDelta": Delta,
    "item/reasoning/summaryTextDelta": PartDelta, "item/reasoning/textDelta": PartDelta,
    "item/commandExecution/terminalInteraction": TerminalInput,
    "item/fileChange/patchUpdated": ChangesUpdated, "item/mcpToolCall/progress": Progress,
    "item/started": ItemTold, "item/completed": ItemTold,
    "turn/started": TurnTold, "turn/completed": TurnTold, "turn/plan/updated": PlanUpdated, "error": ErrorTold,
    "thread/started": ThreadStarted, "thread/status/changed": StatusChanged, "thread/name/updated": NameUpdated,
    "thread/settings/updated": SettingsUpdated, "thread/tokenUsage/updated": TokensUpdated, "thread/compacted": ThreadTold,
    "thread/closed": ThreadTold, "thread/deleted": ThreadTold, "thread/archived": ThreadTold, "thread/reverted": ThreadTold,
    "thread/goal/updated": GoalUpdated, "account/rateLimits/updated": RateLimitsUpdated, "serverRequest/resolved": Resolved,
    "autoApprovalReview/strictReviewRequired": ThreadTold, "item/autoApprovalReview/completed": ReviewCompleted,
    "hook/completed": HookCompleted, "mcpServer/startupStatus/updated": McpStartup, "mcpServer/oauthLogin/completed": McpLogin,
    "model/rerouted": ModelRerouted, "model/verification": ModelVerified, "model/safetyBuffering/updated": SafetyBuffering,
    "modelProvider/authRecoveryStarted": AuthRecovery, "modelProvider/authRecoveryCompleted": AuthRecovery,
    "warning": Warned, "guardianWarning": Warned, "configWarning": ConfigWarning, "deprecationNotice": DeprecationNotice,
    "windows/worldWritableWarning": WorldWritable,
}  # fmt: skip
