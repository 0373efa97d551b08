"""Requests of the server, and results of ours. The last two approvals are of the older protocol, where a thread is a conversation."""

from typing import Final, TypeAlias

import msgspec

from antiphon.engines.codex.wire.items import CodexStruct, CommandAction, ThreadStruct
from antiphon.engines.codex.wire.notifications import CodexTurn, Thread
from antiphon.protocol.base import Items, JsonObject

__all__ = [
    "REQUESTS",
    "Account",
    "AccountRead",
    "ApplyPatchApproval",
    "CodexModel",
    "CommandApproval",
    "DynamicCall",
    "Effort",
    "ExecApproval",
    "FileApproval",
    "LegacyChange",
    "McpElicitation",
    "ModelPage",
    "NetworkContext",
    "ParsedCommand",
    "PermissionsApproval",
    "QuestionOption",
    "Request",
    "ThreadOpened",
    "ThreadPage",
    "ThreadRequest",
    "TurnPage",
    "TurnStarted",
    "UserInputQuestion",
    "UserInputRequest",
]


class NetworkContext(CodexStruct, frozen=True):
    """The network address that a command wants to reach."""

    host: str = ""
    protocol: str = ""


class CommandApproval(ThreadStruct, frozen=True, kw_only=True):
    """May this command run? With `network_approval_context`: may it reach this host?"""

    item_id: str
    kind: str = "command"
    approval_id: str | None = None
    command: str | None = None
    cwd: str | None = None
    reason: str | None = None
    command_actions: Items[CommandAction] | None = None
    proposed_execpolicy_amendment: list[str] | None = None
    proposed_network_policy_amendments: list[object] | None = None
    network_approval_context: NetworkContext | None = None
    additional_permissions: JsonObject | None = None
    available_decisions: list[object] | None = None


class FileApproval(ThreadStruct, frozen=True, kw_only=True):
    """May these changes be made? Only the item has them."""

    item_id: str
    reason: str | None = None
    grant_root: str | None = None


class PermissionsApproval(ThreadStruct, frozen=True, kw_only=True):
    """May the agent do more than its sandbox allows?"""

    item_id: str
    reason: str | None = None
    cwd: str | None = None
    permissions: JsonObject = msgspec.field(default_factory=dict)


class QuestionOption(CodexStruct, frozen=True):
    """One of the answers on offer."""

    label: str = ""
    description: str = ""


class UserInputQuestion(CodexStruct, frozen=True):
    """A question to the user, who may also answer with free text where `is_other` is set."""

    id: str
    header: str = ""
    question: str = ""
    is_other: bool = False
    is_secret: bool = False
    options: Items[QuestionOption] | None = None


class UserInputRequest(ThreadStruct, frozen=True, kw_only=True):
    """Questions of the agent to the user."""

    item_id: str
    questions: Items[UserInputQuestion] = msgspec.field(default_factory=list)
    is_blocking: bool = True
    auto_resolution_ms: int | None = None


class McpElicitation(ThreadStruct, frozen=True, kw_only=True):
    """An elicitation of an MCP server, or a permission request of Codex for one of its tools (`meta` has which)."""

    server_name: str = ""
    mode: str | None = None
    message: str = ""
    requested_schema: JsonObject | None = None
    url: str | None = None
    elicitation_id: str | None = None
    meta: JsonObject | None = msgspec.field(default=None, name="_meta")

    @property
    def is_for_tool(self) -> bool:
        """Whether it is a permission request of Codex for a tool. A form with fields is an elicitation."""
        return (self.meta or {}).get("codex_approval_kind") == "mcp_tool_call" and not self.fields

    @property
    def fields(self) -> object:
        """What there is to fill in."""
        return (self.requested_schema or {}).get("properties")


class DynamicCall(ThreadStruct, frozen=True, kw_only=True):
    """A tool of the client is called."""

    call_id: str
    tool: str = ""
    namespace: str | None = None
    arguments: object = None


class ThreadRequest(ThreadStruct, frozen=True, kw_only=True):
    """A request without parameters of its own."""


class ParsedCommand(CodexStruct, frozen=True):
    """What a part of a command is taken to do, in the older names: `read`, `list_files`, `search` or `unknown`."""

    type: str = "unknown"
    cmd: str = ""
    name: str | None = None
    path: str | None = None
    query: str | None = None


