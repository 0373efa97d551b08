"""Updates while an agent works, as the specification has them and as real agents send them: early, late, twice, of unknown kinds."""

from antiphon.conformance.client_run import ClientRun, NotAsked
from antiphon.conformance.requirements import NotOffered, Requirement, advice, capability, must, should
from antiphon.conformance.standin_agent import StandinAgent
from antiphon.conformance.suites.client.suite import SUITE
from antiphon.traffic.entries import JsonObject

__all__ = ["text"]

Update = JsonObject

FIX = "Handle every kind of `session/update`; one that you have no use for is read and dropped."


def text(words: str) -> dict[str, str]:
    """A block of text."""
    return {"type": "text", "text": words}


def _content(words: str) -> Update:
    return {"type": "content", "content": text(words)}


MESSAGES: list[Update] = [
    {"sessionUpdate": "user_message_chunk", "content": text("what was asked")},
    {"sessionUpdate": "agent_thought_chunk", "content": text("hm")},
    {"sessionUpdate": "agent_message_chunk", "content": text("an answer"), "messageId": "m-1"},
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "AAAA", "mimeType": "image/png"}},
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}},
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "resource_link", "uri": "file:///a", "name": "a"}},
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "resource", "resource": {"uri": "x:a", "text": "t"}}},
]

CALLS: list[Update] = [
    {"sessionUpdate": "tool_call", "toolCallId": "c-1", "title": "Read", "kind": "read", "status": "pending",
     "locations": [{"path": "/a", "line": 3}], "rawInput": {"path": "/a"}},
    {"sessionUpdate": "tool_call_update", "toolCallId": "c-1", "status": "in_progress", "content": [_content("so far")]},
    {"sessionUpdate": "tool_call_update", "toolCallId": "c-1", "status": "completed", "rawOutput": "all", "content": [
        {"type": "diff", "path": "/a", "oldText": None, "newText": "new\n"}, _content("done")]},
    {"sessionUpdate": "tool_call", "toolCallId": "c-2", "title": "Only a title"},
    {"sessionUpdate": "tool_call_update", "toolCallId": "c-2", "status": "failed", "title": None},
]  # fmt: skip

PLANS: list[Update] = [
    {"sessionUpdate": "plan", "entries": [{"content": "one", "priority": "high", "status": "pending"}]},
    {"sessionUpdate": "plan", "entries": [{"content": "one", "priority": "low", "status": "completed"}]},
    {"sessionUpdate": "plan", "entries": []},
]

NOTICES: list[Update] = [
    {"sessionUpdate": "notice", "severity": "warning", "title": "Look", "description": "here"},
]

COMPACTION: list[Update] = [
    {"sessionUpdate": "compaction_update", "compactionId": "k", "status": "in_progress"},
    {"sessionUpdate": "compaction_summary_chunk", "compactionId": "k", "content": text("in short")},
    {"sessionUpdate": "compaction_update", "compactionId": "k", "status": "completed", "summary": [text("in short")]},
]


def _accepted(id: str, what: str, link: str) -> Requirement:
    return must(id, f"{what} taken without complaint.", link=link, fix=FIX)


