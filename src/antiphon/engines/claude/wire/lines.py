"""Lines of the CLI: messages, results of turns and the `system` lines."""

from typing import Final

import msgspec

from antiphon.engines.claude.wire.blocks import ClaudeMessage, ClaudeStruct, ClaudeUsage, MessageOfBlocks
from antiphon.protocol.base import Items, JsonObject

__all__ = [
    "SUBTYPES",
    "ApiRetry",
    "Assistant",
    "AuthRequiredLine",
    "AuthStatusLine",
    "BackgroundTasks",
    "CommandsLine",
    "CompactBoundary",
    "CompactMetadata",
    "ElicitationComplete",
    "FallbackLine",
    "HookResponse",
    "Informational",
    "Init",
    "KeepAlive",
    "Lifecycle",
    "LocalCommandOutput",
    "McpServerStatus",
    "ModelUsage",
    "NotificationLine",
    "PermissionDenied",
    "PluginInstall",
    "RateLimit",
    "RateLimitInfo",
    "RefusalLine",
    "Reset",
    "ResultLine",
    "SessionStateLine",
    "SlashCommand",
    "Status",
    "TaskNotification",
    "TaskPatch",
    "TaskProgress",
    "TaskStarted",
    "TaskUpdated",
    "TaskUsage",
    "TitleLine",
    "ToolProgress",
    "User",
]


class _MessageLine(ClaudeStruct, frozen=True, kw_only=True, tag_field="type"):
    parent_tool_use_id: str | None = None
    uuid: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    subagent_type: str | None = None
    task_description: str | None = None
    timestamp: str | None = None


class _AssistantLine(_MessageLine, frozen=True, kw_only=True):
    error: str | None = None
    is_api_error_message: bool = False
    api_error_status: int | None = None
    api_error_type: str | None = None
    api_error: str | None = None
    aborted: bool = False
    supersedes: Items[str] = msgspec.field(default_factory=list)
    user_message_uuid: str | None = None
    local_command_run: JsonObject | None = None


class Assistant(_AssistantLine, frozen=True, tag="assistant"):
    """A block of the model's message, or a message that the CLI made up: an error, the output of a local command."""

    message: ClaudeMessage


class AssistantOfBlocks(_AssistantLine, frozen=True, tag="assistant"):
    """The same line for `salvage`."""

    message: MessageOfBlocks


class _UserLine(_MessageLine, frozen=True, kw_only=True):
    is_synthetic: bool = msgspec.field(default=False, name="isSynthetic")
    is_replay: bool = msgspec.field(default=False, name="isReplay")
    tool_use_result: object = None
    tool_result_meta: Items[JsonObject] = msgspec.field(default_factory=list)
    origin: JsonObject | None = None


class User(_UserLine, frozen=True, tag="user"):
    """Input of the model: results of tools with their structured form, echoes, and notes of the CLI itself."""

    message: ClaudeMessage


class UserOfBlocks(_UserLine, frozen=True, tag="user"):
    """The same line for `salvage`."""

    message: MessageOfBlocks


class ModelUsage(ClaudeStruct, frozen=True, rename="camel"):
    """What one model used and cost since the session began."""

    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int | None = None
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    context_window: int = 0
    max_output_tokens: int = 0
    cost_usd: float = msgspec.field(default=0.0, name="costUSD")


class ResultLine(ClaudeStruct, frozen=True, tag_field="type", tag="result"):
    """A turn is over. Errors of the API come as subtype `success` with `is_error`."""

    subtype: str
    is_error: bool = False
    result: str | None = None
    errors: Items[str] = msgspec.field(default_factory=list)
    stop_reason: str | None = None
    terminal_reason: str | None = None
    startup_failure_reason: str | None = None
    api_error: str | None = None
    api_error_status: int | None = None
    api_error_type: str | None = None
    num_turns: int | None = None
    duration_ms: float | None = None
    usage: ClaudeUsage | None = None
    model_usage: dict[str, ModelUsage] = msgspec.field(default_factory=dict, name="modelUsage")
    total_cost_usd: float | None = None
    permission_denials: Items[JsonObject] = msgspec.field(default_factory=list)
    user_message_uuid: str | None = None
    user_message_uuids: Items[str] = msgspec.field(default_factory=list)
    origin: JsonObject | None = None
    queued_turn_count: int | None = None
    result_index: int | None = None
    local_command: str | None = None
    uuid: str | None = None
    session_id: str | None = None


class Lifecycle(ClaudeStruct, frozen=True, tag_field="type", tag="command_lifecycle"):
    """The state of a message that we sent with an id: queued, started, completed, cancelled."""

    command_uuid: str
    state: str