class ExecApproval(CodexStruct, frozen=True):
    """May this command run? The older form."""

    call_id: str
    conversation_id: str | None = None
    approval_id: str | None = None
    command: Items[str] = msgspec.field(default_factory=list)
    cwd: str | None = None
    reason: str | None = None
    parsed_cmd: Items[ParsedCommand] = msgspec.field(default_factory=list)

    @property
    def thread_id(self) -> str | None:
        """The thread that it is about."""
        return self.conversation_id


class LegacyChange(CodexStruct, frozen=True, rename=None):
    """A change to one file, the older form: the content of one that is added or deleted, else hunks."""

    type: str = "update"
    content: str = ""
    unified_diff: str = ""
    move_path: str | None = None


class ApplyPatchApproval(CodexStruct, frozen=True):
    """May these changes be made? The older form, by path."""

    call_id: str
    conversation_id: str | None = None
    file_changes: dict[str, LegacyChange] = msgspec.field(default_factory=dict)
    reason: str | None = None
    grant_root: str | None = None

    @property
    def thread_id(self) -> str | None:
        """The thread that it is about."""
        return self.conversation_id


Request: TypeAlias = (
    CommandApproval
    | FileApproval
    | PermissionsApproval
    | UserInputRequest
    | McpElicitation
    | DynamicCall
    | ThreadRequest
    | ExecApproval
    | ApplyPatchApproval
)

REQUESTS: Final[dict[str, type[CodexStruct]]] = {
    "item/commandExecution/requestApproval": CommandApproval,
    "item/fileChange/requestApproval": FileApproval,
    "item/permissions/requestApproval": PermissionsApproval,
    "item/tool/requestUserInput": UserInputRequest,
    "mcpServer/elicitation/request": McpElicitation,
    "item/tool/call": DynamicCall,
    "currentTime/read": ThreadRequest,
    "account/chatgptAuthTokens/refresh": ThreadRequest,
    "attestation/generate": ThreadRequest,
    "execCommandApproval": ExecApproval,
    "applyPatchApproval": ApplyPatchApproval,
}


# Results of our requests, as far as they are read.


class ThreadOpened(CodexStruct, frozen=True):
    """A thread was started, resumed, forked or read, and how it is set up."""

    thread: Thread
    model: str | None = None
    model_provider: str | None = None
    reasoning_effort: str | None = None
    cwd: str | None = None
    approval_policy: object = None
    sandbox: object = None
    collaboration_mode: object = None


class ThreadPage(CodexStruct, frozen=True):
    """Some of the threads."""

    data: Items[Thread] = msgspec.field(default_factory=list)
    next_cursor: str | None = None


class TurnPage(CodexStruct, frozen=True):
    """Some of a thread's turns."""

    data: Items[CodexTurn] = msgspec.field(default_factory=list)
    next_cursor: str | None = None


class TurnStarted(CodexStruct, frozen=True):
    """A turn began, or the running one took an addition."""

    turn: CodexTurn | None = None
    turn_id: str | None = None


class Effort(CodexStruct, frozen=True):
    """A reasoning effort of a model."""

    reasoning_effort: str
    description: str = ""


class CodexModel(CodexStruct, frozen=True):
    """A model that can be chosen."""

    id: str
    model: str = ""
    display_name: str = ""
    description: str = ""
    hidden: bool = False
    is_default: bool = False
    default_reasoning_effort: str | None = None
    supported_reasoning_efforts: Items[Effort] = msgspec.field(default_factory=list)
    input_modalities: Items[str] = msgspec.field(default_factory=list)


class ModelPage(CodexStruct, frozen=True):
    """Some of the models."""

    data: Items[CodexModel] = msgspec.field(default_factory=list)
    next_cursor: str | None = None


class Account(CodexStruct, frozen=True):
    """The account that is signed in, and how."""

    type: str = ""
    email: str | None = None
    plan_type: str | None = None


class AccountRead(CodexStruct, frozen=True):
    """The account, if the user is signed in, and whether signing in is necessary."""

    account: Account | None = None
    requires_openai_auth: bool = False
