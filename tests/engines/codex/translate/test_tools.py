"""Calls of other tools."""

from typing import Any

import pytest

from antiphon.protocol import v1
from tests.engines.codex.translate.harness import CWD, VERSIONS, Stage

CALLS: dict[str, tuple[str, dict[str, Any], dict[str, Any], list[str]]] = {
    "a search on the web": (
        "webSearch", {"query": ""},
        {"query": "acp", "action": {"type": "search", "query": "acp"}, "results": [{"url": "https://x", "title": "X"}, 5]},
        ["call i fetch WebSearch: Search the web [in_progress]", "update i [completed] link(X https://x)"],
    ),
    "a page read on the web": (
        "webSearch", {"query": "", "action": {"type": "openPage", "url": "https://x"}}, {"query": "", "action": {"type": "openPage", "url": "https://x"}},
        ["call i fetch WebFetch: Read https://x [in_progress]", "update i [completed]"],
    ),
    "a picture looked at": (
        "imageView", {"path": f"{CWD}/a.png"}, {"path": f"{CWD}/a.png"},
        [f"call i read Read: Look at a.png [in_progress] link(a.png file://{CWD}/a.png)", "update i [completed]"],
    ),
    "a picture made": (
        "imageGeneration", {"status": "in_progress", "result": ""},
        {"status": "completed", "revisedPrompt": "a cat", "result": "iVBOR", "savedPath": "/tmp/cat.png"},
        ["call i other ImageGeneration: Make a picture [in_progress]", "update i [completed] image(image/png iVBOR)"],
    ),
    "a picture that is kept elsewhere": (
        "imageGeneration", {"status": "in_progress", "fileId": "f"}, {"status": "completed", "fileId": "f"},
        ["call i other ImageGeneration: Make a picture [in_progress]", "update i [completed]"],
    ),
    "a picture that is not made": (
        "imageGeneration", {"status": "in_progress"},
        {"status": "failed", "result": "", "failure": {"type": "usageLimitExceeded", "limitId": "x"}},
        ["call i other ImageGeneration: Make a picture [in_progress]", "update i [failed] 'The limit for pictures is used up.'"],
    ),
    "a pause": (
        "sleep", {"durationMs": 1500}, {"durationMs": 1500},
        ["call i other Sleep: Wait 1.5 s [in_progress]", "update i [completed]"],
    ),
    "a tool of the client": (
        "dynamicToolCall", {"tool": "look", "namespace": "ui", "arguments": {}, "status": "inProgress"},
        {"tool": "look", "namespace": "ui", "arguments": {}, "status": "completed", "success": False,
         "contentItems": [{"type": "inputText", "text": "no"}, {"type": "inputImage", "imageUrl": "data:image/png;base64,AA"}]},
        ["call i other ui__look: look [in_progress]", "update i [failed] 'no' image(image/png AA)"],
    ),
    "an agent started": (
        "collabAgentToolCall", {"tool": "spawnAgent", "prompt": "dig", "status": "inProgress"},
        {"tool": "spawnAgent", "prompt": "dig", "status": "completed", "agentsStates": {"a": {"status": "running", "message": "on it"}}},
        ["call i think Agent: Start an agent: dig [in_progress] 'dig'", "update i [completed] 'dig' 'on it'"],
    ),
    "an agent done": (
        "subAgentActivity", {"kind": "completed", "agentPath": "digger"}, {"kind": "completed", "agentPath": "digger"},
        ["call i think Agent: Agent digger is done [in_progress]", "update i [completed]"],
    ),
    "an output without a call": (
        "functionCallOutput", {"name": "f", "output": "x"}, {"name": "f", "output": "x"},
        ["call i other f: f [in_progress]", "update i [completed] 'x'"],
    ),
    "a hook": (
        "hookPrompt", {"fragments": [{"hookRunId": "h", "text": "mind the gap"}]}, {"fragments": [{"hookRunId": "h", "text": "mind the gap"}]},
        ["notice info: A hook sent to the model | mind the gap"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("spoken", VERSIONS)
@pytest.mark.parametrize("name", CALLS)
def test_each_kind_of_call_is_told_from_start_to_end(name: str, spoken: str) -> None:
    type, start, end, tale = CALLS[name]
    stage = Stage(spoken)
    stage.started(type, "i", **start)
    stage.completed(type, "i", **end)
    stage.completed(type, "i", **end) if type != "hookPrompt" else None
    assert stage.tale == tale
    assert not stage.translator.unknown


def test_what_is_known_later_is_told_later() -> None:
    stage = Stage()
    stage.started("webSearch", "i", query="")
    stage.completed("webSearch", "i", query="acp")
    update = stage.news[-1]
    assert isinstance(update, v1.ToolCallUpdate)
    assert (update.title, update.raw_input) == ("Search the web for acp", {"query": "acp"})


def test_a_servers_tool_returns_what_the_protocol_knows_and_what_it_does_not() -> None:
    stage = Stage()
    blocks = [{"type": "image", "data": "AA", "mimeType": "image/png"}, {"type": "dance"}, 5]
    stage.completed("mcpToolCall", "c", status="completed", result={"content": blocks})
    assert stage.tale[-1] == "update c [completed] image(image/png AA) Unknown '```json\\n5\\n```'"


def test_the_progress_of_a_servers_tool_is_shown() -> None:
    stage = Stage()
    stage.started("mcpToolCall", "c")
    stage.told("item/mcpToolCall/progress", itemId="c", message="half way")
    stage.told("item/mcpToolCall/progress", itemId="nobody", message="half way")
    assert stage.tale[1:] == ["update c 'half way'"]


def test_an_item_that_nobody_knows_is_counted() -> None:
    stage = Stage()
    stage.started("dance", "d")
    stage.completed("dance", "d")
    assert stage.news == [] and stage.translator.unknown == {"item dance": 1}


def test_a_notification_that_nobody_knows_is_counted() -> None:
    stage = Stage()
    stage.told("thread/dance")
    stage.told("thread/realtime/started")
    assert stage.news == [] and stage.translator.unknown == {"thread/dance": 1}