@SUITE.scenario(
    "updates",
    "a turn with every kind of update",
    shows=(
        _accepted("updates.messages", "Messages and thoughts, in every kind of content, are", "content"),
        _accepted("updates.tool-calls", "Tool calls and their updates are", "tool-calls#updating"),
        _accepted("updates.plan", "Plans, also empty ones, are", "agent-plan"),
        _accepted("updates.commands", "The commands that an agent offers are", "slash-commands"),
        _accepted("updates.mode", "A mode that the agent changed by itself is", "session-modes#from-the-agent"),
        _accepted("updates.options", "Settings that the agent changed by itself are", "session-config-options"),
        _accepted("updates.session", "The title of a session and what it has used are", "session-list"),
        capability(
            "updates.notices",
            "A client that wants notices takes them without complaint.",
            link="schema#sessionupdate",
            fix=FIX,
        ),
        capability(
            "updates.compaction",
            "A client that advertises compaction accepts its updates.",
            link="schema#sessionupdate",
            fix=FIX,
        ),
    ),
)
async def updates(run: ClientRun) -> None:
    await run.start()
    turn = await run.prompted()
    options = turn.connection.agent.options(turn.session)
    updates: dict[str, list[Update]] = {
        "messages": MESSAGES,
        "tool-calls": CALLS,
        "plan": PLANS,
        "commands": [{"sessionUpdate": "available_commands_update", "availableCommands": [
            {"name": "plan", "description": "Plan", "input": {"hint": "what"}}, {"name": "go", "description": "Go"}]}],
        "mode": [{"sessionUpdate": "current_mode_update", "currentModeId": "plan"}],
        "options": [{"sessionUpdate": "config_option_update", "configOptions": options}],
        "session": [{"sessionUpdate": "session_info_update", "title": "A title", "updatedAt": "2026-01-01T00:00:00Z"},
                    {"sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": {"amount": 0.1, "currency": "USD"}}],
    }  # fmt: skip
    if run.offers("session", "notices"):
        updates["notices"] = NOTICES
    if run.offers("session", "compaction"):
        updates["compaction"] = COMPACTION
    for name, several in updates.items():
        sent = [await run.update(one) for one in several]
        await run.survives(f"updates.{name}", f"updates of the kind `{several[-1]['sessionUpdate']}`", *sent)
    await turn.end()
    if left := [name for name in ("notices", "compaction") if name not in updates]:
        raise NotOffered(f"the client does not offer `session.{'` and `session.'.join(left)}`")


# --- updates as real agents send them


SKIP = "Read what you do not know as an update of no interest; log it if you like, and go on."
UPSERT = (
    "Take an update for a call that you do not know as the announcement of one, and a second announcement as an update."
)


def _call(id: str, **more: object) -> JsonObject:
    return {"sessionUpdate": "tool_call", "toolCallId": id, "title": "A call", **more}


def _change(id: str, **more: object) -> JsonObject:
    return {"sessionUpdate": "tool_call_update", "toolCallId": id, **more}


STRANGE: list[tuple[Requirement, str, list[JsonObject]]] = [
    (
        should("updates.unknown-kind", "An update of a kind that the client does not know is ignored.",
               link="extensibility", fix=SKIP),
        "an update of an unknown kind",
        [{"sessionUpdate": "antiphon_tomorrow", "content": [1]}, {"sessionUpdate": "_antiphon.example/own", "x": None}],
    ),
    (
        should("updates.unknown-content", "Content of a type that the client does not know is ignored.",
               link="content", fix=SKIP),
        "content of an unknown type",
        [{"sessionUpdate": "agent_message_chunk", "content": {"type": "antiphon_hologram", "data": {"z": 1}}},
         _call("h", content=[{"type": "antiphon_hologram", "z": 1}])],
    ),
    (
        should("updates.unknown-words", "A kind or a status of a tool call that the client does not know is ignored.",
               link="tool-calls#creating", fix=SKIP),
        "an unknown kind and an unknown status of a tool call",
        [_call("w", kind="antiphon_sing", status="antiphon_paused"), _change("w", status="antiphon_resumed")],
    ),
    (
        must("updates.more-fields", "Fields that the client does not know and `_meta` do not disturb it.",
             link="extensibility", fix="Ignore what you do not know."),
        "an update with unknown fields",
        [{"sessionUpdate": "agent_message_chunk", "content": {**text("x"), "tomorrow": 1}, "_meta": {"a.example": [0]}, "timestamp": 5}],
    ),
    (
        should("updates.unannounced", "An update for a tool call that was never announced is taken.",
               link="tool-calls#updating", fix=UPSERT),
        "an update for a tool call that was never announced",
        [_change("never-announced", status="completed", title="So it was")],
    ),
    (
        should("updates.again", "A tool call that is announced twice is taken.", link="tool-calls#creating", fix=UPSERT),
        "the second announcement of a tool call",
        [_call("twice"), _call("twice", title="Now with a name", kind="edit"), _change("twice", status="completed")],
    ),
    (
        should("updates.unknown-terminal", "A tool call that shows an unknown terminal is accepted.",
               link="terminals#embedding-in-tool-calls",
               fix="Show nothing, or a place for it, where you do not know the terminal."),
        "an unknown terminal",
        [_call("t", content=[{"type": "terminal", "terminalId": "antiphon-nobody"}])],
    ),
]  # fmt: skip


