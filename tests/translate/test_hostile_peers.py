"""Peers of the other version that flood, repeat ids, contradict themselves or never end: memory is bounded, and errors are clear."""

from math import isqrt
from typing import Any

import pytest

from antiphon.protocol.translate.base import MAX_OPEN_REQUESTS
from antiphon.protocol.translate.tables import MAX_ENTITIES, MAX_PENDING_TEXT
from antiphon.protocol.translate.v1_client import MAX_EARLY, MAX_PROMPTS, V1ClientTranslator
from antiphon.protocol.translate.v1_known import MAX_TERMINAL, MAX_TOOL_CONTENT
from antiphon.protocol.translate.v2_client import CLOSE_TIMEOUT, INSERT_DELAY, MAX_HELD, V2ClientTranslator
from antiphon.protocol.translate.values.patches import MAX_COMPARED_DIFFS, MAX_COMPARED_PAIRS
from tests.translate.conversations import opened
from tests.translate.pump import Json, Pump


def update(body: Json, session: str = "s") -> Json:
    return {"method": "session/update", "params": {"sessionId": session, "update": body}}


def prompt(id: Any, text: str = "hi") -> Json:
    params = {"sessionId": "s", "prompt": [{"type": "text", "text": text}]}
    return {"id": id, "method": "session/prompt", "params": params}


def text_of(pump: Pump) -> str:
    bodies = [m["params"]["update"] for m in pump.at_client if m.get("method") == "session/update"]
    return "".join(b["content"]["text"] for b in bodies if b["sessionUpdate"] == "agent_message_chunk")


@pytest.fixture
def old_client() -> Any:
    pump = Pump(V1ClientTranslator)
    opened(pump, 1, {})
    return pump


@pytest.fixture
def new_client() -> Any:
    pump = Pump(V2ClientTranslator)
    opened(pump, 2, {})
    return pump


def session_of(pump: Pump) -> Any:
    link: Any = pump.links[0]
    return link._sessions["s"]


def test_a_flood_of_messages_is_remembered_up_to_the_limit(old_client: Pump) -> None:
    for number in range(MAX_ENTITIES + 500):
        old_client.agent(
            update(
                {
                    "sessionUpdate": "agent_message",
                    "messageId": f"m{number}",
                    "content": [{"type": "text", "text": "x"}],
                }
            ),
            settle=False,
        )
    assert len(session_of(old_client).updates.messages) == MAX_ENTITIES
    assert text_of(old_client) == "x" * (MAX_ENTITIES + 500)


def test_a_message_that_is_forgotten_is_shown_again_when_it_changes(old_client: Pump) -> None:
    for number in [*range(MAX_ENTITIES + 1), 0]:
        old_client.agent(
            update(
                {
                    "sessionUpdate": "agent_message",
                    "messageId": f"m{number}",
                    "content": [{"type": "text", "text": f"[{number}]"}],
                }
            ),
            settle=False,
        )
    assert text_of(old_client).endswith(f"[{MAX_ENTITIES}][0]")


