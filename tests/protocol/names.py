"""Which type of ours stands for which definition of the schema, and where the two differ on purpose."""

from typing import Any, Literal, NamedTuple

from antiphon.protocol.base import Uint
from antiphon.protocol.v1 import (
    auth,
    commands,
    config,
    content,
    elicitation,
    forms,
    initialize,
    legacy,
    mcp,
    messages,
    modes,
    notices,
    permission,
    plan,
    providers,
    proxy,
    requests,
    secrets,
    session,
    subagents,
    support,
    system_prompt,
    terminals,
    tools,
    updates,
    updating,
    usage,
)
from antiphon.protocol.v1 import files as fs


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
    "RequestId": requests.RequestId,
    "ErrorCode": int,
    "Error": requests.Failure,
    "CancelRequestNotification": requests.CancelRequest,
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
    "AvailableCommand": commands.Command,
    "AvailableCommandInput": commands.CommandInput,
    "AvailableCommandsUpdate": commands.AvailableCommandsUpdate,
    "CompactionStatus": notices.CompactionStatus,
    "CompactionSummaryChunk": notices.CompactionSummaryChunk,
    "CompactionUpdate": notices.CompactionUpdate,
    "ConfigOptionUpdate": config.ConfigOptionUpdate,
    "ContentChunk": messages.MessageChunk,
    "Cost": usage.Cost,
    "CurrentModeUpdate": modes.CurrentModeUpdate,
    "Notice": notices.NoticeUpdate,
    "NoticeSeverity": notices.NoticeSeverity,
    "Plan": plan.Plan,
    "PlanEntry": plan.PlanEntry,
    "PlanEntryPriority": plan.PlanPriority,
    "PlanEntryStatus": plan.PlanStatus,
    "PlanFile": plan.PlanFile,
    "PlanItems": plan.PlanItems,
    "PlanMarkdown": plan.PlanMarkdown,
    "PlanRemoved": plan.PlanRemoved,
    "PlanUpdate": plan.PlanUpdate,
    "PlanUpdateContent": plan.PlanContent,
    "SessionInfoUpdate": notices.SessionInfoUpdate,
    "SessionMessage": messages.SessionMessage,
    "SessionMessageChunk": messages.SessionMessageChunk,
    "SessionUpdate": updates.Update,
    "UnstructuredCommandInput": commands.CommandInput,
    "Usage": usage.Usage,
    "UsageUpdate": usage.UsageUpdate,
    # subagents
    "ErrorStopReason": Merged((subagents.IdleState,)),
    "IdleStateUpdate": subagents.IdleState,
    "RequiresActionStateUpdate": subagents.ActionRequiredState,
    "RunningStateUpdate": subagents.RunningState,
    "StateUpdate": subagents.SubagentState,
    "SubagentSessionCapabilities": subagents.SubagentSessionCapabilities,
    "SubagentUpdate": subagents.SubagentUpdate,
    "UnknownStateUpdate": subagents.UnknownState,
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
    "SessionMode": modes.Mode,
    "SessionModeState": modes.ModeState,
    "SessionNotification": session.SessionUpdate,
    "SessionStatus": session.SessionState,
    "SessionStatusRequest": session.SessionStatus,
    "SessionStatusResponse": session.SessionStatusResult,
    "SetSessionModeRequest": session.SetMode,
    "SetSessionModeResponse": session.SetModeResult,
    "SetSessionTitleRequest": session.SetTitle,
    "SetSessionTitleResponse": session.SetTitleResult,
    "StopReason": session.StopReason,
    "SystemPrompt": system_prompt.SystemPrompt,
    "SystemPromptMode": system_prompt.SystemPromptMode,
    "UnarchiveSessionRequest": session.UnarchiveSession,
    "UnarchiveSessionResponse": session.UnarchiveSessionResult,
    # settings
    "SessionConfigBoolean": Merged((config.BooleanConfig,)),
    "SessionConfigOption": config.ConfigOption,
    "SessionConfigOptionCategory": config.ConfigCategory,
    "SessionConfigSelect": Merged((config.SelectConfig,)),
    "SessionConfigSelectGroup": config.SelectGroup,
    "SessionConfigSelectOption": config.SelectOption,
    "SessionConfigSelectOptions": list[config.SelectEntry],
    "SetSessionConfigOptionRequest": session.SetConfigOption,
    "SetSessionConfigOptionResponse": session.SetConfigOptionResult,
    # the client's files and terminals
    "CreateTerminalRequest": terminals.CreateTerminal,
    "CreateTerminalResponse": terminals.CreateTerminalResult,
    "EnvVariable": terminals.EnvVariable,
    "KillTerminalRequest": terminals.KillTerminal,
    "KillTerminalResponse": terminals.KillTerminalResult,
    "ReadTextFileRequest": fs.ReadTextFile,
    "ReadTextFileResponse": fs.ReadTextFileResult,
    "ReleaseTerminalRequest": terminals.ReleaseTerminal,
    "ReleaseTerminalResponse": terminals.ReleaseTerminalResult,
    "TerminalExitStatus": terminals.ExitStatus,
    "TerminalOutputRequest": terminals.TerminalOutput,
    "TerminalOutputResponse": terminals.TerminalOutputResult,
    "WaitForTerminalExitRequest": terminals.WaitForExit,
    "WaitForTerminalExitResponse": terminals.WaitForExitResult,
    "WriteTextFileRequest": fs.WriteTextFile,
    "WriteTextFileResponse": fs.WriteTextFileResult,
    # elicitation
    "BooleanPropertySchema": forms.BooleanProperty,
    "CompleteElicitationNotification": elicitation.CompleteElicitation,
    "CreateElicitationRequest": elicitation.CreateElicitation,
    "CreateElicitationResponse": elicitation.CreateElicitationResult,
    "ElicitationAcceptAction": Merged((elicitation.Accepted,)),
    "ElicitationContentValue": elicitation.ContentValue,
    "ElicitationFormMode": Merged((elicitation.FormElicitation,)),
    "ElicitationPropertySchema": forms.Property,
    "ElicitationRequestScope": Merged((elicitation.FormElicitation, elicitation.UrlElicitation)),
    "ElicitationSchema": forms.Form,
    "ElicitationSchemaType": Literal["object"],
    "ElicitationSessionScope": Merged((elicitation.FormElicitation, elicitation.UrlElicitation)),
    "ElicitationUrlMode": Merged((elicitation.UrlElicitation,)),
    "EnumOption": forms.EnumOption,
    "IntegerPropertySchema": forms.IntegerProperty,
    "MultiSelectItems": forms.MultiSelectItems,
    "MultiSelectPropertySchema": forms.MultiSelectProperty,
    "NumberPropertySchema": forms.NumberProperty,
    "StringFormat": forms.StringFormat,
    "StringMultiSelectItems": forms.StringItems,
    "StringPropertySchema": forms.StringProperty,
    "TitledMultiSelectItems": forms.TitledItems,
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
    "AuthStatusCapabilities": support.AuthStatusSupport,
    "BooleanConfigOptionCapabilities": support.BooleanConfigSupport,
    "ClientCapabilities": initialize.ClientCapabilities,
    "ClientSessionCapabilities": initialize.ClientSessionCapabilities,
    "CompactionCapabilities": support.CompactionSupport,
    "ElicitationCapabilities": initialize.ElicitationCapabilities,
    "ElicitationFormCapabilities": support.FormSupport,
    "ElicitationUrlCapabilities": support.UrlSupport,
    "FileSystemCapabilities": initialize.FileCapabilities,
    "Implementation": initialize.Implementation,
    "InitializeRequest": initialize.Initialize,
    "InitializeResponse": initialize.InitializeResult,
    "LogoutCapabilities": support.LogoutSupport,
    "McpCapabilities": initialize.McpCapabilities,
    "NoticeCapabilities": support.NoticeSupport,
    "PlanCapabilities": support.PlanSupport,
    "PromptCapabilities": initialize.PromptCapabilities,
    "ProvidersCapabilities": support.ProvidersSupport,
    "SessionAdditionalDirectoriesCapabilities": support.DirectoriesSupport,
    "SessionArchiveCapabilities": support.ArchiveSupport,
    "SessionCancelCapabilities": support.CancelSupport,
    "SessionCapabilities": initialize.SessionCapabilities,
    "SessionCloseCapabilities": support.CloseSupport,
    "SessionConfigOptionsCapabilities": initialize.ConfigCapabilities,
    "SessionDeleteCapabilities": support.DeleteSupport,
    "SessionForkCapabilities": support.ForkSupport,
    "SessionListCapabilities": support.ListSupport,
    "SessionResumeCapabilities": support.ResumeSupport,
    "SessionStatusCapabilities": support.StatusSupport,
    "SessionSystemPromptCapabilities": initialize.SystemPromptCapabilities,
    "SessionSystemPromptModeCapabilities": initialize.SystemPromptModeCapabilities,
    "SessionSystemPromptOverrideCapabilities": support.OverrideSupport,
    "SessionTitleCapabilities": support.TitleSupport,
    "SubagentCapabilities": support.SubagentSupport,
    # providers and proxies
    "DisableProviderRequest": providers.DisableProvider,
    "DisableProviderResponse": providers.DisableProviderResult,
    "InitializeProxyRequest": proxy.InitializeProxy,
    "InitializeProxyResponse": proxy.InitializeProxyResult,
    "ListProvidersRequest": providers.ListProviders,
    "ListProvidersResponse": providers.ListProvidersResult,
    "LlmProtocol": providers.LlmProtocol,
    "ProviderCurrentConfig": providers.ProviderConfig,
    "ProviderInfo": providers.Provider,
    "ProxySuccessorNotification": proxy.SuccessorNotice,
    "ProxySuccessorRequest": proxy.SuccessorCall,
    "ProxySuccessorResponse": Any,
    "SetProviderRequest": providers.SetProvider,
    "SetProviderResponse": providers.SetProviderResult,
}

