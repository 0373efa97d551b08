"""For every rule of version 2 a session that keeps it, and one that breaks it and as little else as possible."""

from typing import Any

from tests.traffic.messages import Line, agent, chosen, client, dismissed, text, update
from tests.traffic.table import ANSWERED, AUDIO, HTTP, IMAGE, NO_ID, RESOURCE, Row

Json = dict[str, Any]
INFO: Json = {"name": "x", "version": "1"}
SESSION: Json = {"session": {}}


def hello(can: Json | None = None, offers: Json | None = None, asked: int = 2, **more: Any) -> list[Line]:
    """The handshake, with what the client can and what the agent offers."""
    offered = SESSION if offers is None else offers
    return [
        client.asks(0, "initialize", protocolVersion=asked, info=INFO, capabilities=can or {}),
        agent.gives(0, protocolVersion=2, info=INFO, capabilities=offered, **more),
    ]


def new(id: int = 1, session: str = "s", **more: Any) -> list[Line]:
    return [client.asks(id, "session/new", cwd="/w"), agent.gives(id, sessionId=session, **more)]


def prompt(id: int = 2, session: str = "s", *blocks: Json) -> Line:
    return client.asks(id, "session/prompt", sessionId=session, prompt=list(blocks) or [text("Hello")])


def state(name: str, **more: Any) -> Line:
    return update("state_update", state=name, **more)


def echo(id: str = "u2", words: str = "Hello") -> Line:
    return update("user_message", messageId=id, content=[text(words)])


def accepted(id: int = 2) -> list[Line]:
    """The prompt was inserted, and is worked on."""
    return [echo(f"u{id}"), agent.gives(id, messageId=f"u{id}"), state("running")]


def chunk(id: str = "a", kind: str = "agent_message_chunk", **more: Any) -> Line:
    return update(kind, messageId=id, content=text("Hi"), **more)


def done(reason: str | None = "end_turn", **more: Any) -> Line:
    return state("idle", **({} if reason is None else {"stopReason": reason}), **more)


def turn(*lines: Line, id: int = 2) -> list[Line]:
    return [prompt(id), *accepted(id), *(lines or [chunk(f"a{id}")]), done()]


def call(id: str = "c", **fields: Any) -> Line:
    return update("tool_call_update", toolCallId=id, **{"title": "Look", **fields})


def terminal(id: str = "t", **fields: Any) -> Line:
    return update("terminal_update", terminalId=id, **fields)


def may_i(id: int = 50, options: tuple[str, ...] = ("yes", "no"), **subject: Any) -> Line:
    offered = [{"optionId": one, "name": one, "kind": "allow_once"} for one in options]
    about = {"subject": subject} if subject else {}
    return agent.asks(id, "session/request_permission", sessionId="s", title="May I?", options=offered, **about)


BEGIN = [*hello(), *new()]
WORKS = [*BEGIN, prompt(), *accepted()]
CANCEL = client.notifies("session/cancel", sessionId="s")
ASK_NEW = client.asks(1, "session/new", cwd="/w")

WIRE = [
    Row("wire.json", BEGIN, [*BEGIN, agent.sends(b"starting up")]),
    Row("wire.utf8", BEGIN, [*BEGIN, agent.sends(b'{"jsonrpc":"2.0","method":"_x","params":{"a":"\xff"}}')], ("wire.json",)),
    Row("wire.no-batch", BEGIN, [*BEGIN, client.sends([{"jsonrpc": "2.0", "method": "_x"}])]),
    Row("rpc.version", BEGIN, [*hello(), ASK_NEW, agent.sends({"id": 1, "result": {"sessionId": "s"}})]),
    Row("rpc.shape", BEGIN, [*hello(), ASK_NEW, agent.sends({**ANSWERED, "error": {"code": -32603, "message": "x"}})]),
    Row("rpc.id", BEGIN, [*BEGIN, client.asks(None, "_x/ask")]),
    Row("rpc.id-unique", [*BEGIN, client.asks(9, "_x/ask")], [*BEGIN, client.asks(9, "_x/ask"), client.asks(9, "_x/ask")]),
    Row("rpc.answer-id", BEGIN, [*BEGIN, agent.sends({"jsonrpc": "2.0", "result": {}})]),
    Row("rpc.answer-known", BEGIN, [*hello(), ASK_NEW, agent.sends({**ANSWERED, "id": "1"})]),
    Row("rpc.answer-to-notification", BEGIN, [*BEGIN, client.notifies("_x/news"), NO_ID]),
    Row("rpc.error-object", [*hello(), ASK_NEW, agent.fails(1)], [*hello(), ASK_NEW, agent.fails(1, "E1")]),
    Row("rpc.error-code", [*hello(), ASK_NEW, agent.fails(1)], [*hello(), ASK_NEW, agent.fails(1, 400)]),
    Row("rpc.error-message", [*hello(), ASK_NEW, agent.fails(1)], [*hello(), ASK_NEW, agent.fails(1, -32603, "a\nb")]),
]  # fmt: skip

