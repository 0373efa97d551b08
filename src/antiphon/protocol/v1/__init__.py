"""Every message of ACP v1, stable and unstable, a module per topic.

All types can be had from here (`v1.Prompt`, `v1.TextBlock`); the topic's module is loaded when the first of its names is used,
so that a program pays only for what it says. The methods are in `v1.methods`.
"""

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from antiphon.protocol.base import UNSET as UNSET
    from antiphon.protocol.base import Unknown as Unknown
    from antiphon.protocol.base import UnsetType as UnsetType
    from antiphon.protocol.v1.auth import *
    from antiphon.protocol.v1.commands import *
    from antiphon.protocol.v1.config import *
    from antiphon.protocol.v1.content import *
    from antiphon.protocol.v1.elicitation import *
    from antiphon.protocol.v1.files import *
    from antiphon.protocol.v1.forms import *
    from antiphon.protocol.v1.ids import *
    from antiphon.protocol.v1.initialize import *
    from antiphon.protocol.v1.legacy import *
    from antiphon.protocol.v1.mcp import *
    from antiphon.protocol.v1.messages import *
    from antiphon.protocol.v1.modes import *
    from antiphon.protocol.v1.notices import *
    from antiphon.protocol.v1.permission import *
    from antiphon.protocol.v1.plan import *
    from antiphon.protocol.v1.providers import *
    from antiphon.protocol.v1.proxy import *
    from antiphon.protocol.v1.requests import *
    from antiphon.protocol.v1.secrets import *
    from antiphon.protocol.v1.session import *
    from antiphon.protocol.v1.subagents import *
    from antiphon.protocol.v1.support import *
    from antiphon.protocol.v1.system_prompt import *
    from antiphon.protocol.v1.terminals import *
    from antiphon.protocol.v1.tools import *
    from antiphon.protocol.v1.updates import *
    from antiphon.protocol.v1.updating import *
    from antiphon.protocol.v1.usage import *

