"""Prompts whose messages come in an order that is seldom: late responses, cancellations in between, sessions that are closed or loaded."""

from typing import Any

import pytest

from antiphon.protocol.translate.tables import MAX_ENTITIES
from antiphon.protocol.translate.v1_client import NEXT_WORK, V1ClientTranslator
from antiphon.protocol.translate.v2_client import CLOSE_TIMEOUT, V2ClientTranslator
from antiphon.protocol.translate.v2_injection import ANSWER_GRACE
from tests.translate.conversations import opened
from tests.translate.pump import Json, Pump

CANCEL = {"method": "session/cancel", "params": {"sessionId": "s"}}
MODE = {
    "type": "select",
    "configId": "m",
    "name": "Mode",
    "category": "mode",
    "currentValue": "a",
    "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}],
}


def update(body: Json, session: str = "s") -> Json:
    return {"method": "session/update", "params": {"sessionId": session, "update": body}}


def state(word: str, reason: str | None = None) -> Json:
    return update(
        {"sessionUpdate": "state_update", "state": word, **({} if reason is None else {"stopReason": reason})}
    )


def echo(id: str, text: str) -> Json:
    return update({"sessionUpdate": "user_message", "messageId": id, "content": [{"type": "text", "text": text}]})


def text(piece: str) -> Json:
    return update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": piece}})


def prompt(id: Any, words: str = "hi") -> Json:
    params = {"sessionId": "s", "prompt": [{"type": "text", "text": words}]}
    return {"id": id, "method": "session/prompt", "params": params}


def answers(pump: Pump, id: Any) -> list[Json]:
    return [message for message in pump.at_client if message.get("id") == id and "method" not in message]


@pytest.fixture
def old_client() -> Pump:
    pump = Pump(V1ClientTranslator)
    opened(pump, 1, {"configOptions": [MODE]})
    return pump


@pytest.fixture
def new_client() -> Pump:
    pump = Pump(V2ClientTranslator)
    opened(pump, 2, {})
    return pump


def sent(pump: Pump, id: str, words: str = "hi") -> Any:
    """Send a prompt; returns its id at the agent."""
    pump.client(prompt(id, words))
    return pump.at_agent[-1]["id"]


# A client of version 1.


@pytest.mark.parametrize("early", ["response", "echo"])
@pytest.mark.parametrize("busy", [True, False])
def test_a_prompt_after_a_cancellation_does_not_end_with_the_cancelled_work(
    old_client: Pump, early: str, busy: bool
) -> None:
    old_client.agent({"id": sent(old_client, "a"), "result": {"messageId": "u-a"}})
    if busy:
        old_client.agent(state("running"))
    old_client.client(CANCEL)
    there = sent(old_client, "b", "second")
    if not busy:  # it was on its way
        old_client.agent(state("running"))
    if early == "response":
        old_client.agent({"id": there, "result": {"messageId": "u-b"}})
    old_client.agent(echo("u-b", "second"))
    old_client.agent(state("idle", "cancelled"))
    assert answers(old_client, "a")[0]["result"]["stopReason"] == "cancelled"
    if early == "echo":
        old_client.agent({"id": there, "result": {"messageId": "u-b"}})
    assert answers(old_client, "b") == []
    old_client.agent(state("running"))
    old_client.wait(2 * NEXT_WORK)
    old_client.agent(state("idle", "end_turn"))
    assert answers(old_client, "b") == [{"id": "b", "result": {"stopReason": "end_turn"}}]


def test_an_agent_that_cancels_the_prompt_behind_a_cancellation_too_is_not_waited_for(old_client: Pump) -> None:
    old_client.agent({"id": sent(old_client, "a"), "result": {"messageId": "u-a"}})
    old_client.agent(state("running"))
    old_client.client(CANCEL)
    old_client.agent({"id": sent(old_client, "b"), "result": {"messageId": "u-b"}})
    old_client.agent(state("idle", "cancelled"))
    old_client.wait(NEXT_WORK)
    assert answers(old_client, "b") == [{"id": "b", "result": {"stopReason": "cancelled"}}]
    assert old_client.links[0].deadline is None


def test_a_prompt_whose_response_and_message_come_after_its_work_has_ended(old_client: Pump) -> None:
    there = sent(old_client, "p")
    old_client.agent(state("running"))
    old_client.agent(state("idle", "max_tokens"))
    old_client.agent({"id": there, "result": {"messageId": "u"}})
    assert answers(old_client, "p") == []  # the agent may have worked for another client
    old_client.agent(echo("u", "hi"))
    old_client.wait(NEXT_WORK)
    assert answers(old_client, "p") == [{"id": "p", "result": {"stopReason": "max_tokens"}}]


