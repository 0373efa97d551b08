"""Every method of ACP v1: its name, the side that handles it, its params and its result."""

from typing import TYPE_CHECKING, Final, cast

from antiphon.protocol.base import Json
from antiphon.protocol.methods import AnyCall, AnyMethod, AnyNotice, Call, Method, Notice, StreamCall, Topic
from antiphon.protocol.timeouts import APPROVAL_TIMEOUT, NO_TIMEOUT, OPEN_TIMEOUT, START_TIMEOUT
from antiphon.protocol.v1.dialects import DIALECTS

if TYPE_CHECKING:
    from antiphon.protocol.v1 import (
        auth,
        base,
        client_services,
        elicitation,
        initialize,
        mcp,
        permission,
        providers,
        session,
        settings,
    )
else:  # A type's module is loaded when its method is first used: an editor waits for `initialize`, not for the rest.
    auth, base, client_services, elicitation, initialize, mcp, permission, providers, session, settings = (
        Topic(f"antiphon.protocol.v1.{topic}")
        for topic in (
            "auth", "base", "client_services", "elicitation", "initialize", "mcp", "permission", "providers", "session",
            "settings",
        )
    )  # fmt: skip

__all__ = [
    "ALL", "ARCHIVE_SESSION", "AUTHENTICATE", "AUTH_STATUS", "AUTH_STATUS_UPDATE", "BY_NAME", "CALLS_BY_NAME",
    "CANCEL", "CANCEL_REQUEST", "CLOSE_SESSION", "COMPLETE_ELICITATION", "CREATE_ELICITATION", "CREATE_TERMINAL",
    "DELETE_SESSION", "DISABLE_PROVIDER", "FORK_SESSION", "INITIALIZE", "KILL_TERMINAL", "LIST_PROVIDERS",
    "LIST_SESSIONS", "LOAD_SESSION", "LOGOUT", "MCP_MESSAGE", "MCP_NOTICE", "NEW_SESSION", "NOTICES_BY_NAME",
    "PROMPT", "PROXY_INITIALIZE", "PROXY_SUCCESSOR", "PROXY_SUCCESSOR_NOTICE", "READ_TEXT_FILE", "RELEASE_TERMINAL",
    "REQUEST_PERMISSION", "RESUME_SESSION", "SESSION_STATUS", "SESSION_UPDATE", "SET_CONFIG_OPTION", "SET_MODE",
    "SET_MODEL", "SET_PROVIDER", "SET_TITLE", "TERMINAL_OUTPUT", "UNARCHIVE_SESSION", "WAIT_FOR_EXIT",
    "WRITE_TEXT_FILE",
]  # fmt: skip

# Unions are not classes to a type checker, so these two need an explicit type.
_Elicitation = cast("type[elicitation.CreateElicitation]", elicitation.CreateElicitation)
_Answer = cast("type[elicitation.CreateElicitationResult]", elicitation.CreateElicitationResult)
_AnyJson = cast("type[Json]", Json)

# The two that a turn is made of, besides the prompt.
CANCEL: Final = Notice("session/cancel", session.Cancel, side="agent")
SESSION_UPDATE: Final = Notice("session/update", session.SessionUpdate, side="client")

# Requests to the agent.
INITIALIZE: Final = Call(
    "initialize", initialize.Initialize, initialize.InitializeResult, side="agent", timeout=START_TIMEOUT
)
AUTHENTICATE: Final = Call("authenticate", auth.Authenticate, auth.AuthenticateResult, side="agent", timeout=NO_TIMEOUT)
LOGOUT: Final = Call("logout", auth.Logout, auth.LogoutResult, side="agent")
AUTH_STATUS: Final = Call("auth/status", auth.AuthStatus, auth.AuthStatusResult, side="agent", stability="unstable")
NEW_SESSION: Final = Call(
    "session/new", session.NewSession, session.NewSessionResult, side="agent", timeout=OPEN_TIMEOUT
)
LOAD_SESSION: Final = StreamCall(
    "session/load", session.LoadSession, session.LoadSessionResult, SESSION_UPDATE, side="agent", timeout=OPEN_TIMEOUT
)
RESUME_SESSION: Final = Call(
    "session/resume",
    session.ResumeSession,
    session.ResumeSessionResult,
    side="agent",
    timeout=OPEN_TIMEOUT,
    aliases=("unstable_resumeSession",),
)
FORK_SESSION: Final = Call(
    "session/fork",
    session.ForkSession,
    session.ForkSessionResult,
    side="agent",
    stability="unstable",
    timeout=OPEN_TIMEOUT,
)
LIST_SESSIONS: Final = Call("session/list", session.ListSessions, session.ListSessionsResult, side="agent")
CLOSE_SESSION: Final = Call("session/close", session.CloseSession, session.CloseSessionResult, side="agent")
DELETE_SESSION: Final = Call("session/delete", session.DeleteSession, session.DeleteSessionResult, side="agent")
ARCHIVE_SESSION: Final = Call(
    "session/archive", session.ArchiveSession, session.ArchiveSessionResult, side="agent", stability="unstable"
)
UNARCHIVE_SESSION: Final = Call(
    "session/unarchive", session.UnarchiveSession, session.UnarchiveSessionResult, side="agent", stability="unstable"
)
SESSION_STATUS: Final = Call(
    "session/status", session.SessionStatus, session.SessionStatusResult, side="agent", stability="unstable"
)
PROMPT: Final = StreamCall(
    "session/prompt",
    session.Prompt,
    session.PromptResult,
    SESSION_UPDATE,
    cancel=CANCEL,
    side="agent",
    timeout=NO_TIMEOUT,
)
SET_MODE: Final = Call("session/set_mode", session.SetMode, session.SetModeResult, side="agent")
SET_CONFIG_OPTION: Final = Call(
    "session/set_config_option", session.SetConfigOption, session.SetConfigOptionResult, side="agent"
)
SET_TITLE: Final = Call(
    "session/set_title", session.SetTitle, session.SetTitleResult, side="agent", stability="unstable"
)
SET_MODEL: Final = Call(
    "session/set_model", settings.SetModel, settings.SetModelResult, side="agent", stability="legacy"
)
LIST_PROVIDERS: Final = Call(
    "providers/list", providers.ListProviders, providers.ListProvidersResult, side="agent", stability="unstable"
)
SET_PROVIDER: Final = Call(
    "providers/set", providers.SetProvider, providers.SetProviderResult, side="agent", stability="unstable"
)
DISABLE_PROVIDER: Final = Call(
    "providers/disable", providers.DisableProvider, providers.DisableProviderResult, side="agent", stability="unstable"
)
PROXY_INITIALIZE: Final = Call(
    "proxy/initialize",
    mcp.InitializeProxy,
    mcp.InitializeProxyResult,
    side="agent",
    stability="unstable",
    timeout=START_TIMEOUT,
)