_TOPICS = {
    "auth": (
        "AgentAuth", "AuthAccount", "AuthMethod", "AuthState", "AuthStatus", "AuthStatusResult", "AuthStatusUpdate",
        "Authenticate", "AuthenticateResult", "EnvVarAuth", "Logout", "LogoutResult", "TerminalAuth",
    ),
    "commands": (
        "AvailableCommandsUpdate", "Command", "CommandInput",
    ),
    "config": (
        "BooleanConfig", "ConfigBase", "ConfigCategory", "ConfigOption", "ConfigOptionUpdate", "SelectConfig",
        "SelectEntry", "SelectGroup", "SelectOption",
    ),
    "content": (
        "Annotations", "AudioBlock", "BlobResource", "ContentBlock", "EmbeddedResource", "ImageBlock",
        "ResourceContents", "ResourceLink", "Role", "TextBlock", "TextResource",
    ),
    "elicitation": (
        "Accepted", "CompleteElicitation", "ContentValue", "CreateElicitation", "CreateElicitationResult", "Declined",
        "Dismissed", "ElicitationBase", "FormElicitation", "UrlElicitation",
    ),
    "files": (
        "ReadTextFile", "ReadTextFileResult", "WriteTextFile", "WriteTextFileResult",
    ),
    "forms": (
        "BooleanProperty", "EnumOption", "Form", "IntegerProperty", "MultiSelectItems", "MultiSelectProperty",
        "NumberProperty", "Property", "StringFormat", "StringItems", "StringProperty", "TitledItems",
    ),
    "ids": (
        "AuthMethodId", "CompactionId", "ConfigId", "ElicitationId", "GroupId", "McpRequestId", "McpServerId",
        "MessageId", "ModeId", "ModelId", "OptionId", "PlanId", "ProviderId", "SessionId", "TerminalId", "ToolCallId",
        "ValueId",
    ),
    "initialize": (
        "AgentAuthCapabilities", "AgentCapabilities", "AuthCapabilities", "ClientCapabilities",
        "ClientSessionCapabilities", "ConfigCapabilities", "ElicitationCapabilities", "FileCapabilities",
        "Implementation", "Initialize", "InitializeResult", "McpCapabilities", "PromptCapabilities",
        "SessionCapabilities", "SystemPromptCapabilities", "SystemPromptModeCapabilities",
    ),
    "legacy": (
        "CurrentModelUpdate", "ModelChoice", "ModelState", "SessionModel", "SetModel", "SetModelResult",
    ),
    "mcp": (
        "AcpServer", "HttpHeader", "HttpServer", "McpError", "McpMessage", "McpMessageResult", "McpNotice",
        "McpServer", "SseServer", "StdioServer",
    ),
    "messages": (
        "AgentMessageChunk", "AgentThoughtChunk", "MessageChunk", "SessionMessage", "SessionMessageChunk",
        "UserMessageChunk",
    ),
    "modes": (
        "CurrentModeUpdate", "Mode", "ModeState",
    ),
    "notices": (
        "CompactionStatus", "CompactionSummaryChunk", "CompactionUpdate", "NoticeSeverity", "NoticeUpdate",
        "SessionInfoUpdate",
    ),
    "permission": (
        "Cancelled", "PermissionOption", "PermissionOptionKind", "PermissionOutcome", "PermissionResult",
        "RequestPermission", "Selected",
    ),
    "plan": (
        "Plan", "PlanContent", "PlanEntry", "PlanFile", "PlanItems", "PlanMarkdown", "PlanPriority", "PlanRemoved",
        "PlanStatus", "PlanUpdate",
    ),
    "providers": (
        "DisableProvider", "DisableProviderResult", "ListProviders", "ListProvidersResult", "LlmProtocol", "Provider",
        "ProviderConfig", "SetProvider", "SetProviderResult",
    ),
    "proxy": (
        "InitializeProxy", "InitializeProxyResult", "SuccessorCall", "SuccessorNotice",
    ),
    "requests": (
        "CancelRequest", "Failure", "RequestId",
    ),
    "secrets": (
        "HIDDEN", "SecretModel",
    ),
    "session": (
        "ArchiveFilter", "ArchiveSession", "ArchiveSessionResult", "Cancel", "CloseSession", "CloseSessionResult",
        "DeleteSession", "DeleteSessionResult", "ForkSession", "ForkSessionResult", "ListSessions",
        "ListSessionsResult", "LoadSession", "LoadSessionResult", "NewSession", "NewSessionResult", "Prompt",
        "PromptResult", "ResumeSession", "ResumeSessionResult", "SessionInfo", "SessionState", "SessionStatus",
        "SessionStatusResult", "SessionUpdate", "SetConfigOption", "SetConfigOptionResult", "SetMode", "SetModeResult",
        "SetTitle", "SetTitleResult", "StopReason", "UnarchiveSession", "UnarchiveSessionResult",
    ),
    "subagents": (
        "ActionRequiredState", "IdleReason", "IdleState", "RunningState", "SubagentSessionCapabilities",
        "SubagentState", "SubagentUpdate", "UnknownState",
    ),
    "support": (
        "ArchiveSupport", "AuthStatusSupport", "BooleanConfigSupport", "CancelSupport", "CloseSupport",
        "CompactionSupport", "DeleteSupport", "DirectoriesSupport", "ForkSupport", "FormSupport", "ListSupport",
        "LogoutSupport", "NoticeSupport", "OverrideSupport", "PlanSupport", "ProvidersSupport", "ResumeSupport",
        "StatusSupport", "SubagentSupport", "Support", "TitleSupport", "UrlSupport",
    ),
    "system_prompt": (
        "SystemPrompt", "SystemPromptMode",
    ),
    "terminals": (
        "CreateTerminal", "CreateTerminalResult", "EnvVariable", "ExitStatus", "KillTerminal", "KillTerminalResult",
        "ReleaseTerminal", "ReleaseTerminalResult", "TerminalOutput", "TerminalOutputResult", "WaitForExit",
        "WaitForExitResult",
    ),
    "tools": (
        "ContentItem", "Diff", "TerminalItem", "ToolCall", "ToolCallPatch", "ToolCallUpdate", "ToolContent",
        "ToolKind", "ToolLocation", "ToolStatus",
    ),
    "updates": (
        "Update",
    ),
    "updating": (
        "SettingsUpdate", "StateUpdate", "UpdateModel",
    ),
    "usage": (
        "Cost", "Usage", "UsageUpdate",
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
