"""Histories, sent in the same words as when it happened."""

from typing import Any

import msgspec
import pytest

from antiphon.engines.codex import wire
from tests.engines.codex.translate.harness import CWD, VERSIONS, TranslatedThread, add, described, failure, update

HUNK = "@@ -1 +1 @@\n-one\n+1\n"


def history(thread: TranslatedThread, *turns: dict[str, Any]) -> list[str]:
    raw = msgspec.Raw(msgspec.json.encode({"thread": {"id": "t", "turns": turns}}))
    return list(described(thread.translator.turns(wire.read(raw, wire.ThreadOpened).thread.turns)))


def turn(*items: dict[str, Any], status: str = "completed", error: Any = None) -> dict[str, Any]:
    return {"id": "u", "items": list(items), "itemsView": "full", "status": status, "error": error}


@pytest.mark.parametrize("spoken", VERSIONS)
def test_a_history_has_everything_in_order(spoken: str) -> None:
    thread = TranslatedThread(spoken, read={f"{CWD}/a": "another text by now\n"}.get)
    texts = [
        {"type": "text", "text": "look", "text_elements": []}, {"type": "image", "url": "data:image/png;base64,AA"},
        {"type": "localImage", "path": "/p/cat 1.png"}, {"type": "mention", "name": "m", "path": "app://m"}, {"type": "dance"},
    ]  # fmt: skip
    first = turn(
        thread.item("userMessage", "1", content=texts),
        thread.item("reasoning", "2", summary=["hm", "so"]),
        thread.item("agentMessage", "3", text="I will", phase="commentary"),
        thread.item(
            "commandExecution",
            "4",
            command="/bin/bash -lc 'ls'",
            status="completed",
            aggregatedOutput="a\n",
            exitCode=0,
        ),
        thread.item("fileChange", "5", changes=[add("n", "x\n"), update("a", HUNK)], status="completed"),
        thread.item("plan", "6", text="# Plan"),
        thread.item("contextCompaction", "7"),
        thread.item("agentMessage", "8", text="done", phase="final_answer"),
    )
    changed = f"diff({CWD}/n: None -> 'x\\n') diff({CWD}/a: 'one\\n' -> '1\\n')"
    assert history(thread, first) == [
        "user 1 'look'", "user 1 image(image/png AA)", "user 1 link(cat 1.png file:///p/cat%201.png)", "user 1 link(m app://m)",
        "think 2 'hm\\n\\nso'",
        "say 3 'I will'",
        "call 4 execute Bash: ls [in_progress]", "update 4 [completed] '```\\na\\n```'",
        f"call 5 edit Edit: Edit n and 1 more file [in_progress] {changed}", f"update 5 [completed] {changed}",
        "say 6 '# Plan'",
        "compaction 7 [completed]",
        "say 8 'done'",
    ]  # fmt: skip


def test_what_never_came_to_an_end_is_closed_and_the_reason_of_a_failed_turn_is_shown() -> None:
    thread = TranslatedThread()
    broken = turn(
        thread.item("commandExecution", "c", command="sleep 9", status="inProgress"),
        status="failed",
        error=failure("High demand", "internalServerError"),
    )
    assert history(thread, broken) == [
        "call c execute Bash: sleep 9 [in_progress]",
        "update c [failed] 'It did not come to its end.'",
        "notice error: High demand",
    ]


def test_text_before_a_retry_is_shown_once() -> None:
    thread = TranslatedThread()
    twice = turn(
        thread.item("reasoning", "r1", summary=["hm"]),
        thread.item("agentMessage", "a", text="half"),
        thread.item("reasoning", "r2", summary=["hm"]),
        thread.item("agentMessage", "b", text="half and whole"),
        thread.item("commandExecution", "c", command="ls", status="completed", exitCode=0),
        thread.item("agentMessage", "d", text="half"),
    )
    assert history(thread, twice) == [
        "think r1 'hm'", "say a 'half'", "say a ' and whole'",
        "call c execute Bash: ls [in_progress]", "update c [completed]", "say d 'half'",
    ]  # fmt: skip


def test_the_same_words_in_the_next_turn_are_shown_again() -> None:
    thread = TranslatedThread()
    again = [turn(thread.item("agentMessage", id, text="ok")) for id in ("a", "b")]
    assert history(thread, *again) == ["say a 'ok'", "say b 'ok'"]


def test_old_commands_are_not_run_through_a_mirror_again() -> None:
    thread = TranslatedThread(mirror=True)
    item = thread.item("commandExecution", "c", command="ls", status="completed", aggregatedOutput="a\n", exitCode=0)
    assert history(thread, turn(item))[-1] == "update c [completed] '```\\na\\n```'"


def test_one_item_alone_is_shown_too() -> None:
    thread = TranslatedThread()
    events = thread.translator.item(wire.UserMessage(id="1", content=[wire.TextInput(text="hi")]))
    assert list(described(events)) == ["user 1 'hi'"]
    assert not thread.translator.item(wire.UserMessage(id="1", content=[wire.TextInput(text="hi")]), replay=False)


def test_what_happens_after_a_history_is_shown_as_usual() -> None:
    thread = TranslatedThread()
    history(thread, turn(thread.item("agentMessage", "a", text="ok")))
    thread.begin()
    thread.says("b", "ok")
    thread.over()
    assert thread.outline == ["say b 'ok'", "end u1 end_turn"]