# Notifications to the agent.
MCP_NOTICE: Final = Notice("mcp/message", mcp.McpNotice, side="agent", stability="unstable")

# Requests to the client.
REQUEST_PERMISSION: Final = Call(
    "session/request_permission",
    permission.RequestPermission,
    permission.PermissionResult,
    side="client",
    timeout=NO_TIMEOUT,
)
READ_TEXT_FILE: Final = Call(
    "fs/read_text_file",
    client_services.ReadTextFile,
    client_services.ReadTextFileResult,
    side="client",
    timeout=APPROVAL_TIMEOUT,
)
WRITE_TEXT_FILE: Final = Call(
    "fs/write_text_file",
    client_services.WriteTextFile,
    client_services.WriteTextFileResult,
    side="client",
    timeout=APPROVAL_TIMEOUT,
)
CREATE_TERMINAL: Final = Call(
    "terminal/create",
    client_services.CreateTerminal,
    client_services.CreateTerminalResult,
    side="client",
    timeout=APPROVAL_TIMEOUT,
)
TERMINAL_OUTPUT: Final = Call(
    "terminal/output", client_services.TerminalOutput, client_services.TerminalOutputResult, side="client"
)
WAIT_FOR_EXIT: Final = Call(
    "terminal/wait_for_exit",
    client_services.WaitForExit,
    client_services.WaitForExitResult,
    side="client",
    timeout=NO_TIMEOUT,
)
KILL_TERMINAL: Final = Call(
    "terminal/kill", client_services.KillTerminal, client_services.KillTerminalResult, side="client"
)
RELEASE_TERMINAL: Final = Call(
    "terminal/release", client_services.ReleaseTerminal, client_services.ReleaseTerminalResult, side="client"
)
CREATE_ELICITATION: Final = Call("elicitation/create", _Elicitation, _Answer, side="client", timeout=NO_TIMEOUT)
MCP_MESSAGE: Final = Call(
    "mcp/message", mcp.McpMessage, mcp.McpMessageResult, side="client", stability="unstable", timeout=APPROVAL_TIMEOUT
)

# Notifications to the client.
COMPLETE_ELICITATION: Final = Notice("elicitation/complete", elicitation.CompleteElicitation, side="client")
AUTH_STATUS_UPDATE: Final = Notice("auth/status_update", auth.AuthStatusUpdate, side="client", stability="unstable")

# Both ways.
CANCEL_REQUEST: Final = Notice("$/cancel_request", base.CancelRequest, side="both")
# It carries another request, which has a timeout of its own at its end.
PROXY_SUCCESSOR: Final = Call(
    "proxy/successor", mcp.SuccessorCall, _AnyJson, side="both", stability="unstable", timeout=NO_TIMEOUT
)
PROXY_SUCCESSOR_NOTICE: Final = Notice("proxy/successor", mcp.SuccessorNotice, side="both", stability="unstable")

ALL: Final[tuple[AnyMethod, ...]] = tuple(value for value in dict(globals()).values() if isinstance(value, Method))
"""Every method, calls and notices."""

for _method in ALL:
    _method.dialects = DIALECTS

NOTICES_BY_NAME: Final[dict[str, AnyNotice]] = {each.name: each for each in ALL if isinstance(each, Notice)}
CALLS_BY_NAME: Final[dict[str, AnyCall]] = {each.name: each for each in ALL if isinstance(each, Call)}
BY_NAME: Final[dict[str, AnyMethod]] = {**NOTICES_BY_NAME, **CALLS_BY_NAME}
"""Methods by name; where a name is both a request and a notification, the `Call`. `NOTICES_BY_NAME` has the other."""
