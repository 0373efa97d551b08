"""In the place of Codex, for what no version of today can be brought to say: an app server that says the lines of a file.

`STAND_IN_LINES` names the file: turns of JSON lines, an empty line between them. In them `$THREAD` and `$TURN` stand for the ids of the
thread and of the running turn. A line with an `id` is a request: it waits for the answer, which is kept in `STAND_IN_ANSWERS`, unless the line says `nowait`.
A line `{"pipe": name}` waits until something is written into that named pipe.
`STAND_IN_VERSION` is the version that it says it has.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

THREAD = "01900000-0000-7000-8000-000000000001"

Message = dict[str, Any]


def say(message: Message) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def thread() -> Message:
    opened = {"id": THREAD, "cwd": os.getcwd(), "preview": "", "turns": [], "createdAt": 1, "updatedAt": 1}
    return {"thread": opened, "model": "choir", "approvalPolicy": "on-request", "sandbox": {"type": "readOnly"}}


RESULTS: dict[str, Any] = {
    "initialize": lambda: {"userAgent": "stand-in"},
    "account/read": lambda: {"account": None, "requiresOpenaiAuth": False},
    "model/list": lambda: {"data": [], "nextCursor": None},
    "thread/start": thread,
    "thread/resume": thread,
}


def play(lines: str, number: int, received: Iterator[str]) -> None:
    """One turn."""
    turn = f"turn-{number}"
    begun = {"id": turn, "status": "inProgress", "items": []}
    say({"method": "turn/started", "params": {"threadId": THREAD, "turn": begun}})
    for line in lines.replace("$THREAD", THREAD).replace("$TURN", turn).splitlines():
        message = json.loads(line)
        if "pipe" in message:
            Path(message["pipe"]).read_bytes()
            continue
        waits = "id" in message and not message.pop("nowait", False)
        say(message)
        if waits:
            with open(os.environ["STAND_IN_ANSWERS"], "a", encoding="utf-8") as answers:
                answers.write(next(each for each in received if json.loads(each).get("id") == message["id"]))
    say({"method": "turn/completed", "params": {"threadId": THREAD, "turn": {**begun, "status": "completed"}}})


def main(words: list[str]) -> None:
    if "--version" in words:
        sys.stdout.write(f"codex-cli {os.environ.get('STAND_IN_VERSION', '0.166.0')}\n")
        return
    turns = iter(Path(os.environ["STAND_IN_LINES"]).read_text(encoding="utf-8").split("\n\n"))
    received = iter(sys.stdin.readline, "")
    for number, line in enumerate(received):
        asked = json.loads(line)
        if asked.get("method") == "turn/start":
            say({"id": asked["id"], "result": {"turn": {"id": f"turn-{number}", "status": "inProgress", "items": []}}})
            play(next(turns), number, received)
        elif "id" in asked and "method" in asked:
            say({"id": asked["id"], "result": RESULTS.get(asked["method"], dict)()})


if __name__ == "__main__":
    main(sys.argv[1:])