@SUITE.scenario(
    "strange-updates",
    "a turn with unexpected updates",
    shows=(
        should(
            "updates.early",
            "Updates that come before the answer to `session/new` do not disturb.",
            link="session-setup#creating-a-session",
            fix="Keep or drop updates of sessions that you do not know yet.",
            needs=("prompt.comes",),
        ),
        *(one for one, _, _ in STRANGE),
        should(
            "updates.other-session",
            "Updates of a session that the client does not know do not disturb.",
            link="session-setup#session-id",
            fix="Look at `sessionId` of each update, and drop those of sessions that are not yours.",
        ),
        should(
            "updates.late",
            "Updates that come behind the answer to a prompt do not disturb.",
            link="prompt-turn#cancellation",
            fix="Take updates at any time, also when no turn runs.",
            needs=("ends.well",),
        ),
    ),
)
async def strange_updates(run: ClientRun) -> None:
    async def new(agent: StandinAgent, params: JsonObject) -> object:
        made = await agent.usual("session/new", params)
        session = list(run.script.folders)[-1]
        await agent.update(session, {"sessionUpdate": "available_commands_update", "availableCommands": []})
        await agent.update(session, {"sessionUpdate": "usage_update", "used": 1, "size": 2})
        return made

    run.script.does["session/new"] = new
    await run.start()
    try:
        turn = await run.prompted()
    except NotAsked as problem:
        if run.connections:
            run.holds("updates.early", False, str(problem), *run.connections[0].wire.trace[-3:])
        raise
    run.holds("updates.early", True, "")
    for requirement, what, several in STRANGE:
        sent = [await run.update(one) for one in several]
        await run.survives(requirement.id, what, *sent)
    foreign = {"sessionUpdate": "agent_message_chunk", "content": text("not for you")}
    sent = [await run.update(foreign, session="antiphon-somebody-else")]
    await run.survives("updates.other-session", "an update of another session", *sent)
    response = {"jsonrpc": "2.0", "id": turn.entry.msg["id"], "result": {"stopReason": "end_turn"}}
    params = {"sessionId": turn.session, "update": _change("never-announced", title="Later")}
    late = {"jsonrpc": "2.0", "method": "session/update", "params": params}
    sent = await run.wire.send_together([response, late, late])
    status = await run.ended()
    otherwise = "the client did not end" if status is None else f"the client ended with status {status}"
    run.holds("updates.late", status == 0, otherwise, *sent)


SIGN_INS = [{"type": "antiphon_tomorrow", "id": "tomorrow", "name": "Tomorrow", "vars": [1]}]


@SUITE.scenario(
    "strange-end",
    "an agent with an unknown login method, and a turn with an unknown stop reason",
    shows=(
        should(
            "tolerates.sign-ins",
            "A way to sign in that the client does not know does not stop it from opening a session.",
            link="authentication",
            fix="Sign in when the agent answers -32000, and not before; ignore login methods that you do not know.",
            needs=("prompt.comes",),
        ),
        advice(
            "turn.unknown-reason",
            "A turn that ends for a reason which the client does not know has ended.",
            link="prompt-turn#stop-reasons",
            fix="Take an unknown `stopReason` as the end of the turn, with or without an error.",
        ),
    ),
)
async def strange_end(run: ClientRun) -> None:
    run.script.initialize_result["authMethods"] = SIGN_INS
    await run.start()
    try:
        turn = await run.prompted()
    except NotAsked as problem:
        if run.connections:
            run.holds("tolerates.sign-ins", False, str(problem), *run.connections[0].wire.trace[1:2])
        raise
    run.holds("tolerates.sign-ins", True, "")
    sent = await turn.end("antiphon_tomorrow", antiphonUsage={"tokens": 1}, _meta={"a.example": 1})
    status = await run.ended()
    run.holds("turn.unknown-reason", status is not None, "the client did not end", sent)
