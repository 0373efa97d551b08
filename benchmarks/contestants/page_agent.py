"""An agent for the benchmark of the page: the text of a prompt says how much it sends, and how fast. Knows the wire, no SDK.

work N        N updates, as fast as they are taken
paced N R     N updates, R in a second

They are what a coding agent sends: thoughts, Markdown with code in small pieces, tool calls with diffs and output, plans. The last one
is a message that ends with `all N`.
"""

import json
import sys
import time
from collections.abc import Iterator
from typing import Final

from benchmarks.neutral import answer, write

BURST: Final = 0.01
"""Seconds between two writes of a paced stream: as a model's tokens come through a CLI, a few at a time."""

TEXT: Final = (
    "I will look at the parser first. It **splits** lines with `str.splitlines`, which also splits at U+2028, so a string that "
    "has one becomes two.\n\n```python\ndef lines(text: str) -> list[str]:\n    return [line for line in text.split('\\n') if line]\n```\n\n"
    "- the reader keeps the rest of a line\n- the writer ends each line with one `\\n`\n- nothing else changes\n\n"
)
PIECES: Final = [TEXT[at : at + 12] for at in range(0, len(TEXT), 12)]
OLD: Final = "".join(f"value_{number} = compute({number})\n" for number in range(40))
NEW: Final = OLD.replace("compute(7)", "compute_all(7)").replace("value_30", "result_30")


def updates(call: int) -> Iterator[dict[str, object]]:
    """Yield the updates of one step of work."""
    for piece in ("Where does ", "a line end? ", "I look at the tests."):
        yield {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": piece}}
    for piece in PIECES:
        yield {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": piece}}
    id = f"call_{call}"
    yield {
        "sessionUpdate": "tool_call",
        "toolCallId": id,
        "title": f"Edit parser_{call}.py",
        "kind": "edit",
        "status": "pending",
    }
    yield {"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress"}
    diff = {"type": "diff", "path": f"/tmp/src/parser_{call}.py", "oldText": OLD, "newText": NEW}
    yield {"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed", "content": [diff]}
    steps = [{"content": f"Step {number}", "priority": "medium", "status": "completed"} for number in range(4)]
    yield {"sessionUpdate": "plan", "entries": steps}


def stream(session: str, count: int) -> Iterator[bytes]:
    """Yield the lines of so many updates."""
    sent = call = 0
    while True:
        call += 1
        for update in updates(call + time.monotonic_ns()):
            sent += 1
            if sent == count:
                last = {"type": "text", "text": f" all {count}"}
                update = {"sessionUpdate": "agent_message_chunk", "content": last}
            params = {"sessionId": session, "update": update}
            yield json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode() + b"\n"
            if sent == count:
                return


def play(session: str, words: list[str]) -> None:
    """Send what a prompt asks for."""
    count = int(words[1])
    rate = float(words[2]) if words[0] == "paced" else 0.0
    began, block = time.monotonic(), bytearray()
    for sent, line in enumerate(stream(session, count), 1):
        block += line
        due = began + sent / rate if rate else 0.0
        if len(block) > 1 << 16 or (rate and sent % max(1, int(rate * BURST)) == 0) or sent == count:
            if (wait := due - time.monotonic()) > 0:
                time.sleep(wait)
            write(bytes(block))
            block.clear()


def main() -> None:
    """Answer until the client closes stdin."""
    sessions = 0
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                write(answer(message["id"], {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}))
            case "session/new":
                sessions += 1
                write(answer(message["id"], {"sessionId": f"sess_{sessions:032x}"}))
            case "session/prompt":
                play(message["params"]["sessionId"], message["params"]["prompt"][0]["text"].split())
                write(answer(message["id"], {"stopReason": "end_turn"}))
            case "session/load" | "session/resume":
                write(answer(message["id"], {}))
            case _:
                pass


if __name__ == "__main__":
    main()
