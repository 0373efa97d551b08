"""Updates of version 2: everything is an upsert by its id, and much of it may be of a kind that a client does not know."""

import base64

from antiphon.conformance.client_run import NotAsked
from antiphon.conformance.requirements import Requirement
from antiphon.conformance.standin_agent import StandinAgent
from antiphon.conformance.suites.client_v2.suite import CLIENT_SUITE_V2, must, play_v2, should
from antiphon.conformance.v2.client_run import ClientRunV2, StandinAgentV2
from antiphon.traffic.entries import JsonObject

__all__: list[str] = []

Update = JsonObject

FIX = "Handle every kind of `session/update`; one that you have no use for is read and dropped."
SKIP = "Read what you do not know as something of no interest; keep it where you store or forward it, and go on."


def text(words: str) -> dict[str, str]:
    """A block of text."""
    return {"type": "text", "text": words}


def _shown(words: str) -> Update:
    return {"type": "content", "content": text(words)}


def _message(kind: str, id: str, **more: object) -> Update:
    return {"sessionUpdate": kind, "messageId": id, **more}


def _call(id: str, **more: object) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": id, **more}


def _terminal(id: str, **more: object) -> Update:
    return {"sessionUpdate": "terminal_update", "terminalId": id, **more}


def _bytes(id: str, data: bytes) -> Update:
    return {"sessionUpdate": "terminal_output_chunk", "terminalId": id, "data": base64.b64encode(data).decode()}


