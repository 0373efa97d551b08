"""For every rule a session that keeps it, and one that breaks it and as little else as possible."""

from dataclasses import dataclass
from typing import Any

from tests.traffic.messages import (
    Line,
    agent,
    call,
    call_update,
    chosen,
    client,
    dismissed,
    done,
    hello,
    may_i,
    message_chunk,
    new,
    prompt,
    text,
    turn,
    update,
)

Json = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """A rule, a session that breaks nothing and puts the rule to the test, and one that breaks the rule and what `also` names."""

    rule: str
    kept: list[Line]
    broken: list[Line]
    also: tuple[str, ...] = ()


BEGIN = [*hello(), *new()]
CANCEL = client.notifies("session/cancel", sessionId="s")
NO_ID = agent.sends({"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "Unknown"}})
ANSWERED: Json = {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}}
ASK_NEW = client.asks(1, "session/new", cwd="/w", mcpServers=[])

WIRE = [
    Row("wire.json", BEGIN, [*BEGIN, agent.sends(b"starting up")]),
    Row("wire.utf8", BEGIN, [*BEGIN, agent.sends(b'{"jsonrpc":"2.0","method":"_x","params":{"a":"\xff"}}')], ("wire.json",)),
    Row("wire.no-batch", BEGIN, [*BEGIN, client.sends([{"jsonrpc": "2.0", "method": "_x"}])]),
]  # fmt: skip

RPC = [
    Row("rpc.version", BEGIN, [*hello(), ASK_NEW, agent.sends({"id": 1, "result": {"sessionId": "s"}})]),
    Row("rpc.shape", BEGIN, [*hello(), ASK_NEW, agent.sends({**ANSWERED, "error": {"code": -32603, "message": "x"}})]),
    Row("rpc.id", BEGIN, [*BEGIN, client.asks(1.5, "_x/ask")]),
    Row("rpc.id-unique", [*BEGIN, client.asks(9, "_x/ask")], [*BEGIN, client.asks(9, "_x/ask"), client.asks(9, "_x/ask")]),
    Row("rpc.answer-id", BEGIN, [*BEGIN, agent.sends({"jsonrpc": "2.0", "result": {}})]),
    Row("rpc.answer-known", BEGIN, [*hello(), ASK_NEW, agent.sends({**ANSWERED, "id": "1"})]),
    Row("rpc.answer-to-notification", BEGIN, [*BEGIN, client.notifies("_x/news"), NO_ID]),
    Row("rpc.error-object", [*hello(), ASK_NEW, agent.fails(1)], [*hello(), ASK_NEW, agent.fails(1, "E1")]),
    Row("rpc.error-code", [*hello(), ASK_NEW, agent.fails(1)], [*hello(), ASK_NEW, agent.fails(1, 400)]),
    Row("rpc.error-message", [*hello(), ASK_NEW, agent.fails(1)], [*hello(), ASK_NEW, agent.fails(1, -32603, "a\nb")]),
]  # fmt: skip

SCHEMA = [
    Row("schema.params", BEGIN, [*hello(), client.asks(1, "session/new", cwd="/w")]),
    Row("schema.result", BEGIN, [*hello(), ASK_NEW, agent.gives(1)]),
    Row("schema.update", [*BEGIN, *turn()], [*BEGIN, *turn(message_chunk(), update("weather", wind=3))]),
    Row("schema.method", [*BEGIN, client.notifies("_x/news")], [*BEGIN, agent.asks(9, "x/drain")]),
    Row("schema.removed", BEGIN, [*BEGIN, client.asks(9, "session/set_model", sessionId="s", modelId="m")]),
    Row("schema.draft", BEGIN, [*BEGIN, client.asks(9, "session/status", sessionId="s")]),
    Row("schema.unknown-field", BEGIN, [*BEGIN, *turn(update("agent_message_chunk", content=text("x"), timestamp=1))]),
]  # fmt: skip

OLD_HELLO = [client.asks(0, "initialize", protocolVersion=99), agent.gives(0, protocolVersion=99)]
METHODS = [{"id": "key", "name": "Key"}, {"id": "web", "name": "Web"}]

HANDSHAKE = [
    Row("init.first", BEGIN, [client.asks(5, "_x/ask"), *BEGIN]),
    Row("init.once", BEGIN, [*BEGIN, client.asks(5, "initialize", protocolVersion=1)]),
    Row("init.waits", BEGIN, [hello()[0], ASK_NEW, hello()[1]]),
    Row("init.speaks-after", BEGIN, [hello()[0], agent.notifies("_x/news"), hello()[1]]),
    Row("init.no-echo", BEGIN, OLD_HELLO),
    Row("auth.ids", hello(authMethods=METHODS), hello(authMethods=[METHODS[0], METHODS[0]])),
    Row("auth.offered", [*hello(authMethods=METHODS), client.asks(1, "authenticate", methodId="key")],
        [*hello(authMethods=METHODS), client.asks(1, "authenticate", methodId="Key")]),
]  # fmt: skip

READ = agent.asks(50, "fs/read_text_file", sessionId="s", path="/w/a")
WRITE = agent.asks(50, "fs/write_text_file", sessionId="s", path="/w/a", content="")
CREATE = agent.asks(50, "terminal/create", sessionId="s", command="ls")
FORM = agent.asks(50, "elicitation/create", sessionId="s", mode="form", message="?", requestedSchema={})
URL = agent.asks(50, "elicitation/create", sessionId="s", mode="url", message="?", elicitationId="e", url="https://x")
NOTICE = update("notice", severity="info", title="News")
COMPACTION = update("compaction_update", compactionId="k", status="completed")
PLAN = update("plan_removed", planId="p")
CHILD = update("subagent_update", sessionId="t")
BOOLEAN = {"id": "b", "name": "B", "type": "boolean", "currentValue": True}
LOGIN = [{"id": "tty", "name": "Terminal", "type": "terminal"}]


def within(can: Json, *lines: Line) -> list[Line]:
    return [*hello(can), *new(), prompt(), message_chunk(), *lines]


AGENT_CAPABILITIES = [
    Row("capability.fs-read", within({"fs": {"readTextFile": True}}, READ), within({"fs": {"writeTextFile": True}}, READ)),
    Row("capability.fs-write", within({"fs": {"writeTextFile": True}}, WRITE), within({"fs": {"writeTextFile": False}}, WRITE)),
    Row("capability.terminal", within({"terminal": True}, CREATE), within({}, CREATE)),
    Row("capability.notices", within({"session": {"notices": {}}}, NOTICE), within({"session": {"notices": None}}, NOTICE)),
    Row("capability.compaction", within({"session": {"compaction": {}}}, COMPACTION), within({}, COMPACTION)),
    Row("capability.plan", within({}, done()), within({}, PLAN), ("schema.draft",)),
    Row("capability.subagents", within({}, done()), within({}, CHILD), ("schema.draft",)),
    Row("capability.elicitation-form", within({"elicitation": {"form": {}}}, FORM), within({"elicitation": {"url": {}}}, FORM)),
    Row("capability.elicitation-url", within({"elicitation": {"url": {}}}, URL), within({"elicitation": {}}, URL)),
    Row("capability.boolean-option",
        [*hello({"session": {"configOptions": {"boolean": {}}}}), *new(configOptions=[BOOLEAN])],
        [*hello({"session": {"configOptions": {}}}), *new(configOptions=[BOOLEAN])]),
    Row("capability.terminal-auth", hello({"auth": {"terminal": True}}, authMethods=LOGIN), hello(authMethods=LOGIN)),
]  # fmt: skip


def asked(method: str, offers: Json, **params: Any) -> list[Line]:
    return [*hello(offers=offers), *new(), client.asks(2, method, **params)]


def prompted(offers: Json, block: Json) -> list[Line]:
    return [*hello(offers=offers), *new(), prompt(2, "s", block)]


def opened(offers: Json, **params: Any) -> list[Line]:
    return [*hello(offers=offers), client.asks(1, "session/new", **{"cwd": "/w", "mcpServers": [], **params})]


OLD: Json = {"sessionId": "s", "cwd": "/w", "mcpServers": []}
IMAGE = {"type": "image", "data": "", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "", "mimeType": "audio/wav"}
RESOURCE = {"type": "resource", "resource": {"uri": "file:///w/a", "text": ""}}
HTTP: Json = {"type": "http", "name": "n", "url": "https://x", "headers": []}
SSE: Json = {**HTTP, "type": "sse"}


def session_can(name: str) -> Json:
    return {"sessionCapabilities": {name: {}}}


CLIENT_CAPABILITIES = [
    Row("capability.load", asked("session/load", {"loadSession": True}, **OLD), asked("session/load", {}, **OLD)),
    Row("capability.list", asked("session/list", session_can("list")), asked("session/list", {})),
    Row("capability.resume", asked("session/resume", session_can("resume"), **OLD), asked("session/resume", {}, **OLD)),
    Row("capability.close", asked("session/close", session_can("close"), sessionId="s"), asked("session/close", {}, sessionId="s")),
    Row("capability.delete", asked("session/delete", session_can("delete"), sessionId="s"),
        asked("session/delete", {}, sessionId="s")),
    Row("capability.fork", [*BEGIN, *turn()], asked("session/fork", {}, **OLD), ("schema.draft",)),
    Row("capability.logout", asked("logout", {"auth": {"logout": {}}}), asked("logout", {"auth": {}})),
    Row("capability.image", prompted({"promptCapabilities": {"image": True}}, IMAGE), prompted({}, IMAGE)),
    Row("capability.audio", prompted({"promptCapabilities": {"audio": True}}, AUDIO), prompted({}, AUDIO)),
    Row("capability.embedded-context", prompted({"promptCapabilities": {"embeddedContext": True}}, RESOURCE), prompted({}, RESOURCE)),
    Row("capability.mcp-http", opened({"mcpCapabilities": {"http": True}}, mcpServers=[HTTP]), opened({}, mcpServers=[HTTP])),
    Row("capability.mcp-sse", opened({"mcpCapabilities": {"sse": True}}, mcpServers=[SSE]), opened({}, mcpServers=[SSE])),
    Row("capability.additional-directories", opened(session_can("additionalDirectories"), additionalDirectories=["/x"]),
        opened({}, additionalDirectories=["/x"])),
]  # fmt: skip

USAGE = update("usage_update", used=1, size=2)
LOADS = hello(offers={"loadSession": True})
RESUMES = hello(offers=session_can("resume"))
LOAD, RESUME = (client.asks(1, f"session/{name}", **OLD) for name in ("load", "resume"))

SESSIONS = [
    Row("session.known", [*BEGIN, USAGE], [*hello(), new()[0], USAGE, new()[1]]),
    Row("session.id", [*BEGIN, prompt()], [*BEGIN, prompt(2, "t")]),
    Row("session.refused", [*LOADS, LOAD, agent.fails(1), *new(2)], [*BEGIN, prompt(2, "t"), done(2, "refusal")], ("session.id",)),
    Row("session.unique", [*BEGIN, *new(2, "t")], [*BEGIN, *new(2, "s")]),
    Row("load.replay-first", [*LOADS, LOAD, message_chunk(), agent.gives(1), *turn()], [*LOADS, LOAD, agent.gives(1), message_chunk(), message_chunk()]),
    Row("resume.no-history", [*RESUMES, RESUME, USAGE, agent.gives(1), *turn()], [*RESUMES, RESUME, message_chunk(), message_chunk(), agent.gives(1)]),
]  # fmt: skip

TURNS = [
    Row("turn.answer-last", [*BEGIN, USAGE, *turn(), USAGE], [*BEGIN, *turn(), message_chunk()]),
    Row("turn.one-at-a-time", [*BEGIN, *turn(), *turn(id=3)], [*BEGIN, prompt(2), prompt(3)]),
    Row("turn.not-silent", [*BEGIN, *turn()], [*BEGIN, prompt(), USAGE, done()]),
    Row("prompt.not-empty", [*BEGIN, *turn()], [*BEGIN, client.asks(2, "session/prompt", sessionId="s", prompt=[])]),
    Row("cancel.stop-reason", [*BEGIN, prompt(), CANCEL, done(reason="cancelled", after=9)],
        [*BEGIN, prompt(), CANCEL, agent.fails(2, after=9)]),
    Row("cancel.unasked", [*BEGIN, prompt(), CANCEL, done(reason="cancelled")],
        [*BEGIN, prompt(), call(), may_i(), chosen(option="no"), done(reason="cancelled")]),
    Row("cancel.permission", [*BEGIN, prompt(), call(), may_i(), CANCEL, dismissed(), done(reason="cancelled")],
        [*BEGIN, prompt(), call(), may_i(), CANCEL, chosen(), done(reason="cancelled")]),
]  # fmt: skip

ENDED = call_update(status="completed")

CALLS = [
    Row("call.announced", [*BEGIN, *turn(call(), may_i(), chosen(), ENDED)], [*BEGIN, *turn(may_i(), chosen(), ENDED)]),
    Row("call.once", [*BEGIN, *turn(call(), ENDED), *turn(call(), ENDED, id=3)], [*BEGIN, *turn(call(), call(), ENDED)]),
    Row("call.ends", [*BEGIN, *turn(call(), ENDED)], [*BEGIN, *turn(call(), call_update(status="in_progress"))]),
    Row("permission.options", [*BEGIN, prompt(), call(), may_i()], [*BEGIN, prompt(), call(), may_i(options=("yes", "yes"))]),
    Row("permission.choice", [*BEGIN, prompt(), call(), may_i()], [*BEGIN, prompt(), call(), may_i(options=())]),
    Row("permission.option", [*BEGIN, prompt(), call(), may_i(), chosen()],
        [*BEGIN, prompt(), call(), may_i(), chosen(option="allow_once")]),
]  # fmt: skip


def at(path: str, line: int | None = None) -> Line:
    return call(locations=[{"path": path, "line": line}])


MADE = [*hello({"terminal": True}), *new(), prompt(), message_chunk(), CREATE, client.gives(50, terminalId="t")]
RELEASE = [agent.asks(51, "terminal/release", sessionId="s", terminalId="t"), client.gives(51)]
OUTPUT = agent.asks(52, "terminal/output", sessionId="s", terminalId="t")

PLACES = [
    Row("path.absolute", [*BEGIN, prompt(), at("C:\\w\\a")], [*BEGIN, prompt(), at("a")]),
    Row("path.line", [*BEGIN, prompt(), at("/w/a", 1)], [*BEGIN, prompt(), at("/w/a", 0)]),
    Row("terminal.known", [*MADE, OUTPUT], [*BEGIN, prompt(), call(content=[{"type": "terminal", "terminalId": "x"}])]),
    Row("terminal.released", [*MADE, *RELEASE, done()], [*MADE, done()]),
]  # fmt: skip


def modes(current: str) -> Json:
    return {"currentModeId": current, "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "do", "name": "Do"}]}


def option(id: str, current: str) -> Json:
    values = [{"value": value, "name": value} for value in ("low", "high")]
    return {"id": id, "name": id, "type": "select", "currentValue": current, "options": values}


TWO = [option("effort", "low"), option("speed", "low")]
WITH_MODES, WITH_OPTIONS = [*hello(), *new(modes=modes("ask"))], [*hello(), *new(configOptions=TWO)]
SET = client.asks(2, "session/set_config_option", sessionId="s", configId="effort", value="high")

SETTINGS = [
    Row("mode.current", [*WITH_MODES, update("current_mode_update", currentModeId="do")], [*hello(), *new(modes=modes("plan"))]),
    Row("mode.offered", [*WITH_MODES, client.asks(2, "session/set_mode", sessionId="s", modeId="do")],
        [*WITH_MODES, client.asks(2, "session/set_mode", sessionId="s", modeId="Do")]),
    Row("config.current", WITH_OPTIONS, [*hello(), *new(configOptions=[option("effort", "middle")])]),
    Row("config.offered", [*WITH_OPTIONS, SET],
        [*WITH_OPTIONS, client.asks(2, "session/set_config_option", sessionId="s", configId="effort", value="middle")]),
    Row("config.complete", [*WITH_OPTIONS, SET, agent.gives(2, configOptions=TWO)],
        [*WITH_OPTIONS, SET, agent.gives(2, configOptions=TWO[:1])]),
]  # fmt: skip

ROWS = [
    *WIRE, *RPC, *SCHEMA, *HANDSHAKE, *AGENT_CAPABILITIES, *CLIENT_CAPABILITIES, *SESSIONS, *TURNS, *CALLS, *PLACES, *SETTINGS,
]  # fmt: skip
