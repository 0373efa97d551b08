"""What a client of version 1 is shown of messages, tool calls and terminals of version 2 when they change, and what is reported instead."""

import base64
from typing import Any

import pytest

from antiphon.protocol import v2
from antiphon.protocol.translate.tables import MAX_PENDING_PIECES
from antiphon.protocol.translate.v1_client import V1ClientTranslator
from antiphon.protocol.translate.v1_known import MAX_SHOWN, MAX_TERMINAL
from antiphon.protocol.translate.values.patches import diffs_to_v1
from tests.translate.pump import Json, Pump


def update(body: Json) -> Json:
    return {"method": "session/update", "params": {"sessionId": "s", "update": body}}


def call(**fields: Any) -> Json:
    return update({"sessionUpdate": "tool_call_update", "toolCallId": "t", **fields})


def item(text: str) -> Json:
    return {"type": "content", "content": {"type": "text", "text": text}}


def output(text: str) -> Json:
    data = base64.b64encode(text.encode()).decode()
    return update({"sessionUpdate": "terminal_output_chunk", "terminalId": "x", "data": data})


def shown(pump: Pump) -> list[Json]:
    return [m["params"]["update"] for m in pump.at_client if m.get("method") == "session/update"]


def client_with(meta: Json | None = None) -> Pump:
    pump = Pump(V1ClientTranslator)
    able = {"_meta": meta} if meta is not None else {}
    pump.client({"id": 1, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": able}})
    info = {"name": "a", "version": "1"}
    pump.agent({"id": 1, "result": {"protocolVersion": 2, "info": info, "capabilities": {"session": {}}}})
    pump.client({"id": 2, "method": "session/new", "params": {"cwd": "/w", "mcpServers": []}})
    pump.agent({"id": 2, "result": {"sessionId": "s"}})
    return pump


def test_a_message_that_is_cleared_goes_on_as_another_one() -> None:
    pump = client_with()
    for text in ("draft", "final", "best"):
        chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": text}}
        pump.agent(update(chunk))
        pump.agent(update({"sessionUpdate": "agent_message", "messageId": "m", "content": []}))
    assert [(each["messageId"], each["content"]["text"]) for each in shown(pump)] == [
        ("m", "draft"),
        ("m~2", "final"),
        ("m~3", "best"),
    ]
    assert [loss.reason for loss in pump.losses] == ["what was sent of a message cannot be cleared"] * 3


@pytest.mark.parametrize("described", [True, False])
def test_a_call_that_changes_while_the_user_is_asked_is_shown_as_it_is_afterwards(described: bool) -> None:
    pump = client_with()
    pump.agent(call(title="Old"))
    options = [{"optionId": "y", "name": "Y", "kind": "allow_once"}]
    subject = {"type": "tool_call", "toolCall": {"toolCallId": "t", "content": [item("c")]}}
    asked = {"sessionId": "s", "title": "Sure?", "subject": subject, "options": options}
    about = {"description": "why"} if described else {}
    pump.agent({"id": 1, "method": "session/request_permission", "params": {**asked, **about}})
    there = pump.at_client[-1]
    assert [each["content"]["text"] for each in there["params"]["toolCall"]["content"]] == ["why", "c"][not described :]
    pump.agent(call(title="New", content=[item("d")]))
    pump.client({"id": there["id"], "result": {"outcome": {"outcome": "selected", "optionId": "y"}}})
    last = shown(pump)[-1]
    assert last["title"] == "New"
    assert last.get("content") == ([item("d")] if described else None)


@pytest.mark.parametrize("key", ["terminal_output", "terminal_output_delta"])
def test_output_of_a_terminal_that_comes_together_is_sent_once(key: str) -> None:
    pump = client_with({key: True})
    pump.agent(call(content=[{"type": "terminal", "terminalId": "x"}]))
    pump.agent(output("y" * MAX_TERMINAL))
    before = len(shown(pump))
    for _ in range(100):
        pump.agent(output("ab"), settle=False)
    pump.settle()
    [last] = shown(pump)[before:]
    whole = ("y" * MAX_TERMINAL + "ab" * 100)[-MAX_TERMINAL:]
    data = whole if key == "terminal_output" else "ab" * 100
    assert last["_meta"] == {key: {"terminal_id": "x", "data": data}}


def test_a_terminal_that_is_replaced_is_sent_whole_to_a_client_of_pieces() -> None:
    pump = client_with({"terminal_output_delta": True})
    pump.agent(call(content=[{"type": "terminal", "terminalId": "x"}]))
    pump.agent(output("one"))
    snapshot = {"data": base64.b64encode(b"two").decode()}
    pump.agent(
        update(
            {"sessionUpdate": "terminal_update", "terminalId": "x", "output": snapshot, "exitStatus": {"exitCode": 1}}
        )
    )
    assert shown(pump)[-1]["_meta"] == {
        "terminal_output": {"terminal_id": "x", "data": "two"},
        "terminal_exit": {"terminal_id": "x", "exit_code": 1, "signal": None},
    }


@pytest.mark.parametrize(
    ("status", "end"), [({"exitCode": 3}, "\n[exit code 3]"), ({"signal": "TERM"}, "\n[signal TERM]"), ({}, "")]
)
def test_a_client_that_shows_text_alone_is_shown_that_a_command_has_failed(status: Json, end: str) -> None:
    pump = client_with()
    pump.agent(call(content=[{"type": "terminal", "terminalId": "x"}]))
    pump.agent(output("out"))
    pump.agent(update({"sessionUpdate": "terminal_update", "terminalId": "x", "exitStatus": status}))
    assert shown(pump)[-1]["content"] == [item("out" + end)]


@pytest.mark.parametrize(
    "body",
    [
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "capabilities": {"cancel": {}}},
        {"sessionUpdate": "terminal_update", "terminalId": "x", "capabilities": {"cancel": {}}},
        {"sessionUpdate": "terminal_update", "terminalId": "x", "size": {"cols": 80, "rows": 24}},
        {"sessionUpdate": "agent_message", "messageId": "m", "_meta": {"k": 1}},
    ],
    ids=str,
)
def test_what_has_no_place_in_version_1_is_reported(body: Json) -> None:
    pump = client_with()
    pump.agent(call(title="x"))
    pump.agent(update(body))
    assert [loss.what for loss in pump.losses] in (
        [body["sessionUpdate"]],
        ["agent"],
    )


def test_files_and_terminals_of_the_client_that_are_not_used_are_reported() -> None:
    pump = Pump(V1ClientTranslator)
    pump.client(
        {"id": 1, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {"terminal": True}}}
    )
    info = {"name": "a", "version": "1"}
    pump.agent({"id": 1, "result": {"protocolVersion": 2, "info": info, "capabilities": {}}})
    assert [loss.what for loss in pump.losses] == ["initialize"]