def _plan(id: str, *entries: tuple[str, str, str]) -> Update:
    listed = [{"content": words, "priority": priority, "status": status} for words, priority, status in entries]
    return {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": id, "entries": listed}}


CONTENT: list[Update] = [
    text("an answer"),
    {"type": "image", "data": "AAAA", "mimeType": "image/png"},
    {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "file:///a", "name": "a"},
    {"type": "resource", "resource": {"uri": "x:a", "text": "t"}},
]

CHANGES: list[Update] = [
    {"operation": "add", "path": "/a", "fileType": "text"},
    {"operation": "modify", "path": "/b"},
    {"operation": "delete", "path": "/c"},
    {"operation": "move", "oldPath": "/d", "path": "/e"},
    {"operation": "copy", "oldPath": "/e", "path": "/f"},
]
PATCH = "--- /dev/null\n+++ /a\n@@ -0,0 +1 @@\n+new\n"

KINDS: list[tuple[Requirement, list[Update]]] = [
    (
        must("updates.messages", "Messages and thoughts, in every kind of content, are taken without complaint.",
             link="schema#contentblock", fix=FIX),
        [_message("agent_message_chunk", "m-1", content=one) for one in CONTENT]
        + [_message("agent_thought_chunk", "m-2", content=text("hm"))],
    ),
    (
        must("updates.interleaved", "Messages by their kind and id: pieces of several may come by turns, and kinds share no ids.",
             link="schema#contentchunk", fix="Find the message of a piece by its kind and `messageId`, not by what came last."),
        [_message(f"{kind}_chunk", "i-1", content=text(words))
         for words in ("one ", "two ") for kind in ("agent_message", "agent_thought", "user_message")],
    ),
    (
        must("updates.upserts", "A whole message replaces what came before; without `content` it keeps it, with null or [] it clears it.",
             link="schema#agentmessage", fix="Tell a field that is missing from one that is null, and replace lists whole."),
        [_message("agent_message", "r-1", content=[text("whole"), text(" and more")]),
         _message("agent_message_chunk", "r-1", content=text(", and a piece")),
         _message("agent_message", "r-1", _meta={"antiphon.example": 1}),
         _message("agent_message", "r-1", content=None, _meta={"antiphon.example": None}),
         _message("agent_thought", "r-2", content=[]), _message("agent_message", "r-1", content=[text("anew")])],
    ),
    (
        must("updates.tool-calls", "Tool calls are taken without complaint, from the first report on and with every field null.",
             link="schema#toolcallupdate", fix="Make a tool call when its id is seen first; null unsets a field, and `kind` and `status` have defaults."),
        [_call("c-1", title="Read", kind="read", status="in_progress", locations=[{"path": "/a", "line": 3}], rawInput={"path": "/a"}),
         _call("c-1", status="paused", content=[_shown("so far")]), _call("c-2", status="completed"),
         _call("c-1", name=None, title=None, kind=None, status=None, content=None, locations=None, rawInput=None, rawOutput=None),
         _call("c-1", title="Read", status="cancelled", _meta={"antiphon.example": [0]}), _call("c-1", _meta=None)],
    ),
    (
        must("updates.call-content", "Pieces of the content of a tool call are taken without complaint, also the first thing that is seen of it.",
             link="schema#toolcallcontentchunk", fix="Append each piece to the content of its call; make the call where there is none."),
        [{"sessionUpdate": "tool_call_content_chunk", "toolCallId": id, "content": _shown("a piece")} for id in ("c-3", "c-4")]
        + [_call(id, title="Write", status="completed") for id in ("c-3", "c-4")],
    ),
    (
        must("updates.diffs", "Diffs with every kind of change are taken without complaint, with and without a patch.",
             link="schema#diff", fix="Show `changes`; a patch is there for those who can use it."),
        [_call("d-1", title="Edit", status="completed", content=[
            {"type": "diff", "changes": CHANGES},
            {"type": "diff", "changes": CHANGES[:1], "patch": {"format": "git_patch", "text": PATCH}}])],
    ),
    (
        must("updates.terminals", "Terminals are taken without complaint: pieces that cut letters, replaced output, any exit status.",
             link="schema#terminalupdate", fix="Decode each piece by itself, append its bytes, and take any `exitStatus` that is an object for the end."),
        [_terminal("t-1", command="ls", cwd="/", size={"cols": 80, "rows": 24}), _bytes("t-1", b"\xc3"), _bytes("t-1", b"\xa4\x1b[3"),
         _bytes("t-1", b"1mred"), _terminal("t-1", output={"data": "bmV3"}), _terminal("t-1", exitStatus={}), _terminal("t-1", size=None, output=None),
         _bytes("t-2", b"first"), _terminal("t-2", exitStatus={"exitCode": None, "signal": "TERM"}),
         _call("t-call", title="Run", status="completed", content=[{"type": "terminal", "terminalId": "t-1"}])],
    ),
    (
        must("updates.plan", "Plans are taken without complaint, several at once and empty ones.", link="schema#planitems",
             fix="Keep plans by their `planId`; an update replaces all entries of its plan."),
        [_plan("p-1", ("one", "high", "pending"), ("two", "low", "cancelled")), _plan("p-2", ("other", "medium", "completed")), _plan("p-1")],
    ),
    (
        must("updates.commands", "The commands that an agent offers are taken without complaint.", link="schema#command", fix=FIX),
        [{"sessionUpdate": "available_commands_update", "availableCommands": [
            {"type": "command", "name": "plan", "description": "Plan", "input": {"type": "text", "hint": "what"}},
            {"type": "command", "name": "go", "description": "Go"}]}],
    ),
    (
        must("updates.session", "The title of a session and what it has used are taken without complaint, also cleared.",
             link="schema#sessioninfoupdate", fix=FIX),
        [{"sessionUpdate": "session_info_update", "title": "A title", "updatedAt": "2026-01-01T00:00:00Z"},
         {"sessionUpdate": "session_info_update", "title": None},
         {"sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": {"amount": 0.1, "currency": "credits"}},
         {"sessionUpdate": "usage_update", "used": 11, "size": 100, "cost": None}],
    ),
    (
        must("updates.notices", "Notices are taken without complaint; a client need not offer anything for them.", link="schema#sessionupdate", fix=FIX),
        [{"sessionUpdate": "notice", "severity": "warning", "title": "Look", "description": "here"},
         {"sessionUpdate": "notice", "severity": "_antiphon_gentle", "title": "Look again"}],
    ),
    (
        must("updates.compaction", "Compactions are taken without complaint; a client need not offer anything for them.", link="schema#sessionupdate", fix=FIX),
        [{"sessionUpdate": "compaction_summary_chunk", "compactionId": "k", "content": text("in short")},
         {"sessionUpdate": "compaction_update", "compactionId": "k", "status": "completed", "summary": [text("in short")]},
         {"sessionUpdate": "compaction_update", "compactionId": "l", "status": "failed", "error": {"code": -32603, "message": "too long"}}],
    ),
]  # fmt: skip


@CLIENT_SUITE_V2.scenario("updates", "work with every kind of update", shows=[one for one, _ in KINDS])
@play_v2
async def updates(run: ClientRunV2) -> None:
    await run.start()
    turn = await run.prompted()
    for requirement, several in KINDS:
        sent = [await run.update(one) for one in several]
        await run.survives(requirement.id, f"updates of the kind `{several[-1]['sessionUpdate']}`", *sent)
    await turn.end()


STRANGE: list[tuple[Requirement, str, list[Update]]] = [
    (
        must("updates.unknown-kind", "An update of a kind that the client does not know is ignored.", link="schema#sessionupdate", fix=SKIP),
        "an update of an unknown kind",
        [{"sessionUpdate": "antiphon_tomorrow", "content": [1]}, {"sessionUpdate": "_antiphon.example/own", "x": None}],
    ),
    (
        must("updates.unknown-content", "Content of a type that the client does not know is ignored.", link="schema#contentblock", fix=SKIP),
        "content of an unknown type",
        [_message("agent_message_chunk", "h-1", content={"type": "_antiphon_hologram", "data": {"z": 1}}),
         _call("h", title="Show", content=[{"type": "_antiphon_hologram", "z": 1}]),
         _call("h", content=[{"type": "diff", "changes": [{"operation": "_antiphon_swap", "path": "/a"}]}]),
         {"sessionUpdate": "plan_update", "plan": {"type": "_antiphon_tree", "planId": "h", "roots": 1}}],
    ),
    (
        must("updates.unknown-words", "A kind or a status of a tool call, or of an entry of a plan, that the client does not know is ignored.",
             link="schema#toolcallstatus", fix="Show an unknown kind as `other`, and take an unknown status for work in progress."),
        "unknown words of a tool call and of a plan",
        [_call("w", title="Sing", kind="_antiphon_sing", status="_antiphon_resting"), _call("w", kind="sing", status="tuned"),
         _call("w", status="completed"), _plan("w", ("one", "_antiphon_urgent", "_antiphon_begun"))],
    ),
    (
        must("updates.more-fields", "Fields that the client does not know and `_meta` do not disturb it.", link="extensibility",
             fix="Ignore what you do not know."),
        "an update with unknown fields",
        [_message("agent_message_chunk", "f-1", content={**text("x"), "tomorrow": 1}, timestamp=5, _meta={"a.example": [0]})],
    ),
    (
        must("updates.malformed", "An optional field or an item of a list that cannot be read is dropped, and the update is kept.",
             link="schema#toolcallupdate", fix="Take a field that the schema marks as lenient for missing where it is malformed, and skip such items of lists."),
        "an update with fields that cannot be read",
        [_call("b-1", title=7, locations=[{"path": 7}, {"path": "/a"}], content="none"), _terminal("b-2", size="large", exitStatus=7)],
    ),
    (
        should("updates.unknown-terminal", "A tool call that shows an unknown terminal is accepted.", link="schema#toolcallupdate",
               fix="Show nothing, or a place for it, where you do not know the terminal: its updates may follow."),
        "an unknown terminal",
        [_call("u-1", title="Run", content=[{"type": "terminal", "terminalId": "antiphon-nobody"}])],
    ),
]  # fmt: skip

FOREIGN = _message("agent_message_chunk", "x-1", content=text("not for you"))


@CLIENT_SUITE_V2.scenario(
    "strange-updates",
    "work with unexpected updates",
    shows=(
        must(
            "updates.early",
            "Updates that come before the answer to `session/new`, of work that nobody has asked for, do not disturb.",
            link="schema#newsessionresponse",
            fix="Keep updates of a session whose id you do not know yet; an agent may work without a prompt.",
            needs=("prompt.comes",),
        ),
        *(one for one, _, _ in STRANGE),
        must(
            "updates.other-session",
            "Updates of a session that the client does not know do not disturb.",
            link="schema#sessionid",
            fix="Look at `sessionId` of each update, and drop those of sessions that are not yours.",
        ),
        must(
            "updates.late",
            "Updates that come while the session is idle do not disturb.",
            link="schema#stateupdate",
            fix="Take updates at any time, also when the session is idle.",
            needs=("ends.well",),
        ),
    ),
)
@play_v2
async def strange_updates(run: ClientRunV2) -> None:
    run.script.does["session/new"] = _busy_before
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
    sent = [await run.update(FOREIGN, session="antiphon-somebody-else")]
    await run.survives("updates.other-session", "an update of another session", *sent)
    late = [
        {"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"},
        _call("w", title="Later"),
        {"sessionUpdate": "usage_update", "used": 12, "size": 100},
    ]
    sent = await run.wire.send_together([_notification(turn.session, one) for one in late])
    status = await run.ended()
    otherwise = "the client did not end" if status is None else f"the client ended with status {status}"
    run.holds("updates.late", status == 0, otherwise, *sent)


def _notification(session: str, update: Update) -> JsonObject:
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}}


async def _busy_before(agent: StandinAgent, params: JsonObject) -> object:
    """A new session in which the agent has done something by itself."""
    made = await agent.usual("session/new", params)
    session = list(agent.script.folders)[-1]
    if isinstance(agent, StandinAgentV2):
        await agent.report(session, "running")
        await agent.update(session, _message("agent_message_chunk", "early", content=text("Good morning.")))
        await agent.report(session, "idle", stopReason="end_turn")
    return made
