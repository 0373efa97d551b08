"""What real agents were seen to do otherwise than the specification says: each of it is found.

Every row is a little session of our own in which an agent does such a thing, and the rule that reports it. What no session shows by
itself, because a user has to ask for it first or because it is a process that does it, is found by a scenario of the check.
"""

from typing import Any

import pytest

from antiphon.conformance.suites.agent import SUITE
from tests.rows import each_row
from tests.traffic.messages import (
    Line,
    agent,
    call,
    call_update,
    chosen,
    client,
    done,
    hello,
    judged,
    may_i,
    message_chunk,
    new,
    prompt,
    text,
    turn,
    update,
)
from tests.traffic.table import BEGIN, OLD, SET, WITH_OPTIONS, session_can

LOAD = [*hello(offers={"loadSession": True}), client.asks(1, "session/load", **OLD)]
FORK = client.asks(3, "session/fork", sessionId="s", cwd="/w", mcpServers=[])
WRITE = agent.asks(50, "fs/write_text_file", sessionId="s", path="/w/a", content="")
TERMINAL = {"id": "tty", "name": "Log in", "type": "terminal"}
KEY = {"id": "key", "name": "Key", "type": "env_var", "vars": [{"name": "THE_KEY"}]}


def nothing(id: int) -> Line:
    return agent.sends({"jsonrpc": "2.0", "id": id, "result": None})


def offers(**what: Any) -> list[Line]:
    return hello(offers=what)


def refused(code: int) -> list[Line]:
    return [*BEGIN, prompt(), agent.fails(2, code, "The model said no")]


FOUND: list[tuple[str, list[Line], str]] = [
    ("a list of sessions that is null", [*offers(**session_can("list")), client.asks(1, "session/list"), nothing(1)], "schema.result"),
    ("a resumed session that is null", [*offers(**session_can("resume")), client.asks(1, "session/resume", **OLD), nothing(1)], "schema.result"),
    ("an option that was set, without the options", [*WITH_OPTIONS, SET, agent.gives(2)], "schema.result"),
    ("models, which were removed", [*hello(), *new(models={"currentModelId": "m", "availableModels": []})], "schema.removed"),
    ("a model set in the way that was removed", [*BEGIN, client.asks(2, "session/set_model", sessionId="s", modelId="m")], "schema.removed"),
    ("a time in an update", [*BEGIN, *turn(update("agent_message_chunk", content=text("x"), timestamp=1))], "schema.unknown-field"),
    ("a session id in the answer to a load", [*LOAD, agent.gives(1, sessionId="s")], "schema.unknown-field"),
    ("a capability that nobody knows", offers(**session_can("choirs")), "schema.unknown-field"),
    ("a login by a variable, with fields of its own", hello(authMethods=[KEY]), "schema.unknown-field"),
    ("a request of a maker without an underscore", [*BEGIN, *turn(message_chunk(), agent.asks(60, "maker/drain"))], "schema.method"),
    ("a notification of a maker without an underscore", [*BEGIN, agent.notifies("maker/notify/mode", mode="plan")], "schema.method"),
    ("an update before the client knows the session", [*hello(), new()[0], update("usage_update", used=1, size=2), new()[1]], "session.known"),
    ("the history of a fork before its answer", [*offers(**session_can("fork")), *new(), FORK, message_chunk(session="t"), agent.gives(3, sessionId="t")],
     "session.known"),
    ("permission for a tool call that was not announced", [*BEGIN, prompt(), may_i(), chosen()], "call.announced"),
    ("an update of a tool call that was not announced", [*BEGIN, *turn(call_update(status="completed"))], "call.announced"),
    ("a tool call that is announced twice", [*BEGIN, *turn(call(), call(), call_update(status="completed"))], "call.once"),
    ("a terminal that nobody made", [*BEGIN, prompt(), call(content=[{"type": "terminal", "terminalId": "c"}])], "terminal.known"),
    ("a file that is written through a client which cannot", [*hello({"fs": {"writeTextFile": False}}), *new(), prompt(), message_chunk(), WRITE],
     "capability.fs-write"),
    ("a login in a terminal for a client which has none", hello(authMethods=[TERMINAL]), "capability.terminal-auth"),
    ("a mode that is told as a text after the turn", [*BEGIN, *turn(), message_chunk("[MODE] plan")], "turn.answer-last"),
    ("an HTTP status as the code of an error", refused(400), "rpc.error-code"),
    ("a turn that fails without a word", [*BEGIN, prompt(), done()], "turn.not-silent"),
    ("a prompt that succeeds in no session", [*BEGIN, prompt(2, "t"), done(2, "refusal")], "session.refused"),
    ("a turn that is cancelled by a no", [*BEGIN, prompt(), call(), may_i(), chosen(option="no"), done(reason="cancelled")], "cancel.unasked"),
    ("an error without an id", [*BEGIN, client.sends(b"{"), agent.sends({"jsonrpc": "2.0", "error": {"code": -32700, "message": "?"}})], "rpc.answer-id"),
    ("an answer to a notification", [*BEGIN, client.notifies("_x/news"), agent.fails(None, -32601)], "rpc.answer-to-notification"),
    ("a version that does not exist", [client.asks(0, "initialize", protocolVersion=99), agent.gives(0, protocolVersion=99)], "init.no-echo"),
]  # fmt: skip

ASKED_FOR = {
    "a field is missing, and the code is that of a fault inside": "error.missing-code",
    "a session that is open cannot be loaded": "load.loads",
    "the process goes on when its input has ended": "process.ends",
    "the process goes on when its input has ended during a turn": "process.ends-busy",
    "a directory that is not absolute is taken": "session.relative-directory",
    "a session opens before the introduction": "init.refuses-early",
}


@each_row(("talk", "rule"), [row[1:] for row in FOUND], ids=[row[0] for row in FOUND])
def test_a_deviation_that_was_seen_is_found(talk: list[Line], rule: str) -> None:
    assert rule in {one.rule for one in judged(talk).deviations}


@pytest.mark.parametrize(("what", "requirement"), ASKED_FOR.items(), ids=list(ASKED_FOR))
def test_a_deviation_that_has_to_be_asked_for_has_a_scenario(what: str, requirement: str) -> None:
    found = SUITE.requirements()[requirement]
    assert found.scenario in SUITE.scenarios
    assert found.text.endswith(".") and found.fix.endswith(".")


def test_what_the_specification_allows_is_not_a_deviation() -> None:
    """Order and kinds of options, calls with nothing but an id and methods with an underscore are what they may be."""
    always = {"optionId": "a", "name": "Always", "kind": "allow_always"}
    once = [{"optionId": id, "name": id, "kind": "allow_once"} for id in ("b", "c")]
    asked = agent.asks(
        50, "session/request_permission", sessionId="s", toolCall={"toolCallId": "c"}, options=[always, *once]
    )
    ended = call_update(status="completed")
    talk = [
        *hello(),
        agent.notifies("_maker/status", signedIn=True),
        *new(),
        *turn(call(), asked, chosen(option="c"), ended),
    ]
    assert judged([*talk, *turn(call(), ended, id=3)]).deviations == []