def test_a_long_message_takes_no_memory_but_its_digest(old_client: Pump) -> None:
    piece = "x" * 1000
    for _ in range(500):
        old_client.agent(
            update(
                {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": piece}}
            ),
            settle=False,
        )
    log = session_of(old_client).updates.messages["agent", "m"]
    assert log._waiting <= MAX_PENDING_TEXT + 1000
    old_client.agent(
        update(
            {
                "sessionUpdate": "agent_message",
                "messageId": "m",
                "content": [{"type": "text", "text": piece * 500 + "!"}],
            }
        )
    )
    assert text_of(old_client) == piece * 500 + "!"


def test_a_tool_call_with_endless_content_is_cut_and_reported_once(old_client: Pump) -> None:
    item = {"type": "content", "content": {"type": "text", "text": "x"}}
    for _ in range(MAX_TOOL_CONTENT + 50):
        old_client.agent(
            update({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "t", "content": item}), settle=False
        )
    old_client.settle()
    assert len(old_client.at_client[-1]["params"]["update"]["content"]) == MAX_TOOL_CONTENT
    assert [loss.what for loss in old_client.losses] == ["tool_call_content_chunk"]


def test_a_terminal_keeps_the_end_of_its_output(old_client: Pump) -> None:
    old_client.agent(
        update(
            {
                "sessionUpdate": "tool_call_update",
                "toolCallId": "t",
                "content": [{"type": "terminal", "terminalId": "x"}],
            }
        )
    )
    for _ in range(100):
        old_client.agent(
            update({"sessionUpdate": "terminal_output_chunk", "terminalId": "x", "data": "eHh4eHh4" * 500}),
            settle=False,
        )
    old_client.agent(update({"sessionUpdate": "terminal_output_chunk", "terminalId": "x", "data": "%%%"}))
    [item] = old_client.at_client[-1]["params"]["update"]["content"]
    assert item["content"]["text"] == "x" * MAX_TERMINAL
    assert [loss.reason for loss in old_client.losses] == ["it is not base64"]


def test_updates_of_a_session_that_is_never_opened_are_bounded_and_reported(old_client: Pump) -> None:
    old_client.client({"id": 9, "method": "session/new", "params": {"cwd": "/w", "mcpServers": []}})
    for number in range(MAX_EARLY + 10):
        old_client.agent(update({"sessionUpdate": "state_update", "state": "running"}, f"other{number}"), settle=False)
    assert len(old_client.losses) == 10
    old_client.agent({"id": old_client.at_agent[-1]["id"], "result": {"sessionId": "new"}})
    assert len(old_client.losses) == MAX_EARLY + 10


def test_more_prompts_than_can_wait_are_refused(old_client: Pump) -> None:
    for number in range(MAX_PROMPTS + 1):
        old_client.client(prompt(f"p{number}"), settle=False)
    assert old_client.at_client[-1]["error"]["data"] == f"more than {MAX_PROMPTS} prompts wait"
    assert len(session_of(old_client).prompts) == MAX_PROMPTS


def test_contradicting_states_end_a_turn_once(old_client: Pump) -> None:
    old_client.client(prompt("p"))
    old_client.agent({"id": old_client.at_agent[-1]["id"], "result": {"messageId": "u"}})
    for state in ("running", "idle", "idle", "running", "idle", "idle"):
        old_client.agent(update({"sessionUpdate": "state_update", "state": state, "stopReason": "end_turn"}))
    assert [message for message in old_client.at_client if message.get("id") == "p"] == [
        {"id": "p", "result": {"stopReason": "end_turn"}}
    ]


def test_a_response_that_comes_twice_or_for_nothing_ends_nothing(old_client: Pump) -> None:
    old_client.client(prompt("p"))
    there = old_client.at_agent[-1]["id"]
    before = len(old_client.at_client)
    for id in (there, there, 999, None, "x"):
        old_client.agent({"id": id, "result": {"messageId": "u"}})
    assert old_client.at_client[before:] == []


def test_a_second_request_with_an_open_id_does_not_end_the_first(old_client: Pump) -> None:
    old_client.client({"id": 7, "method": "session/list", "params": {}})
    first = old_client.at_agent[-1]["id"]
    old_client.client({"id": 7, "method": "_mine", "params": {}})
    assert old_client.at_agent[-1]["id"] == first
    old_client.agent({"id": first, "result": {"sessions": []}})
    assert old_client.at_client[-1] == {"id": 7, "result": {"sessions": []}}


def test_more_open_requests_than_the_limit_are_refused(old_client: Pump) -> None:
    for number in range(MAX_OPEN_REQUESTS + 1):
        old_client.client({"id": number + 10, "method": "_mine", "params": {}}, settle=False)
    assert (
        old_client.at_client[-1]["error"]["data"] == f"more than {MAX_OPEN_REQUESTS} requests wait for their response"
    )


def test_a_replay_that_never_ends_keeps_its_tables_small(new_client: Pump) -> None:
    new_client.client(
        {
            "id": 5,
            "method": "session/resume",
            "params": {"sessionId": "s", "cwd": "/w", "replayFrom": {"type": "start"}},
        }
    )
    assert new_client.at_agent[-1]["method"] == "session/load"
    for number in range(3 * MAX_ENTITIES):
        new_client.agent(update({"sessionUpdate": "tool_call", "toolCallId": f"t{number}", "title": "x"}), settle=False)
        new_client.agent(
            update(
                {
                    "sessionUpdate": "agent_message_chunk",
                    "messageId": f"m{number}",
                    "content": {"type": "text", "text": "x"},
                }
            ),
            settle=False,
        )
    updates = session_of(new_client).updates
    assert len(updates.calls) == MAX_ENTITIES
    assert len(updates._cleared) <= MAX_ENTITIES


def test_more_held_prompts_than_the_limit_are_refused(new_client: Pump) -> None:
    for number in range(MAX_HELD + 2):
        new_client.client(prompt(f"p{number}"))
    assert new_client.at_client[-1] == {
        "id": f"p{MAX_HELD + 1}",
        "error": {"code": -32603, "message": "Internal error", "data": f"more than {MAX_HELD} prompts wait"},
    }


def test_an_agent_that_works_in_silence_inserts_the_prompt_after_a_while(new_client: Pump) -> None:
    new_client.client(prompt("p"))
    assert new_client.links[0].deadline == INSERT_DELAY
    new_client.wait(INSERT_DELAY)
    assert new_client.at_client[-1] == {"id": "p", "result": {"messageId": "user-1"}}
    assert new_client.links[0].deadline is None


def test_an_agent_without_close_that_does_not_end_its_turn_is_left_after_a_while(new_client: Pump) -> None:
    new_client.client(prompt("p"))
    new_client.wait(INSERT_DELAY)
    new_client.client({"id": "c", "method": "session/close", "params": {"sessionId": "s"}})
    assert new_client.at_agent[-1]["method"] == "session/cancel"
    new_client.wait(CLOSE_TIMEOUT)
    assert new_client.at_client[-2]["params"]["update"] == {
        "sessionUpdate": "state_update",
        "state": "idle",
        "stopReason": "cancelled",
    }
    assert new_client.at_client[-1] == {"id": "c", "result": {}}
    before = len(new_client.at_client)
    new_client.agent(update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "late"}}))
    assert new_client.at_client[before:] == []
    assert new_client.losses[-1].reason == "its session is closed"