SCHEMA = [
    Row("schema.params", BEGIN, [*hello(), client.asks(1, "session/new")]),
    Row("schema.result", BEGIN, [*hello(), ASK_NEW, agent.gives(1, sessionId="s", configOptions=None)]),
    Row("schema.update", [*BEGIN, *turn()], [*WORKS, update("agent_message_chunk", content=text("x"))]),
    Row("schema.method", [*BEGIN, client.notifies("_x/news")], [*BEGIN, agent.asks(9, "x/drain")]),
    Row("schema.removed", BEGIN, [*BEGIN, agent.asks(9, "fs/read_text_file", sessionId="s", path="/w/a")]),
    Row("schema.own-words", [*BEGIN, *turn(call(kind="_sing", status="completed"), update("_x", wind=3))],
        [*BEGIN, *turn(call(kind="sing", status="completed"))]),
    Row("schema.draft", BEGIN, [*BEGIN, client.asks(9, "session/status", sessionId="s")]),
    Row("schema.unknown-field", BEGIN, [*BEGIN, *turn(chunk(timestamp=1))]),
]  # fmt: skip

METHODS: list[Json] = [
    {"type": "agent", "methodId": "key", "name": "Key"},
    {"type": "terminal", "methodId": "tty", "name": "Terminal"},
]
LOGIN = [*hello({"auth": {"terminal": {}}}, authMethods=METHODS)]
OLD_VERSION = client.asks(0, "initialize", protocolVersion=0, info=INFO)


def unsupported(**data: Any) -> Line:
    return agent.sends(
        {"jsonrpc": "2.0", "id": 0, "error": {"code": -32022, "message": "No such version", "data": data}}
    )


HANDSHAKE = [
    Row("init.first", BEGIN, [client.asks(5, "_x/ask"), *BEGIN]),
    Row("init.waits", BEGIN, [hello()[0], ASK_NEW, hello()[1]]),
    Row("init.speaks-after", BEGIN, [hello()[0], agent.notifies("_x/news"), hello()[1]]),
    Row("init.version", hello(asked=3), [client.asks(0, "initialize", protocolVersion=1), hello()[1]]),
    Row("init.refused", [OLD_VERSION, unsupported(requested=0, supported=[1, 2])], [OLD_VERSION, unsupported(requested=0, supported=[0])]),
    Row("init.once", [*hello(), *hello(), *new()], [*BEGIN, client.asks(5, "initialize", protocolVersion=2, info=INFO)]),
    Row("auth.ids", LOGIN, hello(authMethods=[METHODS[0], METHODS[0]])),
    Row("auth.offered", [*LOGIN, client.asks(1, "auth/login", methodId="key")], [*LOGIN, client.asks(1, "auth/login", methodId="tty")]),
]  # fmt: skip

FORM = agent.asks(
    50,
    "elicitation/create",
    sessionId="s",
    mode="form",
    message="?",
    requestedSchema={"type": "object", "properties": {}},
)
URL = agent.asks(50, "elicitation/create", sessionId="s", mode="url", message="?", elicitationId="e", url="https://x")
STDIO: Json = {"type": "stdio", "name": "n", "command": "/bin/x"}


def within(can: Json, *lines: Line) -> list[Line]:
    return [*hello(can), *new(), prompt(), *accepted(), chunk(), *lines]


def opened(offers: Json, **params: Any) -> list[Line]:
    return [*hello(offers={"session": offers}), client.asks(1, "session/new", cwd="/w", **params)]


def prompted(offers: Json, block: Json) -> list[Line]:
    return [*hello(offers={"session": {"prompt": offers}}), *new(), prompt(2, "s", block)]


