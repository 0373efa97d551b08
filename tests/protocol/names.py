"""Which type of ours stands for which definition of the schema, and where the two differ on purpose."""

from typing import Any, Literal, NamedTuple

from antiphon.protocol import v1
from antiphon.protocol.base import Uint
from antiphon.protocol.v1 import (
    auth,
    client_services,
    content,
    elicitation,
    initialize,
    mcp,
    methods,
    permission,
    providers,
    session,
    settings,
    tools,
    updates,
)
from antiphon.protocol.v1 import base as common
from antiphon.protocol.v1 import client_services as fs

PACKAGE = v1
METHODS = methods


class Reason(NamedTuple):
    """Why a definition has no type here."""

    text: str


class Merged(NamedTuple):
    """The definition's fields stand in these types, together with others."""

    types: tuple[Any, ...]


ENVELOPE = Reason("a whole JSON-RPC message: antiphon.rpc reads the envelope, methods.py pairs names with types")
EXTENSION = Reason("an extension's message, which only the extension can type")

TYPES: dict[str, Any] = {
    # envelopes and extensions
    **dict.fromkeys(("AgentNotification", "AgentRequest", "AgentResponse"), ENVELOPE),
    **dict.fromkeys(("ClientNotification", "ClientRequest", "ClientResponse"), ENVELOPE),
    **dict.fromkeys(("ProxyNotification", "ProxyRequest", "ProxyResponse"), ENVELOPE),
    **dict.fromkeys(("ExtNotification", "ExtRequest", "ExtResponse"), EXTENSION),
    # plain values
    **dict.fromkeys(("AuthMethodId", "CompactionId", "ElicitationId", "McpRequestId", "McpServerAcpId"), str),
    **dict.fromkeys(("MessageId", "PermissionOptionId", "PlanId", "ProviderId", "SessionConfigGroupId"), str),
    **dict.fromkeys(("SessionConfigId", "SessionConfigValueId", "SessionId", "SessionModeId", "TerminalId"), str),
    "ToolCallId": str,
    "ProtocolVersion": Uint,
    "RequestId": common.RequestId,
    "ErrorCode": int,
    "Error": common.Failure,
    "CancelRequestNotification": common.CancelRequest,
    # content
    "Annotations": content.Annotations,
    "AudioContent": content.AudioBlock,
    "BlobResourceContents": content.BlobResource,
    "ContentBlock": content.ContentBlock,
    "EmbeddedResource": content.EmbeddedResource,
    "EmbeddedResourceResource": content.ResourceContents,
    "ImageContent": content.ImageBlock,
    "ResourceLink": content.ResourceLink,
    "Role": content.Role,
    "TextContent": content.TextBlock,
    "TextResourceContents": content.TextResource,
    # tools and permission
    "Content": tools.ContentItem,
    "Diff": tools.Diff,
    "Terminal": tools.TerminalItem,
    "ToolCall": tools.ToolCall,
    "ToolCallContent": tools.ToolContent,
    "ToolCallLocation": tools.ToolLocation,
    "ToolCallStatus": tools.ToolStatus,
    "ToolCallUpdate": tools.ToolCallPatch,
    "ToolKind": tools.ToolKind,
    "PermissionOption": permission.PermissionOption,
    "PermissionOptionKind": permission.PermissionOptionKind,
    "RequestPermissionOutcome": permission.PermissionOutcome,
    "RequestPermissionRequest": permission.RequestPermission,
    "RequestPermissionResponse": permission.PermissionResult,
    "SelectedPermissionOutcome": permission.Selected,
    # updates
    "AvailableCommand": settings.Command,
    "AvailableCommandInput": settings.CommandInput,
    "AvailableCommandsUpdate": settings.AvailableCommandsUpdate,
    "CompactionStatus": updates.CompactionStatus,
    "CompactionSummaryChunk": updates.CompactionSummaryChunk,
    "CompactionUpdate": updates.CompactionUpdate,
    "ConfigOptionUpdate": settings.ConfigOptionUpdate,
    "ContentChunk": updates.MessageChunk,
    "Cost": updates.Cost,
    "CurrentModeUpdate": settings.CurrentModeUpdate,
    "Notice": updates.NoticeUpdate,
    "NoticeSeverity": updates.NoticeSeverity,
    "Plan": updates.Plan,
    "PlanEntry": updates.PlanEntry,
    "PlanEntryPriority": updates.PlanPriority,
    "PlanEntryStatus": updates.PlanStatus,
    "PlanFile": updates.PlanFile,
    "PlanItems": updates.PlanItems,
    "PlanMarkdown": updates.PlanMarkdown,
    "PlanRemoved": updates.PlanRemoved,
    "PlanUpdate": updates.PlanUpdate,
    "PlanUpdateContent": updates.PlanContent,
    "SessionInfoUpdate": updates.SessionInfoUpdate,
    "SessionMessage": updates.SessionMessage,
    "SessionMessageChunk": updates.SessionMessageChunk,
    "SessionUpdate": updates.Update,
    "UnstructuredCommandInput": settings.CommandInput,
    "Usage": updates.Usage,
    "UsageUpdate": updates.UsageUpdate,
    # subagents
    "ErrorStopReason": Merged((updates.IdleState,)),
    "IdleStateUpdate": updates.IdleState,
    "RequiresActionStateUpdate": updates.ActionRequiredState,
    "RunningStateUpdate": updates.RunningState,
    "StateUpdate": updates.SubagentState,
    "SubagentSessionCapabilities": updates.SubagentSessionCapabilities,
    "SubagentUpdate": updates.SubagentUpdate,
    "UnknownStateUpdate": updates.UnknownState,
    # sessions
    "ArchiveSessionRequest": session.ArchiveSession,
    "ArchiveSessionResponse": session.ArchiveSessionResult,
    "CancelNotification": session.Cancel,
    "CloseSessionRequest": session.CloseSession,
    "CloseSessionResponse": session.CloseSessionResult,
    "DeleteSessionRequest": session.DeleteSession,
    "DeleteSessionResponse": session.DeleteSessionResult,
    "ForkSessionRequest": session.ForkSession,
    "ForkSessionResponse": session.ForkSessionResult,
    "ListSessionsRequest": session.ListSessions,
    "ListSessionsResponse": session.ListSessionsResult,
    "LoadSessionRequest": session.LoadSession,
    "LoadSessionResponse": session.LoadSessionResult,
    "NewSessionRequest": session.NewSession,
    "NewSessionResponse": session.NewSessionResult,
    "PromptRequest": session.Prompt,
    "PromptResponse": session.PromptResult,
    "ResumeSessionRequest": session.ResumeSession,
    "ResumeSessionResponse": session.ResumeSessionResult,
    "SessionArchiveFilter": session.ArchiveFilter,
    "SessionInfo": session.SessionInfo,
    "SessionMode": settings.Mode,
    "SessionModeState": settings.ModeState,
    "SessionNotification": session.SessionUpdate,
    "SessionStatus": session.SessionState,
    "SessionStatusRequest": session.SessionStatus,
    "SessionStatusResponse": session.SessionStatusResult,
    "SetSessionModeRequest": session.SetMode,
    "SetSessionModeResponse": session.SetModeResult,
    "SetSessionTitleRequest": session.SetTitle,
    "SetSessionTitleResponse": session.SetTitleResult,
    "StopReason": session.StopReason,
    "SystemPrompt": content.SystemPrompt,
    "SystemPromptMode": content.SystemPromptMode,
    "UnarchiveSessionRequest": session.UnarchiveSession,
    "UnarchiveSessionResponse": session.UnarchiveSessionResult,
    # settings
    "SessionConfigBoolean": Merged((settings.BooleanConfig,)),
    "SessionConfigOption": settings.ConfigOption,
    "SessionConfigOptionCategory": settings.ConfigCategory,
    "SessionConfigSelect": Merged((settings.SelectConfig,)),
    "SessionConfigSelectGroup": settings.SelectGroup,
    "SessionConfigSelectOption": settings.SelectOption,
    "SessionConfigSelectOptions": list[settings.SelectEntry],
    "SetSessionConfigOptionRequest": session.SetConfigOption,
    "SetSessionConfigOptionResponse": session.SetConfigOptionResult,
    # the client's files and terminals
    "CreateTerminalRequest": client_services.CreateTerminal,
    "CreateTerminalResponse": client_services.CreateTerminalResult,
    "EnvVariable": client_services.EnvVariable,
    "KillTerminalRequest": client_services.KillTerminal,
    "KillTerminalResponse": client_services.KillTerminalResult,
    "ReadTextFileRequest": fs.ReadTextFile,
    "ReadTextFileResponse": fs.ReadTextFileResult,
    "ReleaseTerminalRequest": client_services.ReleaseTerminal,
    "ReleaseTerminalResponse": client_services.ReleaseTerminalResult,
    "TerminalExitStatus": client_services.ExitStatus,
    "TerminalOutputRequest": client_services.TerminalOutput,
    "TerminalOutputResponse": client_services.TerminalOutputResult,
    "WaitForTerminalExitRequest": client_services.WaitForExit,
    "WaitForTerminalExitResponse": client_services.WaitForExitResult,
    "WriteTextFileRequest": fs.WriteTextFile,
    "WriteTextFileResponse": fs.WriteTextFileResult,
    # elicitation
    "BooleanPropertySchema": elicitation.BooleanProperty,
    "CompleteElicitationNotification": elicitation.CompleteElicitation,
    "CreateElicitationRequest": elicitation.CreateElicitation,
    "CreateElicitationResponse": elicitation.CreateElicitationResult,
    "ElicitationAcceptAction": Merged((elicitation.Accepted,)),
    "ElicitationContentValue": elicitation.ContentValue,
    "ElicitationFormMode": Merged((elicitation.FormElicitation,)),
    "ElicitationPropertySchema": elicitation.Property,
    "ElicitationRequestScope": Merged((elicitation.FormElicitation, elicitation.UrlElicitation)),
    "ElicitationSchema": elicitation.Form,
    "ElicitationSchemaType": Literal["object"],
    "ElicitationSessionScope": Merged((elicitation.FormElicitation, elicitation.UrlElicitation)),
    "ElicitationUrlMode": Merged((elicitation.UrlElicitation,)),
    "EnumOption": elicitation.EnumOption,
    "IntegerPropertySchema": elicitation.IntegerProperty,
    "MultiSelectItems": elicitation.MultiSelectItems,
    "MultiSelectPropertySchema": elicitation.MultiSelectProperty,
    "NumberPropertySchema": elicitation.NumberProperty,
    "StringFormat": elicitation.StringFormat,
    "StringMultiSelectItems": elicitation.StringItems,
    "StringPropertySchema": elicitation.StringProperty,
    "TitledMultiSelectItems": elicitation.TitledItems,
    # MCP
    "HttpHeader": mcp.HttpHeader,
    "McpError": mcp.McpError,
    "McpServer": mcp.McpServer,
    "McpServerAcp": mcp.AcpServer,
    "McpServerHttp": mcp.HttpServer,
    "McpServerSse": mcp.SseServer,
    "McpServerStdio": mcp.StdioServer,
    "MessageMcpNotification": mcp.McpNotice,
    "MessageMcpRequest": mcp.McpMessage,
    "MessageMcpResponse": mcp.McpMessageResult,
    # signing in
    "AuthAccount": auth.AuthAccount,
    "AuthMethod": auth.AuthMethod,
    "AuthMethodAgent": auth.AgentAuth,
    "AuthMethodTerminal": auth.TerminalAuth,
    "AuthState": auth.AuthState,
    "AuthStatusRequest": auth.AuthStatus,
    "AuthStatusResponse": auth.AuthStatusResult,
    "AuthStatusUpdateNotification": auth.AuthStatusUpdate,
    "AuthenticateRequest": auth.Authenticate,
    "AuthenticateResponse": auth.AuthenticateResult,
    "LogoutRequest": auth.Logout,
    "LogoutResponse": auth.LogoutResult,
    # the handshake
    "AgentAuthCapabilities": initialize.AgentAuthCapabilities,
    "AgentCapabilities": initialize.AgentCapabilities,
    "AuthCapabilities": initialize.AuthCapabilities,
    "AuthStatusCapabilities": initialize.AuthStatusSupport,
    "BooleanConfigOptionCapabilities": initialize.BooleanConfigSupport,
    "ClientCapabilities": initialize.ClientCapabilities,
    "ClientSessionCapabilities": initialize.ClientSessionCapabilities,
    "CompactionCapabilities": initialize.CompactionSupport,
    "ElicitationCapabilities": initialize.ElicitationCapabilities,
    "ElicitationFormCapabilities": initialize.FormSupport,
    "ElicitationUrlCapabilities": initialize.UrlSupport,
    "FileSystemCapabilities": initialize.FileCapabilities,
    "Implementation": initialize.Implementation,
    "InitializeRequest": initialize.Initialize,
    "InitializeResponse": initialize.InitializeResult,
    "LogoutCapabilities": initialize.LogoutSupport,
    "McpCapabilities": initialize.McpCapabilities,
    "NoticeCapabilities": initialize.NoticeSupport,
    "PlanCapabilities": initialize.PlanSupport,
    "PromptCapabilities": initialize.PromptCapabilities,
    "ProvidersCapabilities": initialize.ProvidersSupport,
    "SessionAdditionalDirectoriesCapabilities": initialize.DirectoriesSupport,
    "SessionArchiveCapabilities": initialize.ArchiveSupport,
    "SessionCancelCapabilities": initialize.CancelSupport,
    "SessionCapabilities": initialize.SessionCapabilities,
    "SessionCloseCapabilities": initialize.CloseSupport,
    "SessionConfigOptionsCapabilities": initialize.ConfigCapabilities,
    "SessionDeleteCapabilities": initialize.DeleteSupport,
    "SessionForkCapabilities": initialize.ForkSupport,
    "SessionListCapabilities": initialize.ListSupport,
    "SessionResumeCapabilities": initialize.ResumeSupport,
    "SessionStatusCapabilities": initialize.StatusSupport,
    "SessionSystemPromptCapabilities": initialize.SystemPromptCapabilities,
    "SessionSystemPromptModeCapabilities": initialize.SystemPromptModeCapabilities,
    "SessionSystemPromptOverrideCapabilities": initialize.OverrideSupport,
    "SessionTitleCapabilities": initialize.TitleSupport,
    "SubagentCapabilities": initialize.SubagentSupport,
    # providers and proxies
    "DisableProviderRequest": providers.DisableProvider,
    "DisableProviderResponse": providers.DisableProviderResult,
    "InitializeProxyRequest": mcp.InitializeProxy,
    "InitializeProxyResponse": mcp.InitializeProxyResult,
    "ListProvidersRequest": providers.ListProviders,
    "ListProvidersResponse": providers.ListProvidersResult,
    "LlmProtocol": providers.LlmProtocol,
    "ProviderCurrentConfig": providers.ProviderConfig,
    "ProviderInfo": providers.Provider,
    "ProxySuccessorNotification": mcp.SuccessorNotice,
    "ProxySuccessorRequest": mcp.SuccessorCall,
    "ProxySuccessorResponse": Any,
    "SetProviderRequest": providers.SetProvider,
    "SetProviderResponse": providers.SetProviderResult,
}