@pytest.mark.parametrize("version", [1, 2])
def test_an_agent_that_dies_leaves_no_prompt_open(version: int) -> None:
    pump = Pump(V1ClientTranslator if version == 1 else V2ClientTranslator)
    opened(pump, version, {})
    pump.client(prompt("a"))
    pump.client(prompt("b"))
    pump.wait(1)
    if version == 1:
        pump.agent(
            {
                "id": next(m for m in pump.at_agent if m.get("method") == "session/prompt")["id"],
                "result": {"messageId": "u"},
            }
        )
    pump.lose_agent()
    answers = {message["id"]: message for message in pump.at_client if message.get("id") in ("a", "b")}
    assert answers["b"]["error"]["code"] == -32603
    if version == 1:
        assert answers["a"]["error"]["code"] == -32603
    else:  # it was inserted: the state reports the failure
        body = pump.at_client[-1]["params"]["update"]
        assert (body["state"], body["stopReason"], body["error"]["code"]) == ("idle", "error", -32603)


@pytest.mark.parametrize("refused", [False, True], ids=["replayed", "refused"])
def test_a_turn_that_ends_while_its_session_is_loaded_is_answered(old_client: Pump, refused: bool) -> None:
    old_client.client(prompt(7))
    old_client.agent({"id": old_client.at_agent[-1]["id"], "result": {"messageId": "u"}})
    old_client.agent(update({"sessionUpdate": "state_update", "state": "running"}))
    params = {"sessionId": "s", "cwd": "/w", "mcpServers": []}
    old_client.client({"id": 8, "method": "session/load", "params": params})
    old_client.agent(update({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}))
    outcome = {"error": {"code": -32603, "message": "no"}} if refused else {"result": {}}
    old_client.agent({"id": old_client.at_agent[-1]["id"], **outcome})
    answered = [message for message in old_client.at_client if message.get("id") == 7]
    assert [message["result"]["stopReason"] for message in answered] == ["end_turn"]


def test_a_request_to_cancel_a_prompt_cancels_its_work_once_it_is_inserted(old_client: Pump) -> None:
    old_client.client(prompt("p"))
    there = old_client.at_agent[-1]["id"]
    cancel = {"method": "$/cancel_request", "params": {"requestId": "p"}}
    old_client.client(cancel)
    assert old_client.at_agent[-1] == {"method": "$/cancel_request", "params": {"requestId": there}}
    old_client.agent({"id": there, "result": {"messageId": "u"}})
    old_client.agent(update({"sessionUpdate": "state_update", "state": "running"}))
    old_client.client(cancel)
    assert old_client.at_agent[-1] == {"method": "session/cancel", "params": {"sessionId": "s"}}
    old_client.agent(update({"sessionUpdate": "state_update", "state": "idle", "stopReason": "cancelled"}))
    assert old_client.at_client[-1] == {"id": "p", "result": {"stopReason": "cancelled"}}


