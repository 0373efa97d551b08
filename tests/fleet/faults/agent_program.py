"""An agent for the faults of a fleet: it says numbered pieces, and writes down in a file that all of them share what it was sent.

    python agent_program.py DIRECTORY

A prompt is `NAME KIND COUNT`. The pieces of its answer are `NAME/0`, `NAME/1`, … A session that one process of this agent has opened can
be loaded by any other: its file is in the directory.
"""

import json
import os
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

DIRECTORY = Path(sys.argv[1])
PAUSE, SHORT = 0.05, 0.002
"""Seconds between two pieces of a slow answer, and of one that is faster."""
BIG = 300_000
"""Characters of a piece that is larger than what shares a message of the broker."""

_write = threading.Lock()
_cancelled: dict[str, threading.Event] = {}
_answers: dict[str, threading.Event] = {}


def note(*words: object) -> None:
    """Write a line to the file that all processes of this agent share: one write, so that lines are whole."""
    with open(DIRECTORY / "notes", "ab", buffering=0) as file:
        file.write(" ".join(map(str, (*words, os.getpid()))).encode() + b"\n")


def send(message: dict[str, Any]) -> None:
    """Send a message."""
    data = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
    with _write:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def say(session: str, text: str) -> None:
    """Send a piece of an answer."""
    content = {"type": "text", "text": text}
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    send({"method": "session/update", "params": {"sessionId": session, "update": update}})


def ask(session: str, name: str, stop: threading.Event) -> None:
    """Request a permission, and wait for the answer."""
    answered = _answers[name] = threading.Event()
    options = [
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]
    call = {"toolCallId": name, "title": name}
    params = {"sessionId": session, "toolCall": call, "options": options}
    send({"id": name, "method": "session/request_permission", "params": params})
    while not answered.wait(PAUSE) and not stop.is_set():
        pass


def answer(id: object, params: dict[str, Any], stop: threading.Event) -> None:
    """Answer one prompt."""
    session = params["sessionId"]
    name, kind, count = params["prompt"][-1]["text"].split()
    note("prompt", name)
    for piece in range(int(count)):
        if stop.is_set():
            break
        text = f"{name}/{piece}"
        say(session, text if kind != "big" else text + " " * BIG)
        if kind in ("slow", "fast"):
            stop.wait(PAUSE if kind == "slow" else SHORT)
        elif kind == "ask" and piece == 1:
            ask(session, f"{name}.{os.getpid()}", stop)
    send({"id": id, "result": {"stopReason": "cancelled" if stop.is_set() else "end_turn"}})


def handle(message: dict[str, Any]) -> None:
    """Handle one message."""
    method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
    result: dict[str, Any] = {}
    if method is None:
        if str(id) in _answers:
            _answers[str(id)].set()
        return
    if method == "session/prompt":
        stop = _cancelled[params["sessionId"]] = threading.Event()
        threading.Thread(target=answer, args=(id, params, stop), daemon=True).start()
        return
    if method == "session/cancel":
        _cancelled.get(params["sessionId"], threading.Event()).set()
        return
    if method == "initialize":
        abilities = {"loadSession": True, "sessionCapabilities": {"close": {}}}
        result = {"protocolVersion": 1, "agentCapabilities": abilities}
    elif method == "session/new":
        result = {"sessionId": uuid.uuid4().hex}
        (DIRECTORY / f"{result['sessionId']}.session").touch()
    elif method == "session/load" and not (DIRECTORY / f"{params['sessionId']}.session").exists():
        send({"id": id, "error": {"code": -32002, "message": "no such session"}})
        return
    elif method == "session/close":
        _cancelled.get(params["sessionId"], threading.Event()).set()
    if id is not None:
        send({"id": id, "result": result})


def main() -> None:
    """Serve until the input ends."""
    note("start")
    for line in sys.stdin.buffer:
        handle(json.loads(line))


if __name__ == "__main__":
    main()
