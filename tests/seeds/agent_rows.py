"""What clients say in the words of the seeds, and what our agents must answer: sessions, prompts, permission, files and terminals."""

from typing import Any

from tests.seeds.table import ANY, AgentRow, Sent

__all__ = ["AGENT_ROWS"]

Json = dict[str, Any]

NEW = Sent("session/new", {"cwd": "$CWD", "mcpServers": []}, {"sessionId": str})
TEXT = {"type": "text", "text": "hello"}


def prompt(*blocks: Json | str, **more: Any) -> Sent:
    """A prompt of text or blocks."""
    content = [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks]
    return Sent("session/prompt", {"sessionId": "$SESSION", "prompt": content}, {"stopReason": "end_turn"}, **more)


def update(named: str, /, **fields: Any) -> Json:
    return {"sessionId": "$SESSION", "update": {"sessionUpdate": named, **fields}}


SAID = update("agent_message_chunk", content={"type": "text", "text": ANY})
ONE = prompt("hello", updates=[SAID])

HANDSHAKES = [
    AgentRow(
        "a client of the notes introduces itself, with nulls for what it cannot do", "notes",
        ["initialize", "clientInfo", "agentInfo", "promptCapabilities", "mcpCapabilities", "sessionCapabilities", "loadSession", "authMethods"],
        [
            Sent(
                "initialize",
                {
                    "protocolVersion": 1, "clientInfo": {"name": "zed", "version": "1"},
                    "clientCapabilities": {"fs": {"readTextFile": True, "writeTextFile": None}, "terminal": None},
                },
                {
                    "protocolVersion": 1,
                    "agentInfo": {"name": str, "version": str},
                    "agentCapabilities": {
                        "loadSession": True, "sessionCapabilities": dict, "mcpCapabilities": {"http": bool, "sse": bool},
                        "promptCapabilities": {"image": bool, "audio": bool, "embeddedContext": bool},
                    },
                    "authMethods": [{"id": str, "name": str}],
                },
            ),
            NEW, ONE,
        ],
        hello=False,
    ),
    AgentRow(
        "a client of the spec has a title, no version, and capabilities of its own", "spec",
        ["initialize", "clientCapabilities.prompt", "clientCapabilities.mcp", "authMethods as words"],
        [
            Sent(
                "initialize",
                {
                    "protocolVersion": 1, "clientInfo": {"name": "neovim", "title": "Neovim"},
                    "clientCapabilities": {
                        "fs": {"readTextFile": True}, "terminal": True, "prompt": {"image": True, "embeddedContext": True},
                        "mcp": {"transport": {"http": True, "sse": False}},
                    },
                },
                {"protocolVersion": 1, "agentInfo": {"name": str}, "authMethods": ["demo"]},
            ),
            NEW, ONE,
        ],
        hello=False,
    ),
    AgentRow(
        "a client of the guide does not say who it is", "guide", ["initialize", "without clientInfo"],
        [Sent("initialize", {"protocolVersion": 1, "clientCapabilities": {}}, {"protocolVersion": 1}), NEW, ONE],
        hello=False,
    ),
    AgentRow(
        "the bridge's test sequence is played to its end", "bridge", ["initialize", "capabilities", "session/new", "session/prompt", "flow"],
        [
            Sent("initialize", {"protocolVersion": 1, "capabilities": {}}, {"protocolVersion": 1, "capabilities": dict}, id=1),
            Sent("session/new", {"cwd": "$CWD", "mcpServers": []}, {"sessionId": str}, id=2),
            Sent(
                "session/prompt", {"sessionId": "$SESSION", "prompt": [{"type": "text", "text": "say hello"}]},
                {"stopReason": "end_turn"}, id=3, updates=[SAID],
            ),
        ],
        hello=False,
    ),
    *(
        AgentRow(
            f"version {version} is answered with the highest one that we have", "spec", ["version negotiation"],
            [
                Sent(
                    "initialize",
                    {"protocolVersion": version, "info": {"name": "editor", "version": "1"}, "capabilities": {}},
                    {"protocolVersion": 2},
                ),
                Sent("session/new", {"cwd": "$CWD", "mcpServers": []}, {"sessionId": str}),
            ],
            hello=False,
        )
        for version in (2, 99)
    ),
]  # fmt: skip