CAPABILITIES = [
    Row("capability.elicitation-form", within({"elicitation": {"form": {}}}, FORM), within({"elicitation": {"form": None}}, FORM)),
    Row("capability.elicitation-url", within({"elicitation": {"url": {}}}, URL), within({"elicitation": {}}, URL)),
    Row("capability.terminal-auth", LOGIN, hello(authMethods=METHODS)),
    Row("capability.sessions", BEGIN, [*hello(offers={"session": None}), ASK_NEW]),
    Row("capability.delete", [*hello(offers={"session": {"delete": {}}}), *new(), client.asks(2, "session/delete", sessionId="s")],
        [*BEGIN, client.asks(2, "session/delete", sessionId="s")]),
    Row("capability.image", prompted({"image": {}}, IMAGE), prompted({}, IMAGE)),
    Row("capability.audio", prompted({"audio": {}}, AUDIO), prompted({}, AUDIO)),
    Row("capability.embedded-context", prompted({"embeddedContext": {}}, RESOURCE), prompted({}, RESOURCE)),
    Row("capability.mcp-stdio", opened({"mcp": {"stdio": {}}}, mcpServers=[STDIO]), opened({}, mcpServers=[STDIO])),
    Row("capability.mcp-http", opened({"mcp": {"http": {}}}, mcpServers=[HTTP]), opened({"mcp": {}}, mcpServers=[HTTP])),
    Row("capability.additional-directories", opened({"additionalDirectories": {}}, additionalDirectories=["/x"]),
        opened({}, additionalDirectories=["/x"])),
]  # fmt: skip

RESUME = client.asks(3, "session/resume", sessionId="s", cwd="/w")
REPLAY = client.asks(3, "session/resume", sessionId="s", cwd="/w", replayFrom={"type": "start"})
IDLE = state("idle")
CLOSE = client.asks(3, "session/close", sessionId="s")
CLOSED = agent.gives(3)
KNOWN = [*BEGIN, *turn(chunk())]

SESSIONS = [
    Row("session.id", [*BEGIN, prompt()], [*BEGIN, prompt(2, "t")]),
    Row("session.refused", [*hello(), RESUME, agent.fails(3), *new(4)], [*BEGIN, prompt(2, "t"), agent.gives(2, messageId="u")], ("session.id",)),
    Row("session.unique", [*BEGIN, *new(2, "t")], [*BEGIN, *new(2, "s")]),
    Row("resume.state", [*hello(), RESUME, IDLE, CLOSED], [*hello(), RESUME, CLOSED]),
    Row("resume.no-history", [*hello(), RESUME, IDLE, CLOSED], [*hello(), RESUME, chunk(), chunk(), IDLE, CLOSED]),
    Row("resume.cleared", [*KNOWN, REPLAY, update("agent_message", messageId="a", content=[]), chunk(), IDLE, CLOSED],
        [*KNOWN, REPLAY, chunk(), chunk(), IDLE, CLOSED]),
    Row("close.ends", [*WORKS, CLOSE, done("cancelled"), CLOSED], [*WORKS, CLOSE, CLOSED]),
    Row("close.quiet", [*BEGIN, CLOSE, CLOSED], [*BEGIN, CLOSE, CLOSED, chunk()]),
]  # fmt: skip

PROMPTS = [
    Row("prompt.not-empty", [*BEGIN, *turn()], [*BEGIN, client.asks(2, "session/prompt", sessionId="s", prompt=[])]),
    Row("prompt.message-id", [*BEGIN, *turn(), *turn(id=3)], [*BEGIN, *turn(), prompt(3), agent.gives(3, messageId="u2")]),
    Row("prompt.echo", [*BEGIN, *turn()], [*BEGIN, prompt(), agent.gives(2, messageId="u2"), state("running"), chunk(), done()]),
    Row("cancel.covers", [*WORKS, prompt(3), CANCEL, agent.fails(3, -32800), done("cancelled"), prompt(4), *accepted(4)],
        [*WORKS, CANCEL, prompt(3), agent.fails(3, -32800), done("cancelled")]),
    Row("prompt.refused", [*BEGIN, prompt(), agent.fails(2)], [*BEGIN, prompt(), echo(), agent.fails(2)]),
]  # fmt: skip

LATER = [client.asks(9, "_x/ask"), agent.gives(9)]
RUNS = [{"type": "tool_call", "toolCallId": "c"}]

STATES = [
    Row("state.running", [*BEGIN, *turn()], [*BEGIN, prompt(), echo(), agent.gives(2, messageId="u2"), done()]),
    Row("state.stop-reason", [*BEGIN, *turn()], [*WORKS, chunk(), done(None)]),
    Row("state.error", [*WORKS, done("error", error={"code": -32603, "message": "x"})], [*WORKS, done("error")]),
    Row("state.background", [*WORKS, call(), done(background=RUNS), call(status="completed"), done(None, background=[])],
        [*WORKS, call(), done(background=RUNS), done(None, background=[])]),
    Row("cancel.stop-reason", [*WORKS, CANCEL, *LATER, done("cancelled")], [*WORKS, CANCEL, *LATER, done("error", error=None)],
        ("state.error",)),
    Row("cancel.unasked", [*WORKS, CANCEL, done("cancelled")], [*WORKS, done("cancelled")]),
    Row("cancel.permission", [*WORKS, may_i(), CANCEL, dismissed(), done("cancelled")], [*WORKS, may_i(), CANCEL, chosen(), done("cancelled")]),
]  # fmt: skip

