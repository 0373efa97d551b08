"""How agents introduce themselves, open sessions, end turns and fail in the words of the seeds, and what our clients make of that."""

from typing import Any

from tests.seeds.table import ClientRow

__all__ = ["ENDING_ROWS", "OPENING_ROWS"]

Json = dict[str, Any]


def error(code: int, message: str, **data: Any) -> Json:
    return {"error": {"code": code, "message": message, **data}}


OPENING_ROWS = [
    ClientRow(
        "an agent of the notes, with nulls for what it cannot do", "notes", ["initialize", "agentInfo"],
        hello={
            "protocolVersion": 1, "agentInfo": {"name": "Banjo Duet", "title": "Banjo Duet", "version": "0.5.0 (hash)"},
            "agentCapabilities": {
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True}, "mcpCapabilities": None,
                "sessionCapabilities": None, "loadSession": False,
            },
            "authMethods": [{"id": "claude-login", "name": "Log in", "description": "Run `claude /login`"}],
        },
        opens={"capabilities": {"promptCapabilities": {"image": True, "embeddedContext": True}}, "auth": [{"id": "claude-login", "name": "Log in"}]},
    ),
    ClientRow(
        "an agent of the spec, with words for ways to sign in", "spec", ["initialize", "authMethods as words", "agentCapabilities.modes"],
        hello={
            "protocolVersion": 1, "agentInfo": {"name": "opencode"}, "agentCapabilities": {"modes": True, "plan": True},
            "authMethods": ["none", "password", "oauth"],
        },
        opens={"auth": [{"id": "none"}, {"id": "password"}, {"id": "oauth"}]},
    ),
    ClientRow(
        "an agent of the guide, with its kinds of content as a list", "guide", ["initialize", "promptCapabilities.content", "mcp transports"],
        hello={
            "protocolVersion": 1, "agentInfo": {"name": "go", "version": "1"},
            "agentCapabilities": {
                "loadSession": True, "promptCapabilities": {"content": ["text", "image", "audio", "embeddedContext"]},
                "mcp": {"httpTransport": True, "sseTransport": True},
            },
        },
        opens={"capabilities": {
            "loadSession": True, "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
            "mcpCapabilities": {"http": True, "sse": True},
        }},
    ),
    ClientRow(
        "an agent that omits its capabilities has none", "guide", ["omitted capabilities"],
        hello={"protocolVersion": 1, "agentCapabilities": {}}, opens={"capabilities": {}},
    ),
    ClientRow(
        "an agent behind the bridge, with capabilities by their short name", "bridge", ["capabilities"],
        hello={"protocolVersion": 1, "capabilities": {"loadSession": True}}, opens={"capabilities": {"loadSession": True}},
    ),
    ClientRow(
        "a session with settings, models by id and modes; all of them can be chosen", "wire",
        ["configOptions", "models", "modes", "auto_resume", "session/set_mode", "session/set_model", "session/set_config_option"],
        new=[{
            "configOptions": [{
                "id": "auto_resume", "name": "Auto-resume", "type": "select", "currentValue": "true",
                "options": [{"value": "true", "name": "On"}, {"value": "false", "name": "Off"}],
            }],
            "models": {"availableModels": [{"id": "sonnet", "name": "Sonnet", "description": "d"}, {"id": "opus", "name": "Opus"}], "currentModelId": "sonnet"},
            "modes": {"availableModes": [{"id": "default", "name": "Default"}, {"id": "plan", "name": "Plan"}], "currentModeId": "default"},
        }],
        words=["--mode", "plan", "--model", "opus", "--set", "auto_resume=false"],
        events=[{"type": "start", "mode": "plan", "model": "opus"}],
        opens={
            "modes": {"currentModeId": "default"}, "models": {"currentModelId": "sonnet", "availableModels": [{"modelId": "opus"}]},
            "options": [{"id": "auto_resume", "currentValue": "true"}],
        },
        received={"session/set_mode": 1, "session/set_model": 1, "session/set_config_option": 1},
    ),
    ClientRow(
        "a session with its modes as a list", "spec", ["modes as a list"],
        new=[{"modes": [{"id": "code", "name": "Code"}, {"id": "plan", "name": "Plan", "description": "d"}], "currentModeId": "code"}],
        words=["--mode", "plan"], events=[{"type": "start", "mode": "plan"}], opens={"modes": {"currentModeId": "code"}},
        received={"session/set_mode": 1},
    ),
    ClientRow("a session by its id alone", "guide", ["session/new"], new=[{}], opens={"modes": None}),
]  # fmt: skip