class Reset(ClaudeStruct, frozen=True, tag_field="type", tag="conversation_reset"):
    """The session was cleared; the next one has another id."""

    new_conversation_id: str | None = None
    trigger: str | None = None
    user_message_uuid: str | None = None


class RateLimitInfo(ClaudeStruct, frozen=True, rename="camel"):
    """How near a subscription's limits are."""

    status: str | None = None
    resets_at: float | None = None
    rate_limit_type: str | None = None
    utilization: float | None = None
    overage_status: str | None = None
    overage_resets_at: float | None = None
    is_using_overage: bool = False


class RateLimit(ClaudeStruct, frozen=True, tag_field="type", tag="rate_limit_event"):
    """A subscription's limits moved."""

    rate_limit_info: RateLimitInfo = msgspec.field(default_factory=RateLimitInfo)


class AuthStatusLine(ClaudeStruct, frozen=True, tag_field="type", tag="auth_status"):
    """A sign-in is going on, or went wrong."""

    is_authenticating: bool = msgspec.field(default=False, name="isAuthenticating")
    output: Items[str] = msgspec.field(default_factory=list)
    error: str | None = None


class ToolProgress(ClaudeStruct, frozen=True, tag_field="type", tag="tool_progress"):
    """A tool is still at work."""

    tool_use_id: str
    tool_name: str | None = None
    parent_tool_use_id: str | None = None
    elapsed_time_seconds: float | None = None


class KeepAlive(ClaudeStruct, frozen=True, tag_field="type", tag="keep_alive"):
    """A sign of life."""


# `system` lines, one struct per subtype that is of use. Others are `Unknown`.


class McpServerStatus(ClaudeStruct, frozen=True):
    """An MCP server and its state: connected, failed, needs-auth, pending, disabled."""

    name: str
    status: str = ""


class Init(ClaudeStruct, frozen=True):
    """The settings of the session, at the start of every turn."""

    session_id: str | None = None
    cwd: str | None = None
    model: str | None = None
    permission_mode: str | None = msgspec.field(default=None, name="permissionMode")
    claude_code_version: str | None = None
    api_key_source: str | None = msgspec.field(default=None, name="apiKeySource")
    tools: Items[str] = msgspec.field(default_factory=list)
    mcp_servers: Items[McpServerStatus] = msgspec.field(default_factory=list)
    slash_commands: Items[str] = msgspec.field(default_factory=list)
    terminal_slash_commands: Items[str] = msgspec.field(default_factory=list)
    agents: Items[str] = msgspec.field(default_factory=list)
    skills: Items[str] = msgspec.field(default_factory=list)
    plugin_errors: Items[JsonObject] = msgspec.field(default_factory=list)
    capabilities: Items[str] = msgspec.field(default_factory=list)
    output_style: str | None = None


class Status(ClaudeStruct, frozen=True):
    """What it does (`requesting`, `compacting`), how compacting went, or that the permission mode changed."""

    status: str | None = None
    permission_mode: str | None = msgspec.field(default=None, name="permissionMode")
    compact_result: str | None = None
    compact_error: str | None = None
    uuid: str | None = None


class ApiRetry(ClaudeStruct, frozen=True):
    """A request to the model failed and is tried again; no `error_status` means no connection."""

    attempt: int | None = None
    max_retries: int | None = None
    retry_delay_ms: float | None = None
    error_status: int | None = None
    error: str | None = None


class CompactMetadata(ClaudeStruct, frozen=True):
    """What caused a compaction, and how large the context was and is."""

    trigger: str | None = None
    pre_tokens: int | None = None
    post_tokens: int | None = None
    duration_ms: float | None = None


class CompactBoundary(ClaudeStruct, frozen=True):
    """The session so far was compacted."""

    compact_metadata: CompactMetadata = msgspec.field(default_factory=CompactMetadata)
    uuid: str | None = None


class TitleLine(ClaudeStruct, frozen=True):
    """The session's name changed."""

    title: str = ""


class TaskUsage(ClaudeStruct, frozen=True):
    """What a task used."""

    total_tokens: int | None = None
    tool_uses: int | None = None
    duration_ms: float | None = None


class TaskStarted(ClaudeStruct, frozen=True):
    """A sub-agent or a slow command is at work on its own."""

    task_id: str
    tool_use_id: str | None = None
    description: str | None = None
    subagent_type: str | None = None
    task_type: str | None = None
    prompt: str | None = None
    is_backgrounded: bool | None = None
    skip_transcript: bool | None = None
    ambient: bool | None = None


class TaskProgress(ClaudeStruct, frozen=True):
    """How far a task is."""

    task_id: str
    tool_use_id: str | None = None
    description: str | None = None
    subagent_type: str | None = None
    last_tool_name: str | None = None
    summary: str | None = None
    usage: TaskUsage | None = None