BASES: frozenset[type] = frozenset(
    {
        common.SecretModel,
        common.SettingsUpdate,
        common.StateUpdate,
        common.UpdateModel,
        settings.ConfigBase,
        elicitation.ElicitationBase,
        initialize.Support,
    }
)
"""Ours alone: what several types share. They are never a message themselves."""

OURS: dict[tuple[type, str], Any] = {
    # The schema says `string` and lists the words beside it.
    (updates.IdleState, "stopReason"): updates.IdleReason | None,
    # Only `boolean` is listed, and every other word is allowed with a string.
    (session.SetConfigOption, "type"): str | None,
}
"""Fields whose type is written in another way here."""

DEFAULTS: dict[tuple[type, str], Any] = {
    (tools.ToolCall, "kind"): tools.ToolKind.OTHER,
    (tools.ToolCall, "status"): tools.ToolStatus.PENDING,
}
"""Defaults that the schema has only in prose."""

PATCHES: tuple[type, ...] = (
    tools.ToolCallPatch,
    tools.ToolCallUpdate,
    updates.SessionInfoUpdate,
    updates.CompactionUpdate,
    updates.SubagentUpdate,
    updates.SessionMessage,
)
"""Types in which an absent field and `null` mean different things."""

WITHOUT_META: frozenset[type] = frozenset(
    {common.Failure, mcp.McpError, initialize.CompactionSupport, initialize.NoticeSupport, permission.Cancelled}
)
"""Types that the schema gives no `_meta`; ours all have it, because `Model` does."""