ENDING_ROWS = [
    *(
        ClientRow(
            f"a turn that ends with {reason} ends `run` with {status}", seed, [f"stop {reason}"], ends=[{"stopReason": reason}],
            status=status, events=[{"type": "result", "stopReason": shown, "exitCode": status}],
        )
        for reason, seed, status, shown in (
            ("end_turn", "notes", 0, "end_turn"), ("max_tokens", "spec", 4, "max_tokens"), ("max_turn_requests", "wire", 4, "max_turn_requests"),
            ("refusal", "guide", 3, "refusal"), ("cancelled", "bridge", 130, "cancelled"), ("tool_error", "spec", 1, "tool_error"),
        )
    ),
    ClientRow(
        "a turn that ends with auth_required wants a sign-in", "notes", ["stop auth_required"], ends=[{"stopReason": "auth_required"}],
        hello={"protocolVersion": 1, "authMethods": [{"id": "claude-login", "name": "Log in"}]},
        status=7, says=["wants you to sign in", "claude-login"], received={"session/prompt": 1},
    ),
    ClientRow(
        "the answer to a prompt has messages and the id of its session", "guide", ["prompt result with messages"],
        ends=[{"sessionId": "s-1", "messages": [{"role": "assistant", "content": "hi"}], "stopReason": "end_turn"}],
    ),
    # The table of codes: what is tried again, and what is not.
    *(
        ClientRow(
            f"{code} ({message}) to a prompt is {'an error' if status else 'tried again'}", seed, [str(code)],
            ends=[error(code, message), {"stopReason": "end_turn"}], status=status,
            received={"session/prompt": 1 if status else 2}, says=says,
        )
        for code, message, seed, status, says in (
            (-32700, "Parse error", "guide", 1, ["Parse error"]),
            (-32600, "Invalid request", "spec", 1, ["Invalid request"]),
            (-32601, "Method not found", "spec", 1, ["Method not found"]),
            (-32602, "Invalid params", "spec", 1, ["Invalid params"]),
            (-32603, "Internal error", "guide", 1, ["Internal error"]),
            (-32000, "Connection closed", "guide", 0, []),
            (-32000, "Authentication required", "notes", 7, ["sign in"]),
            (-32002, "Permission denied", "guide", 1, ["Permission denied"]),
            (-32003, "Session expired", "guide", 0, []),
            (-32050, "Out of voice", "spec", 1, ["Out of voice"]),
        )
    ),
    *(
        ClientRow(
            f"{code} ({message}) to session/new is {'an error' if status else 'tried again'}", seed, [str(code), "retry with backoff"],
            new=[error(code, message), {}], status=status, received={"session/new": 1 if status else 2, "started": 1},
        )
        for code, message, seed, status in (
            (-32000, "Connection closed", "guide", 0), (-32001, "Request timeout", "guide", 0),
            (-32000, "Authentication required", "notes", 7), (-32603, "Internal error", "guide", 1),
        )
    ),
    ClientRow(
        "an agent that says twice that a connection was closed is started again", "guide", ["-32000", "reconnect"],
        new=[error(-32000, "Connection closed"), error(-32000, "Connection closed"), {}], received={"session/new": 3, "started": 2},
    ),
    ClientRow(
        "a version that the agent does not speak is an error that says so", "notes", ["-32001", "unsupported version"],
        hello=error(-32001, "Unsupported protocol version"), status=1, says=["does not support version 1"], received={"initialize": 1},
    ),
    ClientRow(
        "an answer with another version is an error that says so", "spec", ["version negotiation"],
        hello={"protocolVersion": 2}, status=1, says=["answered with version 2"], received={"initialize": 1},
    ),
    ClientRow(
        "an agent that is not signed in to says so when it introduces itself", "notes", ["-32000"],
        hello=error(-32000, "Authentication required"), status=7, says=["sign in"],
    ),
]  # fmt: skip