SIGN_IN = [
    AgentRow(
        "signing in by a method on offer", "notes", ["authenticate"],
        [Sent("authenticate", {"methodId": "demo"}, {}), NEW],
    ),
    AgentRow(
        "without signing in a session is refused, and after it not", "notes", ["authenticate", "-32000"],
        [
            Sent("logout", {}, {}), Sent("session/new", {"cwd": "$CWD", "mcpServers": []}, error=-32000),
            Sent("authenticate", {"methodId": "demo"}, {}), NEW,
        ],
    ),
    *(
        AgentRow(
            f"signing in by a {method} that was not on offer is refused", "spec", ["authenticate by method", "-32602"],
            [Sent("authenticate", {"method": method, field: "secret"}, error=-32602), NEW],
        )
        for method, field in (("password", "password"), ("oauth", "token"))
    ),
    AgentRow(
        "signing in by the field of the spec", "spec", ["authenticate by method"],
        [Sent("authenticate", {"method": "demo"}, {}), NEW],
    ),
]  # fmt: skip

OPENING = [
    AgentRow(
        "a session by its directory alone", "notes", ["session/new", "configOptions", "models", "modes"],
        [
            Sent(
                "session/new", {"cwd": "$CWD", "_meta": {"mine": 1}},
                {
                    "sessionId": str, "models": {"availableModels": [{"name": str}], "currentModelId": str},
                    "modes": {"availableModes": [{"id": "default", "name": str}], "currentModeId": "default"},
                    "configOptions": [{"id": str, "name": str, "type": "select", "currentValue": str, "options": [{"value": str, "name": str}]}],
                },
            ),
            ONE,
        ],
    ),
    AgentRow(
        "a session without a directory is refused", "notes", ["session/new", "-32602", "cwd is required"],
        [Sent("session/new", {"mcpServers": []}, error=-32602), NEW],
    ),
    AgentRow(
        "fields that nobody knows do no harm", "notes", ["unknown fields", "_meta"],
        [
            Sent("session/new", {"cwd": "$CWD", "mcpServers": [], "tomorrow": {"a": [1]}, "_meta": {"x": None}}, {"sessionId": str}),
            Sent(
                "session/prompt",
                {"sessionId": "$SESSION", "prompt": [{**TEXT, "tomorrow": 1, "_meta": {}}], "hurry": True, "_meta": {"y": 2}},
                {"stopReason": "end_turn"},
            ),
        ],
    ),
    AgentRow(
        "a session with a mode: it begins in it, and the answer has the modes as a list", "spec",
        ["session/new", "modeId", "modes as a list", "mcpServers"],
        [
            Sent(
                "session/new", {"cwd": "$CWD", "modeId": "plan"},
                {"sessionId": str, "modes": [{"id": "plan", "name": str}, {"id": "default"}], "currentModeId": "plan"},
            ),
            prompt("/edit new.txt words", updates=[update("tool_call_update", status="failed")]),
        ],
    ),
    AgentRow(
        "a session with a mode that is not there begins in its own, and that is said", "spec", ["modeId"],
        [
            Sent(
                "session/new", {"cwd": "$CWD", "modeId": "code"}, {"currentModeId": "default"},
                updates=[update("agent_message_chunk", content={"text": str})],
            ),
            ONE,
        ],
    ),
    AgentRow(
        "a session with a model begins with it", "spec", ["model"],
        [
            Sent(
                "session/new", {"cwd": "$CWD", "model": {"providerID": "demo", "modelID": "canon"}},
                {"models": {"currentModelId": "canon"}},
            ),
            ONE,
        ],
    ),
    AgentRow(
        "a session of the joint agent with a mode", "spec", ["modeId"],
        [Sent("session/new", {"cwd": "$CWD", "modeId": "plan"}, {"currentModeId": "plan"})], agent="joint",
    ),
    *(
        AgentRow(
            f"MCP servers {name} are taken", seed, ["mcpServers", shape],
            [
                Sent("session/new", {"cwd": "$CWD", "mcpServers": servers}, {"sessionId": str}),
                prompt("/mcp", updates=[update("agent_message_chunk", content={"type": "text", "text": ANY})]),
            ],
        )
        for name, seed, shape, servers in (
            ("with variables", "guide", "McpServer", [{"name": "files", "command": "/bin/true", "args": ["--stdio"], "env": [{"name": "A", "value": "1"}]}]),
            ("by their names", "guide", "mcpServers as a map", {
                "files": {"type": "stdio", "command": "/bin/true", "args": ["--stdio"], "env": {}},
                "api": {"type": "http", "url": "https://mcp.example.com", "headers": {"Authorization": "Bearer x"}},
            }),
            ("local and remote", "spec", "McpServer", [
                {"type": "local", "command": "/bin/true", "args": ["--stdio"], "environment": {"A": "1"}},
                {"type": "remote", "url": "https://mcp.example.com", "headers": {"X": "y"}},
            ]),
            ("by an address alone", "notes", "McpServerSse", [{"name": "old", "url": "https://mcp.example.com/sse", "headers": [{"name": "X", "value": "y"}]}]),
        )
    ),
]  # fmt: skip


