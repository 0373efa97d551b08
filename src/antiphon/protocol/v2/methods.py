"""Every method of ACP v2: its name, the side that handles it, its params and its result."""

from typing import TYPE_CHECKING, Final, cast

from antiphon.protocol.base import Json
from antiphon.protocol.methods import AnyCall, AnyMethod, AnyNotice, Call, Dialects, Method, Notice, StreamCall, Topic
from antiphon.protocol.timeouts import APPROVAL_TIMEOUT, NO_TIMEOUT, OPEN_TIMEOUT, START_TIMEOUT

if TYPE_CHECKING:
    from antiphon.protocol.v1 import providers
    from antiphon.protocol.v2 import base, drafts, elicitation, initialize, permission, session
else:  # A type's module is loaded when its method is first used, as in version 1.
    base, drafts, elicitation, initialize, permission, session = (
        Topic(f"antiphon.protocol.v2.{topic}")
        for topic in ("base", "drafts", "elicitation", "initialize", "permission", "session")
    )
    providers = Topic("antiphon.protocol.v1.providers")

__all__ = [
    "ALL", "ARCHIVE_SESSION", "AUTH_STATUS", "AUTH_STATUS_UPDATE", "BY_NAME", "CALLS_BY_NAME", "CANCEL",
    "CANCEL_REQUEST", "CANCEL_TERMINAL", "CANCEL_TOOL_CALL", "CLOSE_SESSION", "COMPLETE_ELICITATION",
    "CREATE_ELICITATION", "DELETE_SESSION", "DISABLE_PROVIDER", "FORK_SESSION", "INITIALIZE", "LIST_PROVIDERS",
    "LIST_SESSIONS", "LOGIN", "LOGOUT", "MCP_MESSAGE", "MCP_NOTICE", "NEW_SESSION", "NOTICES_BY_NAME", "PROMPT",
    "PROXY_INITIALIZE", "PROXY_SUCCESSOR", "PROXY_SUCCESSOR_NOTICE", "REQUEST_PERMISSION", "RESUME_SESSION",
    "SESSION_STATUS", "SESSION_UPDATE", "SET_CONFIG_OPTION", "SET_PROVIDER", "SET_TITLE", "UNARCHIVE_SESSION",
]  # fmt: skip

# Unions are not classes to a type checker, so these need an explicit type.
_Elicitation = cast("type[elicitation.CreateElicitation]", elicitation.CreateElicitation)
_Answer = cast("type[elicitation.CreateElicitationResult]", elicitation.CreateElicitationResult)
_SetConfigOption = cast("type[session.SetConfigOption]", session.SetConfigOption)
_AnyJson = cast("type[Json]", Json)

CANCEL: Final = Notice("session/cancel", session.Cancel, side="agent")
SESSION_UPDATE: Final = Notice("session/update", session.SessionUpdate, side="client")

# Requests to the agent.
INITIALIZE: Final = Call(
    "initialize", initialize.Initialize, initialize.InitializeResult, side="agent", timeout=START_TIMEOUT
)
LOGIN: Final = Call("auth/login", initialize.AuthLogin, initialize.AuthLoginResult, side="agent", timeout=NO_TIMEOUT)
LOGOUT: Final = Call("auth/logout", initialize.Logout, initialize.LogoutResult, side="agent")
NEW_SESSION: Final = Call(
    "session/new", session.NewSession, session.NewSessionResult, side="agent", timeout=OPEN_TIMEOUT
)
RESUME_SESSION: Final = StreamCall(
    "session/resume",
    session.ResumeSession,
    session.ResumeSessionResult,
    SESSION_UPDATE,
    side="agent",
    timeout=OPEN_TIMEOUT,
)
LIST_SESSIONS: Final = Call("session/list", session.ListSessions, session.ListSessionsResult, side="agent")
CLOSE_SESSION: Final = Call("session/close", session.CloseSession, session.CloseSessionResult, side="agent")
DELETE_SESSION: Final = Call("session/delete", session.DeleteSession, session.DeleteSessionResult, side="agent")
PROMPT: Final = Call("session/prompt", session.Prompt, session.PromptResult, side="agent", timeout=NO_TIMEOUT)
SET_CONFIG_OPTION: Final = Call(
    "session/set_config_option", _SetConfigOption, session.SetConfigOptionResult, side="agent"
)
CANCEL_TOOL_CALL: Final = Call("tool_call/cancel", session.CancelToolCall, session.CancelToolCallResult, side="agent")
CANCEL_TERMINAL: Final = Call("terminal/cancel", session.CancelTerminal, session.CancelTerminalResult, side="agent")

