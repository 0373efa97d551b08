"""Calls of other tools."""

from typing import Any

from antiphon.protocol import v1
from tests.engines.codex.translate.harness import CWD, VERSIONS, TranslatedThread
from tests.rows import each_row

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


@each_row("spoken", VERSIONS)
@each_row("name", CALLS)
def test_each_kind_of_call_is_shown_from_start_to_end(name: str, spoken: str) -> None:
    type, start, end, outline = CALLS[name]
    thread = TranslatedThread(spoken)
    thread.started(type, "i", **start)
    thread.completed(type, "i", **end)
    thread.completed(type, "i", **end) if type != "hookPrompt" else None
    assert thread.outline == outline
    assert not thread.translator.unknown


def test_what_is_known_later_is_shown_later() -> None:
    thread = TranslatedThread()
    thread.started("webSearch", "i", query="")
    thread.completed("webSearch", "i", query="acp")
    update = thread.events[-1]
    assert isinstance(update, v1.ToolCallUpdate)
    assert (update.title, update.raw_input) == ("Search the web for acp", {"query": "acp"})


def test_a_servers_tool_returns_what_the_protocol_knows_and_what_it_does_not() -> None:
    thread = TranslatedThread()
    blocks = [{"type": "image", "data": "AA", "mimeType": "image/png"}, {"type": "dance"}, 5]
    thread.completed("mcpToolCall", "c", status="completed", result={"content": blocks})
    assert thread.outline[-1] == "update c [completed] image(image/png AA) Unknown '```json\\n5\\n```'"


def test_the_progress_of_a_servers_tool_is_shown() -> None:
    thread = TranslatedThread()
    thread.started("mcpToolCall", "c")
    thread.notify("item/mcpToolCall/progress", itemId="c", message="half way")
    thread.notify("item/mcpToolCall/progress", itemId="nobody", message="half way")
    assert thread.outline[1:] == ["update c 'half way'"]


def test_an_unknown_item_is_counted() -> None:
    thread = TranslatedThread()
    thread.started("dance", "d")
    thread.completed("dance", "d")
    assert thread.events == [] and thread.translator.unknown == {"item dance": 1}


def test_an_unknown_notification_is_counted() -> None:
    thread = TranslatedThread()
    thread.notify("thread/dance")
    thread.notify("thread/realtime/started")
    assert thread.events == [] and thread.translator.unknown == {"thread/dance": 1}
