"""Every message of ACP v1, stable and unstable, one module for each topic.

Files in reading order:

    methods.py           every method: its name, the side that handles it, its params and its result
    version.py           version 1 as a connection sees it
    base.py              what several topics share: ids, secrets, the base of updates
    initialize.py        the handshake: versions, names, capabilities
    auth.py              authentication: methods, sign-in, sign-out, status
    session.py           sessions from start to end: opened, listed, prompted, changed, closed
    updates.py           session updates: messages, plans, notices, usage, subagents, and the union of all kinds
    opt_in.py            updates that only clients get which ask for them
    content.py           content blocks, and the system prompt
    tools.py             tool calls
    permission.py        permission requests
    elicitation.py       questions to the user, by a form or on a page
    settings.py          config options, modes, models, slash commands
    client_services.py   files and terminals of the client
    mcp.py               MCP servers, MCP over ACP, chains of proxies
    providers.py         where the agent gets its model from
    dialects/            what older documents and real peers send instead

All types can be had from here (`v1.Prompt`, `v1.TextBlock`); a module is loaded when the first of its names is used, so that a program
pays only for what it sends.
"""

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from antiphon.protocol.base import UNSET as UNSET
    from antiphon.protocol.base import Unknown as Unknown
    from antiphon.protocol.base import UnsetType as UnsetType
    from antiphon.protocol.v1.auth import *
    from antiphon.protocol.v1.base import *
    from antiphon.protocol.v1.client_services import *
    from antiphon.protocol.v1.content import *
    from antiphon.protocol.v1.elicitation import *
    from antiphon.protocol.v1.initialize import *
    from antiphon.protocol.v1.mcp import *
    from antiphon.protocol.v1.permission import *
    from antiphon.protocol.v1.providers import *
    from antiphon.protocol.v1.session import *
    from antiphon.protocol.v1.settings import *
    from antiphon.protocol.v1.tools import *
    from antiphon.protocol.v1.updates import *