class TaskPatch(ClaudeStruct, frozen=True):
    """What changed of a task."""

    status: str | None = None
    description: str | None = None
    error: str | None = None
    is_backgrounded: bool | None = None


class TaskUpdated(ClaudeStruct, frozen=True):
    """A task changed."""

    task_id: str
    patch: TaskPatch = msgspec.field(default_factory=TaskPatch)


class TaskNotification(ClaudeStruct, frozen=True):
    """A task is over: completed, failed or stopped."""

    task_id: str
    tool_use_id: str | None = None
    status: str | None = None
    summary: str | None = None
    output_file: str | None = None
    usage: TaskUsage | None = None
    skip_transcript: bool | None = None
    ambient: bool | None = None


class BackgroundTasks(ClaudeStruct, frozen=True):
    """Every task that lives now."""

    tasks: Items[JsonObject] = msgspec.field(default_factory=list)


class PermissionDenied(ClaudeStruct, frozen=True):
    """A call was refused without asking."""

    tool_name: str = ""
    tool_use_id: str | None = None
    agent_id: str | None = None
    decision_reason_type: str | None = None
    decision_reason: str | None = None
    message: str = ""


class Informational(ClaudeStruct, frozen=True):
    """A line for the user: info, notice, suggestion or warning."""

    content: str = ""
    level: str | None = None
    tool_use_id: str | None = None
    prevent_continuation: bool | None = None


class NotificationLine(ClaudeStruct, frozen=True):
    """A line for the user, with a priority."""

    text: str = ""
    key: str | None = None
    priority: str | None = None


class LocalCommandOutput(ClaudeStruct, frozen=True):
    """What a local slash command printed."""

    content: str = ""
    uuid: str | None = None


class RefusalLine(ClaudeStruct, frozen=True):
    """The model refused and nothing else is tried."""

    original_model: str | None = None
    api_refusal_category: str | None = None
    api_refusal_explanation: str | None = None
    content: str = ""


class FallbackLine(ClaudeStruct, frozen=True):
    """The model refused and another one answers."""

    original_model: str | None = None
    fallback_model: str | None = None
    scope: str | None = None
    direction: str | None = None
    content: str = ""
    retracted_message_uuids: Items[str] = msgspec.field(default_factory=list)


class HookResponse(ClaudeStruct, frozen=True):
    """A hook of the user ran."""

    hook_name: str = ""
    hook_event: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    output: str | None = None
    exit_code: int | None = None
    outcome: str | None = None


class AuthRequiredLine(ClaudeStruct, frozen=True):
    """The user is not signed in (old CLIs)."""

    content: str = ""


class SlashCommand(ClaudeStruct, frozen=True):
    """A slash command on offer, without its slash."""

    name: str
    description: str = ""
    argument_hint: str | None = msgspec.field(default=None, name="argumentHint")
    aliases: Items[str] = msgspec.field(default_factory=list)
    builtin: bool | None = None


class CommandsLine(ClaudeStruct, frozen=True):
    """The slash commands from now on."""

    commands: Items[SlashCommand] = msgspec.field(default_factory=list)


class PluginInstall(ClaudeStruct, frozen=True):
    """A plugin is being installed."""

    status: str | None = None
    name: str | None = None
    error: str | None = None


class ElicitationComplete(ClaudeStruct, frozen=True):
    """An MCP server got what it had sent the user to an address for."""

    mcp_server_name: str | None = None
    elicitation_id: str | None = None


class SessionStateLine(ClaudeStruct, frozen=True):
    """Whether the session is idle, running or waits for the user."""

    state: str | None = None


SUBTYPES: Final[dict[str, type[ClaudeStruct]]] = {
    "api_retry": ApiRetry,
    "auth_required": AuthRequiredLine,
    "background_tasks_changed": BackgroundTasks,
    "commands_changed": CommandsLine,
    "compact_boundary": CompactBoundary,
    "elicitation_complete": ElicitationComplete,
    "hook_response": HookResponse,
    "informational": Informational,
    "init": Init,
    "local_command_output": LocalCommandOutput,
    "model_refusal_fallback": FallbackLine,
    "model_refusal_no_fallback": RefusalLine,
    "notification": NotificationLine,
    "permission_denied": PermissionDenied,
    "plugin_install": PluginInstall,
    "session_state_changed": SessionStateLine,
    "session_title_changed": TitleLine,
    "status": Status,
    "task_notification": TaskNotification,
    "task_progress": TaskProgress,
    "task_started": TaskStarted,
    "task_updated": TaskUpdated,
}
