"""Rows about the handshake and about signing in."""

from antiphon.protocol.v1.dialects import BANJO_NOTES, BRIDGE, GO_CLIENT, OPENCODE
from tests.dialects.row import Json, Row

__all__ = ["INITIALIZE_ROWS"]

INIT = "initialize"
SHORT = ("client capabilities by their short name",)
METHODS = [{"id": "oauth", "name": "Browser"}, {"type": "terminal", "id": "login", "name": "Terminal"}]

_ROWS = [
    Row(
        "capabilities", BRIDGE, INIT, "params", b'{"protocolVersion":1,"capabilities":{}}',
        {"protocolVersion": 1, "clientCapabilities": {}}, SHORT,
        says={"protocolVersion": 1, "agentCapabilities": {"loadSession": True}},
        received={"protocolVersion": 1, "agentCapabilities": {"loadSession": True}, "capabilities": {"loadSession": True}},
    ),
    Row(
        "capabilities with something in them", GO_CLIENT, INIT, "params",
        b'{"protocolVersion":1,"capabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true}}',
        {
            "protocolVersion": 1,
            "clientCapabilities": {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True},
        },
        SHORT, says={"protocolVersion": 1}, received={"protocolVersion": 1, "capabilities": {}},
    ),
    Row(
        "prompt and mcp of a client", OPENCODE, INIT, "params",
        b'{"protocolVersion":1,"clientInfo":{"name":"zed","title":"Zed"},"clientCapabilities":{"terminal":true,'
        b'"prompt":{"image":true,"embeddedContext":true},"mcp":{"transport":{"http":true,"sse":true}}}}',
        {
            "protocolVersion": 1,
            "clientInfo": {"name": "zed", "title": "Zed", "version": ""},
            "clientCapabilities": {
                "terminal": True,
                "prompt": {"image": True, "embeddedContext": True},
                "mcp": {"http": True, "sse": True},
            },
        },
        ("client that prompts and knows MCP", "client without version"),
        says={"protocolVersion": 1, "authMethods": METHODS}, received={"protocolVersion": 1, "authMethods": ["oauth", "login"]},
    ),
    Row(
        "prompt of a client", OPENCODE, INIT, "params",
        b'{"protocolVersion":1,"clientCapabilities":{"prompt":{"audio":true}}}',
        {"protocolVersion": 1, "clientCapabilities": {"prompt": {"audio": True}}}, ("client that prompts and knows MCP",),
        says={"protocolVersion": 1}, received={"protocolVersion": 1},
    ),
    Row(
        "mcp of a client", OPENCODE, INIT, "params",
        b'{"protocolVersion":1,"clientCapabilities":{"mcp":{"transport":{"sse":true}}}}',
        {"protocolVersion": 1, "clientCapabilities": {"mcp": {"sse": True}}}, ("client that prompts and knows MCP",),
        says={"protocolVersion": 1, "authMethods": METHODS}, received={"protocolVersion": 1, "authMethods": ["oauth", "login"]},
    ),
    Row(
        "nulls for what a client cannot do", BANJO_NOTES, INIT, "params",
        b'{"protocolVersion":1,"clientInfo":{"name":"zed","version":"1"},"clientCapabilities":{"fs":{"readTextFile":true,'
        b'"writeTextFile":null},"terminal":null}}',
        {
            "protocolVersion": 1, "clientInfo": {"name": "zed", "version": "1"},
            "clientCapabilities": {"fs": {"readTextFile": True}},
        },
    ),
    # What agents answer.
    Row(
        "capabilities of an agent", BRIDGE, INIT, "result", b'{"protocolVersion":1,"capabilities":{"loadSession":true}}',
        {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}, ("agent capabilities by their short name",),
    ),
    Row(
        "modes, plan and words", OPENCODE, INIT, "result",
        b'{"protocolVersion":1,"agentInfo":{"name":"opencode"},"agentCapabilities":{"modes":true,"plan":false},'
        b'"authMethods":["none","password","oauth"]}',
        {
            "protocolVersion": 1,
            "agentInfo": {"name": "opencode", "version": ""},
            "agentCapabilities": {"modes": True, "plan": False},
            "authMethods": [
                {"id": "none", "name": "none"}, {"id": "password", "name": "password"}, {"id": "oauth", "name": "oauth"},
            ],
        },
        ("agent without version", "sign-in methods as words"),
    ),
    Row(
        "nulls for what an agent cannot do", BANJO_NOTES, INIT, "result",
        b'{"protocolVersion":1,"agentInfo":{"name":"Banjo Duet","title":"Banjo Duet","version":"0.5.0 (hash)"},"agentCapabilities":'
        b'{"promptCapabilities":{"image":true,"audio":false,"embeddedContext":true},"mcpCapabilities":null,'
        b'"sessionCapabilities":null,"loadSession":false},"authMethods":[]}',
        {
            "protocolVersion": 1,
            "agentInfo": {"name": "Banjo Duet", "title": "Banjo Duet", "version": "0.5.0 (hash)"},
            "agentCapabilities": {"promptCapabilities": {"image": True, "embeddedContext": True}},
        },
    ),
    Row(
        "modes and plan alone", OPENCODE, INIT, "result",
        b'{"protocolVersion":1,"agentCapabilities":{"modes":true,"plan":true}}',
        {"protocolVersion": 1, "agentCapabilities": {"modes": True, "plan": True}},
    ),
    Row(
        "content that a prompt may hold", GO_CLIENT, INIT, "result",
        b'{"protocolVersion":1,"agentCapabilities":{"promptCapabilities":{"content":["text","image","embeddedContext"]}}}',
        {"protocolVersion": 1, "agentCapabilities": {"promptCapabilities": {"image": True, "embeddedContext": True}}},
        ("prompt capabilities as a list",),
    ),
    Row(
        "both transports", GO_CLIENT, INIT, "result",
        b'{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"mcp":{"httpTransport":true,"sseTransport":true}}}',
        {"protocolVersion": 1, "agentCapabilities": {"loadSession": True, "mcpCapabilities": {"http": True, "sse": True}}},
        ("MCP capabilities by transport",),
    ),
    Row(
        "one transport", GO_CLIENT, INIT, "result",
        b'{"protocolVersion":1,"agentCapabilities":{"mcp":{"sseTransport":true}}}',
        {"protocolVersion": 1, "agentCapabilities": {"mcpCapabilities": {"sse": True}}}, ("MCP capabilities by transport",),
    ),
    Row(
        "everything under the short name", GO_CLIENT, INIT, "result",
        b'{"protocolVersion":1,"capabilities":{"promptCapabilities":{"content":["audio"]},"mcp":{"httpTransport":true}}}',
        {
            "protocolVersion": 1,
            "agentCapabilities": {"promptCapabilities": {"audio": True}, "mcpCapabilities": {"http": True}},
        },
        ("agent capabilities by their short name", "prompt capabilities as a list", "MCP capabilities by transport"),
    ),
    Row(
        "variables to set", "codex-acp 0.16.0", INIT, "result",
        b'{"protocolVersion":1,"authMethods":[{"type":"env_var","id":"key","name":"Key","vars":[{"name":"OPENAI_API_KEY"}]}]}',
        {
            "protocolVersion": 1,
            "authMethods": [{"type": "env_var", "id": "key", "name": "Key", "vars": [{"name": "OPENAI_API_KEY"}]}],
        },
    ),
    Row(
        "subagents", "codex-acp 2.6.0", INIT, "result",
        b'{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"list":{},"subagents":{}}}}',
        {"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": {"list": {}, "subagents": {}}}},
    ),
    # Signing in.
    Row(
        "a password", OPENCODE, "authenticate", "params", b'{"method":"password","password":"hunter2"}',
        {"methodId": "password", "password": "hunter2"}, ("method for methodId",),
    ),
    Row(
        "a token", OPENCODE, "authenticate", "params", b'{"method":"oauth","token":"t0ken"}',
        {"methodId": "oauth", "token": "t0ken"}, ("method for methodId",),
    ),
]  # fmt: skip


def _whole(answer: Json) -> Json:
    """An answer to `initialize` as we send it: always with the ways to sign in."""
    return {"authMethods": [], **answer} if isinstance(answer, dict) else answer


def _with_whole_answers(row: Row) -> Row:
    if row.method != INIT:
        return row
    return (
        row._replace(seen=_whole(row.seen))
        if row.half == "result"
        else row._replace(says=_whole(row.says), received=_whole(row.received))
    )


INITIALIZE_ROWS = [*map(_with_whole_answers, _ROWS)]
