"""Faults against the rules of all traffic: one message in one scenario that breaks one of them.

The capabilities that a client does not offer are asked for in the scenario of the client that offers nothing.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from antiphon.traffic.entries import Direction
from tests.conformance.faults.handshake import BARE, initializes, version
from tests.conformance.faults.messages import FENCE, NOWHERE
from tests.conformance.faults.one_message import UNKNOWN_USER, accept, change_reply, say_after
from tests.conformance.faults.one_scenario import (
    PROMPT,
    UPDATE,
    Made,
    MessageOnItsWay,
    SessionNotes,
    answer,
    change_sent,
    in_scene,
    prompt,
    stop,
)
from tests.conformance.faults.turns import kills_only
from tests.conformance.faults.wire_faults import Change, Faults, Message
from tests.conformance.memory import Fault

NEW, LOAD, RESUME, SET_OPTION = "session/new", "session/load", "session/resume", "session/set_config_option"
PERMISSION: Final = "session/request_permission"
QUESTION: Final[Message] = {"jsonrpc": "2.0", "id": "fault", "method": "_demo/question", "params": {}}
WORDS: Final[Message] = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "By the way."}}
USAGE: Final[Message] = {"totalTokens": 2, "inputTokens": 1, "outputTokens": 1}
HELLO: Final[Message] = {"jsonrpc": "2.0", "method": "_demo/hello", "params": {}}

Line = Callable[[str], Any]
"""From the id of a session to something that is known of it."""


def about(update: Message) -> Line:
    """An update."""
    return lambda session: {"jsonrpc": "2.0", "method": UPDATE, "params": {"sessionId": session, "update": update}}


def asking(method: str, **params: Any) -> Line:
    """A question to the client. Its answer does not reach the agent, which has not asked."""
    return lambda session: {**QUESTION, "method": method, "params": {"sessionId": session, **params}}


def beside(record: str, method: str, *lines: Line, later: bool = False, number: int = 1) -> Made:
    """Say more before an answer, or after it."""

    def meddle(reply: MessageOnItsWay, exchange: SessionNotes) -> Iterable[Any]:
        if reply.direction is Direction.C2A and reply.message.get("id") == "fault":
            return
        session = (reply.asked or {}).get("params", {}).get("sessionId", "")
        more = [line(session) for line in lines] if reply.answers(method, number) else []
        yield from (reply.message, *more) if later else (*more, reply.message)

    return in_scene(record, meddle)


def during(*lines: Line, record: str = "turn") -> Made:
    """Say more before the first turn of a scenario ends."""
    return beside(record, PROMPT, *lines)


def update(kind: str, change: Change, record: str = "turn") -> Made:
    """Change the updates of one kind."""

    def changed(message: Message) -> None:
        if message["params"]["update"]["sessionUpdate"] == kind:
            change(message["params"]["update"])

    return change_sent(record, UPDATE, changed)


def without(record: str, lost: Callable[[MessageOnItsWay, SessionNotes], bool]) -> Made:
    """Some messages never come."""
    return in_scene(record, lambda shown, exchange: [] if lost(shown, exchange) else [shown.message])


def is_update(**fields: Any) -> Callable[[MessageOnItsWay, SessionNotes], bool]:
    def is_it(reply: MessageOnItsWay, exchange: SessionNotes) -> bool:
        found = reply.message["params"]["update"] if reply.has_method(UPDATE) else {}
        return reply.has_method(UPDATE) and fields.items() <= {key: str(found[key]) for key in found}.items()

    return is_it


def in_second_turn(reply: MessageOnItsWay, exchange: SessionNotes) -> bool:
    return reply.has_method(UPDATE) and any(
        one["method"] == PROMPT and number == 2 for one, number in exchange.asked.values()
    )


def announced_twice() -> Made:
    def meddle(reply: MessageOnItsWay, exchange: SessionNotes) -> Iterable[Any]:
        yield from [reply.message] * (2 if is_update(sessionUpdate="tool_call")(reply, exchange) else 1)

    return in_scene("turn", meddle)


def set_in(*path: Any, to: Any) -> Change:
    """Put something somewhere into a message."""

    def change(message: Message) -> None:
        found: Any = message
        for name in path[:-1]:
            found = found[name]
        found[path[-1]] = to

    return change


def twice(*path: Any) -> Change:
    """Let the first of a list come a second time."""

    def change(message: Message) -> None:
        found: Any = message
        for name in path:
            found = found[name]
        found.append(found[0])

    return change


def only_what_was_set(message: Message) -> None:
    message["result"]["configOptions"] = [one for one in message["result"]["configOptions"] if one["id"] == "length"]


def same_session() -> Fault:
    """Two scenarios get the same session. What the agent says of the two that it made is lost, for no client knows them."""
    exchange = SessionNotes()

    def fault(direction: Direction, message: Any) -> Iterable[Any]:
        if not isinstance(message, dict):
            return [message]
        shown = exchange.add(direction, message)
        if exchange.record in ("session-http", "session-sse"):
            if shown.answers(NEW):
                message["result"]["sessionId"] = "antiphon-same"
            if shown.has_method(UPDATE):
                return []
        return [message]

    return fault


def offers_more(message: Message) -> None:
    way = {"id": "demo-terminal", "name": "In a terminal", "type": "terminal", "args": []}
    message["result"]["authMethods"].append(way)


BOOLEAN: Final[Message] = {"id": "fault", "name": "Fault", "type": "boolean", "currentValue": True}


def has_boolean(message: Message) -> None:
    message["result"]["configOptions"].append(BOOLEAN)


def modest(*lines: Line) -> Made:
    """The agent does in the scenario of the client that offers nothing what it should not do there."""
    return during(*lines, record="modest")


FAULTS: Faults = {
    "wire.utf8": during(lambda session: b'"\xff"'),
    "wire.json": during(lambda session: b"Thinking..."),
    "wire.no-batch": during(lambda session: [HELLO]),
    "rpc.version": change_sent("turn", UPDATE, lambda message: message.pop("jsonrpc")),
    "rpc.shape": during(lambda session: {"jsonrpc": "2.0"}),
    "rpc.id": during(lambda session: {**QUESTION, "id": 1.5}),
    "rpc.id-unique": during(lambda session: QUESTION, lambda session: QUESTION),
    "rpc.answer-id": during(lambda session: {"jsonrpc": "2.0", "result": {}}),
    "rpc.answer-known": during(lambda session: {"jsonrpc": "2.0", "id": "nobody", "result": {}}),
    "rpc.answer-to-notification": beside("bare-client", NEW, lambda session: UNKNOWN_USER),
    "rpc.error-object": answer("turn", FENCE, set_in("error", "code", to="odd"), 1),
    "rpc.error-code": answer("turn", FENCE, set_in("error", "code", to=404), 1),
    "rpc.error-message": answer("turn", FENCE, set_in("error", "message", to="Not\nfound"), 1),
    "schema.params": change_sent("files-write", PERMISSION, set_in("params", "toolCall", "title", to=7)),
    "schema.result": answer("turn", NEW, set_in("result", "modes", "availableModes", 0, "name", to=7)),
    "schema.update": update("session_info_update", set_in("title", to=7)),
    "schema.method": during(lambda session: {**HELLO, "method": "session/antiphon_demo"}),
    "schema.removed": answer("turn", NEW, set_in("result", "configOptions", to=[])),
    "schema.draft": during(lambda session: {**HELLO, "method": "auth/status_update", "params": {"state": "signed_out"}}),
    "schema.unknown-field": update("session_info_update", set_in("antiphonDemo", to=7)),
    "init.speaks-after": say_after(BARE, HELLO),
    "init.no-echo": change_reply(initializes(protocolVersion=65535), version(3)),
    "auth.ids": change_reply(BARE, twice("result", "authMethods")),
    "capability.fs-read": modest(asking("fs/read_text_file", path="/antiphon/file")),
    "capability.fs-write": modest(asking("fs/write_text_file", path="/antiphon/file", content="")),
    "capability.terminal": modest(asking("terminal/create", command="antiphon-no-such-command")),
    "capability.notices": modest(about({"sessionUpdate": "notice", "severity": "info", "title": "So"})),
    "capability.compaction": modest(about({"sessionUpdate": "compaction_update", "compactionId": "1", "status": "completed"})),
    "capability.plan": modest(about({"sessionUpdate": "plan_removed", "planId": "plan-1"})),
    "capability.subagents": modest(about({"sessionUpdate": "subagent_update", "sessionId": "sub-1"})),
    "capability.elicitation-form": modest(asking("elicitation/create", mode="form", message="Well?", requestedSchema={"type": "object"})),
    "capability.elicitation-url": modest(
        asking("elicitation/create", mode="url", message="Look", url="https://example.com", elicitationId="1")
    ),
    "capability.boolean-option": answer("modest", NEW, has_boolean),
    "capability.terminal-auth": change_reply(BARE, offers_more),
    "session.known": during(lambda session: about(WORDS)("antiphon-stranger")),
    "session.refused": accept(NOWHERE, {"stopReason": "refusal"}),
    "session.unique": same_session,
    "load.replay-first": beside("load", LOAD, about(WORDS), later=True),
    "resume.no-history": beside("resume", RESUME, about(WORDS), number=2),
    "turn.answer-last": beside("turn", PROMPT, about(WORDS), later=True),
    "turn.not-silent": without("turn", in_second_turn),
    "cancel.stop-reason": prompt("cancel-asking", stop("end_turn")),
    "cancel.unasked": prompt("files-read", stop("cancelled")),
    "call.announced": without("turn", is_update(sessionUpdate="tool_call", toolCallId="call-1")),
    "call.once": announced_twice(),
    "call.ends": without("turn", is_update(sessionUpdate="tool_call_update", status="completed")),
    "permission.options": change_sent("files-write", PERMISSION, twice("params", "options")),
    "permission.choice": change_sent("files-write", PERMISSION, set_in("params", "options", to=[])),
    "path.absolute": update("tool_call", set_in("locations", 0, "path", to="read.txt"), "files-read"),
    "path.line": update("tool_call", set_in("locations", 0, "line", to=0), "files-read"),
    "terminal.known": update("tool_call", set_in("content", to=[{"type": "terminal", "terminalId": "no-such"}])),
    "terminal.released": change_sent("terminal-run", "terminal/release", kills_only),
    "mode.current": answer("turn", NEW, set_in("result", "modes", "currentModeId", to="no-such")),
    "config.current": answer("turn", NEW, set_in("result", "configOptions", 0, "currentValue", to="no-such")),
    "config.complete": answer("settings", SET_OPTION, only_what_was_set, 5),
}  # fmt: skip