def reopened(method: str, params: Json, result: Any, *, replayed: bool, agent: str = "demo") -> list[Sent]:
    """A session with one prompt, closed and opened again."""
    replay = [update("user_message_chunk", content={"type": "text", "text": "remember the river"})] if replayed else []
    return [
        NEW, prompt("remember the river"),
        Sent("session/close", {"sessionId": "$SESSION"}, {}),
        Sent(method, {"sessionId": "$SESSION", **params}, result, updates=replay),
        ONE,
    ]  # fmt: skip


AGAIN = [
    *(
        AgentRow(
            f"{method} without a directory opens the session in its own, with {agent}", seed, [method, "without cwd"],
            reopened(method, {}, result, replayed=replayed), agent=agent,
        )
        for agent in ("demo", "joint")
        for method, seed, result, replayed in (
            ("session/load", "spec", {"sessionId": "$SESSION", "modes": list, "currentModeId": "default"}, True),
            ("session/resume", "notes", {}, False),
            ("unstable_resumeSession", "notes", {}, False),
        )
    ),
    AgentRow(
        "a session is loaded with servers by their names, and its history comes before the answer", "guide",
        ["session/load", "mcpServers as a map"],
        reopened("session/load", {"cwd": "$CWD", "mcpServers": {"a": {"type": "stdio", "command": "/bin/true", "args": []}}}, {}, replayed=True),
    ),
    *(
        AgentRow(
            f"{method} of a session that is not there is refused, {how}", seed, [method, "-32002"],
            [Sent(method, {"sessionId": "never-was", **params}, error=-32002), NEW, ONE],
        )
        for method, seed in (("session/load", "spec"), ("unstable_resumeSession", "notes"))
        for how, params in (("without a directory", {}), ("with one", {"cwd": "$CWD", "mcpServers": []}))
    ),
]  # fmt: skip

BLOCKS: list[tuple[str, str, Json]] = [
    ("text", "wire", TEXT),
    ("text with a list of annotations", "spec", {**TEXT, "annotations": [{"audience": ["user"]}]}),
    ("image", "wire", {"type": "image", "data": "aGk=", "mimeType": "image/png"}),
    ("image with an address", "spec", {"type": "image", "data": "aGk=", "mimeType": "image/png", "uri": "file:///a.png"}),
    ("audio", "wire", {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}),
    ("resource", "wire", {"type": "resource", "resource": {"uri": "file:///a.zig#L42:50", "text": "const a = 1;"}}),
    ("resource of bytes, with nulls", "notes", {
        "type": "resource", "text": None, "data": None, "resource": {"uri": "file:///a.bin", "text": None, "blob": "aGk=", "mimeType": None},
    }),
    ("resource_link", "wire", {"type": "resource_link", "uri": "file://$FILE", "name": "notes.txt"}),
    ("resource_link with all its fields", "notes", {
        "type": "resource_link", "uri": "file://$FILE", "name": "notes.txt", "description": "d", "title": "t", "size": 14, "mimeType": "text/plain",
    }),
    ("resource_link without a name", "bridge", {"type": "resource_link", "uri": "file://$FILE"}),
    ("resourceLink", "guide", {"type": "resourceLink", "uri": "file://$FILE", "name": "notes.txt", "size": 14}),
    ("flat resource", "guide", {"type": "resource", "uri": "file:///a.txt", "text": "words"}),
    ("embedded_resource", "spec", {"type": "embedded_resource", "uri": "file:///a.txt", "text": "words"}),
    ("embedded_resource of bytes", "bridge", {"type": "embedded_resource", "uri": "file:///a.txt", "blob": "aGk="}),
    *(
        (f"image of type {kind}", "guide", {"type": "image", "data": "aGk=", "mimeType": f"image/{kind}"})
        for kind in ("png", "jpeg", "gif", "webp", "svg+xml")
    ),
    *(
        (f"audio of type {kind}", "guide", {"type": "audio", "data": "aGk=", "mimeType": f"audio/{kind}"})
        for kind in ("wav", "mp3", "ogg", "flac", "aac")
    ),
]  # fmt: skip

