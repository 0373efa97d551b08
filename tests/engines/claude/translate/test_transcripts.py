"""Whole sessions of both CLIs, retold in few words: every line comes to just what stands beside it."""

from pathlib import Path

from antiphon.engines.claude import wire
from antiphon.engines.claude.translate.events import ClaudeTurnEnded
from antiphon.protocol import v1
from antiphon.protocol.base import encode
from tests.engines.claude.translate.recorded import FILES, Session, play
from tests.rows import each_row

sessions = each_row("path", FILES, ids=[path.stem for path in FILES])


@sessions
def test_every_line_comes_to_what_stands_beside_it(path: Path) -> None:
    session = Session(path)
    assert session.translate() == session.expected


@sessions
def test_every_line_is_read(path: Path) -> None:
    ill = [line for line in Session(path).lines if isinstance(wire.decode(encode(line)), wire.GarbledLine)]
    assert ill == []


@sessions
def test_text_is_shown_exactly_once(path: Path) -> None:
    session = Session(path)
    whole: dict[str, str] = {}
    for line in session.lines:
        if (
            line["type"] == "assistant"
            and line.get("parent_tool_use_id") is None
            and not line.get("is_api_error_message")
        ):
            for block in line["message"]["content"]:
                if block["type"] == "text" and block["text"] != "(no content)":
                    whole[line["message"]["id"]] = whole.get(line["message"]["id"], "") + block["text"]
    sent: dict[str | None, str] = {}
    for each in (each for message in play(session.lines) for each in message):
        if isinstance(each, v1.AgentMessageChunk) and isinstance(each.content, v1.TextBlock):
            sent[each.message_id] = sent.get(each.message_id, "") + each.content.text
    assert {id: sent.get(id) for id in whole} == whole


@sessions
def test_every_call_begins_once_and_ends_once(path: Path) -> None:
    begun: list[str] = []
    over: list[str] = []
    for each in (each for message in play(Session(path).lines) for each in message):
        if isinstance(each, v1.ToolCall):
            begun.append(each.tool_call_id)
        elif isinstance(each, v1.ToolCallUpdate) and each.status in (v1.ToolStatus.COMPLETED, v1.ToolStatus.FAILED):
            over.append(each.tool_call_id)
    assert sorted(begun) == sorted(set(begun)) == sorted(over)


@sessions
def test_every_result_ends_one_turn(path: Path) -> None:
    session = Session(path)
    results = sum(line["type"] == "result" for line in session.lines)
    assert sum(isinstance(each, ClaudeTurnEnded) for message in play(session.lines) for each in message) == results


@sessions
def test_all_updates_can_be_sent(path: Path) -> None:
    for each in (each for message in play(Session(path).lines) for each in message):
        if isinstance(each, v1.UpdateModel | v1.ToolCallPatch):
            assert encode(each).startswith(b'{"sessionUpdate":"')
