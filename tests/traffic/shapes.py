"""Every shape of message that agents and clients in use today were seen to send, in words of our own.

The shapes are theirs: which fields come together, which are null or empty, where `_meta` stands. The texts and ids are
not.
"""

from typing import Any, Literal, NamedTuple

from antiphon.protocol.base import Unknown
from antiphon.protocol.v1 import (
    auth,
    client_services,
    elicitation,
    initialize,
    permission,
    session,
    settings,
    tools,
    updates,
)

__all__ = ["ANSWERED", "ASKED", "EXTENSIONS", "FAILED", "NOTIFICATIONS", "STRAY", "Answer", "Failed", "Message"]  # fmt: skip

Side = Literal["agent", "client"]


class Message(NamedTuple):
    """A request or a notification, and the type of its params (of its update, where it is one)."""

    by: Side
    line: bytes
    type: Any
    rules: tuple[str, ...] = ()


class Answer(NamedTuple):
    """An answer to a method, and the type of its result."""

    to: str
    line: bytes
    type: Any
    rules: tuple[str, ...] = ()


class Failed(NamedTuple):
    """An error, and the type of its data."""

    line: bytes
    code: int
    data: type


def _asked(method: str, params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":1,"method":"%b","params":%b}' % (method.encode(), params)


def _notification(method: str, params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","method":"%b","params":%b}' % (method.encode(), params)


def _update(kind: str, fields: bytes, around: bytes = b"") -> bytes:
    update = b'{"sessionUpdate":"%b",%b}' % (kind.encode(), fields)
    return _notification("session/update", b'{"sessionId":"s1","update":%b%b}' % (update, around))


def _result(result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":1,"result":%b}' % result


def _error(error: bytes, id: bytes = b"1") -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id, error)


_AT = b'"sessionId":"s1"'
_TERMINAL = b'{"sessionId":"s1","terminalId":"t1"}'
_OPTIONS = (
    b'[{"optionId":"o1","name":"Yes","kind":"allow_once"},{"optionId":"o2","name":"Always","kind":"allow_always",'
    b'"_meta":{"scope":"here"}},{"optionId":"o3","name":"No","kind":"reject_once"},'
    b'{"optionId":"o4","name":"Never","kind":"reject_always"}]'
)
_MODES = (
    b'{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask","description":"Ask first"},'
    b'{"id":"go","name":"Go"}]}'
)
_MODELS = (
    b'{"currentModelId":"m1","availableModels":[{"modelId":"m1","name":"One","description":"Small"},'
    b'{"modelId":"m2","name":"Two"}]}'
)
# Categories: the schema's, and two that only their agents know.
_SETTINGS = (
    b'[{"type":"select","id":"mode","name":"Mode","category":"mode","currentValue":"ask","options":[{"value":"ask",'
    b'"name":"Ask","description":null}]},'
    b'{"type":"select","id":"model","name":"Model","description":"Which","category":"model",'
    b'"currentValue":"m1","options":'
    b'[{"value":"m1","name":"One"},{"value":"m2","name":"Two","description":"Large"}]},'
    b'{"type":"select","id":"fast","name":"Fast","category":"model_config","currentValue":"off","options":[]},'
    b'{"type":"select","id":"think","name":"Think","category":"thinking","currentValue":"low","options":[]},'
    b'{"type":"select","id":"level","name":"Level","category":"thought_level","currentValue":"low","options":[]},'
    b'{"type":"select","id":"team","name":"Team","category":"collaboration_mode","currentValue":"solo","options":[]}]'
)
_DIFF = b'{"type":"diff","path":"/w/a","oldText":"a","newText":"b","_meta":{"hunks":1}}'
_NEW_FILE = b'{"type":"diff","path":"/w/b","oldText":null,"newText":"b"}'
_TEXT_ITEM = b'{"type":"content","content":{"type":"text","text":"done"}}'
_LOCATIONS = b'[{"path":"/w/a"},{"path":"/w/b","line":3,"_meta":{"column":2}}]'
_RESOURCE = b'{"type":"resource","resource":{"uri":"file:///w/a","mimeType":"text/plain","text":"a"}}'
_LINK = b'{"type":"resource_link","uri":"file:///w/a","name":"a"}'
_IMAGE = b'{"type":"image","data":"aGk=","mimeType":"image/png"}'

# Requests.
ASKED: tuple[Message, ...] = (
    Message("client", _asked("initialize", b'{"protocolVersion":1}'), initialize.Initialize),
    Message(
        "client",
        _asked(
            "initialize",
            b'{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},'
            b'"terminal":true},'
            b'"clientInfo":{"name":"editor","title":"Editor","version":"1.0"}}',
        ),
        initialize.Initialize,
    ),
    Message("client", _asked("authenticate", b'{"methodId":"key"}'), auth.Authenticate),
    Message("client", _asked("session/new", b'{"cwd":"/w","mcpServers":[]}'), session.NewSession),
    Message("client", _asked("session/load", b'{%b,"cwd":"/w","mcpServers":[]}' % _AT), session.LoadSession),
    Message("client", _asked("session/resume", b'{%b,"cwd":"/w","mcpServers":[]}' % _AT), session.ResumeSession),
    Message("client", _asked("session/fork", b'{%b,"cwd":"/w","mcpServers":[]}' % _AT), session.ForkSession),
    Message("client", _asked("session/list", b"{}"), session.ListSessions),
    Message("client", _asked("session/list", b'{"cwd":"/w"}'), session.ListSessions),
    Message("client", _asked("session/close", b"{%b}" % _AT), session.CloseSession),
    Message("client", _asked("session/delete", b"{%b}" % _AT), session.DeleteSession),
    Message("client", _asked("session/set_mode", b'{%b,"modeId":"go"}' % _AT), session.SetMode),
    Message("client", _asked("session/set_model", b'{%b,"modelId":"m2"}' % _AT), settings.SetModel),
    Message(
        "client",
        _asked("session/set_config_option", b'{%b,"configId":"model","value":"m2"}' % _AT),
        session.SetConfigOption,
    ),
    Message(
        "client",
        _asked(
            "session/prompt", b'{%b,"prompt":[{"type":"text","text":"hi"},%b,%b,%b]}' % (_AT, _IMAGE, _RESOURCE, _LINK)
        ),
        session.Prompt,
    ),
    Message(
        "agent",
        _asked(
            "session/request_permission",
            b'{%b,"options":%b,"toolCall":{"toolCallId":"c1","title":"Edit","name":"edit","kind":"edit",'
            b'"status":"pending",'
            b'"content":[%b,%b,%b],"locations":%b,"rawInput":{"path":"/w/a"}}}'
            % (_AT, _OPTIONS, _TEXT_ITEM, _DIFF, _NEW_FILE, _LOCATIONS),
        ),
        permission.RequestPermission,
    ),
    Message(
        "agent",
        _asked(
            "session/request_permission",
            b'{%b,"options":[],"toolCall":{"toolCallId":"c1","kind":"execute","locations":[]}}' % _AT,
        ),
        permission.RequestPermission,
    ),
    Message("agent", _asked("fs/read_text_file", b'{%b,"path":"/w/a"}' % _AT), client_services.ReadTextFile),
    Message("agent", _asked("fs/read_text_file", b'{%b,"path":"/w/a","line":2,"limit":5}' % _AT), client_services.ReadTextFile),
    Message("agent", _asked("fs/write_text_file", b'{%b,"path":"/w/a","content":"b"}' % _AT), client_services.WriteTextFile),
    Message(
        "agent",
        _asked(
            "terminal/create",
            b'{%b,"command":"ls","args":["-l"],"env":[{"name":"A","value":"1"}],"cwd":"/w",'
            b'"outputByteLimit":1000}' % _AT,
        ),
        client_services.CreateTerminal,
    ),
    Message("agent", _asked("terminal/output", _TERMINAL), client_services.TerminalOutput),
    Message("agent", _asked("terminal/wait_for_exit", _TERMINAL), client_services.WaitForExit),
    Message("agent", _asked("terminal/kill", _TERMINAL), client_services.KillTerminal),
    Message("agent", _asked("terminal/release", _TERMINAL), client_services.ReleaseTerminal),
    Message(
        "agent",
        _asked(
            "elicitation/create",
            b'{%b,"mode":"form","message":"Who?","requestedSchema":{"type":"object",'
            b'"properties":{"name":{"type":"string",'
            b'"title":"Name"}},"required":["name"]}}' % _AT,
        ),
        elicitation.FormElicitation,
    ),
)  # fmt: skip

# Notifications.
NOTIFICATIONS: tuple[Message, ...] = (
    Message("client", _notification("session/cancel", b"{%b}" % _AT), session.Cancel),
    Message("agent", _update("user_message_chunk", b'"content":{"type":"text","text":"a"},"messageId":"m1"'),
        updates.UserMessageChunk),
    Message("agent", _update("agent_thought_chunk", b'"content":{"type":"text","text":"a"},"messageId":"m1"'),
        updates.AgentThoughtChunk),
    Message("agent", _update("agent_message_chunk", b'"content":{"type":"text","text":""}'), updates.AgentMessageChunk),
    Message(
        "agent",
        _update("agent_message_chunk", b'"content":{"type":"text","text":"a"},"messageId":"m1"', b',"_meta":{"part":1}'),
        updates.AgentMessageChunk,
    ),
    Message("agent", _update("agent_message_chunk", b'"content":' + _IMAGE), updates.AgentMessageChunk),
    Message("agent", _update("agent_message_chunk", b'"content":' + _RESOURCE), updates.AgentMessageChunk),
    Message("agent", _update("agent_message_chunk", b'"content":' + _LINK), updates.AgentMessageChunk),
    Message(
        "agent",
        _update(
            "available_commands_update",
            b'"availableCommands":[{"name":"help","description":"Help","input":null},{"name":"plan",'
            b'"description":"Plan",'
            b'"input":{"hint":"what"}},{"name":"go","description":"Go"}]',
        ),
        settings.AvailableCommandsUpdate,
    ),
    Message("agent", _update("config_option_update", b'"configOptions":' + _SETTINGS), settings.ConfigOptionUpdate),
    Message("agent", _update("current_mode_update", b'"currentModeId":"go"'), settings.CurrentModeUpdate),
    Message(
        "agent",
        _update(
            "plan",
            b'"entries":[{"content":"a","priority":"high","status":"completed"},{"content":"b","priority":"medium",'
            b'"status":"in_progress"},{"content":"c","priority":"low","status":"pending"}],"_meta":{"title":"p"}',
        ),
        updates.Plan,
    ),
    Message("agent", _update("session_info_update", b'"title":"Greeting","updatedAt":"2030-01-01T00:00:00Z"'),
        updates.SessionInfoUpdate),
    Message("agent", _update("session_info_update", b'"_meta":{"queue":{"length":0}}'), updates.SessionInfoUpdate),
    Message("agent", _update("usage_update", b'"used":10,"size":1000'), updates.UsageUpdate),
    Message(
        "agent",
        _update("usage_update", b'"used":0,"size":1000,"cost":{"amount":0.25,"currency":"EUR"},"_meta":{"model":"m1"}'),
        updates.UsageUpdate,
    ),
    Message(
        "agent",
        _update(
            "tool_call",
            b'"toolCallId":"c1","title":"Edit","name":"edit","kind":"edit","status":"in_progress","content":[%b,%b,%b,'
            b'{"type":"terminal","terminalId":"t1"}],"locations":%b,"rawInput":{"path":"/w/a","n":null},'
            b'"rawOutput":{"ok":true},'
            b'"_meta":{"tool":{"name":"Edit"}}' % (_TEXT_ITEM, _DIFF, _NEW_FILE, _LOCATIONS),
        ),
        tools.ToolCall,
    ),
    *(
        Message(
            "agent", _update("tool_call", b'"toolCallId":"c","title":"","kind":"%b","status":"%b"' % pair), tools.ToolCall
        )
        for pair in ((b"read", b"pending"), (b"execute", b"completed"), (b"search", b"failed"), (b"other", b"pending"),
                     (b"switch_mode", b"in_progress"))
    ),
    Message("agent", _update("tool_call", b'"toolCallId":"c1","title":"T","content":[],"locations":[],"rawInput":{}'),
        tools.ToolCall),
    Message(
        "agent",
        _update(
            "tool_call_update",
            b'"toolCallId":"c1","title":"Edited","name":"edit","kind":"edit","status":"completed","content":[%b,%b,%b,'
            b'{"type":"terminal","terminalId":"t1"}],"locations":%b,"rawInput":{"a":[]},"rawOutput":"text",'
            b'"_meta":{"exit":{"code":0}}' % (_TEXT_ITEM, _DIFF, _NEW_FILE, _LOCATIONS),
        ),
        tools.ToolCallUpdate,
    ),
    Message("agent", _update("tool_call_update", b'"toolCallId":"c1","status":"failed","rawOutput":{"error":"no"}'),
        tools.ToolCallUpdate),
    Message("agent", _update("tool_call_update", b'"toolCallId":"c1","content":[],"locations":[]'), tools.ToolCallUpdate),
    Message(
        "agent", _update("weather_update", b'"wind":3'), Unknown, ("unknown kind `weather_update` kept at $.update",)
    ),
)  # fmt: skip

# Answers.
ANSWERED: tuple[Answer, ...] = (
    Answer("initialize", _result(b'{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}'),
        initialize.InitializeResult),
    Answer(
        "initialize",
        _result(
            b'{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true,'
            b'"audio":false,'
            b'"embeddedContext":true},"mcpCapabilities":{"http":true,"sse":false,"acp":false},'
            b'"sessionCapabilities":{"list":{},'
            b'"resume":{},"close":{},"delete":{},"fork":{},"additionalDirectories":{},"subagents":{},'
            b'"systemPrompt":{},"title":{}},'
            b'"auth":{"logout":{}},"providers":{},"_meta":{"vendor":{"steering":true}}},'
            b'"agentInfo":{"name":"agent","title":"Agent",'
            b'"version":"1.0"},"authMethods":[{"id":"web","name":"Browser","description":"Sign in",'
            b'"_meta":{"url":"https://x"}},'
            b'{"id":"tty","name":"Terminal","type":"terminal","description":"Sign in","args":["login"],"env":{},'
            b'"_meta":{"n":1}}],'
            b'"_meta":{"build":7}}'
        ),
        initialize.InitializeResult,
    ),
    Answer("authenticate", _result(b"{}"), auth.AuthenticateResult),
    Answer("session/new", _result(b'{"sessionId":"s1"}'), session.NewSessionResult),
    *(
        Answer(
            method,
            _result(
                b'{"sessionId":"s1","modes":%b,"models":%b,"configOptions":%b,'
                b'"_meta":{"a":[1]}}' % (_MODES, _MODELS, _SETTINGS)
            ),
            kind,
        )
        for method, kind in (
            ("session/new", session.NewSessionResult),
            ("session/load", session.LoadSessionResult),
            ("session/resume", session.ResumeSessionResult),
            ("session/fork", session.ForkSessionResult),
        )
    ),
    Answer("session/load", _result(b"{}"), session.LoadSessionResult),
    Answer("session/resume", _result(b"{}"), session.ResumeSessionResult),
    Answer(
        "session/list",
        _result(b'{"sessions":[{"sessionId":"s1","cwd":"/w","title":"T","updatedAt":"2030-01-01"}],"nextCursor":null}'),
        session.ListSessionsResult,
    ),
    Answer("session/list", _result(b'{"sessions":[]}'), session.ListSessionsResult),
    Answer("session/list", _result(b"null"), session.ListSessionsResult, ("no sessions",)),
    Answer("session/close", _result(b"{}"), session.CloseSessionResult),
    Answer("session/delete", _result(b"{}"), session.DeleteSessionResult),
    Answer("session/set_mode", _result(b"{}"), session.SetModeResult),
    Answer("session/set_model", _result(b"{}"), settings.SetModelResult),
    Answer("session/set_config_option", _result(b'{"configOptions":%b}' % _SETTINGS), session.SetConfigOptionResult),
    Answer("session/set_config_option", _result(b"{}"), session.SetConfigOptionResult, ("no settings",)),
    Answer("session/prompt", _result(b'{"stopReason":"cancelled"}'), session.PromptResult),
    Answer("session/prompt", _result(b'{"stopReason":"refusal","usage":null}'), session.PromptResult),
    Answer(
        "session/prompt",
        _result(
            b'{"stopReason":"end_turn","usage":{"totalTokens":9,"inputTokens":5,"outputTokens":4,"cachedReadTokens":0,'
            b'"cachedWriteTokens":1,"thoughtTokens":2},"_meta":{"quota":{"left":1}}}'
        ),
        session.PromptResult,
    ),
    Answer("session/request_permission", _result(b'{"outcome":{"outcome":"selected","optionId":"o1"}}'),
        permission.PermissionResult),
    Answer("session/request_permission", _result(b'{"outcome":{"outcome":"cancelled"}}'), permission.PermissionResult),
    Answer("fs/read_text_file", _result(b'{"content":"a\\n"}'), client_services.ReadTextFileResult),
    Answer("fs/write_text_file", _result(b"{}"), client_services.WriteTextFileResult),
    Answer("terminal/create", _result(b'{"terminalId":"t1"}'), client_services.CreateTerminalResult),
    Answer("terminal/output", _result(b'{"output":"a","truncated":false}'), client_services.TerminalOutputResult),
    Answer(
        "terminal/output",
        _result(b'{"output":"a","truncated":false,"exitStatus":{"exitCode":0,"signal":null}}'),
        client_services.TerminalOutputResult,
    ),
    Answer("terminal/wait_for_exit", _result(b'{"exitCode":0,"signal":null}'), client_services.WaitForExitResult),
    Answer("terminal/wait_for_exit", _result(b'{"exitCode":null,"signal":"SIGKILL"}'), client_services.WaitForExitResult),
    Answer("terminal/kill", _result(b"{}"), client_services.KillTerminalResult),
    Answer("terminal/release", _result(b"{}"), client_services.ReleaseTerminalResult),
    Answer("elicitation/create", _result(b'{"action":"cancel","_meta":{"reason":"closed"}}'), elicitation.Dismissed),
)  # fmt: skip

# Errors: data is absent, null, an object, a list or a text, and a code may be anybody's.
FAILED: tuple[Failed, ...] = (
    Failed(_error(b'{"code":-32601,"message":"Method not found","data":{"method":"session/fork"}}'), -32601, dict),
    Failed(_error(b'{"code":-32002,"message":"Not found","data":{"uri":"/w/a"}}'), -32002, dict),
    Failed(_error(b'{"code":-32602,"message":"Invalid params","data":{"_errors":[],"cwd":{"_errors":["needed"]}}}'),
        -32602, dict),
    Failed(_error(b'{"code":-32602,"message":"Invalid params","data":{"errors":[{"type":"missing","loc":["cwd"]}]}}'),
        -32602, dict),
    Failed(_error(b'{"code":-32603,"message":"[]","data":[{"code":"wrong","path":["cwd"],"message":"needed"}]}'),
        -32603, list),
    Failed(_error(b'{"code":-32603,"message":"Internal error","data":"it broke"}'), -32603, str),
    Failed(_error(b'{"code":-32603,"message":"Internal error","data":null}'), -32603, type(None)),
    Failed(_error(b'{"code":400,"message":"Bad request"}'), 400, type(None)),
    Failed(_error(b'{"code":-32700,"message":"Parse error"}', id=b"null"), -32700, type(None)),
    Failed(_error(b'{"code":-32600,"message":"Invalid request","data":{"jsonrpc":"1.0","id":9}}', id=b"null"),
        -32600, dict),
)  # fmt: skip

# Methods that only their makers know, and one that is unknown.
EXTENSIONS: tuple[bytes, ...] = (
    _asked("_maker/method", b'{"a":1}'),
    _notification("_maker/notice", b'{"status":{"kind":"key","label":"L","detail":"D"}}'),
    _asked("no/such_method", b"{}"),
)

# Lines that are no message, and the name of what they are read as.
STRAY: tuple[tuple[bytes, str], ...] = (
    (b"starting up", "Noise"),
    (b'[{"jsonrpc":"2.0","id":9,"method":"session/list","params":{}}]', "Malformed"),
    (b'{"jsonrpc":"1.0","id":9,"method":"session/list"}', "Malformed"),
)
