"""Notifications of the server, as far as the engine reads them. A table has the parameters of each method."""

from typing import Final, TypeAlias

import msgspec

from antiphon.engines.codex.wire.items import CodexStruct, FileUpdate, Item, ThreadStruct
from antiphon.protocol.base import Items

__all__ = [
    "NOTIFICATIONS",
    "AuthRecovery",
    "ChangesUpdated",
    "CodexPlanStep",
    "CodexTurn",
    "ConfigWarning",
    "Delta",
    "DeprecationNotice",
    "ErrorFacts",
    "ErrorNotification",
    "Goal",
    "GoalUpdated",
    "HookCompleted",
    "HookEntry",
    "HookRun",
    "ItemNotification",
    "McpLogin",
    "McpStartup",
    "ModelRerouted",
    "ModelVerified",
    "NameUpdated",
    "Notification",
    "PartDelta",
    "PlanUpdated",
    "Progress",
    "RateLimitWindow",
    "RateLimits",
    "RateLimitsUpdated",
    "RequestResolved",
    "ReviewCompleted",
    "ReviewVerdict",
    "SafetyBuffering",
    "SettingsUpdated",
    "StatusChanged",
    "TerminalInput",
    "TextPosition",
    "TextRange",
    "Thread",
    "ThreadNotification",
    "ThreadSettings",
    "ThreadStarted",
    "ThreadStatus",
    "TokenCount",
    "TokenUsage",
    "TokensUpdated",
    "TurnError",
    "TurnNotification",
    "WarningNotification",
    "WorldWritable",
]

# Threads, their turns, and how a turn fails.


class ErrorFacts(CodexStruct, frozen=True):
    """What is known about an error beside its name."""

    http_status_code: int | None = None
    turn_kind: str | None = None


class TurnError(CodexStruct, frozen=True):
    """Why a turn failed. `codex_error_info` is a name, or an object with one member that has the name."""

    message: str = ""
    codex_error_info: str | dict[str, ErrorFacts | None] | None = None
    additional_details: str | None = None


class CodexTurn(CodexStruct, frozen=True):
    """One turn: `inProgress`, `completed`, `interrupted` or `failed`. Not all of its items need be in it."""

    id: str
    status: str = "inProgress"
    items: Items[Item] = msgspec.field(default_factory=list)
    items_view: str = "full"
    error: TurnError | None = None
    started_at: int | None = None
    completed_at: int | None = None


class ThreadStatus(CodexStruct, frozen=True):
    """`notLoaded`, `idle`, `systemError` or `active`."""

    type: str = "idle"
    active_flags: Items[str] = msgspec.field(default_factory=list)


class Thread(CodexStruct, frozen=True):
    """A thread, as in lists and responses."""

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
    source: object = None
    status: ThreadStatus | None = None
    forked_from_id: str | None = None
    parent_thread_id: str | None = None
    history_mode: str | None = None
    turns: Items[CodexTurn] = msgspec.field(default_factory=list)


# Notifications that are notices for the user.


class WarningNotification(ThreadStruct, frozen=True, kw_only=True):
    """A warning of the server."""

    message: str = ""


class TextPosition(CodexStruct, frozen=True):
    """A position in a file, counted from 1."""

    line: int = 0
    column: int = 0


class TextRange(CodexStruct, frozen=True):
    """A range in a file."""

    start: TextPosition = TextPosition()


class ConfigWarning(ThreadStruct, frozen=True, kw_only=True):
    """Something is wrong with the configuration."""

    summary: str = ""
    details: str | None = None
    path: str | None = None
    range: TextRange | None = None


class DeprecationNotice(ThreadStruct, frozen=True, kw_only=True):
    """Something will not work for long any more."""

    summary: str = ""
    details: str | None = None


class ModelRerouted(ThreadStruct, frozen=True, kw_only=True):
    """Another model answers than the one that was chosen."""

    from_model: str = ""
    to_model: str = ""
    reason: str = ""


class ModelVerified(ThreadStruct, frozen=True, kw_only=True):
    """The account was checked before a model answered."""

    verifications: Items[str] = msgspec.field(default_factory=list)


class SafetyBuffering(ThreadStruct, frozen=True, kw_only=True):
    """The answer is held back until it is checked."""

    model: str = ""
    faster_model: str | None = None
    reasons: Items[str] = msgspec.field(default_factory=list)
    show_buffering_ui: bool = False


