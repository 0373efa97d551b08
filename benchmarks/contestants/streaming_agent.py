"""An agent that streams a number of updates for each prompt, at a pace. Plain Python, no SDK: it costs both clients the same."""

import json
import sys
import time

UPDATES, PER_TICK, TICK = int(sys.argv[1]), int(sys.argv[2]), 0.02
SESSION = "session-1"


def send(message: dict) -> None:  # type: ignore[type-arg]  # JSON
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n")


def piece(number: int) -> str:
    """Sentences of a message: words, now and then a new paragraph."""
    return f"word{number} " if number % 40 else f"end{number}.\n\n"


def stream(request: dict) -> None:  # type: ignore[type-arg]  # JSON
    """Send the updates, some in every tick."""
    due = time.monotonic()
    for number in range(1, UPDATES + 1):
        content = {"type": "text", "text": piece(number)}
        update = {"sessionUpdate": "agent_message_chunk", "content": content, "messageId": "m1"}
        send({"method": "session/update", "params": {"sessionId": SESSION, "update": update}})
        if number % PER_TICK == 0:
            sys.stdout.flush()
            due += TICK
            time.sleep(max(due - time.monotonic(), 0))
    last = {"type": "text", "text": "\n\nALLDONE"}
    update = {"sessionUpdate": "agent_message_chunk", "content": last, "messageId": "m1"}
    send({"method": "session/update", "params": {"sessionId": SESSION, "update": update}})
    send({"id": request["id"], "result": {"stopReason": "end_turn"}})


def answer(request: dict) -> None:  # type: ignore[type-arg]  # JSON
    """Answer one request."""
    match request.get("method"):
        case "initialize":
            info = {"name": "streamer", "title": "Streamer", "version": "1"}
            send({"id": request["id"], "result": {"protocolVersion": 1, "agentCapabilities": {}, "agentInfo": info}})
        case "session/new":
            send({"id": request["id"], "result": {"sessionId": SESSION}})
        case "session/prompt":
            stream(request)
        case _:
            if "id" in request and "method" in request:
                send({"id": request["id"], "result": {}})
    sys.stdout.flush()


for line in sys.stdin:
    answer(json.loads(line))