CAN: Json = {"capabilities": {"cancel": {}}}


def diff(path: str, **patch: Any) -> Line:
    found = {"type": "diff", "changes": [{"operation": "modify", "path": path}]}
    return call(
        status="completed", content=[{**found, **({"patch": {"format": "git_patch", **patch}} if patch else {})}]
    )


TOOLS = [
    Row("call.titled", [*WORKS, call()], [*WORKS, update("tool_call_update", toolCallId="c")]),
    Row("call.ends", [*WORKS, call(status="completed"), done()], [*WORKS, call(status="in_progress"), done()]),
    Row("terminal.reused", [*WORKS, terminal(command="ls"), terminal(exitStatus={})],
        [*WORKS, terminal(command="ls"), terminal(exitStatus={}), terminal(command="pwd", exitStatus=None)]),
    Row("diff.changes", [*WORKS, diff("/w/a", text="--- /w/a\n+++ /w/a\n@@ -1 +1 @@\n-x\n+++ y\n")],
        [*WORKS, diff("/w/a", text="--- a/w/a\n+++ /w/a\n@@ -1 +1 @@\n-x\n+y\n")]),
    Row("cancel.offered", [*WORKS, call(**CAN), client.asks(9, "tool_call/cancel", sessionId="s", toolCallId="c")],
        [*WORKS, call(), client.asks(9, "tool_call/cancel", sessionId="s", toolCallId="c")]),
    Row("cancel.refused", [*WORKS, client.asks(9, "terminal/cancel", sessionId="s", terminalId="t"), agent.fails(9, -32602)],
        [*WORKS, client.asks(9, "terminal/cancel", sessionId="s", terminalId="t"), agent.gives(9)], ("cancel.offered",)),
    Row("permission.options", [*WORKS, may_i()], [*WORKS, may_i(options=("yes", "yes"))]),
    Row("permission.choice", [*WORKS, may_i()], [*WORKS, may_i(options=())]),
    Row("permission.option", [*WORKS, may_i(), chosen()], [*WORKS, may_i(), chosen(option="allow_once")]),
]  # fmt: skip


def at(path: str, line: int | None = None) -> Line:
    return call(locations=[{"path": path, "line": line}])


def option(id: str, current: str, values: tuple[str, ...] = ("low", "high")) -> Json:
    listed = [{"value": value, "name": value} for value in values]
    return {"configId": id, "name": id, "type": "select", "currentValue": current, "options": listed}


def commands(*names: str) -> Line:
    return update(
        "available_commands_update",
        availableCommands=[{"type": "command", "name": name, "description": "x"} for name in names],
    )


TWO = [option("effort", "low"), option("speed", "low")]
WITH_OPTIONS = [*hello(), *new(configOptions=TWO)]
SET = client.asks(2, "session/set_config_option", sessionId="s", configId="effort", type="id", value="high")

SETTINGS = [
    Row("command.names", [*BEGIN, commands("plan", "stop")], [*BEGIN, commands("make plan")]),
    Row("config.current", WITH_OPTIONS, [*hello(), *new(configOptions=[option("effort", "middle")])]),
    Row("config.values", WITH_OPTIONS, [*hello(), *new(configOptions=[option("effort", "low", ("low", "low"))])]),
    Row("config.offered", [*WITH_OPTIONS, SET],
        [*WITH_OPTIONS, client.asks(2, "session/set_config_option", sessionId="s", configId="effort", type="id", value="middle")]),
    Row("config.complete", [*WITH_OPTIONS, SET, agent.gives(2, configOptions=TWO)],
        [*WITH_OPTIONS, SET, agent.gives(2, configOptions=TWO[:1])]),
    Row("path.absolute", [*WORKS, terminal(cwd="/w")], [*WORKS, terminal(cwd="w")]),
    Row("path.line", [*WORKS, at("/w/a", 1)], [*WORKS, at("/w/a", 0)]),
]  # fmt: skip

ROWS = [*WIRE, *SCHEMA, *HANDSHAKE, *CAPABILITIES, *SESSIONS, *PROMPTS, *STATES, *TOOLS, *SETTINGS]