def test_work_of_others_before_a_prompt_is_inserted_does_not_end_it(old_client: Pump) -> None:
    there = sent(old_client, "p")
    old_client.agent(state("running"))
    old_client.agent(state("idle", "end_turn"))
    old_client.agent({"id": there, "result": {"messageId": "u"}})
    old_client.agent(state("running"))
    old_client.wait(2 * NEXT_WORK)
    assert answers(old_client, "p") == []
    old_client.agent(state("idle", "refusal"))
    assert answers(old_client, "p") == [{"id": "p", "result": {"stopReason": "refusal"}}]


def test_a_session_whose_load_is_refused_is_what_it_was(old_client: Pump) -> None:
    old_client.agent(update({"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "x"}))
    params = {"sessionId": "s", "cwd": "/w", "mcpServers": []}
    old_client.client({"id": 8, "method": "session/load", "params": params})
    old_client.client({"id": 9, "method": "session/set_mode", "params": {"sessionId": "s", "modeId": "b"}})
    assert old_client.at_agent[-1]["method"] == "session/set_config_option"
    old_client.agent({"id": old_client.at_agent[-2]["id"], "error": {"code": -32602, "message": "no"}})
    old_client.agent(
        {"id": old_client.at_agent[-1]["id"], "result": {"configOptions": [{**MODE, "currentValue": "b"}]}}
    )
    assert answers(old_client, 9) == [{"id": 9, "result": {}}]
    old_client.agent(update({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"}))
    assert old_client.at_client[-1]["params"]["update"]["sessionUpdate"] == "tool_call_update"


def test_a_session_with_an_open_prompt_is_not_forgotten_for_others(old_client: Pump) -> None:
    old_client.agent({"id": sent(old_client, "p"), "result": {"messageId": "u"}})
    old_client.agent(state("running"))
    for number in range(MAX_ENTITIES + 5):
        old_client.client({"id": number, "method": "session/new", "params": {"cwd": "/w", "mcpServers": []}})
        old_client.agent({"id": old_client.at_agent[-1]["id"], "result": {"sessionId": f"s{number}"}})
    old_client.agent(state("idle", "end_turn"))
    assert answers(old_client, "p") == [{"id": "p", "result": {"stopReason": "end_turn"}}]
    link: Any = old_client.links[0]
    assert len(link._sessions) == MAX_ENTITIES


def test_a_prompt_with_an_id_that_is_open_has_no_effect(old_client: Pump) -> None:
    there = sent(old_client, "p")
    old_client.client(prompt("p"))
    assert old_client.losses[-1].reason == "its id is that of a request that is open"
    old_client.agent({"id": there, "result": {"messageId": "u"}})
    old_client.agent(state("running"))
    old_client.agent(state("idle", "end_turn"))
    old_client.client({"id": 9, "method": "session/close", "params": {"sessionId": "s"}})
    old_client.agent({"id": old_client.at_agent[-1]["id"], "result": {}})
    assert len(answers(old_client, "p")) == 1


def test_work_that_fails_while_no_prompt_waits_is_reported(old_client: Pump) -> None:
    old_client.agent(state("running"))
    failed = {"sessionUpdate": "state_update", "state": "idle", "stopReason": "error"}
    old_client.agent(update({**failed, "error": {"code": 1, "message": "no ink"}}))
    assert [loss.reason for loss in old_client.losses] == ["work that no prompt waits for has failed: no ink"]


def test_a_session_that_an_old_client_has_closed_asks_nothing(old_client: Pump) -> None:
    old_client.client({"id": 9, "method": "session/close", "params": {"sessionId": "s"}})
    old_client.agent({"id": old_client.at_agent[-1]["id"], "result": {}})
    before = len(old_client.at_client)
    asked = {"sessionId": "s", "title": "Sure?", "options": [{"optionId": "y", "name": "Y", "kind": "allow_once"}]}
    old_client.agent({"id": 1, "method": "session/request_permission", "params": asked})
    assert old_client.at_agent[-1] == {"id": 1, "result": {"outcome": {"outcome": "cancelled"}}}
    form = {"sessionId": "s", "mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}}
    old_client.agent({"id": 2, "method": "elicitation/create", "params": form})
    assert old_client.at_agent[-1] == {"id": 2, "result": {"action": "cancel"}}
    assert old_client.at_client[before:] == []
    params = {"sessionId": "s", "cwd": "/w", "mcpServers": []}
    old_client.client({"id": 10, "method": "session/resume", "params": params})
    old_client.agent({"id": 3, "method": "session/request_permission", "params": asked})
    assert old_client.at_client[-1]["method"] == "session/request_permission"


# A client of version 2.


def test_a_session_that_is_closed_twice_answers_both(new_client: Pump) -> None:
    new_client.client(prompt("p"))
    new_client.wait(1)
    for id in ("c", "d"):
        new_client.client({"id": id, "method": "session/close", "params": {"sessionId": "s"}})
    new_client.wait(CLOSE_TIMEOUT)
    assert [*answers(new_client, "c"), *answers(new_client, "d")] == [{"id": id, "result": {}} for id in ("c", "d")]


def test_a_closed_session_asks_nothing(new_client: Pump) -> None:
    new_client.client({"id": "c", "method": "session/close", "params": {"sessionId": "s"}})
    before = len(new_client.at_client)
    options = [{"optionId": "y", "name": "Y", "kind": "allow_once"}]
    asked = {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": options}
    new_client.agent({"id": 1, "method": "session/request_permission", "params": asked})
    assert new_client.at_agent[-1] == {"id": 1, "result": {"outcome": {"outcome": "cancelled"}}}
    form = {"sessionId": "s", "mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}}
    new_client.agent({"id": 2, "method": "elicitation/create", "params": form})
    assert new_client.at_agent[-1] == {"id": 2, "result": {"action": "cancel"}}
    new_client.agent(text("late"))
    assert new_client.at_client[before:] == []
    assert [loss.reason for loss in new_client.losses] == ["its session is closed"] * 3


@pytest.mark.parametrize("about", ["none", "own"])
def test_a_question_about_a_request_that_is_not_the_client_s_leaves_the_session_running(
    new_client: Pump, about: str
) -> None:
    new_client.client(prompt("p"))
    there = new_client.at_agent[-1]["id"]
    new_client.agent(text("a"))
    form = {"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}}
    scope = {"sessionId": "s", "requestId": there if about == "own" else 99}
    new_client.agent({"id": 2, "method": "elicitation/create", "params": {**form, **scope}})
    assert new_client.at_agent[-1]["error"]["code"] == -32602
    new_client.agent({"id": there, "result": {"stopReason": "end_turn"}})
    bodies = [m["params"]["update"] for m in new_client.at_client if m.get("method") == "session/update"]
    assert [body["state"] for body in bodies if "state" in body] == ["running", "idle"]


@pytest.fixture
def steered() -> Pump:
    """A client of version 2, and an agent of version 1 that takes prompts into its turn; one runs and one is offered."""
    pump = Pump(V2ClientTranslator)
    pump.client(
        {"id": 1, "method": "initialize", "params": {"protocolVersion": 2, "info": {"name": "n", "version": "1"}}}
    )
    pump.agent({"id": 1, "result": {"protocolVersion": 1, "_meta": {"steering": {"supported": True}}}})
    pump.client({"id": 2, "method": "session/new", "params": {"cwd": "/w"}})
    pump.agent({"id": 2, "result": {"sessionId": "s"}})
    pump.client(prompt("a"))
    pump.agent(text("working"))
    pump.client(prompt("b", "left"))
    assert pump.at_agent[-1]["method"] == "_session/steering"
    return pump


@pytest.mark.parametrize("cancel", [CANCEL, {"method": "$/cancel_request", "params": {"requestId": "b"}}], ids=str)
@pytest.mark.parametrize("outcome", ["injected", "rejected", None])
def test_a_prompt_that_is_cancelled_while_it_is_offered_has_one_end(
    steered: Pump, cancel: Json, outcome: str | None
) -> None:
    offered = steered.at_agent[-1]["id"]
    steered.client(cancel)
    assert answers(steered, "b") == []
    if outcome is None:
        steered.wait(ANSWER_GRACE)
    steered.agent({"id": offered, "result": {"outcome": outcome or "injected"}})
    [answer] = answers(steered, "b")
    if outcome == "injected":  # the agent acts on it
        assert answer["result"] == {"messageId": "user-2"}
    else:
        assert answer["error"]["code"] == -32800
    reasons = [loss.reason for loss in steered.losses]
    assert reasons == (["the agent took a prompt that was cancelled"] if outcome is None else [])


def test_a_handshake_for_an_earlier_version_does_not_change_that_of_the_connection(new_client: Pump) -> None:
    hello = {"protocolVersion": 1, "info": {"name": "n", "version": "1"}}
    new_client.client({"id": 7, "method": "initialize", "params": hello})
    assert answers(new_client, 7)[0]["error"]["code"] == -32022
    assert answers(new_client, 7)[0]["error"]["data"] == {"requested": 1, "supported": [2]}
