"""The file in which Codex keeps a thread is read from where we last were."""

import json
from pathlib import Path

from antiphon.engines.codex.rollout import Rollout


def add(path: Path, *lines: object) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def test_only_what_was_added_since_is_returned(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    add(path, {"type": "response_item", "payload": {"type": "function_call", "call_id": "before"}})
    rollout = Rollout(str(path))
    assert rollout.fresh() == []
    add(
        path,
        {"type": "event_msg", "payload": {"type": "token_count"}},
        {"type": "event_msg", "payload": {"type": "item_completed", "item": {"type": "AgentMessage", "id": "m1"}}},
        {"type": "response_item", "payload": {"type": "function_call", "call_id": "c1", "name": "exec_command"}},
        {"type": "response_item", "payload": "something else"},
        ["no", "line"],
    )
    item, call = rollout.fresh()
    assert item.item is not None and item.item.id == "m1" and (call.type, call.call_id) == ("function_call", "c1")
    assert [each.call_id for each in Rollout(str(path), whole=True).fresh() if each.call_id] == ["before", "c1"]
    assert rollout.fresh() == []


def test_a_file_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "later.jsonl"
    rollout = Rollout(str(path))
    assert rollout.fresh() == []
    add(path, {"type": "response_item", "payload": {"type": "message"}})
    assert [each.type for each in rollout.fresh()] == ["message"]
    path.unlink()
    assert rollout.fresh() == []


def test_a_line_that_is_half_written_is_returned_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    add(path, {"type": "response_item", "payload": {"type": "message"}})
    rollout = Rollout(str(path), whole=True)
    line = b'{"type": "response_item", "payload": {"type": "function_call", "call_id": "c1"}}\n'
    with path.open("ab") as file:
        file.write(line[:30])
    assert [each.type for each in rollout.fresh()] == ["message"]
    assert rollout.fresh() == []
    with path.open("ab") as file:
        file.write(line[30:])
    assert [each.call_id for each in rollout.fresh()] == ["c1"]
    assert rollout.fresh() == []