def test_one_of_several_prompts_is_not_cancelled_with_the_others(old_client: Pump) -> None:
    for id in ("p", "q"):
        old_client.client(prompt(id))
        old_client.agent({"id": old_client.at_agent[-1]["id"], "result": {"messageId": f"u-{id}"}})
    before = len(old_client.at_agent)
    old_client.client({"method": "$/cancel_request", "params": {"requestId": "p"}})
    assert old_client.at_agent[before:] == []
    assert old_client.losses[-1].refused


def test_texts_that_would_take_seconds_to_compare_are_not_compared(new_client: Pump) -> None:
    def hunk(*texts: tuple[str, str]) -> list[str]:
        diffs = [{"type": "diff", "path": "/a", "oldText": old, "newText": new} for old, new in texts]
        new_client.agent(update({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "x", "content": diffs}))
        content = new_client.at_client[-1]["params"]["update"]["content"]
        return ["".join(line[:1] for line in each["patch"]["text"].splitlines()[4:]) for each in content]

    def mixed(word: str, count: int) -> str:
        return "first\n" + "".join(f"same\n{word}{number}\n" for number in range(count)) + "last\n"

    assert hunk((mixed("a", 2), mixed("b", 2))) == ["  -+ -+ "]
    count = isqrt(MAX_COMPARED_PAIRS) + 2  # the first of the same lines is not compared: both texts begin with it
    assert hunk((mixed("a", count), mixed("b", count))) == ["  " + "-" * (2 * count - 1) + "+" * (2 * count - 1) + " "]
    many = hunk(*[(mixed("a", 2), mixed("b", 2))] * (MAX_COMPARED_DIFFS + 1))
    assert many == ["  -+ -+ "] * MAX_COMPARED_DIFFS + ["  ---+++ "]


@pytest.mark.parametrize("method", ["fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output"])
def test_an_agent_of_version_2_does_not_reach_the_files_and_terminals_of_an_old_client(
    old_client: Pump, method: str
) -> None:
    before = len(old_client.at_client)
    old_client.agent({"id": 7, "method": method, "params": {"sessionId": "s", "path": "/w/a", "command": "true"}})
    assert old_client.at_agent[-1]["error"]["code"] == -32601
    assert len(old_client.at_client) == before


def test_a_session_that_a_new_agent_does_not_know_is_closed_all_the_same(old_client: Pump) -> None:
    old_client.client({"id": "c", "method": "session/close", "params": {"sessionId": "s"}})
    error = {"code": -32002, "message": "Resource not found", "data": {"sessionId": "s"}}
    old_client.agent({"id": old_client.at_agent[-1]["id"], "error": error})
    assert old_client.at_client[-1] == {"id": "c", "result": {}}


def test_the_version_of_an_agent_counts_though_its_other_fields_cannot_be_read() -> None:
    pump = Pump(V1ClientTranslator)
    pump.client({"id": 0, "method": "initialize", "params": {"protocolVersion": 1}})
    info = {"name": "a", "version": "1", "title": 7}
    result = {"protocolVersion": 2, "info": info, "capabilities": {"session": {}}, "authMethods": "none", "_meta": 7}
    pump.agent({"id": pump.at_agent[-1]["id"], "result": result})
    assert pump.at_client[-1]["result"]["agentInfo"]["name"] == "a"


def test_a_cancel_after_the_end_of_the_work_does_not_change_how_it_ended(old_client: Pump) -> None:
    old_client.client(prompt("p"))
    there = old_client.at_agent[-1]["id"]
    text = [{"type": "text", "text": "hi"}]
    old_client.agent(update({"sessionUpdate": "user_message", "messageId": "u", "content": text}))
    for state in ("running", "idle"):
        old_client.agent(update({"sessionUpdate": "state_update", "state": state}))
    old_client.client({"method": "session/cancel", "params": {"sessionId": "s"}})
    old_client.agent({"id": there, "result": {"messageId": "u"}})
    assert old_client.at_client[-1] == {"id": "p", "result": {"stopReason": "end_turn"}}