CONTENT = [
    AgentRow(
        "a prompt called content", "spec", ["session/prompt", "content for prompt"],
        [NEW, Sent("session/prompt", {"sessionId": "$SESSION", "content": [TEXT]}, {"stopReason": "end_turn"}, updates=[SAID])],
    ),
    *(
        AgentRow(f"content of the kind {name}", seed, [f"content {name}"], [NEW, prompt("look", block, updates=[SAID])])
        for name, seed, block in BLOCKS
    ),
]  # fmt: skip

ENDS = [
    *(
        AgentRow(
            f"a turn ends with {reason}", "notes", [f"stop {reason}"],
            [NEW, Sent("session/prompt", {"sessionId": "$SESSION", "prompt": [{"type": "text", "text": f"/stop {reason}"}]}, {"stopReason": reason})],
        )
        for reason in ("end_turn", "max_tokens", "max_turn_requests", "refusal")
    ),
    *(
        AgentRow(
            f"a turn that is cancelled ends with cancelled, {how}", seed, ["session/cancel", "stop cancelled", "flow"],
            [
                NEW,
                Sent(
                    "session/prompt", {"sessionId": "$SESSION", "prompt": [{"type": "text", "text": "/slow 100"}]},
                    {"stopReason": "cancelled"}, updates=[SAID], while_running=cancel,
                ),
                ONE,
            ],
        )
        for how, seed, cancel in (
            ("by a notification", "notes", Sent("session/cancel", {"sessionId": "$SESSION"}, notify=True)),
            ("by a request, which is answered, too", "spec", Sent("session/cancel", {"sessionId": "$SESSION"}, id="c1")),
        )
    ),
]  # fmt: skip

CHOICES = [
    AgentRow(
        "a mode by modeId", "notes", ["session/set_mode", "mode plan"],
        [NEW, Sent("session/set_mode", {"sessionId": "$SESSION", "modeId": "plan"}, {})],
    ),
    AgentRow(
        "a mode by its older field", "notes", ["session/set_mode", "mode for modeId"],
        [
            NEW, Sent("session/set_mode", {"sessionId": "$SESSION", "mode": "plan"}, {}),
            prompt("/edit new.txt words", updates=[update("tool_call_update", status="failed")]),
        ],
    ),
    AgentRow(
        "a mode that is not there is refused", "notes", ["session/set_mode", "-32602"],
        [NEW, Sent("session/set_mode", {"sessionId": "$SESSION", "modeId": "reckless"}, error=-32602), ONE],
    ),
    AgentRow(
        "another model, and who chooses models hears of it", "notes", ["session/set_model", "current_model_update"],
        [
            NEW, Sent("session/set_model", {"sessionId": "$SESSION", "modelId": "canon"}, {}),
            prompt("/set model echo", updates=[update("current_model_update", currentModelId="echo")]),
        ],
    ),
    *(
        AgentRow(
            f"auto_resume is {said!r}, and the answer says it in the same words", seed, ["session/set_config_option", "auto_resume"],
            [
                NEW,
                Sent(
                    "session/set_config_option", {"sessionId": "$SESSION", "configId": "auto_resume", "value": said},
                    {"configOptions": [{"id": "auto_resume", "type": "select", "currentValue": shown, "options": [{"value": other}]}]},
                ),
            ],
            agent="joint",
        )
        for said, shown, other, seed in (
            ("true", "true", "false", "wire"), ("false", "false", "true", "wire"), (True, "true", "false", "wire"),
            (False, "false", "true", "wire"), ("on", "on", "off", "notes"), ("off", "off", "on", "notes"),
        )
    ),
    *(
        AgentRow(
            f"the setting {option} is {value}", "notes", ["session/set_config_option", option],
            [
                NEW,
                Sent(
                    "session/set_config_option", {"sessionId": "$SESSION", "configId": option, "value": value},
                    {"configOptions": [{"id": option, "currentValue": value}]},
                ),
                ONE,
            ],
            agent="joint",
        )
        for option, value in (("route", "duet"), ("route", "demo"), ("primary_agent", "demo"))
    ),
    AgentRow(
        "a setting that is not there is refused", "notes", ["session/set_config_option", "-32602"],
        [NEW, Sent("session/set_config_option", {"sessionId": "$SESSION", "configId": "mood", "value": "good"}, error=-32602)],
    ),
]  # fmt: skip

AGENT_ROWS = [*HANDSHAKES, *SIGN_IN, *OPENING, *AGAIN, *CONTENT, *ENDS, *CHOICES]