def test_content_of_many_calls_is_forgotten_and_not_shown_in_part() -> None:
    pump = client_with()
    large = "x" * (MAX_SHOWN // 4)
    for number in range(6):
        body = {"sessionUpdate": "tool_call_update", "toolCallId": f"t{number}", "content": [item(large)]}
        pump.agent(update(body))
    link: Any = pump.links[0]
    calls = link._sessions["s"].updates.calls
    assert sum(one.weight for one in calls.values()) <= MAX_SHOWN
    before = len(shown(pump))
    chunk = {"sessionUpdate": "tool_call_content_chunk", "content": item("more")}
    pump.agent(update({**chunk, "toolCallId": "t0"}))
    assert shown(pump)[before:] == [] and len(pump.losses) == 1
    pump.agent(update({**chunk, "toolCallId": "t5"}))
    assert shown(pump)[-1]["content"] == [item(large), item("more")]
    pump.agent(update({"sessionUpdate": "tool_call_update", "toolCallId": "t0", "content": [item("new")]}))
    pump.agent(update({**chunk, "toolCallId": "t0"}))
    assert shown(pump)[-1]["content"] == [item("new"), item("more")]


def test_content_that_cannot_be_shown_is_reported_once_however_often_it_is_sent_again() -> None:
    pump = client_with()
    move = {"operation": "move", "oldPath": "/a", "path": "/b"}
    pump.agent(call(content=[{"type": "diff", "changes": [move]}, {"type": "_chart"}]))
    for text in "abc":
        pump.agent(update({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "t", "content": item(text)}))
    assert [loss.what for loss in pump.losses] == ["diff", "tool_call_update"]
    assert len(shown(pump)[-1]["content"]) == 5


def diff(changes: list[v2.DiffChange], text: str) -> v2.Diff:
    return v2.Diff(changes=changes, patch=v2.DiffPatch(format=v2.DiffPatchFormat.GIT_PATCH, text=text))


def test_an_empty_line_of_a_patch_that_has_lost_its_blank_is_a_line_of_both_texts() -> None:
    patch = "diff --git /a /a\n--- /a\n+++ /a\n@@ -1,4 +1,4 @@\n a\n\n-b\n+c\n\n"
    [hunk], lines = diffs_to_v1(diff([v2.ModifyChange(path="/a")], patch))
    assert (hunk.old_text, hunk.new_text, lines) == ("a\n\nb\n\n", "a\n\nc\n\n", [])


def test_a_file_that_a_diff_names_often_is_shown_once() -> None:
    patch = "--- /a\n+++ /a\n" + "@@ -1 +1 @@\n-a\n+b\n" * 300
    found, lines = diffs_to_v1(diff([v2.ModifyChange(path="/a")] * 300, patch))
    assert (len(found), len(lines)) == (300, 299)


def test_short_pieces_of_a_message_do_not_pile_up() -> None:
    pump = client_with()
    for _ in range(3 * MAX_PENDING_PIECES):
        chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "äb"}}
        pump.agent(update(chunk), settle=False)
    link: Any = pump.links[0]
    log = link._sessions["s"].updates.messages["agent", "m"]
    assert len(log._pending) <= MAX_PENDING_PIECES
    whole = [{"type": "text", "text": "äb" * 3 * MAX_PENDING_PIECES + "c"}]
    pump.agent(update({"sessionUpdate": "agent_message", "messageId": "m", "content": whole}))
    assert shown(pump)[-1]["content"]["text"] == "c"