class AuthRecovery(ThreadStruct, frozen=True, kw_only=True):
    """A provider's sign-in is being renewed."""

    message: str = ""
    provider: str = ""


class McpStartup(ThreadStruct, frozen=True, kw_only=True):
    """An MCP server is `starting`, `ready`, `failed` or `cancelled`."""

    name: str = ""
    status: str = ""
    error: str | None = None
    failure_reason: str | None = None


class McpLogin(ThreadStruct, frozen=True, kw_only=True):
    """A sign-in at an MCP server is over."""

    name: str = ""
    success: bool = False
    error: str | None = None


class HookEntry(CodexStruct, frozen=True):
    """An output of a hook: `warning`, `stop`, `feedback`, `context` or `error`."""

    kind: str = ""
    text: str = ""


class HookRun(CodexStruct, frozen=True):
    """One run of a hook: `running`, `completed`, `failed`, `blocked` or `stopped`."""

    event_name: str = ""
    status: str = ""
    status_message: str | None = None
    source_path: str | None = None
    entries: Items[HookEntry] = msgspec.field(default_factory=list)


class HookCompleted(ThreadStruct, frozen=True, kw_only=True):
    """A hook has run."""

    run: HookRun = HookRun()


class ReviewVerdict(CodexStruct, frozen=True):
    """The verdict of the automatic reviewer on an action: `approved`, `denied`, `timedOut` or `aborted`."""

    status: str = ""
    rationale: str | None = None
    risk_level: str | None = None


class ReviewCompleted(ThreadStruct, frozen=True, kw_only=True):
    """The automatic reviewer has decided; the action is an object whose `type` determines its fields."""

    review: ReviewVerdict = ReviewVerdict()
    review_id: str = ""
    target_item_id: str | None = None
    action: object = None


class Goal(CodexStruct, frozen=True):
    """What a thread works towards."""

    objective: str = ""
    status: str = ""


class GoalUpdated(ThreadStruct, frozen=True, kw_only=True):
    """A goal was set or changed."""

    goal: Goal = Goal()


class WorldWritable(ThreadStruct, frozen=True, kw_only=True):
    """World-writable directories on Windows, which the sandbox cannot protect."""

    sample_paths: Items[str] = msgspec.field(default_factory=list)
    extra_count: int = 0
    failed_scan: bool = False


class ItemNotification(ThreadStruct, frozen=True, kw_only=True):
    """An item starts, or is complete."""

    item: Item


class Delta(ThreadStruct, frozen=True, kw_only=True):
    """More of an item's text or of a command's output."""

    item_id: str
    delta: str = ""


class PartDelta(ThreadStruct, frozen=True, kw_only=True):
    """More of one of the parts of a thought."""

    item_id: str
    delta: str = ""
    summary_index: int = 0
    content_index: int = 0


class TerminalInput(ThreadStruct, frozen=True, kw_only=True):
    """Something was typed into a running command."""

    item_id: str
    stdin: str = ""


class ChangesUpdated(ThreadStruct, frozen=True, kw_only=True):
    """A change to files looks different now."""

    item_id: str
    changes: Items[FileUpdate] = msgspec.field(default_factory=list)


class Progress(ThreadStruct, frozen=True, kw_only=True):
    """The progress of an MCP tool, as text."""

    item_id: str
    message: str = ""


class TurnNotification(ThreadStruct, frozen=True, kw_only=True):
    """A turn starts, or is over."""

    turn: CodexTurn


class ErrorNotification(ThreadStruct, frozen=True, kw_only=True):
    """Something went wrong; with `will_retry` Codex tries again."""

    error: TurnError
    will_retry: bool = False


class CodexPlanStep(CodexStruct, frozen=True):
    """One thing to do."""

    step: str = ""
    status: str = "pending"


class PlanUpdated(ThreadStruct, frozen=True, kw_only=True):
    """The whole plan, as it is now."""

    plan: Items[CodexPlanStep] = msgspec.field(default_factory=list)
    explanation: str | None = None


class TokenCount(CodexStruct, frozen=True):
    """Tokens; those read from the cache are among the input, those thought among the output."""

    total_tokens: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0


class TokenUsage(CodexStruct, frozen=True):
    """Tokens of the thread so far, and of the last request."""

    total: TokenCount = TokenCount()
    last: TokenCount = TokenCount()
    model_context_window: int | None = None


class TokensUpdated(ThreadStruct, frozen=True, kw_only=True):
    """The model has answered a request, and this is what it took."""

    token_usage: TokenUsage