SIDES: dict[str, str] = {
    "agent": "agent",
    "client": "client",
    "protocol": "both",
    "proxy/initialize": "agent",
    "proxy/successor": "both",
}
"""The schema's word for who handles a method, or the name of a proxy's method → ours."""

LEGACY_TYPES: frozenset[type] = frozenset(
    {
        auth.EnvVarAuth,
        settings.CurrentModelUpdate,
        settings.ModelChoice,
        settings.ModelState,
        settings.SessionModel,
        settings.SetModel,
        settings.SetModelResult,
    }
)
LEGACY_METHODS: frozenset[str] = frozenset({"session/set_model"})
LEGACY_FIELDS: dict[type, frozenset[str]] = {
    updates.PlanEntry: frozenset({"id"}),
    auth.Authenticate: frozenset({"password", "token"}),
    initialize.AgentCapabilities: frozenset({"modes", "plan"}),
    initialize.ClientCapabilities: frozenset({"prompt", "mcp"}),
    initialize.SessionCapabilities: frozenset({"subagents"}),
    session.NewSession: frozenset({"modeId", "model"}),
    session.NewSessionResult: frozenset({"models"}),
    session.LoadSessionResult: frozenset({"models", "sessionId"}),
    session.ResumeSessionResult: frozenset({"models", "sessionId"}),
    session.ForkSessionResult: frozenset({"models"}),
    session.PromptResult: frozenset({"sessionId", "messages"}),
    common.UpdateModel: frozenset({"timestamp"}),
    tools.ToolCall: frozenset({"toolKind", "input", "output"}),
    tools.ToolCallPatch: frozenset({"toolKind", "input", "output"}),
    tools.ToolCallUpdate: frozenset({"timestamp", "toolKind", "input", "output"}),
    client_services.TerminalOutputResult: frozenset({"exitCode", "signal"}),
}
"""Fields that no schema has (any more); a type has those of its bases too."""
