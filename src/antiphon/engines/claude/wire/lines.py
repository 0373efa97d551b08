"""Lines of the conversation: what was said, what tools came to, and how a turn ended."""

from typing import Any

import msgspec

from antiphon.engines.claude.wire.base import Part
from antiphon.engines.claude.wire.blocks import Message, MessageOfBlocks, Usage
from antiphon.protocol.base import Items, JsonObject

__all__ = [
    "Assistant", "AuthStatus", "KeepAlive", "Lifecycle", "ModelUsage", "RateLimit", "RateLimitInfo", "Reset", "Result",
    "ToolProgress", "User",
]  # fmt: skip


class _Said(Part, frozen=True, kw_only=True, tag_field="type"):
    parent_tool_use_id: str | None = None
    uuid: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    subagent_type: str | None = None
    task_description: str | None = None
    timestamp: str | None = None


class _Answered(_Said, frozen=True, kw_only=True):
    error: str | None = None
    is_api_error_message: bool = False
    api_error_status: int | None = None
    api_error_type: str | None = None
    api_error: str | None = None
    aborted: bool = False
    supersedes: Items[str] = msgspec.field(default_factory=list)
    user_message_uuid: str | None = None
    local_command_run: JsonObject | None = None


class Assistant(_Answered, frozen=True, tag="assistant"):
    """A block of the model's message, or a message that the CLI made up: an error, the output of a local command."""

    message: Message


class AssistantOfBlocks(_Answered, frozen=True, tag="assistant"):
    """The same for the second chance."""

    message: MessageOfBlocks


class _Fed(_Said, frozen=True, kw_only=True):
    is_synthetic: bool = msgspec.field(default=False, name="isSynthetic")
    is_replay: bool = msgspec.field(default=False, name="isReplay")
    tool_use_result: Any = None
    tool_result_meta: Items[JsonObject] = msgspec.field(default_factory=list)
    origin: JsonObject | None = None


class User(_Fed, frozen=True, tag="user"):
    """What the model was fed: results of tools with their structured twin, echoes, and notes of the CLI itself."""

    message: Message


class UserOfBlocks(_Fed, frozen=True, tag="user"):
    """The same for the second chance."""

    message: MessageOfBlocks


class ModelUsage(Part, frozen=True, rename="camel"):
    """What one model used and cost since the session began."""

    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int | None = None
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    context_window: int = 0
    max_output_tokens: int = 0
    cost_usd: float = msgspec.field(default=0.0, name="costUSD")


class Result(Part, frozen=True, tag_field="type", tag="result"):
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
    usage: Usage | None = None
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


class Lifecycle(Part, frozen=True, tag_field="type", tag="command_lifecycle"):
    """How far a message is that we sent with an id: queued, started, completed, cancelled."""

    command_uuid: str
    state: str


class Reset(Part, frozen=True, tag_field="type", tag="conversation_reset"):
    """The conversation was thrown away; the next one has another id."""

    new_conversation_id: str | None = None
    trigger: str | None = None
    user_message_uuid: str | None = None


class RateLimitInfo(Part, frozen=True, rename="camel"):
    """How near a subscription's limits are."""

    status: str | None = None
    resets_at: float | None = None
    rate_limit_type: str | None = None
    utilization: float | None = None
    overage_status: str | None = None
    overage_resets_at: float | None = None
    is_using_overage: bool = False


class RateLimit(Part, frozen=True, tag_field="type", tag="rate_limit_event"):
    """A subscription's limits moved."""

    rate_limit_info: RateLimitInfo = msgspec.field(default_factory=RateLimitInfo)


class AuthStatus(Part, frozen=True, tag_field="type", tag="auth_status"):
    """A sign-in is going on, or went wrong."""

    is_authenticating: bool = msgspec.field(default=False, name="isAuthenticating")
    output: Items[str] = msgspec.field(default_factory=list)
    error: str | None = None


class ToolProgress(Part, frozen=True, tag_field="type", tag="tool_progress"):
    """A tool is still at work."""

    tool_use_id: str
    tool_name: str | None = None
    parent_tool_use_id: str | None = None
    elapsed_time_seconds: float | None = None


class KeepAlive(Part, frozen=True, tag_field="type", tag="keep_alive"):
    """Still there."""