class RateLimitWindow(CodexStruct, frozen=True):
    """A span of time in which only so much may be used. `resets_at` is in seconds since 1970."""

    used_percent: float = 0
    resets_at: int | None = None
    window_duration_mins: int | None = None


class RateLimits(CodexStruct, frozen=True):
    """How much of an account's limits is used."""

    primary: RateLimitWindow | None = None
    secondary: RateLimitWindow | None = None
    rate_limit_reached_type: str | None = None
    limit_id: str | None = None
    plan_type: str | None = None


class RateLimitsUpdated(ThreadStruct, frozen=True, kw_only=True):
    """The limits, as they are now."""

    rate_limits: RateLimits


class NameUpdated(ThreadStruct, frozen=True, kw_only=True):
    """The thread has another name."""

    thread_name: str | None = None


class ThreadStarted(CodexStruct, frozen=True):
    """A thread was started."""

    thread: Thread

    @property
    def thread_id(self) -> str | None:
        """The goal that was meant."""
        return self.thread.id


class StatusChanged(ThreadStruct, frozen=True, kw_only=True):
    """The state of a thread changed."""

    status: ThreadStatus = ThreadStatus()


class ThreadSettings(CodexStruct, frozen=True):
    """The settings of a thread. Policies are a string or an object."""

    model: str | None = None
    model_provider: str | None = None
    effort: str | None = None
    summary: str | None = None
    cwd: str | None = None
    approval_policy: object = None
    sandbox_policy: object = None
    collaboration_mode: object = None


class SettingsUpdated(ThreadStruct, frozen=True, kw_only=True):
    """The settings of a thread changed."""

    thread_settings: ThreadSettings


class RequestResolved(ThreadStruct, frozen=True, kw_only=True):
    """A request of the server needs no response any more."""

    request_id: int | str


class ThreadNotification(ThreadStruct, frozen=True, kw_only=True):
    """An event of a thread; the method has its kind."""


Notification: TypeAlias = (
    Delta
    | PartDelta
    | ItemNotification
    | TurnNotification
    | ErrorNotification
    | PlanUpdated
    | TokensUpdated
    | RateLimitsUpdated
    | NameUpdated
    | ThreadStarted
    | StatusChanged
    | SettingsUpdated
    | RequestResolved
    | ThreadNotification
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
    | WarningNotification
    | WorldWritable
)

NOTIFICATIONS: Final[dict[str, type[CodexStruct]]] = {
    "item/agentMessage/delta": Delta, "item/plan/delta": Delta, "item/commandExecution/outputDelta": Delta,
    "item/reasoning/summaryTextDelta": PartDelta, "item/reasoning/textDelta": PartDelta,
    "item/commandExecution/terminalInteraction": TerminalInput,
    "item/fileChange/patchUpdated": ChangesUpdated, "item/mcpToolCall/progress": Progress,
    "item/started": ItemNotification, "item/completed": ItemNotification,
    "turn/started": TurnNotification, "turn/completed": TurnNotification, "turn/plan/updated": PlanUpdated, "error": ErrorNotification,
    "thread/started": ThreadStarted, "thread/status/changed": StatusChanged, "thread/name/updated": NameUpdated,
    "thread/settings/updated": SettingsUpdated, "thread/tokenUsage/updated": TokensUpdated, "thread/compacted": ThreadNotification,
    "thread/closed": ThreadNotification, "thread/deleted": ThreadNotification, "thread/archived": ThreadNotification, "thread/reverted": ThreadNotification,
    "thread/goal/updated": GoalUpdated, "account/rateLimits/updated": RateLimitsUpdated, "serverRequest/resolved": RequestResolved,
    "autoApprovalReview/strictReviewRequired": ThreadNotification, "item/autoApprovalReview/completed": ReviewCompleted,
    "hook/completed": HookCompleted, "mcpServer/startupStatus/updated": McpStartup, "mcpServer/oauthLogin/completed": McpLogin,
    "model/rerouted": ModelRerouted, "model/verification": ModelVerified, "model/safetyBuffering/updated": SafetyBuffering,
    "modelProvider/authRecoveryStarted": AuthRecovery, "modelProvider/authRecoveryCompleted": AuthRecovery,
    "warning": WarningNotification, "guardianWarning": WarningNotification, "configWarning": ConfigWarning, "deprecationNotice": DeprecationNotice,
    "windows/worldWritableWarning": WorldWritable,
}  # fmt: skip