# Requests and notifications to the client.
REQUEST_PERMISSION: Final = Call(
    "session/request_permission",
    permission.RequestPermission,
    permission.PermissionResult,
    side="client",
    timeout=NO_TIMEOUT,
)
CREATE_ELICITATION: Final = Call("elicitation/create", _Elicitation, _Answer, side="client", timeout=NO_TIMEOUT)
COMPLETE_ELICITATION: Final = Notice("elicitation/complete", elicitation.CompleteElicitation, side="client")

# Both ways.
CANCEL_REQUEST: Final = Notice("$/cancel_request", base.CancelRequest, side="both")

# Drafts.
AUTH_STATUS: Final = Call("auth/status", drafts.AuthStatus, drafts.AuthStatusResult, side="agent", stability="unstable")
AUTH_STATUS_UPDATE: Final = Notice("auth/status_update", drafts.AuthStatusUpdate, side="client", stability="unstable")
FORK_SESSION: Final = Call(
    "session/fork",
    drafts.ForkSession,
    drafts.ForkSessionResult,
    side="agent",
    stability="unstable",
    timeout=OPEN_TIMEOUT,
)
ARCHIVE_SESSION: Final = Call(
    "session/archive", drafts.ArchiveSession, drafts.ArchiveSessionResult, side="agent", stability="unstable"
)
UNARCHIVE_SESSION: Final = Call(
    "session/unarchive", drafts.UnarchiveSession, drafts.UnarchiveSessionResult, side="agent", stability="unstable"
)
SESSION_STATUS: Final = Call(
    "session/status", drafts.SessionStatus, drafts.SessionStatusResult, side="agent", stability="unstable"
)
SET_TITLE: Final = Call("session/set_title", drafts.SetTitle, drafts.SetTitleResult, side="agent", stability="unstable")
LIST_PROVIDERS: Final = Call(
    "providers/list", providers.ListProviders, providers.ListProvidersResult, side="agent", stability="unstable"
)
SET_PROVIDER: Final = Call(
    "providers/set", providers.SetProvider, providers.SetProviderResult, side="agent", stability="unstable"
)
DISABLE_PROVIDER: Final = Call(
    "providers/disable", providers.DisableProvider, providers.DisableProviderResult, side="agent", stability="unstable"
)
MCP_NOTICE: Final = Notice("mcp/message", drafts.McpNotice, side="agent", stability="unstable")
MCP_MESSAGE: Final = Call(
    "mcp/message",
    drafts.McpMessage,
    drafts.McpMessageResult,
    side="client",
    stability="unstable",
    timeout=APPROVAL_TIMEOUT,
)
PROXY_INITIALIZE: Final = Call(
    "proxy/initialize",
    initialize.InitializeProxy,
    initialize.InitializeProxyResult,
    side="agent",
    stability="unstable",
    timeout=START_TIMEOUT,
)
PROXY_SUCCESSOR: Final = Call(
    "proxy/successor", drafts.SuccessorCall, _AnyJson, side="both", stability="unstable", timeout=NO_TIMEOUT
)
PROXY_SUCCESSOR_NOTICE: Final = Notice("proxy/successor", drafts.SuccessorNotice, side="both", stability="unstable")

ALL: Final[tuple[AnyMethod, ...]] = tuple(value for value in dict(globals()).values() if isinstance(value, Method))
"""Every method, calls and notices."""

_DIALECTS: Final = Dialects({}, "antiphon.protocol.v2.dialects")
for _method in ALL:
    _method.dialects = _DIALECTS

NOTICES_BY_NAME: Final[dict[str, AnyNotice]] = {each.name: each for each in ALL if isinstance(each, Notice)}
CALLS_BY_NAME: Final[dict[str, AnyCall]] = {each.name: each for each in ALL if isinstance(each, Call)}
BY_NAME: Final[dict[str, AnyMethod]] = {**NOTICES_BY_NAME, **CALLS_BY_NAME}
"""Methods by name; where a name is both a request and a notification, the `Call`. `NOTICES_BY_NAME` has the other."""
