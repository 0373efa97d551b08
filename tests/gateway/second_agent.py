"""An agent that speaks version 2 of ACP and no other: `python second_agent.py [--once]`. It repeats prompts.

With `--once` it ends when it was asked for another version. `/permission` asks for permission first, `/slow` runs until it is cancelled,
`/die` ends the agent.
"""

import json
import sys
from typing import Any

Json = dict[str, Any]


def send(message: Json) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


class Agent:
    """The sessions of one connection."""

    def __init__(self) -> None:
        self.count = 0
        self.asked: dict[int, str] = {}

    def update(self, session: str, **update: object) -> None:
        send({"method": "session/update", "params": {"sessionId": session, "update": update}})

    def show(self, session: str, text: str) -> None:
        for piece in (text[:3], text[3:]):
            content = {"type": "text", "text": piece}
            self.update(session, sessionUpdate="agent_message_chunk", messageId=f"a{self.count}", content=content)

    def idle(self, session: str, reason: str) -> None:
        self.update(session, sessionUpdate="state_update", state="idle", stopReason=reason)

    def initialize(self, id: object, params: Json) -> None:
        if params["protocolVersion"] != 2:
            data = {"requested": params["protocolVersion"], "supported": [2]}
            send({"id": id, "error": {"code": -32022, "message": "Unsupported protocol version", "data": data}})
            if "--once" in sys.argv:
                sys.exit(1)
            return
        info = {"name": "second", "version": "1"}
        send({"id": id, "result": {"protocolVersion": 2, "info": info, "capabilities": {"session": {}}}})

    def prompt(self, id: object, params: Json) -> None:
        session, text = params["sessionId"], params["prompt"][0]["text"]
        self.count += 1
        send({"id": id, "result": {"messageId": f"u{self.count}"}})
        self.update(session, sessionUpdate="user_message", messageId=f"u{self.count}", content=params["prompt"])
        self.update(session, sessionUpdate="state_update", state="running")
        if text == "/die":
            sys.exit(1)
        if text == "/permission":
            self.asked[self.count] = session
            subject = {"type": "command", "command": "rm -r build", "cwd": "/"}
            options = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_once", "reject_once")]
            asked = {"sessionId": session, "title": "Clean up?", "subject": subject, "options": options}
            send({"id": self.count, "method": "session/request_permission", "params": asked})
            return
        self.show(session, f"you said {text}")
        if text != "/slow":
            self.idle(session, "end_turn")

    def answered(self, message: Json) -> None:
        session = self.asked.pop(message["id"])
        self.show(session, json.dumps(message["result"]["outcome"]))
        self.idle(session, "end_turn")

    def request(self, message: Json) -> None:
        id, params = message["id"], message.get("params") or {}
        match message["method"]:
            case "initialize":
                self.initialize(id, params)
            case "session/new":
                self.count += 1
                send({"id": id, "result": {"sessionId": f"s{self.count}"}})
            case "session/prompt":
                self.prompt(id, params)
            case "session/resume":
                self.idle(params["sessionId"], "end_turn")
                send({"id": id, "result": {}})
            case "session/list":
                send({"id": id, "result": {"sessions": []}})
            case _:
                send({"id": id, "error": {"code": -32601, "message": "Method not found"}})

    def run(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                self.answered(message)
            elif "id" in message:
                self.request(message)
            elif message["method"] == "session/cancel":
                self.idle(message["params"]["sessionId"], "cancelled")


if __name__ == "__main__":
    Agent().run()