BASES: frozenset[type] = frozenset(
    {
        secrets.SecretModel,
        updating.SettingsUpdate,
        updating.StateUpdate,
        updating.UpdateModel,
        config.ConfigBase,
        elicitation.ElicitationBase,
        support.Support,
    }
)
"""Ours alone: what several types share. They are never a message themselves."""

OURS: dict[tuple[type, str], Any] = {
    # The schema says `string` and lists the words beside it.
    (subagents.IdleState, "stopReason"): subagents.IdleReason | None,
    # Only `boolean` is listed, and every other word is allowed with a string.
    (session.SetConfigOption, "type"): str | None,
}
"""Fields whose type is said in another way here."""

DEFAULTS: dict[tuple[type, str], Any] = {
    (tools.ToolCall, "kind"): tools.ToolKind.OTHER,
    (tools.ToolCall, "status"): tools.ToolStatus.PENDING,
}
"""Defaults that the schema tells only in prose."""

PATCHES: tuple[type, ...] = (
    tools.ToolCallPatch,
    tools.ToolCallUpdate,
    notices.SessionInfoUpdate,
    notices.CompactionUpdate,
    subagents.SubagentUpdate,
    messages.SessionMessage,
)
"""Types in which an absent field and `null` mean different things."""

WITHOUT_META: frozenset[type] = frozenset(
    {requests.Failure, mcp.McpError, support.CompactionSupport, support.NoticeSupport, permission.Cancelled}
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
        legacy.CurrentModelUpdate,
        legacy.ModelChoice,
        legacy.ModelState,
        legacy.SessionModel,
        legacy.SetModel,
        legacy.SetModelResult,
    }
)
LEGACY_METHODS: frozenset[str] = frozenset({"session/set_model"})
LEGACY_FIELDS: dict[type, frozenset[str]] = {
    plan.PlanEntry: frozenset({"id"}),
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
    updating.UpdateModel: frozenset({"timestamp"}),
    tools.ToolCall: frozenset({"toolKind", "input", "output"}),
    tools.ToolCallPatch: frozenset({"toolKind", "input", "output"}),
    tools.ToolCallUpdate: frozenset({"timestamp", "toolKind", "input", "output"}),
    terminals.TerminalOutputResult: frozenset({"exitCode", "signal"}),
}
"""Fields that no schema has (any more); a type has those of its bases too."""
