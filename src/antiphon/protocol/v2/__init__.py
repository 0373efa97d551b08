"""Every message of ACP v2, stable and draft, one module for each topic.

Files in reading order:

    methods.py       every method: its name, the side that handles it, its params and its result
    version.py       version 2 as a connection sees it
    base.py          what several topics share: ids, the base of updates, errors
    initialize.py    the handshake: versions, names, capabilities, signing in
    session.py       sessions from start to end: opened, listed, prompted, changed, cancelled, closed
    updates.py       session updates: messages, plans, notices, usage, and the union of all kinds
    state.py         the foreground state of a session, and the work in its background
    content.py       content blocks
    tools.py         tool calls, diffs, and the terminals of the agent
    permission.py    permission requests
    elicitation.py   questions to the user, by a form or on a page
    settings.py      config options and commands
    mcp.py           MCP servers
    drafts.py        what only the unstable schema has
    dialects.py      what real peers send instead

A type that is the same in both versions is that of version 1; a parity test holds every one against the official schema of version 2,
so one that moves is noticed, and then gets a class here. All types can be had from here (`v2.Prompt`); a module is loaded when the
first of its names is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from antiphon.protocol.base import UNSET as UNSET
    from antiphon.protocol.base import Unknown as Unknown
    from antiphon.protocol.base import UnsetType as UnsetType
    from antiphon.protocol.v2.base import *
    from antiphon.protocol.v2.content import *
    from antiphon.protocol.v2.drafts import *
    from antiphon.protocol.v2.elicitation import *
    from antiphon.protocol.v2.initialize import *
    from antiphon.protocol.v2.mcp import *
    from antiphon.protocol.v2.permission import *
    from antiphon.protocol.v2.session import *
    from antiphon.protocol.v2.settings import *
    from antiphon.protocol.v2.state import *
    from antiphon.protocol.v2.tools import *
    from antiphon.protocol.v2.updates import *

_TOPICS = {
    "base": (
        "AuthMethodId", "CancelRequest", "CompactionId", "ConfigId", "ElicitationId", "Failure", "GroupId",
        "MessageId", "OptionId", "PatchModel", "PlanId", "RequestId", "SessionId", "SessionNotFoundData", "TerminalId",
        "ToolCallId", "UnsupportedVersionData", "UpdateModel", "UpdatePatch", "ValueId",
    ),
    "content": (
        "Annotations", "AudioBlock", "BlobResource", "ContentBlock", "EmbeddedResource", "Icon", "IconTheme",
        "ImageBlock", "ResourceContents", "ResourceLink", "Role", "TextBlock", "TextResource",
    ),
    "drafts": (
        "ArchiveFilter", "ArchiveSession", "ArchiveSessionResult", "AuthAccount", "AuthState", "AuthStatus",
        "AuthStatusResult", "AuthStatusUpdate", "ForkSession", "ForkSessionResult", "McpError", "McpMessage",
        "McpMessageResult", "McpNotice", "PlanFile", "PlanMarkdown", "PlanRemoved", "SessionMessage",
        "SessionMessageChunk", "SessionState", "SessionStatus", "SessionStatusResult", "SetTitle",
        "SetTitleResult", "SubagentSessionCapabilities", "SubagentUpdate", "SuccessorCall", "SuccessorNotice",
        "SystemPrompt", "SystemPromptMode", "UnarchiveSession", "UnarchiveSessionResult", "Usage",
    ),
    "elicitation": (
        "Accepted", "BooleanProperty", "CompleteElicitation", "CreateElicitation", "CreateElicitationResult",
        "Declined", "Dismissed", "ElicitationBase", "EnumOption", "Form", "FormElicitation", "IntegerProperty",
        "MultiSelectItems", "MultiSelectProperty", "NumberProperty", "Property", "StringFormat", "StringItems",
        "StringProperty", "TitledItems", "UrlElicitation",
    ),
    "initialize": (
        "AgentAuth", "AgentAuthCapabilities", "AgentCapabilities", "ArchiveSupport", "AudioSupport",
        "AuthMethod", "AuthStatusSupport", "CancelSupport", "ClientAuthCapabilities", "ClientCapabilities",
        "DeleteSupport", "DirectoriesSupport", "ElicitationCapabilities", "EmbeddedContextSupport",
        "ForkSupport", "FormSupport", "ImageSupport", "Implementation", "Initialize", "InitializeProxy",
        "InitializeProxyResult", "InitializeResult", "AuthLogin", "AuthLoginResult", "Logout", "LogoutResult",
        "McpAcpSupport", "McpCapabilities", "McpHttpSupport", "McpStdioSupport", "OverrideSupport",
        "PromptCapabilities", "ProvidersSupport", "SessionCapabilities", "StatusSupport", "Support",
        "SystemPromptCapabilities", "SystemPromptModeCapabilities", "TerminalAuth", "TerminalAuthSupport",
        "TitleSupport", "UrlSupport",
    ),
    "mcp": (
        "AcpServer", "EnvVariable", "HttpHeader", "HttpServer", "McpServer", "StdioServer",
    ),
    "permission": (
        "Cancelled", "CommandSubject", "PermissionOption", "PermissionOptionKind", "PermissionOutcome",
        "PermissionResult", "PermissionSubject", "RequestPermission", "Selected", "ToolCallSubject",
    ),
    "session": (
        "Cancel", "CancelTerminal", "CancelTerminalResult", "CancelToolCall", "CancelToolCallResult",
        "CloseSession", "CloseSessionResult", "DeleteSession", "DeleteSessionResult", "ListSessions",
        "ListSessionsResult", "NewSession", "NewSessionResult", "Prompt", "PromptResult", "ReplayFrom",
        "ReplayFromStart", "ResumeSession", "ResumeSessionResult", "SessionInfo", "SessionUpdate", "SetBoolean",
        "SetConfigBase", "SetConfigOption", "SetConfigOptionResult", "SetValue",
    ),
    "settings": (
        "AvailableCommand", "AvailableCommandsUpdate", "BooleanConfig", "Command", "CommandInput", "ConfigBase",
        "ConfigCategory", "ConfigOption", "ConfigOptionUpdate", "SelectConfig", "SelectEntry", "SelectGroup",
        "SelectOption", "TextCommandInput",
    ),
    "state": (
        "ActionRequiredState", "BackgroundSubagent", "BackgroundTerminal", "BackgroundToolCall",
        "BackgroundWork", "ForegroundState", "IdleState", "RunningState", "StateUpdate", "StopReason",
        "SubagentState", "UnknownState",
    ),
    "tools": (
        "AddChange", "ChangeBase", "ContentItem", "CopyChange", "DeleteChange", "Diff", "DiffChange",
        "DiffFileType", "DiffPatch", "DiffPatchFormat", "ExitStatus", "ModifyChange", "MoveChange",
        "TerminalCancelSupport", "TerminalCapabilities", "TerminalItem", "TerminalOutputChunk", "TerminalSize",
        "TerminalSnapshot", "TerminalUpdate", "ToolCallCancelSupport", "ToolCallCapabilities",
        "ToolCallContentChunk", "ToolCallPatch", "ToolCallUpdate", "ToolContent", "ToolKind", "ToolLocation",
        "ToolStatus",
    ),
    "updates": (
        "AgentMessageUpdate", "AgentMessageChunk", "AgentThoughtUpdate", "AgentThoughtChunk", "CompactionStatus",
        "CompactionSummaryChunk", "CompactionUpdate", "Cost", "MessageUpdate", "MessageChunk", "NoticeSeverity",
        "NoticeUpdate", "PlanContent", "PlanEntry", "PlanItems", "PlanPriority", "PlanStatus", "PlanUpdate",
        "SessionInfoUpdate", "Update", "UsageUpdate", "UserMessageUpdate", "UserMessageChunk",
    ),
}  # fmt: skip
_MODULE_OF = {name: f"antiphon.protocol.v2.{topic}" for topic, names in _TOPICS.items() for name in names}
_MODULE_OF |= dict.fromkeys(("UNSET", "Unknown", "UnsetType"), "antiphon.protocol.base")

__all__ = [*_MODULE_OF]


if not TYPE_CHECKING:  # a checker that saw these would believe in any name

    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"ACP v2 has no `{name}`")
        value = getattr(import_module(_MODULE_OF[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return [*__all__, "methods"]