_TOPICS = {
    "auth": (
        "AgentAuth", "AuthAccount", "AuthMethod", "AuthState", "AuthStatus", "AuthStatusResult", "AuthStatusUpdate",
        "Authenticate", "AuthenticateResult", "EnvVarAuth", "Logout", "LogoutResult", "TerminalAuth",
    ),
    "client_services": (
        "CreateTerminal", "CreateTerminalResult", "EnvVariable", "ExitStatus", "KillTerminal", "KillTerminalResult",
        "ReadTextFile", "ReadTextFileResult", "ReleaseTerminal", "ReleaseTerminalResult", "TerminalOutput",
        "TerminalOutputResult", "WaitForExit", "WaitForExitResult", "WriteTextFile", "WriteTextFileResult",
    ),
    "base": (
        "AuthMethodId", "CancelRequest", "CompactionId", "ConfigId", "ElicitationId", "Failure", "GroupId",
        "HIDDEN", "McpRequestId", "McpServerId", "MessageId", "ModeId", "ModelId", "OptionId", "PlanId",
        "ProviderId", "RequestId", "SecretModel", "SessionId", "SettingsUpdate", "StateUpdate", "TerminalId",
        "ToolCallId", "UpdateModel", "ValueId",
    ),
    "content": (
        "Annotations", "AudioBlock", "BlobResource", "ContentBlock", "EmbeddedResource", "ImageBlock",
        "ResourceContents", "ResourceLink", "Role", "SystemPrompt", "SystemPromptMode", "TextBlock", "TextResource",
    ),
    "elicitation": (
        "Accepted", "BooleanProperty", "CompleteElicitation", "ContentValue", "CreateElicitation",
        "CreateElicitationResult", "Declined", "Dismissed", "ElicitationBase", "EnumOption", "Form",
        "FormElicitation", "IntegerProperty", "MultiSelectItems", "MultiSelectProperty", "NumberProperty",
        "Property", "StringFormat", "StringItems", "StringProperty", "TitledItems", "UrlElicitation",
    ),
    "initialize": (
        "AgentAuthCapabilities", "AgentCapabilities", "ArchiveSupport", "AuthCapabilities", "AuthStatusSupport",
        "BooleanConfigSupport", "CancelSupport", "ClientCapabilities", "ClientSessionCapabilities", "CloseSupport",
        "CompactionSupport", "ConfigCapabilities", "DeleteSupport", "DirectoriesSupport", "ElicitationCapabilities",
        "FileCapabilities", "ForkSupport", "FormSupport", "Implementation", "Initialize", "InitializeResult",
        "ListSupport", "LogoutSupport", "McpCapabilities", "NoticeSupport", "OverrideSupport", "PlanSupport",
        "PromptCapabilities", "ProvidersSupport", "ResumeSupport", "SessionCapabilities", "StatusSupport",
        "SubagentSupport", "Support", "SystemPromptCapabilities", "SystemPromptModeCapabilities", "TitleSupport",
        "UrlSupport",
    ),
    "mcp": (
        "AcpServer", "HttpHeader", "HttpServer", "InitializeProxy", "InitializeProxyResult", "McpError",
        "McpMessage", "McpMessageResult", "McpNotice", "McpServer", "SseServer", "StdioServer", "SuccessorCall",
        "SuccessorNotice",
    ),
    "permission": (
        "Cancelled", "PermissionOption", "PermissionOptionKind", "PermissionOutcome", "PermissionResult",
        "RequestPermission", "Selected",
    ),
    "providers": (
        "DisableProvider", "DisableProviderResult", "ListProviders", "ListProvidersResult", "LlmProtocol",
        "Provider", "ProviderConfig", "SetProvider", "SetProviderResult",
    ),
    "session": (
        "ArchiveFilter", "ArchiveSession", "ArchiveSessionResult", "Cancel", "CloseSession", "CloseSessionResult",
        "DeleteSession", "DeleteSessionResult", "ForkSession", "ForkSessionResult", "ListSessions",
        "ListSessionsResult", "LoadSession", "LoadSessionResult", "NewSession", "NewSessionResult", "Prompt",
        "PromptResult", "ResumeSession", "ResumeSessionResult", "SessionInfo", "SessionState", "SessionStatus",
        "SessionStatusResult", "SessionUpdate", "SetConfigOption", "SetConfigOptionResult", "SetMode",
        "SetModeResult", "SetTitle", "SetTitleResult", "StopReason", "UnarchiveSession", "UnarchiveSessionResult",
        "Usage",
    ),
    "settings": (
        "AvailableCommandsUpdate", "BooleanConfig", "Command", "CommandInput", "ConfigBase", "ConfigCategory",
        "ConfigOption", "ConfigOptionUpdate", "CurrentModeUpdate", "CurrentModelUpdate", "Mode", "ModeState",
        "ModelChoice", "ModelState", "SelectConfig", "SelectEntry", "SelectGroup", "SelectOption", "SessionModel",
        "SetModel", "SetModelResult",
    ),
    "tools": (
        "ContentItem", "Diff", "TerminalItem", "ToolCall", "ToolCallPatch", "ToolCallUpdate", "ToolContent",
        "ToolKind", "ToolLocation", "ToolStatus",
    ),
    "updates": (
        "ActionRequiredState", "AgentMessageChunk", "AgentThoughtChunk", "CompactionStatus",
        "CompactionSummaryChunk", "CompactionUpdate", "Cost", "IdleReason", "IdleState", "MessageChunk",
        "NoticeSeverity", "NoticeUpdate", "Plan", "PlanContent", "PlanEntry", "PlanFile", "PlanItems",
        "PlanMarkdown", "PlanPriority", "PlanRemoved", "PlanStatus", "PlanUpdate", "RunningState",
        "SessionInfoUpdate", "SessionMessage", "SessionMessageChunk", "SubagentSessionCapabilities",
        "SubagentState", "SubagentUpdate", "UnknownState", "Update", "UsageUpdate", "UserMessageChunk",
    ),
}  # fmt: skip
_MODULE_OF = {name: f"antiphon.protocol.v1.{topic}" for topic, names in _TOPICS.items() for name in names}
_MODULE_OF |= dict.fromkeys(("UNSET", "Unknown", "UnsetType"), "antiphon.protocol.base")

__all__ = [*_MODULE_OF]


if not TYPE_CHECKING:  # a checker that saw these would believe in any name

    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"ACP v1 has no `{name}`{_suggestion(name)}")
        value = getattr(import_module(_MODULE_OF[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return [*__all__, "methods"]


@lru_cache(64)  # inspectors and test runners ask every module for the same few names
def _suggestion(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, __all__, 1)
    return f"; did you mean `{close[0]}`?" if close else ""
